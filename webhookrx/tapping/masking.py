"""
Masking: copies of what a tap shows, without secrets, and no larger than a tap may show.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final
from urllib.parse import unquote_plus

import msgspec

from webhookrx.intake.header_masking import MASK, is_masked
from webhookrx.intake.remembered import Remembered

MOST_SHOWN: Final = 64 * 1024
"""Bytes of a message that are shown, as about as many characters of JSON."""

CUT: Final = "…"
"""Stands where something is left out."""

_LARGEST_ARRAY: Final = 4 * MOST_SHOWN
"""Bytes of an array that is decoded, so that it can be cut; a larger one is left out."""

_DEEPEST: Final = 64
_LONGEST_NAME: Final = 256

_MOST_NESTED: Final = 4
"""Texts of JSON inside of texts of JSON that are looked into; deeper ones are left out."""

#: In text of another kind than JSON, what stands before a value: C{name=}, C{name: } and C{"name": }, maybe escaped.
_BEFORE_VALUE: Final = re.compile(
    r"""(?<![\w.%+\[\]-])([\w.%+\[\]-]++)\\{0,8}["']?[ \t]{0,4}([=:])[ \t]{0,4}(?:(?:Bearer|Basic)[ \t]{1,4})?""",
    re.ASCII,
)
_VALUE: Final = re.compile(r"""\\{0,8}"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?|[\[{]|[^\s&,;"']*""", re.ASCII)
#: The value of a header is the line, such as all of the pairs in C{Cookie}.
_LINE: Final = re.compile(r"""\\{0,8}"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?|[\[{]|[^\r\n]*""", re.ASCII)
# Up to the next "=" too, so that no part of a text is looked at twice.
_PARAMETER: Final = re.compile(r"[^&;=\s]*+")
_BETWEEN_WORDS: Final = str.maketrans("_. []", "-----")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MORE_SECRETS: Final = re.compile(
    # What is in Base64 can't be looked into.
    r"passphrase|base64$|private-?key|(?:^|-)pwd(?:$|-)|(?:^|-)pin(?:$|-)|credit-?card|card-?number|cvc|cvv"
)


def _hides(name: str) -> bool:
    """Return whether a member of this name holds a secret: by the words for headers, however it is spelled."""
    words = _CAMEL.sub("-", name).translate(_BETWEEN_WORDS).lower()
    return is_masked(words[-64:]) or _MORE_SECRETS.search(words) is not None


_HIDES: Final[Remembered[str, bool]] = Remembered(_hides, most=2048, longest=64)


class Masks:
    """
    Masks what taps show.

    @param names: more names of members that hold secrets, in any case.
    """

    def __init__(self, names: Collection[str] = ()) -> None:
        self._names = frozenset(map(str.lower, names))

    def hides(self, name: str) -> bool:
        """Tell whether the value of a member of this name is not shown."""
        return _HIDES[name] or name.lower() in self._names

    def masked(self, value: Any) -> tuple[Any, bool]:
        """
        Return a copy of a JSON value without secrets, of about L{MOST_SHOWN} characters at most, and whether something
        was left out for that. Its work is that of what it returns.
        """
        copier = _Copier(self, 0)
        return copier.copy(value, 0), copier.has_cut

    def masked_text(self, text: str, nested: int = 0) -> str:
        """
        Return a text of at most L{MOST_SHOWN} characters without secrets: JSON by its members, anything else by C{=}
        and C{:}.

        @param nested: how many texts of JSON it is in.
        """
        if text.lstrip()[:1] in ("{", "["):
            if nested >= _MOST_NESTED:
                return CUT
            try:
                decoded = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
                return self._assigned(text, nested)
            copier = _Copier(self, nested + 1)
            copy = copier.copy(decoded, 0)
            return msgspec.json.encode(copy).decode() if copier.has_masked or copier.has_cut else text
        return self._assigned(text, nested)

    def _assigned(self, text: str, nested: int) -> str:
        """Mask values behind names, in what can't be decoded: all that follows, where the end of a value is unknown."""
        if "=" not in text and ":" not in text:
            return text
        parts: list[str] = []
        done = 0
        for match in _BEFORE_VALUE.finditer(text):
            if match.start() < done:
                continue
            name = match[1]
            if "%" in name or "+" in name:
                name = unquote_plus(name)
            if self.hides(name):
                value = (_LINE if match[2] == ":" else _VALUE).match(text, match.end())
            else:
                value = _PARAMETER.match(text, match.end()) if match[2] == "=" else None
                if value is None or not self._hides_encoded(value[0], nested):
                    continue
            assert value is not None, "a value may be empty"
            parts += text[done : match.end()], MASK
            done = value.end()
            if value[0] in ("{", "["):
                return "".join(parts) + CUT
        return "".join((*parts, text[done:])) if parts else text

    def _hides_encoded(self, value: str, nested: int) -> bool:
        """Tell whether something is masked in the value of a parameter, such as the JSON in C{payload=%7B…}."""
        if "%" not in value:
            return False
        if nested >= _MOST_NESTED:
            return True
        decoded = unquote_plus(value)
        return self.masked_text(decoded, nested + 1) != decoded


class _Copier:
    def __init__(self, masks: Masks, nested: int) -> None:
        self.has_cut = False
        self.has_masked = False
        self._masks = masks
        self._nested = nested
        self._left = MOST_SHOWN

    def copy(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return self._members(value, depth)
        if isinstance(value, (list, tuple)):
            items = []
            for each in value:
                if self._is_over(depth):
                    break
                items.append(self.copy(each, depth + 1))
            return items
        if isinstance(value, msgspec.Raw):
            return self._raw(value, depth)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self._text(bytes(value[: self._left]).decode("utf-8", "replace"))
        self._left -= 8
        return value

    def _members(self, value: Mapping[str, Any], depth: int) -> dict[str, Any]:
        members = {}
        for name, each in value.items():
            if self._is_over(depth):
                break
            self._left -= min(len(name), _LONGEST_NAME) + 4
            shown = name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + CUT
            if self._masks.hides(name) and each not in ("", None):
                self.has_masked = True
                members[shown] = MASK
            else:
                members[shown] = self.copy(each, depth + 1)
        return members

    def _raw(self, raw: msgspec.Raw, depth: int) -> Any:
        """Copy exact JSON: a number as it was written, and so an array in which nothing is masked or cut."""
        encoded = bytes(raw)
        if encoded[:1] not in (b"[", b"{", b'"'):
            self._left -= len(encoded)
            return raw
        if len(encoded) > _LARGEST_ARRAY:
            self._left -= len(CUT)
            self.has_cut = True
            return CUT
        copier = _Copier(self._masks, self._nested)
        copier._left = self._left
        copied = copier.copy(msgspec.json.decode(encoded), depth)
        self.has_cut = self.has_cut or copier.has_cut
        self.has_masked = self.has_masked or copier.has_masked
        self._left = copier._left
        return copied if copier.has_masked or copier.has_cut else raw

    def _is_over(self, depth: int) -> bool:
        over = self._left <= 0 or depth >= _DEEPEST
        self.has_cut = self.has_cut or over
        return over

    def _text(self, text: str) -> str:
        is_whole = len(text) <= self._left
        shown = self._masks.masked_text(text[: max(0, self._left)], self._nested)
        self.has_masked = self.has_masked or (is_whole and shown != text)
        self._left -= len(shown) + 4
        if is_whole:
            return shown
        self.has_cut = True
        return shown + CUT
