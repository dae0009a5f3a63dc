"""What a drainer logs, and how often."""

from __future__ import annotations

from twisted.logger import LogEvent, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from tests.spool.faulty_spool import Clocks
from webhookrx.interfaces import Backlog
from webhookrx.spool.drain_log import COUNT_PAUSE, LOG_PAUSE, NOT_ENCODED, REMINDER, DrainLog
from webhookrx.spool.rows import DeadLetter

SECOND = 10**9


def letters(*reasons: str) -> list[DeadLetter]:
    """Make dead letters."""
    return [DeadLetter(number, 1, 0, b"", reason, "http:x", 1) for number, reason in enumerate(reasons, 1)]


class DrainLogCase(SynchronousTestCase):
    """Lines, by a clock that is set."""

    def setUp(self) -> None:
        """Make it."""
        self.clocks = Clocks()
        self.status = Backlog(0, 0, None, 0, 0, None, False)
        self.log = DrainLog("/srv/my spool", "http:x", lambda: self.status, self.clocks.monotonic, self.clocks.time_ns)
        self.lines: list[str] = []
        globalLogPublisher.addObserver(self.note)
        self.addCleanup(globalLogPublisher.removeObserver, self.note)

    def note(self, event: LogEvent) -> None:
        """Keep a line."""
        self.lines.append(formatEvent(event))

    def said(self) -> list[str]:
        """Return the lines since the last call."""
        lines, self.lines[:] = self.lines[:], []
        return lines

    def wait(self, seconds: float, problem: str | None = None) -> None:
        """Let time pass, with a tick a second, and a try that fails if there is a problem."""
        for _ in range(int(seconds)):
            self.clocks.now += 1
            self.clocks.wall += SECOND
            if problem is not None:
                self.log.went_away(problem)
            self.log.tick()


class AwayTests(DrainLogCase):
    """Away and back."""

    def test_once(self) -> None:
        """Going away and coming back are logged once each, with the backlog."""
        self.status = self.status._replace(messages=3, oldest=self.clocks.wall - 90 * SECOND)
        self.log.went_away("no answer")
        self.wait(100, "no answer")
        self.assertEqual(
            ["Observer http:x does not take messages: no answer; 3 wait in the spool, the oldest for 90s"], self.said()
        )
        self.log.came_back()
        self.log.came_back()
        self.assertEqual(["Observer http:x takes messages again; 3 wait in the spool, the oldest for 3m"], self.said())

    def test_ages(self) -> None:
        """The age is rough, and never negative, wherever the clock was set."""
        for seconds, text in ((-5, "0s"), (7200, "2h"), (86399, "23h"), (180_000, "2d"), (119, "119s"), (7199, "119m")):
            self.status = self.status._replace(messages=1, oldest=self.clocks.wall - seconds * SECOND)
            self.clocks.now += 1000
            self.log.went_away("no answer")
            self.log.came_back()
            self.assertTrue(self.said()[0].endswith(f"the oldest for {text}"), seconds)

    def test_reason_changes(self) -> None:
        """Another reason is logged, but at most every ten seconds."""
        self.log.went_away("HTTP 503")
        self.said()
        self.wait(LOG_PAUSE - 1, "HTTP 401")
        self.assertEqual([], self.said())
        self.wait(1, "HTTP 401")
        self.assertEqual(
            ["Observer http:x does not take messages for another reason now: HTTP 401; 0 wait in the spool"],
            self.said(),
        )

    def test_reasons_change_all_the_time(self) -> None:
        """Reasons that are never the same twice don't fill the log."""
        for number in range(3600):
            self.wait(1, f"no answer after {number} ms")

        self.assertLess(len(self.said()), 3600 / REMINDER + 10)

    def test_reasons_are_said_less_and_less(self) -> None:
        """The pause before each further reason doubles, up to five minutes."""
        pauses: list[int] = []
        pause = 0
        for number in range(1300):
            self.wait(1, f"no answer after {number} ms")
            pause += 1
            if self.said():
                pauses.append(pause)
                pause = 0
        self.assertEqual([1, 10, 20, 40, 80, 160, 300, 300, 300], pauses)

    def test_reminder(self) -> None:
        """A reminder follows every five minutes until it is back; after one, the next reason is logged soon."""
        self.log.went_away("no answer")
        self.said()
        self.status = self.status._replace(messages=7, oldest=self.clocks.wall - 3600 * SECOND)
        self.wait(3 * REMINDER + 10)
        lines = self.said()
        self.assertEqual(3, len(lines))
        self.assertIn("still does not take messages: no answer; 7 wait in the spool, the oldest for ", lines[0])
        self.wait(1, "HTTP 401")
        self.assertEqual(1, len(self.said()))
        self.log.came_back()
        self.said()
        self.wait(3 * REMINDER)
        self.assertEqual([], self.said())

    def test_comes_and_goes(self) -> None:
        """An observer that comes and goes all the time gets few lines, as many of one kind as of the other."""
        for _ in range(60):
            self.wait(1, "no answer")
            self.log.came_back()
        away = [line for line in self.lines if "does not take" in line]

        self.assertEqual(6, len(away))
        self.assertEqual(12, len(self.lines))

    def test_safe(self) -> None:
        """A reason is cut, and can't move a cursor or end a line."""
        self.log.went_away("a\x1b[2J\u202e\n\udc80" + "x" * 1000)
        (line,) = self.said()

        self.assertIn(r": a\x1b[2J\u202e\n\udc80xxx", line)
        self.assertTrue(line.isprintable())
        self.assertLess(len(line), 450)


class DeadLetterTests(DrainLogCase):
    """What was refused for good."""

    def test_line(self) -> None:
        """It is logged at once, with the command that shows more."""
        self.log.refused(letters("HTTP 422", "HTTP 422", "HTTP 422"))
        self.log.refused([])

        (line,) = self.said()
        what, command = line.split("; ")
        self.assertEqual("Spool /srv/my spool: 3 messages were rejected permanently by http:x: HTTP 422", what)
        self.assertEqual("see \"webhookrx spool list '/srv/my spool'\"", command)

    def test_many(self) -> None:
        """The first is logged at once, later ones once a minute, and the rest at the end."""
        self.log.refused(letters("HTTP 422"))
        self.assertIn("1 message was rejected", self.said()[0])
        for _ in range(int(COUNT_PAUSE) - 1):
            self.log.refused(letters("HTTP 413", "HTTP 422"))
            self.wait(1)
        self.assertEqual([], self.said())
        self.wait(1)
        (line,) = self.said()
        self.assertIn("118 messages were rejected permanently by http:x: HTTP 413, and for other reasons; see", line)
        self.log.refused(letters("HTTP 400"))
        self.assertEqual([], self.said())
        self.log.end()
        self.assertIn("1 message was rejected permanently by http:x: HTTP 400; see", self.said()[0])
        self.log.end()
        self.assertEqual([], self.said())

    def test_safe(self) -> None:
        """A reason does not quote data that could not be encoded, and has no control characters."""
        self.log.refused(letters(f"{NOT_ENCODED}: no such key: 'secret'"))
        self.assertIn(": it can't be encoded; see", self.said()[0])
        self.wait(COUNT_PAUSE)
        self.log.refused(letters("a\x1b[2J\nb"))

        self.assertIn(r": a\x1b[2J\nb; see", self.said()[0])

    def test_long(self) -> None:
        """Of a reason that is longer than 300 characters, the beginning is logged, with an ellipsis."""
        for reason, logged in (("x" * 300, "x" * 300), ("x" * 301, "x" * 300 + "…")):
            self.log.refused(letters(reason))
            self.assertIn(f": {logged}; see", self.said()[0])
            self.wait(COUNT_PAUSE)


class DropTests(DrainLogCase):
    """What was dropped for want of room."""

    def test_total(self) -> None:
        """A minute after the first drop, and at the end, a line gives the total."""
        self.status = self.status._replace(dropped=24)
        self.wait(COUNT_PAUSE)
        self.assertEqual([], self.said())
        self.wait(1)
        self.assertEqual(["Spool /srv/my spool: 24 oldest messages dropped since the start"], self.said())
        self.wait(2 * COUNT_PAUSE)
        self.assertEqual([], self.said())
        self.status = self.status._replace(dropped=25)
        self.wait(COUNT_PAUSE)
        self.assertEqual([], self.said())
        self.log.end()
        self.assertEqual(["Spool /srv/my spool: 25 oldest messages dropped since the start"], self.said())
        self.log.end()
        self.assertEqual([], self.said())
