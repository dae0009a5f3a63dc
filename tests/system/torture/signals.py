"""
Stops and reloads under load.

C{SIGTERM}: the process is stopped and started again, many times, while senders go on. A request that had been sent in
full when the signal was sent must get its 200: one that ends without an answer, or refused, is a failed one. What is
sent later may be refused, by 503 or by a port that is closed, and is sent again. The exit status is 0 each time.

C{SIGHUP}: a setting is changed and the file of messages is renamed each time. No request may fail at all.
"""

from __future__ import annotations

import os
import signal
import time

from tests.system.receiver import wait_until
from tests.system.torture.crowd import Crowd
from tests.system.torture.proof import Effort, Figures
from tests.system.torture.subject import OUTPUT, Output, Subject, observer_options

_CLIENTS = 16


def terminate(effort: Effort) -> Figures:
    """C{SIGTERM}."""
    rounds = effort.pick(4, 100)
    moments = effort.random("terminate")
    statuses: list[int] = []
    slowest = 0.0
    failed: list[str] = []
    with Subject(*observer_options("file")) as subject:
        subject.start()
        crowd = Crowd(subject.port, _CLIENTS, seed=effort.seed).start()
        for _ in range(rounds):
            time.sleep(moments.uniform(0.0, 0.5))
            unanswered, refused = len(crowd.unanswered), len(crowd.refusals)
            at = time.monotonic()
            subject.signal(signal.SIGTERM)
            statuses.append(subject.wait())
            slowest = max(slowest, time.monotonic() - at)
            # The end of a process is seen before the ends of its connections are.
            time.sleep(0.1)
            failed += [posted.token for posted in crowd.unanswered[unanswered:] if posted.sent < at]
            failed += [each.reason for each in crowd.refusals[refused:] if each.sent < at]
            subject.start()
            crowd.next_acknowledgement()
        crowd.stop()
        subject.stop()
        output = Output(subject.path(OUTPUT))
        output.read()
    stored = set(output.order)
    figures = Figures()
    figures.tell("SIGTERMs", rounds)
    figures.tell("acknowledged", len(crowd.acknowledged))
    figures.none("acknowledged and missing", [token for token in crowd.acknowledged if token not in stored])
    figures.none("unreadable lines", output.unreadable)
    figures.none("failed requests, sent before the signal", failed)
    figures.tell("sent later and not answered, sent again", len(crowd.unanswered))
    figures.tell("sent later and refused, sent again", sum(crowd.refused.values()))
    figures.at_most("there twice; not answered or refused", len(output.order) - len(stored), crowd.open_questions)
    figures.none("exit statuses that are not 0", [status for status in statuses if status])
    figures.tell("slowest stop, seconds", slowest)
    return figures


def hang_up(effort: Effort) -> Figures:
    """C{SIGHUP}."""
    rounds = effort.pick(10, 100)
    moments = effort.random("hang up")
    with Subject("--config", "config.yaml") as subject:
        _configure(subject, 0)
        subject.start()
        pid = subject.pid
        crowd = Crowd(subject.port, _CLIENTS, seed=effort.seed).start()
        for number in range(1, rounds + 1):
            time.sleep(moments.uniform(0.0, 0.3))
            _configure(subject, number)
            os.rename(subject.path(OUTPUT), subject.path(f"{OUTPUT}.{number}"))
            subject.signal(signal.SIGHUP)
            wait_until(lambda: os.path.exists(subject.path(OUTPUT)), "the new file is there")
        alive = subject.is_running and subject.pid == pid
        crowd.stop()
        subject.stop()
        outputs = [Output(subject.path(name)) for name in os.listdir(subject.directory) if name.startswith(OUTPUT)]
        for output in outputs:
            output.read()
    order = [token for output in outputs for token in output.order]
    stored = set(order)
    figures = Figures()
    figures.tell("SIGHUPs", rounds)
    figures.tell("acknowledged", len(crowd.acknowledged))
    figures.none("acknowledged and missing", [token for token in crowd.acknowledged if token not in stored])
    figures.none("unreadable lines", [line for output in outputs for line in output.unreadable])
    figures.at_most("failed requests", len(crowd.unanswered) + sum(crowd.refused.values()), 0)
    figures.at_most("there twice", len(order) - len(stored), 0)
    figures.at_least("one process all the time", int(alive), 1)
    return figures


def _configure(subject: Subject, number: int) -> None:
    """Write a configuration that differs from the last one."""
    with open(subject.path("config.yaml"), "w") as file:
        file.write(f"observers: ['file:{OUTPUT}']\nlimits: {{body: {10 + number % 2}MiB}}\n")
