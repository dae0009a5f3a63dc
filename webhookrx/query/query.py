"""
Queries: parsed once, then decided for each record within a budget of work.

The tree becomes one function, with nothing left to decide but the values. Each term tests a short text by itself. Texts
of a field that are long or many are collected once for all terms of a query, and folded and joined at most once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from webhookrx.message.fields import MISSING, Path, getter
from webhookrx.query.query_parser import parse_tree
from webhookrx.query.query_tree import And, Everything, Exists, Node, Not, Or, Term, terms_of
from webhookrx.work import MEMBER, MOST_FOR_MESSAGE, TooMuchWork, Work, spend_json

MOST_WORK: Final = MOST_FOR_MESSAGE
"""Units of work for a query that is decided alone."""

_TERM: Final = 300
"""Units of a term, with a short text."""

_INCLUDED: Final = 32
"""Characters whose work is counted with the term."""

_SHORT: Final = 2048
_FEW: Final = 32
"""Characters of a text, and elements of an array, that each term tests by itself."""

_TEST: Final = 250
_LEAF: Final = 350
"""Units for testing one text of many, and for collecting it."""

_FOLDING_ASCII: Final = 1
_FOLDING: Final = 6
_SEARCHING: Final = 2
"""Units of a character that is casefolded, in a text of ASCII or another, and of one that is searched."""

_TEXTS: Final = (str, msgspec.Raw)
_ARRAYS: Final = (list, tuple)
# isinstance() is much faster for a dict, and for a scalar of _SCALARS, than for Mapping.
_CONTAINERS: Final = (dict, list, tuple, Mapping)
_SCALARS: Final = (int, float, type(None))

#: Tells whether a record, nested dicts, matches. It raises L{QueryTooCostly} or L{webhookrx.regex.RegexTooCostly} when
#: there is too little work left, and nothing else, whatever JSON or YAML values the record holds.
Decide: TypeAlias = Callable[[Mapping[str, Any], Work], bool]


class QueryTooCostly(TooMuchWork):
    """A record is too large for a query with that many terms; the text quotes neither."""


class FieldUse(NamedTuple):
    """
    A field that a query tests.

    @ivar field: such as C{label.site}.
    @ivar column: from 1.
    """

    field: str
    column: int


class Query:
    """
    What L{parse} returns.

    @ivar text: as it was written.
    """

    __slots__ = ("decide", "text", "tree")

    def __init__(self, text: str, tree: Node) -> None:
        self.text = text
        self.tree = tree
        self.decide: Decide = compile_tree(tree)

    def matches(self, record: Mapping[str, Any]) -> bool:
        """Decide with as much work as all steps of a message may take."""
        return self.decide(record, Work(MOST_WORK))

    @property
    def fields(self) -> tuple[FieldUse, ...]:
        """The fields in the query, in order, with repetitions; not C{@ANY}."""
        return tuple(FieldUse(term.field, term.column) for term in terms_of(self.tree) if term.path is not None)

    def __repr__(self) -> str:
        return f"parse({self.text!r})"


def parse(text: str) -> Query:
    """
    Read a query. The empty one matches everything.

    @raise QueryError: the text is not a query.
    """
    return Query(text, parse_tree(text))


def compile_tree(node: Node) -> Decide:
    """Return the function that decides whether a record matches a tree."""
    cost = sum(isinstance(term, Term) for term in terms_of(node)) * _TERM
    parts = [_compile(part) for part in (node.operands if isinstance(node, And) else (node,))]

    def decide(record: Mapping[str, Any], work: Work) -> bool:
        if cost > work.left:
            _spend(work, cost)
        work.left -= cost
        cache: _TextCache = {}
        for part in parts:  # noqa: SIM110  # all() with a generator takes twice as long
            if not part(record, work, cache):
                return False
        return True

    return decide


def most_work(query: Query, longest: int) -> int | None:
    """
    Return the most units that a query takes for a record whose fields are single values; None where that can't be told.

    @param longest: characters of a value, up to L{_SHORT}.
    """
    terms = [term for term in terms_of(query.tree) if isinstance(term, Term)]
    if any(term.path is None for term in terms):
        return None
    return sum(_TERM + _BYTES * longest * term.predicate.cost for term in terms)


_encode: Final = msgspec.json.Encoder(enc_hook=dict).encode


def compared_text(value: Any) -> str:
    """
    Return the text by which a value is compared: a text as it is, anything else as its JSON, compact; numbers keep
    their spelling.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, msgspec.Raw):
        return bytes(value).decode()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _encode(value).decode()


def compared_texts(value: Any) -> Iterable[str]:
    """Return the texts of a value: that of each element of an array, one of anything else."""
    return map(compared_text, value) if isinstance(value, _ARRAYS) else (compared_text(value),)


class _Texts:
    """
    The texts of a field that are long or many.

    @ivar size: characters of all of them, with the line ends between.
    """

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.size = sum(map(len, texts)) + len(texts)

    @cached_property
    def exact(self) -> frozenset[str]:
        """The texts."""
        return frozenset(self.texts)

    @cached_property
    def folded(self) -> frozenset[str]:
        """The texts, casefolded."""
        return frozenset(map(str.casefold, self.texts))

    @cached_property
    def joined(self) -> str:
        """The texts with a line end between them, which no value of a query holds."""
        return "\n".join(self.texts)

    @cached_property
    def joined_folded(self) -> str:
        """The same, casefolded: that goes character by character."""
        return self.joined.casefold()


#: The collected texts of one record, by the path of the field; None for all fields.
_TextCache: TypeAlias = dict[Path | None, _Texts]

_Part: TypeAlias = Callable[[Mapping[str, Any], Work, _TextCache], bool]


def _compile(node: Node) -> _Part:
    match node:
        case Term():
            positive = _term(node)
            return _negated(positive) if node.negated else positive
        case Exists():
            get = getter(node.path)
            return lambda record, work, cache: get(record) is not MISSING
        case Not():
            return _negated(_compile(node.operand))
        case And():
            return _first_decides([_compile(operand) for operand in node.operands], until=False)
        case Or():
            return _first_decides([_compile(operand) for operand in node.operands], until=True)
        case Everything():
            return lambda record, work, cache: True


def _negated(part: _Part) -> _Part:
    return lambda record, work, cache: not part(record, work, cache)


def _first_decides(parts: list[_Part], *, until: bool) -> _Part:
    """Return C{OR} of parts, or C{AND} of them: the first that is C{until} decides."""
    if len(parts) == 2:
        first, second = parts
        if until:
            return lambda record, work, cache: first(record, work, cache) or second(record, work, cache)
        return lambda record, work, cache: first(record, work, cache) and second(record, work, cache)

    def decide(record: Mapping[str, Any], work: Work, cache: _TextCache) -> bool:
        for part in parts:
            if part(record, work, cache) is until:
                return until
        return not until

    return decide


def _term(term: Term) -> _Part:
    path, holds, cost = term.path, term.predicate.holds, term.predicate.cost
    if path is None:
        return lambda record, work, cache: _holds_for_any(term, _texts_at(None, record, work, cache), work)
    get = getter(path)

    def matches(record: Mapping[str, Any], work: Work, cache: _TextCache) -> bool:
        value = get(record)
        if type(value) is str:
            if len(value) <= _INCLUDED:
                return holds(value)
            if len(value) <= _SHORT:
                _spend(work, _bytes(value) * cost)
                return holds(value)
        if value is MISSING:
            return False
        if isinstance(value, _ARRAYS):
            if len(value) <= _FEW and not any(map(_is_large, value)):
                texts = list(map(compared_text, value))
                _spend(work, sum(map(_bytes, texts)) * cost)
                return any(map(holds, texts))
        elif not _is_large(value):
            text = compared_text(value)
            _spend(work, _bytes(text) * cost)
            return holds(text)
        return _holds_for_any(term, _texts_at(path, value, work, cache), work)

    return matches


def _is_large(value: Any) -> bool:
    """Tell whether a value is a long text, or is compared as JSON."""
    if isinstance(value, _TEXTS):
        return len(value) > _SHORT
    return not isinstance(value, _SCALARS) and isinstance(value, _CONTAINERS)


def _texts_at(path: Path | None, value: Any, work: Work, cache: _TextCache) -> _Texts:
    """
    Return the texts of a field, collected for the first term that needs them.

    @param value: that of the field; the record for all fields.
    """
    made = cache.get(path)
    if made is None:
        if path is None:
            values: Iterable[Any] = _counted_leaves(value, work)
        else:
            values = value if isinstance(value, _ARRAYS) else (value,)
        made = cache[path] = _Texts([_counted_text(each, work) for each in values])
    return made


def _counted_leaves(record: Mapping[str, Any], work: Work) -> Iterator[Any]:
    """Yield all that is neither object nor array, however deep, in no order; each object and array is counted first."""
    pending: list[Any] = [record]
    while pending:
        each = pending.pop()
        if isinstance(each, _CONTAINERS):
            _spend(work, MEMBER * (1 + len(each)))
            pending.extend(each.values() if isinstance(each, Mapping) else each)
        else:
            yield each


def _counted_text(value: Any, work: Work) -> str:
    if isinstance(value, _CONTAINERS):
        spend_json(value, partial(_spend, work))
    text = compared_text(value)
    # It is folded, joined and hashed, each at most once.
    _spend(work, _LEAF + len(text) * (_FOLDING_ASCII if text.isascii() else _FOLDING))
    return text


def _holds_for_any(term: Term, texts: _Texts, work: Work) -> bool:
    predicate = term.predicate
    if predicate.kind == "equals":
        return predicate.value in (texts.exact if predicate.strict else texts.folded)
    if predicate.kind == "contains":
        _spend(work, texts.size * _SEARCHING)
        joined = texts.joined if predicate.strict else texts.joined_folded
        return predicate.value in joined and bool(texts.texts)
    if predicate.needs:
        _spend(work, texts.size * _SEARCHING)
        if predicate.needs not in texts.joined_folded:
            return False
    for text in texts.texts:
        _spend(work, _TEST + _bytes(text) * predicate.cost)
        if predicate.holds(text):
            return True
    return False


_BYTES: Final = 3
"""Bytes of a character at most, with which a text is counted that has others than ASCII."""


def _bytes(text: str) -> int:
    """Return how many bytes a text has at most, without counting them."""
    return len(text) if text.isascii() else _BYTES * len(text)


def _spend(work: Work, units: int) -> None:
    """
    Count work before it is done.

    @raise QueryTooCostly: there is less left; then nothing is counted.
    """
    if units > work.left:
        raise QueryTooCostly("The message holds too much for a query of that size.")
    work.left -= units
