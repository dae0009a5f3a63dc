"""
A spool whose files can't be locked for a while, or can't be read.

The first proof lets every call for a lock fail with C{ENOLCK} for three seconds. What SQLite could not let go of then
stays locked for as long as the process has the file open; so it must give the file up, and acknowledge again soon.

The second one lets each read of the newest file fail with C{EIO}, for as long as the proof lasts, while the observer
behind has hung, so that only what stores messages looks at the file. The first batch may be refused; all others go to
a new file. Once reads go well and the observer answers, it must get all that was acknowledged.
"""

from __future__ import annotations

import socket
import sqlite3
import time
from contextlib import suppress

from tests.system.receiver import NotReached, wait_until
from tests.system.torture.crowd import Crowd
from tests.system.torture.other_end import OtherEnd
from tests.system.torture.proof import Effort, Figures
from tests.system.torture.strace import Attached, need_strace
from tests.system.torture.subject import OUTPUT, Output, Subject, observer_options

#: Seconds within which it must acknowledge again when locks have failed: SQLite asks for one for ten at a time.
UNLOCKED = 40.0
#: The same when reads fail.
SOON = 5.0

_SPELL = 3.0


def stuck_locks(effort: Effort) -> Figures:
    """Locks that fail from the k-th call of each thread on."""
    need_strace()
    figures = Figures()
    slowest, given_up, missing, alive, acknowledged = 0.0, 0, list[str](), 0, 0
    firsts = effort.pick((2, 3), tuple(range(1, 21)))
    for first in firsts:
        with Subject(*observer_options("spool")) as subject:
            output = Output(subject.path(OUTPUT))
            subject.start()
            crowd = Crowd(subject.port, 8, seed=effort.seed).start()
            time.sleep(0.5)
            with Attached(subject.pid, (f"fcntl:error=ENOLCK:when={first}+",)):
                time.sleep(_SPELL)
            slowest = max(slowest, crowd.next_acknowledgement(UNLOCKED + 1))
            crowd.stop()
            output.settle(crowd.acknowledged)
            alive += subject.is_running
            acknowledged += len(crowd.acknowledged)
            missing += sorted(set(crowd.acknowledged) - set(output.order))
            given_up += _log_of(subject).count("it is read-only now")
            subject.stop()
    figures.tell("spells", len(firsts))
    figures.tell("acknowledged", acknowledged)
    figures.tell("files given up", given_up)
    figures.at_most("slowest to be back", slowest, UNLOCKED, "s")
    figures.none("acknowledged and missing", missing)
    figures.at_least("alive all the time", alive, len(firsts))
    return figures


def unreadable(effort: Effort) -> Figures:
    """A newest file that can't be read, and nobody but who stores looks at it."""
    need_strace()
    figures = Figures()
    other_end = OtherEnd()
    with Subject("--observer", f"spool:spool:observer=http:http://127.0.0.1:{other_end.port}/in") as subject:
        with socket.create_server(("127.0.0.1", other_end.port)):
            subject.start()
            crowd = Crowd(subject.port, 4, rate=50, seed=effort.seed).start()
            # By now the drainer waits for an answer to its first batch.
            time.sleep(1)
            path = subject.path("spool/00000001.sqlite")
            with Attached(subject.pid, ("pread64:error=EIO",), paths=(path, path + "-wal")) as attached:
                _change(path)
                with suppress(NotReached):
                    wait_until(attached.injected, "a read has failed")
                took = crowd.next_acknowledgement(SOON + 1)
                refused = len(crowd.refusals)
                time.sleep(effort.pick(1, 15))
                refused_later = len(crowd.refusals) - refused
                failed = attached.injected()
            crowd.stop()
        other_end.open()
        with suppress(NotReached):
            wait_until(lambda: crowd.acknowledged.keys() <= set(other_end.order), "all is there", 90)
        given_up = _log_of(subject).count("it is read-only now")
        alive = subject.is_running
        subject.stop()
    other_end.close()
    figures.at_least("reads made to fail", failed, 1)
    figures.at_least("files given up", given_up, 1)
    figures.tell("acknowledged", len(crowd.acknowledged))
    figures.tell("refused at first", refused)
    figures.at_most("refused later", refused_later, 0)
    figures.at_most("back while reads still fail, after", took, SOON, "s")
    figures.none("impolite", [each for each in crowd.refusals if not each.is_polite])
    figures.none("acknowledged and missing", sorted(crowd.acknowledged.keys() - set(other_end.order)))
    figures.at_least("alive all the time", int(alive), 1)
    return figures


def _change(path: str) -> None:
    """Change a file as a person's command does, so that a receiver has to read it again."""
    db = sqlite3.connect(path, timeout=5)
    for statement in ("INSERT INTO passed VALUES (9999999, 0, 0, 0)", "DELETE FROM passed WHERE file = 9999999"):
        db.execute(statement)
        db.commit()
    db.close()


def _log_of(subject: Subject) -> str:
    with open(subject.path("log")) as file:
        return file.read()
