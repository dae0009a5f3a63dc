"""
Reads the webhook sources in the configuration of a collector, as they are written there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

WEBHOOKS: Final = ("webhook", "webhook-json")

_TOKEN: Final = re.compile(
    r"""
    (?P<space> \s+ | \#[^\n]* )
    | (?P<string> "(?:[^"\\]|\\.)*" | '[^']*' )
    | (?P<sign> [(){}\[\];,] )
    | (?P<word> [^\s(){}\[\];,\#"']+ )
    | (?P<open> ["'] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_ESCAPED: Final = {"a": "\a", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}
_VARIABLE: Final = re.compile(r"`([^`\n]+)`")
_DIRECTIVE: Final = re.compile(r"^[ \t]*@(\w+)(?::|[ \t]+|$)(.*)$", re.MULTILINE)
_CLOSING: Final = {"(": ")", "{": "}", "[": "]"}


class CollectorProblem(NamedTuple):
    """Something that can't be carried over, and its line, from 1."""

    line: int
    text: str


class CollectorToken(NamedTuple):
    """
    @ivar sign: it is one of C{(){}[];,} rather than a text.
    @ivar quoted: it stands in quotes, which are left out.
    """

    text: str
    line: int
    sign: bool = False
    quoted: bool = False


@dataclass(frozen=True)
class CollectorOption:
    """
    An option of a driver.

    @ivar name: with C{_}.
    @ivar values: what stands in its brackets, without signs.
    @ivar nested: there are brackets within, so that the values alone say nothing.
    """

    name: str
    line: int
    values: tuple[CollectorToken, ...]
    nested: bool = False


@dataclass(frozen=True)
class Driver:
    """
    One C{webhook()} or C{webhook-json()}.

    @ivar source: the name of the block around it; empty when it has none.
    """

    kind: str
    source: str
    line: int
    options: tuple[CollectorOption, ...]


@dataclass
class Collector:
    """
    What was found in a file.

    @ivar includes: other files that it names; they are not read.
    """

    drivers: list[Driver] = field(default_factory=list)
    mistakes: list[CollectorProblem] = field(default_factory=list)
    includes: list[str] = field(default_factory=list)


def read_collector(text: str, environ: Mapping[str, str]) -> Collector:
    """
    Read a configuration.

    @param environ: stands behind what C{@define} says.
    """
    found = Collector()
    variables = dict(environ)
    for directive in _DIRECTIVE.finditer(text):
        if directive[1] == "define":
            name, _, value = directive[2].strip().partition(" ")
            variables[name] = _unquoted(value.strip())
        elif directive[1] == "include":
            found.includes.append(_unquoted(directive[2].strip()))
    # Lines stay where they are.
    tokens = list(_tokens(_DIRECTIVE.sub("", text), variables, found))
    _blocks(tokens, found)
    return found


def _tokens(text: str, variables: Mapping[str, str], found: Collector) -> Iterator[CollectorToken]:
    at, line = 0, 1
    while match := _TOKEN.match(text, at):
        kind, written = match.lastgroup, match[0]
        if kind == "open":
            found.mistakes.append(CollectorProblem(line, "A text in quotes has no end."))
            return
        if kind == "sign":
            yield CollectorToken(written, line, sign=True)
        elif kind != "space":
            filled = _VARIABLE.sub(partial(_value_of, line, variables, found), _unquoted(written))
            yield CollectorToken(filled, line, quoted=kind == "string")
        line += written.count("\n")
        at = match.end()


def _value_of(line: int, variables: Mapping[str, str], found: Collector, variable: re.Match[str]) -> str:
    name = variable[1]
    if name not in variables:
        found.mistakes.append(
            CollectorProblem(line, f"`{name}` is defined neither in the file nor in the environment.")
        )
    return variables.get(name, "")


def _unquoted(text: str) -> str:
    """Return a text without its quotes; only double ones know escapes."""
    if text[:1] == "'" and text[-1:] == "'":
        return text[1:-1]
    if text[:1] != '"' or text[-1:] != '"':
        return text
    return _ESCAPE.sub(_character, text[1:-1])


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _ESCAPED.get(escape[2], escape[2])


def _blocks(tokens: list[CollectorToken], found: Collector) -> None:
    """Look for C{source NAME { … }}, at the top and in log paths, and for webhooks that stand anywhere else."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if _is_word(token, "source"):
            name_end = at + 1 if at + 1 < len(tokens) and tokens[at + 1].sign else at + 2
            if name_end < len(tokens) and tokens[name_end].text == "{" and tokens[name_end].sign:
                name = tokens[at + 1].text if name_end == at + 2 else ""
                end = _end_of(tokens, name_end, found)
                _drivers(tokens[name_end + 1 : end], name, found)
                at = end + 1
                continue
        if _calls_webhook(tokens, at):
            found.mistakes.append(
                CollectorProblem(
                    token.line, f"{token.text}() stands in no source block, such as in a block of your own."
                )
            )
            at = _end_of(tokens, at + 1, found)
        at += 1


def _drivers(tokens: list[CollectorToken], source: str, found: Collector) -> None:
    """Take the drivers of a source block."""
    has_webhook = any(_calls_webhook(tokens, at) for at in range(len(tokens)))
    at = 0
    while at < len(tokens) and has_webhook:
        token = tokens[at]
        opens = at + 1 < len(tokens) and tokens[at + 1].sign and tokens[at + 1].text in "({"
        if token.sign or not opens:
            at += 1
            continue
        end = _end_of(tokens, at + 1, found)
        inside = tokens[at + 2 : end]
        if _calls_webhook(tokens, at):
            kind = token.text.replace("_", "-")
            found.drivers.append(Driver(kind, source, token.line, tuple(_options(inside, token, found))))
        elif _is_word(token, "source") or any(_calls_webhook(inside, each) for each in range(len(inside))):
            if not _is_word(token, "source"):
                found.mistakes.append(
                    CollectorProblem(token.line, f"What {token.text} does to messages is not carried over.")
                )
            _drivers(inside, source, found)
        else:
            found.mistakes.append(
                CollectorProblem(token.line, f"{token.text} is no webhook: it stays with the collector.")
            )
        at = end + 1


def _options(tokens: list[CollectorToken], driver: CollectorToken, found: Collector) -> Iterator[CollectorOption]:
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if (
            at + 1 < len(tokens)
            and not token.sign
            and tokens[at + 1] == CollectorToken("(", tokens[at + 1].line, sign=True)
        ):
            end = _end_of(tokens, at + 1, found)
            inside = tokens[at + 2 : end]
            nested = any(each.sign and each.text in "({" for each in inside)
            values = tuple(each for each in inside if not each.sign)
            yield CollectorOption(token.text.replace("-", "_"), token.line, values, nested)
            at = end
        elif not (token.sign and token.text in ",;"):
            found.mistakes.append(CollectorProblem(token.line, f"{driver.text}() takes options such as port(8181)."))
        at += 1


def _end_of(tokens: list[CollectorToken], start: int, found: Collector) -> int:
    """Return where the bracket at C{start} is closed; the end of all when it is not, which is noted."""
    open_ones: list[str] = []
    for at in range(start, len(tokens)):
        token = tokens[at]
        if token.sign and token.text in _CLOSING:
            open_ones.append(_CLOSING[token.text])
        elif token.sign and open_ones and token.text == open_ones[-1]:
            open_ones.pop()
            if not open_ones:
                return at
    found.mistakes.append(CollectorProblem(tokens[start].line, f"The {tokens[start].text} is not closed."))
    return len(tokens)


def _is_word(token: CollectorToken, word: str) -> bool:
    return not (token.sign or token.quoted) and token.text == word


def _calls_webhook(tokens: list[CollectorToken], at: int) -> bool:
    token = tokens[at]
    is_name = not (token.sign or token.quoted) and token.text.replace("_", "-") in WEBHOOKS
    return is_name and at + 1 < len(tokens) and tokens[at + 1].sign and tokens[at + 1].text == "("
