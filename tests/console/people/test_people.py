"""
Tests for L{webhookrx.console.people}, by the routes of people behind our own channel.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any
from unittest.mock import patch

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.console.api.test_dispatch import request
from tests.console.direct_store import DirectStore
from tests.http.wire import Response, Wire
from webhookrx.console.api.callers import Callers
from webhookrx.console.api.dispatch import CONSOLE_LIMITS, ApiResource
from webhookrx.console.api.table import RouteTable
from webhookrx.console.console import Console, ConsoleSettings
from webhookrx.console.people import accounts, passwords
from webhookrx.console.people.accounts import PersonView, offer_first_admin
from webhookrx.console.people.passwords import hash_password, verify_password
from webhookrx.console.routes import CONSOLE_ROUTES
from webhookrx.console.store.history import Author
from webhookrx.operations.admin_resource import NoMessages

ORIGIN = "https://console.example"
PASSWORD = "correct horse battery"


class PeopleCase(SynchronousTestCase):
    """A console with its people."""

    def setUp(self) -> None:
        """Make the console; passwords are hashed at once, and cheaply."""
        self.clock = Clock()
        self.clock.advance(1_800_000_000)
        self.hashed: list[str] = []
        self.patch(passwords, "deferToThreadPool", self.at_once)
        self.patch(passwords, "hash_password", lambda password: f"hash:{password}")
        self.patch(passwords, "verify_password", self.verify)
        self.store = self.make_store()
        self.console = Console(ConsoleSettings("", ORIGIN), self.store, self.clock, self.clock.seconds)
        root = ApiResource(
            RouteTable(CONSOLE_ROUTES),
            Callers(self.console.people, self.clock.seconds),
            self.console,
            ORIGIN,
            self.clock,
        )
        self.wire = Wire(root=root, limits=CONSOLE_LIMITS, consumer=NoMessages())

    def make_store(self) -> Any:
        """Return a store of which time is the clock's."""
        directory = self.mktemp()
        os.mkdir(directory)
        store = DirectStore(os.path.abspath(os.path.join(directory, "console.sqlite")), self.clock.seconds)
        self.addCleanup(store.close)
        return store

    def at_once(self, reactor: Any, pool: Any, work: Any, *arguments: str) -> Any:
        """Do it now."""
        return succeed(work(*arguments))

    def verify(self, stored: str, password: str) -> tuple[bool, bool]:
        """Compare."""
        self.hashed.append(stored)
        return stored == f"hash:{password}", False

    def add(self, name: str, role: Any = "viewer", tap: bool = False) -> None:
        """Add a person."""
        person = PersonView(name, role, tap, True)
        self.successResultOf(
            _deferred(
                self.store.write(lambda tx: accounts.add_person(tx, Author("x", "command"), person, f"hash:{PASSWORD}"))
            )
        )

    def ask(self, method: str, path: str, body: Any = None, peer: str = "192.0.2.7", **headers: str) -> Response:
        """Return the answer to a call."""
        data = None if body is None else json.dumps(body).encode()
        return self.wire.ask(request(method, path, data, **headers), secure=True, peer=peer)

    def log_in(self, name: str = "mara", password: str = PASSWORD, **more: str) -> Response:
        """Log in."""
        return self.ask("POST", "/session", {"name": name, "password": password}, **more)

    def session(self, name: str = "mara") -> dict[str, str]:
        """Log in, and return what the pages of the session send."""
        response = self.log_in(name)
        self.assertEqual(201, response.status, response.body)
        (cookie,) = re.findall(r"^__Host-wrx=([\w-]{43});", response.headers["set-cookie"])
        return {
            "cookie": f"__Host-wrx={cookie}", "origin": ORIGIN, "x_csrf_token": json.loads(response.body)["csrf"]
        }  # fmt: skip


def _deferred(awaitable: Any) -> Any:
    async def wait() -> Any:
        return await awaitable

    return Deferred.fromCoroutine(wait())


class SessionTests(PeopleCase):
    """Sessions."""

    def test_log_in(self) -> None:
        """A session is a cookie that only our own pages over TLS send, and none that a script reads."""
        self.add("mara", "editor", True)
        response = self.log_in()
        self.assertTrue(response.headers["set-cookie"].endswith("; Path=/; Secure; HttpOnly; SameSite=Lax"))
        session = self.session()
        me = json.loads(self.ask("GET", "/session", **session).body)
        self.assertEqual(("mara", "editor", True, session["x_csrf_token"], False), tuple(me.values()))

    def test_fixation(self) -> None:
        """A log-in makes a new secret whatever cookie came, and the session that came ends."""
        self.add("mara")
        planted = {"cookie": "__Host-wrx=" + "p" * 43, "origin": ORIGIN}
        self.assertEqual(201, self.log_in(**planted).status)
        self.assertEqual(401, self.ask("GET", "/session", **planted).status)
        first = self.session()
        self.assertEqual(201, self.log_in(cookie=first["cookie"], origin=ORIGIN).status)
        self.assertEqual(401, self.ask("GET", "/session", **first).status)

    def test_end(self) -> None:
        """It ends by log-out, after 8 hours without a call, after 24 in all, and when the clock is set far back."""
        self.add("mara")
        session = self.session()
        self.assertEqual(204, self.ask("DELETE", "/session", **session).status)
        self.assertEqual(401, self.ask("GET", "/session", **session).status)
        session = self.session()
        self.clock.advance(8 * 3600)
        self.assertEqual(401, self.ask("GET", "/session", **session).status)
        session = self.session()
        for _ in range(5):
            self.clock.advance(4.7 * 3600)
            self.assertEqual(200, self.ask("GET", "/session", **session).status)
        self.clock.advance(3600)
        self.assertEqual(401, self.ask("GET", "/session", **session).status)
        session = self.session()
        self.clock.rightNow -= 10_000
        self.assertEqual(401, self.ask("GET", "/session", **session).status)

    def test_others(self) -> None:
        """One sees and ends one's own sessions, and nobody else's."""
        self.add("mara")
        self.add("theo")
        mine = self.session()
        self.clock.advance(1)
        other, theirs = self.session(), self.session("theo")
        listed = json.loads(self.ask("GET", "/sessions", **mine).body)
        self.assertEqual(2, len(listed))
        (foreign,) = json.loads(self.ask("GET", "/sessions", **theirs).body)
        self.assertEqual(404, self.ask("DELETE", f"/sessions/{foreign['id']}", **mine).status)
        self.assertEqual(204, self.ask("DELETE", f"/sessions/{listed[1]['id']}", **mine).status)
        self.assertEqual(401, self.ask("GET", "/session", **other).status)

    def test_rights(self) -> None:
        """A change of rights ends the sessions of a person, and takes the same from the person's tokens."""
        self.add("mara", "admin")
        self.add("theo", "editor", True)
        theirs, mine = self.session("theo"), self.session()
        made = json.loads(self.ask("POST", "/tokens", {"name": "t", "role": "editor", "tap": True}, **theirs).body)
        bearer = {"authorization": f"Bearer {made['secret']}"}
        self.assertEqual(204, self.ask("PATCH", "/people/theo", {"role": "viewer", "tap": False}, **mine).status)
        self.assertEqual(401, self.ask("GET", "/session", **theirs).status)
        me = json.loads(self.ask("GET", "/session", **bearer).body)
        self.assertEqual(("viewer", False), (me["role"], me["tap"]))
        self.assertEqual(204, self.ask("PATCH", "/people/theo", {"enabled": False}, **mine).status)
        self.assertEqual(401, self.ask("GET", "/session", **bearer).status)
        self.assertEqual(401, self.log_in("theo").status)


class LoginLimitTests(PeopleCase):
    """Guessing."""

    def test_unknown(self) -> None:
        """An unknown name and a wrong password are answered alike, after the same work."""
        self.add("mara")
        wrong, unknown = self.log_in(password="wrong"), self.log_in("nobody", "wrong")
        self.assertEqual((401, wrong.status, wrong.body), (unknown.status, 401, unknown.body))
        self.assertEqual([f"hash:{PASSWORD}", passwords.NOBODY], self.hashed)

    def test_name_and_address(self) -> None:
        """After five failures of a name from an address nothing is tried for a while; elsewhere the name is free."""
        self.add("mara")
        for _ in range(5):
            self.assertEqual(401, self.log_in(password="wrong").status)
        refused = self.log_in()
        self.assertEqual((429, 5), (refused.status, len(self.hashed)))
        self.assertIn(int(refused.headers["retry-after"]), range(1, 902))
        self.assertEqual(201, self.log_in(peer="198.51.100.1").status)
        self.clock.advance(901)
        self.assertEqual(201, self.log_in().status)

    def test_address(self) -> None:
        """After twenty failures of an address no name is tried from it."""
        for number in range(20):
            self.assertEqual(401, self.log_in(f"n{number}").status)
        self.assertEqual(429, self.log_in("n20").status)

    def test_flood(self) -> None:
        """Who goes on after twenty failures is refused before the store is asked, and takes nobody's place."""
        self.add("mara")
        for number in range(21):
            self.log_in(f"n{number}")
        asked = self.hashed.copy()
        with patch.object(self.store, "write", side_effect=AssertionError("asked")):
            refused = self.log_in("n21")
        self.assertEqual((429, asked), (refused.status, self.hashed))
        self.assertIn(int(refused.headers["retry-after"]), range(1, 903))
        self.assertEqual(201, self.log_in(peer="198.51.100.1").status)
        self.clock.advance(902)
        self.assertEqual(201, self.log_in().status)

    def test_mapped(self) -> None:
        """IPv4 addresses that come by an IPv6 socket are not one network."""
        for number in range(21):
            self.log_in(f"n{number}", peer="::ffff:192.0.2.9")
        self.add("mara")
        self.assertEqual(201, self.log_in(peer="::ffff:192.0.2.10").status)

    def test_name(self) -> None:
        """A name that fails from many addresses gets slower, and its owner still gets in."""
        self.add("mara")
        for number in range(8):
            sender = self.wire.connect(f"198.51.100.{number}", secure=True)
            sender.send(request("POST", "/session", b'{"name":"mara","password":"wrong"}'))
            self.clock.advance(2)
            self.assertEqual([401], sender.statuses())
        sender = self.wire.connect(secure=True)
        sender.send(request("POST", "/session", json.dumps({"name": "mara", "password": PASSWORD}).encode()))
        self.assertEqual([], sender.statuses())
        self.clock.advance(2)
        self.assertEqual([201], sender.statuses())


class TokenTests(PeopleCase):
    """API tokens."""

    def test_rights(self) -> None:
        """A token has no more rights than its maker, expires, is listed without its secret, and can be removed."""
        self.add("mara", "editor")
        session = self.session()
        for body in ({"name": "a", "role": "admin"}, {"name": "a", "tap": True}):
            self.assertEqual(403, self.ask("POST", "/tokens", body, **session).status)
        for body in ({"name": "A"}, {"name": "a", "days": 0}, {"name": "a", "days": 367}, {"name": "a", "x": 1}):
            self.assertEqual(422, self.ask("POST", "/tokens", body, **session).status)
        made = json.loads(self.ask("POST", "/tokens", {"name": "a", "days": 1}, **session).body)
        bearer = {"authorization": f"Bearer {made['secret']}"}
        self.assertEqual(200, self.ask("GET", "/session", **bearer).status)
        self.assertNotIn(made["secret"].encode(), self.ask("GET", "/tokens", **session).body)
        self.assertEqual(409, self.ask("POST", "/tokens", {"name": "a"}, **session).status)
        self.assertEqual(403, self.ask("POST", "/tokens", {"name": "b"}, **bearer).status)
        self.clock.advance(86_400)
        self.assertEqual(401, self.ask("GET", "/session", **bearer).status)
        session = self.session()
        self.assertEqual(204, self.ask("DELETE", f"/tokens/{made['token']['id']}", **session).status)
        self.assertEqual(b"[]", self.ask("GET", "/tokens", **session).body)

    def test_no_way_up(self) -> None:
        """An admin's token without C{tap} makes nobody who could get it."""
        self.add("mara", "admin", True)
        self.add("theo")
        secret = json.loads(self.ask("POST", "/tokens", {"name": "a", "role": "admin"}, **self.session()).body)[
            "secret"
        ]
        bearer = {"authorization": f"Bearer {secret}"}
        for method, path, body in (
            ("POST", "/people", {"name": "new", "password": PASSWORD}),
            ("PATCH", "/people/theo", {"tap": True}),
            ("PATCH", "/people/theo", {"role": "admin"}),
            ("PATCH", "/people/mara", {"password": PASSWORD}),
        ):
            self.assertEqual(403, self.ask(method, path, body, **bearer).status)
        self.assertEqual(204, self.ask("PATCH", "/people/theo", {"role": "editor"}, **bearer).status)


class FirstAdminTests(PeopleCase):
    """The one-time URL."""

    def test_once(self) -> None:
        """It makes one admin, once, within its time, and only while there is nobody."""
        body = {"name": "mara", "password": PASSWORD}
        self.assertEqual(403, self.ask("POST", "/first-admin", {**body, "secret": "x"}).status)
        secret = self.successResultOf(_deferred(self.store.write(offer_first_admin)))
        self.assertEqual(422, self.ask("POST", "/first-admin", {**body, "password": "short", "secret": secret}).status)
        self.assertEqual(403, self.ask("POST", "/first-admin", {**body, "secret": secret + "x"}).status)
        self.assertEqual(204, self.ask("POST", "/first-admin", {**body, "secret": secret}).status)
        self.assertEqual(403, self.ask("POST", "/first-admin", {**body, "name": "theo", "secret": secret}).status)
        people = json.loads(self.ask("GET", "/people", **self.session()).body)
        mara = {"name": "mara", "role": "admin", "tap": True, "enabled": True, "single_sign_on": False}
        self.assertEqual([mara], people)

    def test_late(self) -> None:
        """After an hour it is void."""
        secret = self.successResultOf(_deferred(self.store.write(offer_first_admin)))
        self.clock.advance(3600)
        body = {"name": "mara", "password": PASSWORD, "secret": secret}
        self.assertEqual(403, self.ask("POST", "/first-admin", body).status)

    def test_last(self) -> None:
        """The last admin can't be removed, disabled, or made less."""
        self.add("mara", "admin")
        session = self.session()
        for body in ({"role": "editor"}, {"enabled": False}):
            self.assertEqual(409, self.ask("PATCH", "/people/mara", body, **session).status)
        self.assertEqual(409, self.ask("DELETE", "/people/mara", **session).status)
        self.assertEqual(200, self.ask("GET", "/session", **session).status)


class HashTests(SynchronousTestCase):
    """The real hashes."""

    def test_hash(self) -> None:
        """A password is right for its own hash alone, and that of nobody is a hash of the same cost."""
        stored = hash_password(PASSWORD)
        self.assertEqual((True, False), verify_password(stored, PASSWORD))
        self.assertEqual((False, False), verify_password(stored, "another"))
        self.assertEqual((False, False), verify_password("no hash", PASSWORD))
        cost = stored.rpartition("$")[0].rpartition("$")[0]
        self.assertTrue(passwords.NOBODY.startswith(cost))
        with patch.object(passwords, "_HASHER") as hasher:
            verify_password(passwords.NOBODY, "x")
            hasher.verify.assert_called_once()
