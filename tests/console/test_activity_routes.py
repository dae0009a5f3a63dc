"""
Tests for L{webhookrx.console.activity_routes}.
"""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred

from tests.console.api.test_dispatch import request
from tests.console.people.test_people import PeopleCase
from webhookrx.console.store import audit, history
from webhookrx.console.store.audit import note
from webhookrx.console.store.history import Author, Change


def whole(body: bytes) -> bytes:
    """Return a chunked body (RFC 9112 section 7.1), of which the last chunk is taken off already."""
    found = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        found.append(rest[:length])
        body = rest[length + 2 :]
    return b"".join(found)


class RecordCase(PeopleCase):
    """A console with some history."""

    def setUp(self) -> None:
        """Have an admin and a viewer, both in."""
        super().setUp()
        self.add("anna", "admin")
        self.add("theo")
        self.anna, self.theo = self.session("anna"), self.session("theo")

    def revise(self, *changes: Change, by: str = "mara", note: str = "") -> None:
        """Append a revision."""
        self.store.writer.write(lambda tx: tx.revise(Author(by, "api"), changes, note))

    def page(self, path: str, caller: Any = None) -> Any:
        """Return what a call gives."""
        response = self.ask("GET", path, **(caller or self.anna))
        self.assertEqual(200, response.status, response.body)
        return json.loads(response.body)

    def names(self, query: str, **more: int) -> list[str]:
        """Return the names of all changes that match, however many pages there are."""
        found: list[str] = []
        before = ""
        for _ in range(100):
            pages = "".join(f"&{key}={value}" for key, value in more.items())
            page = self.page(f"/activity?query={query.replace(' ', '%20')}{pages}{before}")
            found += [each["name"] for each in page["entries"]]
            if page["next_before"] is None:
                return found
            before = f"&before={page['next_before']}"
        raise AssertionError("it has no end")


class ActivityTests(RecordCase):
    """C{GET /activity}."""

    def test_query(self) -> None:
        """A query picks changes by who, what and how."""
        self.revise(Change("rule", "hooks", "create"), Change("rule", "mail", "create"), note="first ones")
        self.revise(Change("rule", "hooks", "delete"), by="otto")
        self.assertEqual(["hooks", "mail", "hooks"], self.names("kind = rule"))
        self.assertEqual(["hooks"], self.names("kind = rule AND by = otto"))
        self.assertEqual(["hooks"], self.names("operation = delete"))
        self.assertEqual(["mail", "hooks"], self.names("note = 'first ones'".replace("'", "%22")))
        self.assertEqual(["theo", "anna"], self.names("via = command"))
        self.assertEqual([], self.names("by = nobody"))

    def test_bad_query(self) -> None:
        """What is no query is said to be none, with its column."""
        response = self.ask("GET", "/activity?query=kind%20=%20(", **self.anna)
        self.assertEqual(422, response.status)
        self.assertIn("Column", json.loads(response.body)["detail"])

    def test_costly_query(self) -> None:
        """The entries of one call share the work that a query may take; who asks for more is told so."""
        for number in range(400):
            self.revise(Change("rule", f"r{number}", "create"), note="n" * 300)
        costly = "%20OR%20".join(f"@ANY%20=~%20%22(n|nn)%2By{number}%22" for number in range(99))
        response = self.ask("GET", f"/activity?query={costly}", **self.anna)
        self.assertEqual(422, response.status, response.body)
        self.assertEqual("The query takes too much work.", json.loads(response.body)["detail"])
        self.assertEqual(400, len(self.names("kind = rule AND note =* n AND NOT by = otto AND operation = create")))

    def test_pages(self) -> None:
        """Pages have every match once, by number, by work and by size."""
        for number in range(30):
            self.revise(Change("rule", f"r{number}", "create", None, "x" * 1000), by="otto" if number % 3 else "mara")
        wanted = [f"r{number}" for number in range(29, -1, -1) if number % 3 == 0]
        self.assertEqual(wanted, self.names("by = mara", count=4))
        self.patch(history, "MOST_SCANNED", 7)
        self.assertEqual(wanted, self.names("by = mara", count=4))
        self.patch(history.find_changes, "__kwdefaults__", {"most_bytes": 2500})
        page = self.page("/activity")
        self.assertEqual(2, len(page["entries"]))
        self.assertEqual(wanted, self.names("by = mara"))

    def test_large(self) -> None:
        """An entry that alone is larger than a page is a page."""
        self.patch(history.find_changes, "__kwdefaults__", {"most_bytes": 10})
        self.revise(Change("rule", "a", "create", None, "x" * 1000))
        self.revise(Change("rule", "b", "create", None, "x" * 1000))
        self.assertEqual(["b", "a"], self.names("kind = rule"))


class AuditRouteTests(RecordCase):
    """C{GET /audit}."""

    def test_entries(self) -> None:
        """Admins see it in pages, others don't."""
        self.store.writer.write(lambda tx: note(tx, "otto", "api", "192.0.2.9", "tap", "t1", {"seconds": 60}))
        newest, *rest = self.page("/audit")["entries"]
        self.assertEqual(("otto", "tap", {"seconds": 60}), (newest["by"], newest["event"], newest["details"]))
        older = self.page(f"/audit?before={newest['id']}&count=1")["entries"]
        self.assertEqual(rest[:1], older)
        self.assertEqual(403, self.ask("GET", "/audit", **self.theo).status)

    def test_query(self) -> None:
        """A query picks entries, in pages that have each once, by number and by work."""
        self.patch(audit, "MOST_SCANNED", 7)
        self.store.writer.write(
            lambda tx: [note(tx, "otto" if n % 3 else "mara", "api", "192.0.2.9", "tap", f"t{n}") for n in range(30)]
        )
        found: list[str] = []
        before: int | None = (1 << 53) - 1
        while before is not None:
            page = self.page(f"/audit?query=by%20=%20mara%20AND%20event%20=%20tap&count=4&before={before}")
            self.assertLessEqual(len(page["entries"]), 4)
            found += [each["name"] for each in page["entries"]]
            before = page["next_before"]
        self.assertEqual([f"t{n}" for n in range(29, -1, -1) if n % 3 == 0], found)
        self.assertEqual(422, self.ask("GET", "/audit?query=by%20=%20(", **self.anna).status)


class ExportTests(RecordCase):
    """The whole of each as lines."""

    def lines(self, path: str, caller: Any = None) -> list[Any]:
        """Return the lines."""
        response = self.ask("GET", path, **(caller or self.anna))
        self.assertEqual((200, "application/x-ndjson"), (response.status, response.headers["content-type"]))
        self.assertEqual("no-store", response.headers["cache-control"])
        return [json.loads(line) for line in whole(response.body).splitlines()]

    def test_all(self) -> None:
        """Each change and each entry is a line, the newest first, over as many pieces as it takes."""
        self.store.writer.write(
            lambda tx: tx.revise(
                Author("mara", "api"), [Change("rule", f"r{n}", "create", None, "x" * 900) for n in range(1200)]
            )
        )
        lines = self.lines("/activity.ndjson", self.theo)
        self.assertEqual([f"r{n}" for n in range(1199, -1, -1)], [each["name"] for each in lines[:1200]])
        self.assertEqual(["theo", "anna"], [each["name"] for each in lines[1200:]])
        self.store.writer.write(lambda tx: [note(tx, "otto", "api", "", "tap", f"t{n}") for n in range(500)])
        entries = self.lines("/audit.ndjson")
        self.assertEqual([f"t{n}" for n in range(499, -1, -1)], [each["name"] for each in entries[:500]])
        self.assertEqual(403, self.ask("GET", "/audit.ndjson", **self.theo).status)

    def grow(self) -> None:
        """Have a history of some megabytes."""
        for _ in range(40):
            self.revise(Change("rule", "r", "update", None, "x" * 100_000))

    def open(self) -> Any:
        """Begin to read all, with a caller that takes nothing yet."""
        sender = self.wire.connect(secure=True)
        sender.transport.stop_taking()
        sender.send(request("GET", "/activity.ndjson", None, **self.theo))
        return sender

    def test_slow(self) -> None:
        """A caller that takes nothing has one piece made for it."""
        self.grow()
        sender = self.open()
        self.assertLess(len(sender.transport.written), 1_000_000)

    def test_rights(self) -> None:
        """It is cut off, not ended, once the caller may read no more."""
        self.grow()
        sender = self.open()
        self.ask("DELETE", "/people/theo", **self.anna)
        sender.transport.take()
        self.assertTrue(sender.transport.written.startswith(b"HTTP/1.1 200"))
        self.assertFalse(sender.transport.written.endswith(b"0\r\n\r\n"))
        self.assertEqual("aborted", sender.transport.end)

    def test_failed(self) -> None:
        """It is cut off when the store can't be read any more, and the log has no text of the store."""
        self.grow()
        reads = self.store.read

        async def fail_later(work: Any) -> Any:
            self.reads += 1
            if self.reads > 4:
                raise RuntimeError("a secret")
            return await reads(work)

        self.reads = 0
        self.patch(self.store, "read", fail_later)
        sender = self.wire.connect(secure=True)
        sender.send(request("GET", "/activity.ndjson", None, **self.anna))
        self.assertTrue(sender.transport.written.startswith(b"HTTP/1.1 200"))
        self.assertFalse(sender.transport.written.endswith(b"0\r\n\r\n"))

    def test_gone(self) -> None:
        """A caller that goes ends it, also in the middle of a read."""
        self.grow()
        waits: list[Deferred[None]] = []
        reads = self.store.read

        async def wait(work: Any) -> Any:
            result = await reads(work)
            if self.waiting:
                waits.append(Deferred())
                await waits[-1]
            return result

        self.waiting = False
        self.patch(self.store, "read", wait)
        sender = self.wire.connect(secure=True)
        self.waiting = True
        sender.send(request("GET", "/activity.ndjson", None, **self.theo))
        waits.pop().callback(None)  # who it is
        sender.transport.abortConnection()
        waits.pop().callback(None)
        self.assertEqual([], waits)
