"""
The power goes at any moment.

Runs of the real program under load are recorded, call by call; some are killed and started again, some have their file
renamed between two processes, as logrotate does, in some a sync fails. From each recording the disk is built as a crash
may leave it, by the model of L{tests.system.torture.disk}: at each call in turn, with unsynced writes and names lost,
kept, in another order or torn. The code that would run at the next start then opens that state. It must start, and
every message whose 200 had begun to leave the machine must be there, in a line that can be read, and a new message
behind it.

For the spool, that is what reaches the file behind it once the spool has been emptied; that file is on the same disk.

Two checks of the proof itself: what the model says of a whole recording is what really is on the disk afterwards; and
when it is told that nothing was ever synced, it must find losses.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Collection
from random import Random

from tests.system.receiver import NotReached, wait_until
from tests.system.torture.crowd import Crowd
from tests.system.torture.disk import NEVER, Disk, Fate
from tests.system.torture.proof import Effort, Figures
from tests.system.torture.recover import RECOVERIES
from tests.system.torture.strace import Call, need_strace, read_calls, recording_prefix, wait_for_end
from tests.system.torture.subject import OUTPUT, Subject, observer_options

#: What C{strace} is told, so that one sync fails, early enough to hit the start of some.
_FAILING = "fsync,fdatasync:error=EIO:when={}"

#: Bytes of bodies, and how many messages are enough then.
_SHAPES = (((20, 60), 200), ((100, 300), 200), ((300, 3000), 100), ((5_000, 30_000), 30))


def powercut(effort: Effort, kind: str) -> Figures:
    """Prove it for one kind of observer."""
    need_strace()
    runs = effort.pick(2, 24)
    # A spool takes longer to look at.
    states = effort.pick(150 if kind == "spool" else 400, 14_400) // runs
    control = effort.pick(15, 20)
    tally = Tally()
    for run in range(runs):
        chance = effort.random("powercut", kind, run)
        disk = _recording(kind, chance, run, tally)
        tally.recordings += 1
        tally.acknowledged += len(disk.acknowledged)
        tally.failed_syncs += disk.failed_syncs
        for moment, fate in crashes(disk, states, chance):
            tally.crash(disk, moment, fate, kind)
        disk.without_syncs()
        tally.control += sum(
            bool(lost_in(disk, moment, Fate("subset", chance), kind).missing)
            for moment in chance.choices(disk.moments, k=control)
        )
    return tally.figures(runs * states)


def powercut_file(effort: Effort) -> Figures:
    """The file observer."""
    return powercut(effort, "file")


def powercut_spool(effort: Effort) -> Figures:
    """The spool, and a file behind it."""
    return powercut(effort, "spool")


class Found:
    """What the next start makes of one state."""

    def __init__(self, missing: list[str], failed: str, last: bool) -> None:
        self.missing = missing
        self.failed = failed
        self.last = last


class Tally:
    """What was found over all."""

    def __init__(self) -> None:
        self.recordings = 0
        self.acknowledged = 0
        self.failed_syncs = 0
        self.control = 0
        self.states: Counter[str] = Counter()
        self.distinct: set[int] = set()
        self.missing: list[str] = []
        self.failed: list[str] = []
        self.spoiled: list[str] = []
        self.unlike: list[str] = []

    def crash(self, disk: Disk, moment: int, fate: Fate, kind: str) -> None:
        """Build one state, recover it and note what is wrong."""
        self.states[fate.kind] += 1
        found = lost_in(disk, moment, fate, kind, self.distinct)
        where = f"recording {self.recordings}, {fate.kind} at call {moment}"
        self.missing += [f"{where}: {token}" for token in found.missing]
        if found.failed:
            self.failed.append(f"{where}: {found.failed}")
        elif not found.last:
            self.spoiled.append(where)

    def figures(self, planned: int) -> Figures:
        """Return it all."""
        figures = Figures()
        figures.tell("recorded runs", self.recordings)
        figures.tell("acknowledged in them", self.acknowledged)
        figures.tell("syncs that failed in them", self.failed_syncs)
        figures.none("recordings unlike the disk they left", self.unlike)
        figures.at_least("crash states", self.states.total(), planned)
        figures.tell("  that differ from each other", len(self.distinct))
        for kind in Fate.KINDS:
            figures.tell(f"  unsynced: {kind}", self.states[kind])
        figures.none("recovery did not start", self.failed)
        figures.none("acknowledged and missing", self.missing)
        figures.none("next message not readable", self.spoiled)
        figures.at_least("losses found were nothing synced (control)", self.control, 1)
        return figures


def _recording(kind: str, chance: Random, run: int, tally: Tally) -> Disk:
    """Record a run; again, where it was killed inside a call of which only the file tells whether it has happened."""
    for _ in range(5):
        disk, is_like = record(kind, chance, run)
        if is_like or not disk.doubtful:
            break
    if not is_like:
        tally.unlike.append(f"recording {run}")
    return disk


def record(kind: str, chance: Random, run: int) -> tuple[Disk, bool]:
    """
    Run the real program, in one to three processes one after the other.

    @return: the disk that has followed it, and whether that is like the real one.
    """
    sizes, enough = _SHAPES[run % len(_SHAPES)]
    processes = 1 + run % 3
    fails = bool(run % 2)
    begin = 0
    with Subject(*observer_options(kind)) as subject:
        disk = Disk(subject.directory)
        trace = subject.path("strace")
        while processes:
            if os.path.exists(subject.path(OUTPUT)) and kind == "file" and chance.random() < 0.5:
                begin += 2
                disk.follow([_rename(subject, begin)])
            subject.prefix = recording_prefix(trace, *([_FAILING.format(chance.randint(8, 30))] if fails else ()))
            try:
                subject.start()
            except NotReached:
                # A sync has failed that the start can't do without. That is as good an end as any, but not the last.
                if not fails or subject.is_running:
                    raise
            else:
                processes -= 1
                # One alone makes enough syncs for one of them to fail.
                clients = 1 if fails else chance.choice((1, 4, 32))
                _use(subject, Crowd(subject.port, clients, sizes=sizes, seed=run), enough, chance)
            fails = False
            wait_for_end(trace, subject.pid)
            calls = list(read_calls(trace, begin + 1))
            disk.follow(calls)
            begin = max(call.end for call in calls)
            os.remove(trace)
        return disk, disk.crash(NEVER, Fate("everything", chance)).files == _what_is_in(subject.directory)


def _use(subject: Subject, crowd: Crowd, enough: int, chance: Random) -> None:
    """Post until enough is acknowledged; then kill the process, or end it."""
    crowd.start()
    is_enough: Callable[[], bool] = lambda: len(crowd.acknowledged) >= enough  # noqa: E731
    wait_until(is_enough, "enough is acknowledged", 60)
    if chance.random() < 0.5:
        subject.kill()
        crowd.stop(0)
    else:
        crowd.stop()
        subject.stop()


def crashes(disk: Disk, count: int, chance: Random) -> list[tuple[int, Fate]]:
    """Choose moments and fates: each moment once before any a second time, and each kind about as often."""
    moments: list[int] = []
    while len(moments) < count:
        more = disk.moments
        chance.shuffle(more)
        moments += more
    return [(moment, Fate(Fate.KINDS[number % 5], chance)) for number, moment in enumerate(moments[:count])]


def lost_in(disk: Disk, moment: int, fate: Fate, kind: str, distinct: set[int] | None = None) -> Found:
    """Build a state, let the real code recover it, and return what it says."""
    state = disk.crash(moment, fate)
    expected = disk.acknowledged_before(moment)
    if distinct is not None:
        distinct.add(hash((frozenset(state.files.items()), len(expected))))
    # In memory where there is such a place: what is synced here needs no disk.
    directory = tempfile.mkdtemp(prefix="webhookrx-crash-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        state.write(directory)
        try:
            found, last = RECOVERIES[kind](directory)
        except Exception as error:
            return Found([], f"{type(error).__name__}: {error}", False)
        return Found(_missing(expected, found), "", last)
    finally:
        shutil.rmtree(directory)


def _missing(expected: Collection[str], found: set[str]) -> list[str]:
    return [token for token in expected if token not in found]


def _rename(subject: Subject, number: int) -> Call:
    """Rename the file of messages, and return the call that did it."""
    old, new = subject.path(OUTPUT), subject.path(f"{OUTPUT}.{number}")
    os.rename(old, new)
    return Call("rename", f'"{old}", "{new}"'.encode(), number, number, 0)


def _what_is_in(directory: str) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for place, directories, files in os.walk(directory):
        inside = os.path.relpath(place, directory)
        for name in directories:
            found[os.path.normpath(os.path.join(inside, name))] = None
        for name in files:
            path = os.path.normpath(os.path.join(inside, name))
            if path not in ("log", "strace") and not path.endswith("-shm"):
                with open(os.path.join(place, name), "rb") as file:
                    found[path] = file.read()
    return found
