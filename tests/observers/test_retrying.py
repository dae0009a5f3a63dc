"""Tries with pauses between them, on a clock that only moves when somebody waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.fake_time import FakeTime
from webhookrx.backoff import LONGEST_RETRY_AFTER
from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.retrying import HURRY_TIME, STEP, STOP_TIME, Retries, first_of


class RetriesTestCase(SynchronousTestCase):
    """Makes what tries, and other ends that answer as they are told."""

    def setUp(self) -> None:
        """Let each pause be as long as it may."""
        self.time = FakeTime()
        self.retries = Retries(10.0, self.time, lambda: 1.0, self.time)
        self.calls: list[float] = []

    def end(self, *answers: object, takes: float = 0.0) -> Callable[[], object]:
        """Return an attempt that raises or returns one answer after the other, the last one for ever."""
        left = list(answers)

        def attempt() -> object:
            self.calls.append(self.time.now - 1000.0)
            self.time.sleep(takes)
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return attempt

    def call(self, attempt: Callable[[], object]) -> object:
        """Try as one C{store} does."""
        return self.retries.call(attempt, self.retries.begin())


class CallTests(RetriesTestCase):
    """One call."""

    def test_first(self) -> None:
        """What succeeds at once is tried once, without a pause."""
        self.assertEqual("done", self.call(self.end("done")))
        self.assertEqual([0.0], self.calls)
        self.assertEqual([], self.time.waits)

    def test_backoff(self) -> None:
        """The pauses between tries double."""
        away = Unavailable("it is away")

        self.assertEqual("done", self.call(self.end(away, away, away, "done")))
        self.assertEqual([0.0, 0.25, 0.75, 1.75], self.calls)

    def test_gives_up(self) -> None:
        """No try begins after C{retry_for}; the last reason is given."""
        error = self.assertRaises(Unavailable, self.call, self.end(Unavailable("first"), Unavailable("last")))

        self.assertEqual("last", str(error))
        self.assertIsNone(error.retry_after)
        self.assertEqual([0.0, 0.25, 0.75, 1.75, 3.75, 7.75], self.calls)

    def test_one_time_for_all(self) -> None:
        """Several calls of one C{store} share its time."""
        give_up_at = self.retries.begin()
        self.retries.call(self.end("one", takes=9.9), give_up_at)
        self.calls.clear()

        self.assertRaises(Unavailable, self.retries.call, self.end(Unavailable("away")), give_up_at)
        self.assertEqual(1, len(self.calls))

    def test_tried_when_late(self) -> None:
        """There is one try even when the time is over."""
        self.assertEqual("done", self.retries.call(self.end("done"), self.time.now - 1))

    def test_other_errors(self) -> None:
        """Any other error ends it at once."""
        self.assertRaises(Rejected, self.call, self.end(Rejected("too large")))
        self.assertEqual([0.0], self.calls)

    def test_asked_for_pause(self) -> None:
        """A pause that the other end asks for is kept, in this call and the next ones."""
        busy = Unavailable("busy", retry_after=4.0)
        self.assertEqual("done", self.call(self.end(busy, "done")))
        self.assertEqual([0.0, 4.0], self.calls)

        self.calls.clear()
        error = self.assertRaises(Unavailable, self.call, self.end(Unavailable("busy", retry_after=60.0)))
        self.assertEqual(60.0, error.retry_after)
        self.assertEqual([4.0], self.calls)

        self.calls.clear()
        error = self.assertRaises(Unavailable, self.call, self.end("done"))
        self.assertIn("asked for a pause", str(error))
        self.assertEqual(60.0, error.retry_after)
        self.assertEqual([], self.calls)

        self.time.sleep(51.0)
        self.assertEqual("done", self.call(self.end("done")))
        self.assertEqual([64.0], self.calls)

    def test_longest_pause(self) -> None:
        """Who asks for a year has made a mistake."""
        self.assertRaises(Unavailable, self.call, self.end(Unavailable("busy", retry_after=1e9)))

        self.assertEqual(LONGEST_RETRY_AFTER, self.retries.pause_left())

    def test_forget_pause(self) -> None:
        """Opened anew, it waits for nothing."""
        self.assertRaises(Unavailable, self.call, self.end(Unavailable("busy", retry_after=60.0)))
        self.retries.forget_pause()

        self.assertEqual("done", self.call(self.end("done")))


class HurryTests(RetriesTestCase):
    """The receiver stops."""

    def test_ends_pause(self) -> None:
        """A pause ends at once, and one last try follows."""
        self.time.at(0.6, self.retries.hurry)

        self.assertRaises(Unavailable, self.call, self.end(Unavailable("away")))
        self.assertEqual([0.0, 0.25, 0.6], [round(call, 3) for call in self.calls])

    def test_one_try(self) -> None:
        """From then on each call tries once."""
        self.retries.hurry()

        self.assertRaises(Unavailable, self.call, self.end(Unavailable("away")))
        self.assertEqual("done", self.call(self.end("done")))
        self.assertEqual(2, len(self.calls))

    def test_resume(self) -> None:
        """Opened again, it tries as before."""
        self.retries.hurry()
        self.retries.resume()

        self.assertEqual("done", self.call(self.end(Unavailable("away"), "done")))


class StepsTests(RetriesTestCase):
    """Waits of libraries, cut into steps."""

    def wait(self, seconds: float) -> list[float]:
        """Wait for something that never comes, as a library does; return the steps."""
        steps = []
        for step in self.retries.steps(seconds):
            steps.append(round(step, 3))
            self.time.sleep(step)
        return steps

    def test_steps(self) -> None:
        """No step is longer than a tenth of a second, and together they take the time."""
        self.assertEqual([STEP, STEP, 0.05], self.wait(0.25))
        self.assertAlmostEqual(1000.25, self.time.now)

    def test_no_time(self) -> None:
        """There is one step even without any time, which asks and does not wait."""
        self.assertEqual([0.0], self.wait(0.0))

    def test_hurry(self) -> None:
        """Once the receiver stops, it takes no more than seconds."""
        self.time.at(1.0, self.retries.hurry)
        self.wait(30.0)

        self.assertLessEqual(self.time.now - 1001.0, HURRY_TIME + STEP + 0.001)
        self.assertGreaterEqual(self.time.now - 1001.0, HURRY_TIME)

    def test_time_left(self) -> None:
        """A whole store has three seconds from the stop on, or from its own beginning after that, and no more."""
        self.assertIsNone(self.retries.time_left())
        self.retries.begin()
        self.time.now += 100.0
        self.retries.hurry()
        self.time.now += 1.0
        self.retries.hurry()
        self.assertAlmostEqual(STOP_TIME - 1.0, self.retries.time_left() or 0.0)
        self.time.now += 2.0
        self.assertRaises(Unavailable, self.retries.time_left)
        self.retries.begin()
        self.assertAlmostEqual(STOP_TIME, self.retries.time_left() or 0.0)

    def test_hurry_never_longer(self) -> None:
        """A wait that would end sooner still does."""
        self.retries.hurry()
        self.wait(0.5)

        self.assertAlmostEqual(1000.5, self.time.now)


class StepTests(SynchronousTestCase):
    """Shares of time."""

    def test_until(self) -> None:
        """Steps end when their share is over, or when there are no more."""
        now = [0.0]

        def steps() -> Iterator[float]:
            while now[0] < 3:
                yield 0.5
                now[0] += 0.5

        self.assertEqual(3, len(list(first_of(steps(), 0.6, lambda: now[0]))))
        now[0] = 0.0
        self.assertEqual(6, len(list(first_of(steps(), 99.0, lambda: now[0]))))
