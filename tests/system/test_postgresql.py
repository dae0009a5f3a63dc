"""The postgresql observer and a real PostgreSQL, which is killed, frozen, cut off and set up wrongly."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from cryptography import x509

from tests import LONG
from tests.system.certificates import Authority, write_ca_file
from tests.system.receiver import wait_until
from tests.system.servers.postgresql_server import PostgresqlServer, _programs
from tests.system.servers.process import ServerCase
from tests.system.servers.proxy import Proxy
from webhookrx.config.observers import parse_observer
from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers import registry
from webhookrx.testing import make_message

HURRY_TIME = 3.0
MESSAGES = 200_000 if LONG else 10_000
BATCH = 500

Outcomes = Sequence[Exception | None]


def id_of(number: int) -> str:
    """Return the id of the message with this number."""
    return f"00000000-0000-0000-{number:012d}"


def prepared(observer: Any, *texts: str, first: int = 0, **values: str) -> list[bytes]:
    """Prepare messages, whose ids are numbers."""
    return [
        observer.prepare(make_message(text, {"RCPTID": id_of(first + place), "SOURCE": "web", **values}))
        for place, text in enumerate(texts)
    ]


def outcomes_of(observer: Any, batch: Sequence[bytes]) -> Outcomes:
    """Store a batch, and return what became of each message."""
    try:
        outcomes = observer.store(batch)
    except Unavailable as error:
        return [error] * len(batch)
    return [None] * len(batch) if outcomes is None else outcomes


def deliver(observer: Any, batch: Sequence[bytes], seconds: float = 60.0) -> None:
    """Offer a batch as a spool does, until all of it is stored."""
    left = list(batch)
    deadline = time.monotonic() + seconds
    while left:
        outcomes = outcomes_of(observer, left)
        assert not any(isinstance(outcome, Rejected) for outcome in outcomes), outcomes
        left = [item for item, outcome in zip(left, outcomes, strict=True) if outcome is not None]
        assert not left or time.monotonic() < deadline, outcomes
        if left:
            time.sleep(0.05)


class PostgreSQLCase(ServerCase):
    """Observers, and what the server holds."""

    server: PostgresqlServer

    def observer(
        self,
        place: str = "",
        *,
        database: str = "logs",
        table: str = "webhooks",
        with_password: bool = True,
        **options: str,
    ) -> Any:
        """
        Make an observer and open it.

        @param place: hosts and ports in the URL; empty for the server's own.
        """
        self.password_file = self.server.path("shown-password")
        if not os.path.exists(self.password_file):
            self.write_password(self.server.PASSWORD)
        given = {"create": "yes", "timeout": "5s", "retry_for": "0s", **options}
        if with_password:
            given["password_file"] = self.password_file
        spec = f"postgresql:postgresql://{place or self.server.address}/{database}/{table}:"
        spec += ":".join(f"{key}={value}" for key, value in given.items())
        observer: Any = registry.build(parse_observer(spec, registry.find_spec), "durable")
        observer.open()
        self.addCleanup(observer.close)
        return observer

    def write_password(self, password: str) -> None:
        """Write the file that observers read."""
        with open(self.password_file, "w") as file:
            file.write(f"{password}\n")
        os.chmod(self.password_file, 0o600)

    def connect(self, dbname: str = "logs") -> psycopg.Connection[Any]:
        """Connect as the owner of all."""
        server = self.server
        connection = psycopg.connect(
            f"host=127.0.0.1 port={server.port} dbname={dbname} user=webhookrx sslmode=disable",
            password=server.PASSWORD,
            autocommit=True,
        )
        self.addCleanup(connection.close)
        return connection

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as the owner of all; return the rows of the last one."""
        with self.connect() as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def reason(self, observer: Any, batch: Sequence[bytes]) -> str:
        """Store a batch that can't be stored now; return why."""
        error = self.assertRaises(Unavailable, observer.store, batch)
        self.assertNotIn(self.server.PASSWORD, str(error))
        return str(error)

    def refused(self, observer: Any, batch: Sequence[bytes]) -> dict[int, str]:
        """Store a batch; return the places of what is refused for good, and why. All else is stored."""
        found = {}
        for place, outcome in enumerate(outcomes_of(observer, batch)):
            if outcome is not None:
                self.assertIsInstance(outcome, Rejected)
                found[place] = str(outcome)
        return found

    def in_thread(self, call: Callable[[], object]) -> threading.Thread:
        """Run something beside the test."""
        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 60)
        return thread

    def wait_for(self, condition: str) -> None:
        """Wait until a query yields a row."""
        with self.connect() as connection:
            wait_until(lambda: connection.execute(condition.encode()).fetchall(), condition)


class HealthyTests(PostgreSQLCase):
    """A server that runs, and what is in its tables."""

    _shared: PostgresqlServer | None = None

    def setUp(self) -> None:
        """Use one server for all, with an empty database."""
        if HealthyTests._shared is None:
            made = PostgresqlServer()
            atexit.register(made.clean_up)
            HealthyTests._shared = made.start()
        self.server = HealthyTests._shared
        self.sql("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "GRANT USAGE ON SCHEMA public TO PUBLIC")

    def test_order_within_a_batch(self) -> None:
        """A batch is inserted in its order, whatever the sizes of its rows: a number of the table follows it."""
        columns = "n bigserial, id text PRIMARY KEY, received timestamptz, source text, host text, message json"
        self.sql(f"CREATE TABLE numbered ({columns})")
        observer = self.observer(table="numbered", create="no")
        texts = [f"{number} {'x' * (number * 7919 % 900)}" for number in range(1000)]
        self.assertIsNone(observer.store(prepared(observer, *texts)))
        self.assertIsNone(observer.store(prepared(observer, *texts, first=1000)))

        ids = [row[0] for row in self.sql("SELECT id FROM numbered ORDER BY n")]
        self.assertEqual([id_of(number) for number in range(2000)], ids)

    def test_stored(self) -> None:
        """Each message is a row under its own id, with the moment to the microsecond and the line as it is."""
        observer = self.observer()
        hostile = 'a\r\nb\x00\x1b[2J{log_format} ${HOST} %s "\\ \\. \\N \u2028\u202e\x85 é 😀\t'

        deliver(observer, prepared(observer, "one", hostile, HOST=hostile))

        rows = self.sql("SELECT id, received AT TIME ZONE 'UTC', source, host, message::text FROM webhooks ORDER BY id")
        self.assertEqual([id_of(0), id_of(1)], [row[0] for row in rows])
        self.assertEqual("2026-01-02 03:04:05.678901", str(rows[0][1]))
        self.assertEqual(["web", hostile.replace("\0", r"\x00")], [rows[1][2], rows[1][3]])
        line = observer.prepare(make_message(hostile, {"RCPTID": id_of(1), "SOURCE": "web", "HOST": hostile}))
        self.assertEqual(line.split(b"\t")[-1][:-1].replace(b"\\\\", b"\\"), rows[1][4].encode())

    def test_once(self) -> None:
        """A batch that comes again, or in part, is stored once; what was known is counted."""
        observer = self.observer()
        batch = prepared(observer, *map(str, range(1000)))

        deliver(observer, batch[:600])
        deliver(observer, batch)
        deliver(observer, [*batch[:3], *batch[:3]])

        self.assertEqual([(1000,)], self.sql("SELECT count(*) FROM webhooks"))
        self.assertEqual(600 + 6, observer.counts.take().known)

    def test_without_id(self) -> None:
        """Messages without an id are refused, not taken for one another."""
        observer = self.observer()

        self.assertEqual(
            {0: "it answers 23502 NotNullViolation", 1: "it answers 23502 NotNullViolation"},
            self.refused(observer, prepared(observer, "one", "two", RCPTID="")),
        )

    def test_dedup_off(self) -> None:
        """With dedup=no rows are only added, by a role that may do nothing else."""
        self.sql(
            "CREATE TABLE webhooks (id text, received timestamptz, source text, host text, message json)",
            "DO $$BEGIN CREATE ROLE adder LOGIN PASSWORD 'pg-5ecret'; EXCEPTION WHEN duplicate_object THEN END$$",
            "GRANT INSERT ON webhooks TO adder",
        )
        observer = self.observer(dedup="no", user="adder", create="no")
        batch = prepared(observer, "one", "two")

        deliver(observer, batch)
        deliver(observer, batch)

        self.assertEqual([(4,)], self.sql("SELECT count(*) FROM webhooks"))

    def test_rights(self) -> None:
        """A role needs INSERT, and SELECT on the id alone; without it comes a sentence."""
        self.observer().store(prepared(self.observer(), "one"))
        self.sql(
            "DO $$BEGIN CREATE ROLE adder LOGIN PASSWORD 'pg-5ecret'; EXCEPTION WHEN duplicate_object THEN END$$",
            "GRANT INSERT ON webhooks TO adder",
        )
        observer = self.observer(user="adder")
        batch = prepared(observer, "two", first=1)
        self.assertIn("42501 InsufficientPrivilege: it takes GRANT INSERT", self.reason(observer, batch))
        self.sql("GRANT SELECT (id) ON webhooks TO adder")

        deliver(observer, batch)

        self.assertEqual([(2,)], self.sql("SELECT count(*) FROM webhooks"))

    def test_refused_rows(self) -> None:
        """Only rows that the table refuses are refused, with the code and without a word of theirs."""
        self.sql(
            "CREATE TABLE webhooks (id text PRIMARY KEY, received timestamptz NOT NULL, source text, "
            "host varchar(12) CHECK (host <> 'bad.host'), message jsonb, once text UNIQUE, day int)"
        )
        observer = self.observer(columns="id,received,source,host,message,once=${once},day=${day}")
        batch = [
            *prepared(observer, "a", HOST="short", once="1"),
            *prepared(observer, "secret", first=1, HOST="much.too.long.a.host"),
            *prepared(observer, "secret", first=2, HOST="bad.host"),
            *prepared(observer, "secret\0", first=3),
            *prepared(observer, "secret", first=4, once="1"),
            *prepared(observer, "secret", first=5, day="Monday"),
            *prepared(observer, "b", first=6, once="2", day="7"),
        ]

        found = self.refused(observer, batch)

        self.assertEqual([(id_of(0), None), (id_of(6), 7)], self.sql("SELECT id, day FROM webhooks ORDER BY id"))
        self.assertEqual(
            {
                1: "it answers 22001 StringDataRightTruncation",
                2: "it answers 23514 CheckViolation",
                3: "it answers 22P05 UntranslatableCharacter",
                4: "it answers 23505 UniqueViolation",
                5: "it answers 22P02 InvalidTextRepresentation",
            },
            found,
        )

    def test_every_row_refused(self) -> None:
        """When all rows of a large batch are refused, all are, in one call."""
        self.sql(
            "CREATE TABLE webhooks (id text PRIMARY KEY, received timestamptz, source text, host varchar(1), "
            "message json)"
        )
        observer = self.observer()

        found = self.refused(observer, prepared(observer, *map(str, range(200)), HOST="long"))

        self.assertEqual([*range(200)], [*found])

    def test_wider_column(self) -> None:
        """A column that an operator has made wider takes what it would have refused before, without a restart."""
        self.sql(
            "CREATE TABLE webhooks (id text PRIMARY KEY, received timestamptz, source text, host varchar(5), "
            "message json)"
        )
        observer = self.observer(retry_for="5s")
        deliver(observer, prepared(observer, "one", HOST="short"))
        self.sql("ALTER TABLE webhooks ALTER host TYPE varchar(50)")

        deliver(observer, prepared(observer, "two", first=1, HOST="much.longer"))

        self.assertEqual([(2,)], self.sql("SELECT count(*) FROM webhooks"))

    def test_no_partition(self) -> None:
        """A day without a partition is the operator's matter: no row is refused for it, and all are stored later."""
        self.sql(
            "CREATE TABLE webhooks (id text, received timestamptz, source text, host text, message json, "
            "PRIMARY KEY (id, received)) PARTITION BY RANGE (received)"
        )
        observer = self.observer(dedup="id,received")
        batch = prepared(observer, "one", "two")
        self.assertIn("23514 CheckViolation: no partition takes the row", self.reason(observer, batch))
        self.sql("CREATE TABLE of_2026 PARTITION OF webhooks FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')")

        deliver(observer, batch)
        deliver(observer, batch)

        self.assertEqual([(2,)], self.sql("SELECT count(*) FROM webhooks"))

    def test_table_set_up_wrongly(self) -> None:
        """What is wrong with the table refuses no message: it is said, and once it is mended all are stored."""
        columns = "received timestamptz, source text, host text"
        wrong = {
            "": "42P01 UndefinedTable: the table is missing",
            f"CREATE TABLE webhooks (id text PRIMARY KEY, {columns})": "no column 'message'",
            f"CREATE TABLE webhooks (id text PRIMARY KEY, {columns}, message int)": "column 'message' is of a type",
            f"CREATE TABLE webhooks (id text, {columns}, message json)": "42P10 InvalidColumnReference: no unique",
            f"CREATE TABLE webhooks (id text PRIMARY KEY, {columns}, message json, shift int NOT NULL)": (
                "23502 NotNullViolation: a column that columns= does not fill"
            ),
            f"CREATE TABLE webhooks (id text PRIMARY KEY, {columns}, message json); "
            "ALTER DATABASE logs SET default_transaction_read_only = on": (
                "25006 ReadOnlySqlTransaction: it is read-only"
            ),
        }
        observer = self.observer(create="no")
        batch = prepared(observer, "one", "two")
        for statement, said in wrong.items():
            with self.subTest(statement):
                if statement:
                    self.sql(*statement.split("; "))
                self.assertIn(said, self.reason(observer, batch))
                self.sql(
                    "SET default_transaction_read_only = off",
                    "ALTER DATABASE logs RESET ALL",
                    "DROP TABLE IF EXISTS webhooks",
                )
        self.sql(f"CREATE TABLE webhooks (id text PRIMARY KEY, {columns}, message json)")

        deliver(observer, batch)

        self.assertEqual([(2,)], self.sql("SELECT count(*) FROM webhooks"))

    def test_table_dropped(self) -> None:
        """A table that is dropped while the observer runs, and made again, costs no message."""
        observer = self.observer(create="no")
        self.sql(observer._target.table.ddl())
        deliver(observer, prepared(observer, "one"))
        self.sql("DROP TABLE webhooks")
        batch = prepared(observer, "two", first=1)
        self.assertIn("42P01", self.reason(observer, batch))
        self.sql(observer._target.table.ddl())

        deliver(observer, batch)

        self.assertEqual([(id_of(1),)], self.sql("SELECT id FROM webhooks"))

    def test_other_schema(self) -> None:
        """Names in the URL are taken as they are: a schema, and capital letters, quotes and dots."""
        self.sql('CREATE SCHEMA "Of Logs"')
        observer = self.observer(table='Of%20Logs.we"b%2Ehooks', columns='My"Id=id,message')

        deliver(observer, prepared(observer, "one"))

        self.assertEqual([(1,)], self.sql('SELECT count("My""Id") FROM "Of Logs"."we""b.hooks"'))

    def test_environment(self) -> None:
        """What the environment and the role would weaken is set by the session itself."""
        self.sql("ALTER ROLE webhookrx SET synchronous_commit = off")
        self.addCleanup(self.sql, "ALTER ROLE webhookrx RESET ALL")
        for name, value in (("PGOPTIONS", "-c synchronous_commit=off"), ("PGSSLMODE", "require"), ("PGPORT", "1")):
            self.patch(os, "environ", {**os.environ, name: value})
            os.putenv(name, value)
            self.addCleanup(os.unsetenv, name)
        self.sql(
            "CREATE TABLE webhooks (id text PRIMARY KEY, received timestamptz, source text, host text, message json, "
            "sync text DEFAULT current_setting('synchronous_commit'))"
        )
        observer = self.observer(create="no")
        other = self.observer(create="no", sync="remote_apply")

        deliver(observer, prepared(observer, "one"))
        deliver(other, prepared(other, "two", first=1))

        self.assertEqual([("on",), ("remote_apply",)], self.sql("SELECT sync FROM webhooks ORDER BY id"))

    def test_unlogged(self) -> None:
        """A table that a crash empties is said once."""
        self.sql(
            "CREATE UNLOGGED TABLE webhooks (id text PRIMARY KEY, received timestamptz, source text, host text, "
            "message json)"
        )
        observer = self.observer()

        deliver(observer, prepared(observer, "one"))

        self.assertEqual(("the table is unlogged or temporary: a crash empties it",), observer._session.warnings)

    def test_password(self) -> None:
        """A new password is used after a reopen; with a wrong one comes a sentence without it."""
        observer = self.observer()
        deliver(observer, prepared(observer, "one"))
        self.write_password("wrong-5ecret")
        observer.reopen()
        batch = prepared(observer, "two", first=1)
        said = self.reason(observer, batch)
        self.assertIn("it refuses the connection, after it was shown the password", said)
        self.assertNotIn("wrong-5ecret", said)
        self.write_password(self.server.PASSWORD)
        observer.reopen()

        deliver(observer, batch)

        self.assertEqual([(2,)], self.sql("SELECT count(*) FROM webhooks"))

    def test_no_password(self) -> None:
        """Without password_file= none is shown, wherever libpq would find one."""
        os.putenv("PGPASSWORD", self.server.PASSWORD)
        self.addCleanup(os.unsetenv, "PGPASSWORD")
        spec = f"postgresql:postgresql://127.0.0.1:{self.server.port}/logs/webhooks:retry_for=0s"
        observer: Any = registry.build(parse_observer(spec, registry.find_spec), "durable")
        observer.open()
        self.addCleanup(observer.close)

        self.assertIn("it wants a password", self.reason(observer, prepared(observer, "one")))

    def test_no_database(self) -> None:
        """A database or port that is not there is later."""
        observer = self.observer(database="nosuch")
        self.assertIn("after it was shown the password", self.reason(observer, prepared(observer, "one")))
        other = self.observer("127.0.0.1:1")

        self.assertIn("Connection refused", self.reason(other, prepared(other, "one")))

    def test_large(self) -> None:
        """A message of 10 MiB, and a batch of many megabytes, come back as they were."""
        observer = self.observer(timeout="50s")
        large = "\\\n\0é" * (2 * 1024 * 1024)

        deliver(observer, prepared(observer, "before", large, "after"))
        deliver(observer, prepared(observer, *["x" * 100_000] * 100, first=3))

        [(text,)] = self.sql(f"SELECT message::text FROM webhooks WHERE id = '{id_of(1)}'")
        self.assertTrue(large == json.loads(text)["MESSAGE"])
        self.assertEqual([(103,)], self.sql("SELECT count(*) FROM webhooks"))

    def test_locked(self) -> None:
        """A table that is locked is left in time, and nothing of ours keeps waiting in the server."""
        observer = self.observer(timeout="1s")
        deliver(observer, prepared(observer, "one"))
        with self.connect() as other, other.transaction():
            other.execute("LOCK TABLE webhooks")
            batch = prepared(observer, "two", first=1)
            began_at = time.monotonic()
            self.reason(observer, batch)
            self.assertLess(time.monotonic() - began_at, 10.0)
            self.wait_for("SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")

        deliver(observer, batch)

        self.assertEqual([(2,)], self.sql("SELECT count(*) FROM webhooks"))

    def test_hurry_while_locked(self) -> None:
        """Told to hurry while its statement waits for a lock, it ends soon, and so does the statement."""
        observer = self.observer(timeout="60s")
        deliver(observer, prepared(observer, "one"))
        with self.connect() as other, other.transaction():
            other.execute("LOCK TABLE webhooks")
            found: list[Outcomes] = []
            batch = prepared(observer, "two", first=1)
            thread = self.in_thread(lambda: found.append(outcomes_of(observer, batch)))
            self.wait_for("SELECT FROM pg_locks WHERE NOT granted")
            began_at = time.monotonic()
            observer.hurry()
            thread.join(60)
            self.assertLess(time.monotonic() - began_at, HURRY_TIME)
            self.assertIsInstance(found[0][0], Unavailable)
            self.wait_for("SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")

    def test_terminated(self) -> None:
        """A server that ends the session for an operator costs no message."""
        observer = self.observer()
        deliver(observer, prepared(observer, "one"))
        self.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'webhookrx'")

        deliver(observer, prepared(observer, "two", first=1))

        self.assertEqual([(2,)], self.sql("SELECT count(*) FROM webhooks"))

    def test_answer_lost(self) -> None:
        """A commit whose answer is lost is made again, and each message is stored once."""
        proxy = Proxy(self.server.port)
        self.addCleanup(proxy.stop)
        self.sql(
            "CREATE TABLE webhooks (id text PRIMARY KEY, received timestamptz, source text, host text, message json)",
            "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS "
            "$$BEGIN IF NEW.id LIKE '%001' THEN PERFORM pg_sleep(1); END IF; RETURN NULL; END$$",
            "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON webhooks DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION late()",
        )
        observer = self.observer(f"127.0.0.1:{proxy.port}", create="no", retry_for="30s")
        found: list[Outcomes] = []
        batch = prepared(observer, *map(str, range(10)))
        thread = self.in_thread(lambda: found.append(outcomes_of(observer, batch)))
        self.wait_for("SELECT FROM pg_stat_activity WHERE application_name = 'webhookrx' AND query = 'COMMIT'")
        proxy.cut()
        thread.join(60)

        self.assertEqual([[None] * 10], found)
        self.assertEqual([(10,)], self.sql("SELECT count(*) FROM webhooks"))
        self.assertEqual(10, observer.counts.take().known)


class BrokenServerTests(PostgreSQLCase):
    """A server of its own, which is killed and frozen."""

    def setUp(self) -> None:
        """Start it."""
        self.server = self.serve(PostgresqlServer)

    def test_killed(self) -> None:
        """Killed five times while messages come: none is missing, none is there twice; what was acknowledged stays."""
        observer = self.observer(timeout="10s")
        kills = {MESSAGES * part // 6 // BATCH for part in range(1, 6)}
        texts = [f"message {number}" for number in range(MESSAGES)]
        known = 0
        for number in range(MESSAGES // BATCH):
            batch = prepared(observer, *texts[number * BATCH : (number + 1) * BATCH], first=number * BATCH)
            if number in kills:
                # In the middle of what may be any statement.
                timer = threading.Timer(0.002 * (number % 7), self.server.kill)
                timer.start()
                outcomes = outcomes_of(observer, batch)
                timer.join()
                self.server.start()
                stored = [id_of(number * BATCH + i) for i, outcome in enumerate(outcomes) if outcome is None]
                [(there,)] = self.sql(f"SELECT count(*) FROM webhooks WHERE id = ANY('{{{','.join(stored)}}}')")
                self.assertEqual(len(stored), there, "acknowledged and gone")
            deliver(observer, batch)
            known += observer.counts.take().known

        self.assertEqual(
            [(MESSAGES, MESSAGES)], self.sql("SELECT count(*), count(DISTINCT id) FROM webhooks"), f"{known} known"
        )

    def test_frozen(self) -> None:
        """Frozen during batches it holds nobody for longer than timeout=, and nothing is missing or twice."""
        observer = self.observer(timeout="1s")
        deliver(observer, prepared(observer, "first"))
        for number in range(1, 4):
            batch = prepared(observer, *map(str, range(BATCH)), first=number * BATCH)
            timer = threading.Timer(0.004 * number, self.server.freeze)
            timer.start()
            began_at = time.monotonic()
            outcomes_of(observer, batch)
            timer.join()
            self.assertLess(time.monotonic() - began_at, 10.0)
            # Without a connection, too.
            self.reason(observer, prepared(observer, "x", first=number))
            self.server.thaw()
            deliver(observer, batch)

        self.assertEqual([(3 * BATCH + 1,) * 2], self.sql("SELECT count(*), count(DISTINCT id) FROM webhooks"))

    def test_hurry_while_frozen(self) -> None:
        """Told to hurry while the server hangs, connected or not, it ends within three seconds."""
        observer = self.observer(timeout="60s", retry_for="60s")
        deliver(observer, prepared(observer, "first"))
        for is_connected in (True, False):
            with self.subTest(is_connected=is_connected):
                observer.open()
                if not is_connected:
                    observer.reopen()
                self.server.freeze()
                found: list[Outcomes] = []
                # More than the sockets between them hold.
                batch = prepared(observer, *["second" * 100_000] * 20, first=1)
                thread = self.in_thread(lambda batch=batch, found=found: found.append(outcomes_of(observer, batch)))
                time.sleep(0.5)
                began_at = time.monotonic()
                observer.hurry()
                thread.join(60)
                again = outcomes_of(observer, batch)
                took = time.monotonic() - began_at
                self.server.thaw()
                self.assertIsInstance(found[0][0], Unavailable)
                self.assertIsInstance(again[0], Unavailable)
                self.assertLess(took, 2 * HURRY_TIME)
        observer.open()

        deliver(observer, prepared(observer, "second", first=1))

        self.assertEqual([(2,)], self.sql("SELECT count(*) FROM webhooks"))

    def test_no_synchronous_standby(self) -> None:
        """
        While a synchronous standby is away nothing counts as stored: neither when the wait of the server is cancelled,
        which commits, nor when the rows are found on the next try.
        """
        observer = self.observer(timeout="1s")
        deliver(observer, prepared(observer, "first"))
        other = self.observer(timeout="60s")
        deliver(other, prepared(other, "first"))
        self.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
        self.wait_for("SELECT 1 WHERE current_setting('synchronous_standby_names') = 'nobody'")
        batch = prepared(observer, "second", first=1)
        found: list[Outcomes] = []
        thread = self.in_thread(lambda: found.append(outcomes_of(other, batch)))
        self.wait_for("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        self.assertIsInstance(outcomes_of(observer, batch)[0], Unavailable)
        self.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        thread.join(60)
        self.assertIn("committed without its standby", str(found[0][0]))
        self.assertEqual([(2,)], self.sql("SELECT count(*) FROM webhooks"))
        self.assertIsInstance(outcomes_of(observer, batch)[0], Unavailable)
        self.sql("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")

        deliver(observer, batch)

        self.assertEqual([(2,)], self.sql("SELECT count(*) FROM webhooks"))

    def test_too_many_connections(self) -> None:
        """A server without a free connection is later."""
        self.sql("ALTER SYSTEM SET max_connections = 3", "ALTER SYSTEM SET superuser_reserved_connections = 0")
        self.sql("ALTER SYSTEM SET max_wal_senders = 0")
        self.server.stop()
        self.server.start()
        others = [self.connect() for _ in range(3)]
        observer = self.observer()
        batch = prepared(observer, "one")
        self.reason(observer, batch)
        for other in others:
            other.close()

        deliver(observer, batch)

        self.assertEqual([(1,)], self.sql("SELECT count(*) FROM webhooks"))


class StandbyTests(PostgreSQLCase):
    """Two servers, one of them a standby."""

    def test_standby(self) -> None:
        """A standby takes nothing and loses nothing; with both in the URL the one that takes rows is found."""
        self.server = self.serve(PostgresqlServer)
        observer = self.observer()
        deliver(observer, prepared(observer, "one"))
        standby = self.serve(_standby_of(self.server))
        alone = self.observer(standby.address)
        batch = prepared(alone, "two", first=1)
        wait_until(lambda: "25006" in self.reason(alone, batch), "the standby has the table")
        both = self.observer(f"{standby.address},{self.server.address}")

        deliver(both, batch)

        self.assertEqual([(2,)], self.sql("SELECT count(*) FROM webhooks"))
        self.server.kill()
        standby.run(f"{_programs()}/pg_ctl", "promote", "-D", standby.path("data"))
        deliver(alone, prepared(alone, "three", first=2))


def _standby_of(primary: PostgresqlServer) -> type[PostgresqlServer]:
    class Standby(PostgresqlServer):
        def prepare(self) -> None:
            os.chmod(self.directory, 0o755)
            os.mkdir(self.path("data"), 0o700)
            if self.user:
                shutil.chown(self.path("data"), self.user, self.group)
            source = f"host=127.0.0.1 port={primary.port} user=webhookrx password={primary.PASSWORD}"
            self.run(
                f"{_programs()}/pg_basebackup",
                "-R",
                "-D",
                self.path("data"),
                "-d",
                source,
                "-X",
                "stream",
                "-c",
                "fast",
            )

    return Standby


class _TLSServer(PostgresqlServer):
    """One with a certificate for C{localhost}, and no other name."""

    authority = Authority("Root")

    def prepare(self) -> None:
        super().prepare()
        with open(self.path("data/pg_hba.conf"), "w") as file:
            file.write("hostssl all by_cert 127.0.0.1/32 cert\nhost all all 127.0.0.1/32 scram-sha-256\n")
        ca_file = write_ca_file(self.directory, "clients", self.authority)
        names = [x509.DNSName("localhost")]
        files = self.authority.issue("server", names=names).write(self.directory, "server")
        for path in (*files, ca_file):
            if self.user:
                shutil.chown(path, self.user, self.group)
            os.chmod(path, 0o600)
        self.options += ["ssl=on", f"ssl_key_file={files[0]}", f"ssl_cert_file={files[1]}", f"ssl_ca_file={ca_file}"]


class TLSTests(PostgreSQLCase):
    """TLS, with the name in the certificate checked."""

    def test_tls(self) -> None:
        """It connects to a server of the right name that a trusted authority vouches for, and to no other."""
        self.server = self.serve(_TLSServer)
        ca_file = write_ca_file(self.server.directory, "ca", _TLSServer.authority)
        other_ca = write_ca_file(self.server.directory, "other", Authority("Stranger"))
        right = self.observer(f"localhost:{self.server.port}", ca_file=ca_file)
        wrong_name = self.observer(ca_file=ca_file)
        wrong_ca = self.observer(f"localhost:{self.server.port}", ca_file=other_ca)
        system = self.observer(f"localhost:{self.server.port}", tls="yes")

        deliver(right, prepared(right, "one"))

        used = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = '{}'"
        self.assertEqual([(True,)], self.sql(used.format("webhookrx")))
        self.assertIn("does not match host name", self.reason(wrong_name, prepared(wrong_name, "two")))
        for other in (wrong_ca, system):
            self.assertIn("certificate verify failed", self.reason(other, prepared(other, "two")))
        self.assertEqual([(1,)], self.sql("SELECT count(*) FROM webhooks"))

    def test_client_certificate(self) -> None:
        """A role may log in by a certificate, without a password; who has none, or another, is refused."""
        self.server = self.serve(_TLSServer)
        self.sql("CREATE ROLE by_cert LOGIN", "GRANT CREATE ON SCHEMA public TO by_cert")
        ca_file = write_ca_file(self.server.directory, "ca", _TLSServer.authority)
        place = f"localhost:{self.server.port}"

        def by_cert(*names: str) -> list[Any]:
            made = []
            for name in names:
                key, cert = _TLSServer.authority.issue(name).write(self.server.directory, name)
                os.chmod(key, 0o600)
                files = {"ca_file": ca_file, "cert_file": cert, "key_file": key}
                made.append(self.observer(place, user="by_cert", with_password=False, **files))
            return made

        right, wrong = by_cert("by_cert", "other")
        without = self.observer(place, user="by_cert", with_password=False, ca_file=ca_file)

        deliver(right, prepared(right, "one"))

        for other in (wrong, without):
            self.reason(other, prepared(other, "two", first=1))
        self.assertEqual([(1,)], self.sql("SELECT count(*) FROM webhooks"))
