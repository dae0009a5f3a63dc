"""The syslog observer on real sockets, and with real syslog daemons where they are installed."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Sequence
from threading import Thread, Timer
from unittest import skipUnless

from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.observer_contract import ObserverContract
from tests.specs import parse_observer
from tests.system.certificates import SERVER, Authority, write_ca_file
from tests.system.servers.process import free_port
from tests.system.syslog_server import StreamServer, text_of, wait_until
from webhookrx.errors import Rejected, Unavailable
from webhookrx.interfaces import IMessageObserver
from webhookrx.observers import syslog_connection
from webhookrx.observers.sockets import Deadline
from webhookrx.observers.syslog import SyslogObserver, build_syslog
from webhookrx.testing import make_message

#: Twice what the buffers of two kernels take, so that a batch of it can't be sent while nobody reads.
LARGE = 16 * 1024 * 1024


def build(spec: str) -> SyslogObserver:
    """Make an observer of a spec string as the configuration does."""
    observer = parse_observer(spec)
    return build_syslog(spec, observer.args, dict(observer.options), "durable")


def store(observer: IMessageObserver, *texts: str) -> Sequence[Exception | None] | None:
    """Store a batch."""
    return observer.store([observer.prepare(make_message(text)) for text in texts])


def large_texts() -> list[str]:
    """Return texts, each unique, that are L{LARGE} together."""
    size = 16 * 1024
    return [f"{number}:".ljust(size, "x") for number in range(LARGE // size)]


class Case(SynchronousTestCase):
    """Makes servers and observers that are gone after the test."""

    def opened(self, spec: str) -> SyslogObserver:
        """Make and open an observer."""
        observer = build(spec)
        observer.open()
        self.addCleanup(observer.close)
        return observer

    def server(
        self, path: str | None = None, context: ssl.SSLContext | None = None, take: int | None = None
    ) -> StreamServer:
        """Start a server."""
        server = StreamServer(path, context, take)
        self.addCleanup(server.stop)
        return server

    def directory(self) -> str:
        """Make a directory whose name is short enough for a UNIX socket in it."""
        directory = tempfile.mkdtemp(prefix="rx")
        self.addCleanup(shutil.rmtree, directory)
        return directory


class TCPContractTests(ObserverContract, Case):
    """A syslog observer on TCP is an observer."""

    def setUp(self) -> None:
        """Start a server."""
        self.running = self.server()

    def make_observer(self) -> SyslogObserver:
        """Make one of that server."""
        return build(f"syslog:tcp:127.0.0.1:{self.running.port}:escape=no")

    def break_observer(self) -> None:
        """Stop the server."""
        self.running.stop()

    def stored_texts(self) -> list[str]:
        """Read what came; the server may still be reading what its kernel has acknowledged."""
        length = -1
        while length != len(self.running.data()):
            length = len(self.running.data())
            time.sleep(0.1)
        return [text_of(frame) for frame in self.running.frames()]


class TCPTests(Case):
    """Streams over TCP."""

    def test_octet_counting(self) -> None:
        """A frame is a message whatever is in it: with escape=no, line feeds and digits too."""
        server = self.server()
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}:max_size=1MiB:escape=no")
        texts = ["a\nb\n", "5 hello", "é\x00\n12 <13>1", "x" * 100_000]

        self.assertIsNone(store(observer, *texts))

        wait_until(lambda: len(server.frames()) == len(texts))
        self.assertEqual(texts, [text_of(frame) for frame in server.frames()])

    def test_escaped(self) -> None:
        """Unless told otherwise a frame is one line; its count is that of what is sent."""
        server = self.server()
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}:bom=no")

        self.assertIsNone(store(observer, "a\nb", "é\x1b[2J\u2028"))

        wait_until(lambda: len(server.frames()) == 2)
        self.assertEqual([r"a\nb", r"é\x1b[2J\u2028"], [text_of(frame) for frame in server.frames()])
        self.assertNotIn(b"\n", server.data())

    def test_newline(self) -> None:
        """With framing=newline each message is one line, its own line feeds escaped."""
        server = self.server()
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}:framing=newline")

        store(observer, "a\nb", "<13>1 forged\r\n")

        wait_until(lambda: server.data().count(b"\n") == 2)
        self.assertEqual(["a\\nb", "<13>1 forged\\r\\n"], [text_of(line) for line in server.data().split(b"\n")[:-1]])

    def test_one_connection(self) -> None:
        """Batches share a connection, and closing ends it in order."""
        server = self.server()
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}")

        store(observer, "one")
        store(observer, "two")
        observer.close()

        wait_until(lambda: server.endings == [b""])
        self.assertEqual(["one", "two"], [text_of(frame) for frame in server.frames()])

    def test_second_address(self) -> None:
        """Every address of a name is tried."""
        server = self.server()
        port = server.port
        observer = self.opened(f"syslog:tcp:name.example:{port}")
        closed = socket.create_server(("127.0.0.1", 0))
        dead_port = closed.getsockname()[1]
        closed.close()
        addresses = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", dead_port)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ]
        self.patch(socket, "getaddrinfo", lambda host, port, type: addresses)

        self.assertIsNone(store(observer, "one"))

    def test_silent_address(self) -> None:
        """An address that never answers leaves time for the next one."""
        server = self.server()
        full = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.addCleanup(full.close)
        for _ in range(4):
            # Once its queue is full, the kernel drops whoever knocks.
            knocking = socket.socket()
            self.addCleanup(knocking.close)
            knocking.setblocking(False)
            knocking.connect_ex(full.getsockname())
        addresses = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", full.getsockname()),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port)),
        ]
        self.patch(socket, "getaddrinfo", lambda host, port, type: addresses)
        observer = self.opened("syslog:tcp:name.example:601:timeout=4s")

        self.assertIsNone(store(observer, "one"))
        self.patch(socket, "getaddrinfo", lambda host, port, type: addresses[:1])
        observer.reopen()
        error = self.assertRaises(Unavailable, store, observer, "two")

        self.assertRegex(str(error), "did not answer (in time|within 4s)")

    def test_unknown_name(self) -> None:
        """A name that does not resolve is told with it."""
        observer = self.opened("syslog:tcp:name.invalid:601")

        def fail(*args: object, **options: object) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        self.patch(socket, "getaddrinfo", fail)

        error = self.assertRaises(Unavailable, store, observer, "one")
        self.assertEqual("name.invalid:601: Name or service not known", str(error))

    def test_away_at_start(self) -> None:
        """A server that is away does not keep the observer from opening; once it is back, batches reach it."""
        server = self.server()
        server.stop()
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}")

        error = self.assertRaises(Unavailable, store, observer, "one")
        server.start()
        self.assertIsNone(store(observer, "one"))

        self.assertEqual(f"127.0.0.1:{server.port}: 127.0.0.1: Connection refused", str(error))
        wait_until(lambda: [text_of(frame) for frame in server.frames()] == ["one"])

    def test_restarted_between(self) -> None:
        """A server that was restarted between two batches gets the second one, which does not fail."""
        server = self.server()
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}")
        store(observer, "one")
        wait_until(server.frames)
        server.stop()
        server.start()

        self.assertIsNone(store(observer, "two"))

        wait_until(lambda: [text_of(frame) for frame in server.frames()] == ["one", "two"])

    def test_closes_in_a_batch(self) -> None:
        """
        A server that resets connections in the middle of a batch has got every message in the end: the batch fails
        until it is taken whole. On an old connection it is tried twice.
        """
        server = self.server()
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}")
        texts = large_texts()
        store(observer, "first")
        wait_until(server.frames)

        server.take = 100_000
        for _ in range(3):
            self.assertRaises(Unavailable, store, observer, *texts)
        server.take = None
        self.assertIsNone(store(observer, *texts))

        wait_until(lambda: len(server.received[-1]) > LARGE)
        wait_until(lambda: {text_of(frame) for frame in server.frames()} == {"first", *texts})

    def test_closes_at_once(self) -> None:
        """A server that takes a connection only to close it has taken no message."""
        self.patch(syslog_connection, "SHORTEST_PROBATION", 5.0)
        server = self.server(take=0)
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}")

        self.assertRaises(Unavailable, store, observer, "one")

    def test_closes_after_a_part(self) -> None:
        """One that reads a part and closes has not got the batch, though its kernel had acknowledged all of it."""
        self.patch(syslog_connection, "SHORTEST_PROBATION", 1.0)
        server = self.server(take=1)
        server.linger = 0.1
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}")

        self.assertRaises(Unavailable, store, observer, "x" * 10_000)

    def test_closes_after_a_later_part(self) -> None:
        """So it is with a later batch on a connection."""
        self.patch(syslog_connection, "SHORTEST_PROBATION", 0.01)
        self.patch(syslog_connection, "WATCH", 10.0)
        server = self.server(take=1000)
        server.linger = 0.1
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}:timeout=30s")
        self.assertIsNone(store(observer, "one"))

        connection = observer._connection
        assert connection is not None
        self.assertRaises(OSError, connection.send, [b"x" * 10_000])

    def test_no_time_to_watch(self) -> None:
        """A batch that was acknowledged when the time is nearly over is not sent again for want of a longer look."""
        server = self.server()
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}:timeout=5s")
        self.patch(syslog_connection, "WATCH", 10.0)
        self.assertIsNone(store(observer, "one"))

        self.assertIsNone(store(observer, "two"))

    def test_does_not_read(self) -> None:
        """A server that does not read is given up after the timeout."""
        server = self.server()
        server.reading.clear()
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}:timeout=1s")

        began = time.monotonic()
        error = self.assertRaises(Unavailable, store, observer, *large_texts())

        self.assertIn("did not answer within 1s", str(error))
        self.assertLess(time.monotonic() - began, 20)

    def test_hurry(self) -> None:
        """A batch that waits ends soon when the receiver stops; one that can be sent still is."""
        server = self.server()
        server.reading.clear()
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}:timeout=10m")
        timer = Timer(0.5, observer.hurry)
        timer.start()
        self.addCleanup(timer.cancel)

        began = time.monotonic()
        error = self.assertRaises(Unavailable, store, observer, *large_texts())
        took = time.monotonic() - began
        server.reading.set()
        observer.hurry()
        self.assertIsNone(store(observer, "last"))

        self.assertIn("the receiver stops", str(error))
        self.assertLess(took, 30)
        wait_until(lambda: text_of(server.frames()[-1]) == "last")

    def test_answers_are_left_aside(self) -> None:
        """What a server says is read and thrown away."""
        server = self.server()
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}")
        store(observer, "one")
        wait_until(lambda: server.connections)
        server.connections[0].sendall(b"hello\n" * 2000)

        self.assertIsNone(store(observer, "two"))

        wait_until(lambda: len(server.frames()) == 2)
        self.assertEqual(1, len(server.received))

    def test_talks_and_goes(self) -> None:
        """What a server says does not hide that it is gone: the next batch does not go to nobody."""
        self.patch(syslog_connection, "_MOST_READS", 1)
        server = self.server()
        observer = self.opened(f"syslog:tcp:127.0.0.1:{server.port}")
        store(observer, "one")
        wait_until(server.frames)
        connection = observer._connection
        assert isinstance(connection, syslog_connection.StreamConnection)
        server.connections[0].sendall(b"x" * 60_000)
        connection.check()
        server.drop()
        wait_until(lambda: server.endings)

        self.assertRaises(OSError, connection.check)


class TLSTests(Case):
    """Streams over TLS."""

    def setUp(self) -> None:
        """Make an authority and a server's context."""
        self.files = self.directory()
        self.authority = Authority("authority")
        self.ca_file = write_ca_file(self.files, "ca", self.authority)
        self.context = self.server_context(self.authority)

    def server_context(self, authority: Authority) -> ssl.SSLContext:
        """Make the context of a server that an authority vouches for as localhost."""
        key_file, cert_file = authority.issue("server", (SERVER,)).write(self.files, "server")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert_file, key_file)
        return context

    def spec(self, server: StreamServer, *options: str) -> str:
        """Return the spec string for a server."""
        return ":".join(("syslog:tls:127.0.0.1", str(server.port), f"ca_file={self.ca_file}", *options))

    def test_delivery(self) -> None:
        """Frames are octet-counted, of any size, and the end of the connection is told as TLS has it."""
        server = self.server(context=self.context)
        observer = self.opened(self.spec(server))
        texts = ["a b", *large_texts()[:100]]

        self.assertIsNone(store(observer, *texts))
        observer.close()

        wait_until(lambda: server.endings == [b""])
        self.assertEqual(texts, [text_of(frame) for frame in server.frames()])

    def test_escape(self) -> None:
        """A text goes out on one line, and as it came with escape=no."""
        for option, expected in (("escape=yes", r"a\nb"), ("escape=no", "a\nb")):
            server = self.server(context=self.context)
            self.assertIsNone(store(self.opened(self.spec(server, option)), "a\nb"))

            wait_until(server.frames)
            self.assertEqual([expected], [text_of(frame) for frame in server.frames()])

    def test_versions(self) -> None:
        """TLS 1.2 and 1.3 are spoken."""
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            self.context.minimum_version = self.context.maximum_version = version
            server = self.server(context=self.context)
            self.assertIsNone(store(self.opened(self.spec(server)), "one"))

    def test_unknown_authority(self) -> None:
        """A certificate of an authority that is not trusted is refused, and the reason told."""
        server = self.server(context=self.server_context(Authority("another")))

        error = self.assertRaises(Unavailable, store, self.opened(self.spec(server)), "one")

        self.assertIn("certificate was not accepted", str(error))
        self.assertNotIn("\n", str(error))
        self.assertEqual(b"", server.data())

    def test_system_store(self) -> None:
        """Without ca_file the system's store decides, which does not know ours."""
        server = self.server(context=self.context)
        observer = self.opened(f"syslog:tls:127.0.0.1:{server.port}")

        self.assertIn("certificate was not accepted", str(self.assertRaises(Unavailable, store, observer, "one")))

    def test_names(self) -> None:
        """The certificate must be for the host, or for server_name when that is given."""
        server = self.server(context=self.context)

        self.assertIsNone(store(self.opened(self.spec(server, "server_name=localhost")), "one"))
        other = self.opened(self.spec(server, "server_name=logs.example.com"))
        error = self.assertRaises(Unavailable, store, other, "two")

        self.assertIn("certificate was not accepted", str(error))
        self.assertIn("logs.example.com", str(error))
        self.assertEqual(["one"], [text_of(frame) for frame in server.frames()])

    def test_client_certificate(self) -> None:
        """
        A server that asks for a certificate gets the one that is configured. Without it no message counts as taken,
        with TLS 1.3 neither, where the server says so only after the handshake.
        """
        key_file, cert_file = self.authority.issue("client").write(self.files, "client")
        self.context.load_verify_locations(self.ca_file)
        self.context.verify_mode = ssl.CERT_REQUIRED
        # The server takes its time, but on no machine that long.
        self.patch(syslog_connection, "SHORTEST_PROBATION", 3.0)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            self.context.minimum_version = self.context.maximum_version = version
            server = self.server(context=self.context)
            server.delay = 0.2

            with_one = self.opened(self.spec(server, f"cert_file={cert_file}", f"key_file={key_file}"))
            self.assertIsNone(store(with_one, "one"))
            error = self.assertRaises(Unavailable, store, self.opened(self.spec(server)), "two")

            self.assertIn("TLS: ", str(error))
            wait_until(lambda server=server: len(server.frames()) == 1)

    def test_reopen(self) -> None:
        """After a reopen the files are read anew; a missing one is told."""
        server = self.server(context=self.context)
        observer = self.opened(self.spec(server))
        store(observer, "one")

        os.unlink(self.ca_file)
        self.assertIsNone(store(observer, "two"))
        observer.reopen()
        missing = self.assertRaises(Unavailable, store, observer, "three")
        write_ca_file(self.files, "ca", Authority("another"))
        wrong = self.assertRaises(Unavailable, store, observer, "three")
        write_ca_file(self.files, "ca", self.authority)
        self.assertIsNone(store(observer, "three"))

        self.assertIn("does not exist", str(missing))
        self.assertIn("certificate was not accepted", str(wrong))
        wait_until(lambda: [text_of(frame) for frame in server.frames()] == ["one", "two", "three"])

    def test_no_tls(self) -> None:
        """A server that does not speak TLS, or does not speak at all, is given up."""
        silent = self.server()
        observer = self.opened(self.spec(silent, "timeout=1s"))
        self.assertIn("within 1s", str(self.assertRaises(Unavailable, store, observer, "one")))

        other = self.server(take=1)
        observer = self.opened(self.spec(other))
        self.assertRaises(Unavailable, store, observer, "one")

    def test_restarted(self) -> None:
        """A server that was restarted gets the next batch; one that resets in the middle of it, all of it again."""
        server = self.server(context=self.context)
        observer = self.opened(self.spec(server))
        store(observer, "one")
        wait_until(server.frames)
        server.stop()
        server.start()
        self.assertIsNone(store(observer, "two"))

        texts = large_texts()
        server.take = 100_000
        self.assertRaises(Unavailable, store, observer, *texts)
        server.take = None
        self.assertIsNone(store(observer, *texts))

        wait_until(lambda: {text_of(frame) for frame in server.frames()} == {"one", "two", *texts})


class DatagramTests(Case):
    """Datagrams, over UDP and on UNIX sockets."""

    def receiver(self, path: str | None = None) -> socket.socket:
        """Open a socket that takes datagrams."""
        receiver = socket.socket(socket.AF_INET if path is None else socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.bind(("127.0.0.1", 0) if path is None else path)
        receiver.settimeout(20)
        self.addCleanup(receiver.close)
        return receiver

    def read(self, receiver: socket.socket, taken: list[str], count: int) -> None:
        """Read so many datagrams."""
        taken += [text_of(receiver.recv(65536)) for _ in range(count)]

    def test_udp(self) -> None:
        """Each message is a datagram of its own, on one line; one too long for any datagram is rejected for good."""
        receiver = self.receiver()
        observer = self.opened(f"syslog:udp:127.0.0.1:{receiver.getsockname()[1]}:max_size=1MiB")

        outcomes = store(observer, "a\nb", "x" * 70_000, "c")

        assert outcomes is not None
        self.assertEqual([type(None), Rejected, type(None)], [type(outcome) for outcome in outcomes])
        self.assertIn("too long for a datagram", str(outcomes[1]))
        self.assertEqual(["a\\nb", "c"], [text_of(receiver.recv(65536)) for _ in range(2)])

    def test_udp_nobody(self) -> None:
        """When the network says at once that nobody listens, the batch has failed; later there may be somebody."""
        receiver = self.receiver()
        address = receiver.getsockname()
        receiver.close()
        observer = self.opened(f"syslog:udp:127.0.0.1:{address[1]}")

        error = self.assertRaises(Unavailable, store, observer, "one")
        again = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(again.close)
        again.bind(address)
        again.settimeout(20)

        self.assertIn("Connection refused", str(error))
        self.assertIsNone(store(observer, "two"))
        self.assertEqual("two", text_of(again.recv(65536)))

    def test_unix_datagrams(self) -> None:
        """A daemon behind a socket of datagrams gets them, after its restart as well."""
        path = os.path.join(self.directory(), "log")
        observer = self.opened(f"syslog:unix:{path}")
        texts = [str(number) for number in range(1000)]
        taken: list[str] = []

        for half in (texts[:500], texts[500:]):
            receiver = self.receiver(path)
            reader = Thread(target=self.read, args=(receiver, taken, 500))
            reader.start()
            self.assertIsNone(store(observer, *half))
            reader.join()
            receiver.close()
            os.unlink(path)

        self.assertEqual(texts, taken)

    def test_unix_unread(self) -> None:
        """What a daemon on a UNIX socket has not read is not taken."""
        path = os.path.join(self.directory(), "log")
        self.receiver(path)
        observer = self.opened(f"syslog:unix:{path}:timeout=500ms")

        self.assertIn("within 500ms", str(self.assertRaises(Unavailable, store, observer, "one")))
        self.assertRaises(Unavailable, store, observer, *["x"] * 1000)

    def test_unix_ended(self) -> None:
        """Nor is what it had not read when it ended, whether its name stays, goes, or is another's by then."""
        directory = self.directory()

        def end(daemon: socket.socket, *, unlink: bool, replace: bool) -> None:
            path = daemon.getsockname()
            daemon.close()
            if unlink:
                os.unlink(path)
            if replace:
                self.receiver(path)

        for number, (unlink, replace) in enumerate(((False, False), (True, False), (True, True))):
            path = os.path.join(directory, f"log{number}")
            daemon = self.receiver(path)
            observer = self.opened(f"syslog:unix:{path}:timeout=10m")
            timer = Timer(0.3, end, (daemon,), {"unlink": unlink, "replace": replace})
            timer.start()
            self.addCleanup(timer.join)

            self.assertRaises(Unavailable, store, observer, "one")

    def test_unix_too_long(self) -> None:
        """A message that no datagram on a UNIX socket can hold is rejected for good."""
        path = os.path.join(self.directory(), "log")
        self.receiver(path)
        observer = self.opened(f"syslog:unix:{path}:max_size=1GiB")

        outcomes = store(observer, "x" * LARGE)

        self.assertIsInstance((outcomes or [None])[0], Rejected)

    def test_unix_stream(self) -> None:
        """Where the socket is one of streams, each message is a line."""
        path = os.path.join(self.directory(), "log")
        server = self.server(path)
        observer = self.opened(f"syslog:unix:{path}")

        self.assertIsNone(store(observer, "a\nb", "c"))
        server.stop()
        server.start()
        self.assertIsNone(store(observer, "d"))

        wait_until(lambda: server.data().count(b"\n") == 3)
        self.assertEqual(["a\\nb", "c", "d"], [text_of(line) for line in server.data().split(b"\n")[:-1]])

    def test_unix_stream_unread(self) -> None:
        """What is sent and fits into a kernel, but is not read, is not taken: after the timeout, and after a reset."""
        path = os.path.join(self.directory(), "log")
        server = self.server(path)
        server.reading.clear()
        slow = self.opened(f"syslog:unix:{path}:timeout=500ms")
        self.assertIn("within 500ms", str(self.assertRaises(Unavailable, store, slow, "one")))

        patient = self.opened(f"syslog:unix:{path}:timeout=10m")
        timer = Timer(0.5, server.stop)
        timer.start()
        self.addCleanup(timer.join)
        self.assertRaises(Unavailable, store, patient, "two")

    def test_unix_missing(self) -> None:
        """A socket that is not there is told by its name."""
        observer = self.opened("syslog:unix:/does/not/exist")

        error = self.assertRaises(Unavailable, store, observer, "one")

        self.assertEqual("/does/not/exist: No such file or directory", str(error))


class DeadlineTests(SynchronousTestCase):
    """How long a wait takes."""

    def setUp(self) -> None:
        """Make a socket on which nothing happens."""
        self.quiet, self.other = socket.socketpair()
        self.addCleanup(self.quiet.close)
        self.addCleanup(self.other.close)

    def deadline(self, seconds: float) -> Deadline:
        """Make one that is closed after the test."""
        deadline = Deadline(seconds)
        self.addCleanup(deadline.close)
        return deadline

    def test_event(self) -> None:
        """It ends when something happens, and looks once even after the deadline."""
        deadline = self.deadline(0)
        self.other.send(b"x")

        self.assertTrue(deadline.wait(self.quiet, select.POLLIN))

    def test_bounds(self) -> None:
        """It ends without an event at its own bound; at the deadline it is an error, and begins anew after it."""
        deadline = self.deadline(0.2)

        self.assertFalse(deadline.wait(self.quiet, select.POLLIN, at_most=0.01))
        self.assertRaises(TimeoutError, deadline.wait, self.quiet, select.POLLIN)
        deadline.begin()
        self.assertGreater(deadline.left(), 0)

    def test_hurry(self) -> None:
        """In a hurry a second is left for what waits and for what is to come, and never more."""
        deadline = self.deadline(3600)
        deadline.stop_now()
        deadline.stop_now()

        began = time.monotonic()
        self.assertLessEqual(deadline.left(), 1)
        self.assertRaises(TimeoutError, deadline.wait, self.quiet, select.POLLIN)
        deadline.begin()
        self.assertLessEqual(deadline.left(), 1)
        self.assertLess(time.monotonic() - began, 20)


class Daemon(Case):
    """A real syslog daemon with a configuration, port and files of the test's own."""

    TEXTS = ("plain", "two\nlines", "é 😀", "<13>1 2026-01-02T03:04:05Z forged - - - - x", "x" * 5000)

    def start(self, *command: str) -> None:
        """Start it in the foreground; it is ended after the test."""
        log = open(os.path.join(self.files, "log"), "wb")  # noqa: SIM115
        self.addCleanup(log.close)
        self.daemon = subprocess.Popen(command, stdout=log, stderr=log)
        self.addCleanup(self.end)

    def end(self) -> None:
        """End it."""
        self.daemon.kill()
        self.daemon.wait(20)

    def delivered(self, spec: str) -> list[bytes]:
        """Store messages until the daemon takes them, and return the lines of its file."""
        observer = self.opened(spec)
        end = time.monotonic() + 30
        while True:
            try:
                messages = [make_message(text, {"HOST": "web-1", "PROGRAM": "hook", "PID": "7"}) for text in self.TEXTS]
                self.assertIsNone(observer.store([observer.prepare(message) for message in messages]))
            except Unavailable:
                self.assertIsNone(self.daemon.poll(), self.said())
                self.assertLess(time.monotonic(), end)
                time.sleep(0.1)
            else:
                break
        self.wait_for_lines(len(self.TEXTS))
        return self.lines()

    def wait_for_lines(self, count: int) -> None:
        """Wait until its file has so many lines."""
        wait_until(lambda: len(self.lines()) >= count)

    def said(self) -> bytes:
        """Read what it said."""
        with open(os.path.join(self.files, "log"), "rb") as file:
            return file.read()

    def lines(self) -> list[bytes]:
        """Read its file."""
        try:
            with open(os.path.join(self.files, "out"), "rb") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def setUp(self) -> None:
        """Make its directory."""
        self.files = self.directory()

    def configure(self, text: str) -> str:
        """Write its configuration."""
        path = os.path.join(self.files, "conf")
        with open(path, "w") as file:
            file.write(text)
        return path


@skipUnless(shutil.which("rsyslogd"), "rsyslogd is not installed")
class RsyslogTests(Daemon):
    """rsyslogd takes what is sent."""

    def run_with(self, globals: str, template: str) -> str:
        """Start it, and return the beginning of the spec string for it."""
        port = free_port()
        conf = self.configure(
            f'''
            global(workDirectory="{self.files}" {globals})
            module(load="imtcp")
            template(name="line" type="string" string="{template}\\n")
            input(type="imtcp" port="{port}" address="127.0.0.1" ruleset="out")
            ruleset(name="out") {{ action(type="omfile" file="{self.files}/out" template="line") }}
            '''
        )
        self.start("rsyslogd", "-n", "-f", conf, "-i", os.path.join(self.files, "pid"))
        return f"syslog:tcp:127.0.0.1:{port}:facility=local3:severity=info:bom=no"

    def test_tcp(self) -> None:
        """Every message arrives over TCP as one, with its fields."""
        spec = self.run_with("", "%syslogfacility-text%.%syslogseverity-text% %hostname% %app-name% %procid% %msg%")

        lines = self.delivered(spec)

        start = b"local3.info web-1 hook 7 "
        texts = [text.replace("\n", r"\n").encode() for text in self.TEXTS]
        self.assertEqual([start + text for text in texts], lines)

    def test_escape(self) -> None:
        """A line break arrives as an escape or, with escape=no, as itself, in a message that is still one."""
        spec = self.run_with('parser.escapeControlCharactersOnReceive="off"', "%msg:::json%")
        expected: list[str] = []
        for option, two_lines in (
            ("escape=yes", r"two\nlines"),
            ("escape=no", "two\nlines"),
            ("framing=newline", r"two\nlines"),
        ):
            expected += [two_lines if text == "two\nlines" else text for text in self.TEXTS]
            self.delivered(f"{spec}:{option}")
            self.wait_for_lines(len(expected))

        self.assertEqual(expected, [json.loads(b'"%s"' % line) for line in self.lines()])


@skipUnless(shutil.which("syslog-ng"), "syslog-ng is not installed")
class SyslogNgTests(Daemon):
    """syslog-ng takes what is sent."""

    def conf(self, source: str) -> str:
        """Write a configuration with a source."""
        pairs = "F=$FACILITY L=$LEVEL H=$HOST A=$PROGRAM P=$PID S=${.SDATA.meta@32473.SOURCEIP} M=$MESSAGE"
        return self.configure(
            f"""@version: 3.35
            options {{ stats-freq(0); keep-hostname(yes); use-dns(no); }};
            source s {{ {source}; }};
            destination d {{ file("{self.files}/out" template("$(format-json {pairs})\\n")); }};
            log {{ source(s); destination(d); }};
            """
        )

    def run_with(self, conf: str) -> None:
        """Start it."""
        files = [f"--{name}={os.path.join(self.files, name)}" for name in ("persist-file", "pidfile", "control")]
        self.start("syslog-ng", "-F", "--no-caps", "-f", conf, *files)

    def check(self, lines: list[bytes]) -> None:
        """Compare the lines with what was sent."""
        pairs = {"F": "user", "L": "notice", "H": "web-1", "A": "hook", "P": "7", "S": "192.0.2.1"}
        self.assertEqual([{**pairs, "M": text} for text in self.TEXTS], [json.loads(line) for line in lines])

    def test_tcp(self) -> None:
        """Every message arrives over TCP as one, with its fields and structured data, and without the mark."""
        port = free_port()
        self.run_with(self.conf(f'syslog(transport("tcp") ip("127.0.0.1") port({port}))'))

        self.check(self.delivered(f"syslog:tcp:127.0.0.1:{port}:sd_id=meta@32473:escape=no"))

    def test_tls(self) -> None:
        """The same over TLS, with a client certificate."""
        port = free_port()
        authority = Authority("authority")
        ca_file = write_ca_file(self.files, "ca", authority)
        key_file, cert_file = authority.issue("server", (SERVER,)).write(self.files, "server")
        client_key, client_cert = authority.issue("client").write(self.files, "client")
        tls = f'key-file("{key_file}") cert-file("{cert_file}") ca-file("{ca_file}") peer-verify(required-trusted)'
        self.run_with(self.conf(f'syslog(transport("tls") ip("127.0.0.1") port({port}) tls({tls}))'))
        spec = f"syslog:tls:127.0.0.1:{port}:sd_id=meta@32473:escape=no:ca_file={ca_file}"

        lines = self.delivered(f"{spec}:cert_file={client_cert}:key_file={client_key}")
        error = self.assertRaises(Unavailable, store, self.opened(spec), "two")

        self.check(lines)
        self.assertIn("TLS: ", str(error))
