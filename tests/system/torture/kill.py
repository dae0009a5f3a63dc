"""
C{kill -9} at any moment.

Thirty-two senders post as fast as they are answered. Each round ends with C{SIGKILL} at a random moment; the next
process starts on what the last has left, and the senders send again what got no answer. In the end, all that ever got
a 200 must be in the file, in lines that can be read. A message stands there twice when its first sending was stored
and not answered; so that may happen at most as often as a request had no answer. Behind a spool it may happen to the
batch, too, that was on its way at the kill, since the spool can't know whether the file has it.

A file can end in the middle of a line after a crash. That line stays, and the next process begins a new one: such a
line is counted as torn, when it is exactly what stood behind the last line end at the crash, and everything else that
is not a message is unreadable.
"""

from __future__ import annotations

import time

from tests.system.torture.crowd import Crowd
from tests.system.torture.proof import Effort, Figures
from tests.system.torture.subject import OUTPUT, Output, Subject, observer_options
from webhookrx.spool.database import BATCH_MESSAGES

#: Senders of the proof.
CLIENTS = 32


def kill(effort: Effort, rounds: int, *options: str, on_their_way: int = 0) -> Figures:
    """
    Prove it for one kind of observer.

    @param on_their_way: messages that each kill may have written twice besides those that were not answered.
    """
    moments = effort.random("kill", options)
    posting = 0.0
    with Subject(*options) as subject:
        output = Output(subject.path(OUTPUT))
        subject.start()
        crowd = Crowd(subject.port, CLIENTS, seed=effort.seed).start()
        for number in range(rounds):
            began = time.monotonic()
            time.sleep(moments.uniform(0.0, effort.pick(0.6, 1.0)))
            subject.kill()
            posting += time.monotonic() - began
            output.crashed()
            subject.start()
            if number + 1 < rounds:
                crowd.next_acknowledgement()
        crowd.stop()
        output.settle(crowd.acknowledged)
        subject.stop()
        output.read()
    return _figures(crowd, output, rounds, posting, effort, on_their_way)


def kill_file(effort: Effort) -> Figures:
    """The file observer."""
    return kill(effort, effort.pick(5, 200), *observer_options("file"))


def kill_written(effort: Effort) -> Figures:
    """The file observer without syncs: the operating system goes on, and has what was written."""
    return kill(effort, effort.pick(3, 200), *observer_options("file"), "--ack", "written")


def kill_spool(effort: Effort) -> Figures:
    """The spool, and a file behind it."""
    return kill(effort, effort.pick(5, 200), *observer_options("spool"), on_their_way=BATCH_MESSAGES)


def _figures(crowd: Crowd, output: Output, rounds: int, posting: float, effort: Effort, on_their_way: int) -> Figures:
    stored = set(output.order)
    figures = Figures()
    figures.tell("kills", rounds)
    figures.tell("acknowledged", len(crowd.acknowledged))
    rate = len(crowd.acknowledged) / posting
    if effort.long:
        figures.at_least("acknowledged a second while it ran", rate, 1000.0)
    else:
        figures.tell("acknowledged a second while it ran", rate)
    figures.none("acknowledged and missing", [token for token in crowd.acknowledged if token not in stored])
    figures.none("unreadable lines", output.unreadable)
    figures.tell("torn lines, each the last before a kill", output.torn)
    allowed = len(crowd.unanswered) + rounds * on_their_way
    figures.at_most("there twice; not answered or on their way", len(output.order) - len(stored), allowed)
    figures.at_most("refused", sum(crowd.refused.values()), 0)
    figures.none("answers that nobody asked for", crowd.strange)
    return figures
