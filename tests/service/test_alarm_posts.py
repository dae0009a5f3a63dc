"""
Tests for L{webhookrx.service.alarm_posts}.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from typing import Any

from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.error import ConnectionRefusedError
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from tests.service.test_pinned_client import _Reactor, _Transport
from webhookrx.management.alarm_rules import AlarmTarget
from webhookrx.management.alarm_values import AlarmChange
from webhookrx.service.alarm_posts import LONGEST_PAUSE, MOST_WAITING, OLDEST, AlarmPosts
from webhookrx.service.named_client import TIME, is_forbidden

TARGET = AlarmTarget("ops", "https://alerts.example.com/c4nary?x=1")


def change(number: int = 1, notify: str = "ops") -> AlarmChange:
    """Return a change of an alarm."""
    return AlarmChange("quiet", "silent", f"hooks{number}", "firing", 5.0, "It has sent no message yet.", notify)


class AlarmPostsTests(SynchronousTestCase):
    """What targets are told."""

    def begin(self, addresses: Sequence[str] | None = ("192.0.2.7",), target: AlarmTarget = TARGET) -> None:
        """Tell a target whose host has these addresses."""
        self.reactor = _Reactor(addresses)
        self.outcomes: list[str] = []
        self.connected: list[tuple[str, str, int, bool]] = []
        keys = count(1)

        def endpoint(*place: Any) -> TCP4ClientEndpoint:
            self.connected.append(place)
            return TCP4ClientEndpoint(self.reactor, place[1], place[2])

        self.posts = AlarmPosts(
            self.reactor, "fra-1", self.outcomes.append, endpoint, lambda: f"key{next(keys)}", lambda: 1.0
        )
        self.posts.use([target])

    def asked(self) -> bytes:
        """Accept the latest connection, and return what was asked by it."""
        factory = self.reactor.tcpClients[-1][2]
        self.protocol = factory.buildProtocol(None)
        self.transport = _Transport()
        self.protocol.makeConnection(self.transport)
        return self.transport.value()

    def answer(self, status: str, *lines: str) -> None:
        """Answer what was asked."""
        head = "\r\n".join((f"HTTP/1.1 {status}", "Content-Length: 6", *lines))
        self.protocol.dataReceived(f"{head}\r\n\r\nc4nary".encode())
        self.reactor.advance(0)

    def test_told(self) -> None:
        """A change is one POST, with a key by which its target knows it again."""
        self.begin()
        self.posts.tell(change())
        self.assertEqual([("alerts.example.com", "192.0.2.7", 443, True)], self.connected)
        head, _, body = self.asked().partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"POST /c4nary?x=1 HTTP/1.1\r\n"), head)
        self.assertIn(b'Idempotency-Key: "key1"', head)
        wanted = {
            "version": 1,
            "id": "key1",
            "service": "fra-1",
            "alarm": "quiet",
            "kind": "silent",
            "subject": "hooks1",
            "state": "firing",
            "since": 5.0,
            "text": "It has sent no message yet.",
        }
        self.assertEqual(wanted, json.loads(body))
        self.answer("204 No Content")
        self.assertEqual(["told"], self.outcomes)
        self.assertTrue(self.transport.is_aborted)

    def test_in_order(self) -> None:
        """One change at a time is on its way, in their order."""
        self.begin()
        self.posts.tell(change(1))
        self.posts.tell(change(2))
        self.assertEqual(1, len(self.connected))
        self.asked()
        self.answer("200 OK")
        self.assertIn(b'"subject":"hooks2"', self.asked())

    def test_outage(self) -> None:
        """What fails is told again with the same key, after pauses that grow and end."""
        self.begin()
        self.posts.tell(change())
        pause = 1.0
        for status in ("500 No", "503 No", "429 No", "408 No", "425 No"):
            asked = self.asked()
            self.assertIn(b'"key1"', asked)
            self.answer(status)
            tries = len(self.connected)
            self.reactor.advance(pause - 0.1)
            self.assertEqual(tries, len(self.connected))
            self.reactor.advance(0.2)
            self.assertEqual(tries + 1, len(self.connected))
            pause *= 2
        self.asked()
        self.answer("200 OK")
        self.assertEqual(["told"], self.outcomes)

    def test_refused_connection(self) -> None:
        """A target that can't be reached, or does not answer, is told again."""
        self.begin()
        self.posts.tell(change())
        self.reactor.tcpClients[-1][2].clientConnectionFailed(None, Failure(ConnectionRefusedError()))
        self.reactor.advance(1.0)
        self.asked()
        self.reactor.advance(TIME)
        self.reactor.advance(2.0)
        self.asked()
        self.answer("200 OK")
        self.assertEqual(["told"], self.outcomes)

    def test_final(self) -> None:
        """Another answer is final, and no redirect is followed."""
        for status in ("302 Found", "400 Bad Request", "404 Not Found"):
            self.begin()
            self.posts.tell(change())
            self.asked()
            self.answer(status, "Location: http://192.0.2.9/")
            self.assertEqual(["given_up"], self.outcomes)
            self.reactor.advance(LONGEST_PAUSE)
            self.assertEqual(1, len(self.connected))

    def test_too_old(self) -> None:
        """A change is given up after a day, and the next one is tried."""
        self.begin(None)
        self.posts.tell(change())
        while self.reactor.seconds() <= OLDEST:
            self.reactor.advance(LONGEST_PAUSE + TIME)
        self.reactor.advance(LONGEST_PAUSE + TIME)
        self.assertEqual(["given_up"], self.outcomes)

    def test_forbidden(self) -> None:
        """Addresses of the link are never connected to, even if only one of several is one."""
        for addresses in ((), ("169.254.169.254",), ("192.0.2.7", "fe80::1")):
            self.begin(addresses)
            self.posts.tell(change())
            self.assertEqual([], self.connected)
            self.posts.stop()
        for address in (
            "169.254.1.1",
            "::ffff:169.254.1.1",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::",
            "fd00:ec2::254",
            "100.100.100.200",
            "::ffff:100.100.100.200",
        ):
            self.assertTrue(is_forbidden(address), address)
        for address in ("127.0.0.1", "10.0.0.1", "192.0.2.7", "2001:db8::1"):
            self.assertFalse(is_forbidden(address), address)

    def test_bounded(self) -> None:
        """Only so many changes wait; the oldest but the one on its way are given up."""
        self.begin()
        for number in range(MOST_WAITING + 2):
            self.posts.tell(change(number))
        self.assertEqual(["given_up"] * 2, self.outcomes)
        self.assertIn(b"hooks0", self.asked())
        self.answer("200 OK")
        self.assertIn(b'"hooks3"', self.asked())

    def test_nobody(self) -> None:
        """A change that names no target is told to nobody."""
        self.begin()
        self.posts.tell(change(notify=""))
        self.assertEqual([], self.connected)

    def test_other_targets(self) -> None:
        """What waits for a target that is there no more is given up; one that stays goes on."""
        self.begin()
        self.posts.tell(change())
        self.asked()
        self.posts.use([TARGET])
        self.answer("200 OK")
        self.posts.tell(change(2))
        self.posts.use([AlarmTarget("ops", "https://other.example.com/")])
        self.assertEqual(["told", "given_up"], self.outcomes)
        self.posts.stop()
        self.assertEqual([], self.reactor.getDelayedCalls())

    def test_secret(self) -> None:
        """A URL is never shown."""
        self.assertNotIn("c4nary", repr(TARGET))
