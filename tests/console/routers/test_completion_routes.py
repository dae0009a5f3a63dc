"""
Tests for L{webhookrx.console.routers.completion_routes} and its vocabulary.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from twisted.internet.defer import Deferred

from tests.console.people.test_people import PeopleCase
from webhookrx.console.routers import completion_routes, vocabulary
from webhookrx.router.rules.rule import Host


class FakeFleet:
    """Routers that take rules."""

    hosts: tuple[Host, ...] = (
        Host("ber-1", {"site": "ber", "app.example/tier": "edge"}, os="linux", ip="192.0.2.1"),
        Host("fra-1", {"site": "frankfurt (main)"}, os="linux", ip=("192.0.2.2", "192.0.2.3")),
        Host("fra-2", {"site": "fra"}),
    )


class CompletionTests(PeopleCase):
    """C{/queries:complete}; C{|} is the cursor."""

    def setUp(self) -> None:
        """Sign a viewer in, and save a rule."""
        super().setUp()
        self.fleet: Any = FakeFleet()
        self.console.fleet = self.fleet
        self.successResultOf(Deferred.fromCoroutine(self.console.rulebook.start()))
        self.add("mara", "editor")
        rule = {"name": "web", "protocol": "HTTP", "port": 8080, "labels": {"team": "web"}}
        self.assertEqual(201, self.ask("POST", "/rules", rule, **self.session()).status)
        self.add("vera")
        self.mine = self.session("vera")

    def completed(self, text: str, about: str = "routers") -> Any:
        """Return the answer at the cursor."""
        query = urlencode({"text": text.replace("|", "", 1), "at": text.index("|"), "about": about})
        response = self.ask("GET", f"/queries:complete?{query}", **self.mine)
        self.assertEqual(200, response.status, response.body)
        return json.loads(response.body)

    def texts(self, text: str, about: str = "routers") -> list[str]:
        """Return what may stand at the cursor."""
        return [each["text"] for each in self.completed(text, about)["items"]]

    def test_fields(self) -> None:
        """Fields are those that something has; those come first that begin as what is written."""
        fields = self.texts("|")
        self.assertEqual(
            ["name", "hostname", "fqdn", "ip", "os", "arch", "version", "label.site", "label.'app.example/tier'"],
            fields,
        )
        self.assertEqual(["name", "hostname"], self.texts("name|"))
        self.assertEqual(["label.site"], self.texts("site|"))
        found = self.completed("name = x AND la|b = y")
        self.assertEqual(("field", 13, 16), (found["kind"], found["start"], found["end"]))

    def test_values(self) -> None:
        """Values are those of the field, in quotes where they need them."""
        self.assertEqual(["ber", "fra", "'frankfurt (main)'"], self.texts("label.site = |"))
        self.assertEqual(["fra", "'frankfurt (main)'"], self.texts("label.site = FR|"))
        self.assertEqual(["'frankfurt (main)'"], self.texts("label.site = 'frank|"))
        self.assertEqual(["edge"], self.texts("label.'app.example/tier' = |"))
        self.assertEqual(["192.0.2.1", "192.0.2.2", "192.0.2.3"], self.texts("ip IN (|"))
        self.assertEqual([], self.texts("nothing = |"))

    def test_operators(self) -> None:
        """Operators come with what they mean, and what joins terms fits the parentheses."""
        self.assertEqual({"text": "=", "note": "is"}, self.completed("name |")["items"][0])
        self.assertIn("NOT EXISTS", self.texts("name NOT|"))
        self.assertEqual(["!=", "!*", "!~", "!==", "!=*", "!=~"], self.texts("name !|"))
        self.assertEqual(["AND", "OR"], self.texts("name = a |"))
        self.assertEqual(["AND", "OR", ")"], self.texts("(name = a |"))
        self.assertEqual("", self.completed("= |")["kind"])

    def test_subjects(self) -> None:
        """Each kind of query has fields and values of its own."""
        self.assertIn("label.team", self.texts("label|", "rules"))
        self.assertEqual(["ui"], self.texts("manager = |", "rules"))
        self.assertEqual(["web"], self.texts("meta.connector.labels.team = |", "messages"))
        self.assertEqual(["github"], self.texts("meta.sender.id = github|", "messages")[:1])
        self.assertEqual(["fra-1", "fra-2"], self.texts("router = fra|", "connectors"))
        self.assertEqual(["web"], self.texts("connector.labels.team = |", "connectors"))
        self.assertIn("rule", self.texts("kind = |", "changes"))

    def test_news(self) -> None:
        """What the fleet has now is what counts, and is collected once."""
        self.assertEqual(["ber-1", "fra-1", "fra-2"], self.texts("name = |"))
        made: list[str] = []
        collect = completion_routes.vocabulary_of
        self.patch(completion_routes, "vocabulary_of", lambda about, *more: made.append(about) or collect(about, *more))
        self.texts("name = |")
        self.assertEqual([], made)
        self.fleet.hosts = (Host("new"),)
        self.assertEqual(["new"], self.texts("name = |"))
        self.assertEqual(["routers"], made)

    def test_bounds(self) -> None:
        """However much the fleet has, an answer is small; a call with more text than a query has is refused."""
        self.patch(vocabulary, "MOST_VALUES", 50)
        self.patch(vocabulary, "MOST_FIELDS", 60)
        self.fleet.hosts = tuple(Host(f"r{number}", {f"k{number}": "v" * 300}) for number in range(100))
        self.assertEqual(completion_routes.MOST_SHOWN, len(self.texts("name = |")))
        self.assertEqual(completion_routes.MOST_SHOWN, len(self.texts("label|")))
        self.assertEqual([], self.texts("label.k1 = |"))
        query = urlencode({"text": "a" * 5000, "at": 1})
        self.assertEqual(400, self.ask("GET", f"/queries:complete?{query}", **self.mine).status)
        self.console.fleet = None
        self.assertEqual([], self.texts("name = |"))

    def test_places(self) -> None:
        """Places are counted in code points, and one outside of the text is none."""
        found = self.completed("name = '\U0001f600' AND |")
        self.assertEqual(("field", 15, 15), (found["kind"], found["start"], found["end"]))
        response = self.ask("GET", "/queries:complete?text=a&at=5", **self.mine)
        self.assertEqual("", json.loads(response.body)["kind"])
