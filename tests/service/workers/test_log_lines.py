"""
Tests for L{webhookrx.service.workers.log_lines}.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.logger import ILogObserver, Logger, LogLevel, formatEvent, globalLogPublisher
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from webhookrx.service.workers.log_lines import LONGEST, MOST_LINES, LineSender, WorkersLog
from webhookrx.service.workers.messages import LogLine, encode, read_for_parent


class LineSenderTests(SynchronousTestCase):
    """
    From events to lines.
    """

    def setUp(self) -> None:
        self.lines: list[LogLine] = []
        self.sender = LineSender(self.lines.append)
        self.log = Logger("webhookrx.traffic", observer=self.sender)

    def test_line(self) -> None:
        """An event is a line with its level, its namespace and its text."""
        self.assertTrue(verifyObject(ILogObserver, self.sender))
        self.log.warn("{what} {{of}} it", what="all")
        self.assertEqual([LogLine("warn", "webhookrx.traffic", "all {of} it")], self.lines)

    def test_failure(self) -> None:
        """A failure is there with its traceback."""
        self.log.failure("Oh", Failure(ValueError("no")))
        (line,) = self.lines
        self.assertEqual("critical", line.level)
        self.assertRegex(line.text, r"(?s)^Oh\n.*ValueError: no")

    def test_no_text(self) -> None:
        """What is no text comes with escapes."""
        self.log.info("{name}", name="/\udcff")
        line = read_for_parent(encode(self.lines[0]))
        assert isinstance(line, LogLine)
        self.assertEqual("/\\udcff", line.text)

    def test_long(self) -> None:
        """A long one is cut."""
        self.log.info("{text}", text="x" * 2 * LONGEST)
        self.assertEqual("x" * LONGEST, self.lines[0].text)

    def test_ports(self) -> None:
        """What Twisted says of each port that opens or closes is the parent's to say; what is wrong passes."""
        self.sender({"log_namespace": "log_legacy", "log_level": LogLevel.info, "log_format": "starting on 80"})
        self.assertEqual([], self.lines)
        self.sender({"log_namespace": "log_legacy", "log_level": LogLevel.critical, "log_format": "oh"})
        self.sender({"log_format": "bare"})
        self.assertEqual(["critical", "info"], [line.level for line in self.lines])


class WriteTests(SynchronousTestCase):
    """
    From lines to the log.
    """

    def setUp(self) -> None:
        self.clock = Clock()
        self.log = WorkersLog(self.clock.seconds)
        self.events: list[Any] = []
        globalLogPublisher.addObserver(self.events.append)
        self.addCleanup(globalLogPublisher.removeObserver, self.events.append)

    def test_written(self) -> None:
        """A line is in the log with its level, namespace and the number of its worker; it is never a format."""
        self.log.write(3, LogLine("warn", "webhookrx.traffic", "{oh} {log_namespace}"))
        (event,) = self.events
        self.assertEqual("Worker 3: {oh} {log_namespace}", formatEvent(event))
        fields = (event["log_level"], event["log_namespace"], event["worker"])
        self.assertEqual((LogLevel.warn, "webhookrx.traffic", 3), fields)

    def test_mad(self) -> None:
        """What a worker says can't move a cursor, and is cut where it is too long."""
        self.log.write(0, LogLine("info", "a\x1b[2J" + "b" * 1000, "\x1b[2Jé\n\tat\x00 " + "x" * LONGEST))
        (event,) = self.events
        text = formatEvent(event) or ""
        self.assertTrue(text.startswith("Worker 0: \\x1b[2Jé\n\tat\\x00 xxx"), text[:40])
        self.assertLess(len(text), LONGEST + 100)
        self.assertRegex(event["log_namespace"], r"^a\\x1b\[2Jb{100,200}$")

    def test_too_many(self) -> None:
        """Lines of a worker that floods the log are held back and counted, those of others are not."""
        for _ in range(MOST_LINES + 50):
            self.log.write(0, LogLine("info", "a", "again"))
        self.log.write(1, LogLine("info", "a", "other"))
        self.assertEqual(MOST_LINES + 1, len(self.events))
        self.log.report_held_back()
        self.log.report_held_back()
        self.assertEqual("Worker 0: 50 more lines", formatEvent(self.events[-1]))
        self.assertEqual(MOST_LINES + 2, len(self.events))
        self.clock.advance(1.0)
        self.log.write(0, LogLine("info", "a", "again"))
        self.assertEqual("Worker 0: again", formatEvent(self.events[-1]))
