"""
Tests for L{webhookrx.transport.native_tls}: with real sockets, a client of the standard library, and a reactor that
takes one step at a time.
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import struct
import tempfile
from dataclasses import replace
from typing import Any
from unittest import mock

from OpenSSL import SSL
from twisted.internet.interfaces import IReadWriteDescriptor, ISSLTransport, ITCPTransport
from twisted.internet.protocol import Protocol
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.system.certificates import CLIENT, Authority, server_settings, write_ca_file
from tests.transport.in_memory import TLS12, TLS13, client_context
from tests.transport.key_updates import KeyUpdates
from tests.transport.stepped import Producer, Recorder, TLSClient, World, drain, wait_for
from webhookrx.transport import native_tls as socket_tls
from webhookrx.transport.native_tls import TLSServer, TLSUNIXServer
from webhookrx.transport.openssl_calls import RECORD
from webhookrx.transport.server_context import ServerConnectionCreator

MUCH = bytes(range(256)) * 4096
VERSIONS = (TLS12, TLS13)


class TLSCase(SynchronousTestCase):
    """
    One connection.
    """

    def setUp(self) -> None:
        self.world = World()
        self.addCleanup(self.world.close)
        self.reactor = self.world.reactor
        directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, directory)
        self.directory = directory
        self.root = Authority("Root")
        self.ca_file = write_ca_file(directory, "ca", self.root)
        self.settings = server_settings(directory, self.root.issue("server"))
        self.creator = ServerConnectionCreator(self.settings)

    def open(self, version: ssl.TLSVersion | None = None, **how: bool) -> tuple[Any, Recorder, TLSClient]:
        """Return a transport, its protocol and the client; nothing is said yet."""
        ours, theirs = self.world.pair(**how)
        transport, recorder = self.world.serve(TLSServer, ours, self.creator.connection_on(ours))
        return transport, recorder, TLSClient(client_context(self.ca_file, version), theirs)

    def shake(self, client: TLSClient) -> None:
        """Let both ends say what they have to."""
        tcp = client.socket.family == socket.AF_INET
        client.turn()
        self.reactor.settle(wait=tcp)
        client.turn(wait=tcp)
        self.reactor.settle(wait=tcp)
        client.turn(wait=tcp)

    def connect(self, version: ssl.TLSVersion | None = None, **how: bool) -> tuple[Any, Recorder, TLSClient]:
        """As L{open}, with the handshake complete."""
        transport, recorder, client = self.open(version, **how)
        self.shake(client)
        self.assertEqual((["handshake"], None), (recorder.events, client.error))
        return transport, recorder, client

    def take(self, client: TLSClient, turns: int = 2000) -> None:
        """Let the client take all that comes."""
        for _ in range(turns):
            before = len(client.received)
            client.turn()
            self.reactor.step()
            client.turn()
            if len(client.received) == before and not self.reactor.ready():
                return
        raise AssertionError("there is no end to it")


class HandshakeTests(TLSCase):
    """
    Up to the first byte.
    """

    def test_interfaces(self) -> None:
        """It is a transport as Twisted has them, and says that it has TLS."""
        transport, _, _ = self.connect(tcp=True)
        for interface in (ISSLTransport, ITCPTransport, IReadWriteDescriptor):
            self.assertTrue(verifyObject(interface, transport))
        self.assertIsInstance(transport.getHandle(), SSL.Connection)
        self.assertIsNone(transport.getPeerCertificate())

    def test_question_and_answer(self) -> None:
        """Either version carries bytes both ways, by TCP and by UNIX sockets."""
        for version in VERSIONS:
            for tcp in (False, True):
                transport, recorder, client = self.connect(version, tcp=tcp)
                recorder.on_data = lambda _, transport=transport: transport.write(b"answer")
                client.send(b"question")
                self.reactor.settle(wait=True)
                client.turn(wait=True)
                self.assertEqual((b"question", b"answer"), (recorder.received, client.received))

    def test_unix_transport(self) -> None:
        """A port with a UNIX socket has a kind of its own."""
        ours, theirs = self.world.pair()
        transport, recorder = self.world.serve(TLSUNIXServer, ours, self.creator.connection_on(ours))
        client = TLSClient(client_context(self.ca_file), theirs)
        self.shake(client)
        transport.write(b"x")
        client.turn()
        self.assertEqual((b"x", ["handshake"], b"peer"), (client.received, recorder.events, transport.getPeer().name))

    def test_written_before(self) -> None:
        """What is written before waits for the handshake, makes no work until then, and comes first."""
        for version in VERSIONS:
            transport, recorder, client = self.open(version)
            recorder.on_handshake = lambda transport=transport: transport.write(b" then this")
            transport.write(b"first this")
            self.reactor.settle()
            self.assertEqual(0, self.reactor.ready())
            self.shake(client)
            self.assertEqual(b"first this then this", client.received)
            transport.write(b", at once")
            client.turn()
            self.assertEqual(b"first this then this, at once", client.received)

    def test_lost_before(self) -> None:
        """A connection that is to end before its handshake ends at once when nothing waits, and else after that."""
        for version in VERSIONS:
            transport, recorder, client = self.open(version)
            transport.loseConnection()
            self.assertEqual([], recorder.events)
            self.reactor.settle()
            self.assertEqual(["ConnectionAborted"], recorder.events)

            transport, recorder, client = self.open(version)
            transport.write(b"goodbye")
            transport.loseConnection()
            self.reactor.settle()
            self.assertEqual(0, self.reactor.ready())
            self.shake(client)
            self.assertEqual((b"goodbye", True), (client.received, client.ended))
            self.assertEqual(["handshake", "ConnectionDone"], recorder.events)

    def test_half_closed_before(self) -> None:
        """To end writing before the handshake is to end it after."""
        transport, recorder, client = self.open()
        transport.write(b"all")
        transport.loseWriteConnection()
        self.shake(client)
        self.assertEqual((b"all", True, ["handshake", "write lost"]), (client.received, client.ended, recorder.events))

    def test_from_within(self) -> None:
        """What the protocol does when it hears of the handshake is done: end, abort, pause, fail."""
        for what, events in (
            ("loseConnection", ["handshake", "ConnectionDone"]),
            ("abortConnection", ["handshake", "ConnectionAborted"]),
            ("pauseProducing", ["handshake"]),
            ("gone", ["handshake", "AttributeError"]),
        ):
            for version in VERSIONS:
                transport, recorder, client = self.open(version)
                recorder.on_handshake = lambda what=what, transport=transport: getattr(transport, what)()
                client.turn()
                self.reactor.settle()
                client.turn()
                if what != "gone" and version == TLS13:
                    client.send(b"in one flight with the end of the handshake")
                self.reactor.settle()
                self.assertEqual((events, b""), (recorder.events, recorder.received), (what, version))
        self.assertEqual(2, len(self.flushLoggedErrors(AttributeError)))

    def test_no_tls(self) -> None:
        """Plain HTTP fails, and the peer sees an answer and an end, not a reset."""
        ours, theirs = self.world.pair(tcp=True)
        _, recorder = self.world.serve(TLSServer, ours, self.creator.connection_on(ours))
        theirs.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + bytes(1000))
        self.reactor.settle(wait=True)
        self.assertEqual(["Error"], recorder.events)
        wait_for(theirs)
        self.assertEqual(b"HTTP/1.1 400 Bad Request", theirs.recv(1000).partition(b"\r\n")[0])
        self.assertEqual(b"", theirs.recv(1))

    def test_refused_certificate(self) -> None:
        """A client whose certificate is refused learns why, though it has sent its request already."""
        self.creator = ServerConnectionCreator(replace(self.settings, peer_verify=True, ca_file=self.ca_file))
        good, bad = self.root.issue("c", (CLIENT,)), Authority("Other").issue("c", (CLIENT,))
        for identity, works in ((good, True), (bad, False), (None, False)):
            _, recorder, client = self.open(tcp=True)
            pair = identity and identity.write(self.directory, "client")
            client = TLSClient(client_context(self.ca_file, TLS13, pair), client.socket)
            client.turn()
            self.reactor.settle(wait=True)
            client.turn(wait=True)
            client.send(b"request")
            self.reactor.settle(wait=True)
            client.turn(wait=True)
            self.assertEqual((works, works), (recorder.received == b"request", client.error is None), recorder.events)
            self.assertTrue(works or "ALERT" in str(client.error), client.error)

    def test_silent_end(self) -> None:
        """A peer that goes away within the handshake is just gone."""
        _, recorder, client = self.open()
        client.turn()
        self.reactor.settle()
        client.socket.close()
        self.reactor.settle()
        self.assertEqual(["SysCallError"], recorder.events)


class ReadTests(TLSCase):
    """
    What comes.
    """

    def test_nothing_is_left(self) -> None:
        """However records are cut, all of it arrives, and nothing stays where no poll would see it."""
        for version in VERSIONS:
            for sizes in ((1,), (RECORD - 1,), (RECORD,), (RECORD + 1,), (RECORD,) * 5, (1, RECORD, 1), (3,) * 50):
                _, recorder, client = self.connect(version)
                for size in sizes:
                    client.send(b"x" * size)
                self.reactor.settle(100)
                self.assertEqual(sum(sizes), len(recorder.received), (version, sizes))

    def test_turns(self) -> None:
        """One connection with much to say does not keep others waiting."""
        _, recorder, client = self.connect()
        client.send(b"x" * RECORD * 6)
        self.reactor.step()
        self.assertEqual(RECORD * 4, len(recorder.received))

    def test_paused_within(self) -> None:
        """A protocol that pauses, ends or aborts gets nothing more, not even what has come already."""
        for what in ("pauseProducing", "loseConnection", "abortConnection"):
            transport, recorder, client = self.connect()
            recorder.on_data = lambda _, what=what, transport=transport: getattr(transport, what)()
            client.send(b"x" * RECORD * 3)
            self.reactor.settle()
            self.assertEqual(RECORD, len(recorder.received), what)
            recorder.on_data = lambda _: None
            transport.resumeProducing()
            self.reactor.settle()
            self.assertEqual(RECORD * (3 if what == "pauseProducing" else 1), len(recorder.received), what)

    def test_closed_within(self) -> None:
        """A connection that ends within the call is not read from any more; its descriptor may be another's by then."""
        transport, recorder, client = self.connect()
        transport.loseWriteConnection()
        self.reactor.settle()
        recorder.on_data = lambda _: transport.loseConnection()
        client.send(b"x" * RECORD * 3)
        self.reactor.settle()
        self.assertEqual(RECORD, len(recorder.received))
        self.assertEqual(["handshake", "write lost", "ConnectionDone"], recorder.events)

    def test_half_closed(self) -> None:
        """A client that has sent its C{close_notify} can still be answered."""
        for version in VERSIONS:
            transport, recorder, client = self.connect(version)
            client.send(b"question")
            client.end()
            self.reactor.settle()
            self.assertEqual((b"question", ["handshake", "read lost"]), (recorder.received, recorder.events))
            self.assertEqual(0, self.reactor.ready())
            transport.write(b"answer")
            transport.loseConnection()
            self.reactor.settle()
            client.turn()
            self.assertEqual((b"answer", True, None), (client.received, client.ended, client.error))
            self.assertEqual("ConnectionDone", recorder.events[-1])

    def test_cut_off(self) -> None:
        """An end without C{close_notify} is a loss."""
        for version in VERSIONS:
            _, recorder, client = self.connect(version)
            client.socket.close()
            self.reactor.settle()
            self.assertEqual(["handshake", "ConnectionLost"], recorder.events)

    def test_reset(self) -> None:
        """So is a reset, within the handshake and after it."""
        for shaken in (False, True):
            _, recorder, client = self.connect(tcp=True) if shaken else self.open(tcp=True)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.socket.close()
            self.reactor.settle(wait=True)
            self.assertEqual("ConnectionLost" if shaken else "SysCallError", recorder.events[-1])

    def test_damaged(self) -> None:
        """A record that was tampered with ends the connection, and the others go on."""
        _, recorder, client = self.connect()
        _, other, other_client = self.connect()
        client.socket.send(b"\x17\x03\x03\x00\x20" + bytes(32))
        other_client.send(b"x")
        self.reactor.settle()
        self.assertEqual((["handshake", "Error"], b"x"), (recorder.events, other.received))


class WriteTests(TLSCase):
    """
    What goes out.
    """

    def test_much(self) -> None:
        """Much is sent in order as the client takes it, and the producer is paused until then."""
        for version in VERSIONS:
            transport, recorder, client = self.connect(version, small=True)
            producer = Producer()
            transport.registerProducer(producer, True)
            transport.write(MUCH)
            transport.write(b"behind")
            self.assertEqual(["pause", "pause"], producer.events)
            self.take(client)
            self.assertEqual(MUCH + b"behind", client.received)
            self.assertEqual(["pause", "pause", "resume"], producer.events)
            transport.unregisterProducer()
            transport.loseConnection()
            self.take(client)
            self.assertEqual((True, "ConnectionDone"), (client.ended, recorder.events[-1]))

    def test_full(self) -> None:
        """A client whose socket was full at the last byte gets the end, too."""
        for ends, event in (("loseConnection", "ConnectionDone"), ("loseWriteConnection", "write lost")):
            transport, recorder, client = self.connect()
            with mock.patch.object(transport.getHandle(), "shutdown", side_effect=SSL.WantWriteError):
                getattr(transport, ends)()
                self.reactor.step()
            self.assertEqual(["handshake"], recorder.events)
            self.reactor.settle()
            client.turn()
            self.assertEqual((True, ["handshake", event]), (client.ended, recorder.events))

    def test_gone(self) -> None:
        """That the client is gone is found out, whether it was read from or not."""
        transport, recorder, client = self.connect()
        transport.pauseProducing()
        client.socket.close()
        transport.write(b"x")
        self.reactor.settle()
        self.assertEqual(["handshake", "ConnectionLost"], recorder.events)

    def test_aborted(self) -> None:
        """After an abort nothing is sent."""
        transport, recorder, client = self.connect()
        transport.abortConnection()
        transport.write(b"x")
        self.reactor.settle()
        client.turn()
        self.assertEqual((b"", False), (client.received, client.ended))
        self.assertEqual(["handshake", "ConnectionAborted"], recorder.events)


class KeyUpdateTests(TLSCase):
    """
    A client that changes its keys, and one that makes something of it (RFC 8446 §4.6.3).
    """

    def connect_updates(self, **how: bool) -> tuple[Any, Recorder, KeyUpdates]:
        """A client that can do so."""
        ours, theirs = self.world.pair(**how)
        transport, recorder = self.world.serve(TLSServer, ours, self.creator.connection_on(ours))
        key_log = os.path.join(self.directory, "keys")
        context = client_context(self.ca_file, TLS13)
        context.keylog_filename = key_log
        client = TLSClient(context, theirs)
        self.shake(client)
        context.keylog_filename = None  # type: ignore[assignment]  # typeshed says less than is true
        return transport, recorder, KeyUpdates(theirs, key_log)

    def test_update(self) -> None:
        """It may, and goes on with the new keys."""
        _, recorder, client = self.connect_updates()
        client.data(b"old ")
        client.update()
        client.data(b"new")
        self.reactor.settle()
        self.assertEqual((b"old new", ["handshake"]), (recorder.received, recorder.events))

    def test_half_an_update(self) -> None:
        """While one has come in part there is nothing to be sent, and nothing to be done; then all of it is."""
        transport, recorder, client = self.connect_updates()
        client.update_begins()
        self.reactor.settle()
        drain(client.socket)
        transport.write(b"answer")
        self.reactor.settle()
        self.assertEqual((0, b""), (self.reactor.ready(), drain(client.socket)))
        client.update_ends()
        self.reactor.settle()
        self.assertGreater(len(drain(client.socket)), len(b"answer"))
        client.data(b"new")
        self.reactor.settle()
        self.assertEqual((b"new", ["handshake"]), (recorder.received, recorder.events))

    def test_ended_within(self) -> None:
        """An end in the middle of one is an end."""
        transport, recorder, client = self.connect_updates()
        client.update_begins()
        self.reactor.settle()
        transport.loseConnection()
        self.reactor.settle()
        self.assertEqual(["handshake", "ConnectionDone"], recorder.events)

    def test_answer_not_taken(self) -> None:
        """A client that does not read its answer makes no work."""
        transport, recorder, client = self.connect_updates(small=True)
        fill(transport.socket)
        client.update(wants_answer=True)
        client.data(b"more")
        transport.write(b"x")
        self.reactor.settle()
        self.assertEqual((0, b"more"), (self.reactor.ready(), recorder.received))
        drain(client.socket)
        self.reactor.settle()
        self.assertTrue(drain(client.socket))

    def test_write_first(self) -> None:
        """Where OpenSSL has to write before it reads, nothing is read until the socket takes bytes again."""
        for paused in (False, True):
            transport, recorder, client = self.connect_updates(small=True)
            fill(transport.socket)
            with mock.patch.object(socket_tls, "receive", side_effect=SSL.WantWriteError):
                client.data(b"more")
                self.reactor.settle()
            self.assertEqual((0, b""), (self.reactor.ready(), recorder.received))
            if paused:
                transport.pauseProducing()
            drain(client.socket)
            self.reactor.settle()
            self.assertEqual(b"" if paused else b"more", recorder.received)
            transport.resumeProducing()
            self.reactor.settle()
            self.assertEqual((b"more", ["handshake"]), (recorder.received, recorder.events))


def fill(sock: socket.socket) -> int:
    """Send until there is no room; return how much that was."""
    filled = 0
    try:
        while True:
            filled += sock.send(b"x" * 100)
    except BlockingIOError:
        return filled


class FullHandshakeTests(TLSCase):
    """
    A handshake whose own bytes find no room.
    """

    def test_unheard(self) -> None:
        """A protocol need not hear of it."""
        ours, theirs = self.world.pair()
        transport = TLSServer(self.creator.connection_on(ours), ours, Protocol(), ("peer", 1), None, 1, self.world.poll)
        client = TLSClient(client_context(self.ca_file), theirs)
        self.shake(client)
        transport.write(b"x")
        client.turn()
        self.assertEqual(b"x", client.received)

    def test_full(self) -> None:
        """It waits until they are taken, and that makes no work."""
        ours, theirs = self.world.pair(small=True)
        client = TLSClient(client_context(self.ca_file), theirs)
        filled = fill(ours)
        _, recorder = self.world.serve(TLSServer, ours, self.creator.connection_on(ours))
        client.turn(take=False)
        self.reactor.settle()
        self.assertEqual(([], 0), (recorder.events, self.reactor.ready()))
        while filled:
            filled -= len(theirs.recv(filled))
        self.shake(client)
        self.assertEqual((["handshake"], None), (recorder.events, client.error))
        client.send(b"x")
        self.reactor.settle()
        self.assertEqual(b"x", recorder.received)
