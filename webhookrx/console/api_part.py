"""
The part of a console that serves its API.
"""

from __future__ import annotations

from webhookrx.console.api.callers import Callers
from webhookrx.console.api.dispatch import ApiResource
from webhookrx.console.api.table import RouteTable
from webhookrx.console.console import Console
from webhookrx.console.routes import CONSOLE_ROUTES


class ApiPart:
    """
    A L{webhookrx.console.console.ConsolePart}: the API on the console's port, and the threads for passwords.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._resource: ApiResource | None = None

    async def start(self) -> None:
        """See L{webhookrx.console.console.ConsolePart.start}."""
        console = self._console
        console.people.passwords.start()
        self._resource = ApiResource(
            RouteTable(CONSOLE_ROUTES),
            Callers(console.people, console.reactor.seconds),
            console,
            console.settings.url,
            console.reactor,
        )
        console.root = self._resource
        console.end_streams = self._resource.end_streams

    def tick(self) -> None:
        """Nothing here has a deadline of its own."""

    async def stop(self) -> None:
        """See L{webhookrx.console.console.ConsolePart.stop}."""
        if self._resource is not None:
            self._resource.end_streams()
        self._console.people.passwords.stop()
