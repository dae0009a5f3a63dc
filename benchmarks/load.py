"""
Load from wrk: as many requests as a server answers, over connections that stay or are made anew.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.lab import Lab, Running
from benchmarks.tools import Broken, program
from benchmarks.traffic import prepare

_REPLAY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replay.lua")

_LONGER = 600
"""Seconds that no load takes."""

_PATIENCE = 10.0
"""Seconds that wrk may take to end."""


@dataclass(frozen=True)
class Answers:
    """
    What became of a load.

    @ivar answered: requests with a 200.
    @ivar seconds: how long it lasted.
    @ivar p50, p99, p999: times from request to answer, in ms, that so many percent did not pass.
    """

    answered: int
    seconds: float
    p50: float
    p99: float
    p999: float


def wrk(
    lab: Lab,
    running: Running,
    kind: str,
    connections: int,
    seconds: float,
    meanwhile: Callable[[], None] = lambda: None,
) -> Answers:
    """
    Send a kind of traffic for a while.

    @param meanwhile: called once, at the end of that time and before the load ends.
    @raise Unavailable: wrk is not there.
    @raise Broken: an answer was no 200, or a connection failed.
    """
    scheme = "http" if running.server.tls is None else "https"
    command = (
        program("wrk"), "-t1", f"-c{connections}", f"-d{_LONGER}s", "-s", _REPLAY,
        f"{scheme}://127.0.0.1:{running.port}/", "--", prepare(kind).write(lab.directory),
    )  # fmt: skip
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {lab.tools.cores.load}),
    ) as process:
        try:
            time.sleep(seconds)
            meanwhile()
            # It knows whole seconds only, but ends in good order when it is interrupted.
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=_PATIENCE)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise Broken(f"wrk failed at {running.server.name}: {said}")
    return read_answers(said, running.server.name)


def read_answers(text: str, name: str) -> Answers:
    """
    Read what C{replay.lua} prints at the end.

    @raise Broken: it says that not all went well.
    """
    said = json.loads(text.rstrip().rpartition("\n")[2])
    if said["refused"] or said["broken"] or not said["answered"]:
        raise Broken(f"{name}: {said['answered']} answers, {said['refused']} of them no 200; {said['broken']} broken")
    return Answers(
        said["answered"], said["microseconds"] / 1e6, said["p50"] / 1e3, said["p99"] / 1e3, said["p99.9"] / 1e3
    )
