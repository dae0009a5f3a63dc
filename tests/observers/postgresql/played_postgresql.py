"""PostgreSQL as the postgresql observer meets it: played in the place of connections of psycopg."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg import pq

from webhookrx.observers.postgresql.answers import ConnectionFailed

TYPES = {
    "id": "text",
    "received": "timestamp with time zone",
    "source": "text",
    "host": "character varying(40)",
    "message": "json",
}


def error_of(sqlstate: str, text: str = "", **diagnosis: str) -> psycopg.Error:
    """Return an error as psycopg raises it for an answer of the server."""
    kind = psycopg.errors.lookup(sqlstate)
    made = type(kind.__name__, (kind,), {"diag": property(lambda _: SimpleNamespace(**{**_EMPTY, **diagnosis}))})
    return made(text)  # type: ignore[no-any-return]


_EMPTY = {"constraint_name": None, "column_name": None}


class PlayedServer:
    """
    One table with a primary key, and transactions.

    @ivar rows: the rows that are committed: text format of COPY, in order.
    @ivar statements: every statement of every session, COPY included.
    @ivar password: that of the last connection.
    @ivar fail: called with each statement before it is run; what it returns is its command status and the number of its
        rows in place of the right ones.
    @ivar lose: the statement whose answer is lost, once.
    @ivar status: a statement, and what the server says of its transaction behind it.
    """

    def __init__(self, sleep: Callable[[float], object]) -> None:
        self.rows: list[bytes] = []
        self.statements: list[bytes] = []
        self.types: dict[str, str] | None = dict(TYPES)
        self.settings = {"fsync": "on", "transaction_read_only": "off"}
        self.persistence = "p"
        self.password: str | None = None
        self.connections = 0
        self.is_away = False
        self.is_stalled = False
        self.refused: str | None = None
        self.lose: bytes | None = None
        self.fail: Callable[[bytes], tuple[str, int] | None] = lambda _: None
        self.status: tuple[bytes, pq.TransactionStatus] | None = None
        self.refusal: Callable[[bytes], psycopg.Error] = lambda _: error_of("22P02")
        self.sleep = sleep

    def connect(self, target: Any, password: str | None, steps: Iterator[float]) -> Iterator[Any]:
        """Take the place of L{webhookrx.observers.postgresql.connection.connect}."""
        if self.is_away:
            raise ConnectionFailed("127.0.0.1:5432: Connection refused")
        if self.is_stalled:
            self.let_pass(steps)
            raise ConnectionFailed("127.0.0.1:5432: the connection was not there in time")
        self.password = password
        self.connections += 1
        yield PlayedConnection(self)
        raise ConnectionFailed("there is no further server")

    def let_pass(self, steps: Iterator[float]) -> None:
        """Wait to the end of the steps."""
        for step in steps:
            self.sleep(step)

    def ids(self) -> list[bytes]:
        """Return the first field of each row."""
        return [row.split(b"\t")[0] for row in self.rows]


class PlayedConnection:
    """A connection, and its transaction."""

    closed = broken = False
    prepare_threshold: int | None = 5
    autocommit = False
    steps: Iterator[float] = iter(())

    def __init__(self, server: PlayedServer) -> None:
        self.server = server
        self.notice_handlers: list[Callable[[Any], None]] = []
        self.pgconn = SimpleNamespace(transaction_status=pq.TransactionStatus.IDLE)
        self.batch: list[bytes] = []
        self.new: list[bytes] = []
        self.cancelled = 0

    def add_notice_handler(self, handler: Callable[[Any], None]) -> None:
        """Note it."""
        self.notice_handlers.append(handler)

    def close(self) -> None:
        """End its transaction."""
        self.closed = True

    def cancel_safe(self, timeout: float) -> None:
        """Count it."""
        self.cancelled += 1
        self.server.sleep(timeout)

    def cursor(self) -> PlayedCursor:
        """Return one."""
        return PlayedCursor(self)

    def execute(self, statement: bytes, parameters: Sequence[object] = ()) -> PlayedCursor:
        """Run a statement."""
        cursor = self.cursor()
        cursor.execute(statement if isinstance(statement, bytes) else statement.encode())
        return cursor


class PlayedCursor:
    """Runs statements."""

    def __init__(self, connection: PlayedConnection) -> None:
        self.connection = connection
        self.server = connection.server
        self.statusmessage = ""
        self.rowcount = -1

    def __enter__(self) -> PlayedCursor:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @contextmanager
    def copy(self, statement: bytes) -> Iterator[Any]:
        """Take rows, all of them or none."""
        written: list[bytes] = []
        yield SimpleNamespace(write=written.append)
        rows = b"".join(written).splitlines(keepends=True)
        self._run(statement, lambda: self._copy(rows))

    def execute(self, statement: bytes) -> PlayedCursor:
        """Run a statement."""
        word = statement.split()[0]
        work = {b"BEGIN": self._begin, b"COMMIT": self._commit, b"ROLLBACK": self._roll_back, b"INSERT": self._insert}
        self._run(statement, work.get(word, lambda: None))
        return self

    def fetchall(self) -> list[tuple[object, ...]]:
        """Return what is known of the table."""
        server = self.server
        start = (server.settings["fsync"], server.settings["transaction_read_only"])
        if server.types is None:
            return [(*start, None, None, None)]
        return [(*start, server.persistence, name, type) for name, type in server.types.items()]

    def _run(self, statement: bytes, work: Callable[[], None]) -> None:
        server, connection = self.server, self.connection
        server.statements.append(statement)
        if server.is_away:
            connection.closed = True
            raise psycopg.OperationalError("the connection is lost; it had the password " + str(server.password))
        if server.is_stalled:
            server.let_pass(connection.steps)
            raise _out_of_time()
        self.statusmessage = statement.split()[0].decode()
        try:
            changed = server.fail(statement)
            work()
        except psycopg.Error:
            if connection.pgconn.transaction_status != pq.TransactionStatus.IDLE:
                connection.pgconn.transaction_status = pq.TransactionStatus.INERROR
            raise
        if changed is not None:
            self.statusmessage, self.rowcount = changed
        if server.status is not None and statement.startswith(server.status[0]):
            connection.pgconn.transaction_status = server.status[1]
        if server.lose is not None and statement.startswith(server.lose):
            server.lose = None
            connection.closed = True
            raise psycopg.OperationalError("server closed the connection unexpectedly")

    def _begin(self) -> None:
        self.connection.pgconn.transaction_status = pq.TransactionStatus.INTRANS
        self.connection.batch, self.connection.new = [], []

    def _copy(self, rows: list[bytes]) -> None:
        refused = self.server.refused
        for row in rows:
            if refused is not None and refused.encode() in row:
                raise self.server.refusal(row)
        self.connection.batch = rows
        self.rowcount = len(rows)

    def _insert(self) -> None:
        known = {*self.server.ids()}
        for row in self.connection.batch:
            own = row.split(b"\t")[0]
            if own not in known:
                known.add(own)
                self.connection.new.append(row)
        self.rowcount = len(self.connection.new)

    def _commit(self) -> None:
        if self.connection.pgconn.transaction_status == pq.TransactionStatus.INERROR:
            self.statusmessage = "ROLLBACK"
        else:
            self.server.rows += self.connection.new
        self.connection.pgconn.transaction_status = pq.TransactionStatus.IDLE

    def _roll_back(self) -> None:
        self.connection.pgconn.transaction_status = pq.TransactionStatus.IDLE


def _out_of_time() -> Exception:
    from webhookrx.observers.postgresql.connection import OutOfTime

    return OutOfTime()


_UNESCAPED = {b"\\": b"\\", b"n": b"\n", b"t": b"\t", b"r": b"\r"}


def fields(row: bytes) -> list[str | None]:
    """Read a row as COPY does."""
    return [
        None if field == rb"\N" else re.sub(rb"\\(.)", lambda found: _UNESCAPED[found[1]], field).decode()
        for field in row.removesuffix(b"\n").split(b"\t")
    ]


def text_of(row: bytes) -> str:
    """Return the C{MESSAGE} in the last column."""
    line = fields(row)[-1]
    assert line is not None
    return str(json.loads(line)["MESSAGE"])
