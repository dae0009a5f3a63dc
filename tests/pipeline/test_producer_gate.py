"""Pausing and resuming; what a consumer must do with it is in the consumer contract."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.consumer_contract import RecordingProducer
from webhookrx.pipeline.budget import Budget
from webhookrx.pipeline.producer_gate import ProducerGate


class BrokenProducer(RecordingProducer):
    """Notes what it was told, then fails."""

    def pauseProducing(self) -> None:
        """Fail."""
        super().pauseProducing()
        raise ValueError("pause")

    def resumeProducing(self) -> None:
        """Fail."""
        super().resumeProducing()
        raise ValueError("resume")


class ProducerGateTests(SynchronousTestCase):
    """The gate tells its producer once each time."""

    def test_broken_producer(self) -> None:
        """A producer that fails is logged, and stops nobody."""
        budget = Budget(100, 4)
        gate = ProducerGate(budget, Clock().seconds, 2.0)
        producer = BrokenProducer()
        gate.register(producer, True)
        for _ in range(4):
            budget.add_message(1)
        gate.grew()
        budget.remove_messages(4, 4)
        gate.shrank()

        self.assertEqual(["pause", "resume"], producer.calls)
        self.assertEqual(2, len(self.flushLoggedErrors(ValueError)))

    def test_between_the_marks(self) -> None:
        """Between the marks nothing changes."""
        budget = Budget(100, 8)
        gate = ProducerGate(budget, Clock().seconds, 2.0)
        producer = RecordingProducer()
        gate.register(producer, True)
        for _ in range(8):
            budget.add_message(1)
        gate.grew()
        budget.remove_messages(2, 2)
        gate.shrank()
        gate.grew()

        self.assertEqual(["pause"], producer.calls)

    def test_open(self) -> None:
        """It can be opened above the marks; what comes then closes it again, and one that is open is left alone."""
        budget = Budget(100, 4)
        gate = ProducerGate(budget, Clock().seconds, 2.0)
        producer = RecordingProducer()
        gate.open()
        gate.register(producer, True)
        gate.open()
        for _ in range(4):
            budget.add_message(1)
        gate.grew()
        gate.open()
        gate.shrank()
        self.assertEqual(["pause", "resume"], producer.calls)
        gate.grew()

        self.assertEqual(["pause", "resume", "pause"], producer.calls)

    def test_bounded(self) -> None:
        """Under pressure that goes on it pauses for two seconds in all, and again after a second without any."""
        budget, clock = Budget(100, 4), Clock()
        gate = ProducerGate(budget, clock.seconds, 2.0)
        producer = RecordingProducer()
        gate.register(producer, True)
        for _ in range(8):
            for _ in range(4):
                budget.add_message(1)
            gate.grew()
            clock.advance(0.5)
            budget.remove_messages(4, 4)
            gate.shrank()
        self.assertEqual(["pause", "resume"] * 4, producer.calls)
        clock.advance(1.0)
        for _ in range(4):
            budget.add_message(1)
        gate.grew()
        self.assertEqual(9, len(producer.calls))

    def test_pressure(self) -> None:
        """A time of pressure lasts while pauses, and what comes between them, are less than a second apart."""
        for resumed, again, calls in (
            (1.5, 2.2, ["pause", "resume"]),  # two seconds of the same pressure are over
            (1.5, 2.5, ["pause", "resume", "pause"]),  # a second without any has passed
            (0.5, 1.4, ["pause", "resume", "pause"]),
        ):
            budget, clock = Budget(100, 4), Clock()
            gate = ProducerGate(budget, clock.seconds, 2.0)
            producer = RecordingProducer()
            gate.register(producer, True)
            for _ in range(4):
                budget.add_message(1)
            gate.grew()
            clock.advance(resumed)
            gate.open()
            clock.advance(again - resumed)
            gate.grew()

            self.assertEqual(calls, producer.calls, again)

    def test_others(self) -> None:
        """A producer that comes after one that was paused is paused itself, and not resumed without that."""
        for end in ("unregister", "stop"):
            budget = Budget(100, 4)
            gate = ProducerGate(budget, Clock().seconds, 2.0)
            first, second = RecordingProducer(), RecordingProducer()
            gate.register(first, True)
            for _ in range(4):
                budget.add_message(1)
            gate.grew()
            getattr(gate, end)()
            gate.register(second, True)
            self.assertEqual(["pause"], second.calls, end)
            getattr(gate, end)()
            budget.remove_messages(4, 4)
            third = RecordingProducer()
            gate.register(third, True)
            gate.shrank()

            self.assertEqual([], third.calls, end)

    def test_stop(self) -> None:
        """The producer is told once that nothing more is taken, and hears nothing after that."""
        budget = Budget(100, 4)
        gate = ProducerGate(budget, Clock().seconds, 2.0)
        producer = RecordingProducer()
        gate.stop()
        gate.register(producer, True)
        gate.stop()
        gate.stop()
        for _ in range(4):
            budget.add_message(1)
        gate.grew()

        self.assertEqual(["stop"], producer.calls)
