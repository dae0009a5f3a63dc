"""
Tests for L{webhookrx.service.workers.channel}.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Any

import msgspec
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IFileDescriptorReceiver, IPushProducer
from twisted.internet.testing import StringTransport
from twisted.logger import globalLogPublisher
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from webhookrx.service.shared_state import STATE_FILES
from webhookrx.service.workers.channel import MOST_BYTES, Channel
from webhookrx.service.workers.messages import Began, Begin, Finish, StopNow, ToWorker, read_for_worker
from webhookrx.settings import Settings


class _Transport(StringTransport):
    """A UNIX socket in memory."""

    aborted = False

    def __init__(self) -> None:
        super().__init__()
        self.descriptors: list[int] = []

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        self.producer = None
        super().registerProducer(producer, streaming)

    def sendFileDescriptor(self, descriptor: int) -> None:
        self.descriptors.append(descriptor)

    def abortConnection(self) -> None:
        self.aborted = True


def framed(said: bytes) -> bytes:
    """Return a message as it is on the wire."""
    return struct.pack("!I", len(said)) + said


class ChannelTests(SynchronousTestCase):
    """
    One end of a channel: a worker's.
    """

    def setUp(self) -> None:
        self.received: list[tuple[ToWorker, list[int]]] = []
        self.ends = 0
        self.channel = Channel(read_for_worker, self._hear, self._end)
        self.transport = _Transport()
        self.channel.makeConnection(self.transport)
        self.events: list[Any] = []
        globalLogPublisher.addObserver(self.events.append)
        self.addCleanup(globalLogPublisher.removeObserver, self.events.append)

    def _hear(self, message: ToWorker, descriptors: Sequence[int]) -> None:
        self.received.append((message, list(descriptors)))

    def _end(self) -> None:
        self.ends += 1

    def descriptor(self) -> int:
        """Return a descriptor that may be closed."""
        return os.open(os.devnull, os.O_RDONLY)

    def lose(self) -> None:
        """End the connection."""
        self.channel.connectionLost(Failure(ConnectionDone()))

    def test_interfaces(self) -> None:
        """It is what the transport expects."""
        self.assertTrue(verifyObject(IFileDescriptorReceiver, self.channel))
        self.assertTrue(verifyObject(IPushProducer, self.channel))

    def test_received(self) -> None:
        """Messages are received whole and in order, however their bytes come."""
        for byte in framed(msgspec.msgpack.encode(Finish())) + framed(msgspec.msgpack.encode(StopNow())):
            self.channel.dataReceived(bytes([byte]))
        self.assertEqual([(Finish(), []), (StopNow(), [])], self.received)

    def test_said(self) -> None:
        """What is said goes out framed, and descriptors before it; at the end nothing goes out any more."""
        self.channel.send(Began(), [7, 8])
        self.assertEqual(framed(msgspec.msgpack.encode(Began())), self.transport.value())
        self.assertEqual([7, 8], self.transport.descriptors)
        self.lose()
        self.transport.clear()
        self.channel.send(Began())
        self.assertEqual(b"", self.transport.value())

    def test_descriptors(self) -> None:
        """A message gets those that came for it, and they are not for programs that are started."""
        descriptors = [self.descriptor() for _ in range(4 + STATE_FILES)]
        for descriptor in descriptors:
            self.addCleanup(os.close, descriptor)
            os.set_inheritable(descriptor, True)
            self.channel.fileDescriptorReceived(descriptor)
        self.channel.dataReceived(framed(msgspec.msgpack.encode(Finish())))
        self.channel.dataReceived(framed(msgspec.msgpack.encode(Begin(Settings((), ()), 0, 2, {"a": 7, "b": 8}))))
        self.assertEqual([[], descriptors], [each for _, each in self.received])
        self.assertEqual([False] * len(descriptors), [os.get_inheritable(descriptor) for descriptor in descriptors])

    def test_bad_message(self) -> None:
        """What is no message, too long, or lacks its descriptors ends the channel, and is logged."""
        for said in (
            framed(b"\xc1"),
            framed(b""),
            struct.pack("!I", MOST_BYTES + 1),
            framed(msgspec.msgpack.encode(Begin(Settings((), ()), 0, 2, {}))),
        ):
            self.setUp()
            self.channel.dataReceived(said)
            self.assertEqual(([], True), (self.received, self.transport.aborted), said)
            self.assertIn("between parent and worker ends", str(self.events))

    def test_once(self) -> None:
        """Of what is no message the first is logged, and nothing that comes after it is received."""
        self.channel.dataReceived(framed(b"") * 100 + framed(msgspec.msgpack.encode(Finish())) + b"\xff" * 9)
        self.assertEqual((1, []), (len(self.events), self.received))

    def test_most_bytes(self) -> None:
        """How long a message may be is for each end to say; why the channel has ended is known."""
        channel = Channel(read_for_worker, self._hear, self._end, 10)
        channel.makeConnection(self.transport)
        channel.dataReceived(struct.pack("!I", 10))
        self.assertFalse(self.transport.aborted)
        channel = Channel(read_for_worker, self._hear, self._end, 10)
        channel.makeConnection(self.transport)
        channel.dataReceived(struct.pack("!I", 11))
        self.assertEqual((True, "a message of 11 bytes"), (self.transport.aborted, channel.problem))

    def test_lost(self) -> None:
        """Its end is reported once, and descriptors without a message are closed."""
        descriptor = self.descriptor()
        self.channel.fileDescriptorReceived(descriptor)
        self.lose()
        self.assertEqual(1, self.ends)
        self.assertRaises(OSError, os.fstat, descriptor)

    def test_closed(self) -> None:
        """It can be closed, also when it is."""
        self.channel.close()
        self.assertTrue(self.transport.disconnecting)
        self.lose()
        self.channel.close()

    def test_full(self) -> None:
        """It knows when the other end does not listen."""
        self.assertFalse(self.channel.full)
        self.assertIs(self.channel, self.transport.producer)
        self.channel.pauseProducing()
        self.assertTrue(self.channel.full)
        self.channel.resumeProducing()
        self.assertFalse(self.channel.full)
        self.channel.stopProducing()
        self.assertTrue(self.channel.full)
