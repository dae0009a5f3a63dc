"""
The channel between the parent and a worker: whole messages and file descriptors over a UNIX socket.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

from msgspec import DecodeError
from twisted.internet.interfaces import IConsumer, IFileDescriptorReceiver, IPushProducer, IUNIXTransport
from twisted.internet.protocol import connectionDone
from twisted.logger import Logger
from twisted.protocols.basic import Int32StringReceiver
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.service.workers.messages import WorkerMessage, encode

#: Bytes of one message at most: the settings of very many sources.
MOST_BYTES = 256 * 1024 * 1024

_Received = TypeVar("_Received", bound=WorkerMessage)

_log = Logger()


@implementer(IFileDescriptorReceiver, IPushProducer)
class Channel(Int32StringReceiver, Generic[_Received]):
    """
    One end. Anything but a message of the other end ends the channel.

    @param decode: reads a message of the other end; raises C{msgspec.DecodeError}.
    @param received: called with each message, and with its descriptors, which the callee owns.
    @param ended: called once, at the end of the channel.
    @param most_bytes: of one received message.
    @ivar full: the other end is slow to read; messages that may be dropped should be.
    @ivar problem: the bad message that has ended the channel; empty when none has.
    """

    full = False
    problem = ""

    def __init__(
        self,
        decode: Callable[[bytes], _Received],
        received: Callable[[_Received, Sequence[int]], None],
        ended: Callable[[], None],
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.MAX_LENGTH = most_bytes
        self._decode = decode
        self._received = received
        self._ended = ended
        self._descriptors: deque[int] = deque()

    def connectionMade(self) -> None:
        cast(IConsumer, self.transport).registerProducer(self, True)

    def send(self, message: WorkerMessage, descriptors: Sequence[int] = ()) -> None:
        """
        Send a message; do nothing when the channel has ended.

        @param descriptors: files that go with it. They must stay open until this end has sent everything.
        """
        if self.connected:
            encoded = encode(message)
            # Before the bytes: they are sent with the first of these at the latest.
            for descriptor in descriptors:
                cast(IUNIXTransport, self.transport).sendFileDescriptor(descriptor)
            self.sendString(encoded)

    def close(self) -> None:
        """End the channel, once everything is sent."""
        if self.connected:
            cast(IConsumer, self.transport).unregisterProducer()
            cast(Any, self.transport).loseConnection()

    # -- what comes ----------------------------------------------------------------------------------------------

    def fileDescriptorReceived(self, descriptor: int) -> None:
        # Child processes have no use for it.
        os.set_inheritable(descriptor, False)
        self._descriptors.append(descriptor)

    def stringReceived(self, string: bytes) -> None:
        if self.problem:
            return  # the rest of the same read
        try:
            message = self._decode(string)
        except DecodeError as error:
            self._fail(str(error))
            return
        if message.descriptors > len(self._descriptors):
            self._fail("descriptors of a message are missing")
            return
        self._received(message, [self._descriptors.popleft() for _ in range(message.descriptors)])

    def lengthLimitExceeded(self, length: int) -> None:
        self._fail(f"a message of {length} bytes")

    def _fail(self, what: str) -> None:
        if self.problem:
            return
        self.problem = what
        _log.critical("The channel between parent and worker ends: {what}", what=what)
        cast(Any, self.transport).abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        super().connectionLost(reason)
        self.connected = 0
        while self._descriptors:
            os.close(self._descriptors.pop())
        self._ended()

    # -- the other end is slow -----------------------------------------------------------------------------------

    def pauseProducing(self) -> None:
        self.full = True

    def resumeProducing(self) -> None:
        self.full = False

    def stopProducing(self) -> None:
        self.full = True
