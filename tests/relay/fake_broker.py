"""A broker in memory, and its consumer: what a relay is tested with. It passes the contract of the real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from webhookrx.config.observers import Argument, ObserverSpec
from webhookrx.errors import ConfigError, Unavailable
from webhookrx.relay.consumer import BrokerOptions, Consumer, ConsumerKind, Record


class Entry(NamedTuple):
    """What was published."""

    value: bytes
    id: str
    received: int | None


class FakeBroker:
    """
    Topics of one partition in memory, with one cursor and the deliveries that are not settled for each group.

    @ivar away: why it does not answer; None while it does.
    @ivar calls: what the consumers were asked, in order.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.away: str | None = None
        self.calls: list[str] = []
        self._settled: dict[str, set[int]] = {}
        self._held: dict[str, dict[int, FakeConsumer]] = {}
        self._deliveries: dict[tuple[str, int], int] = {}

    def publish(self, value: bytes, id: str = "", received: int | None = None) -> None:
        """Add an entry."""
        self.entries.append(Entry(value, id, received))

    def settled(self, group: str) -> list[int]:
        """Return the places that a group has settled, sorted."""
        return sorted(self._settled.get(group, ()))

    def waiting(self, group: str) -> int:
        """Return how many entries are not settled."""
        return len(self.entries) - len(self._settled.get(group, ()))

    def take(self, consumer: FakeConsumer, messages: int, size: int) -> list[Record]:
        """Give free entries to a consumer."""
        self.answer()
        settled, held = self._of(consumer.group)
        taken: list[Record] = []
        room = size
        for place, entry in enumerate(self.entries):
            if place in settled or place in held:
                continue
            times = self._deliveries.get((consumer.group, place), 0)
            record = Record(entry.value, entry.id, f"topic/0/{place}", entry.received, place, times > 0)
            if len(taken) == messages or (taken and record.size > room):
                break
            room -= record.size
            held[place] = consumer
            self._deliveries[consumer.group, place] = times + 1
            taken.append(record)
        return taken

    def settle(self, consumer: FakeConsumer, places: Sequence[int]) -> None:
        """Settle what the consumer still holds."""
        self.answer()
        settled, held = self._of(consumer.group)
        for place in places:
            if held.get(place) is consumer:
                del held[place]
                settled.add(place)

    def holds(self, consumer: FakeConsumer, place: int) -> bool:
        """Tell whether the consumer still holds an entry."""
        return self._of(consumer.group)[1].get(place) is consumer

    def let_go(self, consumer: FakeConsumer) -> None:
        """Give what a consumer holds to others: it has left, or is dead."""
        held = self._of(consumer.group)[1]
        for place in [place for place, holder in held.items() if holder is consumer]:
            del held[place]

    def answer(self) -> None:
        """
        Answer a call.

        @raise Unavailable: the broker is away.
        """
        if self.away is not None:
            raise Unavailable(self.away)

    def _of(self, group: str) -> tuple[set[int], dict[int, FakeConsumer]]:
        return self._settled.setdefault(group, set()), self._held.setdefault(group, {})


class FakeConsumer:
    """A consumer of a L{FakeBroker}."""

    def __init__(self, broker: FakeBroker, group: str, spec: str = "fake:fake://b/topic") -> None:
        self.spec = spec
        self.group = group
        self._broker = broker

    def open(self) -> None:
        self._broker.calls.append("open")

    def fetch(self, messages: int, size: int, seconds: float) -> Sequence[Record]:
        return self._broker.take(self, messages, size)

    def settle(self, records: Sequence[Record]) -> None:
        self._broker.calls.append(f"settle {' '.join(str(record.place) for record in records)}")
        self._broker.settle(self, [record.place for record in records])

    def keep_alive(self) -> None:
        self._broker.calls.append("keep_alive")

    def is_ours(self, record: Record) -> bool:
        return self._broker.holds(self, record.place)

    def lag(self) -> int | None:
        return self._broker.waiting(self.group)

    def reopen(self) -> None:
        self._broker.calls.append("reopen")

    def hurry(self) -> None:
        self._broker.calls.append("hurry")

    def close(self) -> None:
        self._broker.calls.append("close")
        self._broker.let_go(self)


def fake_kind(broker: FakeBroker) -> ConsumerKind:
    """Return the kind of consumer whose specs are C{fake:URL:check=WORD}; C{check=no} is an error."""

    def build(spec: str, args: Sequence[str], options: Mapping[str, str], group: str) -> Consumer:
        if BrokerOptions("fake", options).choice("check", ("yes", "no"), "yes") == "no":
            raise ConfigError("broker 'fake': it was to fail")
        return FakeConsumer(broker, group, spec)

    return ConsumerKind(ObserverSpec(("check",), Argument.URL), build)
