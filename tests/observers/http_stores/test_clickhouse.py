"""ClickHouse, played from the answers that real ones have given: 18.16 over HTTP, and 26.9 in a process."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from twisted.trial.unittest import SynchronousTestCase

from tests.observers.http_stores.played_http_store import HTTPStoreContract, Record, Row, answer, broken, cut
from webhookrx.errors import ConfigError, Unavailable
from webhookrx.interfaces import Wants
from webhookrx.observers.http_stores.clickhouse import CODE_FIELD, ClickHouse
from webhookrx.observers.http_stores.clickhouse_options import CLICKHOUSE_SPEC, build_clickhouse, read_clickhouse
from webhookrx.observers.http_stores.exchange import Extent, HTTPAnswer
from webhookrx.observers.http_stores.observer import request_headers
from webhookrx.settings import MiB
from webhookrx.testing import make_message

if TYPE_CHECKING:
    from webhookrx.observers.http_stores.exchange import StoreRequest
    from webhookrx.observers.http_stores.options import HTTPTarget
    from webhookrx.observers.http_stores.store import HTTPStore

URL = "https://clickhouse.example.com:8443/logs.messages"

OK = answer(200)


def failed(status: int, code: int, text: str = "Something.") -> HTTPAnswer:
    """Make an error as current versions do."""
    body = f"Code: {code}. DB::Exception: {text} (NAME) (version 26.9.2.1 (official build))\n".encode()
    return answer(status, body, fields={CODE_FIELD: str(code)})


def failed_old(status: int, code: int, text: str = "Something") -> HTTPAnswer:
    """Make an error as 18.16 does."""
    return answer(status, f"Code: {code}, e.displayText() = DB::Exception: {text}, e.what() = DB::Exception\n".encode())


REFUSED = (6, 25, 26, 27, 38, 41, 53, 72, 131, 349, 376, 407, 441, 467, 469, 675, 676, 691)
LATER = {
    16: 404,
    47: 404,
    60: 404,
    62: 400,
    81: 404,
    115: 404,
    117: 400,
    159: 408,
    164: 403,
    192: 403,
    193: 401,
    194: 401,
    202: 500,
    209: 408,
    210: 500,
    241: 500,
    242: 500,
    243: 500,
    252: 500,
    285: 500,
    319: 500,
    452: 403,
    497: 403,
    516: 403,
    999: 503,
    1000: 500,
    1001: 500,
    9999: 400,
}


class ClickHouseTests(HTTPStoreContract, SynchronousTestCase):
    """A table that knows inserts again by their token."""

    url = URL
    spec = CLICKHOUSE_SPEC
    secret_option = "password_file"
    rows = (
        Row("200", OK, "stored"),
        *(Row(f"code {code}", failed(400, code), "rejected") for code in REFUSED),
        *(Row(f"code {code} of an old version", failed_old(500, code), "rejected") for code in REFUSED),
        *(Row(f"code {code}", failed(status, code), "later") for code, status in LATER.items()),
        *(Row(f"code {code} of an old version", failed_old(status, code), "later") for code, status in LATER.items()),
        Row("413 of a proxy", answer(413, b"<html>"), "rejected"),
        *(Row(f"{status} of a proxy", answer(status, b"<html>"), "later") for status in (302, 400, 401, 404, 429)),
        *(
            Row(f"{status} of a proxy", answer(status, b"", retry_after="5"), "later")
            for status in (500, 502, 503, 504)
        ),
    )
    nonsense = (
        answer(200, b"1\n"),
        answer(200, b"<html>log in</html>"),
        answer(200, failed(400, 27).beginning),
        failed(200, 27),
        failed(200, 0),
        answer(201),
        answer(204),
        cut(answer(200, b"Ok.")),
        broken(failed_old(500, 27)),
        cut(failed_old(500, 27)),
        answer(500, b"Code: many"),
        answer(400, b"", fields={CODE_FIELD: "27, 27"}),
        answer(200, b"", fields={CODE_FIELD: "27, 27"}),
        answer(200, b"", fields={CODE_FIELD: "100000"}),
        answer(200, b"", fields={CODE_FIELD: ""}),
        answer(400, b"27"),
    )

    def setUp(self) -> None:
        """Make an empty table."""
        super().setUp()
        self.tokens: set[str] = set()

    def read(self, args: Sequence[str], options: dict[str, str]) -> tuple[HTTPTarget, HTTPStore]:
        """Read the options; a password goes with a user."""
        return read_clickhouse(args, {"user": "writer", **options} if "password_file" in options else options)

    def secret_of(self, headers: dict[bytes, bytes]) -> str:
        """Return the password."""
        return headers[b"X-ClickHouse-Key"].decode()

    def serve(self, request: StoreRequest) -> HTTPAnswer:
        """Insert rows, all or none, and those of a token once."""
        path, _, query = request.path.partition("?")
        parameters = dict(parse_qsl(query, strict_parsing=True))
        self.assertEqual(("/", "1"), (path, parameters["wait_end_of_query"]))
        self.assertEqual("INSERT INTO `logs`.`messages` FORMAT JSONEachRow", parameters["query"])
        rows = [json.loads(line) for line in request.content.splitlines()]
        for number, row in enumerate(rows, 1):
            self.assertEqual({"id", "received", "source", "host", "message"}, row.keys())
            if self.refused is not None and self.refused in row["message"]:
                return failed(400, 27, f"Cannot parse input: (at row {number})")
        token = parameters["insert_deduplication_token"]
        if token not in self.tokens:
            self.tokens.add(token)
            self.records += [Record(row["id"], json.loads(row["message"])["MESSAGE"]) for row in rows]
        return OK

    def serve_half(self, request: StoreRequest) -> HTTPAnswer:
        """Fail: an insert is stored whole or not at all."""
        return failed(500, 252, "Too many parts")

    def test_missing_table(self) -> None:
        """
        A table that is not there yet loses nothing: what came before it is inserted once it is there
        (U{https://github.com/vectordotdev/vector/pull/26221}).
        """
        observer = self.opened_with()
        self.answer_with(failed(404, 60, "Table logs.messages does not exist."))

        outcome = self.outcomes(observer, "a", "b")[0]

        self.assertIsInstance(outcome, Unavailable)
        self.assertIn("(code 60: look at the table in the URL)", str(outcome))
        self.mended()
        self.assertEqual([], self.deliver(observer, "a", "b"))

    def test_hints(self) -> None:
        """Each code that a person can do something about says what."""
        observer = self.opened_with(retry_for="0s")
        for code, words in (
            (16, "look at the columns"),
            (47, "look at the columns"),
            (60, "look at the table in the URL"),
            (81, "look at the table in the URL"),
            (115, "its version is too old"),
            (117, "look at the columns"),
            (164, "the user may not write"),
            (192, "look at user="),
            (193, "look at user="),
            (194, "look at user="),
            (241, "memory"),
            (242, "read-only"),
            (252, "larger batches"),
            (285, "quorum="),
            (291, "look at user="),
            (319, "enough replicas"),
            (452, "settings_file="),
            (497, "may not insert"),
            (516, "look at user="),
        ):
            with self.subTest(code):
                self.answer_with(failed(500, code))
                self.assertRegex(str(self.outcomes(observer, "a")[0]), rf"\(code {code}: .*{words}")
        self.answer_with(answer(300))
        self.assertIn("redirections are not followed", str(self.outcomes(observer, "a")[0]))

    def test_too_many_parts(self) -> None:
        """
        Back-pressure refuses nothing, and is not answered by a storm of tries
        (U{https://github.com/ClickHouse/flink-connector-clickhouse/issues/157}).
        """
        observer = self.opened_with()
        self.answer_with(failed(500, 252, "Too many parts (3000)"))

        self.assertIsInstance(self.outcomes(observer, "a")[0], Unavailable)

        self.assertLess(len(self.client.requests), 10)

    def test_success_with_error(self) -> None:
        """
        A 200 with anything in it is no success, nor is one with the code of an exception
        (U{https://github.com/ClickHouse/ClickHouse/issues/80735},
        U{https://github.com/ClickHouse/ClickHouse/issues/6473}).
        """
        store = self.read((URL,), {})[1]
        self.assertEqual("later", self.word(store, failed(200, 27)))
        observer = self.opened_with()
        self.answer_with(answer(200, failed(500, 210).beginning))

        self.assertIsInstance(self.outcomes(observer, "a")[0], Unavailable)

    def word(self, store: HTTPStore, played: HTTPAnswer) -> str:
        """Return the word of a verdict."""
        found = store.read(played, 1)
        return str(found.verdict.value)  # type: ignore[union-attr]

    def test_bisecting(self) -> None:
        """One bad row among many is found, the others are inserted, and none twice."""
        observer = self.opened_with()
        self.refuse("BAD")
        texts = [f"good {number}" for number in range(200)]

        self.assertEqual(["BAD"], self.deliver(observer, *texts[:77], "BAD", *texts[77:]))

        self.assert_stored(*texts)
        self.assertLess(len(self.client.requests), 20)

    def test_long_error(self) -> None:
        """An error that quotes a large value refuses it by the header field, though the text is cut."""
        whole = failed(400, 27, "Cannot parse input: " + "x" * 10_000)
        store = self.read((URL,), {})[1]

        self.assertEqual(
            "refused", self.word(store, replace(whole, beginning=whole.beginning[:4096], extent=Extent.LONG))
        )
        self.assertEqual("refused", self.word(store, replace(whole, beginning=b"", extent=Extent.BROKEN)))

    def test_columns(self) -> None:
        """
        A table without one of our columns is for a person to mend. With the columns of each message, it is the message
        that has one too many.
        """
        unknown = failed(400, 117, "Unknown field found while parsing JSONEachRow format: host: (at row 1)")

        self.assertEqual("later", self.word(self.read((URL,), {})[1], unknown))
        self.assertEqual("refused", self.word(self.read((URL,), {"row": "message"})[1], unknown))


class RowTests(SynchronousTestCase):
    """What a row is."""

    def row(self, text: str = "hello", values: dict[str, Any] | None = None, **options: str) -> dict[str, Any]:
        """Render a message."""
        message = make_message(text, {"RCPTID": "id-1", "HOST": "web", "SOURCE": "hook", **(values or {})})
        message.received = 1_700_000_000_123_456_789
        line = read_clickhouse((URL,), options)[1].render(message)
        self.assertEqual((b"\n", 1), (line[-1:], line.count(b"\n")))
        row: dict[str, Any] = json.loads(line)
        return row

    def test_columns(self) -> None:
        """By default it has five columns, one of which holds the JSON object of the message as text."""
        row = self.row()

        message = json.loads(row.pop("message"))
        self.assertEqual("hello", message["MESSAGE"])
        self.assertEqual(
            {"id": "id-1", "received": "2023-11-14T22:13:20.123456Z", "source": "hook", "host": "web"}, row
        )

    def test_hostile(self) -> None:
        """Whatever a sender writes is data."""
        text = '"}\n{"id":"\u202e\x00\\' * 20_000

        row = self.row(text, {"HOST": text})

        self.assertEqual((text, text), (json.loads(row["message"])["MESSAGE"], row["host"]))

    def test_message(self) -> None:
        """It may have the columns of the message."""
        row = self.row(row="message")

        self.assertEqual(("hello", "id-1"), (row["MESSAGE"], row["RCPTID"]))
        self.assertNotIn("received", row)

    def test_id(self) -> None:
        """The id may be another."""
        self.assertEqual("web-hello", self.row(id="${HOST}-$MESSAGE")["id"])


class RequestTests(SynchronousTestCase):
    """What goes with an insert."""

    def parameters(self, url: str = URL, **options: str) -> dict[str, str]:
        """Make a request, and return what is in its URL."""
        request = read_clickhouse((url,), options)[1].make([b"{}\n"])
        path, _, query = request.path.partition("?")
        return {"path": path, **dict(parse_qsl(query, strict_parsing=True))}

    def write(self, text: str) -> str:
        """Write a file."""
        path = os.path.abspath(self.mktemp())
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_default(self) -> None:
        """It waits for the end, gathers nothing in the server, and skips neither rows nor columns in silence."""
        parameters = self.parameters()

        self.assertRegex(parameters.pop("insert_deduplication_token"), "^[0-9a-f]{64}$")
        self.assertEqual(
            {
                "path": "/",
                "query": "INSERT INTO `logs`.`messages` FORMAT JSONEachRow",
                "wait_end_of_query": "1",
                "async_insert": "0",
                "wait_for_async_insert": "1",
                "input_format_allow_errors_num": "0",
                "input_format_allow_errors_ratio": "0",
                "input_format_skip_unknown_fields": "0",
                "date_time_input_format": "best_effort",
            },
            parameters,
        )

    def test_token(self) -> None:
        """
        The token names the rows, packed or not, so that a table that keeps tokens has an insert whose answer got lost
        once (U{https://github.com/drt-hub/drt/issues/1023}).
        """
        plain, packed = read_clickhouse((URL,), {})[1], read_clickhouse((URL,), {"gzip": "yes"})[1]

        self.assertEqual(plain.make([b"a\n", b"b\n"]).path, packed.make([b"a\n", b"b\n"]).path)
        self.assertNotEqual(plain.make([b"a\n", b"b\n"]).path, plain.make([b"b\n", b"a\n"]).path)

    def test_async(self) -> None:
        """Where the server gathers, it is waited for."""
        parameters = self.parameters(**{"async": "yes"})

        self.assertEqual(("1", "1"), (parameters["async_insert"], parameters["wait_for_async_insert"]))

    def test_promise(self) -> None:
        """It promises that messages are written; synced or on several replicas, they are durable."""
        for options, promise in (
            ({}, "written"),
            ({"async": "yes"}, "written"),
            ({"fsync": "no"}, "written"),
            ({"fsync": "yes"}, "durable"),
            ({"quorum": "2"}, "durable"),
            ({"quorum": "auto"}, "durable"),
        ):
            with self.subTest(options):
                store = read_clickhouse((URL,), options)[1]

                self.assertEqual(promise, store.promise)
                self.assertEqual(promise == "durable", store.promise_reason == "")
        self.assertEqual("auto", self.parameters(quorum="auto")["insert_quorum"])

    def test_settings_file(self) -> None:
        """Further settings come from a file; one of them may let unknown columns pass."""
        path = self.write("# ours\nmax_execution_time = 60\n\ninput_format_skip_unknown_fields=1\n")

        parameters = self.parameters(settings_file=path)

        self.assertEqual(
            ("60", "1"), (parameters["max_execution_time"], parameters["input_format_skip_unknown_fields"])
        )

    def test_settings_that_weaken(self) -> None:
        """None of them may weaken waiting, lose rows, or take the place of what the observer sets."""
        for name in (
            "wait_end_of_query",
            "async_insert",
            "wait_for_async_insert",
            "input_format_allow_errors_num",
            "input_format_allow_errors_ratio",
            "insert_deduplicate",
            "insert_deduplication_token",
            "insert_quorum",
            "query",
            "database",
            "password",
            "param_x",
        ):
            with self.subTest(name):
                path = self.write(f"a=1\n{name}=0\n")
                error = str(self.assertRaises(ConfigError, read_clickhouse, (URL,), {"settings_file": path}))

                self.assertRegex(error, f"^observer 'clickhouse': settings_file: .*line 2: {name} is set by")

    def test_paths(self) -> None:
        """The interface may be below a path; the table may be in the user's own database, and have any name."""
        for url, path, table in [
            ("https://h/logs", "/", "`logs`"),
            ("https://h/ch/my-db.2026", "/ch/", "`my-db`.`2026`"),
        ]:
            parameters = self.parameters(url)

            self.assertEqual(
                (path, f"INSERT INTO {table} FORMAT JSONEachRow"), (parameters["path"], parameters["query"])
            )

    def test_user(self) -> None:
        """User and password go as ClickHouse wants them, and not in the URL."""
        password_file = self.write("pass word\n")
        options = {"user": "writer", "password_file": password_file}
        observer = build_clickhouse("s", (URL,), options, "durable")
        store = read_clickhouse((URL,), options)[1]

        fields = request_headers(store, observer._read_files()[1])

        self.assertIn((b"X-ClickHouse-User", b"writer"), fields)
        self.assertIn((b"X-ClickHouse-Key", b"pass word"), fields)
        self.assertNotIn("pass", store.make([b""]).path)

    def test_headers_file(self) -> None:
        """What stands in front of it may need header fields of its own, which are secrets, too."""
        options = {"headers_file": self.write("X-Proxy: hunter2\n")}
        observer = build_clickhouse("s", (URL,), options, "durable")

        self.assertEqual([(b"X-Proxy", b"hunter2")], observer._read_files()[1])
        self.assertRaises(ConfigError, read_clickhouse, ("http://h/logs.m",), options)

    def test_wants(self) -> None:
        """A spool gathers many messages for it."""
        store = read_clickhouse((URL,), {})[1]

        self.assertEqual(Wants(10_000, 8 * MiB, 1.0), store.wants)
        self.assertIsInstance(store, ClickHouse)

    def test_mistakes(self) -> None:
        """What can't be meant is an error that names observer and option."""
        for url, options, problem in [
            ("https://h:8443", {}, "does not end with a table"),
            ("https://h:8443/", {}, "does not end with a table"),
            ("https://h/a.b.c", {}, "does not end with a table"),
            ("https://h/a`b", {}, "beyond ASCII"),
            ("https://h/logs.m?x=1", {}, "does not end with a table"),
            ("https://u:hunter2@h/logs.m", {}, "use user= and password_file="),
            (URL, {"password_file": "/p"}, "password_file= goes with user="),
            ("http://h/logs.m", {"user": "u", "password_file": "/p"}, "allow_plaintext=yes"),
            (URL, {"user": "a b"}, "user="),
            (URL, {"quorum": "1"}, "quorum="),
            (URL, {"quorum": "many"}, "quorum="),
            (URL, {"async": "maybe"}, "async="),
            (URL, {"batch_size": "0"}, "batch_size="),
            (URL, {"row": "json"}, "it takes columns or message"),
            (URL, {"row": "message", "id": "${HOST}"}, "id= goes with row=columns"),
            (URL, {"settings_file": "/does/not/exist"}, "settings_file: "),
            (URL, {"settings_file": self.write("one two\n")}, "line 1 is not NAME=VALUE"),
        ]:
            with self.subTest(problem):
                error = str(self.assertRaises(ConfigError, read_clickhouse, (url,), options))

                self.assertTrue(re.search(re.escape(problem), error), error)
                self.assertTrue(error.startswith("observer 'clickhouse': "), error)
                self.assertNotIn("hunter2", error)

    def test_build(self) -> None:
        """Files are read when the observer is built; what is wrong with one quotes nothing of it."""
        for content, problem in (("", "holds 0 lines"), ("a\nb\n", "holds 2 lines"), (" hunter2\n", "with a space")):
            options = {"user": "u", "password_file": self.write(content)}
            error = str(self.assertRaises(ConfigError, build_clickhouse, "s", (URL,), options, "durable"))

            self.assertIn(problem, error)
            self.assertTrue(error.startswith("observer 'clickhouse': password_file: "), error)
            self.assertNotIn("hunter2", error)
