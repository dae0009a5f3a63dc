"""
The observers of Elasticsearch, OpenSearch, Loki and OTLP over sockets and TLS, against servers that are played from the
documentation, and in the real program.
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace

from cryptography import x509
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase

from tests.documents import ROOT
from tests.specs import parse_observer
from tests.system.certificates import Authority, write, write_ca_file
from tests.system.http_observing import ObserverCase, send
from tests.system.http_server import Reply
from tests.system.http_stores import HTTP_STORE_KINDS, HTTPStoreKind, PlayedElasticsearch, StoreServer
from tests.system.receiver import Receiver, wait_until
from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.http_stores.elasticsearch import read_elasticsearch
from webhookrx.observers.http_stores.observer import HTTPObserver, connect
from webhookrx.observers.registry import build
from webhookrx.testing import make_message

HOSTILE = 'a\r\nb\x00\x1b[2J{log_format} ${HOST} %s "\\ \u2028\u202e\x85 é 😀'
MiB = 1024 * 1024


def deliver(observer: HTTPObserver, *texts: str) -> Deferred[Sequence[Exception | None] | None]:
    """Store messages with these texts, each its own id, in a thread, as a lane does."""
    batch = [observer.prepare(make_message(text, {"RCPTID": f"id-{text[:40]}"})) for text in texts]
    return deferToThread(observer.store, batch)


class _StoreCase(ObserverCase):
    def play(self, kind: HTTPStoreKind, context: ssl.SSLContext | None = None) -> StoreServer:
        """Start a store."""
        store = kind.make()
        if isinstance(store, PlayedElasticsearch):
            store.pipelines.add("p")
        server = StoreServer(store, context)
        self.addCleanup(server.stop)
        return server

    def observe(self, spec: str) -> HTTPObserver:
        """Open an observer."""
        observer = build(parse_observer(spec), "durable")
        assert isinstance(observer, HTTPObserver)
        observer.open()
        self.observers.append(observer)
        return observer


class SocketTests(_StoreCase):
    """Over TCP."""

    async def test_stored(self) -> None:
        """Texts of any kind are stored, bad ones are told apart, packed or not; over one connection."""
        for name, kind in HTTP_STORE_KINDS.items():
            for gzip in ("no", "yes"):
                server = self.play(kind)
                server.store.refused = "BAD"
                observer = self.observe(kind.spec(server.port, gzip=gzip))

                outcomes = await deliver(observer, "a", HOSTILE, "BAD", "b")
                again = await deliver(observer, "c")

                assert outcomes is not None
                self.assertEqual([2], [place for place, each in enumerate(outcomes) if each is not None], name)
                self.assertIsInstance(outcomes[2], Rejected)
                self.assertIsNone(again)
                self.assertEqual(["a", HOSTILE, "b", "c"], [text for _, text in server.store.copies()], name)
                self.assertEqual(1, server.connections, name)

    async def test_large_message(self) -> None:
        """A message of 10 MiB among small ones is stored."""
        large = "é\n" * (10 * MiB // 3)
        for name, kind in HTTP_STORE_KINDS.items():
            server = self.play(kind)
            observer = self.observe(kind.spec(server.port, timeout="60s", retry_for="60s"))

            self.assertIsNone(await deliver(observer, "a", large, "b"), name)
            self.assertTrue(["a", large, "b"] == [text for _, text in server.store.copies()], name)

    async def test_hindered(self) -> None:
        """Answers that are lost, or ask for later, lose nothing; what has an id is there once."""
        for name, kind in HTTP_STORE_KINDS.items():
            server = self.play(kind)
            server.replies = [Reply(429, {"Retry-After": "1"}), Reply(reset=True), Reply(503), Reply(body=b"<html>")]
            observer = self.observe(kind.spec(server.port, retry_for="60s"))

            self.assertIsNone(await deliver(observer, "a", "b"), name)
            self.assertEqual(["a", "b"], [text for _, text in server.store.copies()], name)


class BulkTests(_StoreCase):
    """The bulk API over TCP."""

    KIND = HTTP_STORE_KINDS["opensearch"]

    async def test_long_answer(self) -> None:
        """The answer to 5,000 documents, longer than 64 KiB, is read whole."""
        server = self.play(self.KIND)
        observer = self.observe(self.KIND.spec(server.port))
        texts = [str(number) for number in range(5000)]

        self.assertIsNone(await deliver(observer, *texts))

        self.assertEqual((texts, 1), ([text for _, text in server.store.copies()], len(server.posted)))

    async def test_longest_answer(self) -> None:
        """One that is longer than what is kept is not believed: fewer documents are sent, and each is stored once."""
        server = self.play(self.KIND)
        target, store = read_elasticsearch("opensearch", (f"http://127.0.0.1:{server.port}/logs",), {})
        observer = HTTPObserver("opensearch:", target, replace(store, keep=2000), connect)
        observer.open()
        self.observers.append(observer)
        texts = [str(number) for number in range(500)]

        self.assertIsNone(await deliver(observer, *texts))

        self.assertEqual(texts, [text for _, text in server.store.copies()])
        self.assertGreater(len(server.posted), 4)


class TLSTests(_StoreCase):
    """Over TLS."""

    def context_for(self, *names: x509.GeneralName) -> ssl.SSLContext:
        """Make TLS of a server whose certificate has these names."""
        options = {"names": names} if names else {}
        key_file, cert_file = self.authority.issue("server", **options).write(self.directory, "server")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert_file, key_file)
        return context

    def setUp(self) -> None:
        """Make an authority."""
        super().setUp()
        self.authority = Authority("authority")
        self.ca_file = write_ca_file(self.directory, "ca", self.authority)

    async def test_secret(self) -> None:
        """A secret goes with each request, and is read anew at a reopen."""
        for name, kind in HTTP_STORE_KINDS.items():
            server = self.play(kind, self.context_for())
            secret = write(os.path.join(self.directory, "secret"), b"first\n")
            observer = self.observe(kind.spec(server.port, "https", **{"ca_file": self.ca_file, kind.secret: secret}))
            self.assertIsNone(await deliver(observer, "a"), name)
            write(secret, b"second\n")
            await deferToThread(observer.reopen)
            self.assertIsNone(await deliver(observer, "b"), name)

            scheme = "ApiKey" if kind.secret == "api_key_file" else "Bearer"
            self.assertEqual(
                [f"{scheme} first", f"{scheme} second"], [each.fields["authorization"] for each in server.posted]
            )

    async def test_wrong_name(self) -> None:
        """A server with a certificate of another name gets nothing, and the error says so."""
        context = self.context_for(x509.DNSName("logs.example.com"))
        for name, kind in HTTP_STORE_KINDS.items():
            server = self.play(kind, context)
            observer = self.observe(kind.spec(server.port, "https", ca_file=self.ca_file, retry_for="0s"))

            error = await self.assertFailure(deliver(observer, "a"), Unavailable)

            self.assertIn("TLS: ", str(error))
            self.assertEqual([], server.posted, name)

    async def test_unknown_authority(self) -> None:
        """So does one that an unknown authority vouches for."""
        other = write_ca_file(self.directory, "other", Authority("other"))
        for name, kind in HTTP_STORE_KINDS.items():
            server = self.play(kind, self.context_for())
            observer = self.observe(kind.spec(server.port, "https", ca_file=other, retry_for="0s"))

            error = await self.assertFailure(deliver(observer, "a"), Unavailable)

            self.assertIn("TLS: ", str(error))
            self.assertEqual([], server.posted, name)


class ProgramTests(SynchronousTestCase):
    """The real program."""

    def test_spool(self) -> None:
        """
        Behind a spool a store that is away, then busy, then well again gets all messages once; a bad one becomes a dead
        letter. The log says at the start on whose word messages leave the spool.
        """
        directory = tempfile.mkdtemp(prefix="webhookrx-spool-")
        self.addCleanup(shutil.rmtree, directory)
        stores: dict[str, StoreServer] = {}
        options: list[str] = []
        for name, kind in HTTP_STORE_KINDS.items():
            stores[name] = server = StoreServer(kind.make())
            if isinstance(server.store, PlayedElasticsearch):
                server.store.pipelines.add("p")
            server.store.refused = "BAD"
            server.stop()
            options += ["--observer", f"spool:{directory}/{name}:observer={kind.spec(server.port, retry_for='100ms')}"]
        receiver = Receiver(*options)
        self.addCleanup(receiver.clean_up)
        receiver.start()
        for name, word in (("loki", "written"), ("otlp", "queued")):
            self.assertRegex(receiver.log(), rf"on the word '{word}' \(.*\) of {name}:")

        sent = [*map(str, range(20)), "BAD", *map(str, range(20, 40))]
        good = [text for text in sent if text != "BAD"]
        self.assertEqual([200] * 41, [send(receiver, text.encode()) for text in sent])
        for name, away in stores.items():
            stores[name] = server = StoreServer(away.store, port=away.port)
            self.addCleanup(server.stop)
            server.replies = [Reply(500), Reply(reset=True), Reply(429, {"Retry-After": "1"})]
        for name, server in stores.items():
            wait_until(lambda store=server.store: len(store.copies()) >= 40, f"all of them are in {name}")
            self.assertEqual(good, [text for _, text in server.store.copies()], name)
        self.assertEqual(0, receiver.stop())
        for name in stores:
            dead = subprocess.run(
                [sys.executable, "-m", "webhookrx", "spool", "list", f"{directory}/{name}"],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=60,
            )
            self.assertIn("dead letters: 1 messages", dead.stdout, (name, dead.stderr))

    def test_check_opens_nothing(self) -> None:
        """--check reads a spec string and asks nobody."""
        for kind in HTTP_STORE_KINDS.values():
            store = kind.make()
            server = StoreServer(store)
            self.addCleanup(server.stop)
            checked = subprocess.run(
                [sys.executable, "-m", "webhookrx", "--check", "--observer", kind.spec(server.port)],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=60,
            )
            self.assertEqual(0, checked.returncode, checked.stderr)
            self.assertEqual(0, server.connections)
