"""Rows in a real ClickHouse, the old one of Debian over HTTP, and in the engine of a current one where chdb is."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any
from unittest import SkipTest
from urllib.parse import urlencode

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase

from tests.system.servers.clickhouse_front import ClickhouseFront
from tests.system.servers.clickhouse_server import ClickhouseServer
from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.http_stores.clickhouse_options import build_clickhouse, read_clickhouse
from webhookrx.testing import make_message

#: As in docs/reference/stores.md, in types that 18.16 has.
COLUMNS = "id String, received DateTime, source String, host String, message String"
TABLE = f"CREATE TABLE logs.messages ({COLUMNS}) ENGINE = MergeTree ORDER BY (received, id)"

#: Whatever a sender may write.
HOSTILE = (
    "",
    'a"b\\c',
    "\x00\x1b\u202e\u2028",
    "\U0001f600 é",
    "'); DROP TABLE logs.messages --",
    "\\N",
    "x" * 100_000,
)


def ask(server: ClickhouseServer, query: str) -> str:
    """Ask the server itself."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        fields = {"X-ClickHouse-User": "default", "X-ClickHouse-Key": server.password}
        connection.request("POST", f"/?{urlencode({'query': query})}", b"", fields)
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, text
        return text
    finally:
        connection.close()


class OldServerTests(TestCase):
    """18.16, without the settings that it does not know."""

    timeout = 120

    def setUp(self) -> None:
        """Start it with a password."""
        self.server = ClickhouseServer("pass word")
        self.addCleanup(self.server.clean_up)
        self.server.start()
        self.front = ClickhouseFront(self.server.port)
        self.addCleanup(self.front.stop)
        ask(self.server, "CREATE DATABASE logs")
        self.password_file = self.server.write("password", "pass word\n")
        self.observers: list[Any] = []

    async def tearDown(self) -> None:
        """Close all connections."""
        for observer in self.observers:
            client = observer._client
            observer.close()
            await client._pool.closeCachedConnections()

    def open(self, *, front: bool = True, **options: str) -> Any:
        """Open an observer."""
        port = self.front.port if front else self.server.port
        url = f"http://127.0.0.1:{port}/logs.messages"
        options = {"user": "default", "password_file": self.password_file, "retry_for": "0s", **options}
        observer = build_clickhouse(f"clickhouse:{url}", (url,), options, "durable")
        observer.open()
        self.observers.append(observer)
        return observer

    async def store(self, observer: Any, *texts: str) -> Sequence[Exception | None] | None:
        """Store messages in a thread, as a lane does."""
        messages = [make_message(text, {"RCPTID": f"id-{text[:20]}", "HOST": "web"}) for text in texts]
        prepared = [observer.prepare(message) for message in messages]
        outcomes: Sequence[Exception | None] | None = await deferToThread(observer.store, prepared)
        return outcomes

    async def failure(self, observer: Any) -> str:
        """Store a message that is to come later, and return why."""
        prepared = [observer.prepare(make_message("a"))]
        return str(await self.assertFailure(deferToThread(observer.store, prepared), Unavailable))

    def texts(self) -> set[str]:
        """Return the texts of the messages in the table."""
        rows = ask(self.server, "SELECT message FROM logs.messages FORMAT JSONEachRow").splitlines()
        return {json.loads(json.loads(row)["message"])["MESSAGE"] for row in rows}

    async def test_stored(self) -> None:
        """Messages are rows, whatever is in them, also when they are packed."""
        ask(self.server, TABLE)

        self.assertIsNone(await self.store(self.open(), *HOSTILE))
        self.assertIsNone(await self.store(self.open(gzip="yes"), "packed"))

        self.assertEqual({*HOSTILE, "packed"}, self.texts())
        self.assertEqual("web\n", ask(self.server, "SELECT DISTINCT host FROM logs.messages"))
        received = ask(self.server, "SELECT DISTINCT toUnixTimestamp(received) FROM logs.messages")
        self.assertEqual(make_message("a").received // 1_000_000_000, int(received))

    async def test_bad_row(self) -> None:
        """A row that a column does not take is refused, with its code; all others of its batch are there, once."""
        ask(self.server, TABLE.replace("host String", "host UInt8"))
        observer = self.open(id="$HOST")
        messages = [make_message(str(number), {"HOST": "bad" if number == 7 else "5"}) for number in range(20)]

        outcomes = await deferToThread(observer.store, [observer.prepare(message) for message in messages])

        self.assertEqual([7], [place for place, each in enumerate(outcomes) if each is not None])
        self.assertIsInstance(outcomes[7], Rejected)
        self.assertRegex(str(outcomes[7]), r"\(code \d+\)")
        self.assertEqual({str(number) for number in range(20)} - {"7"}, self.texts())
        self.assertEqual("19\n", ask(self.server, "SELECT count() FROM logs.messages"))

    async def test_missing_table(self) -> None:
        """A table that is not there refuses nothing."""
        observer = self.open()
        error = await self.failure(observer)
        self.assertIn("code 60: look at the table", error)
        ask(self.server, TABLE)

        self.assertIsNone(await self.store(observer, "a"))

        self.assertEqual({"a"}, self.texts())

    async def test_missing_column(self) -> None:
        """Nor does a table without one of our columns."""
        ask(self.server, TABLE.replace("host String, ", ""))
        observer = self.open()

        error = await self.failure(observer)

        self.assertIn("code 117: look at the columns", error)

    async def test_wrong_password(self) -> None:
        """Nor does a wrong password, which is in no text."""
        ask(self.server, TABLE)
        observer = self.open(password_file=self.server.write("other", "hunter2\n"))

        error = await self.failure(observer)

        self.assertIn("code 193: look at user=", error)
        self.assertNotIn("hunter2", error)

    async def test_too_old(self) -> None:
        """A server that does not know a setting of ours stores nothing, and the log says why."""
        ask(self.server, TABLE)
        observer = self.open(front=False)

        error = await self.failure(observer)

        self.assertIn("code 115: it does not know a setting: its version is too old", error)
        self.assertEqual(set(), self.texts())


#: Runs in a process of its own, since the engine takes hundreds of megabytes.
_JUDGE = """
import sys
from chdb.session import Session
table, insert = open(sys.argv[1]).read().split("\\0")
session = Session()
session.query("CREATE DATABASE logs")
session.query(table)
session.query(insert)
session.query(insert)
print(session.query("SELECT message, toUnixTimestamp64Micro(received) AS received FROM logs.messages", "JSONEachRow"))
"""


class CurrentEngineTests(SynchronousTestCase):
    """What the engine of a current version makes of our rows and settings."""

    def test_rows(self) -> None:
        """
        It takes the table of the docs, all settings, and all rows. The same insert is taken once, since that table of a
        single server has C{non_replicated_deduplication_window} (U{https://github.com/drt-hub/drt/issues/1023}).
        """
        if find_spec("chdb") is None:
            raise SkipTest("no engine of ClickHouse: pip install chdb-core, which takes half a gigabyte")
        with open(os.path.join(os.path.dirname(__file__), "../../docs/reference/stores.md")) as file:
            table = (
                "CREATE TABLE logs.messages"
                + file.read().partition("CREATE TABLE logs.messages")[2].partition("```")[0]
            )
        _, store = read_clickhouse(("https://h/logs.messages",), {"quorum": "2"})
        messages = [make_message(text, {"RCPTID": str(number)}) for number, text in enumerate(HOSTILE)]
        for message in messages:
            message.received = 1_700_000_000_123_456_789
        request = store.make([store.render(message) for message in messages])
        token = request.path.rpartition("insert_deduplication_token=")[2]
        settings = [*store.settings, ("insert_deduplication_token", token)]
        # A parameter of the interface, not a setting of the engine.
        given = ", ".join(f"{name}='{value}'" for name, value in settings if name != "wait_end_of_query")
        insert = store.query.replace(" FORMAT", f" SETTINGS {given} FORMAT") + "\n" + request.content.decode()
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
            script.write(f"{table}\0{insert}")
            script.flush()
            done = subprocess.run(
                [sys.executable, "-c", _JUDGE, script.name], capture_output=True, text=True, timeout=300, check=False
            )

        self.assertEqual("", done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line]
        self.assertEqual({1_700_000_000_123_456}, {int(row["received"]) for row in rows})
        self.assertEqual(sorted(HOSTILE), sorted(json.loads(row["message"])["MESSAGE"] for row in rows))
