"""
A disk that fails.

C{strace} is attached to the real program under load, and lets the k-th write or the k-th sync fail from there on, for
every k up to 200, with C{EIO} and with C{ENOSPC}; then all of them for a while, with what full, read-only and broken
disks say. What it writes down meanwhile shows each 200 that was sent before a sync had gone well which covered its
message: those are false, whatever the file holds later. A limit on the size of files makes real short writes, one on
open files real C{EMFILE}, and a file system of 8 MiB is really filled.

Through all of this it is one process. It must go on, refuse with 503 and C{Retry-After} what it can't make safe, and
acknowledge again within five seconds of the fault's end. In the end everything that got a 200 is in the file.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from contextlib import suppress
from functools import partial

from tests.system.receiver import NotReached, wait_until
from tests.system.torture.crowd import Crowd
from tests.system.torture.proof import Effort, Figures
from tests.system.torture.small_disk import small_file_system
from tests.system.torture.strace import Attached, need_strace, read_calls
from tests.system.torture.subject import OUTPUT, Output, Subject, observer_options
from tests.system.torture.witness import NEEDED, false_acknowledgements

#: Seconds in which the program must acknowledge again.
SOON = 5.0

MiB = 1024 * 1024

_WRITE = "writev,pwrite64"
_SYNC = "fsync,fdatasync"

#: What a disk says for a while, call by call.
_SPELLS = {
    "broken": (f"{_WRITE},{_SYNC}:error=EIO",),
    "full": (f"{_WRITE}:error=ENOSPC",),
    "no space for what was written": (f"{_SYNC}:error=ENOSPC",),
    "over quota": (f"{_WRITE},{_SYNC}:error=EDQUOT",),
    "read-only": (f"{_WRITE},openat:error=EROFS",),
    "broken, and no more files to open": (f"{_SYNC}:error=EIO", "openat:error=EMFILE"),
}


class Trial:
    """One program under load, the faults it has gone through, and what came of them."""

    def __init__(self, subject: Subject, crowd: Crowd) -> None:
        self.subject = subject
        self.crowd = crowd
        self.faults = 0
        self.false: list[str] = []
        self.slow: list[str] = []
        self.slowest = 0.0
        self.injected = 0

    def fault(self, what: str, injections: tuple[str, ...], seconds: float = 0.0) -> None:
        """Let calls fail: until one has failed, and for so many seconds more."""
        self.faults += 1
        with Attached(self.subject.pid, injections, NEEDED) as attached:
            try:
                wait_until(attached.injected, f"{what} has happened", 30)
                time.sleep(seconds)
            except NotReached as problem:
                self.slow.append(str(problem))
            if not seconds:
                # So that the recording holds what becomes of the messages that the fault has hit.
                self.recovered(what)
            attached.detach()
            if seconds:
                self.recovered(what)
            self.injected += attached.injected()
            self.false += [f"{what}: {token}" for token in false_acknowledgements(read_calls(attached.path))]

    def recovered(self, what: str) -> None:
        """Note how long it takes from now until a message is acknowledged."""
        took = self.crowd.next_acknowledgement(SOON + 1)
        self.slowest = max(self.slowest, took)
        if took > SOON:
            self.slow.append(f"{what}: not within {took} s")


def faults(effort: Effort, kind: str) -> Figures:
    """Prove it for one kind of observer."""
    need_strace()
    with Subject(*observer_options(kind)) as subject:
        output = Output(subject.path(OUTPUT))
        subject.start()
        trial = Trial(subject, Crowd(subject.port, 8, seed=effort.seed).start())
        pid = subject.pid
        for number in effort.pick((1, 2, 9), tuple(range(1, 201))):
            for call in (_WRITE, _SYNC):
                for error in ("EIO", "ENOSPC"):
                    trial.fault(f"{error} at {call} {number}", (f"{call}:error={error}:when={number}",))
        for what, injections in _SPELLS.items():
            trial.fault(what, tuple(f"{injection}:when=1+" for injection in injections), effort.pick(0.3, 3.0))
        for size in effort.pick((0, 700), tuple(range(0, 20_000, 500))):
            _short_write(trial, size)
        _no_more_files(trial)
        alive = subject.is_running and subject.pid == pid
        trial.crowd.stop()
        output.settle(trial.crowd.acknowledged)
        subject.stop()
        output.read()
    return _figures(trial, output, alive)


def faults_file(effort: Effort) -> Figures:
    """The file observer."""
    return faults(effort, "file")


def faults_spool(effort: Effort) -> Figures:
    """The spool, and a file behind it."""
    return faults(effort, "spool")


def _short_write(trial: Trial, size: int) -> None:
    """Let the kernel take so many more bytes of the largest file, then none, then all again."""
    trial.faults += 1
    refused = len(trial.crowd.refusals)
    grown = max(
        os.path.getsize(os.path.join(place, name))
        for place, _, names in os.walk(trial.subject.directory)
        for name in names
        if name != "log" and not name.endswith("-shm")
    )
    hard = resource.prlimit(trial.subject.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(trial.subject.pid, resource.RLIMIT_FSIZE, (grown + size, hard))
    # It may write to a smaller file now, as a database that begins its log anew does.
    with suppress(NotReached):
        wait_until(lambda: len(trial.crowd.refusals) > refused, "a file is at its limit", 5)
    resource.prlimit(trial.subject.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
    trial.recovered(f"short write after {size} bytes")


def _no_more_files(trial: Trial) -> None:
    """Allow no further open file, ask for files to be opened again, and for one more connection."""
    trial.faults += 1
    pid = trial.subject.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    trial.subject.signal(signal.SIGHUP)
    newcomer = Crowd(trial.subject.port, 1)
    time.sleep(0.5)
    trial.recovered("no more files")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    at = time.monotonic()
    newcomer.start().stop()
    took = next(iter(newcomer.acknowledged.values()), at + SOON + 1) - at
    if took > SOON:
        trial.slow.append("a new connection after files could be opened again")


def _figures(trial: Trial, output: Output, alive: bool) -> Figures:
    crowd = trial.crowd
    stored = set(output.order)
    figures = Figures()
    figures.tell("faults", trial.faults)
    figures.tell("calls made to fail", trial.injected)
    figures.tell("acknowledged", len(crowd.acknowledged))
    figures.tell("refused", sum(crowd.refused.values()))
    _judge_answers(figures, crowd)
    figures.none("200 before it was safe", trial.false)
    figures.none("acknowledged and missing", [token for token in crowd.acknowledged if token not in stored])
    figures.at_most("lines cut by a failed write; faults", len(output.unreadable), trial.faults)
    figures.at_least("alive all the time", int(alive), 1)
    figures.none("not back in time", trial.slow)
    figures.at_most("slowest to be back", trial.slowest, SOON, "s")
    return figures


def _judge_answers(figures: Figures, crowd: Crowd) -> None:
    figures.none(
        "refused otherwise than by 503 with Retry-After", [each for each in crowd.refusals if not each.is_polite]
    )
    figures.at_most("without an answer", len(crowd.unanswered), 0)
    figures.none("answers that nobody asked for", crowd.strange)


def full_disk(effort: Effort) -> Figures:
    """A file system of 8 MiB is filled, and gets some room again, several times."""
    rounds = effort.pick(2, 8)
    took = []
    with Subject("--observer", f"file:small/{OUTPUT}") as subject, small_file_system(subject.path("small")):
        for number in range(rounds):
            with open(subject.path(f"small/ballast{number}"), "wb") as file:
                file.write(bytes(MiB * 6 // rounds))
        output = Output(subject.path(f"small/{OUTPUT}"))
        subject.start()
        crowd = Crowd(subject.port, 8, sizes=(10_000, 30_000), seed=effort.seed).start()
        for number in range(rounds):
            refused = len(crowd.refusals) + 20
            wait_until(partial(_has_refused, crowd, refused), "it is full", 60)
            os.remove(subject.path(f"small/ballast{number}"))
            took.append(crowd.next_acknowledgement(SOON + 1))
        alive = subject.is_running
        crowd.stop(1)
        subject.stop()
        output.read()
    stored = set(output.order)
    figures = Figures()
    figures.tell("times that there was room again", rounds)
    figures.tell("acknowledged", len(crowd.acknowledged))
    figures.tell("refused", sum(crowd.refused.values()))
    _judge_answers(figures, crowd)
    figures.none("acknowledged and missing", [token for token in crowd.acknowledged if token not in stored])
    figures.at_most("lines cut by a failed write; refusals", len(output.unreadable), sum(crowd.refused.values()))
    figures.at_least("alive all the time", int(alive), 1)
    figures.at_most("slowest to be back", max(took), SOON, "s")
    return figures


def _has_refused(crowd: Crowd, count: int) -> bool:
    return len(crowd.refusals) >= count
