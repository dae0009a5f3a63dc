"""
Decodes bodies that should be JSON, within limits on values, digits, bytes and nesting.

JSON is read by RFC 8259 first, and nothing is lost: numbers keep their exact value and spelling, however long. What
that refuses is read once as JSON5, since the collector's own quick start posts C{{'MESSAGE':'message-value'}}.

For any bytes, nothing here raises anything but L{PayloadError}, and its sentence quotes none of them. Reading takes a
few nanoseconds a byte: work that would take more has a limit of its own.
"""

from __future__ import annotations

import codecs
import json
import re
import secrets
from collections.abc import Callable
from typing import Any, Final, NoReturn

import msgspec
import re2  # type: ignore[import-untyped]

from webhookrx.errors import WebhookrxError
from webhookrx.message.fields import MISSING
from webhookrx.message.message import Value
from webhookrx.regex import occurs_in
from webhookrx.yield_point import PIECE, count_up_to, yield_point

MAX_DEPTH: Final = 128
"""
How deep arrays and objects may nest, the outermost counted. RFC 8259 section 9 allows such a limit; this one keeps
every later step, encoding included, far from the interpreter's own.
"""

MAX_ELEMENTS: Final = 100_000
"""
Values in a body, those within others counted. Decoding is one call that can't be interrupted; each value costs it up to
0.2 microseconds, while a sender pays three bytes for it, or next to none where it compresses.
"""

MAX_JSON: Final = 10 * 1024 * 1024
"""
Bytes of a body that is read as JSON. Strings full of escapes cost 1.5 nanoseconds a byte in that same call, and two in
the one that encodes them again.
"""

MAX_UNUSUAL: Final = 16 * 1024
"""
Bytes of a body that is looked at as JSON5, or whose integers are longer than L{MAX_DIGITS}. Both cost up to 0.7
microseconds a byte, some hundred times what JSON costs; the former is for what people type.
"""

MAX_REPAIRED: Final = 512 * 1024
"""Bytes of a body in which escapes of half a character are looked for, at up to 25 nanoseconds a byte."""

MAX_DIGITS: Final = 64
"""Digits of an integer in a body of any size. To read and write integers takes time by the square of their length."""

MAX_READABLE_DIGITS: Final = 4300
"""Digits beyond which an integer becomes text: Python's own limit, so that its users can read every line."""

_BOM: Final = b"\xef\xbb\xbf"

_NOT_UTF_8: Final = "The body is not UTF-8."
_TOO_DEEP: Final = f"The body is JSON that nests deeper than {MAX_DEPTH} levels."


class PayloadError(WebhookrxError):
    """A body yields no name-value pairs. The text is one sentence for people that quotes none of the body."""


def body_text(body: bytes) -> tuple[str, bool]:
    """
    Return a body as text, and whether it is UTF-8. U+FFFD stands for bytes that are not, as Unicode recommends (The
    Unicode Standard, section 3.9, table 3-8).
    """
    if len(body) > PIECE:
        return _long_text(body)
    try:
        return body.decode(), True
    except UnicodeDecodeError:
        return body.decode("utf-8", "replace"), False


def _long_text(body: bytes) -> tuple[str, bool]:
    try:
        return "".join(_decoded_pieces(body, "strict")), True
    except UnicodeDecodeError:
        return "".join(_decoded_pieces(body, "replace")), False


def _decoded_pieces(body: bytes, errors: str) -> list[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    pieces = []
    for start in range(0, len(body), PIECE):
        pieces.append(decoder.decode(body[start : start + PIECE]))
        yield_point()
    pieces.append(decoder.decode(b"", True))
    return pieces


def has_too_many_values(body: bytes) -> bool:
    """
    Tell whether JSON holds more than L{MAX_ELEMENTS} values, without making any. What is not JSON may get either
    answer, but not False if more than so many values come before the first mistake.
    """
    if len(body) <= MAX_ELEMENTS or count_separators(body, MAX_ELEMENTS) <= MAX_ELEMENTS:
        return False
    # Many of them may stand within strings.
    found, inside, start = 0, 0, 0
    while start < len(body) and found <= MAX_ELEMENTS:
        piece = body[start : start + PIECE]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:  # it ends within an escape
            piece = body[start : start + PIECE + 1]
        start += len(piece)
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        found += count_separators(b"".join(parts[inside::2]), MAX_ELEMENTS)
        inside ^= (len(parts) - 1) & 1
        yield_point()
    return found > MAX_ELEMENTS


_BRACKETS: Final = (b"[", b"{")
_SEPARATORS: Final = (b",", *_BRACKETS)


def count_separators(body: bytes, most: int) -> int:
    """Count commas and opening brackets, within strings or not; any number beyond C{most} if there are more."""
    return count_up_to(most, body, *_SEPARATORS)


def count_brackets(body: bytes, most: int) -> int:
    """Do the same for opening brackets alone."""
    return count_up_to(most, body, *_BRACKETS)


#: The text of a number as its value.
_exact: Final[Callable[[str], msgspec.Raw]] = msgspec.Raw

decode_exactly: Final = msgspec.json.Decoder(float_hook=_exact).decode
"""Read what both msgspec and RFC 8259 take for JSON; numbers with a fraction or an exponent keep their text."""


def parse_strict_json(body: bytes) -> Value:
    """
    Read JSON by RFC 8259. A byte order mark before it is skipped (section 8.1). Numbers with a fraction or an exponent,
    and integers too long for Python, keep their text; of equal names in one object the last wins (section 4); a lone
    surrogate (section 8.2) becomes U+FFFD.

    @raise PayloadError: it is not JSON, not UTF-8, too large, or nests too deep.
    """
    if len(body) > MAX_JSON:
        raise PayloadError(f"The body is longer than {MAX_JSON} bytes, too long to be read as JSON.")
    if len(body) > MAX_ELEMENTS and has_too_many_values(body):
        raise PayloadError(f"The body holds more than {MAX_ELEMENTS} values.")
    if len(body) > _FEW_INTEGERS and _has_long_integer(body):
        return _parse_unusual_json(body)
    if len(body) > PIECE:
        yield_point()
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
        if isinstance(error, msgspec.ValidationError):
            return _parse_unusual_json(body)
        repaired = _without_lone_surrogates(body)
        if repaired is not None:
            return parse_strict_json(repaired)
        if not body.strip():
            raise PayloadError("The body is empty.") from None
        raise PayloadError(f"The body is not JSON: {str(error).removeprefix('JSON is malformed: ')}.") from None
    # Fewer brackets than levels can't nest too deep, and bytes are counted faster than values are walked.
    if len(body) > MAX_DEPTH and count_brackets(body, MAX_DEPTH) > MAX_DEPTH:
        yield_point()
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
    Read JSON as L{parse_strict_json} does, and what that refuses as JSON5, unless it is longer than L{MAX_UNUSUAL}:
    single quotes, names without quotes, comments, a comma at the end. C{NaN} and the infinities become text, since JSON
    has no such numbers.

    @raise PayloadError: it is neither; the sentence is about JSON.
    """
    try:
        return parse_strict_json(body)
    except PayloadError as refusal:
        if len(body) > MAX_UNUSUAL:
            raise
        try:
            return _parse_json5(body)
        except Exception:
            # Besides its own errors pyjson5 raises whatever an escape beyond Unicode makes Python raise.
            raise refusal from None


_CONTAINERS: Final = frozenset({dict, list})


def _check_depth(value: Any) -> None:
    """@raise PayloadError: arrays and objects nest deeper than L{MAX_DEPTH}."""
    if is_deeper(value, MAX_DEPTH):
        raise PayloadError(_TOO_DEEP)


def is_deeper(value: Any, levels: int) -> bool:
    """Tell whether arrays and objects nest deeper than so many levels, the outermost counted."""
    level = [value] if type(value) in _CONTAINERS else []
    for _ in range(levels):
        level = [
            inner
            for outer in level
            if outer
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in _CONTAINERS
        ]
        if not level:
            return False
    return True


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


def _integer(digits: str) -> Value:
    """Return an integer that the decoder does not take: its exact text, which is a string of JSON if it is too long."""
    if len(digits) <= MAX_DIGITS:
        return int(digits)
    return _exact(digits) if len(digits.lstrip("-")) <= MAX_READABLE_DIGITS else digits


def _no_constant(name: str) -> NoReturn:
    raise PayloadError("The body is not JSON: NaN and Infinity are not numbers there.")


_unusual_decode: Final = json.JSONDecoder(parse_int=_integer, parse_float=_exact, parse_constant=_no_constant).decode

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _without_surrogates(leaf: Any) -> Value:
    return _SURROGATE.sub("\ufffd", leaf) if isinstance(leaf, str) else leaf


#: Either half of a pair without the other one.
_LONE_SURROGATE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def _without_lone_surrogates(body: bytes) -> bytes | None:
    """Return JSON with U+FFFD in place of escapes that are half a character; None without such escapes."""
    if b"\\u" not in body or b"\0" in body or len(body) > MAX_REPAIRED:
        return None
    yield_point()
    # Without escaped backslashes, every backslash begins an escape. NUL is not in JSON.
    repaired, number = _LONE_SURROGATE.subn(rb"\\ufffd", body.replace(b"\\\\", b"\0"))
    yield_point()
    return repaired.replace(b"\0", b"\\\\") if number else None


#: A byte count up to which integers, however long, cost little.
_FEW_INTEGERS: Final = 4 * 1024
#: What is an integer of more than L{MAX_DIGITS} digits if it is not within a string. RE2 looks at each byte once.
_LONG_INTEGER: Final = re2.compile(rb"[\[,:\s]-?[0-9]{%d}" % (MAX_DIGITS + 1))


#: Every digit as the same one.
_DIGITS: Final = bytes(ord("0") if chr(byte) in "0123456789" else 0 for byte in range(256))
_STRIDE: Final = 8


def _has_long_integer(body: bytes) -> bool:
    """Tell whether an integer of more than L{MAX_DIGITS} digits is there, or a string looks like one."""
    # So many digits in a row have eight at multiples of eight, which are found at a tenth of the cost if there are any.
    if b"0" * (MAX_DIGITS // _STRIDE) not in body[::_STRIDE].translate(_DIGITS):
        return False
    return occurs_in(_LONG_INTEGER, body, MAX_DIGITS + 3)


def _parse_unusual_json(body: bytes) -> Value:
    """Read JSON with the standard library, which can leave long integers alone."""
    if len(body) > MAX_UNUSUAL:
        raise PayloadError(f"The body holds an integer of more than {MAX_DIGITS} digits.")
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
        raise PayloadError("The body is not JSON: a number is malformed.")
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
        number, or a malformed number.
    """
    import pyjson5  # for the few that need it; a third of a megabyte

    # pyjson5 would round numbers to doubles and take 1_000 for one; as strings they come through it whole.
    text = _JSON5_NUMBER.sub(_quote_number, body.decode())
    return _rebuild(pyjson5.decode(text, MAX_DEPTH), _json5_leaf)
