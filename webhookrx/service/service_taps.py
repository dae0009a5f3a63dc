"""
The taps of a service, whoever asks for them: of messages and refusals, and of the lines of its own log.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.logger import LogEvent, formatEvent, globalLogPublisher

from webhookrx.errors import CantTap
from webhookrx.service.receiver_interface import Receiver
from webhookrx.service.taps import check_gate, masks_of, tapped_sources

if TYPE_CHECKING:
    from webhookrx.tapping.tap import Tap
    from webhookrx.tapping.tap_request import TapRequest
    from webhookrx.tapping.taps import Taps


class ServiceTaps:
    """
    Has the receiver look at messages, and looks at the log itself.

    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, reactor: Any, receiver: Receiver, clock: Callable[[], float] = time.monotonic) -> None:
        self._reactor = reactor
        self._receiver = receiver
        self._clock = clock
        self._lines: Taps | None = None

    def check_gate(self) -> None:
        """
        Check that taps may run.

        @raise webhookrx.errors.GateIsClosed: the reload gate is closed.
        """
        check_gate(self._receiver.settings)

    def sources(self, request: TapRequest) -> list[str]:
        """
        Return the names of the sources that a tap would be about.

        @raise CantTap: see L{tapped_sources}.
        """
        return tapped_sources(self._receiver.settings, request)

    def start(self, request: TapRequest, deliver: Callable[[Tap], object]) -> Tap:
        """
        Start a tap.

        @param deliver: called in the reactor's thread when it has rows to take.
        @raise CantTap: the request is wrong, or too many taps run.
        """
        if request.point != "service":
            return self._receiver.start_tap(request, deliver)
        # They take memory that a receiver without taps does not need.
        from webhookrx.tapping.tap import Tap
        from webhookrx.tapping.taps import MOST_TAPS, Taps

        if self._lines is None:
            self._lines = Taps(self._clock)
        if len(self._lines.active) >= MOST_TAPS:
            raise CantTap(f"{MOST_TAPS} taps of the log run already.", "too_many_taps")
        tap = Tap(request, self._clock(), lambda: self._reactor.callFromThread(deliver, tap))
        if not self._lines.active:
            globalLogPublisher.addObserver(self._observe)  # type: ignore[arg-type]  # any callable is one
        self._lines.add(tap)
        return tap

    def stop(self, tap: Tap) -> None:
        """End a tap."""
        if tap.request.point != "service":
            self._receiver.stop_tap(tap)
            return
        assert self._lines is not None
        self._lines.remove(tap)
        if not self._lines.active:
            globalLogPublisher.removeObserver(self._observe)  # type: ignore[arg-type]

    def _observe(self, event: LogEvent) -> None:
        # It may come from any thread.
        level = getattr(event.get("log_level"), "name", "info")
        self._reactor.callFromThread(self._line, level, str(event.get("log_namespace", "")), formatEvent(event))

    def _line(self, level: str, namespace: str, text: str) -> None:
        if self._lines is not None and self._lines.active:
            self._lines.masks = masks_of(self._receiver.settings)
            self._lines.line(level, namespace, text)
