"""The http observer, and servers whose answers are cut off, hang or lie: what is not stored there stays here."""

from __future__ import annotations

import shutil
import socket
import ssl
import struct
import tempfile
import time
from collections.abc import Callable
from threading import Lock

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase

from tests.system.certificates import Authority, write_ca_file
from tests.system.http_observing import ObserverCase, send, store
from tests.system.http_server import RudeServer
from tests.system.receiver import Receiver, wait_until
from webhookrx.errors import Rejected, Unavailable

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
OPEN = b"HTTP/1.1 200 OK\r\n\r\n"
STORED = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

#: What is done with a connection after an answer.
End = Callable[[socket.socket], object]


def read_request(connection: socket.socket) -> bytes:
    """Read a whole request and return its body; empty when none comes any more."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    (length,) = (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        body += connection.recv(65536)
    return body


def close(connection: socket.socket) -> None:
    """End it in order; over TLS, as TLS has it."""
    if isinstance(connection, ssl.SSLSocket):
        connection.unwrap().close()


def drop(connection: socket.socket) -> None:
    """End the TCP connection in order, and say nothing in TLS."""


def reset(connection: socket.socket) -> None:
    """Reset it."""
    # What has been sent is to be read before.
    time.sleep(0.1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def hang(connection: socket.socket) -> None:
    """Keep it open until the other end closes it."""
    while connection.recv(65536):
        pass


def drip(connection: socket.socket) -> None:
    """Go on, a byte at a time, as long as anybody is there."""
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def answering(answer: bytes, end: End) -> Callable[[socket.socket], None]:
    """Make a server that reads a request, answers it, and ends the connection."""

    def behave(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(answer)
        end(connection)

    return behave


class AnswerTests(ObserverCase):
    """One answer each."""

    async def outcome(self, server: RudeServer, scheme: str = "http", **options: str) -> str | None:
        """Store a message, and return why that failed; None when it did not."""
        observer = self.open(server, scheme, **{"timeout": "20s", "retry_for": "0s", **options})
        try:
            self.assertIsNone(await store(observer, "a"))
        except Unavailable as error:
            return str(error)
        return None

    async def test_whole(self) -> None:
        """An answer that comes to its end counts, whatever becomes of the connection after it."""
        for answer, end in [
            (STORED, close),
            (STORED, reset),
            (STORED, hang),
            (STORED + b"more than it said", hang),
            (CHUNKED + b"2\r\nok\r\n0\r\n\r\n", reset),
            (CHUNKED + b"0\r\n\r\n", hang),
            (OPEN, close),
            (OPEN + b"ok", close),
            (b"HTTP/1.0 200 OK\r\n\r\nok", close),
            (b"HTTP/1.1 204 No Content\r\n\r\n", hang),
            (b"HTTP/1.1 204 No Content\r\nContent-Length: 100\r\n\r\n", reset),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + STORED, close),
            (LENGTH + b"x" * 100, reset),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 70_000, hang),
            (OPEN, drip_much),
        ]:
            with self.subTest(f"{answer[:80]!r} {end.__name__}"):
                self.assertIsNone(await self.outcome(self.serve_rudely(answering(answer, end))))

    async def test_cut(self) -> None:
        """One that does not is none, and is asked for again."""
        for answer, end in [
            (LENGTH, close),
            (LENGTH + b"abc", close),
            (LENGTH + b"abc", reset),
            (LENGTH + b"x" * 99, close),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 60_000, close),
            (CHUNKED, close),
            (CHUNKED + b"64\r\nabc", close),
            (CHUNKED + b"3\r\nabc\r\n", close),
            (CHUNKED + b"3\r\nabc\r\n0\r\n", reset),
            (CHUNKED + b"3\r\nabcdef", hang),
            (OPEN, reset),
            (OPEN + b"abc", reset),
        ]:
            with self.subTest(f"{answer[:80]!r} {end.__name__}"):
                outcome = await self.outcome(self.serve_rudely(answering(answer, end)))

                self.assertEqual("it answers 200 OK, but the answer is cut off", outcome)

    async def test_no_head(self) -> None:
        """Nor is one whose head is cut off, or that is no more than an interim one."""
        for answer in (b"", b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"):
            with self.subTest(answer):
                outcome = await self.outcome(self.serve_rudely(answering(answer, close)))

                self.assertEqual("the connection was closed without an answer", outcome)
        interim = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
        outcome = await self.outcome(self.serve_rudely(answering(interim, close)))
        self.assertEqual("the connection was closed without an answer", outcome)

    async def test_hangs(self) -> None:
        """One that takes longer than the timeout is none, however it spends that time."""
        for answer, end in [(LENGTH, hang), (LENGTH * 10, drip), (CHUNKED, hang), (OPEN, drip)]:
            with self.subTest(f"{answer[:80]!r} {end.__name__}"):
                server = self.serve_rudely(answering(answer[: len(LENGTH) + 10], end))
                outcome = await self.outcome(server, timeout="500ms")

                self.assertEqual("it answers 200 OK, but the answer has not ended within 0.5 s", outcome)
                await deferToThread(wait_until, lambda server=server: server.ended, "the end of the connection")

    async def test_refusal(self) -> None:
        """A refusal counts by its head: a server that does not read all of a request can't do better."""
        for answer, end in [
            (b"HTTP/1.1 413 Too Large\r\nContent-Length: 100\r\n\r\nabc", close),
            (b"HTTP/1.1 413 Too Large\r\n\r\nabc", reset),
        ]:
            with self.subTest(f"{answer!r} {end.__name__}"):
                server = self.serve_rudely(answering(answer, end))
                observer = self.open(server, timeout="20s", retry_for="0s")

                (outcome,) = await store(observer, "a") or (None,)

                self.assertIsInstance(outcome, Rejected)

    async def test_not_read(self) -> None:
        """One that comes from a server which has not read the request, not even into its kernel, is none."""

        def behave(connection: socket.socket) -> None:
            connection.recv(1)
            connection.sendall(STORED)
            reset(connection)

        server = self.serve_rudely(behave)
        # It fits into our kernel, and so has left us.
        observer = self.open(server, timeout="20s", retry_for="0s")

        error = await self.assertFailure(store(observer, "x" * 300_000), Unavailable)

        self.assertEqual("it answered before it had the request", str(error))

    async def test_out_of_step(self) -> None:
        """A second answer to a request does not become that to the next one."""
        bodies: list[bytes] = []

        def behave(connection: socket.socket) -> None:
            while body := read_request(connection):
                bodies.append(body)
                connection.sendall(STORED + STORED if len(bodies) == 1 else STORED)

        server = self.serve_rudely(behave)
        observer = self.open(server, timeout="20s", retry_for="0s")
        for text in "abc":
            self.assertIsNone(await store(observer, text))

        self.assertEqual((3, 2), (len(bodies), server.begun))

    async def test_tls(self) -> None:
        """Over TLS an answer without a length needs close_notify; one that has come to its end needs nothing."""
        directory = self.directory
        authority = Authority("authority")
        ca_file = write_ca_file(directory, "ca", authority)
        key_file, cert_file = authority.issue("server").write(directory, "server")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(cert_file, key_file)
            context.minimum_version = context.maximum_version = version
            cut = "it answers 200 OK, but the answer is cut off"
            for answer, end, expected in [
                (OPEN + b"ok", close, None),
                (STORED, drop, None),
                (CHUNKED + b"0\r\n\r\n", drop, None),
                (OPEN, drop, cut),
                (OPEN + b"ok", drop, cut),
                (OPEN + b"ok", reset, cut),
                (LENGTH + b"ok", close, cut),
                (LENGTH + b"ok", drop, cut),
                (CHUNKED + b"2\r\nok\r\n", close, cut),
            ]:
                with self.subTest(f"{version} {answer!r} {end.__name__}"):
                    server = self.serve_rudely(answering(answer, end), context)

                    self.assertEqual(expected, await self.outcome(server, "https", ca_file=ca_file))


def drip_much(connection: socket.socket) -> None:
    """Send more than anybody reads, in small pieces."""
    for _ in range(100):
        connection.sendall(b"x" * 1000)
        time.sleep(0.001)
    hang(connection)


class ProgramTests(SynchronousTestCase):
    """The real program."""

    def test_spool(self) -> None:
        """
        Behind a spool, what a server said 200 to by answers that are cut off leaves the spool once it says so in whole.
        """
        lock, tries, stored = Lock(), 0, set[bytes]()

        def behave(connection: socket.socket) -> None:
            nonlocal tries
            while body := read_request(connection):
                with lock:
                    tries += 1
                    is_cut = tries <= 3
                if is_cut:
                    connection.sendall((LENGTH + b"abc", CHUNKED + b"1\r\n", STORED[:20])[tries % 3])
                    return
                stored.update(body.splitlines())
                connection.sendall(STORED)

        server = RudeServer(behave)
        self.addCleanup(server.stop)
        directory = tempfile.mkdtemp(prefix="webhookrx-spool-")
        self.addCleanup(shutil.rmtree, directory)
        url = f"http://127.0.0.1:{server.port}/in"
        receiver = Receiver(
            "--observer",
            f"spool:{directory}/spool:observer=http:{url}:retry_for=0s:format=lines:template=${{MESSAGE}}",
        )
        self.addCleanup(receiver.clean_up)
        receiver.start()
        sent = {str(number).encode() for number in range(200)}

        for text in sent:
            self.assertEqual(200, send(receiver, text))
        wait_until(lambda: stored == sent, "all of them at the other end")

        self.assertGreater(tries, 3)
        wait_until(lambda: "the answer is cut off" in receiver.log(), "the reason in the log")
