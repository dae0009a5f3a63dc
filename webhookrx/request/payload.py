"""
A body that should be JSON.

JSON is read by RFC 8259 first, and nothing is lost: numbers keep their exact value and spelling, however long. What
that refuses gets one look as JSON5, since the collector's own quick start posts C{{'MESSAGE':'message-value'}}.

For bytes of whatever kind, nothing here raises anything but L{PayloadError}, and its sentence quotes none of them.
"""

from __future__ import annotations

import json
import re
import secrets
import sys
from collections.abc import Callable
from typing import Any, Final, NoReturn

import msgspec

from webhookrx.errors import WebhookrxError
from webhookrx.message.fields import MISSING
from webhookrx.message.message import Value

MAX_DEPTH: Final = 128
"""
How deep arrays and objects may nest, the outermost counted. RFC 8259 section 9 allows such a limit; this one keeps
every later step, encoding included, far from the interpreter's own.
"""

MAX_ELEMENTS: Final = 250_000
"""
Values in a body, those within others counted. Each costs a few microseconds and some hundred bytes, while a sender pays
three bytes for it, or next to none where it compresses: ten megabytes of brackets would hold everybody up for seconds.
"""

MAX_JSON5: Final = 256 * 1024
"""
Bytes of a body that is looked at as JSON5. That look is for what people type; it may cost a microsecond a byte, ten
times what JSON costs.
"""

_BOM: Final = b"\xef\xbb\xbf"

_NOT_UTF_8: Final = "The body is not UTF-8."
_TOO_DEEP: Final = f"The body is JSON that nests deeper than {MAX_DEPTH} levels."

#: Integers of so many digits become numbers whatever PYTHONINTMAXSTRDIGITS says; longer ones may have to stay text.
_SAFE_DIGITS: Final = sys.int_info.str_digits_check_threshold


class PayloadError(WebhookrxError):
    """A body yields no name-value pairs. The text is one sentence for people that quotes none of the body."""


def body_text(body: bytes) -> tuple[str, bool]:
    """
    Return a body as text, and whether it is UTF-8. Bytes that are not come out as C{\\xff} escapes, which may also be
    what was sent: only the second value tells.
    """
    try:
        return body.decode(), True
    except UnicodeDecodeError:
        # C{backslashreplace} does the same, but takes twice as long where nearly nothing is UTF-8.
        return body.decode("utf-8", "surrogateescape").translate(_ESCAPED_BYTES), False


#: What stands for a byte that is not UTF-8, by the surrogate that Python decodes it to.
_ESCAPED_BYTES: Final = {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}

#: A string of JSON, to be stepped over, or what begins values. A string that is not closed runs to the end, so that the
#: time stays in proportion to the length.
_STRING_OR_SEPARATORS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|([,\[{]+)', re.DOTALL)


def has_too_many_values(body: bytes) -> bool:
    """Tell whether there are surely more than L{MAX_ELEMENTS} values, without making any."""
    if len(body) <= MAX_ELEMENTS or body.count(b",") + count_brackets(body) <= MAX_ELEMENTS:
        return False
    found = 0
    for match in _STRING_OR_SEPARATORS.finditer(body):
        separators = match[1]
        if separators is not None:
            found += len(separators)
            if found > MAX_ELEMENTS:
                return True
    return False


def count_brackets(body: bytes) -> int:
    """Count opening brackets. C{replace} leaps from one to the next, C{count} looks at each byte and takes longer."""
    return 2 * len(body) - len(body.replace(b"[", b"")) - len(body.replace(b"{", b""))


#: The text of a number as its value.
_exact: Final[Callable[[str], msgspec.Raw]] = msgspec.Raw

decode_exactly: Final = msgspec.json.Decoder(float_hook=_exact).decode
"""Read what both msgspec and RFC 8259 take for JSON; numbers with a fraction or an exponent keep their text."""


def parse_strict_json(body: bytes) -> Value:
    """
    Read JSON by RFC 8259. A byte order mark before it is skipped (section 8.1). Numbers with a fraction or an exponent,
    and integers too long for Python, keep their text; of equal names in one object the last wins (section 4); a lone
    surrogate (section 8.2) becomes U+FFFD.

    @raise PayloadError: it is not JSON, not UTF-8, or nests too deep.
    """
    if len(body) > MAX_ELEMENTS and has_too_many_values(body):
        raise PayloadError(f"The body holds more than {MAX_ELEMENTS} values.")
    try:
        value: Value = decode_exactly(body)
    except RecursionError:
        raise PayloadError(_TOO_DEEP) from None
    except UnicodeDecodeError:
        raise PayloadError(_NOT_UTF_8) from None
    except msgspec.DecodeError as error:
        if body.startswith(_BOM) and not body.startswith(_BOM * 2):
            return parse_strict_json(body[len(_BOM) :])
        # The two things that the decoder refuses and RFC 8259 allows: integers too long for Python, lone surrogates.
        if isinstance(error, msgspec.ValidationError) or b"\\u" in body:
            return _parse_unusual_json(body)
        if not body.strip():
            raise PayloadError("The body is empty.") from None
        raise PayloadError(f"The body is not JSON: {str(error).removeprefix('JSON is malformed: ')}.") from None
    # Fewer brackets than levels can't nest too deep, and bytes are counted faster than values are walked.
    if len(body) > MAX_DEPTH and count_brackets(body) > MAX_DEPTH:
        _check_depth(value)
    return value


def json_or_missing(body: bytes) -> Any:
    """Return what L{parse_strict_json} does; L{MISSING} for a body that it refuses."""
    try:
        return parse_strict_json(body)
    except PayloadError:
        return MISSING


def parse_json(body: bytes) -> Value:
    """
    Read JSON as L{parse_strict_json} does, and what that refuses as JSON5, unless it is longer than L{MAX_JSON5}:
    single quotes, names without quotes, comments, a comma at the end. C{NaN} and the infinities become text, since JSON
    has no such numbers.

    @raise PayloadError: it is neither; the sentence is about JSON.
    """
    try:
        return parse_strict_json(body)
    except PayloadError as refusal:
        if len(body) > MAX_JSON5 or has_too_many_values(body):
            raise
        try:
            return _parse_json5(body)
        except Exception:
            # Besides its own errors pyjson5 raises whatever an escape beyond Unicode makes Python raise.
            raise refusal from None


_CONTAINERS: Final = frozenset({dict, list})


def _check_depth(value: Any) -> None:
    """@raise PayloadError: arrays and objects nest deeper than L{MAX_DEPTH}."""
    level = [value] if type(value) in _CONTAINERS else []
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            if outer
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in _CONTAINERS
        ]
        if not level:
            return
    raise PayloadError(_TOO_DEEP)


def _rebuild(value: Any, leaf: Callable[[Any], Value]) -> Value:
    """Return a value, no deeper than L{MAX_DEPTH}, with C{leaf} applied to all in it but arrays and objects."""
    if type(value) is list:
        return [_rebuild(element, leaf) for element in value]
    if type(value) is not dict:
        return leaf(value)
    members: dict[str, Value] = {}
    for key, member in value.items():
        name = leaf(key)
        if not isinstance(name, str):
            raise PayloadError("The body is not JSON: a name is a number.")
        members[name] = _rebuild(member, leaf)
    return members


def _integer(digits: str) -> int | msgspec.Raw:
    return int(digits) if len(digits) <= _SAFE_DIGITS else _exact(digits)


def _no_constant(name: str) -> NoReturn:
    raise PayloadError("The body is not JSON: NaN and Infinity are not numbers there.")


_unusual_decode: Final = json.JSONDecoder(parse_int=_integer, parse_float=_exact, parse_constant=_no_constant).decode

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _without_surrogates(leaf: Any) -> Value:
    return _SURROGATE.sub("\ufffd", leaf) if isinstance(leaf, str) else leaf


def _parse_unusual_json(body: bytes) -> Value:
    """Read JSON with the standard library, which takes lone surrogates and can leave long integers alone."""
    try:
        value = _unusual_decode(body.decode())
    except RecursionError:
        raise PayloadError(_TOO_DEEP) from None
    except UnicodeDecodeError:
        raise PayloadError(_NOT_UTF_8) from None
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:]
        raise PayloadError(f"The body is not JSON: {problem} (character {error.pos}).") from None
    _check_depth(value)
    return _rebuild(value, _without_surrogates)


#: JSON5 (https://spec.json5.org) as far as it takes to find its numbers: strings, comments and words are stepped over.
#: What is not closed runs to the end of the text, so that the time stays in proportion to its length.
_JSON5_NUMBER: Final = re.compile(
    r"""
    "[^"\\]*(?:\\.[^"\\]*)*"? | '[^'\\]*(?:\\.[^'\\]*)*'?
    | //[^\n\r\u2028\u2029]* | /\*.*?(?:\*/|\Z)
    | (?![0-9])(?:[\w$\\]|[^\x00-\x7f\s\ufeff])+
    | (?P<number> [+-]?(?: 0[xX][0-9a-fA-F]{1,64} | (?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)? ))
    """,
    re.DOTALL | re.VERBOSE,
)

#: Marks a string that stands for a number. Nobody can guess it, and what follows it is checked all the same.
_NUMBER_MARK: Final = secrets.token_hex(16)
_JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _quote_number(match: re.Match[str]) -> str:
    number = match["number"]
    return match[0] if number is None else f'"{_NUMBER_MARK}{number}"'


def _json5_number(text: str) -> Value:
    """Return the value of a JSON5 number; a decimal one keeps its spelling as far as JSON has it."""
    sign = "-" if text.startswith("-") else ""
    digits = text.lstrip("+-")
    if digits[1:2] in ("x", "X"):
        return int(sign + digits, 16)
    if digits.startswith("."):
        digits = "0" + digits
    whole, point, rest = digits.partition(".")
    if point and not rest[:1].isdigit():
        digits = f"{whole}.0{rest}"
    number = sign + digits
    if not _JSON_NUMBER.fullmatch(number):
        raise PayloadError("The body is not JSON: what looks like a number is none.")
    return _integer(number) if digits.isdigit() else _exact(number)


def _json5_leaf(leaf: str | float | bool | None) -> Value:
    if isinstance(leaf, str):
        if leaf.startswith(_NUMBER_MARK):
            return _json5_number(leaf[len(_NUMBER_MARK) :])
        # pyjson5 takes escapes of eight digits, which JSON5 has not; they may be surrogates.
        return _without_surrogates(leaf)
    # Numbers went in as strings. What comes out as a float nevertheless was written as a word.
    if isinstance(leaf, float):
        return "NaN" if leaf != leaf else "Infinity" if leaf > 0 else "-Infinity"
    return leaf


def _parse_json5(body: bytes) -> Value:
    """
    @raise Exception: the body is not UTF-8, is not JSON5, or nests deeper than L{MAX_DEPTH}; the name of a member is a
        number, or what looks like a number is none.
    """
    import pyjson5  # for the few that need it; a third of a megabyte

    # pyjson5 would round numbers to doubles and take 1_000 for one; as strings they come through it whole.
    text = _JSON5_NUMBER.sub(_quote_number, body.decode())
    return _rebuild(pyjson5.decode(text, MAX_DEPTH), _json5_leaf)
