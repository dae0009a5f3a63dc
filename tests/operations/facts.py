"""
Facts for tests: a receiver that is well, and what is different about it.
"""

from __future__ import annotations

from typing import Any

from webhookrx.interfaces import Backlog, LaneStatus
from webhookrx.operations.facts import Facts, Level, Phase

EMPTY = Backlog(messages=0, bytes=0, oldest=None, dead=0, dropped=0, away=None, full=False)
"""The backlog of an observer that keeps nothing at the moment."""


def make_facts(**different: Any) -> Facts:
    """Return the facts of a receiver that is ready, but for what is different."""
    facts = Facts(
        phase=Phase.RUNNING,
        endpoints={"tcp:8181": True},
        lanes=(LaneStatus("file:/x"), LaneStatus("spool:/y", backlog=EMPTY)),
        sources=("github", "gitlab"),
        queue_bytes=Level(0, 64),
        queue_messages=Level(0, 100),
        connections=Level(0, 1000),
        requests=0,
        paused=False,
        certificates={"/etc/cert.pem": 2_000_000_000.0},
        reload_succeeded=True,
        loaded=1_000_000_000.0,
    )
    return facts._replace(**different)
