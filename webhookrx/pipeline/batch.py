"""
The messages of one turn of the reactor: encoded for each observer, stored together, acknowledged together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from twisted.logger import Logger

from webhookrx.errors import NotStored
from webhookrx.message.encoders import encode_line
from webhookrx.pipeline.admission import size_of
from webhookrx.pipeline.guarded_calls import error_text

if TYPE_CHECKING:
    from webhookrx.interfaces import Acknowledge, IMessageObserver, Prepared
    from webhookrx.message.message import Message

#: Called with each failure: the observer's spec, what went wrong, and how many messages it hit.
Report = Callable[[str, str, int], None]

_log = Logger()


#: A message as all observers take it: an entry for each encoder, None where it failed; the bytes of all entries; and
#: why the first one failed, None when none has.
Encoded: TypeAlias = "tuple[list[Prepared | None], int, NotStored | None]"


class EncodedMessage(msgspec.Struct, gc=False):
    """
    A message that was encoded before its time.

    @ivar encoders: what encoded it.
    @ivar content: what they made of it.
    """

    encoders: Encoders
    content: Encoded

    def __len__(self) -> int:
        """Return how many bytes one observer is given, roughly."""
        items, size, _ = self.content
        return size // len(items)


class Encoders:
    """
    The distinct C{prepare} methods of some observers: those that are equal are called once for each message.

    @param report: called when a message can't be encoded.
    @ivar columns: for each observer, which encoder it takes its messages from.
    @ivar make_lines: whether one of them is L{encode_line}, or puts a line to what it makes.
    @ivar make_only_lines: whether L{encode_line} is the only one.
    """

    def __init__(self, observers: Sequence[IMessageObserver], report: Report) -> None:
        self.columns: list[int] = []
        self._report = report
        self._encoders: list[tuple[Callable[[Message], Prepared], str]] = []
        for observer in observers:
            known = [encode for encode, _ in self._encoders]
            if observer.prepare not in known:
                known.append(observer.prepare)
                self._encoders.append((observer.prepare, observer.spec))
            self.columns.append(known.index(observer.prepare))
        only_lines = [encode == encode_line for encode, _ in self._encoders]
        self.make_lines = any(only_lines) or any(getattr(observer, "takes_lines", False) for observer in observers)
        self.make_only_lines = only_lines == [True]

    def new_batch(self) -> Batch:
        """Return a batch for messages of these encoders."""
        return Batch(len(self._encoders))

    def bundle_batches(self, encoded: Sequence[Encoded], acknowledge: Acknowledge, most: int) -> list[Batch]:
        """
        Return batches of messages that have one acknowledgement.

        @param most: bytes of a batch; a single message may be larger.
        """
        cuts, size = [0], 0
        for place, (_, more, _) in enumerate(encoded):
            if size + more > most and place > cuts[-1]:
                cuts.append(place)
                size = 0
            size += more
        joint = JointAcknowledgement(acknowledge, len(cuts))
        batches: list[Batch] = []
        for start, end in zip(cuts, (*cuts[1:], len(encoded)), strict=True):
            batch = BundleBatch(len(self._encoders), joint)
            batch.add_all(encoded[start:end])
            batches.append(batch)
        return batches

    def encode(self, message: Message) -> Encoded:
        """Encode a message for all observers."""
        items: list[Prepared | None] = []
        failure: NotStored | None = None
        size = 0
        for encode, spec in self._encoders:
            item: Prepared | None
            try:
                item = encode(message)
                size += len(item) if type(item) is bytes else size_of(item)
            except BaseException as error:
                # Even SystemExit: what a foreign observer raises is an answer to this message, and to no other.
                item = None
                failure = failure or NotStored(f"{spec}: {error_text(error)}")
                self._report(spec, error_text(error), 1)
            items.append(item)
        return items, size, failure

    def encode_all(self, messages: Sequence[Message], prepared: Sequence[object] | None = None) -> list[Encoded]:
        """
        Encode messages, unless these have encoded all of them before.

        @param prepared: what they were encoded to then.
        """
        if prepared is not None:
            known = [each.content for each in prepared if type(each) is EncodedMessage and each.encoders is self]
            if len(known) == len(messages):
                return known
        return [self.encode(message) for message in messages]


class Batch:
    """
    The messages of one turn, by place.

    @ivar columns: one list of encoded messages for each encoder. None stands for a message that it failed for.
    @ivar acknowledges: the acknowledgements to call; empty once they are called.
    @ivar came: when it was handed over, seconds on the monotonic clock.
    @ivar count: how many messages it had when it was handed over.
    @ivar size: bytes counted for it.
    @ivar outstanding: lanes that still have it.
    @ivar failures: place to why that message is not safe.
    @ivar has_gaps: some encoder failed for some message.
    """

    __slots__ = ("acknowledges", "came", "columns", "count", "failures", "has_gaps", "outstanding", "size")

    def __init__(self, encoders: int) -> None:
        self.columns: list[list[Prepared | None]] = [[] for _ in range(encoders)]
        self.acknowledges: list[Acknowledge] = []
        self.came = 0.0
        self.count = 0
        self.size = 0
        self.outstanding = 0
        self.failures: dict[int, NotStored] = {}
        self.has_gaps = False

    def add(self, items: list[Prepared | None], size: int, failure: NotStored | None, acknowledge: Acknowledge) -> None:
        """Append a message, see L{Encoded}."""
        if failure is not None:
            self.has_gaps = True
            self.failures[len(self.acknowledges)] = failure
        columns = self.columns
        if len(columns) == 1:
            columns[0].append(items[0])
        else:
            for column, item in zip(columns, items, strict=True):
                column.append(item)
        self.acknowledges.append(acknowledge)
        self.size += size

    def fail(self, place: int, failure: NotStored) -> None:
        """Note that one message is not safe. The first reason stays."""
        self.failures.setdefault(place, failure)

    def fail_all(self, failure: NotStored) -> None:
        """Note that no message of a batch that was handed over is safe. First reasons stay."""
        for place in range(self.count):
            self.failures.setdefault(place, failure)

    def acknowledge(self) -> None:
        """Call every acknowledgement once, whatever any of them raises."""
        failure_of = self.failures.get
        acknowledges, self.acknowledges = self.acknowledges, []
        for place, acknowledge in enumerate(acknowledges):
            try:
                acknowledge(failure_of(place))
            except Exception:
                _log.failure("An acknowledgement of a message failed")


class BundleBatch(Batch):
    """
    Messages that are acknowledged together with those of other batches.

    @param acknowledge: called with the first failure of these messages, None when all of them are safe.
    """

    __slots__ = ()

    def __init__(self, encoders: int, acknowledge: Acknowledge) -> None:
        super().__init__(encoders)
        self.acknowledges.append(acknowledge)

    def add_all(self, encoded: Sequence[Encoded]) -> None:
        """Append messages, see L{Encoded}."""
        place = len(self.columns[0])
        for number, column in enumerate(self.columns):
            column += [items[number] for items, _, _ in encoded]
        self.size += sum([size for _, size, _ in encoded])
        for each, (_, _, failure) in enumerate(encoded, place):
            if failure is not None:
                self.has_gaps = True
                self.failures[each] = failure

    def acknowledge(self) -> None:
        """Say once what has become of all of them."""
        acknowledges, self.acknowledges = self.acknowledges, []
        for acknowledge in acknowledges:
            acknowledge(next(iter(self.failures.values()), None))


class JointAcknowledgement:
    """
    One acknowledgement for messages in several batches: given when the last of them is done with, first error wins.

    @param batches: how many.
    """

    __slots__ = ("_acknowledge", "_batches", "_failure")

    def __init__(self, acknowledge: Acknowledge, batches: int) -> None:
        self._acknowledge = acknowledge
        self._batches = batches
        self._failure: NotStored | None = None

    def __call__(self, failure: NotStored | None) -> None:
        """Take the acknowledgement of one batch."""
        self._failure = self._failure or failure
        self._batches -= 1
        if not self._batches:
            try:
                self._acknowledge(self._failure)
            except Exception:
                _log.failure("An acknowledgement of several messages failed")


#: A batch, and its messages as one observer takes them.
Part = tuple[Batch, "list[Prepared | None]"]


class StoreCall:
    """
    One call of C{store}, made in the observer's thread.

    @ivar parts: what is stored.
    @ivar batches: those of it that are not settled yet.
    @ivar count: how many messages it is.
    @ivar size: bytes counted for it.
    @ivar asked: when it was queued for the thread, in seconds on the monotonic clock.
    @ivar is_overdue: it was late at the last look.
    @ivar is_given_up: its messages have failed without it; the lane stalls until it is back.
    @ivar seconds: that it took in the thread.
    """

    __slots__ = (
        "_items",
        "_monotonic",
        "_observer",
        "asked",
        "batches",
        "count",
        "is_given_up",
        "is_overdue",
        "parts",
        "seconds",
        "size",
    )

    def __init__(
        self,
        observer: IMessageObserver,
        parts: list[Part],
        items: list[Prepared],
        size: int,
        monotonic: Callable[[], float],
    ) -> None:
        self._observer = observer
        self._monotonic = monotonic
        self._items = items
        self.parts = parts
        self.batches = [batch for batch, _ in parts]
        self.count = len(items)
        self.size = size
        self.asked = monotonic()
        self.is_overdue = False
        self.is_given_up = False
        self.seconds = 0.0

    def run(self) -> object:
        """Store; return what C{store} returned."""
        # With nothing left to store, the way through the thread keeps the order and the contract of write().
        if not self._items:
            return None
        began = self._monotonic()
        try:
            return self._observer.store(self._items)
        finally:
            self.seconds = self._monotonic() - began

    def note_failures(self, outcomes: Sequence[str | None]) -> tuple[int, str]:
        """
        Spread the observer's answer, one entry for each message that it got, over the batches.

        @return: how many messages failed, and why the first did.
        """
        failed = 0
        reason = ""
        each = iter(outcomes)
        known: str | None = None
        for batch, items in self.parts:
            for place, item in enumerate(items):
                if item is None:
                    continue
                error = next(each)
                if error is None:
                    continue
                if error != known:
                    known = error
                    failure = NotStored(f"{self._observer.spec}: {error}")
                batch.fail(place, failure)
                if not failed:
                    reason = error
                failed += 1
        return failed, reason
