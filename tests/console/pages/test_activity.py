"""
Tests for L{webhookrx.console.pages.activity} and L{webhookrx.console.pages.revision}.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import quote

from twisted.internet.defer import Deferred

from tests.console.pages.paging import PageCase
from webhookrx.console.pages import activity
from webhookrx.console.store.audit import note
from webhookrx.console.store.history import Author, Change
from webhookrx.query import parse

HOSTILE = "<script>alert(1)</script>\u202e'\""


class RecordPageCase(PageCase):
    """A console with an editor, and history."""

    def setUp(self) -> None:
        """Have somebody signed in."""
        super().setUp()
        self.successResultOf(Deferred.fromCoroutine(self.console.rulebook.start()))
        self.mine = self.sign_in(role="editor")

    def revise(self, *changes: Change, by: str = "otto", via: str = "api", note: str = "") -> None:
        """Append a revision."""
        self.store.writer.write(lambda tx: tx.revise(Author(by, via), changes, note))

    def text(self, path: str, status: int = 200) -> str:
        """Return the text of a page."""
        response = self.get(path, cookie=self.mine["cookie"])
        self.assertEqual(status, response.status, response.body)
        return self.shown(response)

    def html(self, path: str, status: int = 200) -> str:
        """Return a page."""
        response = self.get(path, cookie=self.mine["cookie"])
        self.assertEqual(status, response.status, response.body)
        return response.body.decode()

    def rule(self, method: str, name: str, port: int, etag: str = "") -> None:
        """Save a rule by the API."""
        body = None if method == "DELETE" else {"name": name, "protocol": "HTTP", "port": port}
        path = "/rules" if method == "POST" else f"/rules/{name}"
        headers = {**self.mine, **({"if_match": f'"{etag}"'} if etag else {})}
        response = self.ask(method, path, body, **headers)
        self.assertIn(response.status, (200, 201, 204), response.body)


class ActivityPageTests(RecordPageCase):
    """C{/activity}."""

    def test_list(self) -> None:
        """Each change says when, who, how, what; texts of others are text."""
        self.revise(Change("rule", HOSTILE, "create"), by=HOSTILE, via="push:git", note=HOSTILE)
        html = self.html("/activity")
        self.assertNotIn("<script>alert", html)
        self.assertIn(f"{HOSTILE} push:git create rule {HOSTILE} {HOSTILE} 2", self.text("/activity"))
        self.assertIn('href="/activity/2"', html)
        self.assertIn('datetime="2027-01-15T08:00:00Z"', html)
        self.assertNotIn("/audit", html)

    def test_query(self) -> None:
        """A query picks changes; a common one is a link."""
        self.revise(Change("rule", "hooks", "create"))
        self.assertNotIn("hooks", self.text("/activity?query=kind%20=%20user"))
        self.assertIn("hooks", self.text("/activity?query=kind%20=%20rule"))
        self.assertIn("Nothing matches. Show all", self.text("/activity?query=by%20=%20nobody"))
        for text, _ in (*activity.ACTIVITY_QUERIES, *activity.AUDIT_QUERIES):
            parse(text)
        record = {"via": "rollback:7", "kind": "rule"}
        self.assertTrue(parse(activity.ACTIVITY_QUERIES[-1][0]).matches(record))

    def test_wrong_query(self) -> None:
        """What is no query is told at its field, with what was typed."""
        html = self.html(f"/activity?query={quote('kind = (<b>')}", 422)
        self.assertIn('value="kind = (&lt;b&gt;"', html)
        self.assertIn('aria-invalid="true"', html)
        self.assertIn("Column ", html)

    def test_pages(self) -> None:
        """There are 50 rows a page, and all are on one."""
        for number in range(120):
            self.revise(Change("rule", f"rule-{number}-", "create"))
        found: list[str] = []
        path = "/activity?query=kind%20=%20rule"
        for rows in (50, 50, 20):
            html = self.html(path)
            names = re.findall(r"rule-\d+-", html)
            self.assertEqual(rows, len(names))
            found += names
            self.assertLess(len(html), 40_000)
            path = unescape((re.findall(r'rel="next" href="([^"]*)"', html) or [""])[0])
        self.assertEqual(("", 120), (path, len(set(found))))

    def test_export(self) -> None:
        """The link to the whole of it works in the browser's session."""
        (path,) = re.findall(r'href="(/api/[^"]*)"', self.html("/activity"))
        self.assertEqual("application/x-ndjson", self.get(path, cookie=self.mine["cookie"]).headers["content-type"])


class AuditPageTests(RecordPageCase):
    """C{/audit}."""

    def setUp(self) -> None:
        """Have an admin, too."""
        super().setUp()
        self.editor = self.mine
        self.mine = self.sign_in("anna", "admin")

    def test_rights(self) -> None:
        """It is for admins."""
        self.assertEqual(403, self.get("/audit", cookie=self.editor["cookie"]).status)
        self.assertIn('href="/audit"', self.html("/activity"))

    def test_entries(self) -> None:
        """It has log-ins and the like; names of who failed are text of strangers."""
        self.post("/sign-in", {"name": HOSTILE, "password": "x"})
        details: dict[str, Any] = {"routers": "label.site = fra", "for": 600, "filter": "", "reason": HOSTILE * 30}
        self.store.writer.write(lambda tx: note(tx, "otto", "api", "192.0.2.9", "tap", "t1", details))
        text = self.text("/audit")
        self.assertIn("otto api 192.0.2.9 tap t1 routers: label.site = fra, for: 600, reason: <script>", text)
        self.assertIn(f"login_failed {HOSTILE}", text)
        self.assertRegex(text, r"anna ui \S+ login ")
        self.assertNotIn("<script>alert", self.html("/audit"))
        self.assertIn(HOSTILE, self.text("/audit?query=event%20=%20login_failed"))
        self.assertNotIn("t1", self.text("/audit?query=event%20=%20login_failed"))
        self.assertIn('aria-invalid="true"', self.html("/audit?query=%28", 422))

    def test_pages(self) -> None:
        """There are 50 rows a page."""
        self.store.writer.write(lambda tx: [note(tx, "otto", "api", "", "tap", f"t{n}-") for n in range(70)])
        html = self.html("/audit?query=event%20=%20tap")
        self.assertEqual(50, len(re.findall(r"t\d+-", html)))
        (path,) = re.findall(r'rel="next" href="([^"]*)"', html)
        self.assertEqual(20, len(re.findall(r"t\d+-", self.html(unescape(path)))))


class RevisionPageTests(RecordPageCase):
    """C{/activity/{number}}."""

    def test_differences(self) -> None:
        """Each change is shown with its difference."""
        self.rule("POST", "hooks", 8080)
        self.rule("PUT", "hooks", 8081, "g1")
        text = self.text(f"/activity/{self.console.rulebook.saved.revision}")
        self.assertIn("rule hooks : changed (generation 2)", text)
        self.assertIn("removed: - port: 8080", text)
        self.assertIn("added: + port: 8081", text)

    def test_ways_back(self) -> None:
        """All rules can become what they were before it or after it, and one rule alone by its history."""
        self.rule("POST", "hooks", 8080)
        self.rule("PUT", "hooks", 8081, "g1")
        last = self.console.rulebook.saved.revision
        html = self.html(f"/activity/{last}")
        for link in (f"/activity/{last - 1}/roll-back", f"/activity/{last}/roll-back", "/rules/hooks/history"):
            self.assertIn(f'href="{link}"', html)
        # What leads nowhere says where to go on.
        self.assertIn(f'href="/activity/{last - 1}/roll-back"', self.html(f"/activity/{last}/roll-back"))
        self.assertIn("port = 8080 (was 8081)", self.text(f"/activity/{last - 1}/roll-back"))
        self.revise(Change("setting", "x", "update", {}, {"a": 1}))
        self.assertNotIn("Rules as before it", self.text(f"/activity/{last + 1}"))

    def test_hostile(self) -> None:
        """Texts of others are text, also those of kinds that are no rules."""
        self.revise(Change("setting", HOSTILE, "update", {"a": HOSTILE}, {"a": 1, "b": [HOSTILE]}), note=HOSTILE)
        html = self.html("/activity/2")
        self.assertNotIn("<script>alert", html)
        self.assertIn(f"setting {HOSTILE} : changed", self.text("/activity/2"))

    def test_many(self) -> None:
        """Of many changes there are 20 a page, and no more lines than a page may weigh."""
        rules = [{"manager": "ui", "rule": {"name": f"r{n}", "paths": ["x"] * 100}} for n in range(45)]
        self.revise(*(Change("rule", f"r{n}", "create", None, rule, 1) for n, rule in enumerate(rules)))
        path, found = "/activity/2", 0
        for many in (20, 20, 5):
            html = self.html(path)
            self.assertLess(len(html), 60_000)
            found += len(re.findall(r'<section class="card"', html))
            cut = re.findall(r'<a href="([^"]*)">Show it</a>', html)
            self.assertEqual(many > 5, bool(cut))
            for link in cut[:1]:
                self.assertIn("paths", self.text(unescape(link)))
            path = unescape((re.findall(r'rel="next" href="([^"]*)"', html) or [""])[0])
        self.assertEqual(("", 45), (path, found))

    def test_none(self) -> None:
        """What is no revision is told so."""
        for number in ("77", "x", "%2e%2e", "1%2f2"):
            self.assertEqual(404, self.get(f"/activity/{number}", cookie=self.mine["cookie"]).status, number)


class RollBackPageTests(RecordPageCase):
    """C{/activity/{number}/roll-back}."""

    def setUp(self) -> None:
        """Have three rules, one of which is changed, one deleted and one new since."""
        super().setUp()
        self.rule("POST", "changed", 8080)
        self.rule("POST", "gone", 8081)
        self.at = self.console.rulebook.saved.revision
        self.rule("PUT", "changed", 9000, "g1")
        self.rule("DELETE", "gone", 0, "g1")
        self.rule("POST", "new", 8082)
        self.path = f"/activity/{self.at}/roll-back"

    def read(self) -> str:
        """Return the revision that the form of the page is for."""
        (read,) = re.findall(r'name="read" value="(\d+)"', self.html(self.path))
        return read

    def test_preview(self) -> None:
        """It says what would change, and changes nothing."""
        text = self.text(self.path)
        for words in (
            "Rules that are made again: 1 gone", "Rules that are deleted: 1 new", "Rules that change: 1",
            "~ port = 8080 (was 9000)", "Roll back: 3 rules",
        ):  # fmt: skip
            self.assertIn(words, text)
        self.assertEqual({"changed", "new"}, set(self.console.rulebook.saved.rules))

    def test_roll_back(self) -> None:
        """It is done by the form, as a new revision."""
        response = self.post(self.path, {"read": self.read()}, **self.mine)
        self.assertEqual((303, "/activity?said=rules-rolled-back"), (response.status, response.headers["location"]))
        self.assertEqual({"changed", "gone"}, set(self.console.rulebook.saved.rules))
        self.assertEqual(8080, self.console.rulebook.saved.rules["changed"].rule.port)
        text = self.text(response.headers["location"])
        self.assertIn("All rules are what they were at that revision", text)
        self.assertIn(f"mara rollback:{self.at} create rule gone", text)
        self.assertIn("there is nothing to roll back", self.text(self.path))

    def test_stale(self) -> None:
        """Nothing is done when a rule has changed since the preview, which is shown anew."""
        read = self.read()
        self.rule("PUT", "new", 8083, "g1")
        response = self.post(self.path, {"read": read}, **self.mine)
        self.assertEqual(412, response.status)
        self.assertIn("It has changed since you read it.", self.shown(response))
        self.assertEqual({"changed", "new"}, set(self.console.rulebook.saved.rules))
        self.assertEqual(303, self.post(self.path, {"read": self.read()}, **self.mine).status)

    def test_rights(self) -> None:
        """Viewers see the revision without the button, and roll nothing back; nobody does without the token."""
        viewer = self.sign_in("theo", "viewer")
        page = self.get(f"/activity/{self.at}", cookie=viewer["cookie"])
        self.assertEqual(200, page.status)
        self.assertNotIn("roll-back", page.body.decode())
        self.assertEqual(403, self.get(self.path, cookie=viewer["cookie"]).status)
        self.assertEqual(403, self.post(self.path, {"read": self.read()}, **viewer).status)
        self.assertEqual(403, self.post(self.path, {"read": self.read()}, cookie=self.mine["cookie"]).status)
        self.assertEqual({"changed", "new"}, set(self.console.rulebook.saved.rules))
