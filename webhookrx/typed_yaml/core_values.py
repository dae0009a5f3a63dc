"""
Texts to values: plain text by the core schema of YAML 1.2 (section 10.3), where any value is taken.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from webhookrx.message.message import Value

_LONGEST_NUMBER: Final = 300
"""Characters; Python itself refuses to read whole numbers of more than 4,300 digits."""

_FLAGS: Final = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
_TRUTH: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}

_WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_INT: Final = re.compile(r"([-+]?)0*([0-9]+)|0o([0-7]+)|0x([0-9a-fA-F]+)")
_FLOAT: Final = re.compile(r"([-+]?)0*([0-9]*)(?:\.([0-9]*))?(?:[eE]([-+]?[0-9]+))?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def whole_number(text: str) -> int | None:
    """Return a whole number in decimal; None when the text is none, or begins with a needless 0."""
    return int(text) if _WHOLE.fullmatch(text) else None


def flag(text: str) -> bool | None:
    """Return what yes, no, on, off, true and false mean, in any case; None for another text."""
    return _FLAGS.get(text.lower())


def core_value(text: str) -> Value:
    """
    Return what plain text stands for. A number with a fraction or an exponent keeps its digits.

    @raise ValueError: JSON has no such value; the text is one sentence.
    """
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if text[0] not in "-+.0123456789" or len(text) > _LONGEST_NUMBER:
        return text
    whole = _INT.fullmatch(text)
    if whole is not None:
        sign, decimal, octal, hexadecimal = whole.groups()
        if decimal is not None:
            return int(sign + decimal)
        return int(octal, 8) if octal is not None else int(hexadecimal, 16)
    if _NO_NUMBER.fullmatch(text):
        raise ValueError("Infinity and not-a-number can't be used; in quotes it is a text.")
    number = _FLOAT.fullmatch(text)
    if number is None or not (number[2] or number[3]):
        # "0.5": the zero before the dot is needless to the expression, and not to JSON.
        return text if number is None or not re.search("[0-9]", text.lower().partition("e")[0]) else _raw(number)
    return _raw(number)


def _raw(number: re.Match[str]) -> msgspec.Raw:
    sign, whole, fraction, exponent = number.groups()
    text = f"{sign.replace('+', '')}{whole or '0'}"
    if fraction:
        text += f".{fraction}"
    return msgspec.Raw((text if exponent is None else f"{text}e{exponent}").encode())
