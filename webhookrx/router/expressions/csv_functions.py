"""
Functions on columns with a delimiter between them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

from webhookrx.message.fields import MISSING
from webhookrx.router.expressions.function import ONE, Function, one_of, text_argument
from webhookrx.router.expressions.kv_functions import CHARACTER, escaped
from webhookrx.router.expressions.run import CALL, ELEMENT, OperationError, Run
from webhookrx.router.expressions.values import LISTS, OBJECTS, as_text, long_text, stored


def _format_csv(run: Run, value: Any, *, columns: Any = None, delimiter: str = ",", default_value: str = "") -> str:
    kind = type(value)
    if kind in LISTS:
        cells = list(value)
    elif kind not in OBJECTS:
        raise OperationError("The argument is no object and no list.")
    elif columns is None:
        cells = list(value.values())
    elif type(columns) in LISTS:
        cells = [value.get(name, MISSING) if type(name) is str else MISSING for name in columns]
    else:
        raise OperationError("columns is a list of texts.")
    if len(cells) > run.limits.elements:
        raise run.too_many("A list")
    run.spend(len(cells) * CALL)
    texts: list[str] = []
    size = 0
    for cell in cells:
        text = default_value if cell is MISSING else as_text(run, cell)
        if delimiter in text:
            text = f'"{escaped(run, text, chr(34))}"'
        # There is no delimiter behind nothing, as in FilterX.
        texts.append(delimiter + text if size else text)
        size += len(texts[-1])
        if size > run.limits.text:
            raise run.too_long()
    return long_text(run, "".join(texts))


_DIALECTS: Final = {
    "escape-none": "",
    "escape-backslash": r"\\(?s:.)",
    "escape-backslash-with-sequences": r"\\(?:x[0-9a-fA-F]{2}|(?s:.))",
    "escape-double-char": "QQ",
}
"""What stands for a quote, C{Q}, within quotes: nothing, something behind a backslash, or two quotes."""

_SEQUENCES: Final = {"a": "\a", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_DEFAULT_QUOTES: Final = ('""', "''")


class _Csv(NamedTuple):
    """The format of columns: their delimiter, and the text within each kind of quotes."""

    delimiter: re.Pattern[str] | None
    quotes: dict[str, tuple[str, re.Pattern[str]]]
    dialect: str
    blanks: str


@lru_cache(maxsize=64)
def _csv(delimiters: str, texts: tuple[str, ...], quote_pairs: tuple[str, ...], dialect: str) -> _Csv:
    ends = [re.escape(each) for each in texts if each]
    ends += [f"[{re.escape(delimiters)}]"] if delimiters else []
    quotes: dict[str, tuple[str, re.Pattern[str]]] = {}
    for pair in quote_pairs:
        close = pair[-1]
        escaped = _DIALECTS[dialect].replace("Q", re.escape(close))
        inner = rf"[^{re.escape(close)}\\]" if "\\" in escaped else rf"[^{re.escape(close)}]"
        alternatives = "|".join(filter(None, [escaped, inner]))
        quotes.setdefault(pair[0], (close, re.compile(rf"((?:{alternatives})*+)(?:{re.escape(close)}|\Z|(\\)\Z)")))
    blanks = "".join(each for each in " \t" if each not in delimiters)
    return _Csv(re.compile("|".join(ends)) if ends else None, quotes, dialect, blanks)


def _parse_csv(
    run: Run,
    value: Any,
    *,
    columns: Any = None,
    delimiter: str = ",",
    string_delimiters: Any = None,
    dialect: str = "escape-none",
    quote_pairs: tuple[str, ...] = _DEFAULT_QUOTES,
    strip_whitespace: bool = False,
    strip_whitespaces: bool = False,
    greedy: bool = False,
) -> Any:
    text = text_argument(run, value)
    if not delimiter and not string_delimiters:
        raise OperationError("The delimiter is empty.")
    if not all(type(each) is str and len(each) in (1, 2) for each in quote_pairs):
        raise OperationError("Quote pairs are texts of one or two characters.")
    names = _names(run, columns)
    texts = () if string_delimiters is None else tuple(_names(run, string_delimiters) or ())
    run.spend(len(text) * CHARACTER)
    written = _csv(delimiter, texts, quote_pairs, dialect)
    strip = strip_whitespace or strip_whitespaces
    read: list[str] = []
    at = 0
    while names is None or len(read) < len(names):
        run.spend(CALL)
        if greedy and names is not None and len(read) == len(names) - 1:
            read.append(text[at:].strip(" \t") if strip else text[at:])
            break
        if at >= len(text):
            break
        column, at = _column(text, at, written, strip)
        read.append(column)
        if len(read) > run.limits.elements:
            raise run.too_many("A list")
    return stored(run, read if names is None else dict(zip(names, read, strict=False)), fresh=False)


def _names(run: Run, value: Any) -> list[str] | None:
    if value is None:
        return None
    if type(value) not in LISTS or not all(type(each) is str for each in value):
        raise OperationError("Columns and string delimiters are lists of texts.")
    if len(value) > run.limits.elements:
        raise run.too_many("A list")
    run.spend(len(value) * ELEMENT)
    return list(value)


def _column(text: str, at: int, written: _Csv, strip: bool) -> tuple[str, int]:
    """Return the text of a column, and where the next begins."""
    quote = written.quotes.get(text[at])
    inner = raw = ""
    if quote is not None:
        at += 1
        found = quote[1].match(text, at)
        assert found is not None, "the end of the text ends it at the latest"
        raw = found[1] + (found[2] or "")
        blanks = len(raw) - len(raw.lstrip(" \t")) if strip else 0
        raw, start, behind = raw[blanks:], at + blanks, found.end()
        inner = _within_quotes(raw, quote[0], written.dialect)
    else:
        if strip:
            at += len(text[at : at + _MOST_BLANKS]) - len(text[at : at + _MOST_BLANKS].lstrip(written.blanks))
        start = behind = at
    end = None if written.delimiter is None else written.delimiter.search(text, behind)
    whole = inner + text[behind : end.start() if end else len(text)]
    if strip:
        whole = whole.rstrip(" \t")
    if quote is not None and inner == raw:
        # What stands behind a closing quote counts, but is not taken: FilterX cuts so many characters out of the text.
        whole = text[start : start + len(whole)]
    return whole, end.end() if end else len(text)


_MOST_BLANKS: Final = 4096
"""White space before a column that is looked at."""


def _within_quotes(inner: str, quote: str, dialect: str) -> str:
    if dialect == "escape-double-char":
        return inner.replace(quote * 2, quote)
    if dialect == "escape-none" or "\\" not in inner:
        return inner
    return _SEQUENCE.sub(lambda found: _sequence(found, quote, dialect), inner)


_SEQUENCE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)


def _sequence(found: re.Match[str], quote: str, dialect: str) -> str:
    char = found[2]
    if dialect == "escape-backslash":
        return char if char is not None else "x" + found[1]
    if char is None:
        return chr(int(found[1], 16))
    return char if char == quote else _SEQUENCES.get(char, char)


CSV_FUNCTIONS: Final = (
    Function(
        "parse_csv",
        'text, columns=[…], delimiter=",", string_delimiters=[…], dialect="escape-none", quote_pairs=[…], '
        "strip_whitespace=false, greedy=false",
        "The columns of a text: a list, or an object when they have names. Each character of the delimiter is one.",
        _parse_csv,
        checks={"dialect": one_of(*_DIALECTS)},
    ),
    Function(
        "format_csv",
        'list, columns=[…], delimiter=",", default_value=""',
        "The elements of a list, or the members of an object, with a delimiter between them.",
        _format_csv,
        checks={"delimiter": ONE},
    ),
)
