"""
Tests for L{webhookrx.console.rules.list_routes}, and for rolling back only what was read.
"""

from __future__ import annotations

from urllib.parse import quote

from tests.console.rules.test_routes import WRITTEN, A, RulesCase
from webhookrx.console.rules.list_routes import ROUTES


class ListRoutesTests(RulesCase):
    """Lists of rules."""

    def setUp(self) -> None:
        """Make three rules."""
        super().setUp()
        self.call.add_routes(ROUTES)
        self.call("POST", "/rules", A | {"labels": {"team": "web"}, "preprocessing": {"classify": True}})
        self.call("POST", "/rules", yaml=WRITTEN.replace("name: a", "name: b").replace("8080", "8081"))
        self.call(
            "POST", "/rules", A | {"name": "c", "port": 8082, "sender": "github", "verify": "off", "handshake": False}
        )

    def found(self, query: str) -> list[str]:
        """Return the names of the rules that a query matches."""
        page = self.call("GET", f"/rules:search?query={quote(query)}")
        self.assertEqual(200, page.status, page.body)
        self.assertEqual(3, page.facts["total"])
        return [row["name"] for row in page.facts["rows"]]

    def test_queries(self) -> None:
        """Queries ask for the fields of rules as a rules file spells them, labels one by one, and the change."""
        for query, names in (
            ("", "abc"),
            ("label.team = web", "a"),
            ("labels.team = web", "a"),
            ("port > 8080", "bc"),
            ("NOT sender EXISTS", "ab"),
            ("changed_by = mara AND manager = ui", "abc"),
            ("generation = 2", ""),
            ("preprocessing.classify EXISTS", "a"),
            ("selector =* fra", "ac"),
        ):
            with self.subTest(query=query):
                self.assertEqual(list(names), self.found(query))
        for query in ("===", "(" * 500):
            self.assertEqual(422, self.call("GET", f"/rules:search?query={quote(query)}").status)

    def test_rows(self) -> None:
        """A row says what a list shows; pages go on after a name."""
        page = self.call("GET", "/rules:search?count=2").facts
        self.assertEqual(("b", 3, 3), (page["next_after"], page["matched"], page["revision"]))
        first = page["rows"][0]
        self.assertEqual(
            {"steps": 1, "generation": 1, "changed_by": "mara", "protocol": "HTTP", "port": 8080},
            {name: first[name] for name in ("steps", "generation", "changed_by", "protocol", "port")},
        )
        page = self.call("GET", "/rules:search?count=2&after=b").facts
        self.assertEqual((["c"], None, 3), ([row["name"] for row in page["rows"]], page["next_after"], page["matched"]))
        self.assertEqual([], self.call("GET", "/rules:search?after=zz").facts["rows"])

    def test_generation(self) -> None:
        """One generation of a rule, which may be its end."""
        self.call("DELETE", "/rules/b", if_match="g1")
        self.assertEqual(
            WRITTEN.replace("name: a", "name: b").replace("8080", "8081"), self.at("b", 1)["after"]["yaml"]
        )
        self.assertEqual(("delete", None), (self.at("b", 2)["operation"], self.at("b", 2)["after"]))
        for path in ("b/history/3", "b/history/x", "none/history/1", "b/history/%C2%B2"):
            self.assertEqual(404, self.call("GET", f"/rules/{path}").status, path)

    def at(self, name: str, generation: int) -> dict[str, object]:
        """Return a generation."""
        entry: dict[str, object] = self.call("GET", f"/rules/{name}/history/{generation}").facts
        return entry


class ReadRollbackTests(RulesCase):
    """Rolling back with C{If-Match}."""

    def test_stale(self) -> None:
        """A rule that was changed since it was read is not rolled back; one that is deleted counts, too."""
        self.call("POST", "/rules", A)
        self.call("PUT", "/rules/a", A | {"port": 8081}, if_match="g1")
        back = {"generation": 1}
        self.assertEqual(412, self.call("POST", "/rules/a:rollback", back, if_match="g1").status)
        self.assertEqual(400, self.call("POST", "/rules/a:rollback", back, if_match="r1").status)
        self.assertEqual(200, self.call("POST", "/rules/a:rollback", back, if_match="g2").status)
        self.call("DELETE", "/rules/a", if_match="g3")
        self.assertEqual(412, self.call("POST", "/rules/a:rollback", back, if_match="g3").status)
        self.assertEqual(200, self.call("POST", "/rules/a:rollback", back, if_match="g4").status)
        self.assertEqual(["a"], self.names())
