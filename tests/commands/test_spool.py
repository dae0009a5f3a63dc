"""The subject C{spool}, with and without a receiver that uses the spool."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import sys
from unittest.mock import patch

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.commands.running import run_command
from tests.spool.faulty_spool import make_queue, stored, texts
from webhookrx.commands.main import main
from webhookrx.message.encoders import encode_stored
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.queue import SpoolQueue
from webhookrx.spool.rows import DeadLetter, Row
from webhookrx.testing import RECEIVED, make_message


def dead(row: Row, reason: str = "HTTP 422", spec: str = "http:https://host/in") -> DeadLetter:
    """Refuse a message."""
    return DeadLetter(row.id, RECEIVED, row.crc, row.data, reason, spec, RECEIVED)


class SpoolCase(SynchronousTestCase):
    """A spool: three messages wait, two are dead."""

    def setUp(self) -> None:
        """Fill it, and keep it open."""
        self.path = os.path.abspath(self.mktemp())
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.queue = self.open()
        self.queue.append(stored("one", "two", "three", "four", "five"))
        one, two, *_ = self.queue.next_batch()
        self.queue.ack([], [dead(one), dead(two, "bad\x1b[2J\u202e\nword", "evil\x07")])

    def open(self) -> SpoolQueue:
        """Open the queue as a receiver does."""
        queue = make_queue(self.path)
        queue.open()
        self.addCleanup(queue.close)
        return queue

    def run_command(self, *arguments: str) -> tuple[int, str, str]:
        """Run it; return status, output and errors."""
        return run_command(*arguments)

    def spool(self, verb: str, *arguments: str) -> tuple[int, str, str]:
        """Run a command on the spool."""
        return self.run_command("spool", verb, self.path, *arguments)

    def waiting(self) -> list[object]:
        """Return the texts of what waits."""
        self.queue.close()
        self.queue = self.open()
        found: list[object] = []
        while rows := self.queue.next_batch():
            found += texts(rows)
            self.queue.ack([row.id for row in rows])
        return found


class ListTests(SpoolCase):
    """C{spool list}."""

    def test_dead(self) -> None:
        """It prints totals, and each dead letter on one line without control characters."""
        status, out, err = self.spool("list")
        waiting, refused, one, two = out.splitlines()

        self.assertEqual((0, ""), (status, err))
        self.assertIn("waiting: 3 messages", waiting)
        self.assertIn("the oldest received 20", waiting)
        self.assertIn("dead letters: 2 messages", refused)
        self.assertRegex(one, r"^ +1  20.* B  refused 20.* by http:https://host/in: HTTP 422$")
        self.assertTrue(two.endswith(r"by evil\x07: bad\x1b[2J\u202e\nword"), two)

    def test_waiting(self) -> None:
        """C{--waiting} shows waiting messages up to a limit, and says how many more there are."""
        _, out, _ = self.spool("list", "--waiting", "--limit", "2")

        self.assertEqual(["3", "4", "…"], [line.split()[0] for line in out.splitlines()[2:]])
        self.assertIn("1 more", out)

    def test_json(self) -> None:
        """Each line is JSON: the totals, then the messages."""
        _, out, _ = self.spool("list", "--json")
        totals, one, two = map(json.loads, out.splitlines())

        self.assertEqual((3, 2), (totals["messages"], totals["dead"]))
        self.assertEqual((1, "HTTP 422", "http:https://host/in"), (one["id"], one["reason"], one["observer"]))
        self.assertEqual("bad\x1b[2J\u202e\nword", two["reason"])
        self.assertNotIn("\u202e", out)
        _, out, _ = self.spool("list", "--json", "--waiting")
        self.assertEqual([3, 4, 5], [json.loads(line)["id"] for line in out.splitlines()[1:]])

    def test_empty(self) -> None:
        """An empty spool has no oldest."""
        self.spool("drop", "--all")
        self.spool("drop", "--all", "--waiting")
        _, out, _ = self.spool("list")

        self.assertEqual(["waiting: 0 messages, 0B", "dead letters: 0 messages, 0B"], out.splitlines())

    def test_nobody_uses_it(self) -> None:
        """It works without a receiver, and leaves the messages as they are."""
        self.queue.close()
        status, out, _ = self.spool("list")

        self.assertEqual(0, status)
        self.assertIn("waiting: 3 messages", out)
        self.assertEqual(["three", "four", "five"], self.waiting())

    def test_damaged(self) -> None:
        """The listed fields of a message may be damaged themselves."""
        other = sqlite3.connect(os.path.join(self.path, "00000001.sqlite"))
        other.execute("UPDATE waiting SET received = -5 WHERE id = 3")
        other.commit()
        other.close()
        _, out, _ = self.spool("list", "--waiting")

        self.assertEqual(["3", "damaged"], out.splitlines()[2].split()[:2])

    def test_reader_leaves(self) -> None:
        """The reader of a pipe may close it early."""

        class Gone(io.StringIO):
            def flush(self) -> None:
                raise BrokenPipeError

            def fileno(self) -> int:
                return os.open(os.devnull, os.O_WRONLY)

        with patch.object(sys, "stdout", Gone()):
            self.assertEqual(0, main(["spool", "list", self.path]))


class WorkerTests(SpoolCase):
    """A spool with the directories of further workers in it."""

    def setUp(self) -> None:
        """Let two messages wait in that of the worker 2, and one be dead there; that of worker 1 has no files yet."""
        super().setUp()
        first, self.path = self.path, os.path.join(self.path, "worker-2")
        os.mkdir(os.path.join(first, "worker-1"), 0o700)
        self.queue = self.open()
        self.queue.append(stored("six", "seven", "eight"))
        row = self.queue.next_batch()[0]
        self.queue.ack([], [dead(row, "HTTP 400")])
        self.inside, self.path = self.path, first

    def test_list(self) -> None:
        """The totals include all workers, and each message names its worker."""
        _, out, err = self.spool("list")
        waiting, refused, mine, theirs, *letters = out.splitlines()

        self.assertEqual("", err)
        self.assertIn("waiting: 5 messages", waiting)
        self.assertIn("dead letters: 3 messages", refused)
        self.assertEqual("  worker 0: 3 waiting, 2 dead letters", mine)
        self.assertEqual("  worker 2: 2 waiting, 1 dead letters", theirs)
        self.assertEqual(["1", "2", "worker-2/1"], [line.split()[0] for line in letters])
        _, out, _ = self.spool("list", "--waiting", "--limit", "4")
        self.assertEqual(["3", "4", "5", "worker-2/2", "…"], [line.split()[0] for line in out.splitlines()[4:]])

    def test_list_json(self) -> None:
        """In JSON, too; messages of the first worker look as they do without others."""
        _, out, _ = self.spool("list", "--json")
        totals, *letters = map(json.loads, out.splitlines())

        self.assertEqual((5, 3), (totals["messages"], totals["dead"]))
        self.assertEqual([(1, None), (2, None), (1, 2)], [(each["id"], each.get("worker")) for each in letters])

    def test_one_directory(self) -> None:
        """The directory of a worker can be named by itself."""
        _, out, _ = self.run_command("spool", "list", self.inside)

        self.assertEqual(["waiting:", "dead", "1"], [line.split()[0] for line in out.splitlines()])

    def test_show(self) -> None:
        """A message is found in its worker's directory only."""
        status, out, err = self.spool("show", "worker-2/1", "1", "--json")
        self.assertEqual((0, ""), (status, err))
        self.assertEqual(["six", "one"], [json.loads(line)["values"]["MESSAGE"] for line in out.splitlines()])
        for place in ("worker-2/5", "worker-7/1"):
            status, out, err = self.spool("show", place)
            self.assertEqual((1, "", f"webhookrx: {place}: there is no message of that number\n"), (status, out, err))

    def test_replay(self) -> None:
        """Each goes back to the queue of its own worker."""
        status, out, err = self.spool("replay", "worker-2/1", "2", "worker-3/1")

        self.assertEqual(1, status)
        self.assertEqual("webhookrx: worker-3/1: there is no such worker\n", err)
        self.assertEqual(["put back 2 as 6", "put back worker-2/1 as worker-2/4"], out.splitlines()[:2])

    def test_drop_all(self) -> None:
        """C{--all} means those of all workers."""
        _, out, _ = self.spool("drop", "--all", "--json")
        self.assertEqual(
            [{"id": 1}, {"id": 2}, {"id": 1, "worker": 2}], [json.loads(line) for line in out.splitlines()]
        )
        self.spool("drop", "--all", "--waiting")
        _, out, _ = self.spool("list")
        self.assertEqual(["waiting: 0 messages, 0B", "dead letters: 0 messages, 0B"], out.splitlines()[:2])

    def test_mistakes(self) -> None:
        """A malformed number is a mistake in the arguments."""
        for text in ("worker-0/1", "worker-/1", "worker-1/", "elsewhere/1", "worker-1/x"):
            status, _, err = self.spool("show", text)
            self.assertEqual(2, status, text)
            self.assertIn("whole number" if "elsewhere" not in text else "worker-N/NUMBER", err)

    def test_link(self) -> None:
        """A link is not followed: it may lead anywhere."""
        os.symlink(self.inside, os.path.join(self.path, "worker-3"))
        _, out, _ = self.spool("list")

        self.assertNotIn("worker 3", out)

    def test_caution(self) -> None:
        """Each directory that others may write to gets a warning."""
        os.chmod(self.inside, 0o777)
        _, _, err = self.spool("list")

        self.assertIn("worker-2 can be written to by others", err)


class ShowTests(SpoolCase):
    """C{spool show}."""

    def test_show(self) -> None:
        """It shows whole messages: waiting ones, and dead letters with their reason."""
        status, out, _ = self.spool("show", "--json", "3", "1")
        three, one = map(json.loads, out.splitlines())

        self.assertEqual(0, status)
        self.assertEqual("three", three["values"]["MESSAGE"])
        self.assertNotIn("reason", three)
        self.assertEqual(("one", "HTTP 422"), (one["values"]["MESSAGE"], one["reason"]))

    def test_exact(self) -> None:
        """Numbers keep their text, and hostile text is escaped."""
        self.queue.append([encode_stored(make_message("\x1b\x7f\u2028\x9b", {"n": msgspec.Raw(b"1.50")}))])
        _, out, _ = self.spool("show", "6")

        self.assertIn('"n": 1.50', out)
        self.assertEqual("\x1b\x7f\u2028\x9b", json.loads(out)["values"]["MESSAGE"])
        self.assertTrue(out.replace("\n", "").isprintable())

    def test_damaged(self) -> None:
        """Data that is no message is shown in hexadecimal."""
        self.queue.append([b"\x01\x00\x00\x00\x00\x00\x00\x00\x01no"])
        _, out, _ = self.spool("show", "6")

        self.assertTrue(json.loads(out)["data"].endswith("6e6f"))
        self.assertIn("not a stored message", json.loads(out)["problem"])

    def test_not_there(self) -> None:
        """An unknown number is an error."""
        status, out, err = self.spool("show", "99", "3")

        self.assertEqual(1, status)
        self.assertEqual("webhookrx: 99: there is no message of that number\n", err)
        self.assertEqual(3, json.loads(out)["id"])


class ReplayTests(SpoolCase):
    """C{spool replay}."""

    def test_one(self) -> None:
        """A dead letter goes back to the end of the queue."""
        self.assertEqual((0, "put back 2 as 6\nput back: 1 messages\n", ""), self.spool("replay", "2"))
        self.queue.refresh()
        self.assertEqual((4, 1), (self.queue.status().messages, self.queue.status().dead))

        self.assertEqual(["three", "four", "five", "two"], self.waiting())

    def test_all(self) -> None:
        """All dead letters go back, in order, without a receiver as well."""
        self.queue.close()
        status, out, _ = self.spool("replay", "--all", "--json")

        self.assertEqual(0, status)
        self.assertEqual([{"id": 1, "new_id": 6}, {"id": 2, "new_id": 7}], list(map(json.loads, out.splitlines())))
        self.assertEqual(["three", "four", "five", "one", "two"], self.waiting())

    def test_not_dead(self) -> None:
        """A waiting message or a damaged dead letter stays as it is."""
        (three, *_) = self.queue.next_batch()
        self.queue.ack([], [dead(three._replace(crc=three.crc ^ 1))])
        status, out, err = self.spool("replay", "3", "4", "99")

        self.assertEqual((1, "put back: 0 messages\n"), (status, out))
        self.assertIn("3: it is damaged", err)
        self.assertIn("4: there is no dead letter of that number", err)
        self.queue.refresh()
        self.assertEqual(3, self.queue.status().dead)


class DropTests(SpoolCase):
    """C{spool drop}."""

    def test_dead(self) -> None:
        """Dead letters are dropped by number; those that wait are not."""
        self.assertEqual((0, "dropped 1\ndropped: 1 messages\n", ""), self.spool("drop", "1"))
        self.assertEqual(1, self.spool("drop", "3")[0])
        self.assertEqual((0, '{"id":2}\n', ""), self.spool("drop", "--all", "--json"))

        self.assertEqual(["three", "four", "five"], self.waiting())
        self.assertEqual(0, self.queue.status().dead)

    def test_waiting(self) -> None:
        """Waiting messages are dropped only with C{--waiting}."""
        self.assertEqual(0, self.spool("drop", "--waiting", "4")[0])
        self.assertEqual(["three", "five"], self.waiting())
        self.queue.append(stored(*map(str, range(250))))
        _, out, _ = self.spool("drop", "--waiting", "--all")

        self.assertIn("dropped: 250 messages", out)
        self.assertEqual([], self.waiting())


class MistakeTests(SpoolCase):
    """Wrong arguments, and commands that can't be done."""

    def test_usage(self) -> None:
        """A mistake in the arguments is reported with status 2, and changes nothing."""
        for arguments in (
            (),
            ("spool",),
            ("spool", "eat", self.path),
            ("spool", "list"),
            ("spool", "list", self.path, "--limit", "0"),
            ("spool", "show", self.path),
            ("spool", "show", self.path, "x"),
            ("spool", "show", self.path, str(2**63)),
            ("spool", "drop", self.path, "--waiting", str(2**63)),
            ("spool", "drop", self.path, "--waiting", "9" * 5000),
            ("spool", "list", self.path, "--limit", str(2**63)),
            ("spool", "drop", self.path),
            ("spool", "drop", self.path, "1", "--all"),
            ("spool", "replay", self.path),
            ("spool", "drop", self.path, "--waiting", "x"),
            ("spool", "drop", self.path, "1", "--no-such-option"),
            ("spool", "list", self.path, "1"),
        ):
            status, _, err = self.run_command(*arguments)
            self.assertEqual(2, status, arguments)
            self.assertIn("usage:", err)

        self.assertEqual(2, self.queue.status().dead)

    def test_no_spool(self) -> None:
        """A missing spool is not created; the error is one line."""
        empty = os.path.join(self.path, "empty")
        os.mkdir(empty)
        for path, text in ((empty, "holds no spool"), (os.path.join(empty, "x\n"), "No such file or directory")):
            for verb in (("list",), ("drop", "--all"), ("replay", "1"), ("show", "1")):
                status, out, err = self.run_command("spool", verb[0], path, *verb[1:])
                self.assertEqual((1, "", 1), (status, out, err.count("\n")))
                self.assertIn(text, err)
        self.assertEqual([], os.listdir(empty))

    def test_not_readable(self) -> None:
        """A file that is no database is reported in one line."""
        self.queue.close()
        with open(os.path.join(self.path, "00000001.sqlite"), "wb") as file:
            file.write(b"x" * 5000)
        status, _, err = self.spool("list")

        self.assertEqual((1, 1), (status, err.count("\n")))
        self.assertIn("SQLITE_NOTADB", err)

    def test_read_only(self) -> None:
        """A read-only disk is reported in one line."""
        with patch.object(SpoolDirectory, "sync", side_effect=OSError(30, "Read-only file system", self.path)):
            status, _, err = self.spool("drop", "--all")

        self.assertEqual((1, 1), (status, err.count("\n")))
        self.assertIn("Read-only file system", err)

    def test_highest_number(self) -> None:
        """The highest possible number belongs to no message."""
        for verb in ("show", "replay", "drop"):
            status, _, err = self.spool(verb, str(2**63 - 1))
            self.assertEqual((1, 1), (status, err.count("\n")), verb)

    def test_open_to_others(self) -> None:
        """A directory that others may write to gets a warning, and is listed."""
        os.chmod(self.path, 0o777)
        status, out, err = self.spool("list")

        self.assertEqual((0, 1), (status, err.count("\n")))
        self.assertIn("can be written to by others than its owner (mode 0777)", err)
        self.assertIn("waiting: 3 messages", out)

    def test_no_regular_file(self) -> None:
        """Only regular files are opened; the error is one line."""
        os.mkfifo(os.path.join(self.path, "00000002.sqlite"))
        for verb in (("list",), ("drop", "--all"), ("replay", "1"), ("show", "1")):
            status, out, err = self.spool(*verb)
            self.assertEqual((1, "", 1), (status, out, err.count("\n")))
            self.assertIn("00000002.sqlite' is no regular file", err)

    def test_failed_file(self) -> None:
        """The newest file is not changed once it has failed; nor are read-only files."""
        directory = SpoolDirectory(self.path)
        directory.mark_failed(1)
        status, _, err = self.spool("drop", "--all")
        self.assertEqual(1, status)
        self.assertIn("has failed", err)
        self.queue.close()
        self.queue = self.open()
        self.queue.append(stored("new"))
        for arguments in (("drop", "1"), ("replay", "1"), ("drop", "--waiting", "3")):
            status, _, err = self.spool(*arguments)
            self.assertEqual(1, status)
            self.assertIn("read-only file", err)
        _, out, _ = self.spool("list", "--waiting", "--json")
        totals, *messages = map(json.loads, out.splitlines())

        self.assertEqual((4, 2), (totals["messages"], totals["dead"]))
        self.assertEqual([3, 4, 5, 10**12 + 1], [message["id"] for message in messages])
