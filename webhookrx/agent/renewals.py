"""
The renewals of a router's certificate: when it is due, or when the console asks for one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from twisted.logger import Logger

from webhookrx.agent.access import ConsoleAccess
from webhookrx.agent.chores import timer_of
from webhookrx.agent.directory import ConsoleDirectory
from webhookrx.agent.enrolment import NotEnrolled, renew
from webhookrx.agent.link import LinkFailed
from webhookrx.agent.router_keys import renewal_is_due
from webhookrx.config.console_files import RouterIdentity

RENEWAL_EVERY: Final = 600.0
"""Seconds between two looks whether the certificate is to be renewed. One that has ended is good for a renewal, and for
nothing else, so that a router waits no longer than this once its console is back."""

_log = Logger()


class Renewals:
    """
    Renews the certificate in time.

    @param now: returns the time with its zone.
    """

    def __init__(
        self, reactor: Any, access: ConsoleAccess, directory: ConsoleDirectory, now: Callable[[], datetime]
    ) -> None:
        self._access = access
        self._directory = directory
        self._now = now
        self._timer = timer_of(reactor, self._renew_if_due)

    def start(self) -> None:
        """Look now, and every L{RENEWAL_EVERY}."""
        self._timer.start(RENEWAL_EVERY)

    def stop(self) -> None:
        """Look no more."""
        if self._timer.running:
            self._timer.stop()

    async def renew(self) -> None:
        """
        Get a new certificate, and use it.

        @raise NotEnrolled: see L{renew<webhookrx.agent.enrolment.renew>}.
        @raise LinkFailed: the same.
        @raise OSError: it can't be kept; the one before stays in use.
        """
        self._access.use(await self._directory.change_identity(self._renewed))
        _log.info("The certificate of this router is renewed")

    async def _renewed(self) -> RouterIdentity:
        identity = self._access.identity
        if identity is None:
            raise NotEnrolled("The router is not enrolled.")
        return await renew(self._access.link, identity)

    async def _renew_if_due(self) -> None:
        identity = self._access.identity
        if identity is None or not renewal_is_due(identity.certificate, self._now()):
            return
        try:
            await self.renew()
        except (LinkFailed, NotEnrolled, OSError) as error:
            _log.warn("The certificate of this router could not be renewed: {problem}", problem=str(error))
