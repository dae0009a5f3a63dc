"""
A session of PostgreSQL on psycopg, which never waits for longer than it is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

import psycopg
from psycopg import pq

from webhookrx.observers.postgresql.answers import ConnectionFailed, ServerError
from webhookrx.observers.postgresql.connection import OutOfTime, SteppedConnection
from webhookrx.observers.postgresql.options import PostgreSQLTarget
from webhookrx.observers.postgresql.table import quote_name

_SQLSTATE: Final = re.compile("[0-9A-Z]{5}")

CANCEL_TIME: Final = 0.5
"""Seconds for the request to the server that it ends a statement nobody waits for any more."""

#: A table of the session's own: COPY knows no ON CONFLICT.
_BATCH: Final = "pg_temp.webhookrx_batch"
#: The number of a row in it; no name of a column that anybody would choose.
_PLACE: Final = "webhookrx_batch_place"

_RV = TypeVar("_RV")

_LAYOUT: Final = """
    SELECT current_setting('fsync'), current_setting('transaction_read_only'), c.relpersistence::text,
           a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod)
    FROM (SELECT) AS one
    LEFT JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(%s)
    LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
"""


class Layout(NamedTuple):
    """
    What a server says of itself and of the table.

    @ivar types: the types of the table's columns, by name; None without a table.
    @ivar warnings: why what is stored there may be lost, or refused, as clauses.
    """

    read_only: bool
    types: dict[str, str] | None
    warnings: tuple[str, ...]


class PsycopgSession:
    """
    Stores rows, one transaction after the other.

    @ivar warnings: see L{Layout}.
    """

    def __init__(self, connection: SteppedConnection, target: PostgreSQLTarget) -> None:
        """Use L{connect}."""
        self.warnings: tuple[str, ...] = ()
        self._connection = connection
        self._target = target
        self._table = target.table
        self._is_replicated = True
        self._has_rows = False  # what is asked for now fails if a row is wrong
        self._types: dict[str, str] = {}
        self._copy = b""
        self._insert: bytes | None = None
        connection.prepare_threshold = None
        connection.autocommit = True
        connection.add_notice_handler(self._note)

    def begin(self, steps: Iterator[float]) -> None:
        """
        Set what is to hold for all transactions, look at the table, and make what is needed for them.

        @raise ConnectionFailed: no row can be stored; the text says why.
        @raise ServerError: the same.
        """
        self._run(steps, self._begin)

    def store(self, rows: Sequence[bytes], steps: Iterator[float]) -> int:
        """
        Commit rows.

        @return: how many of them are new.
        @raise ServerError: none is stored.
        @raise ConnectionFailed: whether they are is unknown, and the session is of no use any more.
        """
        return self._run(steps, lambda: self._store(rows))

    def has_changed(self, steps: Iterator[float]) -> bool:
        """
        Tell whether the columns of the table are others than when the session began.

        @raise ServerError: it does not tell; so does L{ConnectionFailed}.
        """
        return self._run(steps, lambda: self._read_layout().types != self._types)

    def close(self) -> None:
        """Close the connection, without waiting for the server."""
        self._connection.close()

    # -- one transaction ---------------------------------------------------------------------------------------------

    def _store(self, rows: Sequence[bytes]) -> int:
        count = len(rows)
        self._execute(b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", "BEGIN")
        if self._connection.pgconn.transaction_status != pq.TransactionStatus.INTRANS:
            raise ConnectionFailed("it says that it has begun a transaction, and that there is none")
        self._has_rows = True
        with self._connection.cursor() as cursor:
            with cursor.copy(self._copy) as copy:
                copy.write(b"".join(rows))
            taken = new = cursor.rowcount
            if self._insert is not None:
                new = cursor.execute(self._insert).rowcount
        if taken != count:
            raise ConnectionFailed(f"it says that it took {taken} of {count} rows")
        if new < count:
            # A transaction that changes nothing waits neither for the disk nor for a standby when it commits (see
            # RecordTransactionCommit in xact.c). This one says that all rows are safe, those of an earlier transaction
            # among them, which may have been cut off from its standby. A change of the catalog is waited for.
            self._has_rows = False
            self._execute(b"CREATE TEMPORARY TABLE webhookrx_known () ON COMMIT DROP")
        self._has_rows = True
        self._is_replicated = True
        self._is_committing = True
        self._execute(b"COMMIT", "COMMIT")
        if self._connection.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            raise ConnectionFailed("it says that it has committed, and that the transaction goes on")
        if not self._is_replicated:
            raise ConnectionFailed("the transaction was committed without its standby: the wait for it was cancelled")
        return new

    def _run(self, steps: Iterator[float], work: Callable[[], _RV]) -> _RV:
        """Do something within steps, and turn errors of psycopg into ours."""
        connection = self._connection
        connection.steps = steps
        self._is_committing = self._has_rows = False
        try:
            return work()
        except OutOfTime:
            self._cancel()
            raise ConnectionFailed("no answer came in time") from None
        except psycopg.Error as error:
            failure = self._failure_of(error)
        # Without the error as its cause, whose text quotes rows.
        if isinstance(failure, ServerError):
            self._roll_back()
        raise failure

    def _failure_of(self, error: psycopg.Error) -> ServerError | ConnectionFailed:
        sqlstate = error.sqlstate
        if sqlstate is None or self._connection.closed or self._connection.broken:
            name = type(error).__name__
            code = f"{sqlstate} " if sqlstate is not None and _SQLSTATE.fullmatch(sqlstate) else ""
            return ConnectionFailed(f"the connection was lost ({code}{name})")
        if not _SQLSTATE.fullmatch(sqlstate):
            # It may be any text, and that of any class.
            return ConnectionFailed("its error has no SQLSTATE")
        diagnosis = error.diag
        return ServerError(
            sqlstate,
            type(error).__name__,
            has_rows=self._has_rows,
            constraint=bool(diagnosis.constraint_name),
            column=diagnosis.column_name,
        )

    def _roll_back(self) -> None:
        if self._connection.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            try:
                self._execute(b"ROLLBACK")
            except (OutOfTime, psycopg.Error) as error:
                raise ConnectionFailed(f"the connection was lost ({type(error).__name__})") from None

    def _cancel(self) -> None:
        """
        Ask the server to end what it does, so that it does not hold locks for nobody.

        Not a C{COMMIT}: cancelled while it waits for a standby, it would let others see what no standby has.
        """
        if not self._is_committing:
            with suppress(Exception):
                self._connection.cancel_safe(timeout=CANCEL_TIME)

    def _execute(self, statement: bytes, expected: str | None = None) -> None:
        status = self._connection.execute(statement).statusmessage
        if expected is not None and status != expected:
            # As for a transaction that the server has rolled back: to COMMIT it answers ROLLBACK, without an error.
            raise ConnectionFailed(f"it does not answer {expected} to {statement.split()[0].decode()}")

    def _note(self, diagnosis: psycopg.errors.Diagnostic) -> None:
        # Somebody has cancelled the wait: a warning is all that tells it from a commit as it should be (syncrep.c).
        if diagnosis.source_function == "SyncRepWaitForLSN":
            self._is_replicated = False

    # -- the beginning -----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        target = self._target
        milliseconds = max(round(target.timeout * 1000), 1)
        seconds = max(round(target.timeout), 1)
        settings = {
            "synchronous_commit": target.sync,
            "statement_timeout": milliseconds,
            "idle_in_transaction_session_timeout": milliseconds,
            "tcp_keepalives_idle": seconds,
            "tcp_keepalives_interval": seconds,
            "tcp_keepalives_count": 3,
        }
        self._execute("; ".join(f"SET {name} = {value}" for name, value in settings.items()).encode())
        layout = self._read_layout()
        if layout.read_only:
            raise ServerError("25006", "ReadOnlySqlTransaction")
        if layout.types is None and target.create:
            self._execute(self._table.ddl().encode())
            layout = self._read_layout()
        if layout.types is None:
            raise ServerError("42P01", "UndefinedTable")
        problem = self._table.misfit(layout.types)
        if problem is not None:
            raise ConnectionFailed(problem)
        self.warnings = layout.warnings
        self._types = layout.types
        self._prepare(layout.types)

    def _read_layout(self) -> Layout:
        rows = self._connection.execute(_LAYOUT, (self._table.identifier,)).fetchall()
        types = {str(row[3]): str(row[4]) for row in rows if row[3] is not None}
        warnings: list[str] = []
        if rows[0][0] != "on":
            warnings.append("fsync is off on the server: a crash may lose what it has committed")
        if rows[0][2] not in (None, "p"):
            warnings.append("the table is unlogged or temporary: a crash empties it")
        if any(types.get(column.name) == "jsonb" for column in self._table.columns):
            warnings.append("a column of type jsonb refuses messages with a NUL; json takes them")
        return Layout(rows[0][1] == "on", types if rows[0][2] is not None else None, tuple(warnings))

    def _prepare(self, types: dict[str, str]) -> None:
        table = self._table
        into, names = table.identifier, table.names
        if table.unique is not None:
            # The types are those of the table, so that a value is refused here as it is there; without its constraints,
            # and without the right to read it.
            columns = ", ".join(f"{quote_name(column.name)} {types[column.name]}" for column in table.columns)
            # Numbered: a row that fits into what is left of an earlier page is read before those of later pages.
            place = f"{_PLACE} bigint GENERATED ALWAYS AS IDENTITY"
            self._execute(f"CREATE TEMPORARY TABLE webhookrx_batch ({columns}, {place}) ON COMMIT DELETE ROWS".encode())
            into = _BATCH
            # With the columns named: a row that meets any other unique index is an error, and not passed over.
            unique = ", ".join(map(quote_name, table.unique))
            select = f"SELECT {names} FROM {_BATCH} ORDER BY {_PLACE}"  # noqa: S608  # all names are quoted
            self._insert = (
                f"INSERT INTO {table.identifier} ({names}) {select} ON CONFLICT ({unique}) DO NOTHING".encode()
            )
        self._copy = f"COPY {into} ({names}) FROM STDIN".encode()
