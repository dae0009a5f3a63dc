"""
The receiver, as its agent sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from webhookrx.agent.reports import ToldState
from webhookrx.settings import Settings

if TYPE_CHECKING:
    from webhookrx.tapping.tap import Tap
    from webhookrx.tapping.tap_request import TapRequest


class AgentHost(Protocol):
    """The receiver, as its agent sees it."""

    @property
    def settings(self) -> Settings:
        """The settings in use."""

    def reload(self) -> None:
        """Read settings and bundles again, as at SIGHUP; the agent is told by C{settled} when that has ended."""

    def tapped_sources(self, request: TapRequest) -> list[str]:
        """
        Return the names of the sources that a tap would be about.

        @raise webhookrx.errors.CantTap: the request is wrong, there is none, or the reload gate is closed.
        """

    def start_tap(self, request: TapRequest, deliver: Callable[[Tap], object]) -> Tap:
        """
        Start a tap.

        @param deliver: called in the reactor's thread when it has rows to take.
        @raise webhookrx.errors.CantTap: the request is wrong, or too many taps run.
        """

    def stop_tap(self, tap: Tap) -> None:
        """End a tap."""

    def state(self) -> ToldState:
        """Return what is told of the receiver."""
