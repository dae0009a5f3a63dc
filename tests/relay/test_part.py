"""A part of a relay that is away, and the lines on refused messages that relays and spools share."""

from __future__ import annotations

from typing import cast

from twisted.internet.task import Clock
from twisted.logger import ILogObserver, LogEvent, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import Unavailable
from webhookrx.relay.part import LONGEST_PAUSE, RelayPart
from webhookrx.spool.drain_log import COUNT_PAUSE, LOG_PAUSE, NOT_ENCODED, REMINDER, RefusalLog


class LogCase(SynchronousTestCase):
    """Collects the lines of the log."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(1000)
        self.lines: list[str] = []

        def note(event: LogEvent) -> None:
            self.lines.append(formatEvent(event))

        globalLogPublisher.addObserver(cast(ILogObserver, note))
        self.addCleanup(globalLogPublisher.removeObserver, note)

    def said(self) -> list[str]:
        """Return the lines since the last call."""
        said, self.lines[:] = list(self.lines), []
        return said


class RelayPartTests(LogCase):
    """A part that is away."""

    def setUp(self) -> None:
        super().setUp()
        self.part = RelayPart("Observer x", "take messages", "takes messages", lambda: 1.0, self.clock.seconds)

    def test_one_line(self) -> None:
        """One line says that it is away, one in five minutes that it still is, and one that it is back."""
        for _ in range(10):
            self.part.failed(Unavailable("no route"))
            self.clock.advance(1)
        self.assertEqual(["Observer x does not take messages: no route"], self.said())
        self.clock.advance(REMINDER)
        self.part.failed(Unavailable("no route"))
        self.assertEqual(["Observer x still does not take messages: no route"], self.said())
        self.part.succeeded()
        self.part.succeeded()
        self.assertEqual(["Observer x takes messages again"], self.said())

    def test_other_reasons(self) -> None:
        """Another reason is another line, but not sooner than some seconds after the last, and less and less often."""
        times = []
        for number in range(3000):
            self.part.failed(Unavailable(f"reason {number}"))
            if self.said():
                times.append(self.clock.seconds() - 1000)
            self.clock.advance(0.1)
        self.assertEqual([0, LOG_PAUSE, 3 * LOG_PAUSE, 7 * LOG_PAUSE, 15 * LOG_PAUSE], [round(each) for each in times])

    def test_texts(self) -> None:
        """What it raised is shown without control characters, and by its type where that tells more."""
        for error, text in (
            (Unavailable("a\x1b[2Jb\nc"), r"a\x1b[2Jb\nc"),
            (OSError(5, "Input/output error"), "[Errno 5] Input/output error"),
            (ValueError("no"), "ValueError: no"),
            (KeyError(), "KeyError: KeyError"),
            (Unavailable("x" * 1000), "x" * 300 + "…"),
        ):
            self.part.failed(error)
            self.assertEqual(text, self.part.away)

    def test_pauses(self) -> None:
        """Pauses double up to a bound, and are as long as the other end asks for; after a success they begin anew."""
        self.assertEqual([0.1, 0.2, 0.4], [self.part.failed(Unavailable("x")) for _ in range(3)])
        self.assertEqual(100.0, self.part.failed(Unavailable("x", retry_after=100.0)))
        for _ in range(20):
            pause = self.part.failed(Unavailable("x"))
        self.assertEqual(LONGEST_PAUSE, pause)
        self.part.progressed()
        self.assertEqual((0.1, "x"), (self.part.failed(Unavailable("x")), self.part.away))

    def test_forgotten(self) -> None:
        """Once nothing is asked of it, it is neither away nor back."""
        self.part.failed(Unavailable("x"))
        self.said()
        self.part.forget()

        self.assertEqual((None, []), (self.part.away, self.said()))


class RefusalLogTests(LogCase):
    """Lines on messages that were refused."""

    def setUp(self) -> None:
        super().setUp()
        self.log = RefusalLog("file:x", self.clock.seconds)

    def test_counted(self) -> None:
        """The first is said at once, the others once a minute, and at the end."""
        self.log.refused("too odd")
        self.log.tick()
        self.assertEqual(["1 message was rejected permanently by file:x: too odd"], self.said())
        for reason in ("too odd", "too even"):
            self.log.refused(reason)
            self.log.tick()
        self.assertEqual([], self.said())
        self.clock.advance(COUNT_PAUSE)
        self.log.tick()
        self.assertEqual(
            ["2 messages were rejected permanently by file:x: too odd, and for other reasons"], self.said()
        )
        self.log.refused("too late")
        self.log.end()
        self.log.end()
        self.assertEqual(["1 message was rejected permanently by file:x: too late"], self.said())

    def test_no_text_of_senders(self) -> None:
        """What an encoder has tripped over is not quoted."""
        self.log.refused(f"{NOT_ENCODED}: secret text")
        self.log.tick()
        self.assertEqual([f"1 message was rejected permanently by file:x: {NOT_ENCODED}"], self.said())
