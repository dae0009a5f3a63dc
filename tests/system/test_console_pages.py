"""
Tests of the pages of a console in a real browser, with two real routers: look, width, keys, and life without a script.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from tests.system.browser import THEMES, WIDTHS, BrowserCase

#: Every page that needs nothing but a fleet; C{tests.system.test_console_axe} looks at the same.
PATHS: Final = (
    "/",
    "/routers",
    "/routers/edge-0",
    "/routers/:enrol",
    "/rules",
    "/rules:new",
    "/rules/hooks-edge-0",
    "/rules/hooks-edge-0/history",
    "/rules/hooks-edge-0/delete",
    "/rules:file",
    "/tap",
    "/analytics",
    "/alarms",
    "/alarms:new",
    "/alarms/router_away",
    "/alarms/router_away/history",
    "/alarm-targets",
    "/activity",
    "/activity/2",
    "/audit",
    "/settings",
    "/settings/account",
    "/settings/people",
    "/settings/people/mara",
    "/settings/tokens",
    "/settings/masks",
    "/settings/retention",
    "/settings/certificates",
    "/settings/backup",
    "/settings/single-sign-on",
    "/settings/about",
)

#: KiB of a page with all that it loads, as it comes by the wire.
MOST: Final = 60


class LookTests(BrowserCase):
    """All pages, as they are."""

    def test_all(self) -> None:
        """Each page fits light and dark, narrow and wide, keeps to the console's policy, and is small."""
        for theme in THEMES:
            page = self.signed_in(color_scheme=theme)
            for path in PATHS:
                with self.subTest(path=path, theme=theme):
                    answer = page.goto(self.url + path)
                    assert answer is not None
                    self.assertEqual(200, answer.status)
                    page.wait_for_load_state("networkidle")
                    for width in WIDTHS:
                        page.set_viewport_size({"width": width, "height": 800})
                        beyond = page.evaluate(
                            "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
                        )
                        self.assertLessEqual(beyond, 0, f"{path} is wider than {width} pixels")
                    self.assertEqual(1, page.locator("h1").count(), path)
                    self.assertEqual(0, page.locator("[aria-busy=true]").count(), "all parts have come")
        self.check_no_errors()

    def test_small(self) -> None:
        """A page, with all that it loads for the first time, is at most 60 KiB."""
        for path in PATHS:
            page = self.signed_in()
            context = page.context
            session = context.new_cdp_session(page)
            session.send("Network.enable")
            session.send("Network.setCacheDisabled", {"cacheDisabled": True})
            sizes: list[float] = []
            session.on("Network.loadingFinished", lambda event, sizes=sizes: sizes.append(event["encodedDataLength"]))
            page.goto(self.url + path)
            page.wait_for_load_state("networkidle")
            self.assertGreater(len(sizes), 3)
            self.assertLessEqual(sum(sizes) / 1024, MOST, path)
            context.close()

    def test_without_script(self) -> None:
        """Each page has its content without a script."""
        page = self.signed_in(java_script_enabled=False)
        for path in PATHS:
            with self.subTest(path=path):
                answer = page.goto(self.url + path)
                assert answer is not None
                self.assertEqual(200, answer.status)
                self.assertEqual(1, page.locator("h1").count())
                self.assertGreater(len(page.locator("main").inner_text()), 40)
        self.check_no_errors()


class KeyTests(BrowserCase):
    """By keyboard alone."""

    def test_keys(self) -> None:
        """Somebody signs in, goes to pages and to the query, and lists the keys without a mouse."""
        page = self.context().new_page()
        page.goto(f"{self.url}/first-admin")
        page.keyboard.press("Tab")
        self.assertEqual("Skip to the content", page.evaluate("document.activeElement.textContent"))
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        self.assertEqual("secret", page.evaluate("document.activeElement.id"))
        page.goto(f"{self.url}/rules")
        self.assertEqual("name", page.evaluate("document.activeElement.id"))
        page.keyboard.type("mara")
        page.keyboard.press("Tab")
        page.keyboard.type("correct horse battery")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{self.url}/rules")
        for keys, path in (("gr", "/routers"), ("ga", "/activity"), ("go", "/"), ("gu", "/rules")):
            for key in keys:
                page.keyboard.press(key)
            page.wait_for_url(lambda url, path=path: urlsplit(url).path == path)
        page.keyboard.press("/")
        self.assertEqual("query", page.evaluate("document.activeElement.id"))
        page.keyboard.type("g?")
        self.assertFalse(page.locator("#keys").is_visible())
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("?")
        page.locator("#keys").wait_for(state="visible")
        page.keyboard.press("Escape")
        page.locator("#keys").wait_for(state="hidden")
        self.check_no_errors()

    def test_no_trap(self) -> None:
        """Tab comes from the first to the last element of a page, and every one of them shows that it has the focus."""
        page = self.signed_in()
        for path in ("/rules", "/rules/hooks-edge-0", "/settings/account"):
            page.goto(self.url + path)
            page.wait_for_load_state("networkidle")
            seen = 0
            while seen < 250:
                page.keyboard.press("Tab")
                seen += 1
                outline = page.evaluate(
                    "document.activeElement === document.body ? 'end'"
                    " : getComputedStyle(document.activeElement).outlineStyle"
                )
                if outline == "end":
                    break
                self.assertNotEqual("none", outline, page.evaluate("document.activeElement.outerHTML"))
            self.assertLess(seen, 250, path)
            self.assertGreater(seen, 10, path)
