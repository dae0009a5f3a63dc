"""
What the lanes of a chain have in common.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from webhookrx.pipeline.batch import Batch

#: Told of a failure: the observer's spec, what went wrong, and how many messages it hit.
Report = Callable[[str, str, int], None]
#: Told of a C{store}: the observer's spec, messages, bytes, and seconds that it took.
Stored = Callable[[str, int, int, float], None]


class LaneContext(NamedTuple):
    """
    What all lanes of a chain share.

    @ivar gather: makes the chain hand over what the running turn has gathered so far.
    @ivar settle: told of batches that an observer is done with, for good or ill.
    @ivar report: told of failures.
    @ivar stored: told of each C{store} that came back.
    @ivar changed: told when a lane has come to rest: open, closed, or barred.
    @ivar monotonic: seconds on a clock that nobody sets, from any thread.
    """

    gather: Callable[[], None]
    settle: Callable[[list[Batch]], None]
    report: Report
    stored: Stored | None
    changed: Callable[[], None]
    monotonic: Callable[[], float]
