"""
Tests for what people do with their own accounts: passwords and sessions, and what the audit keeps of it.
"""

from __future__ import annotations

import json

from tests.console.people.test_people import PASSWORD, PeopleCase
from webhookrx.console.store import audit
from webhookrx.console.store.audit import read_audit

NEW = "a wholly other password"


class OwnPasswordTests(PeopleCase):
    """One's own password."""

    def setUp(self) -> None:
        """Have a person with two sessions and a token."""
        super().setUp()
        self.add("mara", "editor")
        self.mine, self.other = self.session(), self.session()
        made = json.loads(self.ask("POST", "/tokens", {"name": "t"}, **self.mine).body)
        self.bearer = {"authorization": f"Bearer {made['secret']}"}

    def change(self, **body: object) -> int:
        """Change it, and return the status."""
        fields = {"old": PASSWORD, "password": NEW, **body}
        return self.ask("PUT", "/session/password", fields, **self.mine).status

    def test_change(self) -> None:
        """The new password counts, the session goes on, and the other sessions and the tokens end."""
        self.assertEqual(204, self.change())
        self.assertEqual(200, self.ask("GET", "/session", **self.mine).status)
        for ended in (self.other, self.bearer):
            self.assertEqual(401, self.ask("GET", "/session", **ended).status)
        self.assertEqual((401, 201), (self.log_in().status, self.log_in(password=NEW).status))

    def test_keep(self) -> None:
        """Tokens that are to stay do."""
        self.assertEqual(204, self.change(keep_tokens=True))
        self.assertEqual(200, self.ask("GET", "/session", **self.bearer).status)

    def test_wrong(self) -> None:
        """A wrong old password changes nothing, and after five nothing is tried, as at a log-in."""
        for _ in range(5):
            self.assertEqual(403, self.change(old="wrong"))
        self.assertEqual(429, self.change())
        self.assertEqual(200, self.ask("GET", "/session", **self.other).status)
        self.assertEqual(422, self.change(password="short"))

    def test_token(self) -> None:
        """An API token changes no password."""
        body = {"old": PASSWORD, "password": NEW}
        self.assertEqual(403, self.ask("PUT", "/session/password", body, **self.bearer).status)

    def test_by_admin(self) -> None:
        """A password that an admin sets ends all sessions, and the tokens unless they are to stay."""
        self.add("anna", "admin")
        anna = self.session("anna")
        body = {"password": NEW, "keep_tokens": True}
        self.assertEqual(204, self.ask("PATCH", "/people/mara", body, **anna).status)
        self.assertEqual(401, self.ask("GET", "/session", **self.mine).status)
        self.assertEqual(200, self.ask("GET", "/session", **self.bearer).status)
        self.assertEqual(204, self.ask("PATCH", "/people/mara", {"password": NEW}, **anna).status)
        self.assertEqual(401, self.ask("GET", "/session", **self.bearer).status)

    def test_history(self) -> None:
        """The history has the change and the tokens that it ended, without a password or its hash."""
        self.change()
        entries = json.loads(self.ask("GET", "/activity?count=2", **self.mine).body)["entries"]
        self.assertEqual(
            [("token", "delete"), ("user", "update")], [(each["kind"], each["operation"]) for each in entries]
        )
        self.assertNotIn("hash:", json.dumps(entries))
        self.assertNotIn(NEW, json.dumps(entries))


class SessionListTests(PeopleCase):
    """The list of one's sessions."""

    def test_agent(self) -> None:
        """It says from where and by what each began, in printable characters, and leaves out what has ended."""
        self.add("mara")
        self.assertEqual(201, self.log_in(user_agent="Browser/1 é" + "x" * 500).status)
        self.clock.advance(8 * 3600)
        self.assertEqual(201, self.log_in(user_agent="Browser/1 é" + "x" * 500).status)
        mine = self.session()
        listed = json.loads(self.ask("GET", "/sessions", **mine).body)
        self.assertEqual(2, len(listed))
        agent = next(each["agent"] for each in listed if each["agent"])
        self.assertEqual((200, True), (len(agent), agent.startswith("Browser/1 ??")))
        self.assertEqual({"192.0.2.7"}, {each["address"] for each in listed})


class AuditTests(PeopleCase):
    """The audit."""

    def test_events(self) -> None:
        """It has each log-in, failed log-in, log-out and ended session, and no password."""
        self.add("mara")
        self.log_in(password="a wrong password")
        mine, other = self.session(), self.session()
        ids = [each["id"] for each in json.loads(self.ask("GET", "/sessions", **mine).body)]
        self.assertEqual(2, len(ids))
        me = json.loads(self.ask("GET", "/session", **other).body)["name"]
        self.assertEqual("mara", me)
        for session_id in ids:
            self.ask("DELETE", f"/sessions/{session_id}", **mine)
        last = self.session()
        self.assertEqual(204, self.ask("DELETE", "/session", **last).status)
        entries = self.store.reader.read(read_audit)
        events = [each.event for each in reversed(entries)]
        self.assertEqual("login_failed", events[0])
        self.assertEqual(3, events.count("login"))
        self.assertEqual("logout", events[-1])
        self.assertIn("session_ended", events)
        self.assertNotIn("a wrong password", repr(entries))

    def test_bounded(self) -> None:
        """Failed log-ins push out none of what others have done, and all of it is bounded."""
        self.patch(audit, "MOST_OF_ONE", 30)
        self.patch(audit, "MOST_AUDITED", 1000)

        def guess(tx: object) -> None:
            audit.note(tx, "mara", "ui", "192.0.2.7", "login")  # type: ignore[arg-type]
            for number in range(1500):
                audit.note(tx, "", "ui", "192.0.2.7", "login_failed", f"n{number}")  # type: ignore[arg-type]

        self.store.writer.write(guess)
        entries = self.store.reader.read(lambda db: read_audit(db, count=10_000))
        self.assertEqual("login", entries[-1].event)
        self.assertLessEqual(len(entries), 30 + 100 + 1)

        def come_and_go(tx: object) -> None:
            for _ in range(1500):
                audit.note(tx, "mara", "ui", "192.0.2.7", "login")  # type: ignore[arg-type]

        self.store.writer.write(come_and_go)
        (count,) = self.store.reader.read(lambda db: db.execute("SELECT count(*) FROM audit").fetchone())
        self.assertEqual(1000, count)
