"""
Tests for L{webhookrx.console.pages.rule_history}: what a rule was, and the way back.
"""

from __future__ import annotations

import re
from typing import Any

from twisted.internet.defer import Deferred, succeed

from tests.console.pages.test_rules import HOSTILE, RuleCase
from webhookrx.console.pages import rule_history


class HistoryCase(RuleCase):
    """A rule with a history."""

    def setUp(self) -> None:
        """Change it some times; what goes to a thread is done at once."""
        super().setUp()
        self.patch(self.console.previews, "_in_thread", self.in_turn)
        self.save("web", labels={"team": "a"})
        self.change("web", 1, labels={"team": HOSTILE[3:9]})
        self.change("web", 2, port=8443)

    def in_turn(self, work: Any) -> Deferred[Any]:
        """Do it now."""
        return succeed(work())


class RuleHistoryTests(HistoryCase):
    """What is shown."""

    def test_changes(self) -> None:
        """Each change has who, when, how, its revision and what has changed; the newest is marked."""
        response = self.get("/rules/web/history", **self.mine)
        text = self.shown(response)
        self.assertIn("Generation 3: changed now", text)
        self.assertIn("by erik via ui", text)
        self.assertIn("removed: - port: 8080", text.replace("  ", " "))
        self.assertIn("added: + port: 8443", text)
        self.assertIn("Generation 1: made", text)
        html = response.body.decode()
        self.assertIn('href="/activity?query=revision+%3D+', html)
        self.assertEqual(["2", "1"], re.findall(r'href="/rules/web/history/(\d)"', html))
        self.assertEqual(404, self.get("/rules/nothing/history", **self.mine).status)
        viewer = self.get("/rules/web/history", **self.sign_in("vera", "viewer", False)).body.decode()
        self.assertNotIn("/rules/web/history/1", viewer)

    def test_deleted(self) -> None:
        """A rule that is deleted has a history, too, and can be made again."""
        self.assertEqual(204, self.ask("DELETE", "/rules/web", if_match='"g3"', **self.mine).status)
        response = self.get("/rules/web/history", **self.mine)
        self.assertIn("The rule is deleted.", self.shown(response))
        self.assertEqual(["3", "2", "1"], re.findall(r'href="/rules/web/history/(\d)"', response.body.decode()))
        page = self.get("/rules/web/history/3", **self.mine)
        self.assertIn("+ name: web", self.shown(page))
        response = self.post("/rules/web/history/3", {"read": "4"}, **self.mine)
        self.assertEqual((303, "/rules/web?said=rule-rolled-back"), (response.status, response.headers["location"]))
        self.assertEqual(8443, self.console.rulebook.saved.rules["web"].rule.port)

    def test_pages(self) -> None:
        """Older changes are on further pages."""
        for generation in range(3, 25):
            self.change("web", generation, description=str(generation))
        html = self.get("/rules/web/history", **self.mine).body.decode()
        self.assertEqual(rule_history.MOST_CHANGES, html.count("<section"))
        (older,) = re.findall(r'href="(/rules/web/history\?before=\d+)"', html)
        text = self.shown(self.get(older, **self.mine))
        self.assertIn("Generation 1: made", text)
        self.assertNotIn(" now ", text)
        self.assertIn("There are no older changes.", self.shown(self.get("/rules/web/history?before=1", **self.mine)))

    def test_names(self) -> None:
        """Markup in names and notes stays text."""
        self.save(HOSTILE, 9999, description=HOSTILE)
        response = self.get("/rules/%22%3E%3Cscript%3Ex%D8%A5/history", **self.mine)
        self.assertEqual(200, response.status)
        self.assertIn(f"History of {HOSTILE}", self.shown(response))
        self.assertNotIn("<script>x", response.body.decode())


class RollBackTests(HistoryCase):
    """Rolling back."""

    def test_roll_back(self) -> None:
        """First it is shown what changes, also on routers; then the rule is what it was, as a new change."""
        self.fleet.add("r1")
        page = self.get("/rules/web/history/1", **self.mine)
        text = self.shown(page)
        self.assertIn("Roll back web to generation 1", text)
        self.assertIn("removed: - port: 8443", text)
        self.assertIn("Matches 1 of 1 routers", text)
        self.assertIn("Roll back: 1 router", text)
        self.assertIn('name="read" value="3"', page.body.decode())
        response = self.post("/rules/web/history/1", {"read": "3"}, **self.mine)
        self.assertEqual((303, "/rules/web?said=rule-rolled-back"), (response.status, response.headers["location"]))
        saved = self.console.rulebook.saved.rules["web"]
        self.assertEqual((4, 8080, {"team": "a"}), (saved.generation, saved.rule.port, dict(saved.rule.labels)))

    def test_stale(self) -> None:
        """What was changed since it was shown is not rolled back, and is shown anew."""
        self.change("web", 3, port=9000)
        response = self.post("/rules/web/history/1", {"read": "3"}, **self.mine)
        self.assertEqual(412, response.status)
        self.assertIn("is at generation 4 now", self.shown(response))
        self.assertIn("removed: - port: 9000", self.shown(response))
        self.assertIn('name="read" value="4"', response.body.decode())
        self.assertEqual(9000, self.console.rulebook.saved.rules["web"].rule.port)

    def test_clash(self) -> None:
        """What clashes with other rules now can't be rolled back."""
        self.save("other", 8080)
        page = self.get("/rules/web/history/1", **self.mine)
        response = self.post("/rules/web/history/1", {"read": "3"}, **self.mine)
        self.assertEqual((200, 409), (page.status, response.status))
        self.assertIn("port-clash", self.shown(response))

    def test_nothing(self) -> None:
        """Generations that never were, and the one that is there."""
        for generation in ("9", "0", "x", "1e3"):
            self.assertEqual(404, self.get(f"/rules/web/history/{generation}", **self.mine).status, generation)
        self.assertIn("at this generation already", self.shown(self.get("/rules/web/history/3", **self.mine)))
        viewer = self.sign_in("vera", "viewer", False)
        self.assertEqual(403, self.get("/rules/web/history/1", **viewer).status)
