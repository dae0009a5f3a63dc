"""
Options that are pairs of a name and a template, such as C{labels=source=${SOURCE},host=${HOST}}.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from webhookrx.diagnostics import quoted
from webhookrx.message.template import Template

#: Names with their templates, in the order in which they are written.
TemplatePairs: TypeAlias = tuple[tuple[str, Template], ...]

#: A comma outside of a macro, whose default may have one.
_COMMA: Final = re.compile(r",(?![^{}]*\})")


def parse_pairs(text: str, name_pattern: re.Pattern[str], names: str) -> TemplatePairs:
    """
    Read C{NAME=TEMPLATE,NAME=TEMPLATE}; an empty text has none.

    @param name_pattern: what a name looks like.
    @param names: the same for people, such as C{letters, digits and underscores}.
    @raise ValueError: a name or template is wrong, or a name is there twice; the text says what is allowed.
    """
    pairs: dict[str, Template] = {}
    for item in _COMMA.split(text) if text else []:
        name, sign, value = item.partition("=")
        if not sign:
            raise ValueError(
                f"{quoted(item)} is not NAME=TEMPLATE; write for example source=${{SOURCE}},host=${{HOST}}"
            )
        if not name_pattern.fullmatch(name):
            raise ValueError(f"the name {quoted(name)} is wrong; a name has {names}")
        if name in pairs:
            raise ValueError(f"the name {quoted(name)} is there twice")
        pairs[name] = Template.parse(value)
    return tuple(pairs.items())
