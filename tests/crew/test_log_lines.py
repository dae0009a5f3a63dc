"""
Tests for L{webhookrx.crew.log_lines}.
"""

from __future__ import annotations

from typing import Any

from twisted.logger import ILogObserver, Logger, LogLevel, formatEvent, globalLogPublisher
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from webhookrx.crew.log_lines import LineSender, write
from webhookrx.crew.messages import Line


class LineSenderTests(SynchronousTestCase):
    """
    From events to lines.
    """

    def setUp(self) -> None:
        self.lines: list[Line] = []
        self.sender = LineSender(self.lines.append)
        self.log = Logger("webhookrx.traffic", observer=self.sender)

    def test_line(self) -> None:
        """An event is a line with its level, its namespace and its text."""
        self.assertTrue(verifyObject(ILogObserver, self.sender))
        self.log.warn("{what} {{of}} it", what="all")
        self.assertEqual([Line("warn", "webhookrx.traffic", "all {of} it")], self.lines)

    def test_failure(self) -> None:
        """A failure is there with its traceback."""
        self.log.failure("Oh", Failure(ValueError("no")))
        (line,) = self.lines
        self.assertEqual("critical", line.level)
        self.assertRegex(line.text, r"(?s)^Oh\n.*ValueError: no")

    def test_no_text(self) -> None:
        """What is no text comes with escapes."""
        self.log.info("{name}", name="/\udcff")
        self.assertEqual("/\\udcff", self.lines[0].text)

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

    def test_written(self) -> None:
        """A line is in the log with its level, namespace and the number of its worker; it is never a format."""
        events: list[Any] = []
        globalLogPublisher.addObserver(events.append)
        self.addCleanup(globalLogPublisher.removeObserver, events.append)
        write(3, Line("warn", "webhookrx.traffic", "{oh} {log_namespace}"))
        (event,) = events
        self.assertEqual("Worker 3: {oh} {log_namespace}", formatEvent(event))
        fields = (event["log_level"], event["log_namespace"], event["worker"])
        self.assertEqual((LogLevel.warn, "webhookrx.traffic", 3), fields)
