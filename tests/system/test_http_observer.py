"""The http observer over sockets, against servers that behave well and badly, and in the real program."""

from __future__ import annotations

import gzip
import os
import select
import shutil
import socket
import ssl
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from cryptography import x509
from twisted.internet import reactor
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase

from tests.system.certificates import Authority, write, write_ca_file
from tests.system.http_observing import ObserverCase, send, store, texts
from tests.system.http_server import PostServer, Reply
from tests.system.receiver import PATIENCE, Receiver, wait_until
from webhookrx.errors import Rejected, Unavailable

#: Seconds by which a loaded machine may be late.
SLACK = 5.0


def stream(begin: bytes, more: bytes) -> Callable[[socket.socket], None]:
    """Begin an answer at once, and go on with it for ever, without a look at the request."""

    def behave(connection: socket.socket) -> None:
        connection.sendall(begin)
        while True:
            connection.sendall(more)

    return behave


class PlainTests(ObserverCase):
    """Over TCP."""

    async def test_batches(self) -> None:
        """Batches arrive in order, over one connection."""
        server = self.serve()
        observer = self.open(server, batch="2")

        self.assertIsNone(await store(observer, "a", "b", "c"))
        self.assertIsNone(await store(observer, "d"))

        self.assertEqual((["a", "b", "c", "d"], 1), (texts(server), server.connections))
        self.assertEqual({"/in?x=1"}, {posted.path for posted in server.posted})

    async def test_large(self) -> None:
        """A batch of many megabytes arrives whole."""
        server = self.serve()
        observer = self.open(server)
        large = [f"{number}" + "x" * 100_000 for number in range(80)]

        self.assertIsNone(await store(observer, *large))

        self.assertEqual(large, texts(server))

    async def test_too_large(self) -> None:
        """A 413 that comes before the body is read, and closes, still finds the one that is too large."""
        server = self.serve()
        server.largest = 100_000
        # The answer is lost when the reset of the rest overtakes it.
        observer = self.open(server, retry_for="30s")

        outcomes = await store(observer, "x" * 900_000, "b")

        assert outcomes is not None
        self.assertIsInstance(outcomes[0], Rejected)
        self.assertIsNone(outcomes[1])
        self.assertEqual(["b"], texts(server))

    async def test_retry_after(self) -> None:
        """A server that asks to be left alone for a second is."""
        server = self.serve()
        server.replies = [Reply(503, {"Retry-After": "1"})]
        observer = self.open(server)
        began_at = time.monotonic()

        self.assertIsNone(await store(observer, "a"))

        self.assertGreaterEqual(time.monotonic() - began_at, 1.0)
        first, second = server.posted
        self.assertEqual(first.fields["idempotency-key"], second.fields["idempotency-key"])

    async def test_reset(self) -> None:
        """A connection that is reset instead of an answer costs a second request."""
        server = self.serve()
        server.replies = [Reply(reset=True), Reply(reset=True)]
        observer = self.open(server)

        self.assertIsNone(await store(observer, "a"))

        self.assertEqual((["a"], 3), (texts(server), len(server.posted)))

    async def test_stale(self) -> None:
        """A connection that the server closes between two batches costs nothing, without any time to retry."""
        server = self.serve()
        server.reply = lambda body: Reply(close=True)
        observer = self.open(server, retry_for="0s")

        for text in "abcde":
            self.assertIsNone(await store(observer, text))

        self.assertEqual([*"abcde"], texts(server))

    async def test_silent(self) -> None:
        """A server that does not answer is given up after the timeout; the next batch has another connection."""
        server = self.serve()
        server.replies = [Reply(silent=True)]
        observer = self.open(server, timeout="500ms", retry_for="0s")
        began_at = time.monotonic()

        error = await self.assertFailure(store(observer, "a"), Unavailable)

        self.assertEqual("no answer within 0.5 s", str(error))
        self.assertLess(time.monotonic() - began_at, 0.5 + SLACK)
        self.assertIsNone(await store(observer, "b"))
        self.assertEqual(2, server.connections)

    async def test_silent_later(self) -> None:
        """A request that times out on a kept connection is not sent again after that."""
        server = self.serve()
        server.replies = [Reply(), Reply(silent=True)]
        observer = self.open(server, timeout="500ms", retry_for="0s")
        self.assertIsNone(await store(observer, "a"))

        await self.assertFailure(store(observer, "b"), Unavailable)

        await deferToThread(time.sleep, 0.3)
        self.assertEqual((2, 1), (len(server.posted), server.connections))

    async def test_clock_set_back(self) -> None:
        """A wall clock that is set back by a day makes nobody wait for longer."""
        server = self.serve()
        server.replies = [Reply(silent=True)]
        observer = self.open(server, timeout="500ms", retry_for="0s")
        began_at = time.monotonic()
        stored = store(observer, "a")
        seconds = reactor.seconds
        self.patch(reactor, "seconds", lambda: seconds() - 86400)

        await self.assertFailure(stored, Unavailable)

        self.assertIsNone(await store(observer, "b"))
        self.assertLess(time.monotonic() - began_at, 0.5 + SLACK)

    async def test_back(self) -> None:
        """A server that is away, and back in time, gets the batch."""
        away = PostServer()
        away.stop()
        observer = self.open(away)
        stored = store(observer, "a")
        await deferToThread(time.sleep, 0.3)

        server = self.serve(port=away.port)

        self.assertIsNone(await stored)
        self.assertEqual(["a"], texts(server))

    async def test_hurry(self) -> None:
        """When the receiver stops, a pause of many seconds ends at once."""
        server = self.serve()
        server.reply = lambda body: Reply(503, {"Retry-After": "50"})
        observer = self.open(server, retry_for="1m")
        stored = store(observer, "a")
        await deferToThread(wait_until, lambda: server.posted, "the first request")
        began_at = time.monotonic()

        observer.hurry()

        error = await self.assertFailure(stored, Unavailable)
        self.assertGreater(error.retry_after, 40.0)
        self.assertLess(time.monotonic() - began_at, SLACK)
        self.assertLessEqual(len(server.posted), 2)


class RudeTests(ObserverCase):
    """Servers that want to be a burden."""

    #: More than the kernel takes from one who writes while the other does not read.
    LARGE = "x" * 8_000_000

    async def test_streams(self) -> None:
        """One that reads nothing and sends without end is rid of its connection at once, over TLS too."""
        authority = Authority("authority")
        ca_file = write_ca_file(self.directory, "ca", authority)
        key_file, cert_file = authority.issue("server").write(self.directory, "server")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert_file, key_file)
        head = b"HTTP/1.1 503 No\r\nContent-Length: 99999999999\r\n\r\n"
        for scheme, server, options in [
            ("http", self.serve_rudely(stream(head, b"x" * 16_000)), {}),
            ("https", self.serve_rudely(stream(head, b"x" * 16_000), context), {"ca_file": ca_file}),
        ]:
            observer = self.open(server, scheme, timeout="20s", retry_for="0s", **options)

            for _ in range(3):
                error = await self.assertFailure(store(observer, self.LARGE), Unavailable)
                self.assertTrue(str(error).startswith("it answers 503 "), str(error))

            await deferToThread(wait_until, lambda server=server: server.ended == 3, "the end of each connection")
            self.assertEqual(3, server.begun)

    async def test_silent(self) -> None:
        """One that does neither is given up after the timeout, with its connection."""
        over = Event()
        server = self.serve_rudely(lambda connection: self.wait_for_reset(connection, over))
        observer = self.open(server, timeout="500ms", retry_for="0s")

        error = await self.assertFailure(store(observer, self.LARGE), Unavailable)

        self.assertEqual("no answer within 0.5 s", str(error))
        await deferToThread(wait_until, over.is_set, "the reset")

    def wait_for_reset(self, connection: socket.socket, over: Event) -> None:
        """Read nothing, and take note once there is nobody at the other end."""
        poll = select.poll()
        poll.register(connection, select.POLLERR | select.POLLHUP)
        if poll.poll(1000 * PATIENCE):
            over.set()

    async def test_endless_heads(self) -> None:
        """A head that never ends is cut off."""
        for begin, more in [
            (b"HTTP/1.1 200 OK\r\n", b"X: " + b"y" * 15_000 + b"\r\n"),
            (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        ]:
            server = self.serve_rudely(stream(begin, more))
            observer = self.open(server, timeout="20s", retry_for="0s")

            error = await self.assertFailure(store(observer, "a"), Unavailable)

            self.assertEqual("the head of its answer is longer than 64 KiB", str(error))
            await deferToThread(wait_until, lambda server=server: server.ended, "the end of the connection")

    async def test_early(self) -> None:
        """One that says that it has the messages when it can't have them is not believed."""
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        server = self.serve_rudely(lambda connection: (connection.sendall(answer), time.sleep(SLACK)))
        observer = self.open(server, timeout="20s", retry_for="0s")

        error = await self.assertFailure(store(observer, self.LARGE), Unavailable)

        self.assertEqual("it answered before it had the request", str(error))

    async def test_packed(self) -> None:
        """An answer is not unpacked, however often it says that it is packed."""
        bomb = gzip.compress(gzip.compress(bytes(20_000_000)))
        server = self.serve()
        server.replies = [Reply(400, {"Content-Encoding": "gzip, gzip"}, bomb)]
        observer = self.open(server)

        outcomes = await store(observer, "a")

        assert outcomes is not None
        self.assertIn(r": \x8b\u0008", str(outcomes[0]))


class TLSTests(ObserverCase):
    """Over TLS."""

    def setUp(self) -> None:
        """Make an authority, and a server that lets nobody in without a certificate."""
        super().setUp()
        self.authority = Authority("authority")
        self.ca_file = write_ca_file(self.directory, "ca", self.authority)
        key_file, cert_file = self.authority.issue("server").write(self.directory, "server")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert_file, key_file)

    def ask_for_certificate(self) -> dict[str, str]:
        """Let nobody in without a certificate, and return the options of one who has."""
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.context.load_verify_locations(self.ca_file)
        key_file, cert_file = self.authority.issue("client").write(self.directory, "client")
        return {"key_file": key_file, "cert_file": cert_file}

    async def test_client_certificate(self) -> None:
        """With CA file, certificate and token it is let in; what is read anew at a reopen counts from then on."""
        options = self.ask_for_certificate()
        token_file = os.path.join(self.directory, "token")
        with open(token_file, "w") as file:
            file.write("first-token\n")
        server = self.serve(self.context)
        observer = self.open(server, "https", ca_file=self.ca_file, token_file=token_file, **options)

        self.assertIsNone(await store(observer, "a"))
        with open(token_file, "w") as file:
            file.write("second-token\n")
        await deferToThread(observer.reopen)
        self.assertIsNone(await store(observer, "b"))

        self.assertEqual(
            ["Bearer first-token", "Bearer second-token"], [each.fields["authorization"] for each in server.posted]
        )
        self.assertEqual(2, server.connections)

    async def test_no_certificate(self) -> None:
        """Without one it is not let in, and says so, with TLS 1.2 as with 1.3."""
        self.ask_for_certificate()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            self.context.minimum_version = ssl.TLSVersion.TLSv1_2
            self.context.maximum_version = version
            server = self.serve(self.context)
            observer = self.open(server, "https", ca_file=self.ca_file, retry_for="0s")

            error = await self.assertFailure(store(observer, "a"), Unavailable)

            self.assertIn("TLS: ", str(error))
            self.assertEqual([], server.posted)

    async def test_not_trusted(self) -> None:
        """A server that the CA file does not vouch for gets nothing."""
        other = write_ca_file(self.directory, "other", Authority("other"))
        server = self.serve(self.context)
        observer = self.open(server, "https", ca_file=other, retry_for="0s")

        error = await self.assertFailure(store(observer, "a"), Unavailable)

        self.assertEqual(("TLS: certificate verify failed", []), (str(error), server.posted))

    async def test_other_host(self) -> None:
        """A server whose certificate names no host, or not this one, gets nothing, and least of all a token."""
        token_file = write(os.path.join(self.directory, "token"), b"a-token\n")
        for names in ([], [x509.RFC822Name("root@127.0.0.1")], [x509.DNSName("127.0.0.1")], [x509.DNSName("*")]):
            key_file, cert_file = self.authority.issue("127.0.0.1", names=names).write(self.directory, "other")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(cert_file, key_file)
            server = self.serve(context)
            observer = self.open(server, "https", ca_file=self.ca_file, token_file=token_file, retry_for="0s")

            error = await self.assertFailure(store(observer, "a"), Unavailable)

            self.assertEqual(("TLS: the certificate is not for 127.0.0.1", []), (str(error), server.posted))

    async def test_plain_server(self) -> None:
        """A server without TLS gets nothing."""
        server = self.serve()
        observer = self.open(server, "https", retry_for="0s")

        error = await self.assertFailure(store(observer, "a"), Unavailable)

        self.assertIn("TLS: ", str(error))
        self.assertEqual([], server.posted)


class ProgramTests(SynchronousTestCase):
    """The real program."""

    def receiver(self, *options: str) -> Receiver:
        """Start a receiver."""
        receiver = Receiver(*options)
        self.addCleanup(receiver.clean_up)
        return receiver.start()

    def test_to_another(self) -> None:
        """What one receiver answers 200 another one has by then, pairs and all."""
        last = self.receiver("--source", "webhook-json", "--paths", "/in")
        first = self.receiver(
            "--source", "webhook-json", "--observer", f"http:http://127.0.0.1:{last.port}/in:format=each"
        )

        status = send(first, b'{"MESSAGE": "hello", "order": {"id": 12345678901234567890}}')

        self.assertEqual(200, status)
        (message,) = last.messages()
        self.assertEqual(("hello", 12345678901234567890), (message["MESSAGE"], message["order.id"]))

    def test_away(self) -> None:
        """While the other end is away the sender is told that nothing was stored, and the log says why."""
        server = PostServer()
        server.stop()
        receiver = self.receiver("--observer", f"http:http://127.0.0.1:{server.port}/in:retry_for=100ms")

        self.assertEqual(503, send(receiver, b"one"))
        wait_until(lambda: "Connection was refused" in receiver.log(), "the reason in the log")
        server = PostServer(port=server.port)
        self.addCleanup(server.stop)
        self.assertEqual(200, send(receiver, b"two"))

        self.assertEqual(["two"], texts(server))

    def test_spool(self) -> None:
        """Behind a spool a server that is away, then refuses, then is well again gets all messages, in order."""
        server = PostServer()
        server.stop()
        directory = tempfile.mkdtemp(prefix="webhookrx-spool-")
        self.addCleanup(shutil.rmtree, directory)
        url = f"http://127.0.0.1:{server.port}/in"
        receiver = self.receiver("--observer", f"spool:{directory}/spool:observer=http:{url}:batch=7:retry_for=100ms")
        sent = [str(number) for number in range(40)]

        self.assertEqual([200] * 40, [send(receiver, text.encode()) for text in sent])
        server = PostServer(port=server.port)
        self.addCleanup(server.stop)
        server.replies = [Reply(500), Reply(reset=True), Reply(429, {"Retry-After": "1"})]
        server.reply = lambda body: Reply(413 if body.count(b"\n") > 2 else 200)
        wait_until(lambda: len(server.lines()) >= 40, "all of them")

        self.assertEqual(sent, texts(server))

    def test_stop(self) -> None:
        """A stop is not held up by a server that is away: who waits for it is told so."""
        server = PostServer()
        server.reply = lambda body: Reply(503)
        self.addCleanup(server.stop)
        url = f"http://127.0.0.1:{server.port}/in"
        receiver = self.receiver("--drain-timeout", "4s", "--observer", f"http:{url}:retry_for=1h")
        with ThreadPoolExecutor(1) as sender:
            status = sender.submit(send, receiver, b"one")
            wait_until(lambda: server.posted, "a request to the other end")
            began_at = time.monotonic()

            self.assertEqual(0, receiver.stop())

            self.assertLess(time.monotonic() - began_at, 2 * SLACK)
            self.assertEqual(503, status.result(PATIENCE))
