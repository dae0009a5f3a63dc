"""The file observer, when any call of the operating system fails at any time."""

from __future__ import annotations

import errno
import json
import os
from random import Random

from twisted.trial.unittest import SynchronousTestCase

from tests.faulty_file_system import CALLS, FaultyFileSystem
from webhookrx.filesystem import SHARE_YES
from webhookrx.message.encoders import encode_line
from webhookrx.observers.file import FileObserver
from webhookrx.testing import make_message

ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE)
#: How many faults of each kind one observer lives through. The two that matter most have the most ways to come.
TIMES = dict.fromkeys(CALLS, 20) | {"writev": 200, "fdatasync": 200}
SEED = 20261120


class FaultTests(SynchronousTestCase):
    """Whatever fails: what counts as safe is there, whole, and the first batch after the fault is stored."""

    def setUp(self) -> None:
        """Open an observer of a new file."""
        self.directory = os.path.abspath(self.mktemp())
        os.mkdir(self.directory)
        self.path = os.path.join(self.directory, "messages.jsonl")
        self.random = Random(SEED)
        self.file_system = FaultyFileSystem()
        self.safe: list[str] = []
        self.number = 0
        self.rotations = 0
        self.now = 0.0

    def open(self, *, shared: bool = False) -> FileObserver:
        """Open an observer of the file."""
        observer = FileObserver(
            "file:x",
            self.path,
            encode_line,
            "durable",
            sharing=SHARE_YES if shared else None,
            file_system=self.file_system,
            clock=lambda: self.now,
        )
        self.addCleanup(observer.close)
        observer.open()
        return observer

    def store(self, observer: FileObserver) -> bool:
        """Store some messages; note and say whether they are safe."""
        self.now += self.random.choice((0.0, 1.0))
        texts = []
        for _ in range(self.random.randint(1, 3)):
            self.number += 1
            texts.append(f"{self.number} {'x' * self.random.randint(0, 40)}")
        try:
            observer.store([observer.prepare(make_message(text)) for text in texts])
        except OSError:
            return False
        self.safe += texts
        return True

    def rotate(self, observer: FileObserver) -> None:
        """Do as logrotate does."""
        self.rotations += 1
        os.rename(self.path, f"{self.path}.{self.rotations}")
        try:
            observer.reopen()
        except OSError:
            return

    def assert_safe(self, what: str) -> None:
        """All that counted as safe is there in whole lines; no descriptor was synced after it had failed to."""
        found = set()
        for name in os.listdir(self.directory):
            with open(os.path.join(self.directory, name), "rb") as file:
                for line in file:
                    try:
                        found.add(json.loads(line)["MESSAGE"])
                    except ValueError:
                        continue
        self.assertEqual([], [text for text in self.safe if text not in found], what)
        self.assertEqual(0, self.file_system.synced_again, what)

    def live_through(self, observer: FileObserver, call: str, error: int, times: int) -> None:
        """Have a call fail that often, now at once, now some calls later, beside a sync that fails now and then."""
        what = f"{call} {errno.errorcode[error]}"
        for time in range(times):
            fault = OSError(error, os.strerror(error))
            self.file_system.plans = {call: [None] * self.random.randint(0, 4) + [fault]}
            if time % 2 and call != "fdatasync":
                # Then the file is opened anew, so that there are calls that can fail.
                self.file_system.plans["fdatasync"] = [OSError(errno.EIO, "Input/output error")]
            self.store(observer)
            if time % 10 == 5 and os.path.exists(self.path):
                self.rotate(observer)
            self.store(observer)
            self.file_system.plans = {}
            self.assertTrue(self.store(observer), f"{what}, fault {time}")
        self.assert_safe(what)

    def test_each_call(self) -> None:
        """Each call that there is, each error, again and again in the life of one observer."""
        observer = self.open()
        for call in CALLS:
            for error in ERRORS:
                self.live_through(observer, call, error, TIMES[call])
        observer.close()

        self.assertEqual(set(), self.file_system.descriptors)
        self.assertGreater(len(self.safe), 4000)

    def test_shared(self) -> None:
        """The same with a file that others share."""
        observer = self.open(shared=True)
        for call in CALLS:
            self.live_through(observer, call, errno.EIO, 20)
        observer.close()

        self.assertEqual(set(), self.file_system.descriptors)

    def test_short_writes(self) -> None:
        """Writes of any size, some of which fail after a part."""
        observer = self.open()
        for error in ERRORS:
            for time in range(100):
                steps: list[object] = [self.random.randint(1, 300) for _ in range(self.random.randint(1, 4))]
                self.file_system.plans = {"writev": [*steps, *[OSError(error, os.strerror(error))] * (time % 2)]}
                self.store(observer)
                self.file_system.plans = {}
                self.assertTrue(self.store(observer))
        self.assert_safe("short writes")

    def test_each_place(self) -> None:
        """A write that stops after each of the bytes there are tears one line, and not the next."""
        observer = self.open()
        whole = len(observer.prepare(make_message("torn")))
        for taken in range(1, 2 * whole):
            self.file_system.plans = {"writev": [taken, OSError(errno.ENOSPC, "No space left on device")]}
            with self.assertRaises(OSError):
                observer.store([observer.prepare(make_message("torn"))] * 2)
            self.assertTrue(self.store(observer), taken)
        self.assert_safe("each place")
