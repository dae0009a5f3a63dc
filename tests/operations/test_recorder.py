"""
Tests for L{webhookrx.operations.recorder}.
"""

from __future__ import annotations

import os
import stat
from typing import Any

from twisted.internet.task import Clock
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from tests.operations.test_kept_state import Threads
from webhookrx.intake.head import Head, Peer
from webhookrx.operations.counters import Counters
from webhookrx.operations.recorder import MOST_WAITING, MOST_WAITING_BYTES, REST, RecordDirectory, Recorder
from webhookrx.senders.http_file import read_http_file

HEAD = Head(b"POST", b"/events", b"", [(b"x-a", b"1"), (b"authorization", b"CANARY")], Peer("192.0.2.1", 1, False))


class RecorderTests(SynchronousTestCase):
    """Requests that are recorded."""

    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())
        self.threads, self.counters, self.clock = Threads(), Counters(), Clock()
        self.recorder = Recorder(self.threads, self.counters, self.clock.seconds, lambda: 1_700_000_000_123_456_789)
        self.events: list[Any] = []
        globalLogPublisher.addObserver(self.events.append)
        self.addCleanup(globalLogPublisher.removeObserver, self.events.append)

    def use(self, requests: int = 10, size: int = 10_000) -> None:
        """Record into the directory."""
        self.recorder.use(RecordDirectory(self.directory, requests, size))

    def bodies(self) -> list[bytes]:
        """Return the bodies that were recorded."""
        found = []
        for name in sorted(os.listdir(self.directory)):
            with open(os.path.join(self.directory, name), "rb") as file:
                found.append(read_http_file(file.read())[2])
        return found

    def counts(self) -> tuple[int, int]:
        """Return how many were recorded, and how many were not."""
        return self.counters.get("recorded"), self.counters.get("not_recorded")

    def warnings(self) -> list[str]:
        """Return what was said of requests that are not recorded."""
        return [event["problem"] for event in self.events if "problem" in event]

    def test_nowhere(self) -> None:
        """Without a directory nothing is recorded or counted."""
        self.recorder.record(HEAD, b"1")
        self.assertEqual((0, (0, 0)), (self.threads.work(), self.counts()))
        self.use()
        self.recorder.use(None)
        self.recorder.record(HEAD, b"1")
        self.assertEqual((0, (0, 0)), (self.threads.work(), self.counts()))

    def test_files(self) -> None:
        """Each request is a file that only its owner can read, in the order of their names, written in a thread."""
        self.use()
        for body in (b"1", b"2"):
            self.recorder.record(HEAD, body)
        self.assertFalse(os.path.exists(self.directory))
        self.threads.work()
        self.assertEqual(([b"1", b"2"], (2, 0)), (self.bodies(), self.counts()))
        first = sorted(os.listdir(self.directory))[0]
        self.assertRegex(first, r"^20231114T221320\.123456Z-\d+-000001\.http$")
        path = os.path.join(self.directory, first)
        self.assertEqual((0o600, 0o700), tuple(stat.S_IMODE(os.stat(each).st_mode) for each in (path, self.directory)))
        with open(path, "rb") as file:
            self.assertNotIn(b"CANARY", file.read())

    def test_number(self) -> None:
        """There are no more files than allowed, also of other processes; other kinds of files do not count."""
        os.mkdir(self.directory)
        for name in ("a.http", "b.txt"):
            with open(os.path.join(self.directory, name), "wb"):
                pass
        self.use(requests=3)
        for body in (b"1", b"2", b"3"):
            self.recorder.record(HEAD, body)
            self.threads.work()
        self.assertEqual((4, (2, 1)), (len(os.listdir(self.directory)), self.counts()))
        self.assertEqual(1, len(self.warnings()))
        self.assertIn("it holds 3 requests of ", self.warnings()[0])

    def test_size(self) -> None:
        """They have no more bytes than allowed together."""
        self.use(size=200)
        for body in (b"x" * 80, b"y" * 80, b"z"):
            self.recorder.record(HEAD, body)
        self.threads.work()
        self.assertEqual(([b"x" * 80], (1, 2)), (self.bodies(), self.counts()))

    def test_room_again(self) -> None:
        """Once files are removed it records again, after a pause. Each time it is full is logged once."""
        self.use(requests=1)
        for body in (b"1", b"2", b"3"):
            self.recorder.record(HEAD, body)
            self.threads.work()
        self.clock.advance(REST)
        self.recorder.record(HEAD, b"4")
        self.threads.work()
        self.assertEqual(((1, 3), 1), (self.counts(), len(self.warnings())))
        os.remove(os.path.join(self.directory, os.listdir(self.directory)[0]))
        self.recorder.record(HEAD, b"5")
        self.assertEqual(0, self.threads.work())
        self.clock.advance(REST)
        for body in (b"6", b"7"):
            self.recorder.record(HEAD, body)
            self.threads.work()
        self.assertEqual(([b"6"], 2), (self.bodies(), len(self.warnings())))

    def test_waiting(self) -> None:
        """What waits to be written is bounded, in number and bytes; one alone always may."""
        self.use(requests=1000, size=10**9)
        for _ in range(MOST_WAITING + 3):
            self.recorder.record(HEAD, b"")
        # The first is being written already.
        self.assertEqual((0, 2), self.counts())
        self.threads.work()
        self.assertEqual((MOST_WAITING + 1, 2), self.counts())
        self.recorder.record(HEAD, b"being written")
        for body in (b"x" * MOST_WAITING_BYTES, b"y"):
            self.recorder.record(HEAD, body)
        self.assertEqual(3, self.counts()[1])
        self.threads.work()
        self.assertEqual((MOST_WAITING + 3, 3), self.counts())

    def test_failure(self) -> None:
        """A failed write is counted and logged; no part of the file stays, and the receiver goes on."""
        self.use()
        self.patch(os, "rename", self.fail)
        self.recorder.record(HEAD, b"1")
        self.threads.work()
        self.assertEqual(((0, 1), ["[Errno 28] No space left on device"]), (self.counts(), self.warnings()))
        self.assertEqual([], os.listdir(self.directory))

    def fail(self, *args: object) -> None:
        """There is no room."""
        raise OSError(28, "No space left on device")
