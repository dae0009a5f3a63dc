"""
Sick observers beside a good one.

One raises on every message, one takes ten seconds for each. The file beside them must get every message all the same,
and none of these may be acknowledged, unless the sick observer had it safe, too: the one that is slow writes down
what it has done.
"""

from __future__ import annotations

import os
import time

from tests.system.torture.crowd import Crowd
from tests.system.torture.proof import Effort, Figures
from tests.system.torture.subject import OUTPUT, TOKEN_IN_BYTES, Output, Subject

#: Seconds that the slow one takes, in the environment of its process.
SLOWNESS = "TORTURE_SLOWNESS"
#: Where it writes what it has done, below the working directory.
DONE = "done"

_HERE = "observer:tests.system.torture.sick"


def raise_always(event: dict[str, object]) -> None:
    """Take no message. An C{ILogObserver}."""
    raise RuntimeError("never works")


def take_long(event: dict[str, object]) -> None:
    """Take every message, in a long time. An C{ILogObserver}."""
    time.sleep(float(os.environ[SLOWNESS]))
    with open(DONE, "a") as file:
        file.write(f"{event!r}\n")


def sick_observer(effort: Effort) -> Figures:
    """Prove it for both."""
    figures = Figures()
    for name in ("raise_always", "take_long"):
        _beside(name, effort, figures)
    return figures


def _beside(name: str, effort: Effort, figures: Figures) -> None:
    options = ("--observer", f"file:{OUTPUT}", "--observer", f"{_HERE}.{name}", "--limit", "answer_time=1s")
    with Subject(*options, environment={SLOWNESS: str(effort.pick(3.0, 10.0))}) as subject:
        subject.start()
        crowd = Crowd(subject.port, 32, rate=200, seed=effort.seed, retry_refused=False).start()
        time.sleep(effort.pick(1, 60))
        crowd.stop()
        output = Output(subject.path(OUTPUT))
        output.settle(crowd.sent, 10)
        alive = subject.is_running
        subject.kill()
        done = _done(subject.path(DONE))
    stored = set(output.order)
    figures.tell(f"{name}: requests", len(crowd.sent))
    figures.tell(f"{name}: acknowledged", len(crowd.acknowledged))
    figures.none(f"{name}: not in the good file", [token for token in crowd.sent if token not in stored])
    figures.none(f"{name}: 200 before it was safe", [token for token in crowd.acknowledged if token not in done])
    figures.at_most(f"{name}: without an answer", len(crowd.unanswered), 0)
    figures.none(f"{name}: refused otherwise than politely", [each for each in crowd.refusals if not each.is_polite])
    figures.at_least(f"{name}: alive all the time", int(alive), 1)


def _done(path: str) -> set[str]:
    if not os.path.exists(path):
        return set()
    with open(path, "rb") as file:
        return {token.decode() for token in TOKEN_IN_BYTES.findall(file.read())}
