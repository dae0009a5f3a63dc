"""
Masking: copies of what a tap shows, without secrets, and no larger than a tap may show.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
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

_MOST_NAMES: Final = 2_000
"""Names that are looked at in one copy, with values that may hold others; what follows is left out. The answer of a
sender waits for it."""

_PER_ENCODED: Final = 4
"""Names that a percent-encoded value counts as."""

#: In text of another kind than JSON, what stands before a value: C{name=}, C{name: } and C{"name": }, maybe escaped.
_BEFORE_VALUE: Final = re.compile(
    r"""(?<![\w.%+\[\]-])([\w.%+\[\]-]++)(\\{0,8}["'])?[ \t]{0,64}([=:])[ \t]{0,64}(?:(?:Bearer|Basic)[ \t]{1,4})?""",
    re.ASCII,
)
_QUOTED: Final = r"""\s{0,64}(?:\"\"\"|\'\'\'|\\{0,8}"(?:[^"\\]|\\.)*"?|'[^']*'?)|\s{0,64}[\[{]"""
#: Where the end of a value can't be told, it is one of these, and all that follows belongs to it.
_OPEN: Final = ("[", "{", '"""', "'''")
#: In what has begun as JSON, a value without quotes may stand in a text, which ends it.
_IN_JSON: Final = re.compile(_QUOTED + r"""|[^\s&,;"']*""", re.ASCII | re.DOTALL)
_VALUE: Final = re.compile(_QUOTED + r"|[^\s&]*", re.ASCII | re.DOTALL)
#: The value of a header is the line, such as all of the pairs in C{Cookie}; that of a name in YAML may be further ones.
_LINE: Final = re.compile(
    r"[|>]?[ \t+-]{0,8}\r?\n[\s\S]*|(?:\\{0,8}\"(?:[^\"\\]|\\.)*\"|'[^']*'|[\[{])?[^\r\n]*", re.ASCII | re.DOTALL
)
# Up to the next "=" too, so that no part of a text is looked at twice.
_PARAMETER: Final = re.compile(r"[^&;=\s]*+")
#: A start tag of XML, with its name and without that of its namespace.
_TAG: Final = re.compile(r"<(?:[\w.-]{1,128}:)?([\w.-]{1,128})(?:\s[^<>]*)?+>", re.ASCII)
_ESCAPED: Final = re.compile(r"\\u([0-9A-Fa-f]{4})", re.ASCII)

#: What is a secret whatever its name is: the first group stays.
_TELLTALES: Final = (
    ("earer", re.compile(r"\b(Bearer[ \t]{1,4})(?=[^\s\d]{0,512}\d)[\w.~+/=-]{8,}", re.ASCII | re.IGNORECASE)),
    ("PRIVATE KEY-----", re.compile(r"(-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----)(?:(?!-----END)[\s\S])+")),
    ("://", re.compile(r"""(://[^\s/?#@:"']{0,64}:)[^\s/?#@"']{1,256}(?=@)""")),
)

_BETWEEN_WORDS: Final = str.maketrans("_. []", "-----")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MORE_SECRETS: Final = re.compile(
    # What is in Base64 can't be looked into.
    r"pass-?(?:phrase|word|code|wd)|base64$|private-?key|(?:^|-)(?:pass|pwd|pin|otp)(?:$|-)|credit-?card|card-?number"
    r"|cvc|cvv"
)
#: Each name that holds a secret has one of these; most names have none, which is found out in no time.
_MAYBE: Final = re.compile(
    r"token|secret|pass|key|cookie|session|jwt|cred|auth|clientid|sig|mac|trello|base64|pwd|pin|otp|card|cvc|cvv"
)

_NAMING: Final = ("name", "key", "header", "Name", "Key")
"""Members that name the value beside them, as in C{{"name": "Authorization", "value": …}}."""

_NAMED: Final = re.compile(r"values?|val|content|data|text", re.IGNORECASE)
_LIST_OF_HEADERS: Final = re.compile(
    r"(?:proxy-)?authorization|(?:set-)?cookie|x-[\w-]{1,64}", re.ASCII | re.IGNORECASE
)


def _hides(name: str) -> bool:
    """Return whether a member of this name holds a secret: by the words for headers, however it is spelled."""
    if _MAYBE.search(name.translate(_NO_BREAKS).lower()) is None:
        return False
    words = _CAMEL.sub("-", name).translate(_BETWEEN_WORDS).lower()
    return is_masked(words[-64:]) or _MORE_SECRETS.search(words) is not None


_NO_BREAKS: Final = str.maketrans("", "", "_. []-")
_HIDES: Final[Remembered[str, bool]] = Remembered(_hides, most=2048, longest=64)


def _repeats_names(text: str | bytes) -> bool:
    """Return whether an object in whole JSON has a name twice: what was decoded of it is not all that it says."""

    def check(pairs: list[tuple[str, Any]]) -> None:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError

    try:
        json.loads(text, object_pairs_hook=check, parse_int=len, parse_float=len)
    except (ValueError, RecursionError):
        return True
    return False


class _NameBudget:
    """
    Counts the names that are looked at.

    @ivar left: how many more may be.
    """

    def __init__(self) -> None:
        self.left = _MOST_NAMES


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
        copier = _Copier(self, 0, _NameBudget())
        return copier.copy(value, 0), copier.has_cut

    def text(self, text: str, nested: int, names: _NameBudget) -> str:
        """
        Return a text of at most L{MOST_SHOWN} characters without secrets: JSON by its members, XML by its elements,
        anything else by C{=} and C{:}.

        @param nested: how many texts it is in.
        """
        if "\0" in text:
            # UTF-16 that was read as UTF-8.
            plain = text.replace("\0", "")
            shown = self.text(plain, nested, names)
            return text if shown == plain else shown
        if text.lstrip()[:1] in ("{", "["):
            if nested >= _MOST_NESTED:
                return CUT
            try:
                decoded = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
                return self._assigned(text, nested, names)
            copier = _Copier(self, nested + 1, names)
            copy = copier.copy(decoded, 0)
            is_same = not (copier.has_masked or copier.has_cut or _repeats_names(text))
            return text if is_same else msgspec.json.encode(copy).decode()
        return self._assigned(text, nested, names)

    def _assigned(self, text: str, nested: int, names: _NameBudget) -> str:
        """Mask values behind names, in what can't be decoded: all that follows, where the end of a value is unknown."""
        for word, secret in _TELLTALES:
            if word in text:
                text = secret.sub(rf"\g<1>{MASK}", text)
        if "</" in text:
            text = self._elements(text, names)
        if "=" not in text and ":" not in text:
            return text
        value_of = _IN_JSON if text.lstrip()[:1] in ("{", "[") else _VALUE
        parts: list[str] = []
        done = 0
        for match in _BEFORE_VALUE.finditer(text):
            if match.start() < done:
                continue
            names.left -= 1
            if names.left < 0:
                return "".join((*parts, text[done : match.start()], CUT))
            name = _whole_name(text, match)
            is_header = match[3] == ":" and match[2] is None
            if self.hides(name):
                value = (_LINE if is_header else value_of).match(text, match.end())
            elif name in _NAMING and match[3] == "=":
                # name="password" in a form of several parts, and in XML: what follows is its value.
                value = value_of.match(text, match.end())
                if value is None or not self.hides(value[0].strip("\\ \"'")):
                    continue
                end = text.find("\n--", value.end())
                parts += text[done : value.end()], MASK
                if end < 0:
                    return "".join(parts) + CUT
                done = end
                continue
            else:
                value = _PARAMETER.match(text, match.end()) if match[3] == "=" else None
                if value is None or not self._hides_encoded(value[0], nested, names):
                    continue
            assert value is not None, "a value may be empty"
            parts += text[done : match.end()], MASK
            done = value.end()
            if value[0].lstrip().startswith(_OPEN):
                return "".join(parts) + CUT
        return "".join((*parts, text[done:])) if parts else text

    def _elements(self, text: str, names: _NameBudget) -> str:
        """Mask what is in elements of XML whose names hide it."""
        parts: list[str] = []
        done = 0
        for match in _TAG.finditer(text):
            if match.start() < done:
                continue
            names.left -= 1
            if names.left < 0:
                return "".join((*parts, text[done : match.start()], CUT))
            if match[0].endswith("/>") or not self.hides(match[1]):
                continue
            end = text.find("</" + match[0][1 : match.end(1) - match.start()], match.end())
            parts += text[done : match.end()], MASK
            if end < 0:
                return "".join(parts) + CUT
            done = end
        return "".join((*parts, text[done:])) if parts else text

    def _hides_encoded(self, value: str, nested: int, names: _NameBudget) -> bool:
        """Tell whether something is masked in the value of a parameter, such as the JSON in C{payload=%7B…}."""
        if "%" not in value:
            return False
        names.left -= _PER_ENCODED
        if nested >= _MOST_NESTED or names.left < 0:
            return True
        decoded = unquote_plus(value)
        return self.text(decoded, nested + 1, names) != decoded


def _whole_name(text: str, match: re.Match[str]) -> str:
    """Return a name as it is meant: in quotes it may have spaces, in forms and JSON what is encoded."""
    name = match[1]
    if match[2] is not None:
        begin = text.rfind(match[2][-1], max(0, match.start() - _LONGEST_NAME), match.start())
        if begin >= 0 and "\n" not in text[begin : match.start()]:
            name = text[begin + 1 : match.end(1)]
            return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), name) if "\\u" in name else name
    return unquote_plus(name) if "%" in name or "+" in name else name


class _Copier:
    def __init__(self, masks: Masks, nested: int, names: _NameBudget) -> None:
        self.has_cut = False
        self.has_masked = False
        self._masks = masks
        self._nested = nested
        self._names = names
        self._left = MOST_SHOWN

    def copy(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return self._members(value, depth)
        if isinstance(value, (list, tuple)):
            return self._items(value, depth)
        if isinstance(value, msgspec.Raw):
            return self._raw(value, depth)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self._text(bytes(value[: self._left]).decode("utf-8", "replace"))
        self._left -= 8
        return value

    def _items(self, value: Sequence[Any], depth: int) -> list[Any]:
        items: list[Any] = []
        before: Any = None
        for each in value:
            if self._is_over(depth):
                break
            # ["Authorization", "Bearer …"], as some write headers.
            if type(before) is str and type(each) is str and len(before) < 80 and self._is_header(before):
                self.has_masked = True
                self._left -= len(MASK) + 4
                items.append(MASK)
                before = None
                continue
            items.append(self.copy(each, depth + 1))
            before = each
        return items

    def _is_header(self, name: str) -> bool:
        return self._masks.hides(name) and _LIST_OF_HEADERS.fullmatch(name) is not None

    def _members(self, value: Mapping[str, Any], depth: int) -> dict[str, Any]:
        members = {}
        names_secret = any(
            type(name := value.get(each)) is str and len(name) < 80 and self._masks.hides(name) for each in _NAMING
        )
        for name, each in value.items():
            self._names.left -= 1
            if self._is_over(depth):
                break
            self._left -= min(len(name), _LONGEST_NAME) + 4
            shown = name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + CUT
            is_secret = self._masks.hides(name) or (names_secret and _NAMED.fullmatch(name) is not None)
            if is_secret and each not in ("", None):
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
        copier = _Copier(self._masks, self._nested, self._names)
        copier._left = self._left
        copied = copier.copy(msgspec.json.decode(encoded), depth)
        self.has_cut = self.has_cut or copier.has_cut
        self.has_masked = self.has_masked or copier.has_masked
        self._left = copier._left
        return copied if copier.has_masked or copier.has_cut or _repeats_names(encoded) else raw

    def _is_over(self, depth: int) -> bool:
        over = self._left <= 0 or depth >= _DEEPEST or self._names.left < 0
        self.has_cut = self.has_cut or over
        return over

    def _text(self, text: str) -> str:
        is_whole = len(text) <= self._left
        shown = self._masks.text(text[: max(0, self._left)], self._nested, self._names)
        self.has_masked = self.has_masked or (is_whole and shown != text)
        self._left -= len(shown) + 4
        if is_whole:
            return shown
        self.has_cut = True
        return shown + CUT
