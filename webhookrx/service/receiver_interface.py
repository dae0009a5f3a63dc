"""
What receives, as the service sees it: in this process, or in workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from webhookrx.operations.counters import Counters
from webhookrx.operations.health import WorkerState
from webhookrx.operations.snapshot import Phase, ReceiverSnapshot
from webhookrx.settings import Settings

if TYPE_CHECKING:
    from webhookrx.tapping.tap import Tap
    from webhookrx.tapping.tap_request import TapRequest


class Receiver(Protocol):
    """
    What receives: L{LocalReceiver<webhookrx.service.receiver.LocalReceiver>} or
    L{WorkerPool<webhookrx.service.workers.pool.WorkerPool>}.
    """

    @property
    def settings(self) -> Settings:
        """The settings in use."""

    @property
    def phase(self) -> Phase:
        """Where in its life it is."""

    @property
    def counters(self) -> Counters:
        """Everything counted so far."""

    @property
    def snapshot(self) -> ReceiverSnapshot:
        """What it is like now."""

    @property
    def workers(self) -> Sequence[WorkerState]:
        """The state of each process that receives."""

    @property
    def is_stuck(self) -> bool:
        """Whether an observer or a worker hangs."""

    @property
    def warnings(self) -> Sequence[str]:
        """Sentences for the log, on what is weaker than the settings ask for."""

    def describe(self) -> list[str]:
        """Return lines for the log: its endpoints, and the sources on them."""

    def open_ports(self) -> None:
        """
        Open the ports, unless that is done. The process may still be privileged.

        @raise webhookrx.transport.listener_service.CannotListen: one can't be opened.
        """

    def start(self) -> None:
        """
        Open everything. The process is in the background, and the reactor does not run yet.

        @raise webhookrx.errors.CannotStart: something can't be opened.
        """

    def run(self, up: Callable[[], None], failed: Callable[[str], None]) -> None:
        """
        Receive; the reactor runs.

        @param up: called once it receives.
        @param failed: called with the reason when it can't.
        """

    def tick(self) -> None:
        """Check all deadlines; called twice a second."""

    def set_ready(self, ready: bool) -> None:
        """Set whether the service as a whole is ready for messages: the answer to health checks of load balancers."""

    def check(self, settings: Settings) -> None:
        """
        Check whether it can change to other settings at all.

        @raise webhookrx.errors.ConfigError: that takes a restart.
        """

    async def change(self, settings: Settings) -> str:
        """
        Use other settings. Up to the last step nothing of the old is given up.

        @return: what has changed.
        @raise webhookrx.errors.WebhookrxError: why everything stays as it was.
        """

    def start_tap(self, request: TapRequest, deliver: Callable[[Tap], object]) -> Tap:
        """
        Have an operator look at messages, or at refused requests.

        @param deliver: called in the reactor's thread when the tap has rows to take.
        @raise webhookrx.errors.CantTap: the request is wrong, or too many taps run.
        """

    def stop_tap(self, tap: Tap) -> None:
        """End a tap."""

    def reopen(self) -> None:
        """Reopen the files of messages by name, for logrotate."""

    async def drain(self, seconds: float) -> bool:
        """
        Take nothing new, finish what is under way, make it safe, and close.

        @return: whether it ended well; not when L{stop_now} cut something off.
        """

    def stop_now(self) -> None:
        """End L{drain}, now or later, without waiting for what is under way."""
