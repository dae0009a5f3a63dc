"""The threads of a reactor, played: their work is done at once, or when a test says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.python.failure import Failure


class ThreadsAtOnce:
    """
    What a reactor of a test has besides its clock. Work is given by C{deferToThreadPool}.

    @ivar holds: whether work waits for L{work}.
    """

    holds = False

    def getThreadPool(self) -> Any:
        """Return what takes work."""
        return self

    def callInThreadWithCallback(self, done: Callable[..., object], call: Any, *args: Any, **words: Any) -> None:
        """Take some work."""

        def run() -> None:
            try:
                result = call(*args, **words)
            except Exception:
                done(False, Failure())
            else:
                done(True, result)

        if self.holds:
            self._held().append(run)
        else:
            run()

    def callFromThread(self, call: Callable[..., object], *args: Any) -> None:
        """Call in the reactor's thread, which is this one."""
        call(*args)

    def work(self) -> int:
        """Do the first work that waits, and return how much is left."""
        held = self._held()
        if held:
            held.pop(0)()
        return len(held)

    def _held(self) -> list[Callable[[], object]]:
        held: list[Callable[[], object]] = self.__dict__.setdefault("held_work", [])
        return held
