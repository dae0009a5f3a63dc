"""
The seams between the shells: rooms on one floor meet here and are joined in L{webhookrx.service.receiver}.

Twisted lives from here up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from twisted.internet.interfaces import IOpenSSLServerConnectionCreator, IPushProducer
from zope.interface import Attribute, Interface

from webhookrx.errors import NotStored
from webhookrx.message.message import Message

if TYPE_CHECKING:
    from socket import socket

    from OpenSSL.SSL import Connection
    from twisted.python.failure import Failure

    from webhookrx.errors import Reason

#: Told once, in the reactor thread: None when every observer has the message safe, else why it is not.
Acknowledge: TypeAlias = Callable[[NotStored | None], None]
#: What an observer makes of a message before it is queued: bytes to write, or the message itself.
Prepared: TypeAlias = bytes | Message


class IMessageObserver(Interface):
    """
    Takes messages in batches and says when they are safe.

    C{open}, C{store}, C{reopen} and C{close} are never called two at a time. They are called in a thread that belongs
    to this observer alone, so they may block; not always in the same one. Only the C{open} at the start of the service
    is in the reactor thread, where nothing else has to be done yet; and so is a C{close} after it, when another
    observer can't be opened.

    C{prepare} is called beside them: in the reactor thread or, for an observer behind a spool, in the spool's. It must
    not block.
    """

    spec: str = Attribute("The spec string it was made from, fit for a log line.")
    promise: str = Attribute(
        "The most that its word can mean: 'durable', 'written' or 'queued'. Final once it is open. Where that is not "
        "'durable', the reactor may wait a moment for C{store}, see L{webhookrx.pipeline.observer_thread.BriefWait}."
    )

    def open() -> None:
        """
        Open what it writes to: at the start before any connection is accepted, and again after a C{close} when the
        observer is needed after all. It undoes a C{hurry}.

        @raise webhookrx.errors.ConfigError: it can't be opened; the text names it and says why.
        """

    def prepare(message: Message) -> Prepared:
        """
        Turn a message into what C{store} takes, so that encoding is paid once and its size is known.

        Observers whose C{prepare} compares equal share one call. All of them get the same message: it is read-only.
        """

    def store(batch: Sequence[Prepared]) -> Sequence[Exception | None] | None:
        """
        Make a batch as safe as the C{--ack} level asks.

        @return: None when all of it is safe, else one entry a message: None, or why that one is not safe;
            L{webhookrx.errors.Rejected} says that no retry mends it.
        @raise webhookrx.errors.Unavailable: none of the batch is safe, and the same batch may be tried again.
        @raise Exception: none of the batch is safe.
        """

    def reopen() -> None:
        """Close and open again by name: a log rotation moved the file away."""

    def close() -> None:
        """Let go of everything, after the last C{store}. C{open} may follow. Not called when C{open} failed."""


class IWaitingObserver(IMessageObserver):
    """An observer whose C{store} may wait for something outside, such as another machine."""

    def hurry() -> None:
        """
        The receiver stops, or needs the observer no more: a C{store} that waits, and any that is called from now on,
        tries once more at most and ends soon, with an exception if need be. This holds until the next C{open}.

        Called from any thread, beside any other call, and possibly several times. It must not block.
        """


class Backlog(NamedTuple):
    """
    What an observer keeps that another one is still to get.

    @ivar messages: how many wait.
    @ivar bytes: what they take.
    @ivar oldest: when the oldest of them was received, nanoseconds since the epoch; None when none waits.
    @ivar dead: messages that were refused for good and are kept apart.
    @ivar dropped: messages that were dropped for want of room or for their age, since the start.
    @ivar away: why the other observer does not take messages now; None when it does, as far as is known.
    @ivar full: no more messages are taken.
    @ivar damaged: damaged files that were put aside, since the start.
    """

    messages: int
    bytes: int
    oldest: int | None
    dead: int
    dropped: int
    away: str | None
    full: bool
    damaged: int = 0

    @classmethod
    def of_all(cls, backlogs: Sequence[Backlog]) -> Backlog:
        """Return what several observers keep together; what one is away or full with, all are."""
        return cls(
            messages=sum(each.messages for each in backlogs),
            bytes=sum(each.bytes for each in backlogs),
            oldest=min((each.oldest for each in backlogs if each.oldest is not None), default=None),
            dead=sum(each.dead for each in backlogs),
            dropped=sum(each.dropped for each in backlogs),
            away=next((each.away for each in backlogs if each.away is not None), None),
            full=any(each.full for each in backlogs),
            damaged=sum(each.damaged for each in backlogs),
        )


class IBufferingObserver(IWaitingObserver):
    """An observer that keeps messages for another one which may be away."""

    def backlog() -> Backlog:
        """Tell what waits, from any thread, without waiting for a disk."""

    def finish() -> None:
        """
        Nothing more is stored: end what goes on beside C{store}, and wait for that, some seconds at most.

        Called as C{store} is, after the last one and L{hurry}, once before each C{close}.
        """


class LaneStatus(NamedTuple):
    """
    How the way to one observer is doing.

    @ivar spec: the observer's spec string, fit for a log line.
    @ivar messages: how many wait for it, those that are being stored included.
    @ivar bytes: what they are counted for.
    @ivar stalled: its C{store} has been running for longer than an answer may take, and it is given no messages.
    @ivar failed_ago: seconds since its last C{store}, which made nothing safe; 0 as long as it can't be opened again;
        None when all is well.
    @ivar backlog: what it keeps for another observer; None when it keeps nothing.
    """

    spec: str
    messages: int = 0
    bytes: int = 0
    stalled: bool = False
    failed_ago: float | None = None
    backlog: Backlog | None = None


class IMessageConsumer(Interface):
    """
    The end of the chain that the web side sees: C{twisted.internet.interfaces.IConsumer} for messages.

    Every byte from the first of a body to the last acknowledgement is counted against one limit.
    """

    def registerProducer(producer: IPushProducer, streaming: bool) -> None:
        """Register who is paused when the queue is nearly full; only C{streaming=True} is supported."""

    def unregisterProducer() -> None:
        """Forget the producer."""

    def has_room(size: int, *, small: bool) -> bool:
        """
        Whether a body of C{size} bytes would find room now; nothing is counted.

        @param small: it is a small body, for which some room is kept.
        """

    def reserve(size: int, *, small: bool) -> bool:
        """Count C{size} bytes of a body that is arriving; False, and nothing counted, when there is no room."""

    def release(size: int) -> None:
        """Give back what was reserved."""

    def prepare(message: Message) -> object:
        """Do the work of L{write} that takes time in proportion to the message; call C{write} with the result soon."""

    def write(message: Message, acknowledge: Acknowledge, prepared: object = None) -> None:
        """
        Hand over a message. C{acknowledge} is called exactly once, never before this method has returned.

        @param prepared: what L{prepare} returned of it; None for a message of modest size.
        @raise webhookrx.errors.NoRoom: the queue is full; C{acknowledge} is not called.
        """

    def retry_after() -> int:
        """Return after how many seconds there should be room again, by how fast the queue drains; at least 1."""


class IObserverFactory(Interface):
    """
    A C{twisted.plugin} that adds an observer name. Third parties drop a module into C{twisted/plugins} that holds
    an object which provides this and C{twisted.plugin.IPlugin}.
    """

    name: str = Attribute("The first word of the spec strings it serves.")

    def build(spec: str, args: Sequence[str], options: Mapping[str, str], ack: str) -> IMessageObserver:
        """
        Make an observer from its spec string, whole and taken apart; open nothing yet.

        @raise webhookrx.errors.ConfigError: an argument or option is missing, unknown or wrong.
        """


class ITraffic(Interface):
    """Is told what happens on the wire, to count it and to log it."""

    def refused(reason: Reason, detail: str, peer: str, method: bytes, path: bytes, source: str = "") -> None:
        """
        A request was refused.

        @param path: raw, without the query; both it and C{method} may be empty.
        @param source: the name of the source whose pattern matched; empty when none has, or not yet.
        """

    def answered(source: str, seconds: float) -> None:
        """A message was answered with 200, so many seconds after its request was there in full."""

    def accepted(source: str, notes: Sequence[str], left_out: int, size: int) -> None:
        """
        A message was made.

        @param notes: words for what was worth counting about it.
        @param left_out: how many names of its payload were the receiver's own.
        @param size: bytes of its body as it came by the wire.
        """

    def expects(source: str, events: Sequence[tuple[str, str]]) -> None:
        """The steps of a connector may count these; so their counts exist from now on, with 0 if need be."""

    def processed(source: str, events: Sequence[tuple[str, str]], problem: str) -> None:
        """
        The steps of a connector have seen a message, whether it was kept or dropped.

        @param events: what they have counted: a word and a label.
        @param problem: how a step failed, in one sentence; empty when none has.
        """

    def accept_failed(error: str) -> None:
        """
        The system has not let us accept a connection; it waits.

        @param error: the name of the error, such as C{EMFILE}.
        """

    def handshake_failed(peer: str, failure: Failure) -> None:
        """A connection ended before its TLS handshake did."""

    def dropped_unread() -> None:
        """What a sender has sent was dropped: it has left, and there is too much to do."""

    def failed(what: str, failure: Failure) -> None:
        """Something of ours raised what it should not."""


class IStandingQueue(Interface):
    """Tells by the age of what waits in a queue whether the queue stands."""

    stands: bool = Attribute("Whether it does.")

    def observe(now: float, age: float, length: float) -> bool:
        """
        Take note of the queue as it is now; to be called whenever that is known anew.

        @param now: seconds on the monotonic clock.
        @param age: seconds that what is at its end waits.
        @param length: how much is in it, in any unit; its age, where only that is known.
        @return: whether it stands.
        """


class IOverload(Interface):
    """What the wire is told while more is sent than can be read."""

    refusing: bool = Attribute("The requests that are read now have waited for too long, and are to be refused.")

    behind: bool = Attribute("What is ready to be read is more than fits into one turn, so that some of it waits.")

    def has_unread(fd: int) -> bool:
        """Tell whether what has come by the connection of this descriptor waits for us to read it."""


class ITLSCreator(IOpenSSLServerConnectionCreator):
    """Makes the server's end of TLS connections, in memory for Twisted's TLS or on a socket."""

    def connection_on(sock: socket) -> Connection:
        """Return the TLS of a connection that was accepted on that socket, in accept state; nothing is read yet."""
