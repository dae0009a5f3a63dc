"""
Tests of the pages of a console by axe-core (U{https://github.com/dequelabs/axe-core}), which looks for barriers.
"""

from __future__ import annotations

import os
from unittest import SkipTest

from tests.system.browser import AXE, THEMES, WIDTHS, BrowserCase
from tests.system.test_console_pages import PATHS

#: Success criteria of WCAG 2.2 up to AA, and what axe-core calls good practice.
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


class AxeTests(BrowserCase):
    """All pages. The console's policy is off here, as axe-core is a script that is put into them."""

    def setUp(self) -> None:
        """See L{BrowserCase.setUp}."""
        if not os.path.exists(AXE):
            raise SkipTest("axe-core is not installed: see tests/system/browser_packages.txt.")
        super().setUp()

    def test_all(self) -> None:
        """axe-core finds nothing on any page, in light and dark, narrow and wide."""
        found = []
        for theme in THEMES:
            for width in WIDTHS:
                options = {"color_scheme": theme, "bypass_csp": True, "viewport": {"width": width, "height": 800}}
                page = self.signed_in(**options)
                for path in PATHS:
                    page.goto(self.url + path)
                    page.wait_for_load_state("networkidle")
                    page.add_script_tag(path=AXE)
                    result = page.evaluate("rules => axe.run(document, rules)", RULES)
                    self.assertGreater(len(result["passes"]), 10)
                    for each in result["violations"]:
                        nodes = [node["html"][:200] for node in each["nodes"][:3]]
                        found.append(f"{path} {theme} {width}: {each['id']}: {each['help']} {nodes}")
        self.assertEqual([], found, "\n".join(found))
