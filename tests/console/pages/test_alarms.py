"""
Tests for L{webhookrx.console.pages.alarms}, and the pages of one alarm and of targets.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote, urlsplit

from tests.console.pages.paging import PageCase
from webhookrx.console.alarms.targets import ConsoleTarget
from webhookrx.console.pages.alarms import is_about_rule, new_alarm_url
from webhookrx.management.alarm_values import Fact
from webhookrx.management.alarms import Alarms

QUIET = {"kind": "silent", "when": "rule = hooks", "for": "6h"}
HOSTILE = '"><script>alert(1)</script>\u202e'


class AlarmPageCase(PageCase):
    """Somebody is signed in as an editor."""

    def setUp(self) -> None:
        super().setUp()
        self.successResultOf(_done(self.console.alarms.book.start()))
        self.mine = self.sign_in("mara", "editor", False)

    def document(self, name: str) -> dict[str, Any] | None:
        """Return an alarm as the API has it; None if there is none."""
        response = self.ask("GET", f"/alarms/{name}", **self.mine)
        return None if response.status == 404 else json.loads(response.body)

    def made(self, name: str = "quiet", **form: str) -> None:
        """Make an alarm by the page."""
        response = self.post("/alarms:new", {"name": name, **QUIET, **form}, **self.mine)
        self.assertEqual((303, f"/alarms/{name}?said=alarm-saved"), self.place(response))

    def place(self, response: Any) -> tuple[int, str]:
        """Return status and place of an answer."""
        return response.status, response.headers.get("location", "")

    def stand(self, count: int, text: str = "Nothing has been heard of it for 6 min 40 s.") -> None:
        """Have an alarm fire for so many routers."""
        alarms = self.console.alarms.alarms = Alarms(self.console.alarms.rules, 0.0, 5000, 20000)
        for at in (0.0, 30.0):
            alarms.begin_look(at, 1_800_000_000 + at)
            facts = [Fact(f"fra-{number:03}", {}, 400.0, text) for number in range(count)]
            list(alarms.take({"router_away": facts}))
            list(alarms.end_look(lambda subject: False))
        self.console.alarms.looked_at = 1_800_000_030.0


class ShowAlarmsTests(AlarmPageCase):
    """What is not ok, and all alarms."""

    def test_empty(self) -> None:
        """A new console says when it looks, what is built in, and what each kind means."""
        shown = self.shown(self.get("/alarms", **self.mine))
        for words in ("has not looked at its routers yet", "router_away", "5m", "It fires for", "Nobody is told"):
            self.assertIn(words, shown)
        self.console.alarms.looked_at = 1.0
        self.assertIn("All is well", self.shown(self.get("/alarms", **self.mine)))

    def test_states(self) -> None:
        """What fires is counted, and shown 30 at a time, as text, with links to its alarm and its router."""
        self.stand(120, HOSTILE)
        response = self.get("/alarms", **self.mine)
        page = response.body.decode()
        self.assertIn("120 firing, 0 pending, 0 unknown", self.shown(response))
        self.assertEqual(30, page.count('class="badge bad"'))
        self.assertNotIn("<script>alert", page)
        self.assertIn('href="/routers/fra-000"', page)
        self.assertIn("1 to 30, 90 more", self.shown(response))
        last = self.get("/alarms?skip=90", **self.mine)
        self.assertIn("91 to 120, 0 more", self.shown(last))
        self.assertIn('href="/alarms?skip=60"', last.body.decode())
        self.assertIn("There are no more", self.shown(self.get("/alarms?skip=999", **self.mine)))
        self.assertIn("Nothing is pending", self.shown(self.get("/alarms?state=pending", **self.mine)))
        self.assertLess(len(page), 48 * 1024)

    def test_many(self) -> None:
        """As many alarms as there can be come in pages, none larger than it may be."""
        for number in range(100):
            self.made(f"quiet-{number}", when="connector.labels.product = github AND rule != hooks")
        self.stand(120)
        page = self.get("/alarms", **self.mine)
        self.assertIn("1 to 40, 64 more", self.shown(page))
        self.assertIn('href="/alarms?first=40#all-alarms"', page.body.decode())
        self.assertLess(len(page.body), 40 * 1024)
        self.assertIn("81 to 104, 0 more", self.shown(self.get("/alarms?first=80", **self.mine)))

    def test_part(self) -> None:
        """The part that is asked for again has no frame, and asks for itself with the same choice."""
        self.stand(2)
        page = self.get("/alarms:states?state=firing&alarm=router_away", hx_request="true", **self.mine).body.decode()
        self.assertNotIn("<html", page)
        self.assertIn('hx-get="/alarms:states?alarm=router_away&amp;state=firing"', page)

    def test_viewer(self) -> None:
        """A viewer sees all and changes nothing."""
        self.made()
        viewer = self.sign_in("vera", "viewer", False)
        self.assertNotIn("New alarm", self.shown(self.get("/alarms", **viewer)))
        page = self.get("/alarms/quiet", **viewer)
        self.assertIn("rule = hooks", self.shown(page))
        self.assertNotIn('action="/alarms', page.body.decode())
        self.assertNotIn("Roll back", self.shown(self.get("/alarms/quiet/history", **viewer)))
        self.assertEqual(403, self.post("/alarms/quiet", {**QUIET, "generation": "1"}, **viewer).status)


class EditAlarmTests(AlarmPageCase):
    """New, changed, deleted, rolled back."""

    def test_new(self) -> None:
        """Kinds are explained; the form of one has what the link says, and makes an alarm."""
        page = self.get("/alarms:new", **self.mine).body.decode()
        self.assertEqual(8, page.count('href="/alarms:new?kind='))
        page = self.get(new_alarm_url("silent", "hooks", **{"for": "6h"}), **self.mine).body.decode()
        for name, value in (("name", "silent-hooks"), ("when", "rule = hooks"), ("for", "6h")):
            self.assertIn(value, _value(page, name))
        self.assertIn('<option value="silent" selected>', page)
        self.made()
        self.assertEqual({"name": "quiet", **QUIET}, self.document("quiet")["alarm"])  # type: ignore[index]
        self.assertIn("The alarm is saved", self.shown(self.get("/alarms/quiet?said=alarm-saved", **self.mine)))

    def test_sender(self) -> None:
        """An alarm of what is silent may be about senders, one of refusals may not."""
        self.made(when="sender = github")
        self.assertIn("for each sender", self.shown(self.get("/alarms/quiet", **self.mine)))
        form = {"name": "x", "kind": "refused", "above": "5%", "when": "sender = github"}
        self.assertRegex(
            self.post("/alarms:new", form, **self.mine).body.decode(), r'id="when"[^>]*aria-invalid="true"'
        )

    def test_spool(self) -> None:
        """An alarm of spools begins with its usual time, and asks for its observer; its states are text."""
        page = self.get("/alarms:new?kind=spool", **self.mine).body.decode()
        self.assertIn('<option value="spool" selected>', page)
        self.assertIn('value="15m"', _value(page, "for"))
        self.assertIn("<code>observer</code>", page)
        form = {"name": "backlog", "kind": "spool", "for": "", "when": "observer =~ '^spool:'"}
        self.assertEqual(303, self.post("/alarms:new", form, **self.mine).status)
        self.assertEqual([900.0], [each.seconds for each in self.console.alarms.rules if each.name == "backlog"])
        alarms = self.console.alarms.alarms = Alarms(self.console.alarms.rules, 0.0, 5000, 20000)
        alarms.begin_look(0.0, 1_800_000_000.0)
        list(alarms.take({"spool": [Fact(f"fra-1/spool:/{HOSTILE}", {"observer": "spool:/x"}, 1000.0, HOSTILE)]}))
        page = self.get("/alarms", **self.mine).body.decode()
        self.assertIn('<a href="/routers/fra-1"><bdi>fra-1</bdi></a> / <bdi>spool:/&#34;&gt;', page)
        self.assertNotIn("<script>alert", page + self.get("/alarms/backlog", **self.mine).body.decode())

    def test_wrong(self) -> None:
        """What is wrong is told at its field, and what was typed stays."""
        form = {**QUIET, "name": "a b", "when": "rule = (", "for": "soon", "notify": "ops"}
        response = self.post("/alarms:new", form, **self.mine)
        page = response.body.decode()
        self.assertEqual(422, response.status)
        for name in ("name", "when", "for", "notify"):
            self.assertRegex(page, rf'id="{name}"[^>]*aria-invalid="true"')
        self.assertIn("rule = (", _value(page, "when"))
        self.assertIn("A name has up to 63 letters", self.shown(response))
        for change, field in (
            ({"for": ""}, "for"),
            ({"kind": "refused"}, "above"),
            ({"above": "5%"}, "above"),
            ({"kind": "router_away", "for": "1m"}, "when"),
        ):
            with self.subTest(change=change):
                page = self.post("/alarms:new", {"name": "x", **QUIET, **change}, **self.mine).body.decode()
                self.assertRegex(page, rf'id="{field}"[^>]*aria-invalid="true"')
        self.assertIsNone(self.document("x"))

    def test_bad_names(self) -> None:
        """Names that can't be one are told at the field, also those that no path can have."""
        for name in ("", "a/b", "..", HOSTILE, "é"):
            with self.subTest(name=name):
                response = self.post("/alarms:new", {**QUIET, "name": name}, **self.mine)
                self.assertEqual(422, response.status)
                self.assertRegex(response.body.decode(), r'id="name"[^>]*aria-invalid="true"')
                self.assertNotIn("<script>alert", response.body.decode())

    def test_change(self) -> None:
        """A change takes what was read; it is in the history with its diff, and can be rolled back."""
        self.made()
        response = self.post("/alarms/quiet", {**QUIET, "for": "1d", "generation": "1"}, **self.mine)
        self.assertEqual((303, "/alarms/quiet?said=alarm-saved"), self.place(response))
        history = self.get("/alarms/quiet/history", **self.mine)
        self.assertIn("Changed by mara", self.shown(history))
        self.assertRegex(history.body.decode(), r"<del>[^\n]*for: &#39;6h&#39;</del>")
        self.assertEqual(1, history.body.decode().count("Roll back to"))
        response = self.post("/alarms/quiet:rollback", {"generation": "1"}, **self.mine)
        self.assertEqual((303, "/alarms/quiet?said=alarm-rolled-back"), self.place(response))
        self.assertEqual((3, "6h"), _generation(self.document("quiet")))
        self.assertEqual(404, self.post("/alarms/quiet:rollback", {"generation": "9"}, **self.mine).status)

    def test_conflict(self) -> None:
        """Who saves what somebody else has changed sees who, both versions, and may put theirs in its place."""
        self.made()
        other = self.sign_in("otto", "editor", False)
        self.post("/alarms/quiet", {**QUIET, "for": "2d", "generation": "1"}, **other)
        mine = {**QUIET, "for": "1d", "generation": "1"}
        response = self.post("/alarms/quiet", mine, **self.mine)
        page = response.body.decode()
        self.assertEqual(412, response.status)
        self.assertIn("otto saved this alarm", self.shown(response))
        self.assertRegex(page, r"<del>[^\n]*for: &#39;2d&#39;</del>")
        self.assertRegex(page, r"<ins>[^\n]*for: &#39;1d&#39;</ins>")
        self.assertIn('value="1d"', _value(page, "for"))
        self.assertEqual((2, "2d"), _generation(self.document("quiet")))
        (generation,) = set(re.findall(r'name="generation" value="(\d+)"', page))
        self.assertEqual(303, self.post("/alarms/quiet", {**mine, "generation": generation}, **self.mine).status)
        self.assertEqual((3, "1d"), _generation(self.document("quiet")))
        response = self.post("/alarms:new", {"name": "quiet", **QUIET}, **self.mine)
        self.assertEqual(412, response.status)
        self.assertIn("There is an alarm quiet already", self.shown(response))

    def test_delete(self) -> None:
        """An alarm is deleted at the generation that was shown; its history stays."""
        self.made()
        response = self.post("/alarms/quiet:delete", {"generation": "7"}, **self.mine)
        self.assertEqual(412, response.status)
        self.assertIn("quiet is at generation 1 now", self.shown(response))
        response = self.post("/alarms/quiet:delete", {"generation": "1"}, **self.mine)
        self.assertEqual((303, "/alarms?said=alarm-deleted"), self.place(response))
        self.assertEqual(404, self.get("/alarms/quiet", **self.mine).status)
        self.assertIn("Deleted by mara", self.shown(self.get("/alarms/quiet/history", **self.mine)))
        self.assertEqual(404, self.get("/alarms/nothing/history", **self.mine).status)

    def test_built_in(self) -> None:
        """A built-in alarm is changed like others, and is there again once that is deleted."""
        page = self.get("/alarms/router_away", **self.mine)
        self.assertIn("It is built in", self.shown(page))
        self.assertNotIn(":delete", page.body.decode())
        self.assertIn("Nobody has changed", self.shown(self.get("/alarms/router_away/history", **self.mine)))
        form = {"kind": "router_away", "for": "10m", "generation": "0"}
        self.assertEqual(303, self.post("/alarms/router_away", form, **self.mine).status)
        self.assertEqual((1, "10m"), _generation(self.document("router_away")))
        page = self.get("/alarms/router_away", **self.mine)
        self.assertIn("the built-in alarm is there again", self.shown(page))
        self.assertEqual(303, self.post("/alarms/router_away:delete", {"generation": "1"}, **self.mine).status)
        self.assertEqual((2, "5m"), _generation(self.document("router_away")))


class OfRuleTests(AlarmPageCase):
    """Alarms beside the rule that they are about."""

    def test_part(self) -> None:
        """Those that name the rule are shown with their states, others counted, and new ones are a link away."""
        self.made()
        self.made("others", when="rule = push")
        self.made("all", when="")
        self.made("github", when="connector.labels.product = github")
        response = self.get("/alarms:of-rule?rule=hooks", hx_request="true", **self.mine)
        page = response.body.decode()
        self.assertNotIn("<html", page)
        self.assertIn('href="/alarms/quiet"', page)
        self.assertNotIn("others", page)
        self.assertIn("2 more may be about it", self.shown(response))
        self.assertIn("/alarms:new?kind=silent&amp;name=silent-hooks&amp;when=rule+%3D+hooks&amp;for=6h", page)
        self.assertIn("<html", self.get("/alarms:of-rule?rule=hooks", **self.mine).body.decode())
        viewer = self.sign_in("vera", "viewer", False)
        self.assertNotIn("alarms:new", self.get("/alarms:of-rule?rule=hooks", **viewer).body.decode())

    def test_certificate(self) -> None:
        """An alarm about a certificate is offered for a rule of HTTPS, not of HTTP, nor for one that is not there."""
        self.successResultOf(_done(self.console.rulebook.start()))
        tls = {"protocol": "HTTPS", "key_file": "/etc/webhookrx/key.pem", "cert_file": "/etc/webhookrx/cert.pem"}
        for number, (name, protocol) in enumerate((("plain", {"protocol": "HTTP"}), ("tls", tls))):
            rule = {"name": name, "port": 9001 + number, **protocol}
            self.assertEqual(201, self.ask("POST", "/rules", rule, **self.mine).status)
        for name, is_offered in (("tls", True), ("plain", False), ("none", False), ("", False), ("a/b", False)):
            with self.subTest(name=name):
                page = self.get(f"/alarms:of-rule?rule={quote(name, safe='')}", **self.mine)
                self.assertEqual(200, page.status)
                self.assertIn("Refusals above 5%", self.shown(page))
                self.assertEqual(is_offered, "Certificate ends within 14d" in self.shown(page))
                self.assertEqual(is_offered, "kind=certificate" in page.body.decode())

    def test_hostile(self) -> None:
        """The name of a rule may be anything: its alarm says exactly that rule."""
        for rule in ('it\'s "a" `b` \\', HOSTILE, "a AND b", "é"):
            with self.subTest(rule=rule):
                response = self.get(new_alarm_url("silent", rule, **{"for": "6h"}), **self.mine)
                self.assertNotIn("<script>alert", response.body.decode())
                page = self.get("/alarms:of-rule?rule=" + "%3Cb%3E", **self.mine).body.decode()
                self.assertNotIn("<b>", page)

    def test_is_about(self) -> None:
        """It depends on the rule as far as the query does."""
        for when, expected in (
            ("", (False, True)),
            ("rule = hooks", (True, True)),
            ("rule != hooks", (True, False)),
            ("NOT rule = push", (True, True)),
            ("rule IN (push, hooks) AND router = fra-1", (True, None)),
            ("rule = push AND router = fra-1", (True, False)),
            ("rule = hooks OR router = fra-1", (True, True)),
            ("router = fra-1", (False, None)),
            ("rule EXISTS", (True, True)),
            ("(", (False, None)),
        ):
            with self.subTest(when=when):
                self.assertEqual(expected, is_about_rule(when, "hooks"))

    def test_work(self) -> None:
        """All terms of one alarm have the work of one: it is done in the reactor, for whoever looks at a rule."""
        term = "rule =~ '(a|aa)+x{}'"
        name = "a" * 250
        self.assertEqual((True, False), is_about_rule(term.format(0), name))
        many = " OR ".join(term.format(number) for number in range(400))
        self.assertEqual((False, None), is_about_rule(many, name))


class TargetTests(AlarmPageCase):
    """Targets."""

    URL = "https://alerts.example.com/hooks/s3cret"

    def test_targets(self) -> None:
        """An admin names a target, whose URL no page shows again; alarms tell it, and then it stays."""
        admin = self.sign_in("root", "admin", False)
        self.assertIn("There is no target yet", self.shown(self.get("/alarm-targets", **admin)))
        form = {"name": "ops", "url": self.URL, "built_in": "yes"}
        self.assertEqual(
            (303, "/alarm-targets?said=alarm-target-saved"), self.place(self.post("/alarm-targets", form, **admin))
        )
        for path in ("/alarm-targets", "/alarms", "/alarms:new?kind=silent"):
            page = self.get(path, **admin)
            self.assertIn("ops", self.shown(page))
            self.assertNotIn("s3cret", page.body.decode())
        self.made(notify="ops")
        response = self.post("/alarm-targets/ops:delete", {}, **admin)
        self.assertEqual(409, response.status)
        self.assertIn("The alarm quiet notifies it.", self.shown(response))
        self.post("/alarms/quiet:delete", {"generation": "1"}, **self.mine)
        self.assertEqual(303, self.post("/alarm-targets/ops:delete", {}, **admin).status)
        self.assertEqual(404, self.post("/alarm-targets/ops:delete", {}, **admin).status)

    def test_wrong(self) -> None:
        """A name or URL that can't be used is told, and what was typed stays."""
        admin = self.sign_in("root", "admin", False)
        for name, url, field in (
            ("", self.URL, "name"),
            ("a/b", self.URL, "name"),
            ("ops", "ftp://x", "url"),
            ("ops", HOSTILE, "url"),
        ):
            with self.subTest(name=name, url=url):
                response = self.post("/alarm-targets", {"name": name, "url": url}, **admin)
                self.assertEqual(422, response.status)
                self.assertIn('role="alert"', response.body.decode())
                self.assertRegex(response.body.decode(), rf'id="{field}"[^>]*aria-invalid="true"')
                self.assertNotIn("<script>alert", response.body.decode())

    def test_in_form(self) -> None:
        """An admin names a new target in the form of an alarm, which tells it, and loses nothing of what was typed."""
        admin = self.sign_in("root", "admin", False)
        page = self.get("/alarms:new?kind=silent", **admin).body.decode()
        form = page[page.index('action="/alarms:new"') :]
        self.assertNotIn('href="/alarm-targets"', form)
        self.assertEqual(1, form.count('<button class="primary">'))
        _value(form, "target_url")
        typed = {**QUIET, "name": "quiet", "target_name": "ops", "target_url": self.URL}
        response = self.post("/alarms:new", typed, **admin)
        self.assertEqual((303, "/alarms/quiet?said=alarm-saved"), self.place(response))
        self.assertEqual({"name": "quiet", **QUIET, "notify": "ops"}, self.document("quiet")["alarm"])  # type: ignore[index]
        page = self.get("/alarms/quiet", **admin).body.decode()
        self.assertIn('<option value="ops" selected>ops (https://alerts.example.com/***)', page)
        self.assertNotIn("s3cret", page)
        change = {**QUIET, "notify": "ops", "generation": "1", "target_name": "night", "target_url": self.URL}
        self.assertEqual(303, self.post("/alarms/quiet", change, **admin).status)
        self.assertEqual("night", self.document("quiet")["alarm"]["notify"])  # type: ignore[index]

    def test_wrong_in_form(self) -> None:
        """A new target that can't be made is told beside its fields, and the alarm is not saved; all stays as typed."""
        admin = self.sign_in("root", "admin", False)
        self.post("/alarm-targets", {"name": "ops", "url": self.URL}, **admin)
        for name, url, status, words in (
            ("a b", self.URL, 422, "A name has up to 63"),
            ("", self.URL, 422, "A name has up to 63"),
            ("night", "", 422, "It takes a URL"),
            ("night", HOSTILE, 422, "A URL is up to"),
            ("ops", "https://other.example.com/", 409, "There is a target ops already"),
        ):
            with self.subTest(name=name, url=url):
                typed = {**QUIET, "name": "quiet", "target_name": name, "target_url": url}
                response = self.post("/alarms:new", typed, **admin)
                page = response.body.decode()
                self.assertEqual(status, response.status)
                self.assertIn("<details open>", page)
                self.assertRegex(page, f'<p class="error">{words}')
                self.assertIn("rule = hooks", _value(page, "when"))
                self.assertIn(f'value="{name}"', _value(page, "target_name"))
                self.assertNotIn("<script>alert", page)
        self.assertIsNone(self.document("quiet"))
        self.assertEqual(["alerts.example.com"], [_host(each) for each in self.console.alarms.telling.targets.values()])

    def test_made_in_form(self) -> None:
        """If the alarm alone is wrong, its target is made, which is said, and is chosen in the form."""
        admin = self.sign_in("root", "admin", False)
        typed = {**QUIET, "name": "quiet", "for": "soon", "target_name": "ops", "target_url": self.URL}
        response = self.post("/alarms:new", typed, **admin)
        page = response.body.decode()
        self.assertEqual(422, response.status)
        self.assertIn("The target ops is saved. The alarm is not saved yet.", self.shown(response))
        self.assertIn('<option value="ops" selected>', page)
        self.assertIn('value="soon"', _value(page, "for"))
        self.assertIn('value=""', _value(page, "target_name"))
        self.assertNotIn("s3cret", page)
        response = self.post("/alarms:new", {**QUIET, "name": "quiet", "notify": "ops"}, **admin)
        self.assertEqual(303, response.status)

    def test_editor_in_form(self) -> None:
        """Who is no admin names no target in the form of an alarm."""
        page = self.get("/alarms:new?kind=silent", **self.mine)
        self.assertIn("There is no target yet; admins name them.", self.shown(page))
        self.assertNotIn("target_url", page.body.decode())
        typed = {**QUIET, "name": "quiet", "target_name": "ops", "target_url": self.URL}
        self.assertEqual(403, self.post("/alarms:new", typed, **self.mine).status)
        self.assertIsNone(self.document("quiet"))
        self.assertEqual({}, dict(self.console.alarms.telling.targets))

    def test_editor(self) -> None:
        """Who is no admin sees them, and changes none."""
        page = self.get("/alarm-targets", **self.mine)
        self.assertIn("Admins may name one", self.shown(page))
        self.assertNotIn('action="/alarm-targets"', page.body.decode())
        self.assertEqual(403, self.post("/alarm-targets", {"name": "a", "url": self.URL}, **self.mine).status)


def _value(page: str, name: str) -> str:
    """Return the tag of a field."""
    found = re.search(rf'<input id="{name}"[^>]*>', page)
    assert found is not None, name
    return found[0]


def _host(target: ConsoleTarget) -> str:
    return urlsplit(target.target.url).netloc


def _generation(listed: Any) -> tuple[int, str]:
    return listed["generation"], listed["alarm"]["for"]


def _done(awaitable: Any) -> Any:
    from twisted.internet.defer import ensureDeferred

    return ensureDeferred(awaitable)
