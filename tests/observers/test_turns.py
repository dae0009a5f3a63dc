"""Turns at a pipe. Another process is one that has opened the same file for itself."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from mmap import mmap

from twisted.trial.unittest import SynchronousTestCase

from tests.faulty_file_system import FaultyFileSystem
from webhookrx.observers.line_writer import TurnTakingWriter
from webhookrx.observers.turns import Turns, turns_for


class TurnsCase(SynchronousTestCase):
    """A pipe, and what those who write to it have inherited."""

    def setUp(self) -> None:
        """Make both."""
        self.shared = os.memfd_create("turns")
        self.reading, self.writing = os.pipe()
        self.addCleanup(os.close, self.shared)
        self.addCleanup(os.close, self.reading)
        self.turns = self.turns_at(self.writing)

    def turns_at(self, fd: int) -> Turns:
        """Return the turns there."""
        return turns_for(self.shared, fd)


class TurnsTests(TurnsCase):
    """One after the other."""

    def test_one_for_all(self) -> None:
        """One thing has one lock in a process, however many look for it; another thing has another."""
        other, end = os.pipe()
        self.addCleanup(os.close, other)
        self.addCleanup(os.close, end)
        copy = os.dup(self.writing)
        self.addCleanup(os.close, copy)

        self.assertIs(self.turns, self.turns_at(copy))
        self.assertIsNot(self.turns, self.turns_at(end))

    def test_torn(self) -> None:
        """Whoever comes next is told whether the last one was ended inside a line, and not a second time."""
        for torn in (False, True, True, False):
            self.turns.take()
            self.turns.give_back(torn=torn)
            self.assertEqual(torn, self.turns.take())
            self.turns.give_back(torn=False)

    def test_gone(self) -> None:
        """What one has left that died in its turn is as if it had been torn."""
        with mmap(self.shared, 0) as memory:
            self.turns.take()
            left = memory[:]
            self.turns.give_back(torn=False)
            memory[:] = left

        self.assertTrue(self.turns.take())
        self.turns.give_back(torn=False)

    def test_excludes(self) -> None:
        """While one has its turn, no other process gets it; afterwards it does."""
        other = os.open(f"/proc/self/fd/{self.shared}", os.O_RDWR)
        self.addCleanup(os.close, other)

        def is_taken() -> bool:
            try:
                fcntl.fcntl(other, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))
            except BlockingIOError:
                return True
            fcntl.fcntl(other, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_UNLCK, 0, 0, 0, 0))
            return False

        self.assertFalse(is_taken())
        self.turns.take()
        self.assertTrue(is_taken())
        self.turns.give_back(torn=False)
        self.assertFalse(is_taken())

    def test_circle(self) -> None:
        """
        Who has it is an open file, not a process: threads of two processes, at two things, would else be a circle to
        the kernel.
        """
        other = os.open(f"/proc/self/fd/{self.shared}", os.O_RDWR)
        self.addCleanup(os.close, other)
        self.turns.take()
        answer = fcntl.fcntl(other, fcntl.F_OFD_GETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))
        self.turns.give_back(torn=False)
        kind, *_, process = struct.unpack("hhqqi", answer)
        self.assertEqual((fcntl.F_WRLCK, -1), (kind, process))

    def test_no_lock(self) -> None:
        """Where there is no lock to be had, that is told, and nobody is kept waiting for ever."""
        self.patch(fcntl, "fcntl", _no_lock)
        for _ in range(2):
            self.assertRaises(OSError, self.turns.take)

    def test_no_file(self) -> None:
        """What has no bytes can't have turns, and nothing of it stays open."""
        before = os.listdir("/proc/self/fd")
        with open(os.devnull, "rb") as null:
            self.assertRaises((OSError, ValueError), turns_for, null.fileno(), self.writing)
        self.assertEqual(len(before), len(os.listdir("/proc/self/fd")))


def _no_lock(*_: object) -> bytes:
    raise OSError(errno.ENOLCK, "No locks available")


class WriterTests(TurnsCase):
    """Lines to a pipe that others write to."""

    def writer(self, **plans: list[Exception | int | None]) -> TurnTakingWriter:
        """Make a writer."""
        return TurnTakingWriter(FaultyFileSystem(**plans), self.writing, self.turns)

    def read(self) -> bytes:
        """Return what was written."""
        return os.read(self.reading, 10_000)

    def test_torn_by_another(self) -> None:
        """A line that another has left torn is closed off, once; and so is one's own by whoever comes next."""
        broken = OSError(32, "Broken pipe")
        first, second = self.writer(writev=[2, broken]), self.writer()
        self.assertRaises(OSError, first.write, [b"one\n"])
        second.write([b"two\n"])
        first.write([b"three\n"])
        self.assertEqual(b"on\ntwo\nthree\n", self.read())
        first.close()

    def test_failed_at_once(self) -> None:
        """Where nothing at all was written, nothing is torn."""
        writer = self.writer(writev=[OSError(32, "Broken pipe")])
        self.assertRaises(OSError, writer.write, [b"one\n"])
        writer.write([b"two\n"])
        writer.close()

        self.assertEqual(b"two\n", self.read())

    def test_whole_batch(self) -> None:
        """The turn lasts until the last piece of a batch is written."""
        taken = []
        writer = self.writer(writev=[3, 5])
        give_back = self.turns.give_back

        def note(*, torn: bool) -> None:
            taken.append(os.read(self.reading, 100))
            give_back(torn=torn)

        self.patch(self.turns, "give_back", note)
        writer.write([b"one\n", b"two\n", b"three\n"])
        writer.close()

        self.assertEqual([b"one\ntwo\nthree\n"], taken)
