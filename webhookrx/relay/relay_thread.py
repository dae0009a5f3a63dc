"""
The thread of a relay: steps it until it is finished, and closes it.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from webhookrx.relay.relay import Relay

#: Seconds until the next step when even a log line fails.
_FAILED = 0.5


class RelayThread:
    """
    Steps a relay.

    @param relay: only this thread steps or closes it.
    @param ended: called in this thread, as the last.
    """

    def __init__(self, relay: Relay, ended: Callable[[], None]) -> None:
        self._relay = relay
        self._ended = ended
        self._wake = Event()
        # A daemon: an observer that hangs must not keep a process alive past its time to stop.
        self._thread = Thread(target=self._run, name="webhookrx-relay", daemon=True)

    def start(self) -> None:
        """
        Start.

        @raise RuntimeError: the system has no thread left.
        """
        self._thread.start()

    def finish(self) -> None:
        """Have the relay finish, and close it; call it in any thread."""
        self._relay.finish()
        self._wake.set()

    def reopen(self) -> None:
        """Have the relay reopen soon; call it in any thread."""
        self._relay.reopen()
        self._wake.set()

    def _run(self) -> None:
        try:
            while not self._relay.is_finished:
                if pause := self._step():
                    # Event.wait goes by the monotonic clock.
                    self._wake.wait(pause)
                    self._wake.clear()
            self._relay.close()
        finally:
            self._ended()

    def _step(self) -> float:
        try:
            return self._relay.step()
        except BaseException:
            # Too little memory even for a log line, or a log that fails. The next step may succeed.
            return _FAILED
