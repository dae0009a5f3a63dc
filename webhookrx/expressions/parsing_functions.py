"""
Functions that take texts apart: key=value pairs, and columns with a delimiter.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import count
from typing import Any, Final

from webhookrx.expressions.function import Function, text_argument
from webhookrx.expressions.limits import CLOCK_EVERY, LONG
from webhookrx.expressions.mistakes import Mistake
from webhookrx.expressions.run import Run
from webhookrx.expressions.values import stored

_DOUBLE: Final = r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_SINGLE: Final = r"'([^'\\]*+(?:\\.[^'\\]*+)*+)'"
_QUOTED: Final = re.compile(rf"\s*+(?:{_DOUBLE}|{_SINGLE})", re.DOTALL)
_UNESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


@lru_cache(maxsize=64)
def _key(separator: str) -> re.Pattern[str]:
    """Return an expression for a key with its separator; a key does not begin within another."""
    return re.compile(rf"(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]++){re.escape(separator)}")


def _parse_kv(run: Run, value: Any, *, value_separator: str = "=", pair_separator: str = ", ") -> dict[str, Any]:
    text = text_argument(run, value)
    if len(value_separator) != 1 or not pair_separator:
        raise Mistake("value_separator is one character, and pair_separator at least one.")
    key = _key(value_separator)
    pairs: dict[str, str] = {}
    found = key.search(text)
    separator = text.find(pair_separator)
    for number in count():
        if found is None:
            break
        if number % CLOCK_EVERY == 0:
            run.look()
        start = found.end()
        quoted = _QUOTED.match(text, start)
        follower = key.search(text, quoted.end() if quoted else start)
        if -1 < separator < start:
            separator = text.find(pair_separator, start)
        if quoted:
            pairs[found[1]] = _UNESCAPED.sub(r"\1", quoted[1] if quoted[1] is not None else quoted[2])
        else:
            ends = [separator] if separator >= start else []
            pairs[found[1]] = text[start : min([follower.start() if follower else len(text), *ends])].strip()
        if len(pairs) > run.limits.elements:
            raise Mistake(f"An object has more than {run.limits.elements} elements.")
        found = follower
    made: dict[str, Any] = stored(run, pairs, fresh=False)
    return made


_DIALECTS: Final = {
    "escape-none": (r'"([^"]*+)"', r"'([^']*+)'"),
    "escape-backslash": (_DOUBLE, _SINGLE),
    "escape-double-char": (r'"([^"]*+(?:""[^"]*+)*+)"', r"'([^']*+(?:''[^']*+)*+)'"),
}
"""How a quote stands within quotes: not at all, behind a backslash, or twice."""


@lru_cache(maxsize=64)
def _column(delimiter: str, dialect: str) -> re.Pattern[str]:
    """Return an expression for a column and what is behind it up to the delimiter."""
    double, single = _DIALECTS[dialect]
    until = rf"[^{re.escape(delimiter)}]*+" if delimiter else ".*+"
    return re.compile(rf"[ ]*+(?:{double}|{single})(?={until})({until})|({until})", re.DOTALL)


def _parse_csv(
    run: Run,
    value: Any,
    *,
    columns: tuple[str, ...] = (),
    delimiter: str = ",",
    dialect: str = "escape-none",
    strip_whitespace: bool = False,
    greedy: bool = False,
) -> Any:
    text = text_argument(run, value)
    if dialect not in _DIALECTS:
        raise Mistake(f"dialect is one of {', '.join(_DIALECTS)}.")
    column, offset = _column(delimiter, dialect), 0
    read: list[str] = []
    # A quote that is not closed may take each column to the end of the text.
    every = 1 if len(text) > LONG else CLOCK_EVERY
    while True:
        if len(read) % every == 0:
            run.look()
        if greedy and columns and len(read) == len(columns) - 1:
            read.append(text[offset:])
            offset = len(text)
        else:
            found = column.match(text, offset)
            read.append(_column_text(found, dialect) if found else "")
            offset = found.end() if found else len(text)
        if offset >= len(text) or (columns and len(read) == len(columns)):
            break
        if len(read) >= run.limits.elements:
            raise Mistake(f"A list has more than {run.limits.elements} elements.")
        offset += 1
    if strip_whitespace:
        read = [each.strip() for each in read]
    return stored(run, dict(zip(columns, read, strict=False)) if columns else read, fresh=False)


def _column_text(found: re.Match[str], dialect: str) -> str:
    if found[4] is not None:
        return found[4]
    inner, quote = (found[1], '"') if found[1] is not None else (found[2], "'")
    if dialect == "escape-double-char":
        inner = inner.replace(quote * 2, quote)
    elif dialect == "escape-backslash":
        inner = _UNESCAPED.sub(r"\1", inner)
    return str(inner + found[3])


PARSING_FUNCTIONS: Final = (
    Function(
        "parse_kv",
        'text, value_separator="=", pair_separator=", "',
        "The `key=value` pairs in a text, as an object. Values may be quoted.",
        _parse_kv,
        options={"value_separator": str, "pair_separator": str},
    ),
    Function(
        "parse_csv",
        'text, columns=[…], delimiter=",", dialect="escape-none", strip_whitespace=false, greedy=false',
        "The columns of a text: a list, or an object when they have names. Each character of the delimiter is one.",
        _parse_csv,
        options={
            "columns": tuple,
            "delimiter": str,
            "dialect": str,
            "strip_whitespace": bool,
            "greedy": bool,
        },
    ),
)
