"""The postgresql observer, with a server that is played."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

from psycopg import pq
from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.secret_contract import all_texts
from tests.contracts.store_contract import Record, Row, StoreContract
from tests.observers.postgresql.played_postgresql import PlayedServer, error_of, fields, text_of
from webhookrx.errors import ConfigError, Rejected, Unavailable
from webhookrx.observers.postgresql.connection import OutOfTime
from webhookrx.observers.postgresql.observer import PostgreSQLObserver, begin_session, build_postgresql
from webhookrx.observers.postgresql.options import read_postgresql
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
        Row("22023 setting at BEGIN", ("22023", b"BEGIN"), "later"),
        Row("23514 at BEGIN", ("23514", b"BEGIN", {"constraint_name": "x"}), "later"),
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


def _fail_with(code: str, statement: bytes) -> None:
    """Answer an INSERT with an error of that code."""
    if statement.startswith(b"INSERT"):
        error = error_of("22000")
        error.sqlstate = code
        raise error


class ContractTests(PlayedCase, SynchronousTestCase):
    """The contract of stores."""


class ObserverTests(PlayedCase, SynchronousTestCase):
    """What this observer does beside the contract."""

    def test_statements(self) -> None:
        """A session sets what is to hold, and each batch is one transaction."""
        observer = self._make({"sync": "remote_apply", "timeout": "3s"})
        observer.open()
        self.store(observer, "one", "two")

        settings, layout, temporary, *transaction = self.server.statements
        self.assertEqual(
            b"SET synchronous_commit = remote_apply; SET statement_timeout = 3000; "
            b"SET idle_in_transaction_session_timeout = 3000; SET tcp_keepalives_idle = 3; "
            b"SET tcp_keepalives_interval = 3; SET tcp_keepalives_count = 3",
            settings,
        )
        self.assertIn(b"to_regclass", layout)
        self.assertEqual(
            b'CREATE TEMPORARY TABLE webhookrx_batch ("id" text, "received" timestamp with time zone, "source" text, '
            b'"host" character varying(40), "message" json, webhookrx_batch_place bigint GENERATED ALWAYS AS IDENTITY) '
            b"ON COMMIT DELETE ROWS",
            temporary,
        )
        names = b'"id", "received", "source", "host", "message"'
        self.assertEqual(
            [
                b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
                b"COPY pg_temp.webhookrx_batch (%s) FROM STDIN" % names,
                b'INSERT INTO "webhooks" (%s) SELECT %s FROM pg_temp.webhookrx_batch ORDER BY webhookrx_batch_place '
                b'ON CONFLICT ("id") DO NOTHING' % (names, names),
                b"COMMIT",
            ],
            transaction,
        )

    def test_dedup_off(self) -> None:
        """With dedup=no rows are copied into the table itself."""
        observer = self._make({"dedup": "no"})
        observer.open()
        self.store(observer, "one")

        self.assertNotIn(b"INSERT", b" ".join(self.server.statements))
        self.assertIn(b'COPY "webhooks" (', b" ".join(self.server.statements))

    def test_known(self) -> None:
        """What was there already is counted, and its safety asked for by a change that is waited for."""
        observer = self.opened()
        self.store(observer, "one", "two")
        self.assertNotIn(b"webhookrx_known", b" ".join(self.server.statements))

        self.store(observer, "one", "two", "three")

        self.assertEqual(2, observer.counts.take().known)
        self.assertIn(b"CREATE TEMPORARY TABLE webhookrx_known () ON COMMIT DROP", self.server.statements)

    def test_create(self) -> None:
        """The table is made only with create=yes, and only where there is none."""
        for create, made in (("no", False), ("yes", True)):
            self.server.types = None
            observer = self._make({"create": create})
            observer.open()
            self.assertEqual(["later"], self.fates(observer, "one"))
            statements = b" ".join(self.server.statements)
            self.assertEqual(made, b'CREATE TABLE IF NOT EXISTS "webhooks"' in statements)

    def test_read_only(self) -> None:
        """A server that takes no rows is left, and the next of the URL tried; the reason of the last one is told."""
        self.server.settings["transaction_read_only"] = "on"
        observer = self.opened()

        error = self.assertRaises(Unavailable, self.store, observer, "one")

        self.assertIn("it answers 25006 ReadOnlySqlTransaction: it is read-only: a standby", str(error))

    def test_not_replicated(self) -> None:
        """A commit whose wait for the standby was cancelled is not believed, though the server answers COMMIT."""
        observer = self.opened()
        self.store(observer, "one")
        handlers = observer._session._connection.notice_handlers

        def cancel(statement: bytes) -> None:
            if statement == b"COMMIT":
                for handler in handlers:
                    handler(SimpleNamespace(source_function="SyncRepWaitForLSN"))

        self.server.fail = cancel
        self.assertEqual(["later"], self.fates(self._with_no_time(observer), "two"))

    def _with_no_time(self, observer: PostgreSQLObserver) -> PostgreSQLObserver:
        observer._retries._retry_for = -1.0
        return observer

    def test_cancel(self) -> None:
        """A statement that takes too long is cancelled, but for COMMIT: others would see what no standby has."""
        for word, cancelled in ((b"INSERT", 1), (b"COMMIT", 0)):
            with self.subTest(word):
                observer = self._with_no_time(self.opened())
                self.store(observer, f"before {word!r}")
                connection = observer._session._connection

                def stall(statement: bytes, word: bytes = word) -> None:
                    self.server.is_stalled = self.server.is_stalled or statement.startswith(word)
                    if self.server.is_stalled:
                        raise OutOfTime

                self.server.fail = stall
                self.fates(observer, "one")
                self.assertEqual(cancelled, connection.cancelled)
                self.assertTrue(connection.closed)
                self.mend()

    def test_table_changed(self) -> None:
        """A row is refused by the table as it is, not as it was when the session began."""
        observer = self.opened()
        self.store(observer, "one")
        assert self.server.types is not None
        self.server.types["host"] = "text"
        self.server.refused = "two"
        self.time.at(0.1, self.mend)

        self.assertIsNone(self.store(observer, "two"))

        self.assertEqual(2, self.server.connections)

    def test_transaction_that_goes_on(self) -> None:
        """A COMMIT behind which the transaction goes on has committed nothing, and BEGIN without one has begun none."""
        status = pq.TransactionStatus
        for told in ((b"COMMIT", status.INTRANS), (b"COMMIT", status.INERROR), (b"BEGIN", status.IDLE)):
            with self.subTest(str(told)):
                observer = self._with_no_time(self.opened())
                self.server.status = told
                self.assertEqual(["later"] * 2, self.fates(observer, "one", "two"))
                self.server.status = None
                observer.close()

    def test_known_rows_and_no_temporary_table(self) -> None:
        """Rows that are known are not refused by an error of what makes the server wait for its standby."""
        observer = self._with_no_time(self.opened())
        self.store(observer, "one")
        self.answer_with(("22023", b"CREATE"))
        self.assertEqual(["later"], self.fates(observer, "one"))

    def test_code_that_is_none(self) -> None:
        """What is no SQLSTATE refuses no row, and is not quoted: it may be any text, such as the password."""
        for code in ("22\x1b[1", "22p02", "23 hunter2", "22\n00", ""):
            with self.subTest(repr(code)):
                observer = self._with_no_time(self.opened())
                self.server.fail = partial(_fail_with, code)
                (outcome,) = self.outcomes(observer, "one")
                self.assertIsInstance(outcome, Unavailable)
                self.assertEqual("its error has no SQLSTATE", str(outcome))
                self.mend()
                observer.close()

    def test_other_error_then_new_session(self) -> None:
        """After any error but a refusal the next try has a session of its own."""
        observer = self._with_no_time(self.opened())
        for sqlstate, sessions in (("23505", 1), ("42P01", 2), ("57014", 3)):
            self.answer_with((sqlstate, b"INSERT", {"constraint_name": "x"}))
            self.fates(observer, "one")
            self.mend()
            self.assertIsNone(self.store(observer, "one"))
            self.assertEqual(sessions, self.server.connections)

    def test_bisecting_in_time(self) -> None:
        """However slow the server is, each call is done with some messages, and ends in time."""
        observer = self.opened()
        self.server.refused = "bad"

        def slow(statement: bytes) -> None:
            if statement.startswith(b"COPY"):
                self.time.sleep(3.0)

        self.server.fail = slow
        began = self.time.now
        fates = self.fates(observer, *["good", "bad"] * 8)

        self.assertEqual(["stored", "rejected"], fates[:2])
        self.assertEqual("later", fates[-1])
        self.assertLess(self.time.now - began, 45.0)

    def test_warnings(self) -> None:
        """What may lose messages on the server is said once, not for each session."""
        self.server.settings["fsync"] = "off"
        self.server.persistence = "u"
        assert self.server.types is not None
        self.server.types["message"] = "jsonb"
        observer = self._with_no_time(self.opened())
        with all_texts() as log:
            for text in "abc":
                self.store(observer, text)
                observer.reopen()

        said = [text for text in log if "Observer postgresql:played: " in text]
        self.assertEqual(3, len(said), log)
        for word in ("fsync is off", "unlogged", "jsonb"):
            self.assertEqual(1, sum(word in text for text in said))

    def test_texts(self) -> None:
        """An error quotes nothing of the server but its code."""
        observer = self._with_no_time(self.opened())
        self.answer_with(("42P01", b"INSERT"))
        self.assertIn("it answers 42P01 UndefinedTable: the table is missing", str(self.outcomes(observer, "one")[0]))
        self.answer_with(("22P02", b"COPY"))
        outcome = self.outcomes(observer, "one")[0]
        self.assertIsInstance(outcome, Rejected)
        self.assertEqual("it answers 22P02 InvalidTextRepresentation", str(outcome))
        self.assertIsNone(outcome.__cause__)

    def test_files(self) -> None:
        """A file that is missing is a mistake when the observer is made."""
        for option in ("password_file", "ca_file"):
            error = self.assertRaises(
                ConfigError, build_postgresql, "postgresql:x", [URL], {option: "/nosuch"}, "durable"
            )
            self.assertIn(option, str(error))
            self.assertIn("/nosuch", str(error))
