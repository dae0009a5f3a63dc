"""Tests of webhookrx.relay.target."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.memory_store import MemoryStore
from tests.relay.test_relay import Inline, Memory
from webhookrx.errors import ConfigError, Rejected, Unavailable
from webhookrx.interfaces import LARGEST_BATCH, MOST_MESSAGES, LaneStatus, Wants
from webhookrx.operations.counters import Counters
from webhookrx.relay.part import RelayPart
from webhookrx.relay.target import HANGS, RelayTarget, relay_weaknesses
from webhookrx.spool.batches import OfferSize
from webhookrx.testing import make_message


class RelayTargetTests(SynchronousTestCase):
    """An observer of a relay."""

    def setUp(self) -> None:
        self.memory, self.beside, self.counters = Memory(), Inline(), Counters()
        clock = Clock()
        part = RelayPart("Observer memory", "take messages", "takes messages", lambda: 1.0, clock.seconds)
        self.target = RelayTarget(self.memory, self.beside, part, self.counters, clock.seconds)

    def test_open(self) -> None:
        """What an observer raises that can't be opened names it."""

        def fail() -> None:
            raise OSError("disk gone")

        self.target.open()
        self.assertEqual(["open"], self.memory.calls)
        self.memory.open = fail  # type: ignore[method-assign]
        error = self.assertRaises(ConfigError, self.target.open)
        self.assertEqual("observer memory can't be opened: disk gone", str(error))

    def test_counts(self) -> None:
        """Batches are counted, whether or not they are stored."""
        self.memory.answer = lambda text: Rejected("no") if text == "b" else None

        outcomes = self.target.store([make_message("a"), make_message("b")], lambda: None)

        self.assertEqual([None, "no"], [outcome and str(outcome) for outcome in outcomes][:2])
        counts = self.counters.observers["memory"]
        self.assertEqual((2, 0, 1), (counts.messages, counts.bytes, counts.stores.count))
        self.target.store([b"12345"], lambda: None)
        self.assertEqual((3, 5, 2), (counts.messages, counts.bytes, counts.stores.count))

    def test_own_counts(self) -> None:
        """What the observer counts itself is added, and what it refuses for good; also what comes at its end."""
        store = MemoryStore("store")
        part = RelayPart("Observer store", "take messages", "takes messages", lambda: 1.0, Clock().seconds)
        target = RelayTarget(store, self.beside, part, self.counters)
        target.open()
        store.judge = lambda _: Rejected("no")
        store.counts.known(2)
        target.store([make_message("a")], lambda: None)
        self.patch(store, "close", lambda: store.counts.confirmed(0.5))
        target.close(lambda: None)

        counts = self.counters.observers["store"]
        self.assertEqual((1, 2, 1), (counts.refused, counts.known, counts.confirms.count))

    def test_status(self) -> None:
        """Its status says whether it fails or hangs."""
        self.assertEqual(LaneStatus("memory"), self.target.status())
        self.target.part.failed(Unavailable("away"))
        self.beside.busy = HANGS + 1

        self.assertEqual(LaneStatus("memory", stalled=True, failed_ago=0.0), self.target.status())

    def test_batch_size(self) -> None:
        """Batches are as large as the observer wants, within what fits into memory."""
        for wants, size in (
            (None, OfferSize(1000, 1024 * 1024, 0.0)),
            (Wants(10, 20, 3.0), OfferSize(10, 20, 3.0)),
            (Wants(None, 1 << 40), OfferSize(MOST_MESSAGES, LARGEST_BATCH, 0.0)),
            (Wants(1 << 40, 1000), OfferSize(MOST_MESSAGES, 1000, 0.0)),
        ):
            self.memory.wants = wants  # type: ignore[attr-defined]
            self.assertEqual(size, self.target.batch_size)

    def test_weaknesses(self) -> None:
        """A promise weaker than --ack is a sentence that says why."""
        self.assertEqual([], relay_weaknesses(self.memory, "durable"))
        self.memory.promise = "written"
        self.memory.promise_reason = "it syncs later"  # type: ignore[attr-defined]

        self.assertEqual([], relay_weaknesses(self.memory, "written"))
        sentence = "its word means 'written' (it syncs later), and a message leaves the broker on that"
        self.assertEqual(
            [f"--ack durable is more than observer memory can promise: {sentence}"],
            relay_weaknesses(self.memory, "durable"),
        )
