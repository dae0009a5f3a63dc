"""
Reads the conditions of a data file, and gathers what is wrong with them.
"""

from __future__ import annotations

from typing import Final

from webhookrx.diagnostics import Diagnostic, Path, diagnose
from webhookrx.query import Query, QueryError, line_and_column, parse
from webhookrx.regex import LinearRegex
from webhookrx.senders.conditions import Conditions
from webhookrx.senders.data_file import When
from webhookrx.senders.locator import HEADER_NAME

NO_HEADER: Final = "This can't be the name of a header."


class ConditionReader:
    """
    Makes conditions ready.

    @param problems: where to add what is wrong.
    """

    def __init__(self, problems: list[Diagnostic]) -> None:
        self._problems = problems

    def _blame(self, code: str, path: Path, sentence: str) -> None:
        self._problems.append(diagnose(code, path, sentence))

    def read(self, when: When, home: Path, *, alone: bool = True) -> Conditions:
        """
        Return conditions made ready.

        @param alone: nothing else tells the requests, so one of these conditions must be told by an index.
        """
        if alone and not (when.headers or when.any_header or when.query or when.body_keys or when.body):
            self._blame("entry-evidence", home, "One of headers, any_header, query, body_keys and body is needed.")
        headers = []
        for name, pattern in when.headers.items():
            path = (*home, "headers", name)
            if not HEADER_NAME.fullmatch(name):
                self._problems.append(diagnose("entry-header", path, NO_HEADER, of_key=True))
                continue
            headers.append((name.lower().encode(), self._value(pattern, path)))
        for number, name in enumerate(when.any_header):
            if not HEADER_NAME.fullmatch(name):
                self._blame("entry-header", (*home, "any_header", number), NO_HEADER)
        return Conditions(
            headers=tuple(sorted(headers, key=lambda header: header[0])),
            any_header=frozenset(name.lower().encode() for name in when.any_header),
            parameters=tuple(
                (name, self._value(pattern, (*home, "query", name))) for name, pattern in sorted(when.query.items())
            ),
            content_type=when.content_type.lower(),
            path=self.regex(when.path, (*home, "path")) if when.path else None,
            body_keys=frozenset(when.body_keys),
            query=self.query(when.body, (*home, "body")) if when.body else None,
        )

    def _value(self, pattern: str, path: Path) -> LinearRegex | None:
        return None if pattern == "*" else self.regex(pattern, path)

    def regex(self, pattern: str, path: Path) -> LinearRegex | None:
        """Return an expression; None for one that can't be used."""
        try:
            return LinearRegex(pattern)
        except ValueError as error:
            self._blame("entry-regex", path, str(error))
            return None

    def query(self, text: str, path: Path) -> Query | None:
        """Return a query; None for one that can't be read."""
        try:
            return parse(text)
        except QueryError as error:
            where = line_and_column(text, error.column)
            self._problems.append(diagnose("entry-query", path, error.problem, *where))
            return None
