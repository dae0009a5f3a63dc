"""
Tests for turns: a sender that has pipelined much does not keep the others waiting.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import Sender, Wire, post
from tests.pieces import pieces_of
from webhookrx.http.protocol import REQUESTS_A_TURN, SECONDS_A_TURN

LOST = post(target=b"/out")


class TurnCase(SynchronousTestCase):
    """A site whose turns are taken by hand."""

    def setUp(self) -> None:
        """Have a site."""
        self.turns: list[Callable[[], None]] = []
        self.wire = Wire({"/in": {}}, later=self.turns.append)

    def take_turns(self) -> None:
        """Let all who wait for their turn have one."""
        turns, self.turns[:] = self.turns[:], []
        for turn in turns:
            turn()

    def sent(self, count: int) -> Sender:
        """Return a sender that has sent so many requests at once."""
        sender = self.wire.connect()
        sender.send(LOST * count)
        return sender


class ShareTests(TurnCase):
    """How much a sender gets at once."""

    def test_share(self) -> None:
        """It gets its share of each turn, is not read from meanwhile, and gets all its answers in the end."""
        sender = self.sent(2 * REQUESTS_A_TURN + 1)
        for share, reading in ((REQUESTS_A_TURN, False), (REQUESTS_A_TURN, False), (1, True)):
            self.assertEqual(([404] * share, reading), (sender.statuses(), sender.transport.reading))
            self.take_turns()
        self.assertEqual(([], []), (sender.statuses(), self.turns))

    def test_no_more_than_a_share(self) -> None:
        """Who wants no more than its share waits for nobody, and may want as much again in the next read."""
        sender = self.sent(REQUESTS_A_TURN)
        sender.send(LOST * REQUESTS_A_TURN)
        self.assertEqual(([404] * 2 * REQUESTS_A_TURN, []), (sender.statuses(), self.turns))

    def test_others(self) -> None:
        """Two that want much take turns."""
        first, second = self.sent(2 * REQUESTS_A_TURN), self.sent(2 * REQUESTS_A_TURN)
        other = self.sent(1)
        self.assertEqual([REQUESTS_A_TURN, REQUESTS_A_TURN, 1], [len(s.statuses()) for s in (first, second, other)])
        self.take_turns()
        self.assertEqual([REQUESTS_A_TURN, REQUESTS_A_TURN, 0], [len(s.statuses()) for s in (first, second, other)])

    def test_time(self) -> None:
        """A share is bounded in time, too: the first request is not waited for, and those after it have some time."""
        seconds = itertools.count(0, SECONDS_A_TURN / 4)
        self.wire.site.clock = lambda: next(seconds)
        sender = self.sent(20)
        shares = []
        while share := len(sender.statuses()):
            shares.append(share)
            self.take_turns()
        self.assertEqual(20, sum(shares))
        self.assertTrue(all(1 < share < 6 for share in shares[:-1]), shares)

    def test_slow_first(self) -> None:
        """The time that the first request takes is not taken off that of those after it."""
        refused = self.wire.traffic.refused
        now = 0.0

        def refuse_slowly(*args: Any) -> None:
            nonlocal now
            refused(*args)
            now = 2 * SECONDS_A_TURN

        self.wire.traffic.refused = refuse_slowly  # type: ignore[method-assign]
        self.wire.site.clock = lambda: now
        self.assertEqual([404] * 5, self.sent(5).statuses())

    def test_slow(self) -> None:
        """However long each of them takes, two are taken a turn: only the second is waited for."""
        seconds = itertools.count(0, 2 * SECONDS_A_TURN)
        self.wire.site.clock = lambda: next(seconds)
        sender = self.sent(6)
        for _ in range(3):
            self.assertEqual([404, 404], sender.statuses())
            self.take_turns()

    def test_messages(self) -> None:
        """Requests that become messages keep their order among those that don't."""
        sender = self.wire.connect()
        sender.send(b"".join(LOST * 20 + post(b"%d" % number) for number in range(5)))
        for _ in range(10):
            self.take_turns()
            self.wire.settle()
        self.assertEqual(([404] * 20 + [200]) * 5, sender.statuses())
        self.assertEqual(list("01234"), [message["MESSAGE"] for message in self.wire.messages])

    def test_cut_anywhere(self) -> None:
        """What comes while a sender waits for its turn, as TLS may still deliver it, is put behind what it has sent."""
        sender = self.wire.connect()
        stream = (LOST + post(b"x")) * 3 + LOST * 2 * REQUESTS_A_TURN + post(b"last")
        for piece in pieces_of(700, stream):
            sender.protocol.dataReceived(piece)
        for _ in range(10):
            self.take_turns()
            self.wire.settle()
        self.assertEqual([404, 200] * 3 + [404] * 2 * REQUESTS_A_TURN + [200], sender.statuses())


class EndTests(TurnCase):
    """What happens to a sender while it waits for its turn."""

    def setUp(self) -> None:
        """Have one that waits."""
        super().setUp()
        self.sender = self.sent(2 * REQUESTS_A_TURN)
        self.sender.statuses()

    def test_ends(self) -> None:
        """One that sends no more gets all its answers, and its connection is closed then."""
        self.sender.end()
        self.assertIsNone(self.sender.transport.end)
        self.take_turns()
        self.assertEqual(([404] * REQUESTS_A_TURN, "closed"), (self.sender.statuses(), self.sender.transport.end))

    def test_leaves(self) -> None:
        """One that goes away is forgotten."""
        self.sender.leave()
        self.take_turns()
        self.assertEqual(([], [], 0), (self.sender.statuses(), self.turns, self.wire.connections.total))

    def test_takes_no_answers(self) -> None:
        """One whose answers wait gets no others at its turn, but once it has taken them."""
        self.sender.protocol.pauseProducing()
        self.take_turns()
        self.assertEqual([], self.sender.statuses())
        self.sender.protocol.resumeProducing()
        self.assertEqual(([404] * REQUESTS_A_TURN, True), (self.sender.statuses(), self.sender.transport.reading))

    def test_has_taken_its_answers(self) -> None:
        """To have taken them in between is no turn."""
        self.sender.protocol.pauseProducing()
        self.sender.protocol.resumeProducing()
        self.assertEqual([], self.sender.statuses())
        self.take_turns()
        self.assertEqual(([404] * REQUESTS_A_TURN, True), (self.sender.statuses(), self.sender.transport.reading))

    def test_drain(self) -> None:
        """A drain waits for it; the next answer is its last."""
        done = self.wire.site.drain()
        self.assertNoResult(done)
        self.take_turns()
        (response,) = self.sender.responses()
        self.assertEqual((404, "close"), (response.status, response.headers["connection"]))
        self.wire.advance(3)
        self.successResultOf(done)

    def test_pause(self) -> None:
        """While the chain pauses all senders it is not read from, whether it has had its turn or not."""
        self.wire.site.pauseProducing()
        self.take_turns()
        self.assertFalse(self.sender.transport.reading)
        self.wire.site.resumeProducing()
        self.assertTrue(self.sender.transport.reading)
        self.assertEqual([404] * REQUESTS_A_TURN, self.sender.statuses())

    def test_no_turn_ever(self) -> None:
        """A turn that never comes is not waited for for ever."""
        self.wire.advance(31)
        self.assertEqual("aborted", self.sender.transport.end)
