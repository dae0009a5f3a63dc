"""
A spool on a file system that is full.

Senders post while the HTTP server behind the spool is away, until the spool has filled its file system and refuses.
Then, on one of 8 MiB and on larger ones, round after round: the server is back, and all that waits must get there and
the spool must take messages again, soon; or somebody else takes what is left of the file system, to the last byte, and
what waits must get there all the same, from a process that was started only then. A person drops all that waits by the
command, which must work, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial

from tests.system.receiver import ROOT, NotReached, wait_until
from tests.system.torture.crowd import Crowd
from tests.system.torture.other_end import OtherEnd
from tests.system.torture.proof import Effort, Figures, Skipped
from tests.system.torture.small_disk import small_file_system
from tests.system.torture.subject import Subject

#: Seconds in which the spool must take messages again.
SOON = 5.0

_DISK = "small"


def full_disk_spool(effort: Effort) -> Figures:
    """Prove it for each file system."""
    figures = Figures()
    disks = [("tmpfs", 8, ""), ("tmpfs", 8, "min_free=0:"), ("tmpfs", 8, "full=drop-oldest:"), ("ext4", 24, "")]
    disks += effort.pick([], [("tmpfs", 40, ""), ("tmpfs", 40, "min_free=0:"), ("ext4", 24, "min_free=0:")])
    for kind, mib, options in disks:
        name = f"{kind} {mib} MiB {options.rstrip(':')}".rstrip()
        try:
            _Filled(kind, mib, options, effort).prove(figures, name)
        except Skipped as reason:
            if kind == "tmpfs":
                raise
            figures.tell(name, f"skipped: {reason}")
    return figures


class _Filled:
    """One file system, and what came of filling it."""

    def __init__(self, kind: str, mib: int, options: str, effort: Effort) -> None:
        self._kind = kind
        self._mib = mib
        self._effort = effort
        self._drops = "drop-oldest" in options
        self._other_end = OtherEnd()
        url = f"http://127.0.0.1:{self._other_end.port}/in"
        self._subject = Subject("--observer", f"spool:{_DISK}/spool:{options}observer=http:{url}")
        self._took: list[float] = []
        self._waited: set[str] = set()

    def prove(self, figures: Figures, name: str) -> None:
        with self._subject as subject, small_file_system(subject.path(_DISK), self._mib, self._kind):
            subject.start()
            crowd = Crowd(subject.port, 8, sizes=(100, 9000), seed=self._effort.seed).start()
            if self._drops:
                time.sleep(self._effort.pick(4, 20))
                refused = len(crowd.refusals)
            else:
                refused = 0
                for number in range(self._effort.pick(2, 6)):
                    self._fill(crowd)
                    self._drain(crowd, squeezed=number % 2 == 1)
                self._fill(crowd)
            acknowledged = len(crowd.acknowledged)
            status = self._drop()
            if len(crowd.acknowledged) == acknowledged:
                self._took.append(crowd.next_acknowledgement(SOON + 1))
            alive = subject.is_running
            crowd.stop(1)
            subject.stop()
        arrived = set(self._other_end.order)
        figures.tell(f"{name}: acknowledged", len(crowd.acknowledged))
        figures.at_most(f"{name}: slowest to take again", max(self._took, default=0.0), SOON, "s")
        figures.at_least(f"{name}: alive all the time", int(alive), 1)
        figures.none(f"{name}: impolite", [each for each in crowd.refusals if not each.is_polite])
        if self._drops:
            figures.at_most(f"{name}: refused", refused, 0)
        else:
            # The receiver drops nothing itself, so all that the command names is there.
            figures.at_most(f"{name}: exit status of the command", status, 0)
            figures.none(f"{name}: acknowledged and missing", sorted(self._waited - arrived))

    def _fill(self, crowd: Crowd) -> None:
        refused = len(crowd.refusals) + 20
        wait_until(partial(_has_refused, crowd, refused), "it is full", 60)

    def _drain(self, crowd: Crowd, *, squeezed: bool) -> None:
        """Let the other end be back until all that waited is there, and the spool takes messages again."""
        ballast = self._subject.path(f"{_DISK}/ballast")
        if squeezed:
            with suppress(OSError), open(ballast, "wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
            # One that is killed meanwhile drains what it finds, too.
            self._subject.kill()
            self._subject.start()
        self._waited = waiting = set(crowd.acknowledged)
        self._other_end.open()
        with suppress(NotReached):
            wait_until(lambda: waiting <= set(self._other_end.order), "all is there", 60)
        if squeezed:
            os.remove(ballast)
        # Not after it is away again: the crowd fills the spool faster than anybody looks.
        self._took.append(crowd.next_acknowledgement(SOON + 1))
        self._other_end.close()

    def _drop(self) -> int:
        """Drop all that waits, as a person does, and return the exit status."""
        command = [sys.executable, "-m", "webhookrx", "spool", "drop", f"{_DISK}/spool", "--all", "--waiting"]
        environment = {**os.environ, "PYTHONPATH": ROOT}
        done = subprocess.run(command, cwd=self._subject.directory, env=environment, capture_output=True, text=True)
        return done.returncode


def _has_refused(crowd: Crowd, count: int) -> bool:
    return len(crowd.refusals) >= count
