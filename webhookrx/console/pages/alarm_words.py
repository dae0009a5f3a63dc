"""
What pages say of alarms: each kind in one sentence, and what its fields mean.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from webhookrx.console.alarms.documents import FIELDS


class KindWords(NamedTuple):
    """
    A kind of alarm.

    @ivar title: a few words.
    @ivar sentence: when it fires.
    @ivar lasts: what C{for} means, with its default.
    @ivar example: a C{for} to begin with.
    """

    kind: str
    title: str
    sentence: str
    lasts: str
    example: str

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that its query may test."""
        return FIELDS[self.kind]


KINDS: Final = (
    KindWords(
        "silent",
        "Silent sender",
        "It fires for a connector whose last message is too old, or that has had none at all; for each sender that it "
        "has heard, if the query asks for sender.",
        "how old the last message may be, from 1m; needed",
        "6h",
    ),
    KindWords(
        "refused",
        "Refusals",
        "It fires for a connector that refuses more requests than a part of all, or than a rate.",
        "how long it has to go on; 5m by default",
        "5m",
    ),
    KindWords(
        "certificate",
        "Certificate",
        "It fires for a connector whose certificate ends soon, or has ended.",
        "how long before its end; 14d by default",
        "14d",
    ),
    KindWords(
        "spool",
        "Spool",
        "It fires for a spool of a router in which messages wait for too long, such as while their store is away.",
        "how long the oldest message may wait, from 1m; 15m by default",
        "15m",
    ),
    KindWords(
        "router_away",
        "Router away",
        "It fires for a router of which the console has heard nothing.",
        "for how long nothing was heard, from 30s; 5m by default",
        "5m",
    ),
    KindWords(
        "gate_closed",
        "Reload gate closed",
        "It fires for a router that changes nothing, as a key, certificate or JSON file is unusable there.",
        "how long it has to go on; 5m by default",
        "5m",
    ),
    KindWords(
        "apply_failed",
        "Rules not applied",
        "It fires for a router that could not apply its newest rules.",
        "how long it has to go on; at once by default",
        "",
    ),
    KindWords(
        "duplicate",
        "Duplicate",
        "It fires for a router whose certificate is used by two processes, such as on a copied machine.",
        "how long it has to go on; at once by default",
        "",
    ),
)
"""All kinds that a console can tell, those about connectors first."""

KIND: Final = {each.kind: each for each in KINDS}

STATE_BADGES: Final = {"firing": "bad", "pending": "warn", "unknown": "quiet"}
