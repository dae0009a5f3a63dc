"""
Debian's Chromium, driven by Playwright, at the pages of a console with real routers.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from unittest import SkipTest

from twisted.trial.unittest import SynchronousTestCase

from tests.system.console_process import PASSWORD
from tests.system.fleet import Fleet

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

#: Root may not use the sandbox; without the others the browser calls services of its maker.
ARGUMENTS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

WIDTHS: Final = (320, 1280)
THEMES: Final = ("light", "dark")
AXE: Final = os.path.join(sys.prefix, "browser", "node_modules", "axe-core", "axe.min.js")
PATIENCE: Final = 30_000
"""Milliseconds that a page may take to show what is waited for."""


class ConsoleBrowser:
    """
    One browser.

    @ivar errors: what pages have said is wrong, such as a script that the console's policy forbids.
    @raise SkipTest: something is not installed.
    """

    def __init__(self) -> None:
        program = shutil.which("chromium")
        if program is None:
            raise SkipTest("Chromium is not installed.")
        try:
            from playwright.sync_api import sync_playwright
        except ImportError:
            raise SkipTest("Playwright is not installed: pip install -e '.[browser]'.") from None
        self._manager = sync_playwright()
        self._playwright = self._manager.start()
        self.errors: list[str] = []
        self.browser: Browser = self._playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))

    def close(self) -> None:
        """End it."""
        self.browser.close()
        self._playwright.stop()

    def context(self, **options: Any) -> BrowserContext:
        """Return a browser of somebody else: no cookies."""
        context = self.browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(PATIENCE)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("console", self._note)
        return context

    def _note(self, message: Any) -> None:
        # A status that is an error is told there, too; pages have them on purpose.
        if message.type == "error" and "the server responded with a status" not in message.text:
            self.errors.append(message.text)


def sign_in(context: BrowserContext, url: str, name: str = "mara", password: str = PASSWORD) -> Page:
    """Return a page of somebody who has signed in: the overview."""
    page = context.new_page()
    page.goto(f"{url}/sign-in")
    page.fill("#name", name)
    page.fill("#password", password)
    page.click("main button.primary")
    page.wait_for_url(f"{url}/")
    return page


@cache
def _shared() -> tuple[ConsoleBrowser, Fleet]:
    """Return the browser and the fleet of all tests of this process, which end with it."""
    chromium = ConsoleBrowser()
    try:
        fleet = Fleet(2)
    except BaseException:
        chromium.close()
        raise
    atexit.register(fleet.clean_up)
    atexit.register(chromium.close)
    return chromium, fleet


class BrowserCase(SynchronousTestCase):
    """
    A browser, and a fleet with the routers C{edge-0} and C{edge-1}. To start both takes seconds, so tests share them.

    @ivar chromium: see L{ConsoleBrowser}.
    @ivar fleet: see L{Fleet}.
    """

    def setUp(self) -> None:
        """Start both for the first test. Nothing is wrong yet."""
        super().setUp()
        self.chromium, self.fleet = _shared()
        self.chromium.errors.clear()

    @property
    def url(self) -> str:
        """That of the console."""
        return f"http://127.0.0.1:{self.fleet.console.port}"

    def context(self, **options: Any) -> BrowserContext:
        """Return a browser of somebody else, which is closed after the test."""
        context = self.chromium.context(**options)
        self.addCleanup(context.close)
        return context

    def signed_in(self, **options: Any) -> Page:
        """Return the overview of an admin, in a browser with these options of Playwright."""
        return sign_in(self.context(**options), self.url)

    def check_no_errors(self) -> None:
        """Check that no page has told that something is wrong."""
        self.assertEqual([], self.chromium.errors)
        self.assertNotIn("Traceback", self.fleet.console.log_text())
        self.assertNotRegex(self.fleet.console.log_text(), r"(?:A page|A call of the API) failed")
