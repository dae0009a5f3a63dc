"""The s3 observer and moto's S3, which is frozen, cut off and set up wrongly; and a service that answers badly."""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography import x509
from obstore.store import S3Store

from tests import LONG
from tests.observers.s3.played_s3 import messages_of
from tests.system.certificates import Authority, write_ca_file
from tests.system.servers.moto_server import MotoServer
from tests.system.servers.process import ServerCase
from tests.system.servers.proxy import Proxy
from webhookrx.config.observers import parse_observer
from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers import registry
from webhookrx.observers.s3.objects import PackedObject
from webhookrx.testing import make_message

HURRY_TIME = 3.0
MESSAGES = 200_000 if LONG else 10_000
BATCH = 1000
SECRET = "s3-5ecret"

Outcomes = Sequence[Exception | None]


def prepared(observer: Any, *texts: str, first: int = 0) -> list[bytes]:
    """Prepare messages, whose ids are numbers."""
    return [
        observer.prepare(make_message(text, {"RCPTID": f"{first + place:08d}", "SOURCE": "web"}))
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
    deadline = time.monotonic() + seconds
    while any(outcomes := outcomes_of(observer, batch)):
        assert not any(isinstance(outcome, Rejected) for outcome in outcomes), outcomes
        assert time.monotonic() < deadline, outcomes
        time.sleep(0.05)


class S3Case(ServerCase):
    """Observers, and what the bucket holds."""

    def observer(self, port: int, *, url: str = "s3://logs/in", scheme: str = "http", **options: str) -> Any:
        """Make an observer and open it."""
        credentials = os.path.abspath(self.mktemp())
        with open(credentials, "w") as file:
            file.write(f"[default]\naws_access_key_id = k\naws_secret_access_key = {SECRET}\n")
        os.chmod(credentials, 0o600)
        given = {
            "endpoint": f"{scheme}\\://localhost\\:{port}",
            "region": "us-east-1",
            "credentials_file": credentials,
            "timeout": "5s",
            "retry_for": "0s",
            **options,
        }
        spec = f"s3:{url}:" + ":".join(f"{key}={value}" for key, value in given.items())
        observer: Any = registry.build(parse_observer(spec, registry.find_spec), "durable")
        observer.open()
        self.addCleanup(observer.close)
        return observer

    def reason(self, observer: Any, batch: Sequence[bytes]) -> str:
        """Store a batch that can't be stored now; return why."""
        error = self.assertRaises(Unavailable, observer.store, batch)
        self.assertNotIn(SECRET, str(error))
        return str(error)

    def objects(self, port: int) -> list[PackedObject]:
        """Return all objects, by name."""
        store = S3Store(
            "logs",
            config={
                "endpoint": f"http://127.0.0.1:{port}",
                "region": "us-east-1",
                "access_key_id": "k",
                "secret_access_key": "s",
            },
            client_options={"allow_http": True},
        )
        names = sorted(each["path"] for page in store.list() for each in page)
        return [PackedObject(name, "", bytes(store.get(name).bytes())) for name in names]

    def texts(self, port: int) -> list[str]:
        """Return the texts of all messages, in the order of names."""
        return [message["MESSAGE"] for packed in self.objects(port) for message in messages_of(packed)]

    def in_thread(self, call: Any) -> threading.Thread:
        """Run something beside the test."""
        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 60)
        return thread


class MotoTests(S3Case):
    """A server that keeps objects."""

    def setUp(self) -> None:
        """Start it."""
        self.server = self.serve(MotoServer)
        self.server.make_bucket("logs")

    def test_formats(self) -> None:
        """In every format the messages come back as they were, under a name of their time, first id and digest."""
        hostile = 'a\r\nb\x00\x1b[2J{log_format} ${HOST} %s "\\ \u2028\u202e\x85 é 😀\t'
        cases = {
            "ndjson-zstd": {},
            "ndjson-gzip": {"compress": "gzip"},
            "parquet-zstd": {"format": "parquet"},
            "parquet-gzip": {"format": "parquet", "compress": "gzip"},
        }
        for name, options in cases.items():
            observer = self.observer(self.server.port, url=f"s3://logs/{name}", **options)
            deliver(observer, prepared(observer, "one", hostile))

        found = self.objects(self.server.port)

        self.assertEqual([["one", hostile]] * 4, [[m["MESSAGE"] for m in messages_of(packed)] for packed in found])
        for packed, ending in zip(found, (".ndjson.gz", ".ndjson.zst", ".parquet", ".parquet"), strict=True):
            self.assertRegex(
                packed.path,
                r"^[a-z-]+/dt=2026-01-02/hh=03/20260102T030405\.678901Z-00000000-[0-9a-f]{32}\.[a-z.]+$",
            )
            self.assertTrue(packed.path.endswith(ending))

    def test_once(self) -> None:
        """The same batch again is the same object, which is left as it is."""
        observer = self.observer(self.server.port)
        batch = prepared(observer, *map(str, range(100)))

        deliver(observer, batch)
        deliver(observer, batch)

        self.assertEqual([*map(str, range(100))], self.texts(self.server.port))
        self.assertEqual(100, observer.counts.take().known)

    def test_no_bucket(self) -> None:
        """A bucket that is not there is later, and once it is made all is stored."""
        observer = self.observer(self.server.port, url="s3://other/in")
        batch = prepared(observer, "one")
        self.assertEqual("it answers 404 NoSuchBucket: look at the bucket in the URL", self.reason(observer, batch))
        self.server.make_bucket("other")

        deliver(observer, batch)

    def test_frozen_and_cut(self) -> None:
        """Frozen, cut in the middle and robbed of answers: nothing is missing, nothing twice, all in order."""
        proxy = Proxy(self.server.port)
        self.addCleanup(proxy.stop)
        observer = self.observer(proxy.port, timeout="1s")
        hinders = {
            1: lambda: self.server.freeze(),
            3: lambda: proxy.swallow_answers(),
            5: lambda: proxy.cut_after(3000),
            6: lambda: proxy.refuse(),
            8: lambda: proxy.stall(),
        }
        count = MESSAGES // BATCH
        first = 0
        for number in range(count):
            texts = [f"message {first + place}" for place in range(BATCH)]
            # Messages of later batches come later.
            batch = [
                observer.prepare(make_message(text, {"RCPTID": f"{first + place:08d}"}, 10**18 + first + place * 1000))
                for place, text in enumerate(texts)
            ]
            first += BATCH
            hinder = hinders.get(number % 10)
            if hinder is not None:
                hinder()
                outcomes_of(observer, batch)
                self.server.thaw()
                proxy.mend()
            deliver(observer, batch)

        found = self.texts(self.server.port)
        self.assertEqual(MESSAGES, len(found))
        self.assertEqual(MESSAGES, len({*found}))
        self.assertLess(0, observer.counts.take().known)

    def test_hurry_while_frozen(self) -> None:
        """Told to hurry while the service hangs, it ends within three seconds."""
        observer = self.observer(self.server.port, timeout="60s", retry_for="60s")
        deliver(observer, prepared(observer, "first"))
        self.server.freeze()
        found: list[Outcomes] = []
        batch = prepared(observer, "second", first=1)
        thread = self.in_thread(lambda: found.append(outcomes_of(observer, batch)))
        time.sleep(0.5)
        began_at = time.monotonic()
        observer.hurry()
        thread.join(60)
        took = time.monotonic() - began_at
        self.server.thaw()
        self.assertIsInstance(found[0][0], Unavailable)
        self.assertLess(took, HURRY_TIME)
        observer.open()

        deliver(observer, batch)

        self.assertEqual(["first", "second"], self.texts(self.server.port))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    status, body = 200, b""
    fields: dict[str, str] = {}
    seen: list[tuple[str, dict[str, str], bytes]] = []

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}, content))
        self.send_response(self.status)
        for name, value in {**self.fields, "Content-Length": str(len(self.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class AnswerTests(S3Case):
    """Answers as S3 documents them, over obstore itself."""

    def answering(self, status: int, code: str = "", context: ssl.SSLContext | None = None, **fields: str) -> int:
        """Start a service that gives one answer, and return its port."""
        body = f"<Error><Code>{code}</Code><Message>{SECRET}</Message></Error>".encode() if code else b""

        class Handler(_Handler):
            pass

        Handler.status, Handler.body, Handler.fields, Handler.seen = status, body, fields, []
        self.handler = Handler
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_port

    def test_request(self) -> None:
        """A request is one signed PUT that is refused where the object is there."""
        port = self.answering(200, ETag='"x"')
        observer = self.observer(port)

        self.assertIsNone(observer.store(prepared(observer, "one")))

        [(path, fields, content)] = self.handler.seen
        self.assertTrue(path.startswith("/logs/in/dt%3D2026-01-02/hh%3D03/"), path)
        self.assertEqual("*", fields["if-none-match"])
        self.assertEqual("application/zstd", fields["content-type"])
        self.assertIn("Credential=k/", fields["authorization"])
        self.assertNotIn(SECRET, str(fields))
        self.assertTrue(content.startswith(b"\x28\xb5\x2f\xfd"))

    def test_later(self) -> None:
        """What is not wrong with the messages is later, and said with status, code and hint alone; one request each."""
        cases = {
            (503, "SlowDown"): "it answers 503 SlowDown",
            (500, "InternalError"): "it answers 500 InternalError",
            (
                403,
                "AccessDenied",
            ): "it answers 403 AccessDenied: look at credentials_file=, and whether it may PutObject",
            (403, "RequestTimeTooSkewed"): "it answers 403 RequestTimeTooSkewed: the clock of this machine is wrong",
            (404, "NoSuchBucket"): "it answers 404 NoSuchBucket: look at the bucket in the URL",
            (409, "ConditionalRequestConflict"): (
                "it answers 409 ConditionalRequestConflict: something else happens to the same object"
            ),
            (301, "PermanentRedirect"): "it answers with a redirection; look at region= and endpoint=",
            (400, "InvalidRequest"): "it answers 400 InvalidRequest",
            (401, ""): "it answers 401: look at credentials_file=",
            (200, ""): "the answer has no ETag",
        }
        for (status, code), said in cases.items():
            with self.subTest(status=status, code=code):
                observer = self.observer(self.answering(status, code))
                self.assertEqual(said, self.reason(observer, prepared(observer, "one", "two")))
                self.assertEqual(1, len(self.handler.seen))

    def test_there(self) -> None:
        """412 and 304 say that the object is there."""
        for status, code in ((412, "PreconditionFailed"), (304, "")):
            observer = self.observer(self.answering(status, code))

            self.assertIsNone(observer.store(prepared(observer, "one", "two")))
            self.assertEqual(2, observer.counts.take().known)

    def test_too_large(self) -> None:
        """A message that is too large alone is refused for good."""
        observer = self.observer(self.answering(400, "EntityTooLarge"))

        outcomes = outcomes_of(observer, prepared(observer, "one", "two"))

        self.assertEqual([Rejected, Rejected], [type(outcome) for outcome in outcomes])
        self.assertEqual("it answers 400 EntityTooLarge", str(outcomes[0]))

    def test_away(self) -> None:
        """A service that can't be reached is later."""
        observer = self.observer(1)
        self.assertEqual("the connection was refused", self.reason(observer, prepared(observer, "one")))
        observer = self.observer(1, endpoint="https\\://nosuch.invalid")

        self.assertEqual(
            "the name of the service leads to no address", self.reason(observer, prepared(observer, "one"))
        )

    def test_tls(self) -> None:
        """The certificate of the service is checked, with its name."""
        authority = Authority("Root")
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        ca_file = write_ca_file(directory, "ca", authority)
        for name in ("localhost", "elsewhere"):
            key, cert = authority.issue("localhost", names=[x509.DNSName(name)]).write(directory, "server")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(cert, key)
            port = self.answering(200, "", context, ETag='"x"')
            trusting = self.observer(port, scheme="https", ca_file=ca_file)
            other = self.observer(port, scheme="https")

            if name == "localhost":
                self.assertIsNone(trusting.store(prepared(trusting, "one")))
            else:
                other = trusting
            said = self.reason(other, prepared(other, "one"))
            self.assertEqual("the certificate of the service is not accepted", said)
