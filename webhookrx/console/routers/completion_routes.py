"""
The route of completion: what may stand at a place of a query, by its grammar and by what the fleet has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.route import ApiCall, ApiRoute
from webhookrx.console.routers.vocabulary import About, Vocabulary, vocabulary_of
from webhookrx.query.completion import Expected, expected_at
from webhookrx.query.predicates import OPERATORS
from webhookrx.query.query_lexer import written

if TYPE_CHECKING:
    from webhookrx.console.console import Console

MOST_SHOWN: Final = 20

#: What follows the field of a term, and what it means; C{IN} and C{EXISTS} are words.
_OPERATORS: Final = {
    "=": "is",
    "!=": "is not",
    "=*": "contains",
    "!*": "does not contain",
    "=~": "matches a regular expression",
    "!~": "does not match it",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
    "==": "is, in the same case",
    "!==": "is not, in the same case",
    "==*": "contains, in the same case",
    "!=*": "does not contain, in the same case",
    "==~": "matches, in the same case",
    "!=~": "does not match, in the same case",
    "IN (": "is one of",
    "EXISTS": "is there",
    "NOT EXISTS": "is not there",
}
assert OPERATORS.keys() <= _OPERATORS.keys()

_JOINTS: Final = {"AND": "both", "OR": "one of both"}


class CompletionQuery(msgspec.Struct, frozen=True):
    """
    A place in a query.

    @ivar about: what the query is on.
    @ivar at: characters (code points) before it.
    """

    text: Annotated[str, Meta(max_length=4096)] = ""
    at: Annotated[int, Meta(ge=0, le=4096)] = 0
    about: About = "routers"


class Completion(msgspec.Struct, frozen=True):
    """
    Something that may stand there.

    @ivar text: with quotes where it needs them.
    @ivar note: what it means; empty if it says that itself.
    """

    text: str
    note: str = ""


class Completions(msgspec.Struct, frozen=True):
    """
    What may stand at a place, those first that begin as it does.

    @ivar kind: C{field}, C{operator}, C{value} or C{joint} (AND, OR); empty where nothing can be told.
    @ivar start: where the part of the query begins that one of them replaces, in code points; C{end}: where it ends.
    @ivar field: the field that an operator or a value is about.
    """

    kind: str
    start: int
    end: int
    field: str = ""
    items: tuple[Completion, ...] = ()


class _KnownWords(NamedTuple):
    hosts: Sequence[Any]
    saved: Any
    words: dict[About, Vocabulary]


class Completer:
    """
    Completes queries. The words of a state of fleet and rules are collected once.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._known = _KnownWords((), None, {})

    async def complete(self, asked: CompletionQuery) -> Completions:
        """Return what may stand at a place of a query."""
        expected = expected_at(asked.text, asked.at)
        if expected is None:
            return Completions("", asked.at, asked.at)
        words: Vocabulary = {}
        if expected.kind in ("field", "value"):
            words = await self._words(asked.about)
        items = tuple(_matching(expected.begun, _offered(expected, words)))
        if expected.kind == "value":
            items = tuple(Completion(written(each.text)) for each in items)
        return Completions(expected.kind, expected.start, expected.end, expected.field, items)

    async def _words(self, about: About) -> Vocabulary:
        console = self._console
        hosts = () if console.fleet is None else console.fleet.hosts
        saved = console.rulebook.saved
        if self._known.hosts is not hosts or self._known.saved is not saved:
            self._known = _KnownWords(hosts, saved, {})
        known = self._known.words
        if about not in known:
            rules = tuple(saved.rules.values())
            known[about] = await console.store.read(lambda _: vocabulary_of(about, hosts, rules))
        return known[about]


def _offered(expected: Expected, words: Vocabulary) -> Iterable[Completion]:
    if expected.kind == "field":
        return (Completion(field) for field in words)
    if expected.kind == "operator":
        return (Completion(text, note) for text, note in _OPERATORS.items())
    if expected.kind == "joint":
        joints = {**_JOINTS, ")": "closes the parenthesis"} if expected.levels else _JOINTS
        return (Completion(text, note) for text, note in joints.items())
    by_name = {field.replace("'", ""): values for field, values in words.items()}
    return (Completion(value) for value in by_name.get(expected.field, ()))


def _matching(begun: str, offered: Iterable[Completion]) -> Iterator[Completion]:
    """Yield those that begin with what is written, and then those that hold it."""
    wanted = begun.casefold()
    first, others = [], []
    for each in offered:
        folded = each.text.casefold()
        if folded.startswith(wanted):
            first.append(each)
        elif wanted in folded:
            others.append(each)
    yield from [*first, *others][:MOST_SHOWN]


async def complete(call: ApiCall) -> Completions:
    """Return what may stand at a place of a query."""
    completer = call.console.completer
    return await completer.complete(call.query)


ROUTES: Final = (
    ApiRoute(
        "GET",
        "/queries:complete",
        Permission.VIEW,
        complete,
        "What may stand at a place of a query: fields, operators, and values that the fleet has.",
        answer=Completions,
        query=CompletionQuery,
    ),
)
