"""
Tests for L{webhookrx.console.pages.overview} and its first steps.
"""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.console.pages.router_pages import HOSTILE, RouterPagesCase
from webhookrx.console.pages.first_steps import FirstSteps, _command
from webhookrx.management.agent_protocol import AppliedState, ConnectorState
from webhookrx.management.alarm_values import AlarmCount, AlarmRow
from webhookrx.management.rule_changes import ListedRule


class OverviewTests(RouterPagesCase):
    """A console that is in use."""

    def test_frame(self) -> None:
        """The frame has alarms, routers by state with links, and parts that come later; no first steps."""
        self.count(self.router("fra-1"), 30)
        self.router("fra-2", applied=AppliedState("FAILED", error="x"))
        self.router("fra-3", "pending")
        mine = self.sign_in("vera", "viewer", False)
        response = self.get("/", **mine)
        text, body = self.shown(response), response.body.decode()
        for part in ("3 routers", "1 pending", "1 failed", "1 applied", "has not looked at its alarms"):
            self.assertIn(part, text)
        for part in ('href="/routers?state=failed"', 'hx-get="/overview/traffic"', 'hx-get="/overview/changes"'):
            self.assertIn(part, body)
        self.assertNotIn("First steps", text)
        response = self.get("/overview/now", hx_request="true", **mine)
        self.assertIn("1 failed", self.shown(response))
        self.assertNotIn("<html", response.body.decode())

    def test_alarms(self) -> None:
        """Alarms that fire are named, five of them; what they say is text."""
        alarms = self.console.alarms
        rows = [AlarmRow("away", "router_away", f"fra-{n}", "firing", 1.0, HOSTILE) for n in range(7)]
        alarms.looked_at = self.clock.seconds()
        counts = (AlarmCount(alarms.rules[0].name, "router_away", firing=7),)
        alarms.alarms = SimpleNamespace(counts=counts, standing=lambda state, names: iter(rows))  # type: ignore[assignment]
        response = self.get("/", **self.sign_in())
        text = self.shown(response)
        for part in ("7 alarms firing", "fra-4", "2 more"):
            self.assertIn(part, text)
        self.assertNotIn("fra-5", text)
        self.assertNotIn("<script>alert", response.body.decode())

    def test_traffic(self) -> None:
        """Messages a second and refusals of the last hour, in a chart and a table; also without a script."""
        router = self.router("fra-1")
        self.clock.advance(-600)
        self.count(router, 1500)
        self.clock.advance(600)
        self.done(self.console.counts.write())
        mine = self.sign_in()
        for headers in ({}, {"hx_request": "true"}):
            response = self.get("/overview/traffic", **mine, **headers)
            text = self.shown(response)
            self.assertIn("1,500 messages in the hour until", text)
            self.assertIn("late 3", text)
            self.assertIn('<td class="number">5</td>', response.body.decode())
            self.assertEqual(not headers, "<html" in response.body.decode())

    def test_no_traffic(self) -> None:
        """Without messages the part says so."""
        text = self.shown(self.get("/overview/traffic", hx_request="true", **self.sign_in()))
        self.assertIn("0 messages in the hour until", text)
        self.assertIn("Nothing was refused.", text)

    def test_changes(self) -> None:
        """The last ten changes, the newest first."""
        mine = self.sign_in()
        for number in range(12):
            self.console_rule(f"rule-{number}", 8000 + number)
        body = self.get("/overview/changes", hx_request="true", **mine).body.decode()
        self.assertEqual(10, body.count("<li"))
        self.assertEqual([f"rule-{n}" for n in range(11, 1, -1)], re.findall(r"<strong>(.*?)</strong>", body))


class FirstStepsTests(RouterPagesCase):
    """A new console."""

    def states(self, mine: dict[str, str]) -> tuple[str, ...]:
        """Return the states of the steps, as the part that asks by itself has them."""
        body = self.get("/overview/steps", hx_request="true", **mine).body.decode()
        self.assertEqual("It works" not in body, 'hx-trigger="every 3s"' in body)
        return tuple(re.findall(r'<li id="step-\d" class="step-(\w+)"', body))

    def test_walk(self) -> None:
        """From nothing to the first message: each step becomes done as things happen, and the asking stops."""
        mine = self.sign_in()
        self.assertEqual(("next", "later", "later"), self.states(mine))
        response = self.post("/overview/token", {"auto": "yes"}, **mine)
        self.assertRegex(self.shown(response), r"echo wrx1\.[\w.-]+ > console-token")
        self.assertEqual(["auto"], [each.approve for each in self.fleet.enrolments.usable])
        self.assertNotIn("wrx1.", self.get("/", **mine).body.decode())
        router = self.router("fra-1", "pending")
        self.assertEqual(("next", "later", "later"), self.states(mine))
        body = self.get("/", **mine).body.decode()
        self.assertIn(f'action="/routers/{router.guid}:approve"', body)
        response = self.post(f"/routers/{router.guid}:approve", {"name": "fra-1", "back": "overview"}, **mine)
        self.assertEqual("/?said=router-approved", response.headers["location"])
        self.assertEqual(("done", "next", "later"), self.states(mine))
        response = self.post("/overview/rule", {"name": "try", "port": "8080"}, **mine)
        self.assertEqual((303, "/?said=first-rule"), (response.status, response.headers["location"]))
        self.assertEqual("", self.console.rulebook.saved.rules["try"].rule.selector)
        self.assertEqual(("done", "done", "next"), self.states(mine))
        router.connectors = (
            ConnectorState("fra-1-x-x", "x", 1, "closed", "taken"), ConnectorState("fra-1-try-try", "try", 8080)
        )  # fmt: skip
        text = self.shown(self.get("/", **mine))
        self.assertIn("""-d '{"hello": "world"}' http://localhost:8080/events""", text)
        self.count(router, 1)
        self.assertEqual(("done", "done", "done"), self.states(mine))
        self.assertNotIn("First steps", self.shown(self.get("/", **mine)))

    def test_trouble(self) -> None:
        """A router that can't have the rule says why."""
        self.router("fra-1", applied=AppliedState("FAILED", error="Port 8080 is taken."))
        self.console_rule("try", 8080)
        text = self.shown(self.get("/", **self.sign_in()))
        self.assertIn("fra-1 is failed. Port 8080 is taken. Change the rule", text)
        self.assertNotIn("opens in some seconds", text)

    def test_by_hand(self) -> None:
        """A router may wait for consent."""
        mine = self.sign_in()
        self.post("/overview/token", {}, **mine)
        self.assertEqual(["manual"], [each.approve for each in self.fleet.enrolments.usable])

    def test_wrong_rule(self) -> None:
        """What is wrong with the rule is told, and what was typed stays."""
        mine = self.sign_in()
        self.router("fra-1")
        for form in ({"name": HOSTILE, "port": "99999"}, {"name": "typed", "port": "x"}, {"name": "", "port": "80"}):
            response = self.post("/overview/rule", form, **mine)
            self.assertIn(response.status, (400, 422))
            self.assertIn('role="alert"', response.body.decode())
            self.assertIn(f'value="{form["port"]}"', response.body.decode())
            self.assertNotIn("<script>alert", response.body.decode())
        self.assertEqual({}, dict(self.console.rulebook.saved.rules))

    def test_rights(self) -> None:
        """Who may not do a step is told who does it."""
        viewer = self.sign_in("vera", "viewer", False)
        response = self.get("/", **viewer)
        self.assertIn("An admin does this.", self.shown(response))
        self.assertIn("An editor does this.", self.shown(response))
        self.assertNotIn("/overview/token", response.body.decode())
        self.assertEqual(403, self.post("/overview/token", {}, **viewer).status)
        self.assertEqual(403, self.post("/overview/rule", {}, **viewer).status)
        self.assertEqual((), self.fleet.enrolments.usable)

    def test_sources_of_their_own(self) -> None:
        """Receivers that take no rules are a fleet, too: with a message there is nothing left to do."""
        self.count(self.router("fra-1"), 1)
        self.assertNotIn("First steps", self.shown(self.get("/", **self.sign_in())))


class CommandTests(SynchronousTestCase):
    """The command that sends a message."""

    def command(self, **document: Any) -> str:
        """Return it for a rule."""
        rule = ListedRule("x", 1, "ui", {"protocol": "HTTP", **document})
        return _command(ConnectorState("c", "x", 8443), rule).rpartition("}' ")[2]

    def test_paths(self) -> None:
        """It takes a path that is no regular expression."""
        for paths, path in (
            (["/in"], "/in"), ("/in", "/in"), (["/a.*", "/b"], "/b"),
            (["/$(x)"], "/events"), ([], "/events"), ([1], "/events"),
        ):  # fmt: skip
            self.assertEqual(f"http://localhost:8443{path}", self.command(paths=paths))
        self.assertIn(
            "curl --insecure ", _command(ConnectorState("c", "x", 1), ListedRule("x", 1, "ui", {"protocol": "HTTPS"}))
        )
        self.assertIn("http://localhost:1/events", _command(ConnectorState("c", "x", 1), None))

    def test_states(self) -> None:
        """Messages may come before there is a rule; what is not done is next."""
        nothing: dict[str, Any] = {
            "waiting": (),
            "routers": (),
            "rules": 0,
            "troubled": (),
            "command": "",
            "connector_router": "",
        }
        self.assertEqual(("next", "done", "done"), FirstSteps(enrolled=False, arrived=True, **nothing).states)
