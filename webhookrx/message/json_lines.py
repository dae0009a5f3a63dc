"""
A message as one line of JSON, always valid and always one line, whatever a sender wrote: see
L{webhookrx.message.escapes}.

A message of the source form is a flat object, one key per name, C{ISODATE} first. One of the router form is the two
objects C{log} and C{meta}.
"""

from __future__ import annotations

from webhookrx.message.escapes import encode_lines, escape_misleading, without_misleading
from webhookrx.message.long_text import encode_around, long_text
from webhookrx.message.macros import isodate
from webhookrx.message.message import Message
from webhookrx.message.router_form import is_router_form


def encode_line(message: Message) -> bytes:
    """
    Return a message as a line: one JSON object with all its pairs in UTF-8, and C{b"\\n"}. It is always one line of
    valid JSON, whatever bytes a sender chose: it holds no control characters, line or paragraph separators or bidi
    controls other than as escapes.

    It raises for no message whose values keep to L{webhookrx.message.message.Value}.
    """
    values = message.values
    # The look for "log" spares nearly all messages of the source form a call.
    is_whole = "ISODATE" in values or ("log" in values and is_router_form(values))
    if not is_whole:
        values = {"ISODATE": isodate(message.received), **values}
    text = long_text(values)
    if text is not None:
        return encode_around(text, values, escape_misleading, after=b"\n")
    # What encode_json() does, without the call that each message would pay for.
    line = encode_lines([values])
    # The line end is no part of the JSON, in which it would be escaped.
    return without_misleading(line[:-1]) + b"\n" if 0x7F in line or not line.isascii() else line


def encode_object(message: Message) -> bytes:
    """Return the same as L{encode_line} without the line end."""
    return encode_line(message)[:-1]
