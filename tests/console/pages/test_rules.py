"""
Tests for L{webhookrx.console.pages.rules}: the list of rules.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred

from tests.console.pages.paging import PageCase, text_of
from webhookrx.console.routers.polls import Polls
from webhookrx.console.routers.registry import EnrolledRouter, RouterRegistry
from webhookrx.management.agent_protocol import AppliedState, ConnectorState, GateState, RouterFacts

HOSTILE = '"><script>x\u0625'


class FakeFleet:
    """Routers, and nothing that is done with them."""

    problem = ""
    hosts = ()

    def __init__(self, clock: Any) -> None:
        self.registry = RouterRegistry()
        self.polls = Polls(clock)
        self.clock = clock.seconds

    def add(self, name: str, **more: Any) -> None:
        """Add a router that is approved."""
        self.registry.add(EnrolledRouter(f"guid-{name}", name, "approved", facts=RouterFacts(form="router"), **more))


class RuleCase(PageCase):
    """A console with rules."""

    def setUp(self) -> None:
        """Read no rules, and sign an editor in."""
        super().setUp()
        self.wait(self.console.rulebook.start())
        self.fleet: Any = FakeFleet(self.clock)
        self.console.fleet = self.fleet
        self.mine = self.sign_in("erik", "editor", False)

    def wait(self, work: Any) -> Any:
        """Return what comes of something that does not wait."""
        return self.successResultOf(Deferred.fromCoroutine(work))

    def save(self, name: str, port: int = 8080, **more: Any) -> None:
        """Save a rule by the API."""
        rule = {"name": name, "protocol": "HTTP", "port": port, **more}
        response = self.ask("POST", "/rules", rule, **self.mine)
        self.assertEqual(201, response.status, response.body)

    def change(self, name: str, generation: int, **more: Any) -> None:
        """Change a rule by the API."""
        rule = {"name": name, "protocol": "HTTP", "port": 8080, **more}
        response = self.ask("PUT", f"/rules/{name}", rule, if_match=f'"g{generation}"', **self.mine)
        self.assertEqual(200, response.status, response.body)


class RulesPageTests(RuleCase):
    """The list."""

    def test_empty(self) -> None:
        """Without rules an editor is led to the first one; who may not write is told who may."""
        response = self.get("/rules", **self.mine)
        self.assertIn("There are no rules yet.", self.shown(response))
        self.assertIn('href="/rules:new"', response.body.decode())
        self.assertNotIn('id="query"', response.body.decode())
        response = self.get("/rules", **self.sign_in("vera", "viewer", False))
        self.assertNotIn("/rules:new", response.body.decode())
        self.assertIn("An editor can write one", self.shown(response))

    def test_rows(self) -> None:
        """A row has name, selector, port, protocol, labels, manager, and who has changed it and when."""
        self.save(HOSTILE, 8443, selector=f"label.team = '{HOSTILE}'", labels={"team": "web"}, description=HOSTILE)
        self.save("plain")
        response = self.get("/rules", **self.mine)
        text = self.shown(response)
        self.assertNotIn("<script>x", response.body.decode())
        self.assertIn(f"{HOSTILE}", text)
        self.assertIn("2 rules", text)
        self.assertIn("8443 HTTP", text)
        self.assertIn("team=web", text)
        self.assertIn("all routers", text)
        self.assertIn("by erik", text)
        self.assertIn("2027-01-15 08:00 UTC", text)
        self.assertIn('href="/rules/%22%3E%3Cscript%3Ex%D8%A5"', response.body.decode())
        self.assertIn('hx-get="/rules?reach=yes"', response.body.decode())

    def test_reach(self) -> None:
        """The numbers come with another call, or with the page where there is no script."""
        self.save("web", 8443, selector="label.team = web")
        self.save("all", 8080)
        self.save("none", 8081, selector="label.team = nobody")
        self.fleet.add("a", labels={"team": "web"})
        self.fleet.add("b", labels={"team": "web"}, gate=GateState(reasons=("x",), paths=("/x",)))
        self.fleet.add("c", labels={"team": "web"}, connectors=(ConnectorState("c-web-web", "web", 8443, "closed"),))
        self.fleet.add("d", applied=AppliedState(status="FAILED"))
        self.fleet.registry.add(EnrolledRouter("p", "p", "pending", facts=RouterFacts(form="router")))
        part = self.get("/rules?reach=yes", hx_request="true", **self.mine)
        self.assertNotIn("<html", part.body.decode())
        rows = self.rows(part.body.decode())
        self.assertIn("4 routers match all 2 blocked", rows["all"])
        self.assertIn("3 routers match web 2 blocked", rows["web"])
        self.assertIn("none 0", rows["none"])
        self.assertIn('href="/routers?query=label.team+%3D+web"', part.body.decode())
        self.assertIn("4 routers take rules", self.shown(part))
        whole = self.get("/rules?reach=yes", **self.mine)
        self.assertIn("<html", whole.body.decode())
        self.assertEqual(rows, self.rows(whole.body.decode()))
        self.assertNotIn("hx-get", whole.body.decode())

    def rows(self, html: str) -> dict[str, str]:
        """Return the text of each row by the name of its rule."""
        body = html.partition("<tbody>")[2].partition("</tbody>")[0]
        rows = [text_of(row) for row in re.findall(r"<tr>.*?</tr>", body, re.DOTALL)]
        return {row.split()[0]: row for row in rows}

    def test_query(self) -> None:
        """A query finds rules by their fields, labels, manager and who has changed them."""
        self.save("web", 8443, selector="label.team = web", labels={"team": "web"})
        self.save("other", 8080)
        for query in (
            "label.team = web",
            "port = 8443",
            "name = web AND manager = ui",
            "changed_by = erik AND name =* w",
        ):
            with self.subTest(query=query):
                response = self.get(f"/rules?query={query.replace(' ', '+').replace('=', '%3D')}", **self.mine)
                self.assertIn("1 of 2 rules match", self.shown(response))
        response = self.get("/rules?query=name%3Dnobody", **self.mine)
        self.assertIn("None of the 2 rules matches", self.shown(response))
        self.assertIn('value="name=nobody"', response.body.decode())

    def test_wrong_query(self) -> None:
        """What is no query is told at its field, with the place."""
        response = self.get("/rules?query=%3D%3D%3D<script>", **self.mine)
        self.assertEqual(422, response.status)
        html = response.body.decode()
        self.assertRegex(html, r'id="query-error">Column 1 of the query: ')
        self.assertIn('value="===&lt;script&gt;"', html)

    def test_pages(self) -> None:
        """Few enough rules are on a page for its size, with a link to more, which keeps the query."""
        for number in range(35):
            self.save(f"r{number:02}", 9000 + number)
        response = self.get("/rules?query=protocol+%3D+HTTP", **self.mine)
        self.assertIn("35 of 35 rules match, 25 of them on this page", self.shown(response))
        self.assertIn('href="/rules?query=protocol+%3D+HTTP&amp;after=r24"', response.body.decode())
        self.assertLess(len(response.body), 18_000)
        response = self.get("/rules?query=protocol+%3D+HTTP&after=r24", **self.mine)
        self.assertIn("r34", self.shown(response))
        self.assertNotIn("r24 ", self.shown(response))
        self.assertIn('href="/rules?query=protocol+%3D+HTTP"', response.body.decode())
        self.assertNotIn("Next rules", self.shown(response))


class RulesFileTests(RuleCase):
    """Rules by a file."""

    FILE = "connector_rules:\n  - {name: a, protocol: HTTP, port: 8081}\n  - {name: new, protocol: HTTP, port: 8082}\n"

    def test_replace(self) -> None:
        """First it is shown what would change, and then it is done as one change."""
        self.save("a", 8080)
        form = {"file": self.FILE, "manager": "console", "take_over": "yes", "note": "why"}
        response = self.post("/rules:file", form, **self.mine)
        text = self.shown(response)
        self.assertIn("New 1: new Changed 1", text)
        self.assertIn("a: 1 field, taken from ui", text)
        self.assertIn("~ port = 8081 (was 8080)", text)
        self.assertIn("Replace: 1 new, 1 changed, 0 deleted", text)
        self.assertEqual({"a"}, set(self.console.rulebook.saved.rules))
        hidden = dict(
            re.findall(r'<input type="hidden" name="(revision|shown)" value="(\w+)">', response.body.decode())
        )
        response = self.post("/rules:file", {**form, **hidden, "sure": "yes"}, **self.mine)
        self.assertEqual((303, "/rules?said=rules-replaced"), (response.status, response.headers["location"]))
        saved = self.console.rulebook.saved.rules
        self.assertEqual({"a": 8081, "new": 8082}, {name: rule.rule.port for name, rule in saved.items()})
        self.assertEqual("push:console", saved["new"].manager)

    def test_not_shown(self) -> None:
        """A file that was changed after it was shown is shown first; rules that were changed since are not replaced."""
        form = {"file": self.FILE, "manager": "console"}
        html = self.post("/rules:file", form, **self.mine).body.decode()
        hidden = dict(re.findall(r'<input type="hidden" name="(revision|shown)" value="(\w+)">', html))
        other = {**form, **hidden, "sure": "yes", "file": self.FILE.replace("new", "newer")}
        response = self.post("/rules:file", other, **self.mine)
        self.assertIn("New 2: a, newer", self.shown(response))
        self.save("z", 9999)
        response = self.post("/rules:file", {**form, **hidden, "sure": "yes"}, **self.mine)
        self.assertEqual(412, response.status)
        self.assertEqual({"z"}, set(self.console.rulebook.saved.rules))

    def test_wrong(self) -> None:
        """What is wrong is told with its line, and what was typed stays."""
        response = self.post("/rules:file", {"file": "connector_rules: [<b>]", "manager": "x y"}, **self.mine)
        self.assertEqual(400, response.status)
        self.assertIn("connector_rules: [&lt;b&gt;]</textarea>", response.body.decode())
        response = self.post("/rules:file", {"file": "connector_rules: [{port: '<b>'}]", "manager": "x"}, **self.mine)
        self.assertEqual(422, response.status)
        self.assertIn("connector_rules: [{port: &#39;&lt;b&gt;&#39;}]</textarea>", response.body.decode())
        self.assertIn("line 1", self.shown(response))

    def test_others(self) -> None:
        """Rules of other managers are named."""
        self.save("a", 8080)
        response = self.post("/rules:file", {"file": self.FILE, "manager": "console"}, **self.mine)
        self.assertEqual(409, response.status)
        self.assertIn("a: ui", self.shown(response))

    def test_read_only(self) -> None:
        """At a console whose rules come from files alone there is no form."""
        self.console.settings = replace(self.console.settings, read_only_rules=True)
        self.assertNotIn("<textarea", self.get("/rules:file", **self.mine).body.decode())
        self.assertNotIn("/rules:new", self.get("/rules", **self.mine).body.decode())
