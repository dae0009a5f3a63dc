"""
Tests for L{webhookrx.http.guarded_resource} with bodies of several events: one answer for all of them.
"""

from __future__ import annotations

import json

from tests.http.guarded_wire import GuardedWire, sender_named
from tests.http.test_guarded_resource import GuardedCase
from tests.http.wire import post
from webhookrx.errors import NotStored
from webhookrx.http.time_slices import TimeSlices

SECRETS = {"one": b"first secret"}


class BundleTests(GuardedCase):
    """Bodies with several events."""

    def test_events(self) -> None:
        """Each event is a message, all have one answer, and the body is counted once."""
        site = GuardedWire(split="/alerts/*")
        answer = site.ask(post(b'{"status":"firing","alerts":[{"a":1},{"a":2}]}', b"/in"))
        self.assertEqual((200, b'{"status":"received"}'), (answer.status, answer.body))
        self.assertEqual(
            [(1, 1, 2, '{"status":"firing"}'), (2, 2, 2, '{"status":"firing"}')],
            [
                (each["a"], *(each[f"webhook.batch.{name}"] for name in ("index", "count", "envelope")))
                for each in site.messages
            ],
        )
        ids = [str(each["RCPTID"]) for each in site.messages]
        self.assertEqual((ids[0].removesuffix("1") + "2", "-1"), (ids[1], ids[0][-2:]))
        ((source, judged, size),) = site.traffic.bundles
        self.assertEqual(("guarded", 2, 46), (source, judged.events, size))
        self.assertEqual([], site.traffic.acceptances)
        self.assertEqual(1, len(site.traffic.answers))

    def test_no_events(self) -> None:
        """A body that says that there are none is answered with 200 and leaves no message."""
        site = GuardedWire(split="/alerts/*")
        self.assertEqual(200, site.ask(post(b'{"alerts":[]}', b"/in")).status)
        self.assertEqual(([], 1), (site.messages, len(site.traffic.bundles)))

    def test_not_of_this_form(self) -> None:
        """A body without events where they should be is one message, which is counted."""
        site = GuardedWire(split="/alerts/*")
        self.assertEqual(200, site.ask(post(b'{"other":1}', b"/in")).status)
        (message,) = site.messages
        self.assertNotIn("webhook.batch.index", message)
        self.assertEqual([("guarded", ("unsplit_body",), 0)], site.traffic.acceptances)

    def test_too_many(self) -> None:
        """More events than are taken apart are a refusal, and none is a message."""
        site = GuardedWire(split="lines")
        self.assert_refused(site, site.ask(post(b"{}\n" * 10_001, b"/in")), 413, "too_many_events")

    def test_one_bad(self) -> None:
        """One event that is refused refuses all."""
        site = GuardedWire(split="lines", rules={"keep_unparsed": False})
        self.assert_refused(site, site.ask(post(b"{}\n{}\nplain\n{}", b"/in")), 400, "bad_payload")

    def test_no_room(self) -> None:
        """When there is no room for all of them, none is taken."""
        site = GuardedWire(split="lines")
        site.consumer.budget.resize(1_000_000, 10)
        site.consumer.hold()
        sender = site.connect()
        sender.send(post(b"{}\n" * 8, b"/in"))
        answer = site.ask(post(b"{}\n" * 8, b"/in"))
        self.assertEqual((503, ["no_room"]), (answer.status, site.traffic.reasons))
        self.assertEqual(8, len(site.messages))

    def test_not_stored(self) -> None:
        """When one could not be made safe, the answer for all is that."""
        site = GuardedWire(split="lines")
        site.consumer.failure = NotStored("disk full")
        answer = site.ask(post(b"{}\n{}", b"/in"))
        self.assertEqual((503, "not_stored"), (answer.status, json.loads(answer.body)["reason"]))

    def test_long(self) -> None:
        """Many events are judged in time slices; those of another sender come in between."""
        turns: list[object] = []
        now = [0.0]

        def clock() -> float:
            now[0] += 0.001
            return now[0]

        slices = TimeSlices(turns.append, clock)
        site = GuardedWire(split="lines", slices=slices)
        long, short = site.connect(), site.connect()
        long.send(post(b'{"n":1}\n' * 3_000, b"/in"))
        turns.pop(0)()  # type: ignore[operator]
        self.assertEqual([], site.messages)
        short.send(post(b'{"n":2}\n{"n":3}', b"/in"))
        self.assertEqual([2, 3], [message["n"] for message in site.messages])
        while turns:
            turns.pop(0)()  # type: ignore[operator]
        self.assertEqual(3_002, len(site.messages))
        site.clock.advance(0)
        self.assertEqual([200], [answer.status for answer in long.responses()])

    def test_signed_once(self) -> None:
        """The signature is over the body as a whole; a delivery that comes again makes no message."""
        site = GuardedWire(sender_named("github"), SECRETS, split="/*", window=60.0)
        request = site.signed(b'[{"a":1},{"a":2}]', "one", b"X-GitHub-Event: push\r\nX-GitHub-Delivery: 1\r\n")
        self.assertEqual([200, 200], [site.ask(request).status, site.ask(request).status])
        self.assertEqual(
            [("one", "1", 1), ("one", "1", 2)],
            [(each["webhook.secret"], each["webhook.delivery_id"], each["a"]) for each in site.messages],
        )

    def test_not_remembered(self) -> None:
        """A delivery whose events were not all stored is new when it comes again."""
        site = GuardedWire(sender_named("github"), SECRETS, split="/*", window=60.0)
        request = site.signed(b'[{"a":1},{"a":2}]', "one", b"X-GitHub-Event: push\r\nX-GitHub-Delivery: 1\r\n")
        site.consumer.failure = NotStored("disk full")
        self.assertEqual(503, site.ask(request).status)
        site.consumer.failure = None
        self.assertEqual(200, site.ask(request).status)
        self.assertEqual([False, True], site.window.settled)
        self.assertEqual([1, 2, 1, 2], [each["a"] for each in site.messages])
