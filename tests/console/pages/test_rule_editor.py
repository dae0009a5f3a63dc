"""
Tests for L{webhookrx.console.pages.rule_editor}, at both ends: the page, and what is saved.
"""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import msgspec
from twisted.internet.defer import Deferred, succeed

from tests.console.pages.paging import PageCase
from tests.http.wire import Response
from webhookrx.console.pages import rule_editor
from webhookrx.console.routers.previews import Previews
from webhookrx.console.rules.rulebook import PushRequest
from webhookrx.console.rules.saved import SavedRule
from webhookrx.console.store.history import Author
from webhookrx.management.agent_protocol import CommandAnswer, GateState, RouterFacts

RULE = """# Owned by the web team.
name: hooks
selector: label.site = fra
protocol: HTTPS
port: 8443
key_file: /srv/tls/key.pem
cert_file: /etc/webhookrx/tls/cert.pem
labels: {team: web}
split: lines
preprocessing:
  steps:
    - probe: first
    - probe: second
      condition: meta.a = b
"""
HOSTILE = "\"><script>alert('x')</script>‮"


class FormReader(HTMLParser):
    """Reads the fields of the form of a rule as a browser sends them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.fields: list[tuple[str, str]] = []
        self.buttons: dict[str, str] = {}
        self._inside = False
        self._fieldsets: list[bool] = []
        self._area: tuple[str, list[str]] | None = None
        self._select: list[Any] | None = None
        self._button = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a field."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._inside = given.get("id") == "rule-form"
        if tag == "fieldset":
            self._fieldsets.append("disabled" in given)
        if not (self._inside or given.get("form") == "rule-form") or any(self._fieldsets):
            return
        name = given.get("name", "")
        if tag == "input" and name and (given.get("type") != "checkbox" or "checked" in given):
            self.fields.append((name, given.get("value", "")))
        elif tag == "textarea":
            self._area = (name, [])
        elif tag == "select":
            self._select = [name, None, None]
        elif tag == "option" and self._select is not None:
            self._select.append((given.get("value"), "selected" in given))
        elif tag == "button":
            self._button = given.get("value", "")
            self.buttons.setdefault(self._button, "")

    def handle_data(self, data: str) -> None:
        """Note a text."""
        if self._area is not None:
            self._area[1].append(data)
        elif self._button:
            self.buttons[self._button] += data
        if self._select is not None and isinstance(self._select[-1], tuple) and self._select[-1][0] is None:
            self._select[-1] = (data, self._select[-1][1])

    def handle_endtag(self, tag: str) -> None:
        """Note the end of a field."""
        if tag == "textarea" and self._area is not None:
            self.fields.append((self._area[0], "".join(self._area[1]).removeprefix("\n")))
            self._area = None
        elif tag == "select" and self._select is not None:
            options = self._select[3:]
            chosen = next((value for value, is_selected in options if is_selected), options[0][0])
            self.fields.append((self._select[0], chosen))
            self._select = None
        elif tag == "button":
            self._button = ""
        elif tag == "fieldset":
            self._fieldsets.pop()
        elif tag == "form":
            self._inside = False


class RuleEditorTests(PageCase):
    """The editor."""

    def setUp(self) -> None:
        """Have some routers, and a rule."""
        super().setUp()
        self.console.previews = Previews(self.console, lambda work: succeed(work()))
        self.asked: list[Any] = []
        self.answers: dict[str, Any] = {}
        self.routers = [self.router(f"fra-{number}", "fra") for number in range(3)] + [self.router("ber-1", "ber")]
        polls = SimpleNamespace(command=self.command)
        self.console.fleet = SimpleNamespace(  # type: ignore[assignment]
            clock=self.clock.seconds, registry=self.routers, polls=polls, hosts=()
        )
        self.done(self.console.rulebook.start())

    def router(self, name: str, site: str, gate: tuple[str, ...] = (), endpoints: tuple[str, ...] = ()) -> Any:
        """Return a router that is there."""
        facts = RouterFacts(form="router", endpoints=endpoints)
        return SimpleNamespace(
            guid=f"guid-{name}", name=name, labels={"site": site}, facts=facts, state="approved",
            gate=GateState(paths=gate, reasons=("missing",) if gate else ()), is_away=lambda now: name.endswith("2"),
        )  # fmt: skip

    def command(self, guid: str, make: Any, seconds: float) -> Deferred[Any]:
        """Answer what a router is asked about its files."""
        command = make("1")
        self.asked.append((guid, command.paths))
        state = self.answers.get(guid, "present")
        return succeed(CommandAnswer(id="1", files=dict.fromkeys(command.paths, state)))

    def done(self, awaitable: Any) -> Any:
        """Return what is awaited."""

        async def wait() -> Any:
            return await awaitable

        return self.successResultOf(Deferred.fromCoroutine(wait()))

    def save(self, text: str = RULE, by: str = "otto", **more: Any) -> None:
        """Save a rule beside the pages."""
        given: dict[str, Any] = {"name": None, "generation": None, "as_written": True} | more
        self.done(self.console.rulebook.save(text, Author(by, "ui"), **given))

    @property
    def rules(self) -> dict[str, SavedRule]:
        """All rules."""
        return dict(self.console.rulebook.saved.rules)

    def fields(self, response: Response) -> FormReader:
        """Return the form of a page."""
        return FormReader(response.body.decode())

    def sent(
        self, response: Response, do: str = "", rows: tuple[tuple[str, int, str], ...] = (), **changed: str
    ) -> Any:
        """
        Return what a browser sends of the form of a page.

        @param rows: name, number and value of fields that are there several times.
        """
        form: dict[str, list[str]] = {}
        for name, value in self.fields(response).fields:
            form.setdefault(name, []).append(value)
        form.pop("csrf", None)
        for name, number, value in rows:
            form[name][number] = value
        form.update({name: [value] for name, value in changed.items()})
        return {**form, "do": do} if do else form

    def editor(self) -> dict[str, str]:
        """Sign an editor in."""
        return self.sign_in("mara", "editor", False)

    # -- shown -------------------------------------------------------------------------------------------------------

    def test_shown(self) -> None:
        """The page has the fields, the YAML as it was written, and what the form does not have."""
        mine = self.editor()
        self.save()
        response = self.get("/rules/hooks", **mine)
        self.assertEqual(200, response.status)
        form = self.sent(response)
        self.assertEqual(
            (["hooks"], ["8443"], ["team"], ["web"]),
            tuple(form[n] for n in ("name", "port", "label_key", "label_value")),
        )
        self.assertEqual([RULE], form["yaml"])
        self.assertEqual((["g1"], ["hooks"]), (form["etag"], form["replaces"]))
        self.assertIn("split: lines", self.shown(response))
        self.assertIn("--volume /srv/tls:/srv/tls:ro", self.shown(response))
        self.assertNotIn("/etc/webhookrx/tls:/etc", self.shown(response))
        for attribute in ('data-complete="selector"', 'data-complete="condition"', "hx-post", 'aria-live="polite"'):
            self.assertIn(attribute, response.body.decode())
        self.assertLess(len(response.body), 60 * 1024)

    def test_viewer(self) -> None:
        """Who may not change rules sees one whole, and no form."""
        self.save()
        mine = self.sign_in("vera", "viewer", False)
        response = self.get("/rules/hooks", **mine)
        self.assertEqual([], self.fields(response).fields)
        for text in ("# Owned by the web team.", "split: lines", "/srv/tls/key.pem", "needs the role editor"):
            self.assertIn(text, self.shown(response))
        for path in ("/rules:new", "/rules/hooks/delete"):
            self.assertEqual(403, self.get(path, **mine).status)
        for path in ("/rules:new", "/rules:preview", "/rules:files", "/rules/hooks", "/rules/hooks/delete"):
            self.assertEqual(403, self.post(path, {"do": "save", "sure": "yes", "etag": "g1"}, **mine).status)
        self.assertEqual(1, self.rules["hooks"].generation)

    def test_read_only(self) -> None:
        """With rules of pushed files alone, everything can be tried, nothing saved, and the page says why."""
        mine = self.editor()
        self.save()
        self.console.settings = dataclasses.replace(self.console.settings, read_only_rules=True)
        response = self.get("/rules/hooks", **mine)
        self.assertIn("--read-only-rules", self.shown(response))
        self.assertNotIn("save", self.fields(response).buttons)
        self.assertIn(
            "3 of 4 routers match",
            self.shown(self.post("/rules/hooks", self.sent(response, "check"), **mine)),
        )
        self.assertEqual(403, self.post("/rules/hooks", self.sent(response, "save", port="9000"), **mine).status)
        self.assertEqual(1, self.rules["hooks"].generation)

    def test_pushed(self) -> None:
        """Who edits a rule of a pushed file is told whose it is, and that a save here makes it one of people."""
        mine = self.editor()
        self.save()
        self.assertNotIn("that is pushed", self.shown(self.get("/rules/hooks", **mine)))
        listed = "connector_rules:\n  - {name: pushed, protocol: HTTP, port: 9001}\n"
        at = self.console.rulebook.saved.revision
        self.done(self.console.rulebook.push(listed.encode(), PushRequest(manager="git"), "otto", at))
        response = self.get("/rules/pushed", **mine)
        self.assertIn("This rule is of push:git : it comes from a file that is pushed.", self.shown(response))
        self.assertEqual(303, self.post("/rules/pushed", self.sent(response, "save", port="9002"), **mine).status)
        self.assertEqual("ui", self.rules["pushed"].manager)
        self.assertNotIn("that is pushed", self.shown(self.get("/rules/pushed", **mine)))

    def test_nothing(self) -> None:
        """There is no page for a rule that is not there."""
        self.assertEqual(404, self.get("/rules/nothing", **self.editor()).status)

    def test_hostile(self) -> None:
        """Names, texts and mistakes of any kind are text."""
        mine = self.editor()
        text = msgspec.json.encode(
            {
                "name": HOSTILE.replace("/", "").replace("‮", ""),
                "protocol": "HTTP",
                "port": 8080,
                "description": "</textarea><script>x</script>",
                "selector": "label.site = '<script>'",
                "preprocessing": {"steps": [{"set": {"field": "meta.a", "value": "</textarea><script>"}}]},
            }
        ).decode()
        self.save(text)
        (name,) = self.rules
        path = f"/rules/{rule_editor.in_path(name)}"
        for response in (self.get(path, **mine), self.get(f"{path}/delete", **mine)):
            self.assertEqual(200, response.status)
            self.assertNotIn("<script>", response.body.decode().replace('<script src="', ""))
        form = self.sent(self.get(path, **mine), port="x<script>", label_key=HOSTILE, label_value=HOSTILE)
        for answer in (
            self.post(path, {**form, "do": "save"}, **mine),
            self.post("/rules:preview", form, hx_request="true", **mine),
        ):
            self.assertNotIn("<script>", answer.body.decode().replace('<script src="', ""))

    # -- saved -------------------------------------------------------------------------------------------------------

    def test_saved_by_form(self) -> None:
        """A change in the form is saved as a document, and all that the form does not have stays."""
        mine = self.editor()
        self.save()
        response = self.post("/rules/hooks", self.sent(self.get("/rules/hooks", **mine), "save", port="9000"), **mine)
        self.assertEqual((303, "/rules/hooks?said=rule-saved"), (response.status, response.headers["location"]))
        saved = self.rules["hooks"]
        self.assertEqual((9000, None, "lines"), (saved.rule.port, saved.yaml, saved.rule.split))
        self.assertEqual(2, len(saved.rule.preprocessing.steps))
        self.assertIn("The rule is saved.", self.shown(self.get(response.headers["location"], **mine)))

    def test_loses_comments(self) -> None:
        """Before that is saved, the page says that comments go."""
        mine = self.editor()
        self.save()
        page = self.get("/rules/hooks", **mine)
        live = self.post("/rules:preview", self.sent(page, port="9000"), hx_request="true", **mine)
        self.assertIn("comments and layout are not kept", self.shown(live))
        self.assertNotIn(
            "not kept", self.shown(self.post("/rules:preview", self.sent(page), hx_request="true", **mine))
        )

    def test_saved_as_written(self) -> None:
        """YAML is saved as it was written; what was not changed makes no new generation."""
        mine = self.editor()
        self.save()
        page = self.get("/rules/hooks", **mine)
        self.assertEqual(303, self.post("/rules/hooks", self.sent(page, "save"), **mine).status)
        self.assertEqual(1, self.rules["hooks"].generation)
        text = RULE.replace("8443", "9000  # moved")
        self.assertEqual(
            303, self.post("/rules/hooks", self.sent(page, "save", yaml=text.replace("\n", "\r\n")), **mine).status
        )
        self.assertEqual((text, 9000), (self.rules["hooks"].yaml, self.rules["hooks"].rule.port))

    def test_renamed(self) -> None:
        """A rule gets another name, under which it is shown then."""
        mine = self.editor()
        self.save()
        response = self.post("/rules/hooks", self.sent(self.get("/rules/hooks", **mine), "save", name="new"), **mine)
        self.assertEqual("/rules/new?said=rule-saved", response.headers["location"])
        self.assertEqual(["new"], list(self.rules))

    def test_new(self) -> None:
        """A new rule begins with hints instead of mistakes, is refused with mistakes at its fields, and is saved."""
        mine = self.editor()
        page = self.get("/rules:new", **mine)
        self.assertNotIn("aria-invalid", page.body.decode())
        live = self.post("/rules:preview", self.sent(page, selector="label.site = fra"), hx_request="true", **mine)
        self.assertIn("Still needed: name, key file, certificate file.", self.shown(live))
        self.assertIn("is shown once that is there.", self.shown(live))
        self.assertNotIn('data-kind="error"', live.body.decode())
        self.assertNotIn(" error", self.shown(live))
        self.assertIn('<a href="/rules" data-key="u" aria-current="page">', page.body.decode())
        refused = self.post("/rules:new", self.sent(page, "save", port="84x43"), **mine)
        self.assertEqual(422, refused.status)
        self.assertRegex(refused.body.decode(), r'<input id="port"[^>]* aria-invalid="true"')
        self.assertRegex(refused.body.decode(), r'<input id="name"[^>]* aria-invalid="true"')
        self.assertIn('data-line="2"', refused.body.decode())
        response = self.post("/rules:new", self.sent(refused, "save", name="new", protocol="HTTP", port="8080"), **mine)
        self.assertEqual((303, "/rules/new?said=rule-saved"), (response.status, response.headers["location"]))
        self.assertEqual(8080, self.rules["new"].rule.port)

    def test_copied(self) -> None:
        """A copy of a rule has all but its name."""
        mine = self.editor()
        self.save()
        page = self.get("/rules:new?from=hooks", **mine)
        response = self.post("/rules:new", self.sent(page, "save", name="copy", port="9000"), **mine)
        self.assertEqual(303, response.status, self.shown(response))
        self.assertEqual("lines", self.rules["copy"].rule.split)
        self.assertEqual(404, self.get("/rules:new?from=nothing", **mine).status)

    def test_clash(self) -> None:
        """A rule that can't be beside another is refused, with the port as the place."""
        mine = self.editor()
        self.save()
        page = self.get("/rules:new", **mine)
        form = {"name": "other", "protocol": "HTTP", "port": "8443", "selector": "label.site = fra"}
        refused = self.post("/rules:new", self.sent(page, "save", **form), **mine)
        self.assertEqual(409, refused.status)
        self.assertRegex(refused.body.decode(), r'<input id="port"[^>]* aria-invalid="true"')
        self.assertEqual(["hooks"], list(self.rules))
        self.assertEqual(1, self.shown(refused).count("The same on 2 more."))
        taken = self.post("/rules:new", self.sent(page, "save", **{**form, "name": "hooks", "port": "9000"}), **mine)
        self.assertRegex(taken.body.decode(), r'<input id="name"[^>]* aria-invalid="true"')

    def test_unreadable(self) -> None:
        """YAML that can't be read is refused, and comes back; the form waits."""
        mine = self.editor()
        self.save()
        refused = self.post("/rules/hooks", self.sent(self.get("/rules/hooks", **mine), "save", yaml="name: ["), **mine)
        self.assertEqual(422, refused.status)
        form = self.sent(refused)
        self.assertEqual(["name: [\n"], form["yaml"])
        self.assertNotIn("port", form)
        mended = self.post("/rules/hooks", self.sent(refused, "save", yaml=RULE.replace("8443", "9000")), **mine)
        self.assertEqual(303, mended.status)

    def test_both(self) -> None:
        """Without a script somebody may change both; nothing is saved until they say which counts."""
        mine = self.editor()
        self.save()
        page = self.get("/rules/hooks", **mine)
        asked = self.post(
            "/rules/hooks", self.sent(page, "save", yaml=RULE.replace("8443", "9001"), port="9002"), **mine
        )
        self.assertEqual(409, asked.status)
        self.assertEqual(1, self.rules["hooks"].generation)
        for do, port in (("keep-form", "9002"), ("keep-yaml", "9001")):
            kept = self.post("/rules/hooks", self.sent(asked, do), **mine)
            self.assertEqual([port], self.sent(kept)["port"], do)
            self.assertIn(f"port: {port}", self.sent(kept)["yaml"][0])

    # -- rows --------------------------------------------------------------------------------------------------------

    def test_rows(self) -> None:
        """Rows are added and steps moved by buttons, without a script."""
        mine = self.editor()
        self.save()
        page = self.get("/rules/hooks", **mine)
        added = self.post("/rules/hooks", self.sent(page, "add-label"), **mine)
        self.assertEqual(["team", ""], self.sent(added)["label_key"])
        moved = self.post(
            "/rules/hooks", self.sent(added, "down-step-0", (("label_key", 1, "x"), ("label_value", 1, "y"))), **mine
        )
        form = self.sent(moved)
        self.assertEqual((["team", "x"], ["probe: second", "probe: first"]), (form["label_key"], form["step_yaml"]))
        self.assertEqual(["meta.a = b", ""], form["step_condition"])
        more = self.post("/rules/hooks", self.sent(moved, "add-step", new_step="classify"), **mine)
        self.assertEqual("classify: yes", self.sent(more)["step_yaml"][-1])
        fewer = self.post("/rules/hooks", self.sent(more, "remove-step-0"), **mine)
        self.assertEqual(303, self.post("/rules/hooks", self.sent(fewer, "save"), **mine).status)
        saved = self.rules["hooks"].rule
        self.assertEqual({"team": "web", "x": "y"}, saved.labels)
        self.assertEqual(["first", None], [step.probe for step in saved.preprocessing.steps])

    def test_rows_live(self) -> None:
        """The same buttons change only the part of the page with the fields, where there is a script."""
        mine = self.editor()
        self.save()
        page = self.get("/rules/hooks", **mine)
        live = self.post("/rules:preview", self.sent(page, "up-step-1"), hx_request="true", **mine).body.decode()
        self.assertLess(live.index("probe: second</textarea>"), live.index("probe: first</textarea>"))
        self.assertIn('id="rule-yaml" hx-swap-oob="outerHTML settle:0"', live)
        self.assertNotIn("<html", live)

    # -- previewed ---------------------------------------------------------------------------------------------------

    def test_follows(self) -> None:
        """What somebody writes in is left alone; the other side follows."""
        mine = self.editor()
        self.save()
        page = self.get("/rules/hooks", **mine)
        by_form = self.post("/rules:preview", self.sent(page, port="9000"), hx_request="true", **mine).body.decode()
        self.assertIn('id="rule-yaml"', by_form)
        self.assertNotIn('id="rule-fields"', by_form)
        text = RULE.replace("8443", "9000")
        by_yaml = self.post("/rules:preview", self.sent(page, yaml=text), hx_request="true", **mine).body.decode()
        self.assertIn('id="rule-fields"', by_yaml)
        self.assertNotIn('id="rule-yaml"', by_yaml)
        self.assertRegex(by_yaml, r'<input id="port"[^>]* value="9000"')
        comment = self.post(
            "/rules:preview", self.sent(page, yaml=f"{RULE}# more"), hx_request="true", **mine
        ).body.decode()
        self.assertNotIn('id="rule-fields"', comment)
        broken = self.post("/rules:preview", self.sent(page, yaml="a: ["), hx_request="true", **mine).body.decode()
        self.assertRegex(broken, r'id="rule-fields"[^>]* disabled')
        self.assertIn('data-line="2"', broken)

    def test_previewed(self) -> None:
        """The preview says which routers match, why not, what clashes and what changes; the button how many."""
        mine = self.editor()
        self.save()
        self.routers[1] = self.router("fra-1", "fra", endpoints=("tcp:9000",))
        page = self.get("/rules/hooks", **mine)
        live = self.post("/rules:preview", self.sent(page, port="9000"), hx_request="true", **mine)
        shown = self.shown(live)
        for text in (
            "3 of 4 routers match. Connectors: 3 changed. 1 clash.",
            "fra-0-hooks-hooks",
            "ber-1 : label.site = fra (is ber)",
            "free on 2",
            "Connections are closed on 3 routers.",
        ):
            self.assertIn(text, shown)
        self.assertEqual("Save: 3 routers", " ".join(self.fields_of_part(live)["save"].split()))
        none = self.post("/rules:preview", self.sent(page, selector="label.site = muc"), hx_request="true", **mine)
        self.assertIn("Save: no router, 3 removed", self.shown(none))
        wrong = self.post("/rules:preview", self.sent(page, port="x"), hx_request="true", **mine)
        self.assertEqual("Save", self.fields_of_part(wrong)["save"])
        self.assertIn('<li data-at="port" data-kind="error">', wrong.body.decode())
        self.assertNotIn("of 4 routers match", self.shown(wrong))

    def fields_of_part(self, response: Response) -> dict[str, str]:
        """Return the buttons of a part of a page."""
        return FormReader(f'<form id="rule-form">{response.body.decode()}</form>').buttons

    def test_gates(self) -> None:
        """Saving stays allowed when gates are closed or would close, with that on the button."""
        mine = self.editor()
        self.save()
        self.routers[0] = self.router("fra-0", "fra", gate=("/srv/tls/key.pem",))
        self.answers["guid-fra-1"] = "missing"
        page = self.get("/rules/hooks", **mine)
        live = self.post("/rules:preview", self.sent(page), hx_request="true", **mine)
        self.assertIn("The reload gate of 1 router is closed", self.fields_of_part(live)["save"])
        self.assertIn('hx-post="/rules:files"', live.body.decode())
        (key,) = re.findall(r'name="files_key" form="rule-form" value="(\w+)"', live.body.decode())
        late = self.post("/rules:files", self.sent(page), hx_request="true", **mine)
        self.assertIn("The reload gate of 1 router would close and", self.fields_of_part(late)["save"])
        for text in ("missing on 1", "there on 1", "unknown on 1", "--volume /srv/tls:/srv/tls:ro"):
            self.assertIn(text, self.shown(late))
        self.assertEqual({"guid-fra-0", "guid-fra-1"}, {guid for guid, _ in self.asked})
        # What is known of the files stays, as long as the same routers are asked about the same files.
        form = self.sent(page, description="x") | {"files_key": key, "closing": "1"}
        again = self.post("/rules:preview", form, hx_request="true", **mine)
        self.assertIn("would close", self.fields_of_part(again)["save"])
        self.assertNotIn("files_key", again.body.decode())
        self.assertEqual(303, self.post("/rules/hooks", {**form, "do": "save"}, **mine).status)

    def test_files_without_script(self) -> None:
        """A button asks the routers about the files."""
        mine = self.editor()
        self.save()
        page = self.post("/rules/hooks", self.sent(self.get("/rules/hooks", **mine), "files"), **mine)
        self.assertIn("there on 2", self.shown(page))

    # -- two people ---------------------------------------------------------------------------------------------------

    def test_conflict(self) -> None:
        """Who saves what somebody else has changed sees both, and may take either or both."""
        mine = self.editor()
        self.save()
        page = self.get("/rules/hooks", **mine)
        self.save(RULE.replace("label.site = fra", "label.site = ber"), name="hooks", generation=1)
        refused = self.post("/rules/hooks", self.sent(page, "save", port="9000"), **mine)
        self.assertEqual(412, refused.status)
        shown = self.shown(refused)
        for text in ("otto saved it", "~ selector", "~ port = 9000 (was 8443)", "- selector: label.site = ber"):
            self.assertIn(text, shown)
        self.assertEqual((["9000"], ["g1"]), (self.sent(refused)["port"], self.sent(refused)["etag"]))
        self.assertEqual(412, self.post("/rules/hooks", self.sent(refused, "save"), **mine).status)
        merged = self.post("/rules/hooks", self.sent(refused, "merge-g2"), **mine)
        form = self.sent(merged, "save")
        self.assertEqual((["9000"], ["label.site = ber"], ["g2"]), (form["port"], form["selector"], form["etag"]))
        self.assertEqual(2, self.rules["hooks"].generation)
        self.assertEqual(303, self.post("/rules/hooks", form, **mine).status)
        rule = self.rules["hooks"].rule
        self.assertEqual((9000, "label.site = ber"), (rule.port, rule.selector))

    def test_over(self) -> None:
        """One's own is saved over theirs, unless they have saved again."""
        mine = self.editor()
        self.save()
        page = self.get("/rules/hooks", **mine)
        self.save(RULE.replace("8443", "9001"), name="hooks", generation=1)
        refused = self.post("/rules/hooks", self.sent(page, "save", port="9000"), **mine)
        self.assertNotIn("merge-g2", self.fields(refused).buttons)
        self.assertIn("Both have changed: port .", self.shown(refused))
        self.save(RULE.replace("8443", "9003"), name="hooks", generation=2)
        again = self.post("/rules/hooks", self.sent(refused, "over-g2"), **mine)
        self.assertEqual(412, again.status)
        self.assertEqual(303, self.post("/rules/hooks", self.sent(again, "over-g3"), **mine).status)
        self.assertEqual((9000, 4), (self.rules["hooks"].rule.port, self.rules["hooks"].generation))

    def test_gone(self) -> None:
        """A rule that was deleted in the meantime can be saved as a new one."""
        mine = self.editor()
        self.save()
        page = self.get("/rules/hooks", **mine)
        self.done(self.console.rulebook.delete("hooks", Author("otto", "ui"), 1))
        refused = self.post("/rules/hooks", self.sent(page, "save", port="9000"), **mine)
        self.assertEqual(404, refused.status)
        self.assertIn("deleted in the meantime", self.shown(refused))
        self.assertEqual(303, self.post("/rules/hooks", self.sent(refused, "save-new"), **mine).status)
        self.assertEqual(9000, self.rules["hooks"].rule.port)

    # -- deleted ------------------------------------------------------------------------------------------------------

    def test_deleted(self) -> None:
        """A rule is deleted after a page has said what goes, and not when somebody has changed it."""
        mine = self.editor()
        self.save()
        page = self.get("/rules/hooks/delete", **mine)
        self.assertIn("Delete: 3 connectors go", self.shown(page))
        self.assertEqual(200, self.post("/rules/hooks/delete", {"etag": "g1"}, **mine).status)
        self.assertEqual(["hooks"], list(self.rules))
        self.save(RULE.replace("8443", "9001"), name="hooks", generation=1)
        stale = self.post("/rules/hooks/delete", {"etag": "g1", "sure": "yes"}, **mine)
        self.assertEqual(412, stale.status)
        (etag,) = re.findall(r'name="etag" value="(\w+)"', stale.body.decode())
        response = self.post("/rules/hooks/delete", {"etag": etag, "sure": "yes"}, **mine)
        self.assertEqual((303, "/rules?said=rule-deleted"), (response.status, response.headers["location"]))
        self.assertEqual({}, self.rules)

    def test_large(self) -> None:
        """A large form is read apart from the reactor; one that is too large is refused."""
        mine = self.editor()
        apart = self.apart
        self.save()
        page = self.get("/rules/hooks", **mine)
        response = self.post("/rules/hooks", self.sent(page, "check", description="x" * 20_000), **mine)
        self.assertEqual((200, 2), (response.status, len(apart)))
        self.assertEqual(413, self.post("/rules/hooks", {"yaml": "x" * 600_000}, **mine).status)
        steps = "".join(f"    - set: {{field: meta.f{number}, value: v}}\n" for number in range(300))
        large = f"name: hooks\nprotocol: HTTP\nport: 8443\npreprocessing:\n  steps:\n{steps}"
        self.save(large, name="hooks", generation=1)
        for path in ("/rules/hooks", "/rules:new?from=hooks", "/rules/hooks/delete"):
            apart.clear()
            self.assertEqual((200, 1), (self.get(path, **mine).status, len(apart)), path)
