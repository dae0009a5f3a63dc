"""
Decides whether there is room for a request in the quota of its source.
"""

from __future__ import annotations

from collections.abc import Callable

from webhookrx.errors import OVER_QUOTA
from webhookrx.guard.passage import Passage
from webhookrx.guard.quota import Buckets, SourceQuota, retry_after
from webhookrx.intake.judge import Refused, SourceRules, source_ip


class QuotaCheck:
    """
    The quota of one source.

    @param rules: those of the source.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, rules: SourceRules, quota: SourceQuota, buckets: Buckets, clock: Callable[[], float]) -> None:
        self._rules = rules
        self._quota = quota
        self._buckets = buckets
        self._clock = clock

    def quota(self, passage: Passage) -> Refused | None:
        """Decide whether there is room for one message, and for its body if its size is known."""
        return self._take(passage, 1, passage.size or 0)

    def more(self, passage: Passage, size: int) -> Refused | None:
        """
        Decide whether there is room for more of its body.

        @param size: bytes of it that have come, all in all.
        """
        return None if size <= passage.charged else self._take(passage, 0, size - passage.charged)

    def charge_for_events(self, passage: Passage, more: int) -> None:
        """Charge for events beyond the first: how many there are nobody could tell when it was admitted."""
        self._buckets.charge(self._quota, self._rules.name, self._whose(passage), more, 0, self._clock())

    def _take(self, passage: Passage, messages: int, size: int) -> Refused | None:
        name, whose = self._rules.name, self._whose(passage)
        wait = self._buckets.take(self._quota, name, whose, messages, size, self._clock(), passage.charged)
        if wait:
            return Refused(OVER_QUOTA, OVER_QUOTA.detail, name, retry_after=retry_after(wait))
        passage.charged += size
        return None

    def _whose(self, passage: Passage) -> str:
        return self._quota.whose(passage.token, source_ip(passage.head, self._rules))
