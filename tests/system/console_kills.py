"""
Kills a process that writes to a console's store, again and again, and counts the accepted changes that are lost.

C{python -m tests.system.console_kills [KILLS]} prints the figures; it ends with 1 when a change is lost or half there.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import tempfile
from typing import NamedTuple

from webhookrx.console.store.files import StoreFiles

#: Changes that are accepted before a kill, at most.
MOST_BEFORE = 60


class KillFigures(NamedTuple):
    """
    What came of it.

    @ivar lost: changes that were accepted and are not there.
    @ivar half: times that a transaction was there in part.
    """

    kills: int
    accepted: int
    lost: int
    half: int


def kill_writers(path: str, kills: int, seed: int) -> KillFigures:
    """
    Start a writer, kill it after a random number of accepted changes, look at the store; as often as asked for.

    @raise AssertionError: a writer wrote nothing.
    """
    numbers = random.Random(seed)
    accepted = lost = half = 0
    for _ in range(kills):
        wanted = numbers.randint(1, MOST_BEFORE)
        command = [sys.executable, "-m", "tests.system.console_store_program", path]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(wanted)]
            process.kill()
            # What was accepted between the last of them and the kill.
            lines += process.stdout.readlines()
        said = [int(line) for line in lines if line.endswith("\n")]
        assert said, "the writer wrote nothing"
        accepted += len(said)
        files = StoreFiles(path)
        there, changed, newest = files.reader.read(_what_is_there)
        lost += len(set(said) - there)
        half += there != changed or newest != max(there)
        files.close()
    return KillFigures(kills, accepted, lost, half)


def _what_is_there(db: sqlite3.Connection) -> tuple[set[int], set[int], int]:
    """Return the numbers of revisions, those of changes, and the setting."""
    there = {number for (number,) in db.execute("SELECT number FROM revision")}
    changed = {number for (number,) in db.execute("SELECT revision FROM change")}
    (newest,) = db.execute("SELECT value FROM setting WHERE name = 'newest'").fetchone()
    return there, changed, int(newest)


def main(kills: int) -> int:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as directory:
        figures = kill_writers(f"{directory}/console.sqlite", kills, seed=kills)
    _, accepted, lost, half = figures
    print(f"{kills} kills, {accepted:,} changes accepted: {lost} lost, {half} times one half there")
    return 1 if lost or half else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
