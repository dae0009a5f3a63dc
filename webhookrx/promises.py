"""
What a 200 means, and what lets a message leave a spool: the words of observers, where they are weaker than asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from webhookrx.interfaces import IBufferingObserver, IMessageObserver

DURABLE: Final = "durable"

_STRENGTHS: Final[Mapping[str, int]] = MappingProxyType({"queued": 0, "written": 1, DURABLE: 2})


def is_weaker(promise: str, than: str) -> bool:
    """Tell whether a promise is weaker than an C{--ack} level; an unknown word is no stronger than the weakest."""
    return _STRENGTHS.get(promise, 0) < _STRENGTHS[than]


def word_of(observer: IMessageObserver) -> str:
    """Return the promise of an observer and why it is no stronger, such as C{"'written' (it syncs later)"}."""
    # Observers of others, and those that write on this machine, give no reason.
    reason = getattr(observer, "promise_reason", "")
    return f"{observer.promise!r} ({reason})" if reason else repr(observer.promise)


def weaknesses(observer: IMessageObserver, ack: str) -> list[str]:
    """
    Return a sentence for each promise that is weaker than it may seem: that of an observer than C{ack}, the C{--ack}
    level; and that of one behind a spool than the spool's own.
    """
    found = []
    if is_weaker(observer.promise, ack):
        found.append(
            f"--ack {ack} is more than observer {observer.spec} can promise: "
            f"its word means {word_of(observer)}, so a 200 means no more than that"
        )
    if IBufferingObserver.providedBy(observer) and is_weaker(observer.inner.promise, DURABLE):
        inner = observer.inner
        found.append(
            f"A message leaves the spool on the word {word_of(inner)} of {inner.spec}, "
            "so it may be lost there after that; require=durable on the spool refuses this"
        )
    return found
