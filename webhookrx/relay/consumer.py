"""
What a relay reads from: a consumer of a broker, and the records that it returns.

A consumer belongs to a group of relays that share the work: each record goes to one of them, and to another one if that
has not settled it in time. So a record comes at least once, and possibly twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from webhookrx.config.observers import ObserverSpec
from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError

FETCH_WAIT = 0.5
"""Seconds that a relay lets L{Consumer.fetch} wait for the first record."""
KEEP_ALIVE = 1.0
"""Seconds between two calls of L{Consumer.keep_alive} at most, while records are neither settled nor lost."""


class Record(NamedTuple):
    """
    What a broker delivers.

    @ivar value: as it is there; empty for one without a value.
    @ivar id: the id beside the value, from the header C{webhookrx-id}, C{Nats-Msg-Id} or the field C{id}; empty without
        one.
    @ivar origin: where it is in the broker, such as C{topic/3/42} (topic, partition, offset) or C{stream/1690000-0}:
        the same each time it is delivered, and no other record of the broker has it.
    @ivar received: when the broker took it, in nanoseconds since the epoch; None if it does not say.
    @ivar place: what the consumer needs to settle it; nobody else looks at it.
    @ivar redelivered: the broker says that it was delivered before.
    """

    value: bytes
    id: str
    origin: str
    received: int | None
    place: Any
    redelivered: bool = False

    @property
    def size(self) -> int:
        """Bytes that it is counted for, its id and origin included."""
        return len(self.value) + len(self.id) + len(self.origin)


class Consumer(Protocol):
    """
    Takes records from a broker for a group, and settles them.

    All methods but L{hurry} are called in one thread, never two at a time. None of them blocks for longer than about a
    second, besides C{seconds} of L{fetch}: connections, too, are made in pieces or in a thread of the consumer's own.
    So the broker may be away for days, and the relay still answers signals.

    An error that a person may mend (no topic, no right, a wrong password) is L{webhookrx.errors.Unavailable}, like a
    broker that is away: the relay waits and tries again. Texts have the broker's own code, at most 200 characters of
    its words, and no secret.
    """

    spec: str
    """The spec string it was made from, fit for a log line."""

    def open(self) -> None:
        """
        Get ready; the broker may be away. Called once, before anything else but L{hurry}.

        @raise webhookrx.errors.ConfigError: no retry will help; the text says why.
        """

    def fetch(self, messages: int, size: int, seconds: float) -> Sequence[Record]:
        """
        Return further records, in the order of the broker. They belong to the relay until they are settled or lost.

        Called while others are not settled yet, too, to make a batch larger: what was returned is not returned again
        unless it was lost in between.

        @param messages: at most so many, and at least 1.
        @param size: about so many bytes at most; one larger record is returned alone. What the consumer fetches ahead
            is bounded by about as much.
        @param seconds: how long to wait for the first one. It returns at once what is there then, maybe nothing.
        @raise webhookrx.errors.Unavailable: the broker does not answer, or says no.
        """

    def settle(self, records: Sequence[Record]) -> None:
        """
        Tell the broker that these are done with: nobody in the group gets them again. Lost ones are passed over.

        They come in any order, not always that of the broker. Where the broker knows only a position, it moves up to
        the first record that is not settled.

        @raise webhookrx.errors.Unavailable: not all of them are settled. The same call may follow; nothing goes wrong
            if some of them are settled twice.
        """

    def keep_alive(self) -> None:
        """
        Keep the membership in the group, and the records that are not settled: the observer is away or slow. Called
        every L{KEEP_ALIVE} seconds between L{fetch} and L{settle}, without an end to it. It returns soon, and raises
        nothing: what is wrong shows at the next L{fetch} or L{settle}.
        """

    def is_ours(self, record: Record) -> bool:
        """
        Tell whether a record that is not settled still belongs to this consumer: False once it is lost, such as with
        its partition or its time to settle. The relay then drops it, since another one gets it.
        """

    def lag(self) -> int | None:
        """Return how many records of the broker wait for the group, as last heard, without asking; None if unknown."""

    def reopen(self) -> None:
        """
        Read files of secrets and certificates again, and use them from the next connection on. Records stay.

        @raise webhookrx.errors.ConfigError: a file can't be used; the former content stays in use.
        """

    def hurry(self) -> None:
        """Stop waiting: every call returns or raises soon from now on. Called in any thread, possibly several times."""

    def close(self) -> None:
        """Leave the group, within three seconds; what is not settled goes to others soon. Called once, as the last."""


class ConsumerKind(NamedTuple):
    """
    One kind of consumer, such as C{kafka:}.

    @ivar spec: what it declares of its spec string.
    @ivar build: makes a consumer of spec string, arguments, options and group, and opens no socket; raises
        L{webhookrx.errors.ConfigError} for anything that is wrong, a missing package included.
    """

    spec: ObserverSpec
    build: Callable[[str, Sequence[str], Mapping[str, str], str], Consumer]


class BrokerOptions(SpecOptions):
    """Reads the options of a broker to relay from; errors name it."""

    def problem(self, text: str) -> ConfigError:
        """Return an error that names the broker."""
        return ConfigError(f"broker {self.observer!r}: {text}")
