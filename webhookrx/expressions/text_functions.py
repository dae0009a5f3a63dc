"""
Functions on texts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from webhookrx.expressions.function import Function, text_argument, text_list
from webhookrx.expressions.limits import CLOCK_EVERY, LONG
from webhookrx.expressions.mistakes import Mistake
from webhookrx.expressions.run import Run
from webhookrx.expressions.values import long_text


def _on_text(work: Callable[[str], str]) -> Callable[[Run, Any], str]:
    """Return what applies a function that makes about as much text as it takes."""

    def applied(run: Run, value: Any) -> str:
        return work(text_argument(run, value))

    return applied


def _grown(work: Callable[[str], str]) -> Callable[[Run, Any], str]:
    """Return what applies a function that makes up to a few times of what it takes."""

    def applied(run: Run, value: Any) -> str:
        return long_text(run, work(text_argument(run, value)))

    return applied


def _any_of(matches: Callable[[str, str], bool]) -> Callable[..., bool]:
    def applied(run: Run, value: Any, parts: Any, *, ignorecase: bool = False) -> bool:
        text = text_argument(run, value)
        if ignorecase:
            text = text.casefold()
        for number, part in enumerate(text_list(run, parts)):
            if number % CLOCK_EVERY == 0:
                run.look()
            if matches(text, part.casefold() if ignorecase else part):
                return True
            text_argument(run, text)
        return False

    return applied


def _strcasecmp(run: Run, left: Any, right: Any) -> int:
    first, second = text_argument(run, left).casefold(), text_argument(run, right).casefold()
    return (first > second) - (first < second)


def _str_replace(run: Run, value: Any, old: Any, new: Any, count: Any = -1) -> str:
    text, old, new = text_argument(run, value), text_argument(run, old), text_argument(run, new)
    if not old:
        raise Mistake("The text to replace is empty.")
    if type(count) is not int:
        raise Mistake("The number of replacements is an integer.")
    found = text.count(old)
    if count >= 0:
        found = min(found, count)
    # Checked before it is made: each letter of a long text may stand for a long one.
    if len(text) + found * (len(new) - len(old)) > run.limits.text:
        raise Mistake(f"A text is longer than {run.limits.text} characters.")
    return long_text(run, text.replace(old, new, found))


def _digest(name: str) -> Callable[[str], str]:
    def digest(text: str) -> str:
        return hashlib.new(name, text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()

    return digest


def _base64_encode(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode()


def _base64_decode(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        raise Mistake("The text is not Base64.") from None


def _hex_encode(text: str) -> str:
    return text.encode("utf-8", "replace").hex()


def _hex_decode(text: str) -> str:
    try:
        return bytes.fromhex(text).decode("utf-8", "replace")
    except ValueError:
        raise Mistake("The text is not hexadecimal.") from None


def _pieces(run: Run, text: str) -> Iterator[str]:
    """
    Yield a text piece by piece, none of which ends within a C{%XX}, with a look at the clock before each.

    @raise Mistake: the time is over.
    """
    start = 0
    while start < len(text):
        run.look()
        end = start + LONG
        last = text.rfind("%", end - 2, end)
        if last >= 0:
            end = last
        yield text[start:end]
        start = end


def _urlencode(run: Run, value: Any) -> str:
    encoded: list[str] = []
    size = 0
    for piece in _pieces(run, text_argument(run, value)):
        encoded.append(quote(piece, safe="", errors="replace"))
        size += len(encoded[-1])
        if size > run.limits.text:
            raise Mistake(f"A text is longer than {run.limits.text} characters.")
    return long_text(run, "".join(encoded))


def _urldecode(run: Run, value: Any) -> str:
    pieces = _pieces(run, text_argument(run, value))
    return b"".join(map(unquote_to_bytes, pieces)).decode("utf-8", "replace")


_CASE: Final = {"ignorecase": bool}

TEXT_FUNCTIONS: Final = (
    Function("lower", "text", "The text in lower case.", _grown(str.lower)),
    Function("lowercase", "text", "Another name of `lower`.", _grown(str.lower)),
    Function("upper", "text", "The text in upper case.", _grown(str.upper)),
    Function("uppercase", "text", "Another name of `upper`.", _grown(str.upper)),
    Function(
        "startswith",
        "text, part, ignorecase=false",
        "Whether the text begins with the part, or with one of a list.",
        _any_of(str.startswith),
        2,
        2,
        _CASE,
    ),
    Function(
        "endswith",
        "text, part, ignorecase=false",
        "Whether the text ends with the part, or with one of a list.",
        _any_of(str.endswith),
        2,
        2,
        _CASE,
    ),
    Function(
        "includes",
        "text, part, ignorecase=false",
        "Whether the part, or one of a list, is in the text.",
        _any_of(str.__contains__),
        2,
        2,
        _CASE,
    ),
    Function("strcasecmp", "a, b", "0 when two texts are equal but for case, else -1 or 1.", _strcasecmp, 2, 2),
    Function(
        "str_replace",
        "text, old, new, count",
        "The text with `new` for each `old`, or for the first `count` of them.",
        _str_replace,
        3,
        4,
    ),
    Function("str_strip", "text", "The text without white space at both ends.", _on_text(str.strip)),
    Function("str_lstrip", "text", "The text without white space before it.", _on_text(str.lstrip)),
    Function("str_rstrip", "text", "The text without white space behind it.", _on_text(str.rstrip)),
    Function("md5", "text", "The MD5 digest, hexadecimal.", _on_text(_digest("md5"))),
    Function("sha1", "text", "The SHA-1 digest, hexadecimal.", _on_text(_digest("sha1"))),
    Function("sha256", "text", "The SHA-256 digest, hexadecimal.", _on_text(_digest("sha256"))),
    Function("sha512", "text", "The SHA-512 digest, hexadecimal.", _on_text(_digest("sha512"))),
    Function("base64_encode", "text", "The text in Base64.", _grown(_base64_encode)),
    Function(
        "base64_decode",
        "text",
        "The text that is in Base64; what is not UTF-8 becomes U+FFFD.",
        _on_text(_base64_decode),
    ),
    Function("hex_encode", "text", "The bytes of the text, hexadecimal.", _grown(_hex_encode)),
    Function("hex_decode", "text", "The text of these bytes; what is not UTF-8 becomes U+FFFD.", _on_text(_hex_decode)),
    Function("urlencode", "text", "The text with `%XX` for all but letters, digits and `-._~`.", _urlencode),
    Function("urldecode", "text", "The text with a character for each `%XX`.", _urldecode),
)
