"""
Functions on key=value pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from webhookrx.router.expressions.function import ONE, SEPARATOR, SOME, Function, one_of, text_argument
from webhookrx.router.expressions.run import CALL, OperationError, Run
from webhookrx.router.expressions.values import LISTS, OBJECTS, as_text, long_text, stored

_KEY: Final = r"[A-Za-z0-9_.-]"
_CONTROLS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\\": "\\"}


class KeyValues(NamedTuple):
    """
    The format of pairs, as FilterX has it. A value without quotes ends at the pair separator, or at blanks before a key
    with its separator.

    @ivar between: the pair separator; it may be empty.
    @ivar key: finds the next key, with blanks up to its separator.
    @ivar end: finds the end of a value without quotes.
    @ivar junk_end: finds the end of junk behind a closing quote.
    @ivar greedy_key: finds the end of a value that goes on until a key directly behind the first character of the pair
        separator.
    """

    between: str
    key: re.Pattern[str]
    end: re.Pattern[str]
    junk_end: re.Pattern[str]
    greedy_key: re.Pattern[str]


@lru_cache(maxsize=64)
def key_values(separator: str, between: str) -> KeyValues:
    """
    Return a format of pairs.

    @param separator: between a key and its value, one character.
    @param between: the pair separator.
    """
    sign, pair, before = re.escape(separator), re.escape(between), re.escape(between[:1])
    # Blanks that follow on each other are read once.
    end = rf"(?<! ) ++(?=\Z|{_KEY}++ *+{sign})"
    if between[:1] == " ":
        end = f"{pair}|{end}"
    elif between:
        # Blanks come before the separator.
        end = rf"{end}|(?<! ) ++{pair}|{pair}"
    # A separator that may be part of a key does not stand before one.
    never = not between or re.fullmatch(_KEY, between[0])
    return KeyValues(
        between,
        # A key begins where no character of one is before it, so that each is read once.
        re.compile(rf"(?<!{_KEY})({_KEY}++) *+{sign}|({_KEY}++)"),
        re.compile(end),
        re.compile(f" |{pair}" if between else " "),
        re.compile("(?!)" if never else rf"{before}({_KEY}++) *+{sign}"),
    )


def pairs_of(run: Run, text: str, written: KeyValues, stray: list[str] | None = None) -> Iterator[tuple[str, str]]:
    """
    Yield key and value of each pair in a text.

    @param stray: gets the texts before keys that belong to no value.
    @raise OperationError: there is no work left.
    """
    at = 0
    while True:
        run.spend(CALL)
        found = _next_key(written, text, at)
        if stray is not None:
            stray.append(text[at : found.start(1) if found else len(text)])
        if found is None:
            return
        value, at = _value(text, found.end(), written)
        yield found[1], value


def _next_key(written: KeyValues, text: str, at: int) -> re.Match[str] | None:
    while True:
        found = written.key.search(text, at)
        if found is None or found[1] is not None:
            return found
        at = found.end()


def _value(text: str, at: int, written: KeyValues) -> tuple[str, int]:
    """Return a value, and the index of the text behind it."""
    at = _behind_blanks(text, at, written)
    if text[at : at + 1] in _QUOTES:
        return _quoted_value(text, at, written)
    found = written.end.search(text, at)
    if found is None:
        return text[at:], len(text)
    return text[at : found.start()], found.end()


_QUOTES: Final = ("'", '"')
_BLANKS: Final = re.compile(" *+")


def _behind_blanks(text: str, at: int, written: KeyValues) -> int:
    """Return where a value begins: behind blanks, but not behind those that end an empty one."""
    if text[at : at + 1] != " " or written.end.match(text, at):
        return at
    blanks = _BLANKS.match(text, at)
    end = blanks.end() if blanks else at
    between = written.between
    first = text.find(between, at, end + len(between)) if between[:1] == " " else -1
    return first if first >= 0 else end


_QUOTED: Final = {quote: re.compile(rf"{quote}((?:[^{quote}\\]|\\.)*+){quote}", re.DOTALL) for quote in _QUOTES}
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def _quoted_value(text: str, at: int, written: KeyValues) -> tuple[str, int]:
    quote = text[at]
    found = _QUOTED[quote].match(text, at)
    if found is None:
        return text[at:], len(text)
    behind = found.end()
    value = _ESCAPED.sub(lambda each: _unescaped(each, quote), found[1])
    if behind == len(text):
        return value, behind
    between = written.between
    if text[behind] == " ":
        return value, behind + 1
    if between and text.startswith(between, behind):
        return value, behind + len(between)
    # Junk behind the quote: the value is the text as it stands, with the end of a quoted value.
    junk = written.junk_end.search(text, behind)
    end = junk.end() if junk else len(text)
    return text[at:end], end


def _unescaped(escape: re.Match[str], quote: str) -> str:
    char = escape[1]
    return _CONTROLS.get(char, char if char == quote else escape[0])


def _parse_kv(
    run: Run,
    value: Any,
    *,
    value_separator: str = "=",
    pair_separator: str = ", ",
    stray_words_key: str = "",
    stray_words_append_to_value: bool = False,
) -> dict[str, Any]:
    text = text_argument(run, value)
    run.spend(len(text) * CHARACTER)
    written = key_values(value_separator[0], pair_separator)
    stray: list[str] | None = [] if stray_words_key else None
    if stray_words_append_to_value and stray is None:
        pairs = greedy_pairs(run, text, written)
    else:
        pairs = pairs_of(run, text, written, stray)
    made: dict[str, str] = {}
    for name, each in pairs:
        made[name] = each
        if len(made) > run.limits.elements:
            raise run.too_many("An object")
    if stray is not None:
        made[stray_words_key] = ",".join(_stray_word(run, each) for each in (each.strip(" ") for each in stray) if each)
    stored_pairs: dict[str, Any] = stored(run, made, fresh=False)
    return stored_pairs


CHARACTER: Final = 40
"""Units of a character that a regular expression of Python reads."""


def greedy_pairs(run: Run, text: str, written: KeyValues) -> Iterator[tuple[str, str]]:
    """
    Yield key and value of each pair in a text, where a value goes on until a key that stands directly behind the
    first character of the pair separator.

    @raise OperationError: there is no work left.
    """
    found = _next_key(written, text, 0)
    while found is not None:
        run.spend(CALL)
        start = _behind_blanks(text, found.end(), written)
        follower = written.greedy_key.search(text, start)
        yield found[1], text[start : follower.start() if follower else len(text)]
        found = follower


def _stray_word(run: Run, word: str) -> str:
    if not any(char in word for char in " ,'\"\\\b\f\n\r\t"):
        return word
    quote = "'" if '"' in word and "'" not in word else '"'
    return quote + escaped(run, word, quote) + quote


def _format_kv(
    run: Run,
    value: Any,
    *,
    value_separator: str = "=",
    pair_separator: str = ", ",
    quote_char: str = '"',
    always_quote: bool = False,
) -> str:
    if type(value) not in OBJECTS:
        raise OperationError("The argument is no object.")
    run.spend(len(value) * CALL)
    pairs, size = [], 0
    for name, member in value.items():
        if type(member) in OBJECTS or type(member) in LISTS:
            continue
        text = as_text(run, member)
        if always_quote or " " in text:
            text = quote_char + escaped(run, text, quote_char) + quote_char
        pairs.append(f"{name}{value_separator}{text}")
        size += len(pairs[-1]) + len(pair_separator)
        if size > run.limits.text:
            raise run.too_long()
    return long_text(run, pair_separator.join(pairs))


_NAMED: Final = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}
_UNSAFE: Final = {number: f"\\x{number:02x}" for number in range(32)} | {
    ord(char): name for char, name in _NAMED.items()
}
_IN_QUOTES: Final = {quote: _UNSAFE | {ord(quote): "\\" + quote} for quote in ("'", '"')}


def escaped(run: Run, text: str, quote: str) -> str:
    """Return a text as it stands in quotes."""
    run.spend(len(text) * _ESCAPING)
    return text.translate(_IN_QUOTES[quote])


_ESCAPING: Final = 40
"""Units of a character that may be escaped."""


KV_FUNCTIONS: Final = (
    Function(
        "parse_kv",
        'text, value_separator="=", pair_separator=", ", stray_words_key="name", stray_words_append_to_value=false',
        "The `key=value` pairs in a text, as an object. A value ends at the pair separator, or at a blank before the "
        "next key; it may be quoted. Words outside of pairs are left out, or become a member of the given name.",
        _parse_kv,
        checks={"value_separator": SEPARATOR},
    ),
    Function(
        "format_kv",
        'object, value_separator="=", pair_separator=", ", quote_char="\\"", always_quote=false',
        "The members of an object as pairs; values with blanks are quoted, lists and objects are left out.",
        _format_kv,
        checks={"value_separator": ONE, "pair_separator": SOME, "quote_char": one_of(*_QUOTES)},
    ),
)
