"""
The grammar of queries::

    query       = [ disjunction ]
    disjunction = conjunction { OR conjunction }
    conjunction = negation { ( AND | "," ) negation }
    negation    = { NOT } ( "(" disjunction ")" | term )
    term        = field ( operator value | [ NOT ] EXISTS | [ NOT ] IN "(" value { "," value } ")" )

C{IN} is a word like any other, but between a field and a parenthesis.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from webhookrx.message.fields import MAX_NAMES, Path, split_path
from webhookrx.query.predicates import IN, OPERATORS, predicate, predicate_among
from webhookrx.query.query_lexer import KEYWORDS, MAX_LENGTH, QueryError, QueryToken, shortened, tokens, written_field
from webhookrx.query.query_tree import ANY, And, Everything, Exists, Node, Not, Or, Term

MAX_LEVELS: Final = 64
"""Parentheses and C{NOT} inside each other."""

MAX_TERMS: Final = 1_000

MAX_EXPRESSIONS: Final = 100
"""Regular expressions of a query: each may take a megabyte."""

_UNUSUAL: Final = re.compile(r"[^\w@.:/-]")
"""Characters that need quotes in a field; values may hold more."""

_WANTS_QUOTES: Final = "a value that holds blanks, commas or operators needs quotes."


def parse_tree(query: str) -> Node:
    """
    Read a query.

    @raise QueryError: the text is not a query, or is larger than the limits above and L{MAX_LENGTH}.
    """
    if len(query) > MAX_LENGTH:
        raise QueryError(f"The query is longer than {MAX_LENGTH:,} characters.", MAX_LENGTH + 1)
    return _QueryParser(query).tree()


class _QueryParser:
    """Recursive descent. Each method consumes the part of the grammar that it is named after."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._tokens = tokens(query)
        self._token = self._previous = next(self._tokens)
        self._levels = self._terms = self._expressions = 0

    def tree(self) -> Node:
        if self._token.kind == "end":
            return Everything()
        tree = self._disjunction()
        if self._token.kind == ")":
            raise self._error('There is no "(" for this ")".')
        if self._token.kind != "end":
            raise self._error(f"AND or OR is missing before {_shown(self._token)}; {_WANTS_QUOTES}")
        return tree

    def _disjunction(self) -> Node:
        operands = self._chain(self._conjunction, "OR")
        return operands[0] if len(operands) == 1 else Or(_flat(Or, operands))

    def _conjunction(self) -> Node:
        operands = self._chain(self._negation, "AND", ",")
        return operands[0] if len(operands) == 1 else And(_flat(And, operands))

    def _chain(self, operand: Callable[[], Node], *between: str) -> list[Node]:
        operands = [operand()]
        while self._token.kind in between:
            self._take()
            operands.append(operand())
        return operands

    def _negation(self) -> Node:
        negations = 0
        while self._token.kind == "NOT":
            negations += 1
            self._go_in()
        node = self._group() if self._token.kind == "(" else self._term()
        for _ in range(negations):
            node = Not(node)
        self._levels -= negations
        return node

    def _group(self) -> Node:
        opening = self._token
        self._go_in()
        node = self._disjunction()
        if self._token.kind == "end":
            raise QueryError('This "(" is never closed: a ")" is missing.', opening.column)
        if self._token.kind != ")":
            raise self._error(f'AND, OR or ")" is missing before {_shown(self._token)}; {_WANTS_QUOTES}')
        self._take()
        self._levels -= 1
        return node

    def _term(self) -> Node:
        field = self._token
        if field.kind not in ("word", "text"):
            raise self._error(self._no_field())
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise self._error(f"The query has more than {MAX_TERMS:,} terms.")
        self._take()
        field, path = self._field(field)
        operator = self._token
        if operator.kind == "operator":
            self._take()
            return self._comparison(field, path, operator)
        if operator.kind == "NOT":
            self._take()
            if self._is_in():
                return Not(self._among(field, path))
            if self._token.kind != "EXISTS":
                raise QueryError("NOT stands before the field; only EXISTS and IN may follow it here.", operator.column)
            return Not(self._exists(field, path))
        if operator.kind == "EXISTS":
            return self._exists(field, path)
        if self._is_in():
            return self._among(field, path)
        raise self._error(
            f"An operator is expected after {_shown(field)}, not {_shown(operator)}: "
            f"{' '.join(OPERATORS)} and a value, IN and values in parentheses, or EXISTS; {_WANTS_QUOTES}"
        )

    def _field(self, first: QueryToken) -> tuple[QueryToken, Path | None]:
        """Return a field and its path. A name in quotes with dots and names beside it is one name."""
        last, names = first, [first.text] if first.kind == "text" else first.text.split(".")
        joined = False
        while self._token.start == last.end and self._token.kind in ("word", "text"):
            token = self._token
            if last.kind == "word" and token.kind == "text" and names[-1] == "":
                names[-1] = token.text
            elif last.kind == "text" and token.kind == "word" and token.text[0] == ".":
                names += token.text[1:].split(".")
            else:
                break
            joined, last = True, self._take()
        if not joined:
            return first, _aliased(_path(first))
        if not all(names) or len(names) > MAX_NAMES:
            raise QueryError("A field is written as names with a dot between them, such as log.'a.b'.", first.column)
        shown = written_field(tuple(names)) if any("." in name for name in names) else ".".join(names)
        whole = QueryToken("text", shown, first.start, last.end)
        return whole, _aliased(tuple(names))

    def _is_in(self) -> bool:
        return self._token.kind == "word" and self._token.text.upper() == IN

    def _among(self, field: QueryToken, path: Path | None) -> Node:
        word = self._take()
        if self._token.kind != "(":
            raise QueryError(f'Values in parentheses are expected after "{word.text}".', self._token.column)
        values: list[str] = []
        while not values or self._token.kind == ",":
            self._take()
            value = self._token
            if value.kind not in ("word", "text"):
                raise self._error(_no_value(word, value))
            values.append(self._take().text)
            if len(values) > MAX_TERMS:
                raise self._error(f"The list has more than {MAX_TERMS:,} values.")
        if self._token.kind != ")":
            raise self._error(f'A comma or ")" is missing before {_shown(self._token)}; {_WANTS_QUOTES}')
        end = self._take().end
        try:
            test = predicate_among(tuple(values))
        except ValueError as error:
            raise QueryError(str(error), word.column) from None
        name = ANY if path is None else field.text
        source = self._query[field.start : end]
        return Term(name, path, IN, ", ".join(values), test, source, field.column, tuple(values))

    def _exists(self, field: QueryToken, path: Path | None) -> Node:
        if path is None:
            raise QueryError("@ANY needs an operator and a value.", field.column)
        exists = self._take()
        source = f"{self._query[field.start : field.end]} {exists.text}"
        return Exists(field.text, path, source, field.column)

    def _comparison(self, field: QueryToken, path: Path | None, operator: QueryToken) -> Node:
        value = self._token
        if value.kind not in ("word", "text"):
            raise self._error(_no_value(operator, value))
        meaning = OPERATORS[operator.text]
        if meaning.kind == "matches":
            self._expressions += 1
            if self._expressions > MAX_EXPRESSIONS:
                raise self._error(f"The query has more than {MAX_EXPRESSIONS} regular expressions.")
        try:
            test = predicate(meaning, value.text, operator.text)
        except ValueError as error:
            raise self._error(str(error)) from None
        self._take()
        source = self._query[field.start : value.end]
        name = ANY if path is None else field.text
        return Term(name, path, operator.text, value.text, test, source, field.column)

    def _go_in(self) -> None:
        self._levels += 1
        if self._levels > MAX_LEVELS:
            raise self._error(f"The query has parentheses and NOT more than {MAX_LEVELS} levels deep.")
        self._take()

    def _take(self) -> QueryToken:
        taken = self._previous = self._token
        self._token = next(self._tokens)
        return taken

    def _error(self, problem: str) -> QueryError:
        return QueryError(problem, self._token.column)

    def _no_field(self) -> str:
        problem = f"A field is expected here, such as name or label.site, not {_shown(self._token)}."
        if self._token.kind in KEYWORDS or (self._token.kind == "operator" and self._previous.kind in KEYWORDS):
            problem += " A field that is called like a keyword needs quotes."
        return problem


def _no_value(operator: QueryToken, found: QueryToken) -> str:
    problem = f'A value is expected after "{operator.text}", not {_shown(found)}'
    if found.kind in KEYWORDS:
        return f"{problem}, which is a keyword: as a value it needs quotes."
    if found.kind == "end":
        return f"{problem}; the empty value is written ''."
    return f"{problem}; a value that begins with it needs quotes."


def _aliased(path: Path | None) -> Path | None:
    """Return the path of a field. C{connector.…} is short for C{meta.connector.…}, as in analytics labels."""
    return ("meta", *path) if path is not None and path[0] == "connector" else path


def _path(field: QueryToken) -> Path | None:
    """Return None for all fields."""
    if field.kind == "word":
        if field.text.upper() == ANY:
            return None
        if unusual := _UNUSUAL.search(field.text):
            column = field.column + unusual.start()
            raise QueryError(f"A field that holds the character {unusual[0]} needs quotes around it.", column)
    try:
        return split_path(field.text)
    except ValueError as error:
        raise QueryError(str(error), field.column) from None


def _shown(token: QueryToken) -> str:
    return "the end of the query" if token.kind == "end" else f'"{shortened(token.text)}"'


def _flat(kind: type[And] | type[Or], operands: list[Node]) -> tuple[Node, ...]:
    flat: list[Node] = []
    for operand in operands:
        flat.extend(operand.operands if isinstance(operand, kind) else (operand,))
    return tuple(flat)
