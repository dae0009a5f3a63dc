"""
Clocks that jump, and a process that stands still.

The wall clock of the program is set back and forward by up to a day under load; C{time.time} of its process is
replaced for that, and with it the time of Twisted's own timers. No request may fail. Then the process is stopped for
a minute and goes on (C{SIGSTOP}, C{SIGCONT}), which a suspended or migrated machine looks like: deadlines have passed
meanwhile, so senders may be cut off, but nothing that was acknowledged is lost, and nobody gets two answers.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import time

from tests.system.torture.crowd import Crowd
from tests.system.torture.proof import Effort, Figures
from tests.system.torture.subject import OUTPUT, Output, Subject, observer_options

_HOUR = 3600.0
_DAY = 24 * _HOUR

#: Imported by every Python process before anything else.
_SITE_CUSTOMIZE = """
import mmap, os, struct, time
with open(os.environ["TORTURE_CLOCK"], "r+b") as _file:
    _shift = mmap.mmap(_file.fileno(), 8)
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + struct.unpack("d", _shift)[0]
time.time_ns = lambda: _time_ns() + int(struct.unpack("d", _shift)[0] * 1e9)
"""


class ShiftedClock:
    """What a process takes for the time, in a directory of its own."""

    def __init__(self, directory: str) -> None:
        os.mkdir(directory)
        path = os.path.join(directory, "shift")
        with open(path, "wb") as file:
            file.write(struct.pack("d", 0.0))
        with open(os.path.join(directory, "sitecustomize.py"), "w") as file:
            file.write(_SITE_CUSTOMIZE)
        self.environment = {"PYTHONPATH": directory, "TORTURE_CLOCK": path}
        with open(path, "r+b") as file:
            self._shift = mmap.mmap(file.fileno(), 8)

    def shift(self, seconds: float) -> None:
        """Let the process be so many seconds ahead of the true time."""
        self._shift[:] = struct.pack("d", seconds)


def clock(effort: Effort) -> Figures:
    """Set the wall clock."""
    chance = effort.random("clock")
    shifts = [-_DAY, 0.0, _DAY, 0.0, -_HOUR, _HOUR, 0.0, -1.0, 1.0, 0.0]
    shifts += [chance.uniform(-_DAY, _DAY) for _ in range(effort.pick(0, 50))]
    slowest = 0.0
    with Subject(*observer_options("file")) as subject:
        shifted = ShiftedClock(subject.path("clock"))
        subject.use(shifted.environment)
        subject.start()
        crowd = Crowd(subject.port, 16, seed=effort.seed).start()
        for shift in shifts:
            shifted.shift(shift)
            slowest = max(slowest, crowd.next_acknowledgement())
            time.sleep(effort.pick(0.2, 2.0))
        alive, output = _end(subject, crowd)
    figures = Figures()
    figures.tell("times that the clock was set", len(shifts))
    _judge(figures, crowd, output)
    figures.at_most("failed requests", len(crowd.unanswered) + sum(crowd.refused.values()), 0)
    figures.at_most("longest without a 200 after that", slowest, 2.0, "s")
    figures.at_least("alive all the time", int(alive), 1)
    return figures


def stand_still(effort: Effort) -> Figures:
    """Stop the process, and let it go on."""
    back = 0.0
    with Subject(*observer_options("file")) as subject:
        subject.start()
        crowd = Crowd(subject.port, 16, seed=effort.seed).start()
        for _ in range(effort.pick(2, 3)):
            time.sleep(0.3)
            subject.signal(signal.SIGSTOP)
            time.sleep(effort.pick(1.0, 60.0))
            subject.signal(signal.SIGCONT)
            back = max(back, crowd.next_acknowledgement())
        alive, output = _end(subject, crowd)
    figures = Figures()
    _judge(figures, crowd, output)
    figures.tell("without an answer, sent again", len(crowd.unanswered))
    figures.tell("refused, sent again", sum(crowd.refused.values()))
    figures.at_most("slowest to be back", back, 5.0, "s")
    figures.at_least("alive all the time", int(alive), 1)
    return figures


def _end(subject: Subject, crowd: Crowd) -> tuple[bool, Output]:
    """Stop the senders and the process; return whether it was alive up to then, and what it has written."""
    crowd.stop()
    alive = subject.is_running
    subject.stop()
    output = Output(subject.path(OUTPUT))
    output.read()
    return alive, output


def _judge(figures: Figures, crowd: Crowd, output: Output) -> None:
    stored = set(output.order)
    figures.tell("acknowledged", len(crowd.acknowledged))
    figures.none("acknowledged and missing", [token for token in crowd.acknowledged if token not in stored])
    figures.none("answers that nobody asked for", crowd.strange)
    figures.none("unreadable lines", output.unreadable)
    figures.at_most("there twice; not answered or refused", len(output.order) - len(stored), crowd.open_questions)
