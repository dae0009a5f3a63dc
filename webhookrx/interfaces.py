"""
The interfaces between rooms of one floor, which L{webhookrx.service.receiver} joins. Twisted lives from here up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from twisted.internet.interfaces import IPushProducer
from zope.interface import Attribute, Interface

from webhookrx.errors import NotStored
from webhookrx.message.message import Message
from webhookrx.store_counts import StoreCounts, TakenCounts

if TYPE_CHECKING:
    pass

#: Called once, in the reactor thread: None when every observer has the message safe, else why it is not.
Acknowledge: TypeAlias = Callable[[NotStored | None], None]
#: A message as an observer's C{prepare} returns it: bytes to write, or the message itself.
Prepared: TypeAlias = bytes | Message


class IMessageObserver(Interface):
    """
    Stores messages in batches and reports when they are safe.

    C{open}, C{store}, C{reopen} and C{close} are never called two at a time. They are called in a thread that belongs
    to this observer alone, though not always in the same one, so they may block. Two calls are exceptions: the C{open}
    at the start of the service is made in the reactor thread, which has nothing else to do yet, and so is a C{close}
    after it when another observer can't be opened.

    C{prepare} is called beside them: in the reactor thread or, for an observer behind a spool, in the spool's. It must
    not block.
    """

    spec: str = Attribute("The spec string it was made from, fit for a log line.")
    promise: str = Attribute(
        "How safe a stored message is at best: 'durable', 'written' or 'queued'. Final once it is open."
    )

    def open() -> None:
        """
        Open the destination: at the start before any connection is accepted, and again after a C{close} when the
        observer is needed after all. This undoes a C{hurry}.

        @raise webhookrx.errors.ConfigError: it can't be opened; the text names it and says why.
        """

    def prepare(message: Message) -> Prepared:
        """
        Encode a message for C{store}, so that this is paid once and its size is known.

        Observers whose C{prepare} compares equal share one call. All of them get the same message: treat it as
        read-only.
        """

    def store(batch: Sequence[Prepared]) -> Sequence[Exception | None] | None:
        """
        Make a batch as safe as the C{--ack} level asks.

        @return: None when all of it is safe, else one entry a message: None, or why that one is not safe;
            L{webhookrx.errors.Rejected} when no retry will help.
        @raise webhookrx.errors.Unavailable: none of the batch is safe, and the same batch may be tried again.
        @raise Exception: none of the batch is safe.
        """

    def reopen() -> None:
        """Close and open again by name: a log rotation moved the file away."""

    def close() -> None:
        """Release everything, after the last C{store}. C{open} may follow. Not called when C{open} failed."""


class IWaitingObserver(IMessageObserver):
    """An observer whose C{store} may wait for something outside, such as another machine."""

    def hurry() -> None:
        """
        Stop waiting: the receiver stops, or no longer needs the observer. A C{store} that waits, and every later one,
        tries at most once more and returns or raises soon. This applies until the next C{open}.

        Called from any thread, beside any other call, and possibly several times. It must not block.
        """


class ILocalObserver(IMessageObserver):
    """
    An observer that only writes on this machine, and waits for no answer of another one. Unless its promise is
    'durable', which costs a sync, the reactor may wait briefly for its C{store}, see
    L{webhookrx.pipeline.observer_thread.BriefWait}.
    """


class Wants(NamedTuple):
    """
    The batches that an observer needs, for a spool in front of it: it waits until so many messages or bytes wait, or
    the oldest of them is so old, and offers about as much. Without a spool it changes nothing.

    @ivar messages: None for any number up to L{MOST_MESSAGES}.
    @ivar bytes: as the spool counts them, and no more than L{LARGEST_BATCH}.
    @ivar seconds: since the receipt of the oldest message; 0 to wait for no further ones.
    """

    messages: int | None
    bytes: int
    seconds: float = 0.0


LARGEST_BATCH: Final = 64 * 1024**2
"""The most bytes of L{Wants}: C{store} gets all of a batch at once, and may pack it beside."""
MOST_MESSAGES: Final = 100_000
"""The most messages of a batch, whatever L{Wants} says: each costs some hundred bytes beside its own."""


class IStoreObserver(IWaitingObserver):
    """
    An observer of a store or broker, whose promise is what that one says, and no more.

    Its C{store} does not wait for more than its options say, makes clients at the first batch (C{open} at the start
    runs in the reactor thread, and the other end may be away), and reads files of secrets again on C{reopen}.
    """

    takes_lines: bool = Attribute(
        "Whether C{prepare} puts the line of a message to what it makes, and little else, so that messages are made as "
        "lines for it, see C{Message.line}. One whose C{prepare} is C{encode_line} gets them whatever it says."
    )
    promise_reason: str = Attribute(
        "Why C{promise} is weaker than 'durable', and which option raises it: a clause for the start line, such as "
        "'it acknowledges before it syncs; synced=yes if sync_interval is always'. C{''} when it is 'durable'."
    )
    wants: Wants | None = Attribute("The batches it needs; None for usual ones.")
    counts: StoreCounts = Attribute(
        "What it counts itself: messages that the store had already, and confirmations. Whoever calls C{store} counts "
        "those that are refused for good, and takes all counts."
    )


class Backlog(NamedTuple):
    """
    What an observer, such as a spool, keeps for another one.

    @ivar messages: the number of waiting messages.
    @ivar bytes: their size.
    @ivar oldest: the time of receipt of the oldest of them, in nanoseconds since the epoch; None if no message waits.
    @ivar dead: the number of dead letters: messages that the other observer rejected permanently.
    @ivar dropped: the number of messages dropped for lack of room or for their age, since the start.
    @ivar away: why the other observer takes no messages now; None while it takes them, as far as is known.
    @ivar full: whether it refuses further messages.
    @ivar damaged: the number of damaged files that were put aside since the start.
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
        """Return the sum of several backlogs; it is away or full if one of them is."""
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
    """An observer that keeps messages for another one, which may be away."""

    inner: IMessageObserver = Attribute("The other one, or one of several that are alike. Nobody else calls it.")

    def backlog() -> Backlog:
        """Return what waits, from any thread, without waiting for a disk."""

    def take_counts() -> TakenCounts:
        """Return, from any thread, what was counted of the other one since the last call."""

    def finish() -> None:
        """
        End all background work, and wait for its end, some seconds at most: there is no further C{store}.

        Called in the thread of C{store}, after the last one and L{hurry}, once before each C{close}.
        """


class LaneStatus(NamedTuple):
    """
    The status of one observer.

    @ivar spec: the observer's spec string, fit for a log line.
    @ivar messages: how many wait for it, those that are being stored included.
    @ivar bytes: that they are counted for.
    @ivar stalled: its C{store} has been running for longer than an answer may take, and it gets no messages.
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
    The chain, as resources see it: C{twisted.internet.interfaces.IConsumer} for messages.

    Every byte from the first of a body to the last acknowledgement is counted against one limit.
    """

    takes_lines: bool = Attribute("Whether it will ask for messages as lines of JSON; changes with the observers.")
    takes_only_lines: bool = Attribute("Whether it will ask for nothing else; changes with the observers.")

    def registerProducer(producer: IPushProducer, streaming: bool) -> None:
        """Register the producer, paused when the queue is nearly full; only C{streaming=True} is supported."""

    def unregisterProducer() -> None:
        """Forget the producer."""

    def has_room(size: int, *, small: bool) -> bool:
        """
        Tell whether a body of C{size} bytes would find room now; nothing is counted.

        @param small: it is a small body; some room is kept for these.
        """

    def reserve(size: int, *, small: bool) -> bool:
        """Count C{size} bytes of a body that is arriving; False, and nothing counted, when there is no room."""

    def release(size: int) -> None:
        """Give back what was reserved."""

    def prepare(message: Message) -> Sized:
        """
        Do the part of L{write} that takes time in proportion to the message; pass the result to C{write} soon.

        @return: its length is about that of what one observer gets.
        """

    def write(message: Message, acknowledge: Acknowledge, prepared: object = None) -> None:
        """
        Hand over a message. C{acknowledge} is called exactly once, never before this method has returned.

        @param prepared: what L{prepare} returned of it; None for a message of modest size.
        @raise webhookrx.errors.NoRoom: the queue is full; C{acknowledge} is not called.
        """

    def write_all(
        messages: Sequence[Message], acknowledge: Acknowledge, prepared: Sequence[object] | None = None
    ) -> None:
        """
        Hand over messages, all or none. C{acknowledge} is called exactly once for all, never before this method has
        returned: with None when every observer has every one safe, else with the first error.

        @param messages: at least one.
        @param prepared: what L{prepare} returned of each; None for a few of modest size.
        @raise webhookrx.errors.NoRoom: the queue has no room for all; C{acknowledge} is not called.
        """

    def retry_after() -> int:
        """Return after how many seconds there should be room again, by how fast the queue drains; at least 1."""


class Claim(Enum):
    """What a claim of a delivery has come to."""

    NEW = "new"
    """It is the claimant's: to be judged and stored, and to be settled, however that ends."""
    KNOWN = "known"
    """It was stored within the window: to be answered as stored, and not to be stored again."""
    UNDER_WAY = "under way"
    """Another request of the same key is under way; the claimant is told later."""
    GIVEN_UP = "given up"
    """Only told later: the other request took as long as an answer may. To be answered as not stored."""


#: Called once, in the reactor thread: what became of a claim that was under way, which is never L{Claim.UNDER_WAY}.
Told: TypeAlias = Callable[[Claim], None]


class IDeliveryWindow(Interface):
    """
    The deliveries that were stored of late, and those under way, by key: see
    L{webhookrx.guard.delivery_key.delivery_key}. All workers have one.

    Called in the reactor thread; no method waits.
    """

    def claim(key: bytes, window: float, told: Told) -> Claim:
        """
        Claim a delivery, when its request is known to be genuine, and before it is judged.

        When another one of the same key is under way, C{told} is called once its fate is known: with L{Claim.KNOWN} if
        it was stored, with L{Claim.NEW} if not, for instance because its worker was killed: then this claimant is the
        next to try. It is called with L{Claim.GIVEN_UP} if none of this comes within the time for an answer. Otherwise
        C{told} is never called.

        @param key: 16 bytes.
        @param window: seconds for which a stored delivery is known.
        """

    def settle(key: bytes, stored: bool) -> None:
        """
        Give up a claim that came to L{Claim.NEW}, exactly once, when the fate of its request is known.

        @param stored: all of it is safe; it is known from now on. Otherwise nothing is remembered of it.
        """


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
