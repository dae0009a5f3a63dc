"""
A short run of each proof, and proof that they can fail.
"""

from __future__ import annotations

import os
import random

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.system.torture.all_proofs import PROOFS
from tests.system.torture.disk import NEVER, Disk, Fate
from tests.system.torture.proof import Effort, Figures, Skipped
from tests.system.torture.strace import Call, read_calls
from tests.system.torture.subject import Output
from tests.system.torture.witness import false_acknowledgements

#: Of everything random here; C{python -m tests.system.torture --seed} takes it, too.
SEED = 20261120


class ShortRunTests(SynchronousTestCase):
    """
    What takes hours in the long run, in seconds.
    """

    def prove(self, name: str) -> None:
        """Run a proof; all goals that a short run has are met."""
        try:
            figures = PROOFS[name](Effort(False, SEED))
        except Skipped as reason:
            raise SkipTest(str(reason)) from None
        self.assertEqual([], figures.missed, f"\n{figures.table()}")


def _test_of(name: str) -> object:
    def test(self: ShortRunTests) -> None:
        self.prove(name)

    test.__doc__ = f"The proof C{{{name}}} holds."
    return test


for _name in PROOFS:
    setattr(ShortRunTests, f"test_{_name.replace('-', '_')}", _test_of(_name))


def calls_of(*lines: str) -> list[Call]:
    """Return system calls from how C{strace} writes them, of two threads by turns."""
    path = f"recording-{random.getrandbits(32):x}"
    with open(path, "w") as file:
        file.writelines(f"{line}\n" for line in lines)
    return list(read_calls(path, 1))


_CONNECTION = "9<TCP:[127.0.0.1:80->127.0.0.1:4000]>"
_FILE = "7</disk/messages.jsonl>"
_ASKED = f'1 recvfrom({_CONNECTION}, "POST /in HTTP/1.1\\r\\n\\r\\n~1.2.3~xx", 65536, 0, NULL, NULL) = 33'
_WRITTEN = f'2 writev({_FILE}, [{{iov_base="{{\\"MESSAGE\\":\\"~1.2.3~xx\\"}}\\n", iov_len=24}}], 1) = 24'
_SYNCED = f"2 fdatasync({_FILE}) = 0"
_FAILED = f"2 fdatasync({_FILE}) = -1 EIO (Input/output error) (INJECTED)"
_TOLD = f'1 sendto({_CONNECTION}, "HTTP/1.1 200 OK\\r\\n\\r\\n", 19, 0, NULL, 0) = 19'
_REFUSED = f'1 sendto({_CONNECTION}, "HTTP/1.1 503 Service Unavailable\\r\\n\\r\\n", 36, 0, NULL, 0) = 36'


class WitnessTests(SynchronousTestCase):
    """
    Who looks for a false 200 finds it.
    """

    def test_order(self) -> None:
        """A 200 is true after a sync that began after the write and went well, and false in any other order."""
        for name, lines, false in (
            ("written, synced, told", (_ASKED, _WRITTEN, _SYNCED, _TOLD), False),
            ("told before the sync", (_ASKED, _WRITTEN, _TOLD, _SYNCED), True),
            ("never written", (_ASKED, _SYNCED, _TOLD), True),
            ("synced before it was written", (_ASKED, _SYNCED, _WRITTEN, _TOLD), True),
            ("a sync that failed", (_ASKED, _WRITTEN, _FAILED, _TOLD), True),
            ("a second sync after one that failed", (_ASKED, _WRITTEN, _FAILED, _SYNCED, _TOLD), True),
            ("written anew after a sync that failed", (_ASKED, _WRITTEN, _FAILED, _WRITTEN, _SYNCED, _TOLD), False),
            ("refused", (_ASKED, _WRITTEN, _FAILED, _REFUSED), False),
        ):
            self.assertEqual(["~1.2.3~"] if false else [], false_acknowledgements(calls_of(*lines)), name)

    def test_beside_each_other(self) -> None:
        """A sync that began before the write was back does not cover it."""
        begun, back = f"3 fdatasync({_FILE} <unfinished ...>", "3 <... fdatasync resumed>) = 0"
        self.assertEqual(["~1.2.3~"], false_acknowledgements(calls_of(_ASKED, begun, _WRITTEN, back, _TOLD)))
        self.assertEqual([], false_acknowledgements(calls_of(_ASKED, _WRITTEN, begun, back, _TOLD)))


class DiskTests(SynchronousTestCase):
    """
    The disk that forgets.
    """

    def follow(self, *lines: str) -> Disk:
        """Return the disk after some calls."""
        disk = Disk("/disk")
        disk.follow(calls_of(*lines))
        return disk

    def states(self, disk: Disk, kind: str, moment: int = NEVER) -> set[bytes | None]:
        """Return all contents of the file that a hundred crashes have left; None when it was not there."""
        return {disk.crash(moment, Fate(kind, random.Random(seed))).files.get("messages.jsonl") for seed in range(100)}

    opened = (
        '1 openat(AT_FDCWD</disk>, "/disk/messages.jsonl", O_WRONLY|O_CREAT|O_APPEND, 0640) = 7</disk/messages.jsonl>',
        '1 openat(AT_FDCWD</disk>, "/disk", O_RDONLY|O_CLOEXEC|O_DIRECTORY) = 8</disk>',
    )
    named = "1 fsync(8</disk>) = 0"
    line = b'{"MESSAGE":"~1.2.3~xx"}\n'

    def test_name(self) -> None:
        """A new file may be gone until its directory was synced, however often it was synced itself."""
        disk = self.follow(*self.opened, _WRITTEN, _SYNCED)
        self.assertEqual({None}, self.states(disk, "nothing"))
        self.assertEqual({self.line}, self.states(disk, "everything"))
        self.assertEqual({self.line}, self.states(self.follow(*self.opened, self.named, _WRITTEN, _SYNCED), "nothing"))

    def test_data(self) -> None:
        """Unsynced bytes may be gone or zeros; synced ones are there from the end of the sync."""
        unsynced = self.follow(*self.opened, self.named, _WRITTEN)
        self.assertEqual({b""}, self.states(unsynced, "nothing"))
        self.assertEqual({b"", bytes(len(self.line)), self.line}, self.states(unsynced, "torn"))
        synced = self.follow(*self.opened, self.named, _WRITTEN, _SYNCED)
        for kind in Fate.KINDS:
            self.assertEqual({self.line}, self.states(synced, kind), kind)
        self.assertEqual({b""}, self.states(synced, "nothing", 5))

    def test_tearing(self) -> None:
        """A write is torn where 512 bytes of the file end."""
        long = f'2 writev({_FILE}, [{{iov_base="{"x" * 1000}", iov_len=1000}}], 1) = 1000'
        torn = self.states(self.follow(*self.opened, self.named, long), "torn")
        x, o = b"x", b"\0"
        self.assertEqual({b"", x * 512, x * 1000, o * 512 + x * 488, x * 512 + o * 488, o * 1000}, torn - {None})


class OutputTests(SynchronousTestCase):
    """
    What counts as torn.
    """

    def test_torn(self) -> None:
        """The beginning of a line is torn once, after a crash that has left it so, and unreadable otherwise."""
        whole, part = b'{"MESSAGE":"~1.2.3~xx"}\n', b'{"MESS'
        for name, content, crashed, after, torn, unreadable in (
            ("closed off", whole + part, True, b"\n" + whole, 1, 0),
            ("not closed off", whole + part, True, whole, 0, 1),
            ("without a crash", whole + part, False, b"\n" + whole, 0, 1),
            ("inside", part + b"\n" + whole, True, whole, 0, 1),
        ):
            path = f"output-{name}"
            with open(path, "wb") as file:
                file.write(content)
            output = Output(path)
            if crashed:
                output.crashed()
            with open(path, "ab") as file:
                file.write(after)
            output.read()
            self.assertEqual((torn, unreadable), (output.torn, len(output.unreadable)), name)
            os.remove(path)


class FiguresTests(SynchronousTestCase):
    """
    Goals.
    """

    def test_goals(self) -> None:
        """A goal is met up to its limit, and missed beyond it; what is missed is told."""
        figures = Figures()
        figures.at_most("few", 2, 2)
        figures.at_least("many", 2, 2)
        figures.none("bad", [])
        self.assertEqual([], figures.missed)
        figures.at_most("few", 3, 2)
        figures.at_least("many", 1, 2)
        figures.none("bad", ["this one"])
        self.assertEqual(3, len(figures.missed))
        self.assertIn("this one", figures.table())
