"""
The grammar that endpoint strings and observer spec strings share, and the options of a spec string by type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from webhookrx.config.options import parse_flag
from webhookrx.diagnostics import nearest, quoted
from webhookrx.errors import ConfigError
from webhookrx.quantities import format_duration, format_size, parse_duration, parse_size

#: A part with its escapes. A backslash at the very end is an error of L{unescaped}.
_PART = re.compile(r"(?:[^:\\]|\\.|\\$)*", re.DOTALL)


def split_raw(text: str) -> list[str]:
    """Return the parts between colons, with their escapes."""
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
    """Return a value with the characters of the grammar escaped."""
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
    Return an endpoint or observer string in quotes, without what may be the password of a URL: all before its host.
    """
    name, colon, rest = text.partition(":")
    return quoted(f"{name}:…@{rest.rpartition('@')[2]}" if colon and "@" in rest else text)


T = TypeVar("T")

# ASCII digits only: int() takes those of other scripts, and underscores.
_COUNT: Final = re.compile(r"[0-9]{1,9}")


class SpecOptions:
    """
    Reads options by type, each with a default. Every method raises L{ConfigError} for a value that does not fit, and
    quotes it: a secret belongs in a file, not in a spec string.

    @param observer: the name of the observer, for errors.
    @param given: the options of the spec string.
    """

    def __init__(self, observer: str, given: Mapping[str, str]) -> None:
        self.observer = observer
        self.given = given

    def __contains__(self, key: str) -> bool:
        return key in self.given

    def check_known(self, known: Sequence[str]) -> None:
        """
        Check the names of the options.

        @raise ConfigError: one of them is unknown; its value is not quoted.
        """
        for key in self.given:
            if key not in known:
                names = f"its options are {', '.join(sorted(known))}" if known else "it has no options"
                raise self.problem(f"unknown option {quoted(key)}; {names}. {nearest(key, known)}".rstrip(". "))

    def flag(self, key: str, default: bool) -> bool:
        """Read a flag."""
        try:
            return parse_flag(self.given[key]) if key in self.given else default
        except ConfigError:
            raise self.misfit(key, "yes or no", "yes, on, true, no, off or false") from None

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """Read one of several words."""
        value = self.given.get(key, default)
        if value not in choices:
            raise self.misfit(key, "known", f"{', '.join(choices[:-1])} or {choices[-1]}")
        return value

    def size(self, key: str, default: T, *, at_least: int = 0) -> int | T:
        """Read a size in bytes."""
        try:
            size = parse_size(self.given[key]) if key in self.given else None
        except ValueError:
            raise self.misfit(key, "a size", "bytes, or a number with a unit, such as 10MiB") from None
        if size is not None and size < at_least:
            raise self.misfit(key, "enough", f"{format_size(at_least)} or more")
        return default if size is None else size

    def duration(self, key: str, default: T, *, at_least: float = 0.0, at_most: float | None = None) -> float | T:
        """Read a duration in seconds."""
        try:
            seconds = parse_duration(self.given[key]) if key in self.given else None
        except ValueError:
            raise self.misfit(key, "a length of time", "seconds, or a number with a unit, such as 30s") from None
        if seconds is not None and seconds < at_least:
            raise self.misfit(key, "enough", f"{format_duration(at_least)} or more")
        if seconds is not None and at_most is not None and seconds > at_most:
            raise self.misfit(key, "sensible", f"{format_duration(at_most)} or less")
        return default if seconds is None else seconds

    def count(self, key: str, default: int) -> int:
        """Read a whole number from 1."""
        if key not in self.given:
            return default
        if not _COUNT.fullmatch(self.given[key]) or not int(self.given[key]):
            raise self.misfit(key, "a count", "a whole number from 1 on, such as 500")
        return int(self.given[key])

    def read(self, key: str, default: T, read: Callable[[str], T]) -> T:
        """
        Read a type that only one observer has.

        @param read: raises C{ValueError} that says what is allowed.
        """
        try:
            return read(self.given[key]) if key in self.given else default
        except ValueError as error:
            raise self.problem(f"{key}={quoted(self.given[key])}: {error}") from error

    def misfit(self, key: str, what: str, takes: str) -> ConfigError:
        """Return the error for a value that is not C{what} its option takes."""
        return self.problem(f"{key}={quoted(self.given[key])} is not {what}; it takes {takes}")

    def problem(self, text: str) -> ConfigError:
        """Return an error that names the observer."""
        return ConfigError(f"observer {self.observer!r}: {text}")
