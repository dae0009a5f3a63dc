"""
Tests for L{webhookrx.http.connections}: who gets a place, and who gives it up.
"""

from __future__ import annotations

import sys
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import Sender, Wire, post
from webhookrx.http.connections import Connections
from webhookrx.http.states import HANDSHAKE
from webhookrx.settings import Limits


class _Connection:
    """One that only says what it does."""

    def __init__(self, connections: Connections, gone: list[Any]) -> None:
        self.in_first_head = True
        self.busy = False
        self._connections = connections
        self._gone = gone

    def give_way(self) -> None:
        self._connections.remove(self)  # type: ignore[arg-type]
        self._gone.append(self)

    def settles(self, *, busy: bool = False) -> None:
        """Have answered the first request."""
        self.in_first_head, self.busy = False, busy
        self._connections.became_idle(self)  # type: ignore[arg-type]


class PlaceTests(SynchronousTestCase):
    """
    Places, with connections that are made up.
    """

    def setUp(self) -> None:
        self.connections = Connections(Limits(connections=4))
        self.gone: list[Any] = []

    def come(self, sender: str | None = None) -> Any:
        """Have a connection come; None when it gets no place."""
        connection: Any = _Connection(self.connections, self.gone)
        return connection if self.connections.add(connection, sender) else None

    def test_order(self) -> None:
        """Those in their first head go first, the oldest of them before; then the one that is idle the longest."""
        a, b, c, d = (self.come() for _ in range(4))
        b.settles()
        d.settles()
        b.settles()
        e = self.come()
        self.assertEqual([a], self.gone)
        e.settles()
        f = self.come()
        f.settles()
        self.assertEqual([a, c], self.gone)
        for _ in range(4):
            self.come().settles()
        self.assertEqual([a, c, d, b, e, f], self.gone)
        self.assertEqual(4, self.connections.total)

    def test_busy(self) -> None:
        """One with a request under way stays; when all are busy, who comes gets no place and nothing is counted."""
        all_of_them = [self.come() for _ in range(4)]
        for each in all_of_them:
            each.settles(busy=True)
        for _ in range(2):
            self.assertIsNone(self.come())
        self.assertEqual(([], 4), (self.gone, self.connections.total))
        all_of_them[2].settles()
        self.assertIsNotNone(self.come())
        self.assertEqual([all_of_them[2]], self.gone)

    def test_first_body(self) -> None:
        """One that has sent its first head is in that queue no more, and stays while its body comes."""
        a = self.come()
        a.in_first_head, a.busy = False, True
        b = self.come()
        self.come()
        self.come()
        self.come()
        self.assertEqual([b], self.gone)

    def test_lower_limit(self) -> None:
        """When the limit is lowered all stay, but two go for each that comes, until it is reached."""
        first = [self.come() for _ in range(4)]
        self.connections.use(Limits(connections=2))
        self.assertEqual((4, 2), (self.connections.total, self.connections.most))
        totals = [self.come() and self.connections.total for _ in range(3)]
        self.assertEqual([3, 2, 2], totals)
        self.assertEqual(first, self.gone[:4])

    def test_gone(self) -> None:
        """One that has ended leaves nothing behind."""
        a = self.come()
        a.settles()
        self.connections.remove(a)
        b = self.come()
        self.connections.remove(b)
        self.assertEqual(0, self.connections.total)
        c, *_ = [self.come() for _ in range(4)]
        self.assertEqual([], self.gone)
        self.come()
        self.assertEqual([c], self.gone)

    def test_gone_while_idle(self) -> None:
        """One that has ended is not asked to go."""
        a, *others = (self.come() for _ in range(4))
        for each in (a, *others):
            each.settles(busy=each is not a)
        self.connections.remove(a)
        e = self.come()
        e.settles(busy=True)
        self.assertIsNone(self.come())
        self.assertEqual(([], 4), (self.gone, self.connections.total))

    def test_senders(self) -> None:
        """A sender has as many as may be, again when one of them has gone, and is forgotten with its last."""
        self.connections.use(Limits(connections_per_peer=3))
        a = [self.come("a") for _ in range(4)]
        self.assertEqual([False] * 3 + [True], [each is None for each in a])
        b = self.come("b")
        for _ in range(2):
            self.connections.remove(a.pop(0))
            a.insert(0, self.come("a"))
            self.assertEqual((True, None), (a[0] is not None, self.come("a")))
        for each in (*a[:3], b):
            self.assertEqual(2 if each is not b else 1, len(self.connections._by_sender))
            self.connections.remove(each)
        self.assertEqual((0, 0), (len(self.connections._by_sender), self.connections.total))

    def test_identify(self) -> None:
        """A sender that is known only later has as many; a connection too many is counted no more."""
        self.connections.use(Limits(connections_per_peer=1))
        a, b = self.come(), self.come()
        self.assertEqual([True, False], [self.connections.identify(each, "a") for each in (a, b)])
        self.assertEqual(1, self.connections.total)
        self.connections.remove(b)
        self.connections.remove(a)
        self.assertTrue(self.connections.add(b, "a"))

    def test_cost(self) -> None:
        """For each that comes so few are looked at as if there were no others, whatever they do."""
        calls = 0

        def count(frame: Any, event: str, _: object) -> None:
            nonlocal calls
            calls += event == "call"

        self.connections = Connections(Limits(connections=2000))
        others = [self.come() for _ in range(2000)]
        for each in others:
            each.settles(busy=True)
        others[-1].busy = False
        self.come()  # all that are busy leave the queue, once
        self.assertEqual([others[-1]], self.gone)
        for _ in range(500):
            sys.setprofile(count)
            try:
                self.assertIsNotNone(self.come())
            finally:
                sys.setprofile(None)
        self.assertLess(calls, 500 * 20)


class EvictionTests(SynchronousTestCase):
    """
    The same with real connections.
    """

    def full(self, *senders: str, **options: Any) -> tuple[Wire, list[Sender]]:
        """Return a site without a place left, and who has them: C{silent}, C{begun}, C{idle}, C{body} or C{waits}."""
        wire = Wire(limits=Limits(connections=len(senders)), **options)
        wire.consumer.hold()
        found = []
        for number, what in enumerate(senders):
            sender = wire.connect(peer=f"192.0.2.{number}")
            request = post(b"hello")
            sender.send({"begun": request[:9], "body": request[:-1], "waits": request, "idle": request}.get(what, b""))
            if what == "idle":
                wire.settle()
                wire.consumer.acknowledge_all()
                self.assertEqual([200], sender.statuses())
            found.append(sender)
        return wire, found

    def test_first_head(self) -> None:
        """The oldest connection without a first head goes without an answer, and is counted; the newcomer is served."""
        wire, (idle, body, begun, silent) = self.full("idle", "body", "begun", "silent")
        newcomer = wire.connect(peer="192.0.2.99")
        self.assertEqual(("aborted", b""), (begun.transport.end, begun.transport.written))
        self.assertEqual([None] * 4, [each.transport.end for each in (idle, body, silent, newcomer)])
        self.assertEqual([("too_many_connections", "192.0.2.2", b"", b"")], wire.traffic.refusals)
        newcomer.send(post())
        wire.settle()
        wire.consumer.acknowledge_all()
        self.assertEqual([200], newcomer.statuses())
        self.assertEqual(4, wire.connections.total)

    def test_idle(self) -> None:
        """Then the one that has been idle the longest goes."""
        wire, senders = self.full("idle", "body", "idle", "waits")
        senders[0].send(post(b"again"))
        wire.settle()
        wire.consumer.acknowledge_all()
        wire.connect(peer="192.0.2.99").send(post()[:-2])
        self.assertEqual([None, None, "aborted", None], [each.transport.end for each in senders])

    def test_nobody(self) -> None:
        """With a request under way on each connection the newcomer is told that there are too many."""
        wire, senders = self.full("idle", "body", "waits")
        senders[0].send(post(b"hello")[:20])
        newcomer = wire.connect(peer="192.0.2.99")
        self.assertEqual([503], newcomer.statuses())
        self.assertEqual([None] * 3, [each.transport.end for each in senders])
        wire.consumer.acknowledge_all()
        self.assertEqual([200], senders[2].statuses())

    def test_no_place_for_one_too_many(self) -> None:
        """Who has too many connections takes no other's place."""
        wire = Wire(limits=Limits(connections=2, connections_per_peer=1))
        senders = [wire.connect(peer=f"192.0.2.{number}") for number in range(2)]
        self.assertEqual([503], wire.connect(peer="192.0.2.1").statuses())
        self.assertEqual([None, None], [each.transport.end for each in senders])

    def test_place_of_a_sender(self) -> None:
        """One that had to go is counted for its sender no more; nor is one that found no place."""
        wire = Wire(limits=Limits(connections=1, connections_per_peer=1))
        for number in (1, 2, 1, 2):
            self.assertEqual([], wire.connect(peer=f"192.0.2.{number}").statuses())
        self.assertEqual(["too_many_connections"] * 3, wire.traffic.reasons)
        wire.connect(peer="192.0.2.1").send(post(b"hello")[:-1])
        for number in (3, 3):
            newcomer = wire.connect(peer=f"192.0.2.{number}")
            self.assertEqual([503], newcomer.statuses())
            self.assertIn("There are too many open connections.", wire.traffic.details[-1])

    def test_counted_at_once(self) -> None:
        """One that had to go is counted no more from that moment on, though its socket is closed a moment later."""
        wire, (silent,) = self.full("silent")
        closes = silent.transport.abortConnection
        silent.transport.abortConnection = lambda: None  # type: ignore[method-assign]
        wire.connect(peer="192.0.2.99").send(post(b"hello")[:-1])
        self.assertEqual(1, wire.connections.total)
        closes()
        self.assertEqual(1, wire.connections.total)
        self.assertEqual([503], wire.connect(peer="192.0.2.98").statuses())

    def test_tls(self) -> None:
        """One that has not completed its handshake is in its first head, too; that it had to go is no failure of it."""
        wire, (body,) = self.full("body")
        wire.connections.use(Limits(connections=2))
        shaking = wire.connect(peer="192.0.2.9", secure=True)
        shaking.protocol._lifetime = HANDSHAKE
        wire.connect(peer="192.0.2.99")
        self.assertEqual(("aborted", None), (shaking.transport.end, body.transport.end))
        self.assertEqual((["too_many_connections"], []), (wire.traffic.reasons, wire.traffic.handshakes))

    def test_unix_socket(self) -> None:
        """Those of a UNIX socket give and take places like all others."""
        wire = Wire(limits=Limits(connections=1))
        first, second = wire.connect(peer=None), wire.connect(peer="192.0.2.1")
        third = wire.connect(peer=None)
        ends = [each.transport.end for each in (first, second, third)]
        self.assertEqual(["aborted", "aborted", None], ends)

    def test_proxied(self) -> None:
        """Behind the PROXY protocol a connection has a place before its sender is known."""
        wire, (first,) = self.full("silent", knows_peers_at_once=False)
        second = wire.connect()
        self.assertEqual(["aborted", None], [first.transport.end, second.transport.end])

    def test_proxied_once(self) -> None:
        """Behind the PROXY protocol a connection counts once for its sender, however many requests it brings."""
        wire = Wire(limits=Limits(connections_per_peer=1), knows_peers_at_once=False)
        sender = wire.connect()
        for _ in range(3):
            sender.send(post())
            wire.settle()
        self.assertEqual([200] * 3, sender.statuses())

    def test_other_endpoint(self) -> None:
        """The place may be one of another endpoint."""
        wire, (silent,) = self.full("silent")
        other = Wire()
        other.site._connections = wire.connections
        newcomer = other.connect()
        self.assertEqual(["aborted", None], [silent.transport.end, newcomer.transport.end])
        self.assertEqual((0, 1), (wire.site.connections, other.site.connections))
        self.assertEqual((["too_many_connections"], []), (wire.traffic.reasons, other.traffic.reasons))


class SenderTests(SynchronousTestCase):
    """
    Whom connections are counted for.
    """

    def test_network(self) -> None:
        """Addresses of one IPv6 network of 64 bits are one sender, those of others are not."""
        wire = Wire(limits=Limits(connections_per_peer=2))
        taken = ["2001:db8:0:1::1", "2001:db8:0:1:ffff::2", "2001:db8:0:2::1", "192.0.2.1", "192.0.2.2"]
        self.assertEqual([[]] * 5, [wire.connect(peer=peer).statuses() for peer in taken])
        self.assertEqual([503], wire.connect(peer="2001:db8:0:1:8000::3").statuses())
        self.assertEqual([], wire.connect(peer="2001:db8:0:2::ffff").statuses())
        self.assertEqual([503], wire.connect(peer="2001:db8:0:2:1::").statuses())

    def test_mapped(self) -> None:
        """An IPv4 address is the same sender in IPv6 clothes, and no other one is."""
        wire = Wire(limits=Limits(connections_per_peer=1))
        wire.connect(peer="::ffff:192.0.2.1")
        self.assertEqual([503], wire.connect(peer="192.0.2.1").statuses())
        self.assertEqual([], wire.connect(peer="::ffff:192.0.2.2").statuses())

    def test_zone(self) -> None:
        """A link-local address counts with its zone."""
        wire = Wire(limits=Limits(connections_per_peer=1))
        wire.connect(peer="fe80::1%eth0")
        self.assertEqual([503], wire.connect(peer="fe80::2%eth0").statuses())
        self.assertEqual([], wire.connect(peer="fe80::1%eth1").statuses())
