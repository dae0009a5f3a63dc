"""Writing lines, with every kind of bad luck."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import struct
from collections.abc import Sequence
from mmap import mmap

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.faulty_file_system import FaultyFileSystem
from tests.open_files import open_files
from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.filesystem import DiskSpace, FileSystem
from webhookrx.message.encoders import encode_line
from webhookrx.observers.writers import (
    AHEAD,
    CHECK_INTERVAL,
    MAX_PIECES,
    LineWriter,
    PipeLock,
    PipeWriter,
    RoomAhead,
    pipe_lock,
    render_line_for,
)
from webhookrx.testing import make_message

ENOSPC = OSError(errno.ENOSPC, "No space left on device")


class LineWriterTests(SynchronousTestCase):
    """Lines arrive whole, or it says so."""

    def writer(
        self, partial: bool = False, **plans: Sequence[Exception | int | None]
    ) -> tuple[LineWriter, FaultyFileSystem]:
        """Make a writer to a new file."""
        self.path = self.mktemp()
        self.file_system = FaultyFileSystem(**plans)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        return LineWriter(self.file_system, fd, partial), self.file_system

    def content(self) -> bytes:
        """Return what is in the file."""
        with open(self.path, "rb") as file:
            return file.read()

    def test_one_call(self) -> None:
        """A batch is one system call."""
        writer, file_system = self.writer()
        writer.write([b"one\n", b"two\n"])
        writer.close()

        self.assertEqual(b"one\ntwo\n", self.content())
        self.assertEqual(1, len(file_system.named("writev")))

    def test_many_pieces(self) -> None:
        """More lines than the kernel takes in one call need one more call, between two lines."""
        lines = [b"%d\n" % number for number in range(MAX_PIECES + 1)]
        writer, file_system = self.writer()
        writer.write(lines)
        writer.close()

        self.assertEqual(b"".join(lines), self.content())
        self.assertEqual(2, len(file_system.named("writev")))

    def test_short_writes(self) -> None:
        """What the kernel did not take goes after, at once."""
        for steps in ([1], [4], [5], [1] * 8, [7], [3, 1, 3]):
            writer, _ = self.writer(writev=steps)
            writer.write([b"one\n", b"two\n"])
            writer.write([b"three\n"])
            writer.close()

            self.assertEqual(b"one\ntwo\nthree\n", self.content(), steps)

    def test_partial_line(self) -> None:
        """After a write that failed inside a line, the next batch begins on a line of its own."""
        cases: list[tuple[list[Exception | int | None], bytes]] = [
            ([ENOSPC], b"three\n"),
            ([1, ENOSPC], b"o\nthree\n"),
            ([4, ENOSPC], b"one\nthree\n"),
            ([6, ENOSPC], b"one\ntw\nthree\n"),
            ([2, 2, ENOSPC], b"one\nthree\n"),
            ([4, 1, ENOSPC], b"one\nt\nthree\n"),
            # Failing again and again, even on the line end that closes the partial line.
            ([1, ENOSPC, ENOSPC, ENOSPC], b"o\nthree\n"),
        ]
        for steps, expected in cases:
            writer, file_system = self.writer(writev=steps)
            while file_system.plans["writev"]:
                error = self.assertRaises(OSError, writer.write, [b"one\n", b"two\n"])
                self.assertEqual(errno.ENOSPC, error.errno)
            writer.write([b"three\n"])
            writer.close()

            self.assertEqual(expected, self.content(), steps)

    def test_line_end_alone_was_written(self) -> None:
        """When only the line end that closes the partial line got through, it is not written twice."""
        writer, _ = self.writer(writev=[1, ENOSPC, 1, ENOSPC])
        for _ in range(2):
            self.assertRaises(OSError, writer.write, [b"one\n"])
        writer.write([b"two\n"])
        writer.close()

        self.assertEqual(b"o\ntwo\n", self.content())

    def test_partial_before(self) -> None:
        """A partial line from before its time is closed off, once."""
        writer, _ = self.writer(partial=True)
        writer.write([b"one\n"])
        writer.write([b"two\n"])
        writer.close()

        self.assertEqual(b"\none\ntwo\n", self.content())

    def test_no_bytes_taken(self) -> None:
        """A system that takes nothing and gives no reason is a failure, not a loop without end."""
        writer, _ = self.writer(writev=[0])

        self.assertRaises(OSError, writer.write, [b"one\n"])
        writer.close()

    def test_not_ready(self) -> None:
        """A descriptor that others made non-blocking is waited for."""
        writer, file_system = self.writer(writev=[BlockingIOError(), 2, BlockingIOError(), BlockingIOError()])
        writer.write([b"one\n"])
        writer.close()

        self.assertEqual(b"one\n", self.content())
        self.assertEqual(3, len(file_system.named("wait_writable")))

    def test_is_regular(self) -> None:
        """It knows a file from a pipe."""
        writer, _ = self.writer()
        self.assertTrue(writer.is_regular)
        writer.close()
        reading, writing = os.pipe()
        writer = LineWriter(FileSystem(), writing)
        self.assertFalse(writer.is_regular)
        writer.close()
        os.close(reading)

    def test_wait_writable(self) -> None:
        """Waiting ends when there is room, and when the reader is gone."""
        reading, writing = os.pipe()
        FileSystem().wait_writable(writing)
        os.close(reading)
        FileSystem().wait_writable(writing)
        os.close(writing)

    def test_full_pipe(self) -> None:
        """A pipe whose reader has gone raises, whatever fitted before."""
        reading, writing = os.pipe()
        writer = LineWriter(FileSystem(), writing)
        writer.write([b"one\n"])
        os.close(reading)

        self.assertRaises(BrokenPipeError, writer.write, [b"two\n"])
        writer.close()

    @given(
        st.lists(st.lists(st.binary(max_size=5).map(lambda text: text.replace(b"\n", b"") + b"\n"), min_size=1)),
        st.lists(st.one_of(st.just(ENOSPC), st.integers(1, 12))),
    )
    def test_lines_stay_whole(self, batches: list[list[bytes]], steps: list[Exception | int]) -> None:
        """Whatever fails when, each line of a batch that succeeded is there, whole, once or more, and in order."""
        writer, _ = self.writer(writev=steps)
        good: list[bytes] = []
        for batch in batches:
            try:
                writer.write(batch)
            except OSError:
                continue
            good += batch
        writer.close()

        found = iter(line + b"\n" for line in self.content().split(b"\n"))
        self.assertTrue(all(line in found for line in good), (good, self.content()))


class RoomAheadTests(SynchronousTestCase):
    """How often a disk is asked for room, and what that can cost."""

    FLOOR = 1000

    def setUp(self) -> None:
        """Make a disk and a clock."""
        self.free = self.FLOOR + 10 * AHEAD
        self.now = 0.0
        self.asked = 0
        self.room = RoomAhead(DiskSpace("/x", self.FLOOR, self.statvfs), lambda: self.now)

    def statvfs(self, fd: str | int) -> os.statvfs_result:
        """Say what is free."""
        self.asked += 1
        return os.statvfs_result((1, 1, 1 << 40, self.free, self.free, 0, 0, 0, 0, 255))

    def write(self, size: int) -> None:
        """Take room and use it."""
        self.room.take(size, 0)
        self.free -= size

    def test_rarely(self) -> None:
        """Small batches ask once in a while."""
        for _ in range(1000):
            self.now += CHECK_INTERVAL / 100
            self.write(10)

        self.assertLessEqual(self.asked, 11)

    def test_by_size(self) -> None:
        """Batches that fill what was asked for ask again at once."""
        for _ in range(8):
            self.write(AHEAD // 2 + 1)

        self.assertGreaterEqual(self.asked, 3)

    def test_others_are_seen(self) -> None:
        """What others have written is seen after a tenth of a second, not before."""
        self.write(10)
        self.free = self.FLOOR
        self.write(10)
        self.now += CHECK_INTERVAL
        self.assertRaises(OSError, self.write, 10)
        self.free = self.FLOOR + 10
        self.write(10)

        self.assertEqual(self.FLOOR, self.free)

    def test_near_the_floor(self) -> None:
        """Where there is room for little more, each batch asks, and the last byte above the floor can be had."""
        self.free = self.FLOOR + 25
        self.write(10)
        self.write(10)
        self.assertRaises(OSError, self.write, 6)
        self.write(5)

        self.assertEqual(self.FLOOR, self.free)

    @given(st.lists(st.tuples(st.integers(0, 3 * AHEAD), st.floats(0, 0.2)), max_size=40), st.integers(0, 6 * AHEAD))
    def test_never_below(self, batches: list[tuple[int, float]], room: int) -> None:
        """Alone on a disk it stays above the floor, and refuses only what would not."""
        self.setUp()
        self.free = self.FLOOR + room
        for size, pause in batches:
            self.now += pause
            fits = self.free - size >= self.FLOOR
            try:
                self.write(size)
            except OSError:
                self.assertFalse(fits)
            self.assertGreaterEqual(self.free, self.FLOOR)


class PipeCase(SynchronousTestCase):
    """A pipe, and the lock file that its writers inherit. Another process is one that opens the lock file itself."""

    def setUp(self) -> None:
        """Make both."""
        self.shared = os.memfd_create("lock")
        self.reading, self.writing = os.pipe()
        self.addCleanup(os.close, self.shared)
        self.addCleanup(os.close, self.reading)
        self.lock = self.lock_at(self.writing)

    def lock_at(self, fd: int) -> PipeLock:
        """Return the lock of a pipe."""
        return pipe_lock(self.shared, fd)


class PipeLockTests(PipeCase):
    """One process at a time."""

    def test_one_for_all(self) -> None:
        """One pipe has one lock in a process; another pipe has another."""
        other, end = os.pipe()
        self.addCleanup(os.close, other)
        self.addCleanup(os.close, end)
        copy = os.dup(self.writing)
        self.addCleanup(os.close, copy)

        self.assertIs(self.lock, self.lock_at(copy))
        self.assertIsNot(self.lock, self.lock_at(end))

    def test_partial(self) -> None:
        """The next writer learns of a partial line, and only the next."""
        for partial in (False, True, True, False):
            self.lock.acquire()
            self.lock.release(partial=partial)
            self.assertEqual(partial, self.lock.acquire())
            self.lock.release(partial=False)

    def test_gone(self) -> None:
        """A writer that dies while it holds the lock has left a partial line."""
        with mmap(self.shared, 0) as memory:
            self.lock.acquire()
            left = memory[:]
            self.lock.release(partial=False)
            memory[:] = left

        self.assertTrue(self.lock.acquire())
        self.lock.release(partial=False)

    def test_excludes(self) -> None:
        """While one process holds the lock, no other gets it; afterwards it does."""
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
        self.lock.acquire()
        self.assertTrue(is_taken())
        self.lock.release(partial=False)
        self.assertFalse(is_taken())

    def test_circle(self) -> None:
        """
        The lock belongs to an open file, not to a process: else the kernel would take threads of two processes at two
        pipes for a deadlock.
        """
        other = os.open(f"/proc/self/fd/{self.shared}", os.O_RDWR)
        self.addCleanup(os.close, other)
        self.lock.acquire()
        answer = fcntl.fcntl(other, fcntl.F_OFD_GETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))
        self.lock.release(partial=False)
        kind, *_, process = struct.unpack("hhqqi", answer)
        self.assertEqual((fcntl.F_WRLCK, -1), (kind, process))

    def test_no_lock(self) -> None:
        """A missing lock is an error each time, and leaves no thread waiting."""
        self.patch(fcntl, "fcntl", _no_lock)
        for _ in range(2):
            self.assertRaises(OSError, self.lock.acquire)

    def test_no_file(self) -> None:
        """A lock file without bytes is an error, and nothing of it stays open."""
        before = open_files()
        with open(os.devnull, "rb") as null:
            self.assertRaises((OSError, ValueError), pipe_lock, null.fileno(), self.writing)
        self.assertEqual(set(), open_files() - before)


def _no_lock(*_: object) -> bytes:
    raise OSError(errno.ENOLCK, "No locks available")


class PipeWriterTests(PipeCase):
    """Lines to a pipe that others write to."""

    def writer(self, **plans: list[Exception | int | None]) -> PipeWriter:
        """Make a writer."""
        return PipeWriter(FaultyFileSystem(**plans), self.writing, self.lock)

    def read(self) -> bytes:
        """Return what was written."""
        return os.read(self.reading, 10_000)

    def test_partial_line_of_another(self) -> None:
        """A partial line of another writer gets a line end, once; and so does one's own by the next writer."""
        broken = OSError(32, "Broken pipe")
        first, second = self.writer(writev=[2, broken]), self.writer()
        self.assertRaises(OSError, first.write, [b"one\n"])
        second.write([b"two\n"])
        first.write([b"three\n"])
        self.assertEqual(b"on\ntwo\nthree\n", self.read())
        first.close()

    def test_failed_at_once(self) -> None:
        """A write that fails at once leaves no partial line."""
        writer = self.writer(writev=[OSError(32, "Broken pipe")])
        self.assertRaises(OSError, writer.write, [b"one\n"])
        writer.write([b"two\n"])
        writer.close()

        self.assertEqual(b"two\n", self.read())

    def test_whole_batch(self) -> None:
        """The lock is held until the last piece of a batch is written."""
        taken = []
        writer = self.writer(writev=[3, 5])
        release = self.lock.release

        def note(*, partial: bool) -> None:
            taken.append(os.read(self.reading, 100))
            release(partial=partial)

        self.patch(self.lock, "release", note)
        writer.write([b"one\n", b"two\n", b"three\n"])
        writer.close()

        self.assertEqual([b"one\ntwo\nthree\n"], taken)


class RenderLineTests(SynchronousTestCase):
    """Options become what renders a line."""

    def test_json(self) -> None:
        """Lines are JSON when nothing else is asked for, by one and the same function, so that observers share it."""
        for options in ({}, {"format": "json"}):
            self.assertIs(encode_line, render_line_for(SpecOptions("file", options)))
        self.assertEqual(
            "hello", json.loads(render_line_for(SpecOptions("file", {}))(make_message("hello")))["MESSAGE"]
        )

    def test_template(self) -> None:
        """A template renders lines; format=template beside it is welcome, not needed."""
        for options in ({"template": "<$MESSAGE>"}, {"format": "template", "template": "<$MESSAGE>"}):
            self.assertEqual(b"<hello>\n", render_line_for(SpecOptions("file", options))(make_message("hello")))

    def test_errors(self) -> None:
        """What can't be is an error that names the observer, the option and what is allowed."""
        cases = [
            ({"format": "xml"}, 'format="xml" is not known; it takes json or template'),
            ({"format": "template"}, "needs template=TEXT"),
            ({"format": "json", "template": "x"}, "template= goes with format=template"),
            ({"template": "${open"}, "column 1"),
        ]
        for options, text in cases:
            error = self.assertRaises(ConfigError, render_line_for, SpecOptions("stdout", options))

            self.assertIn("'stdout'", str(error))
            self.assertIn(text, str(error))
