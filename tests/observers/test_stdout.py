"""The stdout observer, on descriptors that stand for standard output."""

from __future__ import annotations

import errno
import json
import os

from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.observer_contract import ObserverContract
from tests.faulty_file_system import FaultyFileSystem
from webhookrx.errors import ConfigError
from webhookrx.interfaces import IMessageObserver
from webhookrx.message.encoders import encode_line
from webhookrx.observers.stdout import StdoutObserver, build_stdout
from webhookrx.testing import make_message


def store(observer: IMessageObserver, *texts: str) -> None:
    """Store messages."""
    observer.store([observer.prepare(make_message(text)) for text in texts])


class StdoutContractTests(ObserverContract, SynchronousTestCase):
    """A stdout observer on a pipe is an observer."""

    def make_observer(self) -> StdoutObserver:
        """Make one of a new pipe that holds all that a test writes."""
        self.reading, writing = os.pipe2(os.O_NONBLOCK)
        os.set_blocking(writing, True)
        self.file_system = FaultyFileSystem()
        self.addCleanup(os.close, self.reading)
        self.addCleanup(os.close, writing)
        self._grow(writing)
        return StdoutObserver("stdout", encode_line, "durable", writing, self.file_system)

    def _grow(self, fd: int) -> None:
        import fcntl

        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 1024 * 1024)

    def break_observer(self) -> None:
        """Let the reader be gone."""
        self.file_system.plans["writev"] = [BrokenPipeError(errno.EPIPE, "Broken pipe")] * 5

    def stored_texts(self) -> list[str]:
        """Read the pipe."""
        try:
            data = os.read(self.reading, 1024 * 1024)
        except BlockingIOError:
            data = b""
        return [json.loads(line)["MESSAGE"] for line in data.decode().split("\n")[:-1]]


class GroupStdoutContractTests(StdoutContractTests):
    """So is one of a worker, which shares it with others."""

    def make_observer(self) -> StdoutObserver:
        """Make one of a new pipe."""
        alone = super().make_observer()
        lock_fd = os.memfd_create("lock")
        self.addCleanup(os.close, lock_fd)
        return StdoutObserver("stdout", encode_line, "durable", alone._fd, self.file_system, lock_fd)


class StdoutTests(SynchronousTestCase):
    """Where standard output leads decides what its word means."""

    def setUp(self) -> None:
        """Make a file that stands for standard output."""
        self.path = self.mktemp()
        self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.addCleanup(os.close, self.fd)
        self.file_system = FaultyFileSystem()

    def observer(self, ack: str = "durable") -> StdoutObserver:
        """Make an observer of the file and open it."""
        observer = StdoutObserver("stdout", encode_line, ack, self.fd, self.file_system)
        self.addCleanup(observer.close)
        observer.open()
        return observer

    def test_file(self) -> None:
        """A regular file is synced after each batch when durable is asked for, and only then."""
        for ack, promise, syncs in (("durable", "durable", 2), ("written", "written", 0), ("queued", "written", 0)):
            self.file_system.calls.clear()
            observer = self.observer(ack)
            store(observer, "one")
            store(observer, "two")

            self.assertEqual(promise, observer.promise)
            self.assertEqual(syncs, len(self.file_system.named("fdatasync")))

    def test_pipe(self) -> None:
        """A pipe can't be synced, so its word is no more than written."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        observer = StdoutObserver("stdout", encode_line, "durable", writing, self.file_system)
        observer.open()
        os.close(writing)
        store(observer, "one")
        observer.close()

        self.assertEqual("written", observer.promise)
        self.assertEqual([], self.file_system.named("fdatasync"))
        self.assertEqual("one", json.loads(os.read(reading, 1000))["MESSAGE"])

    def test_own_descriptor(self) -> None:
        """It writes through a duplicate, and closes no more than that."""
        observer = self.observer()
        store(observer, "one")
        observer.close()
        observer.close()

        self.assertNotIn(self.fd, self.file_system.named("writev") + self.file_system.named("close"))
        os.fstat(self.fd)

    def test_failed_sync(self) -> None:
        """After a failed sync the file is opened anew, once that can be done; what failed to sync is never synced."""
        observer = self.observer()
        self.file_system.plans["fdatasync"] = [OSError(errno.EIO, "Input/output error")]
        self.file_system.plans["open"] = [OSError(errno.EMFILE, "Too many open files")]
        self.assertRaises(OSError, store, observer, "one")
        self.assertRaises(OSError, store, observer, "two")
        store(observer, "three")

        with open(self.path) as file:
            self.assertEqual(["one", "three"], [json.loads(line)["MESSAGE"] for line in file])
        self.assertEqual((2, 0), (len(self.file_system.named("fdatasync")), self.file_system.synced_again))

    def test_failed_sync_not_appending(self) -> None:
        """Where the file was not opened for appending, nothing is safe any more: others write where they are."""
        fd = os.open(self.path, os.O_WRONLY)
        self.addCleanup(os.close, fd)
        observer = StdoutObserver("stdout", encode_line, "durable", fd, self.file_system)
        observer.open()
        self.addCleanup(observer.close)
        self.file_system.plans["fdatasync"] = [OSError(errno.EIO, "Input/output error")]
        self.assertRaises(OSError, store, observer, "one")
        for _ in range(2):
            error = self.assertRaises(OSError, store, observer, "two")
            self.assertIn("opened for appending", str(error))

        self.assertEqual(1, len(self.file_system.named("fdatasync")))

    def test_reader_gone(self) -> None:
        """A pipe without a reader makes no message safe."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, writing)
        observer = StdoutObserver("stdout", encode_line, "written", writing)
        observer.open()
        os.close(reading)

        self.assertRaises(BrokenPipeError, store, observer, "one")
        observer.close()

    def test_background(self) -> None:
        """It does not open when standard output is no longer what it was: twistd went to the background."""
        observer = StdoutObserver("stdout", encode_line, "durable", self.fd, self.file_system)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fd)
        os.close(null)

        self.assertIn("--nodaemon", str(self.assertRaises(ConfigError, observer.open)))

    def test_closed(self) -> None:
        """A closed standard output is an error at once."""
        reading, writing = os.pipe()
        os.close(reading)
        os.close(writing)

        error = self.assertRaises(ConfigError, StdoutObserver, "stdout", encode_line, "durable", writing)
        self.assertIn("Bad file descriptor", str(error))

    def test_build(self) -> None:
        """It takes a format and no argument."""
        observer = build_stdout("stdout:spec", [], {"template": "<$MESSAGE>"}, "written")

        self.assertEqual(b"<hello>\n", observer.prepare(make_message("hello")))
        self.assertEqual(("stdout:spec", "written"), (observer.spec, observer.promise))
        self.assertRaises(ConfigError, build_stdout, "stdout:x", ["x"], {}, "written")
        self.assertRaises(ConfigError, build_stdout, "stdout", [], {"format": "xml"}, "written")
