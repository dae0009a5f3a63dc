"""
The id of a message, which is the same at every try, in every process, and after a restart: by it a store knows what it
has already.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Final, TypeAlias

from webhookrx.message.escapes import escape
from webhookrx.message.macros import macro_value
from webhookrx.message.message import Message, Value
from webhookrx.message.template import Template
from webhookrx.yield_point import encode_utf_8

#: Makes the id of a message.
MakeID: TypeAlias = Callable[[Message], str]

LONGEST_ID: Final = 512
"""Bytes of an id in UTF-8: what Elasticsearch takes at most as C{_id}. A longer one is replaced by its SHA-256."""

_PLAIN: Final = 128
#: A macro that makes the text of each message unique.
_UNIQUE: Final = re.compile(r"\$(?:RCPTID\b|\{RCPTID[:}]|\(\s*format-json\s*\))", re.ASCII)


def message_id(message: Message) -> str:
    """Return the id that the receiver has given: C{RCPTID}, or C{meta.id} in the router form."""
    own: Value = message.text_of("RCPTID")
    if own is None:
        own = macro_value("RCPTID", message)
    if type(own) is not str:
        return ""
    # What we make is short and plain. A relay may have read it from a line that others wrote.
    return own if len(own) <= _PLAIN and own.isascii() and own.isprintable() else _shortened(encode_utf_8(escape(own)))


def parse_id(text: str) -> MakeID:
    """
    Return what makes ids by a template: one line of text, with control characters as escapes, since it may become a
    header field. A message for which the template yields nothing has its own id: without one, some stores would keep
    it again and again, and others not at all.

    @raise ValueError: it is no template, or has no macro, so that all ids would be equal.
    """
    template = Template.parse(text)
    if not template.has_macros:
        raise ValueError("it takes a template with a macro, such as ${RCPTID}; otherwise all messages have one id")
    return lambda message: _shortened(template.render_line(message)[:-1]) or message_id(message)


def is_unique(template: str) -> bool:
    """Tell whether no two messages make the same text by a template, since the receiver's id of each is in it."""
    return bool(_UNIQUE.search(template.replace("$$", "")))


def _shortened(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest() if len(raw) > LONGEST_ID else raw.decode()
