"""The postgresql observer, with a server that is played."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.store_contract import Record, Row, StoreContract
from tests.observers.played_postgresql import PlayedServer, error_of, fields, text_of
from webhookrx.observers.postgresql import PostgreSQLObserver, begin_session
from webhookrx.observers.postgresql_options import read_postgresql
from webhookrx.observers.retrying import Retries

URL = "postgresql://127.0.0.1/logs/webhooks"


class PlayedCase(StoreContract):
    """Plays a server with one table."""

    large = "stored"

    #: Class 22 and 23 are refused once a row is alone, others of stores.md's table come later. The answer is a SQLSTATE
    #: and where it is given: at COPY, INSERT or COMMIT.
    rows = (
        Row("COMMIT", None, "stored"),
        Row("22001 string too long", ("22001", b"COPY"), "rejected"),
        Row("22021 bytes that are no text", ("22021", b"COPY"), "rejected"),
        Row("22P02 no JSON", ("22P02", b"COPY"), "rejected"),
        Row("22P05 no such character in its encoding", ("22P05", b"INSERT"), "rejected"),
        Row("23502 NULL in a column of ours", ("23502", b"INSERT", {"column_name": "host"}), "rejected"),
        Row("23503 foreign key", ("23503", b"INSERT", {"constraint_name": "of_host"}), "rejected"),
        Row("23505 another unique index", ("23505", b"INSERT", {"constraint_name": "one"}), "rejected"),
        Row("23514 check", ("23514", b"INSERT", {"constraint_name": "short"}), "rejected"),
        Row("23514 deferred to the commit", ("23514", b"COMMIT", {"constraint_name": "late"}), "rejected"),
        Row("22P04 rows that COPY can't read", ("22P04", b"COPY"), "later"),
        Row("23502 NULL in another column", ("23502", b"INSERT", {"column_name": "shift"}), "later"),
        Row("23514 no partition", ("23514", b"INSERT"), "later"),
        Row("08006 connection failure", ("08006", b"COMMIT"), "later"),
        Row("25006 read-only standby", ("25006", b"CREATE"), "later"),
        Row("28P01 password", ("28P01", b"SET"), "later"),
        Row("22023 setting", ("22023", b"SET"), "later"),
        Row("23505 two make the table", ("23505", b"SET"), "later"),
        Row("40001 serialization", ("40001", b"COMMIT"), "later"),
        Row("40P01 deadlock", ("40P01", b"INSERT"), "later"),
        Row("42501 no right", ("42501", b"INSERT"), "later"),
        Row("42703 no column", ("42703", b"COPY"), "later"),
        Row("42P01 no table", ("42P01", b"INSERT"), "later"),
        Row("42P10 no unique index", ("42P10", b"INSERT"), "later"),
        Row("53100 disk full", ("53100", b"COMMIT"), "later"),
        Row("53200 out of memory", ("53200", b"COPY"), "later"),
        Row("53300 too many connections", ("53300", b"SET"), "later"),
        Row("54000 index row too large", ("54000", b"INSERT"), "later"),
        Row("55P03 lock", ("55P03", b"INSERT"), "later"),
        Row("57014 statement timeout", ("57014", b"INSERT"), "later"),
        Row("57P01 shut down", ("57P01", b"COPY"), "later"),
        Row("58030 I/O error", ("58030", b"COMMIT"), "later"),
        Row("P0001 raised by a trigger", ("P0001", b"INSERT"), "later"),
        Row("XX000 internal error", ("XX000", b"COPY"), "later"),
        Row("a code of no class", ("ZZ999", b"COPY"), "later"),
    )
    #: Statement, command status and number of rows: what psycopg would hand on, had the server said so.
    nonsense = (
        (b"COMMIT", "ROLLBACK", -1),
        (b"COMMIT", "", -1),
        (b"COMMIT", "BEGIN", -1),
        (b"BEGIN", "COMMIT", -1),
        (b"COPY", "COPY 0", 0),
        (b"COPY", "COPY 99", 99),
        (b"INSERT", "INSERT 0 99", 99),
        (b"INSERT", "SELECT", -1),
    )
    #: Columns of a message, as the options of the spec string.
    options: Mapping[str, str] = {}

    def setUp(self) -> None:
        super().setUp()
        self.server = PlayedServer(self.time.sleep)

    def make_observer(self) -> PostgreSQLObserver:
        return self._make({})

    def _make(self, more: Mapping[str, str]) -> PostgreSQLObserver:
        target = read_postgresql([URL], {**self.options, **more})
        retries = Retries(target.retry_for, self.time, lambda: 1.0, self.time)
        return PostgreSQLObserver(
            "postgresql:played", target, partial(begin_session, connect=self.server.connect), retries
        )

    def stored_records(self) -> list[Record]:
        return [Record(str(fields(row)[0]), text_of(row)) for row in self.server.rows]

    def answer_with(self, answer: Any) -> None:
        if answer is None:
            return
        if len(answer) == 3 and isinstance(answer[1], str):
            self.server.fail = lambda statement: answer[1:] if statement.startswith(answer[0]) else None
            return
        sqlstate, word, *more = answer

        def fail(statement: bytes) -> None:
            if statement.startswith(word):
                raise error_of(sqlstate, "Key (id)=(secret row) is wrong", **(more[0] if more else {}))

        self.server.fail = fail

    def break_observer(self) -> None:
        self.server.is_away = True

    def mend(self) -> None:
        server = self.server
        server.is_away = server.is_stalled = False
        server.refused = server.lose = None
        server.fail = lambda _: None

    def lose_answer(self) -> None:
        self.server.lose = b"COMMIT"

    def store_half(self) -> None:
        # All of a transaction or nothing.
        self.server.lose = b"INSERT"

    def stall(self) -> None:
        self.server.is_stalled = True

    def refuse(self, text: str) -> None:
        self.server.refused = text

    def make_secret_observer(self, path: str) -> PostgreSQLObserver:
        return self._make({"password_file": path})

    def shown_secret(self) -> str:
        return str(self.server.password)

    def quote_secret(self) -> None:
        def fail(statement: bytes) -> None:
            raise error_of("28P01", f"password {self.server.password!r} is wrong", constraint_name="x")

        self.server.fail = fail


class ContractTests(PlayedCase, SynchronousTestCase):
    """The contract of stores."""


class _NotYet:
    """What this observer does beside the contract."""
