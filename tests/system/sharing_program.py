"""
A worker of a group that does nothing but store batches, for tests that must stand outside it.

Arguments: an observer's spec string; the worker's number, the number of workers, and the descriptor of their lock file;
how many batches it stores; the descriptor to which it writes the texts that are safe; and the number of the batch in
which it is killed after half of a write, 0 for none.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from tests.specs import parse_observer
from webhookrx.filesystem import FileSystem
from webhookrx.service import known_observers
from webhookrx.settings import Group
from webhookrx.testing import make_message

BATCH = 20
#: More than a pipe takes at once, and than it takes whole (C{PIPE_BUF}), if all lines of a batch are counted.
LONGEST = 9000


def die_in_the_middle(fd: int, pieces: Sequence[bytes | memoryview]) -> int:
    """Write half of it, which ends inside a line, and be killed."""
    whole = b"".join(pieces)
    os.write(fd, whole[: whole.index(b"\n", len(whole) // 2) - 1])
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("killed")


def main(spec: str, number: str, size: str, lock_fd: str, batches: str, told: str, last: str) -> None:
    group = Group(int(number), int(size), int(lock_fd))
    observer = known_observers.build_observer(parse_observer(spec), "written", group)
    observer.open()
    for batch in range(1, int(batches) + 1):
        if batch == int(last):
            FileSystem.writev = staticmethod(die_in_the_middle)  # type: ignore[assignment]
        texts = [f"{os.getpid()}-{batch}-{line}-".ljust((batch * line * 37) % LONGEST, "x") for line in range(BATCH)]
        observer.store([observer.prepare(make_message(text)) for text in texts])
        os.write(int(told), b"%d %d\n" % (os.getpid(), batch))
    observer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
