"""
Disks that are full, fail or are shared: what senders are told, what is in the file, and that it goes on afterwards.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from typing import Any

from twisted.trial.unittest import SkipTest

from tests.system.load import Load, missing
from tests.system.receiver import PATIENCE, Answer, Receiver, ReceiverCase, post, wait_until

MIB = 1024**2

#: Seconds after the end of a fault in which messages must be taken again.
RECOVERY = 5.0


def readable(receiver: Receiver, name: str = "messages.jsonl") -> list[dict[str, Any]]:
    """Return the messages of a file that may have torn lines."""
    messages = []
    for line in receiver.lines(name):
        try:
            messages.append(json.loads(line))
        except ValueError:
            continue
    return messages


class DiskCase(ReceiverCase):
    """
    What tests of disks share.
    """

    def assert_not_stored(self, answers: list[Answer]) -> None:
        """All of them say that the message is not safe, and when to try again."""
        self.assertEqual({(503, "not_stored")}, {(answer.status, answer.reason) for answer in answers})
        for answer in answers:
            self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)

    def is_taken(self, receiver: Receiver, text: bytes) -> bool:
        """Whether a message gets a 200 now."""
        return self.ask(receiver.port, post(text)).status == 200


class FullDiskTests(DiskCase):
    """
    A small file system that fills up.
    """

    def setUp(self) -> None:
        """Mount one of 8 MiB, most of it taken."""
        self.disk = tempfile.mkdtemp(prefix="webhookrx-disk-")
        self.addCleanup(os.rmdir, self.disk)
        try:
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=8m", "none", self.disk], check=True, capture_output=True
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise SkipTest(f"no file system can be mounted here: {error}") from None
        self.addCleanup(subprocess.run, ["umount", self.disk], check=True)
        self.ballast = os.path.join(self.disk, "ballast")

    def take(self, size: int) -> None:
        """Take so much of the room."""
        with open(self.ballast, "wb") as file:
            file.write(bytes(size))

    def fill(self, options: str, ballast: int) -> None:
        """Fill the disk by messages, then make room; see what becomes of them."""
        self.take(ballast)
        path = os.path.join(self.disk, "messages.jsonl")
        receiver = self.start("--observer", f"file:{path}{options}")
        load = Load(receiver.port, senders=8).start()
        acknowledged = load.wait()
        self.assertEqual([], load.broken)
        self.assert_not_stored(load.refused)  # type: ignore[arg-type]  # they are answers
        self.assertEqual([], missing(acknowledged, readable(receiver, path)))
        self.assertFalse(self.is_taken(receiver, b"x" * 10_000))

        os.remove(self.ballast)
        wait_until(lambda: self.is_taken(receiver, b"room again"), "messages are taken again", RECOVERY)
        again = Load(receiver.port, senders=4, pause=0.01).start().stop()
        self.assertEqual([], missing([*acknowledged, *again, "room again"], readable(receiver, path)))
        self.assertTrue(receiver.is_running)
        self.assertNotIn("Traceback", receiver.log())

    def test_floor(self) -> None:
        """It stops where a twentieth is left, refuses with 503, and goes on once there is room."""
        self.fill("", 8 * MIB - 600 * 1024)
        self.assertNotEqual(0, os.statvfs(self.disk).f_bavail)

    def test_full(self) -> None:
        """Without a floor it fills the disk; a line that is cut short spoils no other."""
        self.fill(":min_free=0", 8 * MIB - 200 * 1024)

    def test_file_removed(self) -> None:
        """Room is made, too, by removing the file of messages itself."""
        self.take(7 * MIB)
        path = os.path.join(self.disk, "messages.jsonl")
        receiver = self.start("--observer", f"file:{path}")
        with open(path, "ab") as file:
            file.write(b"\n" * (900 * 1024))
        self.assert_not_stored([self.ask(receiver.port, post(b"too much"))])
        os.remove(path)
        wait_until(lambda: self.is_taken(receiver, b"room again"), "messages are taken again", RECOVERY)

        self.assertEqual("room again", receiver.messages(path)[-1]["MESSAGE"])


class DeviceTests(DiskCase):
    """
    Where nothing can ever be stored.
    """

    def test_full_device(self) -> None:
        """Every message is refused with 503 and C{Retry-After}, and the process goes on."""
        receiver = self.start("--observer", "file:/dev/full")
        self.assert_not_stored([self.ask(receiver.port, post(b"hello")) for _ in range(20)])
        self.assertTrue(receiver.is_running)
        self.assertIn("No space left on device", receiver.log())


class FaultTests(DiskCase):
    """
    System calls that fail: C{strace} makes them.
    """

    def inject(self, receiver: Receiver, *faults: str) -> None:
        """Make calls of a running receiver fail, as C{strace -e inject=} says, until the test ends."""
        strace = shutil.which("strace")
        if strace is None:
            raise SkipTest("strace is not installed")
        expressions = [word for fault in faults for word in ("-e", f"inject={fault}")]
        calls = "trace=openat,close,dup,writev,fdatasync,fsync"
        self.tracer = subprocess.Popen(
            [strace, "-f", "-o", receiver.path("trace"), "-p", str(receiver.pid), "-e", calls, *expressions],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.tracer.stderr is not None
        self.addCleanup(self.tracer.stderr.close)
        self.addCleanup(self.end_faults)
        if "attached" not in (said := self.tracer.stderr.readline()):
            raise SkipTest(f"strace can't attach to a process here: {said}")

    def end_faults(self) -> None:
        """Let all calls be what they are."""
        self.tracer.terminate()
        self.tracer.wait(PATIENCE)

    def post_each(self, receiver: Receiver, count: int) -> list[tuple[str, Answer]]:
        """Post one message after another, each on its own; return each text with its answer."""
        connection = self.connect(receiver.port)
        answers = []
        for number in range(count):
            answer = connection.send(post(b"%d" % number)).answer()
            assert answer is not None, "closed without an answer"
            answers.append((str(number), answer))
        return answers

    def live_through(self, *faults: str, count: int = 40) -> Receiver:
        """Post while calls fail; what gets a 200 is there, the rest gets a 503, and afterwards all is taken again."""
        receiver = self.start()
        self.assertTrue(self.is_taken(receiver, b"before"))
        self.inject(receiver, *faults)
        answers = self.post_each(receiver, count)
        self.end_faults()
        wait_until(lambda: self.is_taken(receiver, b"after"), "messages are taken again", RECOVERY)

        acknowledged = [text for text, answer in answers if answer.status == 200]
        self.assertEqual([], missing([*acknowledged, "before", "after"], readable(receiver)))
        refused = [answer for _, answer in answers if answer.status != 200]
        self.assert_not_stored(refused)
        self.assertGreater(len(acknowledged), 0)
        self.assertTrue(receiver.is_running)
        self.assertNotIn("Traceback", receiver.log())
        return receiver

    def test_failing_syncs(self) -> None:
        """Syncs that fail: each line stays whole, and a descriptor that failed to sync is not synced again."""
        receiver = self.live_through("fdatasync:error=EIO:when=3+2")
        receiver.messages()
        with open(receiver.path("trace")) as file:
            calls = re.findall(r" (fdatasync|close)\((\d+)\) += (-?\d+)", file.read())
        poisoned = set()
        failed = 0
        for call, fd, result in calls:
            self.assertFalse(call == "fdatasync" and fd in poisoned, calls)
            if call == "close":
                poisoned.discard(fd)
            elif result != "0":
                poisoned.add(fd)
                failed += 1
        self.assertGreater(failed, 5)

    def test_failing_writes(self) -> None:
        """Writes that fail, for each reason there is."""
        for error in ("EIO", "ENOSPC", "EDQUOT", "EROFS"):
            self.live_through(f"writev:error={error}:when=2+3", count=12)

    def test_nothing_opens(self) -> None:
        """After a failed sync, no file can be opened: nothing is taken until one can."""
        for error in ("EMFILE", "EROFS"):
            self.live_through("fdatasync:error=EIO:when=2", f"openat:error={error}", count=6)

    def test_rotation_without_descriptors(self) -> None:
        """After a rotation, no new file can be opened for a while: the old one gets the messages, then the new one."""
        receiver = self.start()
        self.assertTrue(self.is_taken(receiver, b"before"))
        self.inject(receiver, "openat:error=EMFILE")
        os.rename(receiver.path("messages.jsonl"), receiver.path("old"))
        receiver.signal(signal.SIGHUP)
        wait_until(lambda: "Too many open files" in receiver.log(), "the log says so")
        self.assertTrue(self.is_taken(receiver, b"meanwhile"))
        self.end_faults()
        self.assertTrue(self.is_taken(receiver, b"after"))

        self.assertEqual(["before", "meanwhile"], [message["MESSAGE"] for message in receiver.messages("old")])
        self.assertEqual(["after"], [message["MESSAGE"] for message in receiver.messages()])


class TwoProcessesTests(DiskCase):
    """
    Two receivers, one file.
    """

    def test_refused(self) -> None:
        """The second does not start, and says why in one line; the first is not disturbed."""
        first = self.start()
        path = first.path("messages.jsonl")
        for options in ("", ":share=yes"):
            second = self.prepare("--observer", f"file:{path}{options}")
            second.spawn()
            self.assertNotEqual(0, second.wait())
            log = second.log()
            self.assertNotIn("Traceback", log)
            last = log.rstrip("\n").rpartition("\n")[2]
            for part in (path, "appends to it", "share=yes"):
                self.assertIn(part, last)
        self.assertTrue(self.is_taken(first, b"hello"))
        first.kill()
        # What a crash leaves behind is no lock.
        second = self.start("--observer", f"file:{path}")
        self.assertTrue(self.is_taken(second, b"hello again"))

    def test_shared(self) -> None:
        """Those that share it on purpose lose nothing and tear nothing, also through a rotation."""
        first = self.prepare("--observer", "file:messages.jsonl:share=yes").start()
        path = first.path("messages.jsonl")
        second = self.start("--observer", f"file:{path}:share=yes")
        loads = [Load(receiver.port, senders=4).start() for receiver in (first, second)]
        os.rename(path, f"{path}.1")
        for receiver in (first, second):
            receiver.signal(signal.SIGHUP)
        wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 20_000, "the new file is written to")
        acknowledged = [text for load in loads for text in load.stop()]

        self.assertEqual([[], []], [load.refused for load in loads])
        stored = [*first.messages("messages.jsonl.1"), *first.messages()]
        self.assertEqual([], missing(acknowledged, stored))
