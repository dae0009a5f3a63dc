"""
What workers had counted that live no more.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhookrx.interfaces import Backlog, LaneStatus
from webhookrx.operations.counters import Counters
from webhookrx.operations.facts import Facts


class Past:
    """
    Keeps it, so that no count of all workers together ever falls.

    @ivar counters: their counts.
    """

    def __init__(self) -> None:
        self.counters = Counters()
        self._backlogs: dict[str, Backlog] = {}

    def add(self, counters: Counters, facts: Facts | None) -> None:
        """
        Keep what one had counted.

        @param facts: what it was like; None when it never said.
        """
        self.counters.add_all(counters)
        for lane in () if facts is None else facts.lanes:
            if lane.backlog is not None:
                known = self._backlogs.get(lane.spec)
                self._backlogs[lane.spec] = _counts_of([lane.backlog] if known is None else [known, lane.backlog])

    def with_counts(self, living: Sequence[Facts]) -> list[Facts]:
        """Return the facts of those who live, in which spools have counted what those of the past had counted."""
        specs = {lane.spec for facts in living for lane in facts.lanes}
        past = [LaneStatus(spec, backlog=backlog) for spec, backlog in self._backlogs.items() if spec in specs]
        first = [facts._replace(lanes=[*facts.lanes, *past]) for facts in living[:1]]
        return [*first, *living[1:]]


def _counts_of(backlogs: Sequence[Backlog]) -> Backlog:
    """Return what was counted; what waits is for others to tell."""
    total = Backlog.of_all(backlogs)
    return Backlog(0, 0, None, 0, dropped=total.dropped, away=None, full=False, damaged=total.damaged)
