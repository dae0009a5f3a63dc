"""
Tests for the pages of the settings, L{webhookrx.console.pages.settings_tabs} and those beside it.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

from markupsafe import escape

from tests.console.oidc.issuing import SECRET, SignOnCase
from tests.console.pages.paging import PageCase
from tests.console.people.test_people import PASSWORD
from tests.console.routers.test_authority import NOW
from tests.http.wire import Response
from webhookrx.console.own_settings.setting_types import RetentionSetting
from webhookrx.console.pages.settings_tabs import TABS
from webhookrx.console.people import accounts
from webhookrx.console.people.accounts import PersonView, people
from webhookrx.console.routers.authority import make_authority
from webhookrx.console.store.history import Author, read_history

NEW = "another pass phrase"
PEOPLE = "/settings/people"
ACCOUNT = "/settings/account"


class Fields(HTMLParser):
    """The fields of a page by name, with their attributes."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.found: dict[str, dict[str, str]] = {}
        self.feed(response.body.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it."""
        given = {name: value or "" for name, value in attrs}
        if tag in ("input", "select", "textarea") and "name" in given:
            self.found[given["name"]] = given


class SettingsCase(PageCase):
    """A console with an admin."""

    def setUp(self) -> None:
        """Sign an admin in."""
        super().setUp()
        self.mine = self.sign_in()

    def place(self, response: Response) -> tuple[int, str]:
        """Return status and place of an answer."""
        return response.status, response.headers["location"]

    def names(self) -> list[str]:
        """Return all people."""
        return [each.name for each in self.store.reader.read(people)]


class TabTests(SettingsCase):
    """The tabs."""

    def test_tabs(self) -> None:
        """Everyone sees the tabs that they may see, and where they are."""
        directory = self.mktemp()
        os.mkdir(directory)
        self.console.fleet = SimpleNamespace(authority=make_authority(directory, NOW))  # type: ignore[assignment]
        path = os.path.abspath(os.path.join(directory, "console.sqlite"))
        self.console.settings = replace(self.console.settings, database=path)
        for role, few in (("admin", 0), ("viewer", 5)):
            mine = self.mine if role == "admin" else self.sign_in("vera", "viewer", False)
            links = re.findall(r'<h2><a href="([^"]+)"', self.get("/settings", **mine).body.decode())
            self.assertEqual(len(TABS) - few, len(links))
            for link in links:
                if link.startswith("/settings/"):
                    response = self.get(link, **mine)
                    self.assertEqual(200, response.status, link)
                    self.assertIn(f'<a href="{link}" aria-current="page">', response.body.decode())
                    self.assertEqual(1, response.body.count(b"<h1"))
            for tab in TABS:
                if tab.path not in links and tab.path.startswith("/settings/"):
                    self.assertEqual(403, self.get(tab.path, **mine).status)

    def test_certificates(self) -> None:
        """The page has the CA with its end, and no private key."""
        directory = self.mktemp()
        os.mkdir(directory)
        authority = make_authority(directory, NOW)
        self.console.fleet = SimpleNamespace(authority=authority)  # type: ignore[assignment]
        response = self.get("/settings/certificates", **self.mine)
        self.assertIn(authority.pin, self.shown(response))
        self.assertIn(authority.signing_keys[0], self.shown(response))
        self.assertIn("BEGIN CERTIFICATE", self.shown(response))
        self.assertNotIn("PRIVATE", self.shown(response))

    def test_backup(self) -> None:
        """The page has the exact command, with a path that a shell takes as one word, and how much room there is."""
        directory = os.path.abspath(self.mktemp()) + " it's"
        os.mkdir(directory)
        path = os.path.join(directory, "console.sqlite")
        with open(path, "wb") as file:
            file.write(b"x" * 2048)
        self.console.settings = replace(self.console.settings, database=path)
        text = self.shown(self.get("/settings/backup", **self.mine))
        self.assertIn("webhookrx console backup --db '", text)
        self.assertIn("it'\"'\"'s/console.sqlite' --with-keys", text)
        self.assertIn("2 KiB", text)
        self.assertIn("Free on its disk", text)

    def test_about(self) -> None:
        """The page says what runs; where the database is, admins alone see."""
        text = self.shown(self.get("/settings/about", **self.sign_in("vera", "viewer", False)))
        self.assertIn("https://console.example", text)
        self.assertIn("8 h", text)
        self.assertNotIn("Database", text)


class AccountTests(SettingsCase):
    """One's own account."""

    def test_password(self) -> None:
        """A new password ends other sessions and, unless they are kept, API tokens."""
        other = self.session()
        self.post(f"{ACCOUNT}/tokens", {"name": "t", "role": "viewer", "days": "9"}, **self.mine)
        form = {"old": PASSWORD, "password": f" {NEW} ", "keep_tokens": "yes"}
        response = self.post(f"{ACCOUNT}/password", form, **self.mine)
        self.assertEqual((303, f"{ACCOUNT}?said=password-changed"), self.place(response))
        self.assertIn("Your password is changed", self.shown(self.get(response.headers["location"], **self.mine)))
        self.assertEqual(303, self.get(ACCOUNT, **other).status)
        self.assertEqual(1, len(self.store.reader.read(lambda db: accounts.tokens(db, None))))
        self.assertEqual(201, self.log_in(password=f" {NEW} ").status)
        form = {"old": f" {NEW} ", "password": PASSWORD}
        self.assertEqual(303, self.post(f"{ACCOUNT}/password", form, **self.mine).status)
        self.assertEqual([], self.store.reader.read(lambda db: accounts.tokens(db, None)))

    def test_wrong_password(self) -> None:
        """What is wrong stands at its field; no password comes back."""
        for form, status, field, sentence in (
            ({"old": "wrong", "password": NEW}, 403, "old", "The old password is wrong."),
            ({"old": PASSWORD, "password": "short"}, 422, "password", "12 to 256 characters"),
        ):
            response = self.post(f"{ACCOUNT}/password", {**form, "keep_tokens": "yes"}, **self.mine)
            self.assertEqual(status, response.status)
            fields = Fields(response).found
            self.assertEqual("true", fields[field]["aria-invalid"])
            self.assertIn("checked", fields["keep_tokens"])
            self.assertIn(sentence, self.shown(response))
            self.assertEqual(("", ""), (fields["old"]["value"], fields["password"]["value"]))

    def test_sessions(self) -> None:
        """Each session is listed with where it is from, as text, and can be ended but for this one."""
        self.log_in(user_agent="<script>alert(1)</script>")
        response = self.get(ACCOUNT, **self.mine)
        self.assertNotIn("<script>alert", response.body.decode())
        self.assertIn("<script>alert(1)</script>", self.shown(response))
        self.assertIn("this one", self.shown(response))
        (path,) = re.findall(r'action="([^"]+:end)"', response.body.decode())
        self.assertEqual(f"{ACCOUNT}?said=session-ended", self.post(path, {}, **self.mine).headers["location"])
        self.assertEqual([], re.findall(r'action="([^"]+:end)"', self.get(ACCOUNT, **self.mine).body.decode()))
        self.assertEqual(404, self.post(path, {}, **self.mine).status)

    def test_tokens(self) -> None:
        """A token's secret is shown once, and works until the token is removed."""
        self.assertIn("You have none.", self.shown(self.get(ACCOUNT, **self.mine)))
        form = {"name": "ci", "role": "editor", "tap": "yes", "days": "30"}
        response = self.post(f"{ACCOUNT}/tokens", form, **self.mine)
        (secret,) = re.findall(r"wrxp_[\w-]{43}", response.body.decode())
        self.assertIn('data-copy="secret"', response.body.decode())
        self.assertEqual(200, response.status)
        bearer = {"authorization": f"Bearer {secret}"}
        self.assertEqual("editor", json.loads(self.ask("GET", "/session", **bearer).body)["role"])
        page = self.get(ACCOUNT, **self.mine).body.decode()
        self.assertNotIn("wrxp_", page)
        (path,) = re.findall(r'action="([^"]+:remove)"', page)
        self.assertEqual(f"{ACCOUNT}?said=token-removed", self.post(path, {}, **self.mine).headers["location"])
        self.assertEqual(401, self.ask("GET", "/session", **bearer).status)

    def test_bad_tokens(self) -> None:
        """What can't be made says why, and the form keeps what was typed."""
        for changes, status in (
            ({"name": "<b>"}, 422),
            ({"days": "0"}, 422),
            ({"days": "367"}, 422),
            ({"days": "x"}, 400),
            ({"role": "root"}, 422),
        ):
            form = {"name": "ci", "role": "editor", "tap": "yes", "days": "30", **changes}
            response = self.post(f"{ACCOUNT}/tokens", form, **self.mine)
            self.assertEqual(status, response.status, changes)
            fields = Fields(response).found
            self.assertEqual((form["name"], form["days"]), (fields["name"]["value"], fields["days"]["value"]))
            self.assertIn("checked", fields["tap"])
            self.assertIn('role="alert"', response.body.decode())

    def test_viewer(self) -> None:
        """Nobody is offered more rights than they have, and nobody sees tokens of others."""
        self.post(f"{ACCOUNT}/tokens", {"name": "of-mara", "role": "viewer", "days": "9"}, **self.mine)
        vera = self.sign_in("vera", "viewer", False)
        page = self.get(ACCOUNT, **vera).body.decode()
        self.assertNotIn('<option value="editor"', page)
        self.assertNotIn("May tap messages", page)
        self.assertNotIn("of-mara", page)
        form = {"name": "t", "role": "admin", "days": "9"}
        self.assertEqual(403, self.post(f"{ACCOUNT}/tokens", form, **vera).status)


class PeopleTests(SettingsCase):
    """People, by admins."""

    def test_add(self) -> None:
        """A person is added, and signs in."""
        form = {"name": "theo", "password": NEW, "role": "editor"}
        self.assertEqual((303, f"{PEOPLE}?said=person-added"), self.place(self.post(PEOPLE, form, **self.mine)))
        self.assertEqual(201, self.log_in("theo", NEW).status)
        text = self.shown(self.get(PEOPLE, **self.mine))
        self.assertIn("theo editor no password enabled", text)

    def test_bad(self) -> None:
        """What is wrong is said, and what was typed stays, but for the password."""
        for changes, status in (({"name": '"><b>'}, 422), ({"name": "mara"}, 409), ({"password": "short"}, 422)):
            form = {"name": "theo", "password": NEW, "role": "admin", "tap": "yes", **changes}
            response = self.post(PEOPLE, form, **self.mine)
            self.assertEqual(status, response.status, changes)
            fields = Fields(response).found
            self.assertEqual((form["name"], ""), (fields["name"]["value"], fields["password"]["value"]))
            self.assertIn("checked", fields["tap"])
            self.assertIn('<option value="admin" selected>', response.body.decode())
        self.assertEqual(["mara"], self.names())

    def test_change(self) -> None:
        """Rights and password are changed, each of which ends sessions."""
        theirs = self.sign_in("theo", "viewer", False)
        form = {"role": "editor", "tap": "yes", "enabled": "yes"}
        response = self.post(f"{PEOPLE}/theo", form, **self.mine)
        self.assertEqual((303, f"{PEOPLE}?said=person-changed"), self.place(response))
        self.assertEqual(303, self.get("/settings", **theirs).status)
        self.assertIn(PersonView("theo", "editor", True, True), self.store.reader.read(people))
        response = self.post(f"{PEOPLE}/theo:password", {"password": NEW}, **self.mine)
        self.assertEqual(303, response.status)
        self.assertEqual(201, self.log_in("theo", NEW).status)
        response = self.post(f"{PEOPLE}/theo:password", {"password": "short", "keep_tokens": "yes"}, **self.mine)
        self.assertEqual(422, response.status)
        self.assertEqual("true", Fields(response).found["password"]["aria-invalid"])
        self.post(f"{PEOPLE}/theo", {"role": "editor"}, **self.mine)
        self.assertEqual(401, self.log_in("theo", NEW).status)
        self.assertIn("disabled", self.shown(self.get(f"{PEOPLE}/theo", **self.mine)))
        self.assertEqual((303, f"{PEOPLE}?said=person-removed"), self.place(
            self.post(f"{PEOPLE}/theo:remove", {}, **self.mine)
        ))  # fmt: skip
        self.assertEqual(["mara"], self.names())
        for response in (
            self.get(f"{PEOPLE}/theo", **self.mine),
            self.post(f"{PEOPLE}/theo:remove", {}, **self.mine),
            self.post(f"{PEOPLE}/theo", {"role": "viewer"}, **self.mine),
        ):
            self.assertEqual(404, response.status)

    def test_last_admin(self) -> None:
        """The last admin stays, and the page says so."""
        for path, form in (("", {"role": "viewer", "enabled": "yes"}), ("", {"role": "admin"}), (":remove", {})):
            response = self.post(f"{PEOPLE}/mara{path}", form, **self.mine)
            self.assertEqual(409, response.status)
            self.assertIn("No admin would be left.", self.shown(response))
        self.assertEqual(200, self.get("/settings", **self.mine).status)

    def test_own(self) -> None:
        """Who changes their own rights is told to sign in again."""
        self.add("root", "admin", True)
        form = {"role": "viewer", "enabled": "yes"}
        response = self.post(f"{PEOPLE}/mara", form, **self.mine)
        self.assertEqual((303, "/sign-in?said=own-rights-changed"), self.place(response))
        self.assertIn("Sign in again.", self.shown(self.get(response.headers["location"])))
        root = self.session("root")
        response = self.post(f"{PEOPLE}/root:password", {"password": NEW}, **root)
        self.assertEqual((303, "/sign-in?said=own-password-changed"), self.place(response))

    def test_many(self) -> None:
        """Fifty people are on a page, and a part of a name finds one."""

        def add(tx: Any) -> None:
            for number in range(120):
                person = PersonView(f"p{number:03}@a.example", "viewer", False, True)
                accounts.add_person(tx, Author("x", "command"), person, "x")

        self.store.writer.write(add)
        page = self.get(PEOPLE, **self.mine).body.decode()
        self.assertIn("1 to 50 of 121", self.shown(self.get(PEOPLE, **self.mine)))
        self.assertEqual(50, page.count('<a href="/settings/people/'))
        self.assertLess(len(page), 30_000)
        self.assertIn("101 to 121 of 121", self.shown(self.get(f"{PEOPLE}?from=100", **self.mine)))
        self.assertIn('href="/settings/people?from=50"', self.get(f"{PEOPLE}?from=100", **self.mine).body.decode())
        found = self.get(f"{PEOPLE}?find=P007", **self.mine).body.decode()
        self.assertEqual(1, found.count('<a href="/settings/people/'))
        self.assertIn("has “<b>”", self.shown(self.get(f"{PEOPLE}?find=<b>", **self.mine)).replace("&", "&"))

    def test_tokens_of_all(self) -> None:
        """Admins see the tokens of all people, and remove any."""
        self.assertIn("There is none yet.", self.shown(self.get("/settings/tokens", **self.mine)))
        vera = self.sign_in("vera", "viewer", False)
        self.post(f"{ACCOUNT}/tokens", {"name": "of-vera", "role": "viewer", "days": "9"}, **vera)
        page = self.get("/settings/tokens", **self.mine).body.decode()
        self.assertIn("of-vera", page)
        self.assertIn("of-vera", self.get("/settings/tokens?find=VERA", **self.mine).body.decode())
        self.assertNotIn("of-vera</th>", self.get("/settings/tokens?find=mara", **self.mine).body.decode())
        (path,) = re.findall(r'action="([^"]+:remove)"', page)
        response = self.post(path, {}, **self.mine)
        self.assertEqual((303, "/settings/tokens?said=token-removed"), self.place(response))
        self.assertEqual([], self.store.reader.read(lambda db: accounts.tokens(db, None)))


class KeptTests(SettingsCase):
    """Masks and retention."""

    def test_masks(self) -> None:
        """Masks are saved, one a line, with history."""
        etag = Fields(self.get("/settings/masks", **self.mine)).found["etag"]["value"]
        form = {"names": "iban\r\n\r\n  <b>x</b>\r\nIBAN\r\n", "etag": etag}
        response = self.post("/settings/masks", form, **self.mine)
        self.assertEqual((303, "/settings/masks?said=masks-saved"), self.place(response))
        self.assertEqual(("iban", "<b>x</b>"), self.console.live.masks.names)
        page = self.get("/settings/masks", **self.mine)
        self.assertNotIn("<b>", page.body.decode())
        self.assertIn("iban\n&lt;b&gt;", page.body.decode())
        (entry,) = self.store.reader.read(lambda db: read_history(db, kind="setting"))
        self.assertEqual(("mara", "ui", "masks"), (entry.by, entry.via, entry.name))
        vera = self.get("/settings/masks", **self.sign_in("vera", "viewer", False))
        self.assertNotIn("<textarea", vera.body.decode())
        self.assertIn("<b>x</b>", self.shown(vera))

    def test_bad_masks(self) -> None:
        """What is wrong stands at the field, with the line."""
        response = self.post("/settings/masks", {"names": "iban\n\u202ex", "etag": "g0"}, **self.mine)
        self.assertEqual(422, response.status)
        self.assertIn("“\u202ex”: Name 2", self.shown(response))
        self.assertEqual("true", Fields(response).found["names"]["aria-invalid"])
        response = self.post("/settings/masks", {"names": "x" * 200, "etag": "g0"}, **self.mine)
        self.assertEqual(422, response.status)
        self.assertIn("x" * 200, response.body.decode())
        self.assertEqual(400, self.post("/settings/masks", {"names": "x", "etag": "<b>"}, **self.mine).status)
        self.assertEqual(400, self.post("/settings/masks", {"names": "x"}, **self.mine).status)

    def test_several_names_in_a_line(self) -> None:
        """A line that may be several names is refused at the field, and nothing is saved; what was typed stays."""
        for line in ("iban dob", "iban,dob", "iban;dob", "iban\tdob", '"iban", "dob"', '"iban', 'iban"', "iban,"):
            response = self.post("/settings/masks", {"names": f"phone\n{line}", "etag": "g0"}, **self.mine)
            self.assertEqual(422, response.status, line)
            self.assertIn("It has a space, comma, semicolon or quote. Write one name a line", self.shown(response))
            field = Fields(response).found["names"]
            self.assertEqual(("true", "names-about"), (field["aria-invalid"], field["aria-describedby"]))
            self.assertIn(f">phone\n{escape(line)}</textarea>", response.body.decode())
        self.assertEqual((), self.console.live.masks.names)

    def test_quoted_names(self) -> None:
        """A name with a space, comma or quote in it is typed and shown in quotes, so that it is seen to be one."""
        typed = '"full name"\n"a, b"\n"say ""x"""\niban'
        response = self.post("/settings/masks", {"names": f'{typed}\n"IBAN"', "etag": "g0"}, **self.mine)
        self.assertEqual(303, response.status)
        self.assertEqual(("full name", "a, b", 'say "x"', "iban"), self.console.live.masks.names)
        page = self.get("/settings/masks", **self.mine)
        self.assertIn(f">{escape(typed)}</textarea>", page.body.decode())
        vera = self.get("/settings/masks", **self.sign_in("vera", "viewer", False))
        self.assertIn('"full name" "a, b" "say ""x""" iban', self.shown(vera))
        response = self.post("/settings/masks", {"names": '"  "', "etag": "g1"}, **self.mine)
        self.assertEqual(422, response.status)
        self.assertIn("Name 1 is empty", self.shown(response))

    def test_conflict(self) -> None:
        """Of two who save, the second sees what the first has saved, and may save over it."""
        self.post("/settings/masks", {"names": "theirs", "etag": "g0"}, **self.mine)
        response = self.post("/settings/masks", {"names": "mine", "etag": "g0"}, **self.mine)
        self.assertEqual(412, response.status)
        self.assertIn("Somebody else has saved meanwhile: theirs .", self.shown(response))
        self.assertIn(">mine</textarea>", response.body.decode())
        etag = Fields(response).found["etag"]["value"]
        self.assertEqual(303, self.post("/settings/masks", {"names": "mine", "etag": etag}, **self.mine).status)
        self.assertEqual(("mine",), self.console.live.masks.names)

    def test_retention(self) -> None:
        """Retention is typed in hours and days, and what is out of bounds is said at its field."""
        page = self.get("/settings/retention", **self.mine)
        values = {name: each.get("value") for name, each in Fields(page).found.items()}
        names = ("1m", "10m", "1h", "1d", "audit", "etag")
        self.assertEqual(["6", "3", "30", "730", "100000", "g0"], [values[name] for name in names])
        form = {"1m": "2", "10m": "3", "1h": "30", "1d": "365", "audit": "50000", "etag": "g0"}
        response = self.post("/settings/retention", form, **self.mine)
        self.assertEqual((303, "/settings/retention?said=retention-saved"), self.place(response))
        expected = RetentionSetting(7200, 3 * 86_400, 30 * 86_400, 365 * 86_400, 50_000)
        self.assertEqual(expected, self.console.live.retention)
        response = self.post("/settings/retention", {**form, "1m": "99", "etag": "g1"}, **self.mine)
        self.assertEqual(422, response.status)
        fields = Fields(response).found
        self.assertEqual(("99", "true"), (fields["1m"]["value"], fields["1m"]["aria-invalid"]))
        self.assertNotIn("aria-invalid", fields["10m"])
        self.assertEqual(400, self.post("/settings/retention", {**form, "1m": "x", "etag": "g1"}, **self.mine).status)
        self.assertEqual(412, self.post("/settings/retention", form, **self.mine).status)
        vera = self.get("/settings/retention", **self.sign_in("vera", "viewer", False))
        self.assertIn("Counts by the minute 2 h", self.shown(vera))
        self.assertNotIn("Save retention", self.shown(vera))


class SignOnTabTests(SignOnCase):
    """Single sign-on."""

    only = True

    def test_shown(self) -> None:
        """Admins see how it is set up, and, a moment later, whether the provider answers; never the secret."""
        admin = {"cookie": self.session_of(self.enter(groups=["ops"]))}
        response = self.get("/settings/single-sign-on", **admin)
        text = self.shown(response)
        for each in (
            "https://id.example/realm",
            "https://console.example/sign-in/oidc/callback",
            "groups ops admin yes",
        ):
            self.assertIn(each, text)
        self.assertNotIn(SECRET, response.body.decode())
        self.assertIn('hx-get="/settings/single-sign-on/provider"', response.body.decode())
        part = self.get("/settings/single-sign-on/provider", hx_request="true", **admin)
        self.assertIn("https://id.example/token", self.shown(part))
        self.assertNotIn(b"<html", part.body)
        self.issuer.down = True
        self.clock.advance(3601)
        self.clock.advance(86_400 - 3600)
        admin = {"cookie": self.session_of_down()}
        whole = self.get("/settings/single-sign-on/provider", **admin)
        self.assertIn("can't be used", self.shown(whole))
        self.assertIn("<h1>The provider now</h1>", whole.body.decode())

    def session_of_down(self) -> str:
        """Sign in by a password that was set on the machine, as the provider is away."""
        self.add("root", "admin", True)
        self.store.writer.write(lambda tx: accounts.break_glass(tx, "root"))
        return self.session("root")["cookie"]

    def test_people(self) -> None:
        """People of single sign-on have no password to change, and nobody is added with one."""
        cookie = self.session_of(self.enter(groups=["ops"]))
        admin = {"cookie": cookie}
        account = self.shown(self.get("/settings/account", **admin))
        self.assertIn("You sign in by single sign-on, and have no password here.", account)
        page = self.shown(self.get("/settings/people", **admin))
        self.assertIn("mara (you) admin yes single sign-on enabled", page)
        self.assertIn("sign in by single sign-on alone", page)
        person = self.shown(self.get("/settings/people/mara", **admin))
        self.assertIn("The provider of single sign-on decides on role and tap", person)
        self.assertNotIn("Set a new password", person)

    def test_disable(self) -> None:
        """An admin disables a person of single sign-on without a word on their role."""
        self.session_of(self.enter(groups=["all"]))
        root = {"cookie": self.session_of_down()}
        csrf = json.loads(self.ask("GET", "/session", **root).body)["csrf"]
        response = self.post("/settings/people/mara", {}, **root, x_csrf_token=csrf)
        self.assertEqual(303, response.status, self.shown(response))
        self.assertFalse(next(each for each in self.store.reader.read(people) if each.name == "mara").enabled)


class NoSignOnTests(SettingsCase):
    """A console without single sign-on."""

    def test_how(self) -> None:
        """The page says how to set it up, with the redirect URI."""
        text = self.shown(self.get("/settings/single-sign-on", **self.mine))
        self.assertIn("https://console.example/sign-in/oidc/callback", text)
        self.assertIn("--oidc-issuer", text)
