"""
What the audit has of taps: who looked where for what and how much was shown, and nothing of what was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec
from twisted.internet.defer import Deferred, DeferredList
from twisted.logger import Logger
from twisted.python.failure import Failure

from webhookrx.console.store.audit import note
from webhookrx.console.store.history import StoreTransaction
from webhookrx.errors import WebhookrxError

if TYPE_CHECKING:
    from webhookrx.console.store.interface import ConsoleStore
    from webhookrx.console.taps.running_tap import RunningTap

TAP: Final = "tap"
TAP_ENDED: Final = "tap_ended"

_log = Logger()


class TapAudit:
    """
    Writes the begin of each tap before somebody sees anything, and its end.
    """

    def __init__(self, store: ConsoleStore) -> None:
        self._store = store
        self._writing: set[Deferred[None]] = set()

    async def begun(self, tap: RunningTap) -> None:
        """
        Write down that a tap begins.

        @raise webhookrx.errors.StoreUnavailable: it can't be, and the tap does not begin.
        """
        order = msgspec.to_builtins(tap.order.order)
        given = {name: value for name, value in order.items() if value not in ("", ())}
        taking_part = [each.name for each in tap.routers.values()]
        await self._note(tap, TAP, {**given, "for": tap.order.seconds, "taking_part": taking_part})

    def ended(self, tap: RunningTap, at: float) -> None:
        """
        Write down that a tap has ended.

        @param at: when, seconds since the epoch.
        """
        counts = msgspec.structs.asdict(tap.counts)
        details = {"why": tap.why, "from": tap.begun_at, "to": at, **counts}
        writing = Deferred.fromCoroutine(self._note(tap, TAP_ENDED, details))
        self._writing.add(writing)
        writing.addErrback(_not_noted).addBoth(lambda result: self._writing.discard(writing))

    async def settled(self) -> None:
        """Wait until all is written, or could not be."""
        await DeferredList(tuple(self._writing))

    async def _note(self, tap: RunningTap, event: str, details: Mapping[str, object]) -> None:
        starter = tap.starter

        def write(tx: StoreTransaction) -> None:
            note(tx, starter.name, starter.via, tap.address, event, tap.id, details)

        await self._store.write(write)


def _not_noted(failure: Failure) -> None:
    if failure.check(WebhookrxError):
        _log.warn("The end of a tap could not be written to the audit: {why}", why=failure.value)
    else:
        _log.failure("The end of a tap could not be written to the audit", failure)
