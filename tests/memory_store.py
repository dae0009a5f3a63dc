"""An observer of a store that is in memory, with what only such observers have."""

from __future__ import annotations

from zope.interface import implementer_only

from webhookrx.interfaces import IStoreObserver, Wants
from webhookrx.store_counts import StoreCounts
from webhookrx.testing import MemoryObserver


@implementer_only(IStoreObserver)
class MemoryStore(MemoryObserver):
    """
    Keeps messages in memory, and says that a store has them.

    @ivar is_hurried: since the last C{open}.
    """

    takes_lines = False

    def __init__(
        self,
        spec: str = "store:there",
        promise: str = "written",
        reason: str = "it syncs later",
        wants: Wants | None = None,
    ) -> None:
        super().__init__(spec, promise)
        self.promise_reason = reason
        self.wants = wants
        self.counts = StoreCounts()
        self.is_hurried = False

    def open(self) -> None:
        """Note that it has all the time again."""
        super().open()
        self.is_hurried = False

    def hurry(self) -> None:
        """Note it."""
        self.is_hurried = True
