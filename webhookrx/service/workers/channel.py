"""
The way between the parent and a worker: a UNIX socket with whole messages on it, and descriptors of files.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec
from twisted.internet.interfaces import IConsumer, IFileDescriptorReceiver, IPushProducer, IUNIXTransport
from twisted.internet.protocol import connectionDone
from twisted.logger import Logger
from twisted.protocols.basic import Int32StringReceiver
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.service.workers.messages import Message

#: Bytes of one message: the settings of very many sources.
MOST_BYTES = 256 * 1024 * 1024

_Heard = TypeVar("_Heard", bound=Message)

_log = Logger()


@implementer(IFileDescriptorReceiver, IPushProducer)
class Channel(Int32StringReceiver, Generic[_Heard]):
    """
    One end. What does not belong to the language of the other end ends the channel.

    @param decode: reads what the other end says; raises C{msgspec.DecodeError}.
    @param heard: called with each, and with the descriptors that came with it, which are the caller's from then on.
    @param ended: called once, at the end of the channel.
    @param most_bytes: of one message that comes.
    @ivar full: so much waits for the other end to read it that nothing more should be said.
    @ivar problem: what of that which came has ended the channel; empty when nothing has.
    """

    full = False
    problem = ""

    def __init__(
        self,
        decode: Callable[[bytes], _Heard],
        heard: Callable[[_Heard, Sequence[int]], None],
        ended: Callable[[], None],
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.MAX_LENGTH = most_bytes
        self._decode = decode
        self._heard = heard
        self._ended = ended
        self._descriptors: deque[int] = deque()

    def connectionMade(self) -> None:
        """See L{twisted.internet.interfaces.IProtocol.connectionMade}."""
        cast(IConsumer, self.transport).registerProducer(self, True)

    def say(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """
        Say something; nothing happens when the channel has ended.

        @param descriptors: files that the other end gets too. They must stay open for as long as this end may not have
            sent all that it said.
        """
        if self.connected:
            said = msgspec.msgpack.encode(message)
            # Before the bytes: they are sent no later than the first of these.
            for descriptor in descriptors:
                cast(IUNIXTransport, self.transport).sendFileDescriptor(descriptor)
            self.sendString(said)

    def close(self) -> None:
        """End the channel, once what was said is sent."""
        if self.connected:
            cast(IConsumer, self.transport).unregisterProducer()
            cast(Any, self.transport).loseConnection()

    # -- what comes ----------------------------------------------------------------------------------------------

    def fileDescriptorReceived(self, descriptor: int) -> None:
        """See L{IFileDescriptorReceiver.fileDescriptorReceived}."""
        # No program that is started from here has a use for it.
        os.set_inheritable(descriptor, False)
        self._descriptors.append(descriptor)

    def stringReceived(self, string: bytes) -> None:
        """A message is there in full."""
        if self.problem:
            return  # more of the same may have come with it
        try:
            message = self._decode(string)
        except msgspec.DecodeError as error:
            self._misheard(str(error))
            return
        if message.descriptors > len(self._descriptors):
            self._misheard("descriptors that should have come with a message are missing")
            return
        self._heard(message, [self._descriptors.popleft() for _ in range(message.descriptors)])

    def lengthLimitExceeded(self, length: int) -> None:
        """A message is too long."""
        self._misheard(f"a message of {length} bytes")

    def _misheard(self, what: str) -> None:
        if self.problem:
            return
        self.problem = what
        _log.critical("The channel between parent and worker ends: {what}", what=what)
        cast(Any, self.transport).abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See L{twisted.internet.interfaces.IProtocol.connectionLost}."""
        super().connectionLost(reason)
        self.connected = 0
        while self._descriptors:
            os.close(self._descriptors.pop())
        self._ended()

    # -- the other end is slow -----------------------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """See L{IPushProducer.pauseProducing}."""
        self.full = True

    def resumeProducing(self) -> None:
        """See L{IPushProducer.resumeProducing}."""
        self.full = False

    def stopProducing(self) -> None:
        """See L{IPushProducer.stopProducing}: nobody listens any more."""
        self.full = True
