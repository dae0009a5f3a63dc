"""
Functions on texts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from webhookrx.router.expressions.function import Function, one_of, text_argument, text_list
from webhookrx.router.expressions.run import SHORT, OperationError, Run
from webhookrx.router.expressions.values import decoded, long_text


def _on_text(work: Callable[[str], str], units: int = 1) -> Callable[[Run, Any], str]:
    """
    Return the implementation of a function on one text.

    @param units: of each character.
    """

    def applied(run: Run, value: Any) -> str:
        text = text_argument(run, value)
        if len(text) > SHORT:
            run.spend(len(text) * units)
        return long_text(run, work(text))

    return applied


_CASE_UNITS: Final = 12
"""Units of a change of case, by tables for a character that is not ASCII."""


def _any_of(matches: Callable[[str, str], bool], *, within: bool = False) -> Callable[..., bool]:
    def applied(run: Run, value: Any, parts: Any, *, ignorecase: bool = False) -> bool:
        text = _folded(run, value) if ignorecase else text_argument(run, value)
        for part in text_list(run, parts):
            wanted = _folded(run, part) if ignorecase else text_argument(run, part)
            run.spend(_PART + (_looked_for(text, wanted) if within else min(len(text), len(wanted))))
            if matches(text, wanted):
                return True
        return False

    return applied


_PART: Final = 150
"""Units of one part that is looked for, however short."""


def _looked_for(text: str, part: str) -> int:
    """Return the units that it takes at worst to look for one text in another: CPython's search is linear."""
    return 0 if len(part) > len(text) else 3 * len(text) + len(part)


def _folded(run: Run, value: Any) -> str:
    text = text_argument(run, value)
    run.spend(len(text) * _CASE_UNITS)
    return text.casefold()


def _includes(run: Run, value: Any, parts: Any, *, ignorecase: bool = False, limit: Any = 0) -> bool:
    if type(limit) is not int:
        raise OperationError("The limit is an integer: how many characters are looked at.")
    if limit > 0:
        value = text_argument(run, value)[:limit]
    found: bool = _is_within(run, value, parts, ignorecase=ignorecase)
    return found


_is_within: Final = _any_of(str.__contains__, within=True)


def _strcasecmp(run: Run, left: Any, right: Any) -> int:
    first, second = _folded(run, left), _folded(run, right)
    return (first > second) - (first < second)


def _str_replace(run: Run, value: Any, old: Any, new: Any, count: Any = 0) -> str:
    text, old, new = text_argument(run, value), text_argument(run, old), text_argument(run, new)
    if type(count) is not int:
        raise OperationError("The number of replacements is an integer.")
    run.spend(2 * _looked_for(text, old))
    found = text.count(old)
    if count > 0:
        found = min(found, count)
    # Checked before it is made: each letter of a long text may stand for a long one.
    size = len(text) + found * (len(new) - len(old))
    if size > run.limits.text:
        raise run.too_long()
    run.spend(size + found * _REPLACED)
    return long_text(run, text.replace(old, new, found))


_REPLACED: Final = 30
"""Units of one replacement."""


def _raw(run: Run, value: Any) -> bytes:
    if type(value) is bytes:
        if len(value) > SHORT:
            run.spend(len(value))
        return value
    text = text_argument(run, value)
    run.spend(len(text))
    return text.encode("utf-8", "replace")


def _digest(name: str) -> Callable[[Run, Any], str]:
    def digest(run: Run, value: Any) -> str:
        raw = _raw(run, value)
        run.spend(_HASH + len(raw) * _HASHED)
        return hashlib.new(name, raw, usedforsecurity=False).hexdigest()

    return digest


_HASH: Final = 600
_HASHED: Final = 4
"""Units of a digest, and of each byte of it."""

_DIGESTS: Final = {
    "md5": "md5",
    "sha1": "sha1",
    "sha224": "sha224",
    "sha256": "sha256",
    "sha384": "sha384",
    "sha512": "sha512",
    "sha3-224": "sha3_224",
    "sha3-256": "sha3_256",
    "sha3-384": "sha3_384",
    "sha3-512": "sha3_512",
    "blake2b512": "blake2b",
    "blake2s256": "blake2s",
}
"""Digests as OpenSSL names them, and as Python does."""


def _bytes_digest(run: Run, value: Any, *, alg: str = "sha256") -> bytes:
    raw = _raw(run, value)
    run.spend(_HASH + len(raw) * _HASHED)
    return hashlib.new(_DIGESTS[alg.lower()], raw, usedforsecurity=False).digest()


def _base64_encode(run: Run, value: Any) -> str:
    raw = _raw(run, value)
    run.spend(len(raw) * 2)
    return long_text(run, base64.b64encode(raw).decode())


_NO_BASE64: Final = re.compile("[^A-Za-z0-9+/=]++")


def _base64_decode(run: Run, value: Any) -> bytes:
    """Decode as FilterX does: skip characters that are not Base64, and the last group unless it has four."""
    text = text_argument(run, value)
    run.spend(len(text) * 16)
    text = _NO_BASE64.sub("", text)
    body = text.rstrip("=")
    if "=" in body:
        body = body[: body.index("=")]
        text = body + "=" * (-len(body) % 4)
    whole = text[: len(text) // 4 * 4]
    try:
        return base64.b64decode(whole, validate=True)
    except (binascii.Error, ValueError):
        return base64.b64decode(body[: len(body) // 4 * 4])


def _hex_encode(run: Run, value: Any) -> str:
    raw = _raw(run, value)
    run.spend(len(raw) * 2)
    return long_text(run, raw.hex())


def _hex_decode(run: Run, value: Any) -> bytes:
    text = text_argument(run, value)
    run.spend(len(text) * 2)
    try:
        return binascii.unhexlify(text)
    except (binascii.Error, ValueError):
        raise OperationError("The text is not hexadecimal.") from None


def _urlencode(run: Run, value: Any) -> str:
    text = text_argument(run, value)
    if len(text) > run.limits.text:
        raise run.too_long()
    run.spend(len(text) * _URL)
    return long_text(run, quote(text, safe="", errors="replace"))


_URL: Final = 60
"""Units of a character that is encoded or decoded for an URL."""

_BAD_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})|%00")


def _urldecode(run: Run, value: Any) -> str:
    text = text_argument(run, value)
    run.spend(len(text) * _URL)
    if _BAD_ESCAPE.search(text):
        raise OperationError("A % stands before no byte in hexadecimal, or before 00.")
    return long_text(run, unquote_to_bytes(text).decode("utf-8", "replace"))


def _utf8_validate(run: Run, value: Any) -> bool:
    if type(value) is not bytes:
        text_argument(run, value)
        return True
    run.spend(len(value))
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _utf8_sanitize(run: Run, value: Any) -> str:
    return decoded(run, value) if type(value) is bytes else text_argument(run, value)


TEXT_FUNCTIONS: Final = (
    Function("lower", "text", "The text in lower case.", _on_text(str.lower, _CASE_UNITS)),
    Function("lowercase", "text", "Another name of `lower`.", _on_text(str.lower, _CASE_UNITS)),
    Function("upper", "text", "The text in upper case.", _on_text(str.upper, _CASE_UNITS)),
    Function("uppercase", "text", "Another name of `upper`.", _on_text(str.upper, _CASE_UNITS)),
    Function(
        "startswith",
        "text, part, ignorecase=false",
        "Whether the text begins with the part, or with one of a list.",
        _any_of(str.startswith),
        2,
        2,
    ),
    Function(
        "endswith",
        "text, part, ignorecase=false",
        "Whether the text ends with the part, or with one of a list.",
        _any_of(str.endswith),
        2,
        2,
    ),
    Function(
        "includes",
        "text, part, ignorecase=false, limit=0",
        "Whether the part, or one of a list, is in the text, or in as many of its first characters as the limit.",
        _includes,
        2,
        2,
    ),
    Function("strcasecmp", "a, b", "0 when two texts are equal but for case, else -1 or 1.", _strcasecmp, 2, 2),
    Function(
        "str_replace",
        "text, old, new, count",
        "The text with `new` for each `old`, or for the first `count` of them, if that is above 0.",
        _str_replace,
        3,
        4,
    ),
    Function("str_strip", "text", "The text without white space at both ends.", _on_text(str.strip)),
    Function("str_lstrip", "text", "The text without white space at its beginning.", _on_text(str.lstrip)),
    Function("str_rstrip", "text", "The text without white space at its end.", _on_text(str.rstrip)),
    Function("md5", "text", "The MD5 digest, hexadecimal.", _digest("md5")),
    Function("sha1", "text", "The SHA-1 digest, hexadecimal.", _digest("sha1")),
    Function("sha256", "text", "The SHA-256 digest, hexadecimal.", _digest("sha256")),
    Function("sha512", "text", "The SHA-512 digest, hexadecimal.", _digest("sha512")),
    Function(
        "digest",
        'text, alg="sha256"',
        "The digest, as bytes: `hex_encode(digest(…))`.",
        _bytes_digest,
        checks={"alg": one_of(*_DIGESTS, *map(str.upper, _DIGESTS))},
    ),
    Function("base64_encode", "text", "A text or bytes in Base64.", _base64_encode),
    Function(
        "base64_decode",
        "text",
        "The bytes of a Base64 text; `string()` makes a text of them. Other characters are skipped.",
        _base64_decode,
    ),
    Function("hex_encode", "text", "The bytes of a text, or bytes, hexadecimal.", _hex_encode),
    Function("hex_decode", "text", "The bytes of a hexadecimal text; `string()` makes a text of them.", _hex_decode),
    Function("urlencode", "text", "The text with `%XX` for all but letters, digits and `-._~`.", _urlencode),
    Function("urldecode", "text", "The text with a character for each `%XX`.", _urldecode),
    Function("utf8_validate", "text", "Whether bytes are UTF-8; a text always is.", _utf8_validate),
    Function("utf8_sanitize", "text", "The text of bytes; invalid UTF-8 becomes U+FFFD.", _utf8_sanitize),
)
