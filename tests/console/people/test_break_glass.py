"""
Tests for L{webhookrx.console.people.break_glass}, by the command that uses it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from typing import Any

from tests.console.direct_store import DirectStore
from tests.console.people.test_people import PASSWORD, PeopleCase
from webhookrx.commands.main import main
from webhookrx.console.people import break_glass
from webhookrx.console.people.accounts import PersonView, add_person, is_let_in
from webhookrx.console.store import database
from webhookrx.console.store.history import Author, read_history


class BreakGlassTests(PeopleCase):
    """The command console, and the console beside it."""

    def setUp(self) -> None:
        """Have a console whose store other programs open, too."""
        super().setUp()
        self.secret_file = self.write("password", f"{PASSWORD}\n".encode())

    def make_store(self) -> Any:
        """Return a store on a file that C{console init} has made."""
        self.path = os.path.join(os.path.abspath(self.mktemp()), "console.sqlite")
        self.patch(break_glass, "StoreWriter", lambda path: database.StoreWriter(path, self.clock.seconds))
        self.first = self.command("init", "--url", "https://console.example/")
        store = DirectStore(self.path, self.clock.seconds)
        self.addCleanup(store.close)
        return store

    def write(self, name: str, content: bytes) -> str:
        """Write a file that nobody else reads."""
        path = os.path.join(os.path.dirname(self.path), name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
        return path

    def command(self, *words: str, status: int = 0) -> str:
        """Return all that a command prints."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            self.assertEqual(status, main(["console", *words, "--db", self.path]), out.getvalue())
        return out.getvalue()

    def user(self, *words: str, status: int = 0) -> str:
        """Return what C{console user} prints."""
        return self.command("user", *words, status=status)

    def sign_up(self, text: str) -> int:
        """Make the first admin by a link that was printed."""
        (secret,) = re.findall(r"https://console\.example/first-admin#([\w-]{43})\n", text)
        body = {"secret": secret, "name": "mara", "password": PASSWORD}
        return self.ask("POST", "/first-admin", body).status

    def test_init(self) -> None:
        """The link that init prints makes the first admin once; a newer link makes it void."""
        self.assertIn("There is nobody yet: --first-admin", self.user())
        newer = self.user("--first-admin", "--url", "https://console.example")
        self.assertIn("once and within an hour: https://console.example/first-admin#", newer)
        self.assertEqual([403, 204, 403], [self.sign_up(self.first), self.sign_up(newer), self.sign_up(newer)])
        self.assertEqual(201, self.log_in().status)
        self.assertIn("people already", self.user("--first-admin", status=1))

    def test_in(self) -> None:
        """An admin is made beside a console that runs, whose store has a real hash and names the command."""
        self.assertEqual("Added mara.\n", self.user("mara", "--create", "--role", "admin", "--tap",
                                                     "--password-file", self.secret_file))  # fmt: skip
        (entry,) = self.store.reader.read(read_history)
        self.assertEqual(("root", "command", "create"), (entry.by, entry.via, entry.operation))
        (stored,) = self.store.reader.read(lambda db: db.execute("SELECT password FROM person").fetchone())
        self.assertEqual(f"hash:{PASSWORD}", stored)
        now = self.clock.seconds()
        self.assertTrue(self.store.reader.read(lambda db: is_let_in(db, "mara", now)))
        self.assertEqual(201, self.log_in().status)
        self.assertEqual("  mara  admin  tap\n", self.user())
        theo = PersonView("theo", "viewer", False, True, True)
        self.store.writer.write(lambda tx: add_person(tx, Author("theo", "oidc"), theo, None, "https://id.example#1"))
        self.assertIn("single sign-on", self.user())
        said = self.user("theo", "--password-file", self.secret_file, status=1)
        self.assertIn("The provider of single sign-on decides", said)
        self.assertIn("taken", self.user("mara", "--create", "--password-file", self.secret_file, status=1))

    def test_change(self) -> None:
        """A change ends sessions, a new password tokens, too, and who is disabled is not let in."""
        self.add("anna", "admin")
        self.add("mara", "editor")
        mine = self.session()
        made = json.loads(self.ask("POST", "/tokens", {"name": "t"}, **mine).body)
        bearer = {"authorization": f"Bearer {made['secret']}"}
        self.user("mara", "--role", "viewer", "--tap")
        self.assertEqual(401, self.ask("GET", "/session", **mine).status)
        self.assertEqual(200, self.ask("GET", "/session", **bearer).status)
        other = self.write("other", b"another pass phrase")
        self.user("mara", "--password-file", other, "--keep-tokens")
        self.assertEqual(200, self.ask("GET", "/session", **bearer).status)
        self.user("mara", "--password-file", other)
        self.assertEqual(401, self.ask("GET", "/session", **bearer).status)
        self.user("mara", "--disable")
        self.assertEqual(401, self.log_in(password="another pass phrase").status)
        self.user("mara", "--enable")
        self.assertEqual(201, self.log_in(password="another pass phrase").status)

    def test_refused(self) -> None:
        """What can't be done says why and changes nothing, without a password in it."""
        self.add("anna", "admin")
        short = self.write("short", b"tiny-secret")
        for words, text in (
            (("anna", "--disable"), "No admin would be left"),
            (("anna", "--role", "viewer"), "No admin would be left"),
            (("theo", "--tap"), "no such person"),
            (("theo", "--create"), "--password-file"),
            (("Theo!", "--create", "--password-file", self.secret_file), "A name has"),
            (("anna", "--password-file", short), "12 to 256"),
            (("anna", "--password-file", short + "x"), "short"),
        ):
            said = self.user(*words, status=1)
            self.assertIn(text, said)
            self.assertNotIn("tiny-secret", said)
        self.assertEqual("  anna  admin\n", "\n".join(map(str.rstrip, self.user().splitlines())) + "\n")

    def test_arguments(self) -> None:
        """Arguments that don't go together are refused before anything is opened."""
        for words in (
            ("anna",),
            ("--tap",),
            ("anna", "--first-admin"),
            ("anna", "--tap", "--keep-tokens"),
            ("anna", "--enable", "--disable"),
            ("anna", "--role", "root"),
        ):
            with contextlib.redirect_stderr(io.StringIO()):
                left = self.assertRaises(SystemExit, main, ["console", "user", "--db", "/nowhere", *words])
            self.assertEqual(2, left.code)

    def test_nowhere(self) -> None:
        """Where there is no console, none is made."""
        self.path = os.path.join(os.path.dirname(self.path), "none.sqlite")
        for words in ((), ("--first-admin",), ("anna", "--tap")):
            self.assertIn("console init", self.user(*words, status=1))
        self.assertFalse(os.path.exists(self.path))
