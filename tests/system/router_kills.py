"""
Kills routers at each step of taking a bundle, and the console between them, while senders post; counts what is lost.

C{python -m tests.system.router_kills [ROUNDS]} prints the figures of so many times all steps; it ends with 1 when a
message is lost, or a router starts in a state that is neither the one before nor the one after. strace(1) kills: at the
entry of a system call, which is then not done.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.system.fleet import Fleet, FleetRouter
from tests.system.numbered_senders import NumberedSenders
from tests.system.receiver import PATIENCE, wait_until
from tests.system.test_disk import readable

ROUTERS = 3
_ENDLESS = 10**7
"""Messages: more than are sent."""


class Step(NamedTuple):
    """
    A step of taking a bundle.

    @ivar call: the system call before which the router is killed, the first one with this path.
    @ivar path: below the directory of the router; empty for any. Of two paths of a call, strace sees the first.
    @ivar start: the state that a start finds: 0 before, 1 after.
    @ivar is_done: whether the call is done, and the router is killed while it comes back.
    """

    name: str
    call: str
    path: str
    start: int
    is_done: bool = False


_FOLDER, _TEMPORARY, _NEXT, _CURRENT = "console", "console/next.json.new", "console/next.json", "console/current.json"

STEPS = (
    Step("make the temporary file", "openat", _TEMPORARY, 0),
    Step("write it", "writev", _TEMPORARY, 0),
    Step("fsync it", "fsync", _TEMPORARY, 0),
    Step("rename it to the next", "rename", _TEMPORARY, 0),
    Step("fsync the directory", "fsync", _FOLDER, 1),
    Step("apply it", "listen", "", 1),
    Step("rename it to the current", "rename", _NEXT, 1),
    # Counting is by thread, so this is not "the second fsync".
    Step("fsync the directory again", "rename", _NEXT, 1, is_done=True),
)


@dataclass
class RouterKillFigures:
    """
    What came of it.

    @ivar wrong: starts in a state that is not right for the step, in words.
    @ivar sent: messages that got a 200.
    """

    kills: int = 0
    console_kills: int = 0
    states: int = 0
    wrong: list[str] = field(default_factory=list)
    sent: int = 0
    lost: int = 0
    changes: int = 0


class Injection:
    """
    strace(1) at a running process.

    @param what: what is done to the call, such as C{signal=KILL}.
    @param paths: only calls with these are meant; all without any.
    """

    def __init__(self, pid: int, call: str, what: str, *paths: str) -> None:
        command = ["strace", "-f", "-p", str(pid), "-o", os.devnull, "-e", f"trace={call}"]
        for path in paths:
            command += ["-P", path]
        self._process = subprocess.Popen(
            [*command, "-e", f"inject={call}:{what}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(lambda: self._is_attached(pid), "strace is attached to each thread")

    def _is_attached(self, pid: int) -> bool:
        assert self._process.poll() is None, "strace can't be attached"
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as file:
                if "TracerPid:\t0\n" in file.read():
                    return False
        return True

    def end(self) -> None:
        """Detach it, if what it traces has not ended."""
        self._process.terminate()
        self._process.wait(PATIENCE)


def kill_at(fleet: Fleet, router: FleetRouter, step: Step, state: int, figures: RouterKillFigures) -> None:
    """Change a rule so that its router goes to a state, kill it at a step, and the console; look; start both again."""
    what = "delay_exit=2000000" if step.is_done else "signal=KILL:when=1"
    injection = Injection(router.pid, step.call, what, *([router.path(step.path)] if step.path else []))
    current = os.stat(router.path(_CURRENT)).st_ino
    try:
        fleet.move(router, state)
        if step.is_done:
            wait_until(lambda: os.stat(router.path(_CURRENT)).st_ino != current, f"{router.name} is at: {step.name}")
            router.kill()
        wait_until(lambda: not router.is_running, f"{router.name} is killed at: {step.name}")
    finally:
        injection.end()
    figures.kills += 1
    fleet.console.kill()
    figures.console_kills += 1
    router.start()
    # Without its console, it can start with nothing but what is on disk.
    wanted = router.open_states()[state if step.start else 1 - state]
    found = router.open_ports()
    figures.states += 1
    if found != wanted:
        figures.wrong.append(f"{router.name} at {step.name!r}: {sorted(found)} instead of {sorted(wanted)}")
    fleet.console.start()
    fleet.wait_for_state(router, state)
    figures.states += 1


def lost_of(router: FleetRouter, acknowledged: set[str]) -> int:
    """Return how many messages are not in the router's file."""
    there = {str(message["log"]["body"]).split(" ", 1)[0] for message in readable(router)}
    return len(acknowledged - there)


def kill_routers(rounds: int) -> RouterKillFigures:
    """Kill at each step, so many times, each time another router."""
    fleet, figures = Fleet(ROUTERS), RouterKillFigures()
    try:
        senders = [
            NumberedSenders(router.hooks, _ENDLESS, hosts=4, first=1 + 4 * number, pace=0.02).start()
            for number, router in enumerate(fleet.routers)
        ]
        states = [0] * ROUTERS
        try:
            for number, step in enumerate(STEPS * rounds):
                at = (number + number // len(STEPS)) % ROUTERS
                states[at] = 1 - states[at]
                kill_at(fleet, fleet.routers[at], step, states[at], figures)
            for router, state in zip(fleet.routers, states, strict=True):
                fleet.wait_for_state(router, state)
        finally:
            sent = [each.stop().acknowledged for each in senders]
        for router, texts in zip(fleet.routers, sent, strict=True):
            router.kill()
            figures.sent += len(texts)
            figures.lost += lost_of(router, texts)
        figures.changes = fleet.changes
    finally:
        fleet.clean_up()
    return figures


def main(rounds: int) -> int:
    """Print the figures."""
    figures = kill_routers(rounds)
    print(
        f"{figures.kills} kills of routers at {len(STEPS)} steps, {figures.console_kills} of the console, "
        f"{figures.changes} changes; {figures.states} states looked at, {len(figures.wrong)} wrong; "
        f"{figures.sent:,} messages accepted, {figures.lost} lost"
    )
    for text in figures.wrong:
        print(text)
    return 1 if figures.wrong or figures.lost else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 25))
