"""
Tests for L{webhookrx.http.guarded_resource}: how much may come.
"""

from __future__ import annotations

import json
import os

from twisted.trial.unittest import SynchronousTestCase

from tests.http.guarded_wire import GuardedWire
from tests.http.wire import Response, post
from webhookrx.guard.quota import BUCKETS_SIZE, SECRET_SIZE, Buckets, SourceQuota
from webhookrx.intake.token_places import TokenPlace
from webhookrx.intake.tokens import NamedToken, TokenCheck

BODY = b'{"a":1}'
TOKENS = TokenCheck([NamedToken("one", b"1111"), NamedToken("two", b"2222")], TokenPlace("query", "t"))


def site(quota: SourceQuota, **options: object) -> GuardedWire:
    """Return a site with a quota."""
    buckets = Buckets(bytearray(os.urandom(SECRET_SIZE) + bytes(BUCKETS_SIZE - SECRET_SIZE)))
    wire = GuardedWire(quota=quota, buckets=buckets, **options)  # type: ignore[arg-type]
    wire.clock.advance(1000.0)
    return wire


def chunked(*sizes: int) -> list[bytes]:
    """Return a request whose size only its end tells: its head, and pieces of its body."""
    head = b"POST /in HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    return [head, *(b"%x\r\n%s\r\n" % (size, b" " * size) for size in sizes), b"0\r\n\r\n"]


class QuotaTests(SynchronousTestCase):
    """Sources with a quota."""

    def assert_over(self, answer: Response, seconds: int) -> None:
        """Fail unless a request was refused until so many seconds have passed."""
        self.assertEqual((429, "over_quota"), (answer.status, json.loads(answer.body)["reason"]))
        self.assertEqual(str(seconds), answer.headers["retry-after"])

    def test_messages(self) -> None:
        """Beyond the burst requests are refused until the rate has room again, and none of them is a message."""
        wire = site(SourceQuota(messages=0.1, burst=20))
        answers = [wire.ask(post(BODY)) for _ in range(4)]
        self.assertEqual([200, 200, 429, 429], [answer.status for answer in answers])
        self.assert_over(answers[2], 10)
        self.assertEqual([("guarded", "over_quota")] * 2, wire.traffic.refused_by)
        wire.advance(9.5)
        self.assert_over(wire.ask(post(BODY)), 1)
        wire.advance(0.5)
        self.assertEqual(200, wire.ask(post(BODY)).status)
        self.assertEqual(3, len(wire.messages))

    def test_before_body(self) -> None:
        """By the size in its head, a request is refused before its body comes."""
        wire = site(SourceQuota(bytes=10, burst=10))
        self.assertEqual(200, wire.ask(post(b" " * 95)).status)
        sender = wire.connect()
        sender.send(b"POST /in HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\n\r\n")
        (answer,) = sender.responses()
        self.assert_over(answer, 5)

    def test_chunked(self) -> None:
        """A body of unknown size is counted while it comes; what another has taken meanwhile ends it."""
        wire = site(SourceQuota(bytes=100, burst=1))
        sender = wire.connect()
        for part in chunked(*[50] * 10):
            sender.send(part)
        wire.settle()
        self.assertEqual([200], sender.statuses())
        wire.advance(10)
        slow = wire.connect()
        head, first, second, _ = chunked(10, 40)
        slow.send(head + first)
        self.assertEqual(200, wire.ask(post(b" " * 90)).status)
        self.assertEqual([], slow.statuses())
        slow.send(second)
        (answer,) = slow.responses()
        self.assert_over(answer, 1)
        self.assertEqual(2, len(wire.messages))

    def test_tokens(self) -> None:
        """Each token has its own; one that is wrong takes of none."""
        wire = site(SourceQuota(messages=1, burst=1, per="token"), tokens=TOKENS)
        asked = (b"1111", b"1111", b"0000", b"2222", b"2222")
        answers = [wire.ask(post(BODY, b"/in?t=" + token)).status for token in asked]
        self.assertEqual([200, 429, 403, 200, 429], answers)

    def test_addresses(self) -> None:
        """Each address has its own, and an IPv6 network of 64 bits has one together."""
        wire = site(SourceQuota(messages=1, burst=1, per="address"))
        peers = ("192.0.2.7", "192.0.2.7", "192.0.2.8", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")
        answers = [wire.ask(post(BODY), peer=peer).status for peer in peers]
        self.assertEqual([200, 429, 200, 200, 429, 200], answers)

    def test_address_behind_proxy(self) -> None:
        """Behind a trusted proxy, the address that it names counts."""
        wire = site(SourceQuota(messages=1, burst=1, per="address"), rules={"proxy_header": "x-forwarded-for"})
        answers = [
            wire.ask(post(BODY, headers=b"X-Forwarded-For: 192.0.2.%d\r\n" % number)).status for number in (1, 1, 2)
        ]
        self.assertEqual([200, 429, 200], answers)

    def test_events(self) -> None:
        """A body that is taken apart counts as many messages as it has events."""
        wire = site(SourceQuota(messages=1, burst=5), split="lines")
        self.assertEqual(200, wire.ask(post(b'{"a":1}\n' * 12)).status)
        self.assertEqual(12, len(wire.messages))
        self.assert_over(wire.ask(post(BODY)), 8)
