"""
Tests for L{webhookrx.operations.oplog}.
"""

from __future__ import annotations

import os
import sys
import warnings
from io import StringIO
from typing import Any

from twisted.internet.task import Clock
from twisted.logger import ILogObserver, LogBeginner, LogLevel, LogPublisher
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.operations import oplog
from webhookrx.operations.oplog import LineLimit, forget_plugin_cache_complaints, stderr, to_stream


class LogTests(SynchronousTestCase):
    """The service's own log."""

    def write(self, environment: dict[str, str], **event: object) -> str:
        """Return what is written for an event."""
        stream = StringIO()
        to_stream(stream, environment)({"log_time": 0.0, "log_level": LogLevel.warn, **event})
        return stream.getvalue()

    def test_line(self) -> None:
        """A line has time, level and text; nothing in it moves a cursor."""
        self.assertRegex(
            self.write({}, log_format="a {b}", b="\x1b[2J"),
            r"^19(69|70)-\d\d-\d\dT\d\d:\d\d:\d\d\S+ \[warn\] a \\x1b\[2J\n$",
        )

    def test_journal(self) -> None:
        """The journal gets a priority on every line, and puts the time there itself."""
        text = self.write({"JOURNAL_STREAM": "8:1"}, log_format="one\ntwo")
        self.assertEqual("<4>one\n<4>two\n", text)
        self.assertEqual("<6>\n", self.write({"JOURNAL_STREAM": "8:1"}, log_format="", log_level=LogLevel.info))

    def test_failure(self) -> None:
        """A failure comes with its traceback."""
        text = self.write({}, log_format="it broke", log_failure=Failure(ValueError("why")))
        self.assertIn("it broke\nTraceback", text)
        self.assertIn("ValueError: why", text)

    def test_no_level(self) -> None:
        """An event of the old kind is written too."""
        self.assertIn("[-] old", self.write({}, log_format="old", log_level=None))

    def test_stderr(self) -> None:
        """For C{twistd --logger} it writes to the standard error of the process."""
        read, write = os.pipe()
        saved = os.dup(2)
        os.dup2(write, 2)
        try:
            observer = stderr()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            os.close(write)
        self.assertTrue(ILogObserver.providedBy(observer))
        observer({"log_time": 0.0, "log_level": LogLevel.info, "log_format": "hello"})
        self.assertIn(b"hello\n", os.read(read, 1000))
        os.close(read)
        observer._outFile.close()  # type: ignore[attr-defined]


class PluginCacheTests(SynchronousTestCase):
    """Twisted's complaint about a cache that it can't write."""

    def test_forgotten(self) -> None:
        """The complaint goes, everything else stays."""
        kept: list[Any] = [{"format": "Unable"}, {"log_format": "Unable to write to plugin cache"}, {}]
        complaint: Any = {"format": "Unable to write to plugin cache %(path)s: error number %(errno)d"}
        buffer = [complaint, *kept, complaint]
        forget_plugin_cache_complaints(buffer)
        self.assertEqual(kept, buffer)

    def test_twisted_buffer(self) -> None:
        """Twisted keeps what it says before logging begins where we look for it."""
        beginner = LogBeginner(LogPublisher(), StringIO(), sys, warnings)
        self.patch(oplog, "globalLogBeginner", beginner)
        beginner._temporaryObserver({"log_level": LogLevel.info, "format": "Unable to write to plugin cache %(path)s"})
        beginner._temporaryObserver({"log_level": LogLevel.info, "log_format": "other"})
        forget_plugin_cache_complaints()
        events: list[Any] = []
        beginner.beginLoggingTo([events.append], redirectStandardIO=False)
        self.assertEqual(["other"], [event.get("log_format") for event in events])


class LineLimitTests(SynchronousTestCase):
    """A few lines a second of each kind."""

    def test_limit(self) -> None:
        """Beyond the limit lines are held back until the next second, each kind on its own."""
        clock = Clock()
        limit = LineLimit(clock.seconds, lines=2)
        self.assertEqual([True, True, False, False], [limit.passes("a") for _ in range(4)])
        self.assertTrue(limit.passes("b"))
        clock.advance(0.9)
        self.assertFalse(limit.passes("a"))
        clock.advance(0.1)
        self.assertTrue(limit.passes("a"))

    def test_held_back(self) -> None:
        """Held back lines are reported once."""
        limit = LineLimit(Clock().seconds, lines=1)
        for _ in range(3):
            limit.passes("a")
        limit.passes("b")
        self.assertEqual([("a", 2)], limit.take_held_back())
        self.assertEqual([], limit.take_held_back())
