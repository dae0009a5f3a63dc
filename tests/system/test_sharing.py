"""Real processes that write to one file, or to one pipe, at once: no line is torn, even when some are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, cast

from twisted.trial.unittest import SynchronousTestCase

from tests.specs import parse_observer
from tests.system.receiver import PATIENCE, ROOT, wait_until
from tests.system.sharing_program import BATCH
from webhookrx.service import known_observers
from webhookrx.settings import Group
from webhookrx.testing import make_message

if TYPE_CHECKING:
    from webhookrx.interfaces import IBufferingObserver

PROGRAM = "tests.system.sharing_program"
BATCHES = 60
MANY = 10**6
"""Batches of one that is stopped from outside."""

#: A worker whose threads lock one pipe each.
LOCK_USER = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from webhookrx.observers.writers import pipe_lock

def work(thing):
    lock = pipe_lock(int(sys.argv[1]), thing)
    for _ in range(200):
        lock.acquire()
        time.sleep(0.001)
        lock.release(partial=False)

with ThreadPoolExecutor(2) as threads:
    list(threads.map(work, map(int, sys.argv[2:])))
"""


class SharingCase(SynchronousTestCase):
    """Starts workers, and reads what they wrote and what they said is safe."""

    def setUp(self) -> None:
        """Make what they share."""
        self.path = os.path.abspath(self.mktemp())
        self.lock_fd = os.memfd_create("lock")
        self.addCleanup(os.close, self.lock_fd)
        self.told = os.open(self.path + ".told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.addCleanup(os.close, self.told)

    def start(
        self,
        spec: str,
        number: int,
        batches: int = BATCHES,
        *,
        last: int = 0,
        stdout: int | None = None,
        lock_fd: int | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a worker of two."""
        lock_fd = self.lock_fd if lock_fd is None else lock_fd
        arguments = (spec, number, 2, lock_fd, batches, self.told, last)
        process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, *map(str, arguments)],
            cwd=ROOT,
            stdout=stdout,
            stderr=subprocess.PIPE,
            pass_fds=(lock_fd, self.told),
        )
        self.addCleanup(self.end, process)
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """End it, if it has not."""
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()

    def finish(self, process: subprocess.Popen[bytes], status: int = 0) -> None:
        """Wait for its end."""
        _, errors = process.communicate(timeout=4 * PATIENCE)
        self.assertEqual(status, process.returncode, errors.decode())

    def safe(self) -> set[str]:
        """Return the batches that were told to be safe."""
        with open(self.path + ".told", encoding="ascii") as file:
            return {line.strip().replace(" ", "-") for line in file}

    def check(self, written: bytes, *, torn: int, perhaps: int = 0) -> None:
        """See that every batch that is safe is there, whole and once, and that so many lines don't parse."""
        self.assertEqual(b"\n", written[-1:])
        counts: Counter[str] = Counter()
        broken = []
        for line in written.splitlines():
            try:
                counts["-".join(json.loads(line)["MESSAGE"].split("-")[:2])] += 1
            except ValueError:
                broken.append(line)
        self.assertIn(len(broken), range(torn, torn + perhaps + 1), broken)
        safe = self.safe()
        self.assertTrue(safe)
        self.assertEqual({BATCH}, {counts[batch] for batch in safe})


class FileTests(SharingCase):
    """One file."""

    def setUp(self) -> None:
        """Name it."""
        super().setUp()
        self.spec = f"file:{self.path}"

    def content(self) -> bytes:
        """Return what is in it."""
        with open(self.path, "rb") as file:
            return file.read()

    def test_two(self) -> None:
        """Two write at once, and every line of both is whole."""
        for process in [self.start(self.spec, number) for number in range(2)]:
            self.finish(process)

        self.check(self.content(), torn=0)
        self.assertEqual(2 * BATCHES, len(self.safe()))

    def test_killed(self) -> None:
        """One is killed inside a line again and again: what it left stands on a line of its own."""
        other = self.start(self.spec, 0, MANY)
        for last in (1, 2, 3, 5):
            self.finish(self.start(self.spec, 1, last=last), -9)
        self.finish(self.start(self.spec, 1))
        self.assertIsNone(other.poll())
        self.end(other)
        # Closes off what that one may have left.
        self.finish(self.start(self.spec, 0, 1))

        self.check(self.content(), torn=4, perhaps=1)

    def test_other_group(self) -> None:
        """Workers of another receiver are kept out, as one without workers is."""
        others = os.memfd_create("others")
        self.addCleanup(os.close, others)
        mine = self.start(self.spec, 0, MANY)
        while not self.safe():
            self.assertIsNone(mine.poll())
        theirs = self.start(self.spec, 0, lock_fd=others)
        _, errors = theirs.communicate(timeout=4 * PATIENCE)

        self.assertIn(b"another receiver appends to it", errors)
        self.finish(self.start(self.spec, 1, 1))


class SpoolTests(SynchronousTestCase):
    """The spools of two workers, and one process after them."""

    def test_to_one(self) -> None:
        """
        What two workers have left goes out when there is one process again, and the directory of one goes: when that
        process ends, or, if its last batch took too long for that, at the next start.
        """
        path, output = os.path.abspath(self.mktemp()), os.path.abspath(self.mktemp())
        lock_fd = os.memfd_create("lock")
        self.addCleanup(os.close, lock_fd)
        # Its reader goes before anything is stored, so all of that waits.
        os.mkfifo(output)
        reading = os.open(output, os.O_RDONLY | os.O_NONBLOCK)
        spec = parse_observer(f"spool:{path}:observer=file:{output}")
        workers = [known_observers.build_observer(spec, "durable", Group(number, 2, lock_fd)) for number in range(2)]
        for worker in workers:
            worker.open()
        os.close(reading)
        for number, worker in enumerate(workers):
            worker.store([worker.prepare(make_message(f"of {number}"))])
            worker.close()
        os.remove(output)

        alone = cast("IBufferingObserver", known_observers.build_observer(spec, "durable"))
        alone.open()
        wait_until(lambda: not alone.backlog().messages, "all is delivered")
        alone.finish()
        alone.close()
        with open(output, encoding="utf-8") as file:
            self.assertEqual(["of 0", "of 1"], sorted(json.loads(line)["MESSAGE"] for line in file))
        again = cast("IBufferingObserver", known_observers.build_observer(spec, "durable"))
        again.open()
        self.assertFalse(again.backlog().messages)
        again.close()
        self.assertEqual([], [name for name in os.listdir(path) if name.startswith("worker")])


class PipeTests(SharingCase):
    """One pipe, which takes only part of a batch at once."""

    def setUp(self) -> None:
        """Read it."""
        super().setUp()
        self.reading, self.writing = os.pipe()
        self.written = bytearray()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        """Read to its end."""
        with open(self.reading, "rb", buffering=0) as pipe:
            while some := pipe.read(1000):
                self.written += some

    def content(self) -> bytes:
        """Return all that was written, once no writer is left."""
        os.close(self.writing)
        self.reader.join(PATIENCE)
        self.assertFalse(self.reader.is_alive())
        return bytes(self.written)

    def test_two(self) -> None:
        """Two write at once, and every line of both is whole."""
        for process in [self.start("stdout", number, stdout=self.writing) for number in range(2)]:
            self.finish(process)

        self.check(self.content(), torn=0)

    def test_killed(self) -> None:
        """One is killed inside a line again and again: what it left stands on a line of its own."""
        other = self.start("stdout", 0, stdout=self.writing)
        for last in (1, 2, 3):
            self.finish(self.start("stdout", 1, last=last, stdout=self.writing), -9)
        self.finish(other)
        self.finish(self.start("stdout", 1, 1, stdout=self.writing))

        self.check(self.content(), torn=3)

    def test_two_pipes(self) -> None:
        """Two that write to two pipes at once wait for each other, and never in vain."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        self.addCleanup(os.close, writing)
        shared = (self.lock_fd, self.writing, writing)
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", LOCK_USER, *map(str, shared)], cwd=ROOT, stderr=subprocess.PIPE, pass_fds=shared
            )
            for _ in range(2)
        ]
        for process in processes:
            self.addCleanup(self.end, process)
        for process in processes:
            self.finish(process)
        self.content()
