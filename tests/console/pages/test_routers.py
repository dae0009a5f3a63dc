"""
Tests for the pages of routers: L{webhookrx.console.pages.routers}, C{router_page} and C{enrolments}.
"""

from __future__ import annotations

import re
import shlex
from html import unescape

from twisted.trial.unittest import SynchronousTestCase

from tests.console.pages.router_pages import HOSTILE, RouterPagesCase
from tests.http.wire import Response
from webhookrx.console.pages.router_words import BADGES, MEANINGS, RouterCommands
from webhookrx.console.routers.records import Enrolment
from webhookrx.console.routers.routes import MadeEnrolment
from webhookrx.console.routers.shown import STANDINGS
from webhookrx.management.agent_protocol import (
    AppliedState,
    CheckFilesCommand,
    CommandAnswer,
    ConnectorState,
    GateState,
    ReloadCommand,
    RouterFacts,
)

MADE = MadeEnrolment(Enrolment("id", "auto", 1, 2.0, {}, "mara", 1.0), "wrx1.id.secret.hash", "https://c.example:9443")


def place(response: Response) -> tuple[int, str]:
    """Return status and place of an answer."""
    return response.status, response.headers["location"]


class RoutersPageTests(RouterPagesCase):
    """The list."""

    def test_empty(self) -> None:
        """Without routers the page says what to do next, to whom may do it."""
        mine = self.sign_in()
        self.assertIn('href="/routers/:enrol"', self.get("/routers", **mine).body.decode())
        viewer = self.sign_in("vera", "viewer", False)
        response = self.get("/routers", **viewer)
        self.assertIn("An admin enrols them.", self.shown(response))
        self.assertNotIn("/routers/:enrol", response.body.decode())

    def test_list(self) -> None:
        """A row has what is known of a router; states can be chosen, and have their numbers."""
        now = self.clock.seconds()
        router = self.router("fra-1", labels={"site": "fra"}, gate=GateState(paths=("/k",)))
        self.count(router, 30)
        self.router("ber-1", seen_at=now - 61)
        mine = self.sign_in()
        response = self.get("/routers", **mine)
        text = self.shown(response)
        for part in ("all 2", "applied 1", "away 1", "site=fra", "26.11.10", "closed"):
            self.assertIn(part, text)
        self.assertIn('<td class="number">2</td>', response.body.decode())
        text = self.shown(self.get("/routers?state=away", **mine))
        self.assertIn("ber-1", text)
        self.assertNotIn("fra-1", text)
        self.assertIn("No router is like that.", self.shown(self.get("/routers?state=failed", **mine)))
        self.assertIn("fra-1", self.shown(self.get("/routers?state=nonsense", **mine)))

    def test_query(self) -> None:
        """A query chooses; one that is wrong is told at its field, and stays there."""
        self.fake(3)
        mine = self.sign_in()
        text = self.shown(self.get("/routers?query=label.site%20%3D%20s1", **mine))
        self.assertIn("edge-0001", text)
        self.assertNotIn("edge-0002", text)
        response = self.get("/routers?query=%3D%20%22%3E%3Cb%3E", **mine)
        self.assertEqual(422, response.status)
        body = response.body.decode()
        self.assertIn('value="= &#34;&gt;&lt;b&gt;"', body)
        self.assertIn('aria-invalid="true"', body)
        self.assertIn('id="query-error"', body)

    def test_pages(self) -> None:
        """50 rows are on a page, and links lead to the others with the same query."""
        self.fake(120)
        mine = self.sign_in()
        body = self.get("/routers?query=os%20%3D%20linux&offset=50", **mine).body.decode()
        self.assertEqual(50, body.count(">edge-"))
        self.assertIn("51 to 100 of 120", body)
        links = [unescape(each) for each in re.findall(r'rel="(?:prev|next)" href="([^"]+)"', body)]
        self.assertEqual(["/routers?query=os+%3D+linux", "/routers?query=os+%3D+linux&offset=100"], links)
        self.assertEqual(20, self.get(links[1], **mine).body.decode().count(">edge-"))
        self.assertLess(len(body), 60 * 1024)
        self.assertEqual(400, self.get("/routers?offset=x", **mine).status)

    def test_part(self) -> None:
        """A script gets the table alone, which asks again by itself."""
        self.fake(1)
        body = self.get("/routers?query=os%20%3D%20linux", hx_request="true", **self.sign_in()).body.decode()
        self.assertNotIn("<html", body)
        self.assertIn('hx-get="/routers?query=os+%3D+linux', body)

    def test_waiting(self) -> None:
        """Routers that wait come first, each with a form that approves it, perhaps by another name."""
        self.router("fra-1")
        waiting = self.router("fra-1", "pending")
        mine = self.sign_in()
        body = self.get("/routers", **mine).body.decode()
        self.assertLess(body.index("1 waits for consent"), body.index('id="routers-table"'))
        self.assertIn(f'action="/routers/{waiting.guid}:approve"', body)
        path = f"/routers/{waiting.guid}:approve"
        response = self.post(path, {"name": "fra-1", "back": "list"}, **mine)
        self.assertEqual(409, response.status)
        self.assertEqual("pending", waiting.state)
        response = self.post(path, {"name": HOSTILE, "back": "list"}, **mine)
        self.assertEqual(422, response.status)
        self.assertNotIn("<script>alert", response.body.decode())
        self.assertIn('value="&lt;script&gt;', response.body.decode())
        response = self.post(path, {"name": "fra-2", "back": "list"}, **mine)
        self.assertEqual((303, "/routers?said=router-approved"), place(response))
        self.assertEqual(("approved", "fra-2"), (waiting.state, waiting.name))
        self.assertIn("The router is approved.", self.shown(self.get(response.headers["location"], **mine)))

    def test_who_waits_for_a_viewer(self) -> None:
        """Who may not approve sees who waits, and no form."""
        self.router("fra-1", "pending")
        body = self.get("/routers", **self.sign_in("vera", "viewer", False)).body.decode()
        self.assertIn("An admin approves them.", body)
        self.assertNotIn(":approve", body)

    def test_hostile(self) -> None:
        """What routers say of themselves is text."""
        facts = RouterFacts(HOSTILE, HOSTILE, (HOSTILE,), HOSTILE, HOSTILE, HOSTILE, labels={"a": HOSTILE})
        router = self.router(HOSTILE, "pending", facts=facts)
        other = self.router("fra-1", facts=facts, applied=AppliedState("FAILED", error=HOSTILE), health=HOSTILE,
                            health_reasons=(HOSTILE,), gate=GateState((HOSTILE,), (f"/{HOSTILE}",)))  # fmt: skip
        other.connectors = (ConnectorState(HOSTILE, HOSTILE, 1, "closed", HOSTILE),)
        mine = self.sign_in()
        for path in ("/routers", f"/routers/{router.guid}", "/routers/fra-1", "/"):
            body = self.get(path, **mine).body.decode()
            self.assertNotIn("<script>alert", body)
            self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt;", body, path)
        for path, times in (("/routers", 3), ("/overview/steps", 2)):
            body = self.get(path, **mine).body.decode()
            # What turns around the host turns nothing of what it is to be compared with.
            (line,) = re.findall(r'<p class="hint[^>]*>(<bdi>&lt;script&gt;.*?)</p>', body)
            self.assertEqual(times, len(re.findall("<bdi>[^<]*\u202e[^<]*</bdi>", line)), path)
            self.assertNotIn("\u202e", re.sub("<bdi>.*?</bdi>", "", line))


class RouterPageTests(RouterPagesCase):
    """One router."""

    def test_facts(self) -> None:
        """What it runs stands beside what it is to run; connectors that are closed come first."""
        router = self.router("fra-1", health_reasons=("No console.",), connectors=60)
        router.connectors = (
            ConnectorState("a", "hooks", 443, "open", certificate_end=int((self.clock.seconds() + 86_400) * 1e9)),
            *router.connectors,
            ConnectorState("z", "late", 80, "closed", "Its port is taken."),
        )
        self.console_rule("hooks", 80)
        mine = self.sign_in()
        response = self.get("/routers/fra-1", **mine)
        text, body = self.shown(response), response.body.decode()
        for part in ("applied", "hooks", "1 is newer", "Connectors: 62", "Its port is taken.", "in 1 d", "No console."):
            self.assertIn(part, text)
        self.assertIn("a" * 16 + "…", text)
        self.assertLess(body.index("Its port is taken."), body.index(">open<"))
        self.assertIn('href="/tap?routers=name+%3D+fra-1"', body)
        self.assertIn('href="/routers/fra-1?connectors=50#connectors"', body)
        self.assertIn("fra-1-r59-r59", self.shown(self.get("/routers/fra-1?connectors=50", **mine)))
        self.assertEqual(404, self.get("/routers/nobody", **mine).status)

    def test_away(self) -> None:
        """A router that dies while it is shown: the part that asks by itself says since when it is away."""
        router = self.router("fra-1")
        mine = self.sign_in()
        part = self.get("/routers/fra-1", hx_request="true", **mine)
        self.assertNotIn("<html", part.body.decode())
        self.assertIn('hx-trigger="every 10s"', part.body.decode())
        self.assertNotIn("Away since", self.shown(part))
        self.clock.advance(200)
        text = self.shown(self.get(f"/routers/{router.guid}", hx_request="true", **mine))
        self.assertIn("away it has not been heard of for a minute", text)
        self.assertRegex(text, r"Away since 20\d\d-.* UTC \(3 min 20 s\)")

    def test_gate(self) -> None:
        """A closed gate names each file, and what a container needs for one in another place."""
        gate = GateState(("k is missing.",), ("/etc/webhookrx/tls/k", "/srv/a b/c"))
        self.router("fra-1", gate=gate, applied=AppliedState("BLOCKED", error="It waits."))
        text = self.shown(self.get("/routers/fra-1", **self.sign_in()))
        for part in ("The reload gate is closed.", "blocked", "Last error. It waits.", "/etc/webhookrx/tls/k none"):
            self.assertIn(part, text)
        self.assertIn("/srv/a b/c --volume '/srv/a b:/srv/a b:ro'", text)

    def test_rights(self) -> None:
        """Who may not change it sees no forms."""
        self.router("fra-1")
        body = self.get("/routers/fra-1", **self.sign_in("vera", "viewer", False)).body.decode()
        for part in ("/routers/fra-1:", "/tap?", "/files"):
            self.assertNotIn(part, body)
        editor = self.get("/routers/fra-1", **self.sign_in("eda", "editor", False)).body.decode()
        self.assertIn("/routers/fra-1:reload", editor)
        self.assertNotIn("/routers/fra-1:forget", editor)

    def test_name_and_labels(self) -> None:
        """Labels are rows; what is wrong is told, such as a label that is there twice, and what was typed stays."""
        router, _ = self.router("fra-1"), self.router("taken")
        router.labels = {"old": "1"}
        mine = self.sign_in()
        self.assertIn('value="old"', self.get("/routers/fra-1", **mine).body.decode())
        for form, status, sentence in (
            ({"name": "fra-1", "key": ["a", "a"], "value": ["1", "2"]}, 422, "A label is there twice."),
            ({"name": "fra-1", "key": ["a b"], "value": ["typed-1"]}, 422, "a b"),
            ({"name": "fra-1", "key": [""], "value": ["typed-1"]}, 422, "What you sent is wrong."),
            ({"name": "taken", "key": ["site"], "value": ["typed-1"]}, 409, "Another router has this name"),
        ):
            response = self.post("/routers/fra-1:change", form, **mine)
            self.assertEqual(status, response.status, form)
            self.assertIn(sentence, self.shown(response))
            self.assertIn(f'value="{form["value"][0]}"', response.body.decode())
            self.assertEqual({"old": "1"}, router.labels)
        form = {"name": "fra-2", "key": ["site", "", "x/y"], "value": ["fra", "", "2"]}
        response = self.post("/routers/fra-1:change", form, **mine)
        self.assertEqual((303, "/routers/fra-2?said=router-changed"), place(response))
        self.assertEqual(("fra-2", {"site": "fra", "x/y": "2"}), (router.name, router.labels))

    def test_access(self) -> None:
        """It is disabled, enabled, and forgotten; each is asked for first."""
        router = self.router("fra-1")
        mine = self.sign_in()
        body = self.get("/routers/fra-1", **mine).body.decode()
        self.assertEqual(2, body.count("data-confirm="))
        self.assertEqual(
            (303, "/routers/fra-1?said=router-disabled"), place(self.post("/routers/fra-1:disable", {}, **mine))
        )
        self.assertEqual("disabled", router.state)
        self.assertIn("Enable this router", self.shown(self.get("/routers/fra-1", **mine)))
        self.assertEqual(303, self.post("/routers/fra-1:approve", {}, **mine).status)
        self.assertEqual("approved", router.state)
        self.assertEqual((303, "/routers?said=router-forgotten"), place(self.post("/routers/fra-1:forget", {}, **mine)))
        self.assertEqual(0, len(self.fleet.registry))
        self.assertEqual(404, self.post("/routers/fra-1:forget", {}, **mine).status)
        self.assertEqual(403, self.post("/routers/fra-1:forget", {}, **self.sign_in("eda", "editor")).status)

    def test_reload(self) -> None:
        """A reload is done by the router, whose answer is told, with the files that it waits for."""
        router = self.router("fra-1")
        mine = self.sign_in()
        for answer, status, sentence in (("", 303, ""), ("The gate is closed.", 409, "/srv/k")):
            response = self.answered(router.guid, answer, "/routers/fra-1:reload", mine)
            self.assertEqual(status, response.status)
            self.assertIn(sentence, self.shown(response))

    def answered(self, guid: str, problem: str, path: str, mine: dict[str, str]) -> Response:
        """Return what a form answers while a router does each command at once."""
        polls = self.fleet.polls
        real = polls.command

        def command(guid: str, make: object, seconds: float, id: str = "") -> object:
            asked = real(guid, make, seconds, id)  # type: ignore[arg-type]
            for each in polls.due(guid):
                if isinstance(each, ReloadCommand):
                    polls.answered(guid, CommandAnswer(each.id, problem, "reload_gate_closed", ("/srv/k",)))
                elif isinstance(each, CheckFilesCommand):
                    files = {path: "missing" if path.endswith("k") else "present" for path in each.paths}
                    polls.answered(guid, CommandAnswer(each.id, files=files))  # type: ignore[arg-type]
            return asked

        self.patch(polls, "command", command)
        try:
            return self.post(path, {}, **mine) if ":" in path else self.get(path, **mine)
        finally:
            polls.command = real  # type: ignore[method-assign]

    def test_files(self) -> None:
        """The router is asked for the files of its rules by a part that comes later; missing ones are first."""
        router = self.router("fra-1")
        self.console_rule("hooks", 443, "key_file: /srv/tls/k", "cert_file: /etc/webhookrx/tls/c")
        mine = self.sign_in()
        self.assertIn('hx-get="/routers/fra-1/files"', self.get("/routers/fra-1", **mine).body.decode())
        for headers in (mine, {**mine, "hx_request": "true"}):
            text = self.shown(self.answered(router.guid, "", "/routers/fra-1/files", headers))
            self.assertIn("/srv/tls/k missing hooks --volume /srv/tls:/srv/tls:ro", text)
            self.assertLess(text.index("/srv/tls/k"), text.index("/etc/webhookrx/tls/c present"))


class EnrolmentPageTests(RouterPagesCase):
    """Tokens."""

    def test_token(self) -> None:
        """A token is shown once, with commands; the list has its enrolment, which can be deleted."""
        mine = self.sign_in()
        form = {"approve": "auto", "uses": "3", "hours": "24", "key": ["site", ""], "value": ["fra", ""]}
        response = self.post("/routers/:enrol", form, **mine)
        text = self.shown(response)
        (token,) = set(re.findall(r"wrx1\.[\w.-]+", text))
        self.assertIn("good for 3 routers", text)
        self.assertIn("HOST:PORT", text)
        (made,) = self.fleet.enrolments.usable
        self.assertEqual(("auto", 3, {"site": "fra"}), (made.approve, made.uses_left, made.labels))
        self.assertEqual(self.clock.seconds() + 86_400, made.expires_at)
        response = self.get("/routers/:enrol", **mine)
        self.assertNotIn(token, response.body.decode())
        self.assertIn("site=fra", self.shown(response))
        path = f"/routers/:enrol/{made.id}:delete"
        self.assertIn(path, response.body.decode())
        self.assertEqual((303, "/routers/:enrol?said=enrolment-deleted"), place(self.post(path, {}, **mine)))
        self.assertEqual((), self.fleet.enrolments.usable)
        self.assertEqual(404, self.post(path, {}, **mine).status)

    def test_wrong(self) -> None:
        """What is wrong is told, and what was typed stays."""
        mine = self.sign_in()
        good = {"approve": "manual", "uses": "1", "hours": "1", "key": ["typed"], "value": ["fra"]}
        for change, status in (
            ({"uses": "1001"}, 422),
            ({"hours": "0"}, 422),
            ({"uses": "x"}, 400),
            ({"approve": HOSTILE}, 422),
            ({"key": ["typed", "typed"], "value": ["1", "2"]}, 422),
            ({"value": [HOSTILE]}, 422),
        ):
            response = self.post("/routers/:enrol", {**good, **change}, **mine)
            self.assertEqual(status, response.status, change)
            self.assertIn('role="alert"', response.body.decode())
            self.assertIn('value="typed"', response.body.decode())
            self.assertEqual((), self.fleet.enrolments.usable)

    def test_rights(self) -> None:
        """Only an admin gets there."""
        self.assertEqual(403, self.get("/routers/:enrol", **self.sign_in("eda", "editor")).status)


class WordsTests(SynchronousTestCase):
    """Words and commands."""

    def test_all_have_words(self) -> None:
        """Each state has a badge and a meaning."""
        self.assertEqual((set(STANDINGS), set(STANDINGS)), (set(BADGES), set(MEANINGS)))

    def test_commands(self) -> None:
        """Commands have token and URL as one word each; without a URL a placeholder."""
        commands = RouterCommands(MADE)
        for text in (commands.try_it, commands.enrol):
            words = shlex.split(text.replace(";", " ").replace("(", " ").replace(")", " "))
            self.assertEqual("https://c.example:9443", words[words.index("--console") + 1])
            self.assertEqual(MADE.token, words[words.index("echo") + 1])
        self.assertIn("\nconsole: https://c.example:9443\n", commands.credential)
        self.assertNotIn(MADE.token, commands.start)
        other = RouterCommands(MadeEnrolment(MADE.enrolment, MADE.token, ""))
        self.assertEqual((False, "https://HOST:PORT"), (other.knows_url, other.console))
