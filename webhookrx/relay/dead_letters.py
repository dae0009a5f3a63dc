"""
Dead letters of a relay: messages that the observer has refused for good, with the reason, for another observer.
"""

from __future__ import annotations

from webhookrx.message.message import Message, Value
from webhookrx.message.record import is_router_form

LONGEST_REASON = 300
"""Characters of a reason that are kept."""

PAIR = "webhook.dead_letter"
"""The name of the pair in a message of the source form; in the router form it is C{meta.dead_letter}."""


def dead_letter(message: Message, reason: str, observer: str, origin: str) -> Message:
    """
    Return a message with the reason beside what it holds already.

    @param observer: the spec of the one that has refused it, fit for a log line.
    @param origin: where it is in the broker.
    """
    note: dict[str, Value] = {"reason": reason[:LONGEST_REASON], "observer": observer, "origin": origin}
    values = message.values
    if is_router_form(values):
        meta = values["meta"]
        assert isinstance(meta, dict)
        return Message({**values, "meta": {**meta, "dead_letter": note}}, message.received)
    return Message({**values, PAIR: note}, message.received)
