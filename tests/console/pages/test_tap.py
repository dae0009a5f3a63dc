"""
Tests for L{webhookrx.console.pages.tap}; what its script does is tested in a browser.
"""

from __future__ import annotations

import os
import re
import shlex
from urllib.parse import urlencode

from tests.console.pages.paging import PageCase
from tests.console.people.test_people import ORIGIN
from webhookrx.console.pages.static_files import DIRECTORY

HOSTILE = "\"><script>alert(1)</script>' $(id)\u202e"


class TapPageTests(PageCase):
    """The form, filled by the query."""

    def setUp(self) -> None:
        super().setUp()
        self.mine = self.sign_in("tara", "viewer", True)

    def page(self, **query: str) -> str:
        """Return the page."""
        response = self.get(f"/tap?{urlencode(query)}", **self.mine)
        self.assertEqual(200, response.status)
        return response.body.decode()

    def command(self, page: str) -> list[str]:
        """Return the words of the command on a page."""
        found = re.search(r'<pre id="command">(.*?)</pre>', page, re.DOTALL)
        assert found is not None
        return shlex.split(_text(found[1]))

    def test_form(self) -> None:
        """It has the usual rate and time, the five labels of analytics, and says what to do without a script."""
        page = self.page()
        for name, value in (("rate", "1"), ("for", "10m"), ("routers", "")):
            self.assertRegex(page, rf'<input id="{name}" name="{name}"[^>]* value="{value}"')
        for label in ("type", "name", "port", "labels.product", "labels.vendor"):
            self.assertIn(f'<option value="connector.{label}">', page)
        self.assertIn("Taps need a script", page)
        self.assertEqual(["webhookrx", "tap", "--console", ORIGIN, "--token-file", "token"], self.command(page))
        self.assertRegex(page, r'role="log"[^>]*aria-live="off"')

    def test_filled(self) -> None:
        """What the query says is in the form and in the command."""
        page = self.page(
            routers="label.site = fra",
            connectors="connector.port = 80",
            point="probe:before",
            rate="5",
            filter="a = 'b'",
        )
        self.assertRegex(page, r'id="routers"[^>]* value="label.site = fra"')
        self.assertRegex(page, r'id="probe"[^>]* value="before"')
        self.assertIn('<option value="probe" selected>', page)
        words = self.command(page)[6:]
        self.assertEqual(
            ["--routers", "label.site = fra", "--connector", "connector.port = 80", "--point", "probe:before"],
            words[:6],
        )
        self.assertEqual(["--filter", "a = 'b'", "--rate", "5"], words[6:])
        self.assertIn('<option value="" selected>', self.page(point="nonsense"))

    def test_hostile(self) -> None:
        """A link fills the form with text, and the command has it as one word."""
        page = self.page(routers=HOSTILE, source=HOSTILE, show=HOSTILE)
        self.assertNotIn("<script>alert", page)
        self.assertEqual(["--routers", HOSTILE, "--source", HOSTILE], self.command(page)[6:])

    def test_pasted(self) -> None:
        """A link puts nothing into the command that a terminal obeys when somebody pastes it there."""
        page = self.page(filter="a\x15rm -rf x\r\n", source="\x1b[201~\x9b", **{"for": "\x7f1m"})
        self.assertNotRegex(page.replace("\n", ""), r"[\x00-\x1f\x7f-\x9f]")
        self.assertEqual(["--source", "[201~", "--filter", "a rm -rf x", "--for", "1m"], self.command(page)[6:])

    def test_rights(self) -> None:
        """Who may not tap gets no page, and no link to it; the role does not matter."""
        admin = self.sign_in("root", "admin", False)
        response = self.get("/tap", **admin)
        self.assertEqual(403, response.status)
        self.assertIn("It needs the right: tap.", self.shown(response))
        self.assertNotIn('href="/tap"', self.get("/alarms", **admin).body.decode())
        self.assertIn('href="/tap"', self.get("/alarms", **self.mine).body.decode())

    def test_scripts(self) -> None:
        """The scripts make no HTML and run no text."""
        for name in ("tap.js", "tap_text.js", "alarms.js"):
            with open(os.path.join(DIRECTORY, name), encoding="utf-8") as file:
                script = file.read()
            self.assertNotRegex(script, r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function")


def _text(markup: str) -> str:
    import html

    return html.unescape(markup)
