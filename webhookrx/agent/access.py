"""
The access to the console: who the router is to it, and the link by which it is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhookrx.agent.chores import in_background
from webhookrx.agent.enrolment import NotEnrolled
from webhookrx.agent.link import ConsoleLink
from webhookrx.config.console_files import RouterIdentity


class ConsoleAccess:
    """
    Holds one identity and one link, which has its key and certificate.

    @param url: of the console's port for routers.
    @param connect: makes links; see L{ConsoleLink}.
    @ivar identity: None before the router is enrolled.
    """

    def __init__(self, reactor: Any, url: str, connect: Callable[..., ConsoleLink]) -> None:
        self._reactor = reactor
        self._url = url
        self._connect = connect
        self._link: ConsoleLink | None = None
        self.identity: RouterIdentity | None = None

    @property
    def link(self) -> ConsoleLink:
        """
        The link.

        @raise NotEnrolled: there is none yet.
        """
        if self._link is None:
            raise NotEnrolled("The router is not enrolled.")
        return self._link

    def use(self, identity: RouterIdentity) -> None:
        """
        Use an identity; the link becomes another one when key, certificate or trust have changed.

        @raise ValueError: a certificate or key is none; the identity before stays.
        """
        if self.identity is None or _of_link(self.identity) != _of_link(identity):
            link = self._connect(self._reactor, self._url, identity.authorities, identity.certificate, identity.key)
            before, self._link = self._link, link
            if before is not None:
                in_background(before.close())
        self.identity = identity

    async def close(self) -> None:
        """Close the connections that wait for another request."""
        if self._link is not None:
            await self._link.close()


def _of_link(identity: RouterIdentity) -> tuple[object, ...]:
    return identity.certificate, identity.key, identity.authorities
