"""
Snapshots for tests: a receiver that is well, and what is different about it.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from webhookrx.interfaces import Backlog, LaneStatus
from webhookrx.operations.snapshot import Level, Phase, ReceiverSnapshot

EMPTY = Backlog(messages=0, bytes=0, oldest=None, dead=0, dropped=0, away=None, full=False)
"""The backlog of an observer that keeps nothing at the moment."""


def make_snapshot(**different: Any) -> ReceiverSnapshot:
    """Return the snapshot of a receiver that is ready, but for what is different."""
    snapshot = ReceiverSnapshot(
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
    return replace(snapshot, **different)
