"""Tests of webhookrx.relay.relay_thread."""

from __future__ import annotations

from threading import Event

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.relay.relay_thread import RelayThread


class Steps:
    """
    A relay that notes its steps.

    @ivar stepped: set by each step.
    """

    def __init__(self, pause: float) -> None:
        self.calls: list[str] = []
        self.stepped = Event()
        self.is_finished = False
        self._pause = pause

    def step(self) -> float:
        self.calls.append("step")
        self.stepped.set()
        if len(self.calls) == 1:
            raise MemoryError
        return self._pause

    def finish(self) -> None:
        self.is_finished = True

    def reopen(self) -> None:
        self.calls.append("reopen")

    def close(self) -> None:
        self.calls.append("close")


class RelayThreadTests(SynchronousTestCase):
    """The thread of a relay."""

    def make(self, pause: float) -> tuple[Steps, RelayThread, Event]:
        """Start a thread, and return what it steps, itself, and what is set at its end."""
        relay, ended = Steps(pause), Event()
        thread = RelayThread(relay, ended.set)  # type: ignore[arg-type]
        thread.start()
        return relay, thread, ended

    def test_life(self) -> None:
        """It steps the relay whatever a step raises, until that is finished, and closes it."""
        relay, thread, ended = self.make(0.0)
        self.assertTrue(relay.stepped.wait(60))
        thread.finish()
        self.assertTrue(ended.wait(60))

        self.assertEqual({"step"}, set(relay.calls[:-1]))
        self.assertEqual("close", relay.calls[-1])

    def test_pause_is_cut_short(self) -> None:
        """A reload and the end do not wait for the pause to be over."""
        relay, thread, ended = self.make(3600.0)
        while len(relay.calls) < 2:
            relay.stepped.wait(60)
        relay.stepped.clear()
        thread.reopen()
        self.assertTrue(relay.stepped.wait(60))
        thread.finish()
        self.assertTrue(ended.wait(60))

        self.assertEqual(1, relay.calls.count("reopen"))
