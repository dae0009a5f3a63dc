"""The file observer, on real files, with real and planned faults."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import stat
import struct
from collections.abc import Sequence
from typing import cast

from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.observer_contract import ObserverContract
from tests.faulty_file_system import FaultyFileSystem
from webhookrx import filesystem
from webhookrx.errors import ConfigError
from webhookrx.filesystem import SHARE_YES, FileSystem, InUse, sharing_group
from webhookrx.interfaces import IMessageObserver
from webhookrx.message.encoders import encode_line
from webhookrx.observers.file import FileObserver, build_file
from webhookrx.observers.writers import pipe_lock
from webhookrx.settings import Group
from webhookrx.testing import make_message

EIO = OSError(errno.EIO, "Input/output error")
ENOSPC = OSError(errno.ENOSPC, "No space left on device")


def filled(*, free: int) -> os.statvfs_result:
    """Return what is said of a large file system with so many bytes free."""
    return os.statvfs_result((1, 1, 1 << 40, free, free, 0, 0, 0, 0, 255))


def read_texts(path: str) -> list[str]:
    """Return the C{MESSAGE} of each line of a file of JSON lines, if it is there."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", newline="\n") as file:
        return [json.loads(line)["MESSAGE"] for line in file]


class FileContractTests(ObserverContract, SynchronousTestCase):
    """A file observer is an observer."""

    ack = "durable"

    def make_observer(self) -> FileObserver:
        """Make one of a new file."""
        self.path = os.path.abspath(self.mktemp())
        self.file_system = FaultyFileSystem()
        return FileObserver("file:x", self.path, encode_line, self.ack, file_system=self.file_system)

    def break_observer(self) -> None:
        """Fill the disk."""
        self.file_system.plans["writev"] = [OSError(errno.ENOSPC, "No space left on device")] * 5

    def stored_texts(self) -> list[str]:
        """Read the file."""
        return read_texts(self.path)


class WrittenFileContractTests(FileContractTests):
    """So is one that does not sync."""

    ack = "written"


class SharedFileContractTests(FileContractTests):
    """So is one that the workers of a group share."""

    ack = "written"

    def make_observer(self) -> FileObserver:
        """Make one of a new file, in a group of two of which the other has the file open."""
        self.path = os.path.abspath(self.mktemp())
        self.file_system = FaultyFileSystem()
        lock_fd = os.memfd_create("lock")
        self.addCleanup(os.close, lock_fd)
        other, observer = (
            FileObserver(
                "file:x",
                self.path,
                encode_line,
                self.ack,
                file_system=self.file_system,
                sharing=sharing_group(lock_fd),
                lock_fd=lock_fd,
            )
            for _ in range(2)
        )
        other.open()
        self.addCleanup(other.close)
        return observer


class FileTestCase(SynchronousTestCase):
    """Makes file observers."""

    def setUp(self) -> None:
        """Name a file that is not there, in a directory that is."""
        self.directory = os.path.abspath(self.mktemp())
        os.mkdir(self.directory)
        self.path = os.path.join(self.directory, "messages.jsonl")

    def observer(
        self,
        ack: str = "durable",
        path: str | None = None,
        *,
        shared: bool = False,
        min_free: int | None = None,
        **plans: Sequence[Exception | int | None],
    ) -> FileObserver:
        """Make an observer of the file, and open it."""
        self.file_system = FaultyFileSystem(**plans)
        observer = FileObserver(
            "file:x",
            path or self.path,
            encode_line,
            ack,
            min_free=min_free,
            sharing=SHARE_YES if shared else None,
            file_system=self.file_system,
            clock=lambda: 0.0,
        )
        self.addCleanup(observer.close)
        observer.open()
        return observer

    def store(self, observer: IMessageObserver, *texts: str) -> None:
        """Store messages."""
        observer.store([observer.prepare(make_message(text)) for text in texts])


class SyncTests(FileTestCase):
    """What durable means."""

    def test_durable(self) -> None:
        """Each batch ends in one fdatasync of the file, after the write."""
        observer = self.observer()
        self.file_system.calls.clear()
        self.store(observer, "one", "two")

        self.assertEqual(["statvfs", "writev", "fdatasync", "fstat"], [name for name, _ in self.file_system.calls])
        self.assertEqual("durable", observer.promise)

    def test_written(self) -> None:
        """Without --ack durable nothing is synced, neither the file nor its directory."""
        for ack in ("written", "queued"):
            observer = self.observer(ack, self.path + ack)
            self.store(observer, "one")

            self.assertEqual([], self.file_system.named("fdatasync") + self.file_system.named("fsync"))
            self.assertEqual("written", observer.promise)

    def test_new_name(self) -> None:
        """The directory is synced before the start, also for an existing file, whose creator may not have done so."""
        for _ in range(2):
            self.observer()
            self.assertEqual(1, len(self.file_system.named("fsync")))

    def test_directory_not_readable(self) -> None:
        """A directory that may not be read, and so not be synced, is no place for a new file; an old one is used."""
        refused = PermissionError(errno.EACCES, "Permission denied")
        self.assertRaises(ConfigError, self.observer, open=[None, None, refused])
        self.store(self.observer(open=[None, refused]), "one")

        self.assertEqual(["one"], read_texts(self.path))

    def test_new_name_behind_a_link(self) -> None:
        """A link whose target is not there creates the target, and syncs the directory of that."""
        link = os.path.join(self.directory, "link")
        os.mkdir(os.path.join(self.directory, "real"))
        os.symlink("real/target", link)
        self.observer(path=link)

        self.assertTrue(os.path.exists(os.path.join(self.directory, "real", "target")))
        self.assertIn(os.path.join(self.directory, "real"), self.file_system.named("open"))

    def test_directory_sync_fails(self) -> None:
        """A name that can't be made safe is no start."""
        self.assertRaises(ConfigError, self.observer, fsync=[EIO])

    def test_failed_sync(self) -> None:
        """A failed sync raises; the descriptor is closed and never synced again; the next batch opens the file anew."""
        observer = self.observer(fdatasync=[EIO])
        self.assertRaises(OSError, self.store, observer, "one")
        (poisoned,) = self.file_system.named("fdatasync")
        self.assertEqual(poisoned, self.file_system.named("close")[-1])
        # Keep the number from being given out again.
        other = os.open(os.devnull, os.O_RDONLY)
        self.addCleanup(os.close, other)
        self.file_system.calls.clear()
        self.store(observer, "two")

        self.assertIn(self.path, self.file_system.named("open"))
        self.assertEqual(1, len(self.file_system.named("fdatasync")))
        self.assertNotIn(poisoned, self.file_system.named("fdatasync"))
        self.assertEqual("two", read_texts(self.path)[-1])

    def test_failed_sync_and_open(self) -> None:
        """As long as the file does not open after a failed sync, no batch is safe; then they are again."""
        observer = self.observer(fdatasync=[EIO])
        self.assertRaises(OSError, self.store, observer, "one")
        self.file_system.plans["open"] = [EIO, EIO]
        self.assertRaises(OSError, self.store, observer, "two")
        self.assertRaises(OSError, self.store, observer, "three")
        self.store(observer, "four")

        self.assertEqual(["one", "four"], read_texts(self.path))

    def test_line_end_after_failed_sync(self) -> None:
        """The last line end is written once more, so that the next sync brings it to the disk; nothing is added."""
        for fault in (EIO, ENOSPC):
            observer = self.observer(fdatasync=[fault])
            self.file_system.calls.clear()
            self.assertRaises(OSError, self.store, observer, "one")
            self.store(observer, "two")
            self.assertEqual(1, len(self.file_system.named("pwrite")))
            observer.reopen()
            self.assertEqual(1, len(self.file_system.named("pwrite")))

        self.assertEqual(["one", "two"] * 2, read_texts(self.path))

    def test_line_end_at_start(self) -> None:
        """The same at the start: the process before may have ended right after its sync failed."""
        self.store(self.observer(), "one")
        observer = self.observer()
        self.assertEqual(1, len(self.file_system.named("pwrite")))
        self.store(observer, "two")

        self.assertEqual(["one", "two"], read_texts(self.path))

    def test_line_end_that_can_not_be_renewed(self) -> None:
        """When it can't be written again in its place, the next line brings one of its own."""
        self.store(self.observer(), "one")
        observer = self.observer(pwrite=[ENOSPC])
        self.store(observer, "two")

        with open(self.path, "rb") as file:
            self.assertEqual(1, file.read().count(b"\n\n"))

    def test_line_end_of_shared_file(self) -> None:
        """In a shared file no other process writes between the look at the last byte and its renewal."""
        observer = self.observer(shared=True, fdatasync=[EIO])
        self.assertRaises(OSError, self.store, observer, "one")
        pwrite, refusals = self.file_system.pwrite, []

        def try_to_write(fd: int, data: bytes, offset: int) -> int:
            with open(self.path, "ab") as other:
                lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                refusals.append(self.assertRaises(BlockingIOError, fcntl.fcntl, other, fcntl.F_OFD_SETLK, lock))
            return pwrite(fd, data, offset)

        self.file_system.pwrite = try_to_write
        self.file_system.calls.clear()
        self.store(observer, "two")
        names = [name for name, _ in self.file_system.calls if name in ("control", "pread", "pwrite")]

        self.assertEqual(1, len(refusals))
        self.assertEqual(["control", "pread", "pwrite", "control"], names[:4])
        self.assertEqual(["one", "two"], read_texts(self.path))

    def test_close_after_failed_sync(self) -> None:
        """It can be closed, and reopened, with nothing open."""
        observer = self.observer(fdatasync=[EIO, EIO])
        self.assertRaises(OSError, self.store, observer, "one")
        observer.reopen()
        self.assertRaises(OSError, self.store, observer, "two")
        observer.close()

        self.assertEqual(set(), self.file_system.descriptors)


class OpenTests(FileTestCase):
    """Opening the file."""

    def mode_of(self, path: str) -> int:
        """Return the permission bits."""
        return stat.S_IMODE(os.stat(path).st_mode)

    def test_mode(self) -> None:
        """A new file has exactly the mode that was asked for, whatever the umask."""
        for umask, mode in ((0o077, 0o666), (0o000, 0o640), (0o777, 0o600)):
            path = os.path.join(self.directory, f"{mode:o}")
            self.addCleanup(os.umask, os.umask(umask))
            observer = FileObserver("file:x", path, encode_line, "durable", mode)
            observer.open()
            observer.close()

            self.assertEqual(mode, self.mode_of(path))

    def test_old_file_keeps_its_mode(self) -> None:
        """The mode of a file that is there already is not touched."""
        with open(self.path, "w"):
            os.chmod(self.path, 0o604)
        self.observer()

        self.assertEqual(0o604, self.mode_of(self.path))

    def test_appends(self) -> None:
        """What is there stays, also when two observers write to one file in turn."""
        first, second = self.observer(), self.observer()
        self.store(first, "one")
        self.store(second, "two")
        self.store(first, "three")

        self.assertEqual(["one", "two", "three"], read_texts(self.path))

    def test_partial_line(self) -> None:
        """A partial line of a crash gets a line end by the first batch; its bytes stay."""
        for content, before in ((b"", b""), (b"whole\n", b"whole\n"), (b"whole\ntor", b"whole\ntor\n")):
            with open(self.path, "wb") as file:
                file.write(content)
            self.store(self.observer(), "one")

            with open(self.path, "rb") as file:
                self.assertEqual(before + encode_line(make_message("one")), file.read())

    def test_partial_line_not_readable(self) -> None:
        """A file that may be written but not read gets a line end to be sure."""
        with open(self.path, "wb") as file:
            file.write(b"whole\n")
        self.store(self.observer(open=[None, None, PermissionError()]), "one")

        with open(self.path, "rb") as file:
            self.assertEqual(b"whole\n\n" + encode_line(make_message("one")), file.read())

    def test_close_on_exec(self) -> None:
        """The descriptor blocks, and no child inherits it."""
        observer = self.observer()
        self.store(observer, "one")
        (fd,) = self.file_system.named("writev")

        self.assertFalse(os.get_inheritable(fd))
        self.assertTrue(os.get_blocking(fd))

    def test_cannot_open(self) -> None:
        """What can't be opened is a ConfigError that names the file and says why."""
        fifo = os.path.join(self.directory, "fifo")
        os.mkfifo(fifo)
        plain = os.path.join(self.directory, "plain")
        with open(plain, "w"):
            pass
        cases: list[tuple[str, dict[str, list[Exception]], str]] = [
            (os.path.join(self.directory, "no", "file"), {}, "No such file or directory"),
            (os.path.join(plain, "file"), {}, "is not a directory"),
            (self.directory, {}, "is a directory"),
            (fifo, {}, "nobody reads from this FIFO"),
            (self.path, {"open": [PermissionError(errno.EACCES, "Permission denied")]}, "Permission denied"),
            (self.path, {"open": [OSError(errno.EROFS, "Read-only file system")]}, "Read-only file system"),
            (self.path, {"fchmod": [EIO]}, "Input/output error"),
        ]
        for path, plans, reason in cases:
            error = self.assertRaises(ConfigError, self.observer, "durable", path, **plans)

            self.assertIn(repr(path), str(error))
            self.assertIn(reason, str(error))
            self.assertEqual(set(), self.file_system.descriptors)

    def test_not_a_file(self) -> None:
        """A device or FIFO takes lines, but its word is never durable, and it is not synced."""
        fifo = os.path.join(self.directory, "fifo")
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        observer = self.observer(path=fifo)
        self.store(observer, "one")

        self.assertEqual("written", observer.promise)
        self.assertEqual("one", json.loads(os.read(reader, 1000))["MESSAGE"])
        self.assertEqual([], self.file_system.named("fdatasync"))


class FullDiskTests(FileTestCase):
    """What the operating system refuses is not safe."""

    def test_dev_full(self) -> None:
        """A full device makes every batch fail, and the observer goes on to try."""
        observer = FileObserver("file:/dev/full", "/dev/full", encode_line, "durable", file_system=FileSystem())
        observer.open()
        self.addCleanup(observer.close)

        for _ in range(3):
            self.assertEqual(errno.ENOSPC, self.assertRaises(OSError, self.store, observer, "one").errno)

    def test_space_again(self) -> None:
        """Once there is space again messages are stored, each on a line of its own."""
        observer = self.observer(writev=[10, OSError(errno.ENOSPC, "No space left on device")])
        self.assertRaises(OSError, self.store, observer, "one", "two")
        self.store(observer, "one", "two")

        with open(self.path, "rb") as file:
            partial, *lines = file.read().splitlines()
        self.assertEqual(10, len(partial))
        self.assertEqual(["one", "two"], [json.loads(line)["MESSAGE"] for line in lines])

    def test_file_size_limit(self) -> None:
        """A write that the kernel itself cuts short, and then refuses, tears one line and no other."""
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
        observer = self.observer()
        resource.setrlimit(resource.RLIMIT_FSIZE, (150, limits[1]))
        self.assertEqual(errno.EFBIG, self.assertRaises(OSError, self.store, observer, "one", "two").errno)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.store(observer, "three")

        with open(self.path, "rb") as file:
            content = file.read()
        self.assertEqual(b"\n", content[150:151])
        self.assertEqual("three", json.loads(content[151:])["MESSAGE"])

    def test_floor(self) -> None:
        """Nothing is written once less than the floor would be free; as soon as there is more again, it is."""
        observer = self.observer(min_free=1000)
        line = len(encode_line(make_message("one")))
        # Each batch asks for more than itself first, and when that is not there, for itself.
        self.file_system.plans["statvfs"] = [
            filled(free=free) for free in (999, 1000 + line - 1, 1000 + line) for _ in range(2)
        ]
        for _ in range(2):
            error = self.assertRaises(OSError, self.store, observer, "one")
            self.assertEqual((errno.ENOSPC, self.path), (error.errno, error.filename))
            self.assertEqual(0, os.path.getsize(self.path))
        self.store(observer, "one")

        self.assertEqual(["one"], read_texts(self.path))

    def test_no_floor_without_a_disk(self) -> None:
        """A device has no room to keep free."""
        observer = FileObserver("file:/dev/null", "/dev/null", encode_line, "durable", min_free=1 << 60)
        observer.open()
        self.addCleanup(observer.close)
        self.store(observer, "one")

    def test_removed_for_room(self) -> None:
        """A file that somebody removes to make room is let go, so that there is room, and made anew."""
        for plans in ({"writev": [ENOSPC] * 2}, {"statvfs": [filled(free=0)] * 4}):
            observer = self.observer()
            self.file_system.plans = dict(plans)
            self.assertRaises(OSError, self.store, observer, "one")
            os.remove(self.path)
            self.assertRaises(OSError, self.store, observer, "two")
            self.assertEqual(set(), self.file_system.descriptors)
            self.store(observer, "three")

            self.assertEqual(["three"], read_texts(self.path))
            observer.close()
            os.remove(self.path)

    def test_kept_for_want_of_room(self) -> None:
        """A file that only wants room stays open; one that fails otherwise is opened anew by name."""
        cases = [(errno.ENOSPC, 0), (errno.EDQUOT, 0), (errno.EFBIG, 0), (errno.EIO, 1), (errno.ESTALE, 1)]
        for number, opened in cases:
            observer = self.observer()
            self.file_system.plans["writev"] = [OSError(number, os.strerror(number))]
            self.assertRaises(OSError, self.store, observer, "one")
            self.file_system.calls.clear()
            self.store(observer, "one")

            self.assertEqual(opened > 0, self.path in self.file_system.named("open"), os.strerror(number))

    def test_cannot_tell_whether_removed(self) -> None:
        """A file that can't even be asked whether it has a name is opened anew."""
        observer = self.observer(writev=[EIO])
        self.file_system.plans["fstat"] = [EIO]
        self.assertRaises(OSError, self.store, observer, "one")
        self.store(observer, "two")

        self.assertEqual(["two"], read_texts(self.path))

    def test_failed_write_is_not_synced(self) -> None:
        """Nothing is synced for a batch that was not written."""
        observer = self.observer(writev=[EIO])
        self.assertRaises(OSError, self.store, observer, "one")

        self.assertEqual([], self.file_system.named("fdatasync"))


class LockTests(FileTestCase):
    """Two processes on one file. Another process is one that has opened the file itself: locks belong to open files."""

    def other_process(self, operation: int, path: str | None = None) -> int:
        """Open and lock the file, as another process does; return the descriptor."""
        fd = os.open(path or self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, operation | fcntl.LOCK_NB)
        return fd

    def is_locked(self, path: str, operation: int) -> bool:
        """Whether another process would be refused."""
        with open(path, "rb") as file:
            try:
                fcntl.flock(file, operation | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def test_refused(self) -> None:
        """A file that another process has does not open, and the error names it and says how to share it."""
        for operation, shared in (
            (fcntl.LOCK_EX, False),
            (fcntl.LOCK_EX, True),
            (fcntl.LOCK_SH, False),
        ):
            fd = self.other_process(operation)
            error = self.assertRaises(ConfigError, self.observer, shared=shared)
            fcntl.flock(fd, fcntl.LOCK_UN)

            self.assertIn(repr(self.path), str(error))
            self.assertIn("share=yes", str(error))
            self.assertEqual(set(), self.file_system.descriptors)

    def test_shared(self) -> None:
        """Those that say so share a file, and keep out those that don't."""
        self.other_process(fcntl.LOCK_SH)
        observer = self.observer(shared=True)
        self.store(observer, "one")

        self.assertTrue(self.is_locked(self.path, fcntl.LOCK_EX))
        self.assertFalse(self.is_locked(self.path, fcntl.LOCK_SH))

    def test_held(self) -> None:
        """The lock is held from open to close, through reopen, a sync that fails, and other observers of the file."""
        self.observer().close()
        observer = self.observer(fdatasync=[EIO])
        second = FileObserver("file:x", self.path, encode_line, "written")
        second.open()
        second.close()
        observer.reopen()
        self.assertTrue(self.is_locked(self.path, fcntl.LOCK_SH))
        self.assertRaises(OSError, self.store, observer, "one")
        self.assertTrue(self.is_locked(self.path, fcntl.LOCK_SH))
        self.store(observer, "two")
        self.assertTrue(self.is_locked(self.path, fcntl.LOCK_SH))
        observer.close()

        self.assertFalse(self.is_locked(self.path, fcntl.LOCK_EX))

    def test_rotation(self) -> None:
        """After a rotation the new file is locked, and the old one is not."""
        observer = self.observer()
        os.rename(self.path, self.path + ".1")
        observer.reopen()

        self.assertTrue(self.is_locked(self.path, fcntl.LOCK_SH))
        self.assertFalse(self.is_locked(self.path + ".1", fcntl.LOCK_EX))

    def test_rotation_refused(self) -> None:
        """A new file that another process has first is not taken; the old one stays in use, and locked."""
        observer = self.observer()
        os.rename(self.path, self.path + ".1")
        fd = self.other_process(fcntl.LOCK_EX)
        self.assertRaises(InUse, observer.reopen)
        self.store(observer, "one")
        self.assertTrue(self.is_locked(self.path + ".1", fcntl.LOCK_SH))
        fcntl.flock(fd, fcntl.LOCK_UN)
        self.store(observer, "two")

        self.assertEqual((["one"], ["two"]), (read_texts(self.path + ".1"), read_texts(self.path)))

    def test_no_locks(self) -> None:
        """On a file system without locks it goes on without."""
        for number in (errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            for shared in (False, True):
                problem = OSError(number, os.strerror(number))
                observer = self.observer(shared=shared, flock=[problem], control=[problem, problem])
                self.store(observer, "one")
                observer.close()

        self.assertEqual(["one"] * 8, read_texts(self.path))

    def test_not_a_file(self) -> None:
        """A FIFO or device is not locked, and can't be shared."""
        observer = self.observer(path="/dev/null")
        self.store(observer, "one")
        self.assertEqual([], self.file_system.named("flock"))
        error = self.assertRaises(ConfigError, self.observer, path="/dev/null", shared=True)

        self.assertIn("not a regular file", str(error))

    def test_partial_line_of_another(self) -> None:
        """In a shared file, a partial line of another process gets a line end; a whole one does not."""
        observer = self.observer(shared=True)
        fd = self.other_process(fcntl.LOCK_SH)
        for other, before in ((b"torn", b"torn\n"), (b"whole\n", b"torn\n%swhole\n")):
            os.write(fd, other)
            self.store(observer, "one")
            line = encode_line(make_message("one"))
            with open(self.path, "rb") as file:
                self.assertEqual((before % line if b"%" in before else before) + line, file.read())

    def test_turns(self) -> None:
        """In a shared file, a batch waits for its turn to be written, and gives it back before the sync."""
        observer = self.observer(shared=True)
        self.store(observer, "one")
        self.file_system.calls.clear()
        self.store(observer, "two")
        names = [name for name, _ in self.file_system.calls if name != "fstat"]

        self.assertEqual(["control", "lseek", "pread", "writev", "control", "fdatasync"], names)


class GroupTests(FileTestCase):
    """A file of the workers of a group."""

    def group(self) -> Group:
        """Make a worker of two."""
        lock_fd = os.memfd_create("lock")
        self.addCleanup(os.close, lock_fd)
        return Group(0, 2, lock_fd)

    def worker(self, group: Group, path: str | None = None, **options: str) -> FileObserver:
        """Make the observer of a worker, and open it."""
        observer = build_file("file:spec", [path or self.path], options, "written", group)
        self.addCleanup(observer.close)
        observer.open()
        return observer

    def test_share(self) -> None:
        """They share it without an option, and end a partial line that one of them has left."""
        group = self.group()
        first = self.worker(group)
        another_process = self.patch(filesystem, "_held_locks", {})
        second = self.worker(group)
        self.store(first, "one")
        with open(self.path, "ab") as file:
            file.write(b"{torn")
        self.store(second, "two")
        second.close()
        another_process.restore()

        with open(self.path, "rb") as file:
            self.assertEqual([b"{", b"{torn", b"{"], [line[:5] if b"torn" in line else line[:1] for line in file])

    def test_others(self) -> None:
        """Nobody else gets it without being told, nor do they get what somebody else has."""
        mine = self.worker(self.group())
        another_process = self.patch(filesystem, "_held_locks", {})
        for observer in (
            build_file("file:spec", [self.path], {}, "written"),
            build_file("file:spec", [self.path], {}, "written", self.group()),
            build_file("file:spec", [self.path], {"share": "yes"}, "written"),
            build_file("file:spec", [self.path], {"share": "yes"}, "written", self.group()),
        ):
            self.assertIn("share=yes", str(self.assertRaises(ConfigError, observer.open)))
        another_process.restore()
        mine.close()
        told = self.worker(self.group(), share="yes")
        another_process = self.patch(filesystem, "_held_locks", {})
        self.worker(self.group(), share="yes").close()
        another_process.restore()
        told.close()

    def test_no_regular_file(self) -> None:
        """They write to a FIFO one at a time, which must have a reader as ever; a device just gets the lines."""
        fifo = self.path + ".fifo"
        os.mkfifo(fifo)
        group = self.group()
        self.assertIn("nobody reads", str(self.assertRaises(ConfigError, self.worker, group, fifo)))
        reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reading)
        worker = self.worker(group, fifo)
        self.store(worker, "one")
        lock = pipe_lock(cast("int", group.lock_fd), reading)
        lock.acquire()
        lock.release(partial=True)
        self.store(worker, "two")
        lines = os.read(reading, 10_000).splitlines()

        self.assertEqual(["one", "two"], [json.loads(line)["MESSAGE"] for line in lines if line])
        self.assertEqual(b"", lines[1])
        self.store(self.worker(group, "/dev/null"), "one")


class ReopenTests(FileTestCase):
    """Log rotation."""

    def test_rotation(self) -> None:
        """After the file was moved away, a reopen makes a new one of the same mode; no line is lost or doubled."""
        observer = self.observer()
        self.store(observer, "one")
        os.rename(self.path, self.path + ".1")
        self.store(observer, "two")
        observer.reopen()
        self.store(observer, "three")

        self.assertEqual(["one", "two"], read_texts(self.path + ".1"))
        self.assertEqual(["three"], read_texts(self.path))
        self.assertEqual(0o640, stat.S_IMODE(os.stat(self.path).st_mode))

    def test_removed(self) -> None:
        """What is written to a file that somebody has removed is written again, to a new one of its name."""
        observer = self.observer()
        self.store(observer, "one")
        os.remove(self.path)
        self.store(observer, "two")
        self.assertEqual(["two"], read_texts(self.path))
        self.store(observer, "three")
        self.assertEqual(["two", "three"], read_texts(self.path))

    def test_removed_with_its_directory(self) -> None:
        """Where it can't be opened anew, the batch is not safe."""
        observer = self.observer()
        os.remove(self.path)
        os.rename(self.directory, self.directory + "-moved")
        with self.assertRaises(OSError):
            self.store(observer, "one")
        os.rename(self.directory + "-moved", self.directory)
        self.store(observer, "two")
        self.assertEqual(["two"], read_texts(self.path))

    def test_fails(self) -> None:
        """A reopen that fails raises, and the old file stays in use, until a batch finds that it can be done."""
        observer = self.observer()
        os.rename(self.path, self.path + ".1")
        self.file_system.plans["open"] = [OSError(errno.EMFILE, "Too many open files")] * 2
        self.assertRaises(OSError, observer.reopen)
        self.store(observer, "one")
        self.assertEqual((["one"], False), (read_texts(self.path + ".1"), os.path.exists(self.path)))
        self.store(observer, "two")
        self.store(observer, "three")

        self.assertEqual(["one"], read_texts(self.path + ".1"))
        self.assertEqual(["two", "three"], read_texts(self.path))

    def test_tells_late(self) -> None:
        """An error that shows only on close is reported, also where a batch opens the next file."""
        observer = self.observer(ack="written")
        lost = OSError(errno.EIO, "Input/output error")
        # The first of the two closes is that of a lock, or of a look at the end.
        self.file_system.plans["close"] = [None, lost]
        self.assertIs(lost, self.assertRaises(OSError, observer.reopen))
        self.store(observer, "one")
        os.rename(self.path, self.path + ".1")
        self.file_system.plans["open"] = [OSError(errno.EMFILE, "Too many open files")]
        self.assertRaises(OSError, observer.reopen)

        self.file_system.plans["close"] = [None, lost]
        with self.assertRaises(OSError) as raised:
            self.store(observer, "two")
        self.store(observer, "three")

        self.assertIs(lost, raised.exception)
        self.assertEqual((["one"], ["three"]), (read_texts(self.path + ".1"), read_texts(self.path)))

    def test_closes_the_old_file(self) -> None:
        """No descriptor is left behind, however often it is reopened."""
        observer = self.observer()
        for _ in range(5):
            observer.reopen()
        observer.close()
        observer.close()

        self.assertEqual(set(), self.file_system.descriptors)


class BuildTests(FileTestCase):
    """From a spec string."""

    def test_options(self) -> None:
        """Mode and format are taken from the options."""
        observer = build_file("file:spec", [self.path], {"mode": "600", "template": "$MESSAGE"}, "written")
        observer.open()
        self.store(observer, "one")
        observer.close()

        with open(self.path, "rb") as file:
            self.assertEqual(b"one\n", file.read())
        self.assertEqual(0o600, stat.S_IMODE(os.stat(self.path).st_mode))
        self.assertEqual(("file:spec", "written"), (observer.spec, observer.promise))

    def test_sharing_and_floor(self) -> None:
        """A floor and sharing are taken from the options."""
        sharing = [build_file("file:spec", [self.path], {"share": "yes", "min_free": "0"}, "durable") for _ in range(2)]
        for observer in sharing:
            observer.open()
            self.addCleanup(observer.close)
            self.store(observer, "one")
        self.assertRaises(ConfigError, build_file("file:spec", [self.path], {}, "durable").open)
        self.assertEqual(["one", "one"], read_texts(self.path))
        observer = build_file("file:spec", [self.path + "2"], {"min_free": "1000TiB"}, "durable")
        observer.open()
        self.addCleanup(observer.close)

        self.assertEqual(errno.ENOSPC, self.assertRaises(OSError, self.store, observer, "one").errno)

    def test_opens_nothing(self) -> None:
        """Building creates no file."""
        build_file("file:spec", [self.path], {}, "durable")

        self.assertFalse(os.path.exists(self.path))

    def test_errors(self) -> None:
        """A wrong argument or option is an error that says what is right."""
        cases: list[tuple[list[str], dict[str, str], str]] = [
            ([], {}, "file:PATH"),
            ([""], {}, "file:PATH"),
            ([self.path, "more"], {}, "file:PATH"),
            ([self.path], {"mode": "999"}, 'mode="999"'),
            ([self.path], {"mode": "rw"}, "octal"),
            ([self.path], {"mode": "4755"}, "octal"),
            ([self.path], {"min_free": "much"}, 'min_free="much" is not a size'),
            ([self.path], {"share": "maybe"}, 'share="maybe" is not yes or no'),
            ([self.path], {"format": "xml"}, 'format="xml" is not known; it takes json or template'),
            ([self.directory], {}, "is a directory"),
            ([os.path.join(self.directory, "no", "file")], {}, "No such file or directory"),
        ]
        for args, options, text in cases:
            error = self.assertRaises(ConfigError, build_file, "file:spec", args, options, "durable")

            self.assertIn(text, str(error))
