"""
The grammar that endpoint strings and observer spec strings share.

C{:} separates the parts; the first C{=} of a part makes it a keyword; a backslash takes the next character as it is.
It is the grammar of C{twisted.internet.endpoints.serverFromString}, read here without opening anything.
"""

from __future__ import annotations

import re

from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError

#: A part, escapes left in. A backslash at the very end is for L{unescaped} to complain about.
_PART = re.compile(r"(?:[^:\\]|\\.|\\$)*", re.DOTALL)


def split_raw(text: str) -> list[str]:
    """Return the parts between the colons that separate them, as they are written: escapes are left in."""
    parts: list[str] = []
    end = -1
    while end < len(text):
        found = _PART.match(text, end + 1)
        assert found is not None  # it matches nothing, too
        parts.append(found[0])
        end = found.end()
    return parts


def unescaped(text: str) -> str:
    """
    Return a text with its escapes undone.

    @raise ConfigError: a backslash is the last character.
    """
    return re.sub(r"\\(.|$)", lambda escape: escape[1] or _nothing_to_escape(text), text, flags=re.DOTALL)


def split_spec(text: str) -> tuple[list[str], dict[str, str]]:
    """
    Return the positional parts and the keyword parts.

    @raise ConfigError: a backslash is the last character, or a keyword stands there twice.
    """
    args: list[str] = []
    options: dict[str, str] = {}
    for part in _split(text):
        if part.key is None:
            args.append(part.value)
        elif part.key in options:
            raise ConfigError(f"{quoted_spec(text)} has {part.key}= twice.")
        else:
            options[part.key] = part.value
    return args, options


def escaped(text: str) -> str:
    """Return a value with all that the grammar gives a meaning escaped."""
    return "".join(f"\\{char}" if char in "\\:=" else char for char in text)


class _Part:
    __slots__ = ("key", "value")

    def __init__(self) -> None:
        self.key: str | None = None
        self.value = ""


def _split(text: str) -> list[_Part]:
    parts = [_Part()]
    characters = iter(text)
    for char in characters:
        part = parts[-1]
        if char == ":":
            parts.append(_Part())
        elif char == "=" and part.key is None:
            part.key, part.value = part.value, ""
        elif char == "\\":
            taken = next(characters, None)
            part.value += _nothing_to_escape(text) if taken is None else taken
        else:
            part.value += char
    return parts


def _nothing_to_escape(text: str) -> str:
    raise ConfigError(f"{quoted_spec(text)} ends with a backslash, which has nothing to escape.")


def quoted_spec(text: str) -> str:
    """
    Return an endpoint or observer string in quotes. Where it may hold the password of a URL, all before its host is
    left out.
    """
    name, colon, rest = text.partition(":")
    return quoted(f"{name}:…@{rest.rpartition('@')[2]}" if colon and "@" in rest else text)
