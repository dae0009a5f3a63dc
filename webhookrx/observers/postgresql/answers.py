"""
What an error of PostgreSQL means for the rows of its transaction, by its SQLSTATE (PostgreSQL manual, appendix A).

Its texts quote values of rows, so none of them goes any further: what is said of an error is its code, its name and
what an operator can do.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

#: Data exceptions and violated constraints: what may lie in a row.
_OF_ROWS: Final = ("22", "23")

BAD_COPY_FORMAT: Final = "22P04"
CHECK_VIOLATION: Final = "23514"
NOT_NULL_VIOLATION: Final = "23502"

_NO_PARTITION: Final = "no partition takes the row; make one"
_NOT_OURS: Final = "a column that columns= does not fill takes no NULL, and has no default"

#: What an operator can do, by code, else by class.
_HINTS: Final = {
    "25006": "it is read-only: a standby, or default_transaction_read_only is on",
    "28": "look at user= and password_file=",
    "3D000": "look at the database in the URL",
    "3F000": "the schema is missing, or the user has no USAGE of it",
    "42501": "it takes GRANT INSERT, and SELECT on the columns of dedup=; and TEMPORARY on the database",
    "42703": "a column is missing; look at columns=",
    "42P01": "the table is missing, or the user has no USAGE of its schema; create=yes makes a table",
    "42P10": "no unique index or primary key has just the columns of dedup=",
    "42": "look at the table, its columns, and what the user may do",
    "53100": "its disk is full",
    "53300": "it has too many connections",
    "53": "it lacks room",
    "55P03": "something has locked the table",
    "57014": "it took longer than timeout=, or somebody has cancelled it",
    "57": "it stops, or has just started",
    "P0001": "a trigger refuses it",
}


class ServerError(Exception):
    """
    An error that the server has answered; all of the transaction is undone.

    @ivar sqlstate: its code.
    @ivar name: that of the code, as the client library knows it.
    @ivar has_rows: it answers a statement that rows went with, or the commit of such. A setting or a pooler may answer
        others with any code.
    @ivar constraint: whether it names a constraint.
    @ivar column: the column that it names.
    """

    def __init__(
        self,
        sqlstate: str,
        name: str = "",
        *,
        has_rows: bool = False,
        constraint: bool = False,
        column: str | None = None,
    ) -> None:
        super().__init__(f"{sqlstate} {name}".rstrip())
        self.sqlstate = sqlstate
        self.name = name
        self.has_rows = has_rows
        self.constraint = constraint
        self.column = column

    def is_of_row(self, ours: Collection[str]) -> bool:
        """
        Tell whether it lies in a row, so that the same row would meet it again whatever an operator does to the server.

        A row without a partition gets the code of a violated check, but no constraint is named (ExecFindPartition in
        execPartition.c); nothing is wrong with that row, nor where every row lacks a value that is not ours to give.

        @param ours: the columns that the observer fills.
        """
        if not self.has_rows or not self.sqlstate.startswith(_OF_ROWS) or self.sqlstate == BAD_COPY_FORMAT:
            return False
        if self.sqlstate == CHECK_VIOLATION:
            return self.constraint
        return self.sqlstate != NOT_NULL_VIOLATION or self.column is None or self.column in ours

    def describe(self, ours: Collection[str]) -> str:
        """Return one line that quotes nothing of the server but the code."""
        text = f"it answers {self.sqlstate} {self.name}".rstrip()
        hint = _HINTS.get(self.sqlstate) or _HINTS.get(self.sqlstate[:2])
        if not self.is_of_row(ours):
            hint = {CHECK_VIOLATION: _NO_PARTITION, NOT_NULL_VIOLATION: _NOT_OURS}.get(self.sqlstate, hint)
        return f"{text}: {hint}" if hint else text


class ConnectionFailed(Exception):
    """
    There is no connection, or no longer; whether a transaction under way was committed is unknown. The text says why,
    in one line.
    """
