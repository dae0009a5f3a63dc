"""
The part of a console that serves its API and its pages on the console's port.
"""

from __future__ import annotations

from typing import Any

from twisted.web.resource import Resource
from zope.interface import implementer

from webhookrx.console.api.callers import Callers
from webhookrx.console.api.dispatch import ApiResource
from webhookrx.console.api.reading import CSRF_HEADER, WANTED
from webhookrx.console.api.table import RouteTable
from webhookrx.console.console import Console
from webhookrx.console.pages.page_resource import PageResource
from webhookrx.console.pages.routes import PAGES
from webhookrx.console.routes import CONSOLE_ROUTES
from webhookrx.http.interfaces import IEarlyResource, Verdict
from webhookrx.intake.head import Head


@implementer(IEarlyResource)
class ConsoleResource(Resource):
    """
    The root of the console's port: the API below its prefix, pages at all other paths.

    @cvar reads_forms: C{twisted.web} leaves forms alone, which it would read at once for whoever sends them.
    """

    isLeaf = True
    reads_forms = True
    wanted = (*WANTED, CSRF_HEADER)

    def __init__(self, api: ApiResource, pages: PageResource) -> None:
        super().__init__()
        self._api = api
        self._pages = pages

    def dispatch(self, head: Head) -> Verdict:
        """See L{IEarlyResource.dispatch}."""
        return self._of(head.path).dispatch(head)

    def render(self, request: Any) -> int:
        """See L{twisted.web.resource.IResource.render}."""
        path: bytes = request.uri.partition(b"?")[0]
        return self._of(path).render(request)

    def _of(self, path: bytes) -> ApiResource | PageResource:
        # What is no path at all, such as an absolute URL, is no page.
        return self._pages if path.startswith(b"/") and not path.startswith(b"/api/") else self._api


class WebPart:
    """
    A L{webhookrx.console.console.ConsolePart}: API and pages, and the threads for passwords.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._api: ApiResource | None = None

    async def start(self) -> None:
        """See L{webhookrx.console.console.ConsolePart.start}."""
        console, url = self._console, self._console.settings.url
        console.people.passwords.start()
        callers = Callers(console.people, console.reactor.seconds)
        routes = RouteTable(CONSOLE_ROUTES)
        self._api = ApiResource(routes, callers, console, url, console.reactor)
        pages = PageResource(RouteTable(PAGES, prefix=""), routes, callers, console, url)
        pages.load()
        console.root = ConsoleResource(self._api, pages)
        console.end_streams = self._api.end_streams

    def tick(self) -> None:
        """Nothing here has a deadline of its own."""

    async def stop(self) -> None:
        """See L{webhookrx.console.console.ConsolePart.stop}."""
        if self._api is not None:
            self._api.end_streams()
        self._console.people.passwords.stop()
