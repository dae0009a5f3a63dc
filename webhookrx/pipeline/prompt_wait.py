"""
Waiting for a store that takes no longer than a turn of the reactor, where the answer can go out in the same turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webhookrx.interfaces import IMessageObserver
    from webhookrx.pipeline.observer_thread import ObserverThread

#: Seconds that are waited at most: many times what it takes to write to a page cache.
PROMPT = 0.002
#: So many waits in vain, one after the other, and there is no other for the time being. One may be a chance.
ENOUGH = 3


class PromptWait:
    """
    Has the reactor wait for an observer that only has to write, as long as it is quick.

    While the thread writes, the reactor would take in a few requests more, with both in each other's way over the
    interpreter's lock; and those few would be the next batch, so that all batches were small. Who waits gets the
    answers out first, and then finds more to take in. A sync takes long enough to do something else meanwhile.

    After L{ENOUGH} waits in vain it is only one for each L{try_again}: a slow disk must not hold up the reactor. One
    that hangs does so once, since what comes meanwhile is no store that has just begun.

    @param thread: that of the observer.
    """

    def __init__(self, observer: IMessageObserver, thread: ObserverThread) -> None:
        self._observer = observer
        self._thread = thread
        self._in_vain = 0

    def is_back(self) -> bool:
        """Wait for the C{store} that was just begun. Return whether it was back in time, and is dealt with."""
        if self._in_vain >= ENOUGH or self._observer.promise == "durable":
            return False
        is_back = self._thread.wait(PROMPT)
        self._in_vain = 0 if is_back else self._in_vain + 1
        return is_back

    def try_again(self) -> None:
        """Wait once more, though it was in vain so far; called now and then."""
        self._in_vain = min(self._in_vain, ENOUGH - 1)
