"""
Tests for L{webhookrx.agent.taps} and L{webhookrx.agent.sent_tap}.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.agent.played import PlayedHost
from webhookrx.agent.link import ConsoleAnswer, LinkFailed
from webhookrx.agent.sent_tap import AWAY_TIME
from webhookrx.agent.taps import TIME_TO_LEAVE, AgentTaps
from webhookrx.errors import CantTap
from webhookrx.management.agent_body import read_body
from webhookrx.management.agent_protocol import MOST_FILES, CommandAnswer
from webhookrx.management.tap_protocol import MOST_EVENTS, MOST_ROUTER_TAPS, TapCommand, TapEvents, UntapCommand
from webhookrx.router.gate import GateReason
from webhookrx.settings import RouterSettings, Settings, Source
from webhookrx.tapping.tap import MOST_BUFFERED, Tap, TapCounts
from webhookrx.tapping.tap_request import TapRequest

OPEN = Settings((Source("a"), Source("b")), (), router=RouterSettings("r"))


def closed(*paths: str) -> Settings:
    """Return settings for which the gate is closed, as files are missing."""
    reasons = tuple(GateReason(f"No {path}.", path) for path in paths)
    return Settings(OPEN.sources, (), router=RouterSettings("r", blocked=reasons))


class FullHost(PlayedHost):
    """A receiver at which the taps of others run."""

    def start_tap(self, request: TapRequest, deliver: Callable[[Tap], object]) -> Tap:
        raise CantTap("16 taps run already.", "too_many_taps")


class WallClock:
    """Timers as a reactor has them, whose time of day is another than that of taps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def seconds(self) -> float:
        return 1_800_000_000.0 + self._clock.seconds()

    def callLater(self, seconds: float, *arguments: Any) -> Any:
        return self._clock.callLater(seconds, *arguments)


class AgentTapsCase(SynchronousTestCase):
    """A console that takes what taps show."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.wall_clock = WallClock(self.clock)
        self.host = PlayedHost(self.clock.seconds)
        self.host.settings = OPEN
        self.asked: list[tuple[bytes, bytes]] = []
        self.status = 204
        self.held: list[Deferred[ConsoleAnswer]] = []
        self.holds = False
        self.taps = self.make(allowed=True)

    def make(self, *, allowed: bool) -> AgentTaps:
        access: Any = SimpleNamespace(link=self)
        host: Any = self.host
        return AgentTaps(self.wall_clock, access, host, self.clock.seconds, allowed=allowed)

    async def ask(self, method: bytes, path: bytes, body: bytes, *, time: float) -> ConsoleAnswer:
        """Be the link."""
        self.assertEqual(method, b"POST")
        self.assertLess(time, AWAY_TIME)
        self.asked.append((path, body))
        if self.holds:
            self.held.append(Deferred())
            return await self.held[-1]
        if not self.status:
            raise LinkFailed("It is away.")
        return ConsoleAnswer(self.status, b"")

    @property
    def bodies(self) -> list[TapEvents]:
        """What the console has got."""
        return [read_body(body, TapEvents) for _, body in self.asked]

    def start(self, id: str = "t1", **request: Any) -> CommandAnswer:
        return self.successResultOf(Deferred.fromCoroutine(self.taps.start(TapCommand(id=id, **request))))

    def end(self, id: str) -> None:
        done = Deferred.fromCoroutine(self.taps.end(UntapCommand(id="u", tap=id)))
        self.assertEqual(self.successResultOf(done), CommandAnswer(id="u"))

    def started(self, **request: Any) -> Tap:
        """Start a tap, and return the receiver's."""
        self.assertEqual(self.start(**request), CommandAnswer(id="t1"))
        return self.host.taps[-1]

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds * 4)):
            self.clock.advance(0.25)

    def ends(self, why: str) -> None:
        """Expect that nothing runs any more, nothing more is sent, and the console knows why."""
        self.assertEqual((self.host.taps, self.clock.getDelayedCalls()), ([], []))
        self.assertIn(why, self.bodies[-1].ended)
        self.assertNotIn("", [each.ended for each in self.bodies[-1:]])


class StartTests(AgentTapsCase):
    """Tests for L{AgentTaps.start}."""

    def test_request(self) -> None:
        """The receiver's tap is asked for what the command asks for."""
        asked = {"source": "b", "point": "output", "filter": "x = y", "rate": 2.5, "seconds": 7.5}
        self.assertEqual(self.started(**asked).request, TapRequest(**asked))
        self.end("t1")

    def test_twice(self) -> None:
        """A console that asks for a tap twice has one: it can't hide how many it has."""
        self.started()
        self.assertEqual(self.start().code, "same_tap")
        self.assertEqual(len(self.host.taps), 1)
        self.end("t1")
        self.assertEqual(self.host.taps, [])

    def test_refused(self) -> None:
        """A tap that can't be started is answered with a code and a sentence, and nothing is sent of it."""
        for request, code, sentence in (
            ({"filter": "a = "}, "bad_tap", "The query of filter is wrong"),
            ({"connectors": "("}, "bad_tap", "The query of connectors is wrong"),
            ({"point": "service", "source": "a"}, "bad_tap", "of no source"),
            ({"source": "c"}, "no_connector", "No source is meant."),
            ({"connectors": "connector.port = 1"}, "no_connector", "No source is meant."),
        ):
            with self.subTest(request):
                answer = self.start(**request)
                self.assertEqual((answer.id, answer.code, answer.paths), ("t1", code, ()))
                self.assertIn(sentence, answer.problem)
        self.pass_time(2)
        self.assertEqual((self.asked, self.host.taps), ([], []))

    def test_full(self) -> None:
        """When there is no room at the receiver, the console is told."""
        self.host = FullHost()
        self.host.settings = OPEN
        self.taps = self.make(allowed=True)
        self.assertEqual(self.start(), CommandAnswer(id="t1", problem="16 taps run already.", code="too_many_taps"))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_closed_gate(self) -> None:
        """While the gate is closed, the answer has the missing files, as many as it may have."""
        self.host.settings = closed("/k", "/c")
        answer = self.start()
        self.assertEqual((answer.code, answer.paths), ("reload_gate_closed", ("/k", "/c")))
        self.assertIn("No /k. No /c.", answer.problem)
        self.host.settings = closed("/" + "k" * 5000, *(f"/{number}" for number in range(MOST_FILES + 1)))
        answer = self.start(point="service")
        self.assertEqual((len(answer.paths), answer.paths[0], len(answer.problem)), (MOST_FILES, "/0", 2_000))
        self.assertEqual(self.host.taps, [])

    def test_not_allowed(self) -> None:
        """A host that allows no taps of its console says so, whatever is asked for."""
        self.taps = self.make(allowed=False)
        for request in ({}, {"point": "service"}, {"filter": "a = "}):
            answer = self.start(**request)
            self.assertEqual(answer.code, "tap_not_allowed")
            self.assertIn("--no-console-tap", answer.problem)
        self.assertEqual(self.host.taps, [])

    def test_too_many(self) -> None:
        """There are so many at a time; one that has ended makes room."""
        for number in range(MOST_ROUTER_TAPS):
            self.assertEqual(self.start(f"t{number}").code, "")
        self.assertEqual(self.start("more").code, "too_many_taps")
        self.end("t0")
        self.assertEqual(self.start("another").code, "")
        self.assertEqual(len(self.host.taps), MOST_ROUTER_TAPS)
        for tap in ("another", *(f"t{number}" for number in range(1, MOST_ROUTER_TAPS))):
            self.end(tap)
        self.assertEqual((self.host.taps, self.clock.getDelayedCalls()), ([], []))


class SentTests(AgentTapsCase):
    """What is sent."""

    def test_each_second(self) -> None:
        """Each second all counts are sent, also when nothing matches, and the rows since the last time."""
        tap = self.started()
        tap.counts.seen = 3
        self.pass_time(1)
        tap.show({"row": "message", "n": 1})
        tap.counts.matched = 1
        self.pass_time(1)
        tap.counts.not_looked_at = tap.counts.dropped = 2
        self.pass_time(1)
        self.assertEqual({path for path, _ in self.asked}, {b"/agent/v1/taps/t1"})
        self.assertEqual([each.number for each in self.bodies], [1, 2, 3])
        self.assertEqual([len(each.events) for each in self.bodies], [0, 1, 0])
        self.assertEqual(json.loads(bytes(self.bodies[1].events[0])), {"row": "message", "n": 1})
        last = self.bodies[-1]
        self.assertEqual((last.seen, last.matched, last.shown, last.not_looked_at, last.dropped), (3, 1, 1, 2, 2))
        self.assertEqual([each.ended for each in self.bodies], ["", "", ""])
        self.end("t1")

    def test_of_workers(self) -> None:
        """Counts are those of all processes."""
        tap = self.started()
        tap.count_of(0, TapCounts(5, 4, 3, 2, 1))
        tap.count_of(1, TapCounts(5, 4, 3, 2, 1))
        self.pass_time(1)
        (told,) = self.bodies
        self.assertEqual((told.seen, told.matched, told.shown, told.not_looked_at, told.dropped), (10, 8, 6, 4, 2))
        self.end("t1")

    def test_slow_console(self) -> None:
        """One body at a time is under way; meanwhile no more waits than fits, the oldest go, and they are counted."""
        tap = self.started()
        self.holds = True
        self.pass_time(1)
        for number in range(10):
            tap.show({"n": number, "text": "x" * 60_000})
        self.pass_time(5)
        self.assertEqual(len(self.asked), 1)
        self.holds = False
        self.held[0].callback(ConsoleAnswer(204, b""))
        self.pass_time(0.25)
        told = self.bodies[-1]
        self.assertEqual((len(self.asked), told.dropped), (2, 6))
        self.assertEqual([json.loads(bytes(each))["n"] for each in told.events], [6, 7, 8, 9])
        self.assertLess(len(self.asked[-1][1]), MOST_BUFFERED + 1_000)
        self.end("t1")

    def test_many_rows(self) -> None:
        """A body has so many rows; others come with the next."""
        tap = self.started()
        for _ in range(MOST_EVENTS + 5):
            tap.show({})
        self.pass_time(2)
        self.assertEqual([len(each.events) for each in self.bodies], [MOST_EVENTS, 5])
        self.end("t1")

    def test_sent_again(self) -> None:
        """What the console could not take is sent again, with its number; then comes what there is since."""
        tap = self.started()
        tap.show({"n": 1})
        for self.status in (0, 429, 503):
            self.pass_time(1)
        tap.show({"n": 2})
        self.status = 204
        self.pass_time(2)
        self.assertEqual(len({body for _, body in self.asked[:4]}), 1)
        self.assertEqual([each.number for each in self.bodies], [1, 1, 1, 1, 2])
        self.assertEqual(bytes(self.bodies[-1].events[0]), b'{"n":2}')
        self.end("t1")


class EndTests(AgentTapsCase):
    """How taps end."""

    def test_untap(self) -> None:
        """A tap that the console ends has ended at once, and nothing more is sent; one that is not there has ended."""
        self.started()
        self.pass_time(1)
        self.end("t1")
        self.assertEqual((self.host.taps, self.clock.getDelayedCalls()), ([], []))
        self.end("t1")
        self.end("other")
        self.pass_time(3)
        self.assertEqual(len(self.asked), 1)

    def test_untap_under_way(self) -> None:
        """So it does while a body is under way."""
        self.started()
        self.holds = True
        self.pass_time(1)
        self.end("t1")
        self.pass_time(3)
        self.assertEqual((len(self.asked), self.host.taps), (1, []))

    def test_over(self) -> None:
        """After its time it ends, and says so."""
        self.started(seconds=3)
        self.pass_time(2)
        self.assertEqual(len(self.host.taps), 1)
        self.pass_time(1)
        self.ends("Its time is over.")
        self.assertEqual(len(self.asked), 3)

    def test_gate_closes(self) -> None:
        """When the gate closes it ends within a second, and says so."""
        self.started(seconds=3)
        self.host.settings = closed("/k")
        self.pass_time(1)
        self.ends("The reload gate has closed. No /k.")

    def test_not_found(self) -> None:
        """When the console knows nothing of it, or refuses it, it ends, and nothing more is sent."""
        for self.status in (404, 403, 400):
            with self.subTest(self.status):
                self.started()
                self.pass_time(1)
                self.assertEqual((self.host.taps, self.clock.getDelayedCalls()), ([], []))

    def test_away(self) -> None:
        """While the console is away it ends after some seconds, of which no row has been taken."""
        tap = self.started()
        self.pass_time(5)
        self.status = 0
        self.pass_time(AWAY_TIME - 1)
        self.assertEqual(self.host.taps, [tap])
        self.pass_time(1)
        self.assertEqual((self.host.taps, self.clock.getDelayedCalls()), ([], []))

    def test_end_is_sent_again(self) -> None:
        """That it has ended is sent until the console has taken that, after what came before."""
        tap = self.started(seconds=2)
        tap.show({"n": 1})
        self.status = 0
        self.pass_time(3)
        self.assertEqual(self.host.taps, [])
        self.status = 204
        self.pass_time(2)
        self.assertEqual([(each.number, bool(each.ended)) for each in self.bodies[-2:]], [(1, False), (2, True)])
        self.ends("Its time is over.")

    def test_stop(self) -> None:
        """When the agent stops, the console is told of all of them at once, and no other starts."""
        self.start("t1")
        self.start("t2")
        self.successResultOf(self.stopped())
        self.assertEqual([each.ended for each in self.bodies], ["The receiver stops."] * 2)
        self.ends("The receiver stops.")
        self.assertEqual(self.start("t3").code, "stopping")

    def test_stop_under_way(self) -> None:
        """What is under way comes to its end before."""
        self.started()
        self.holds = True
        self.pass_time(1)
        stopped = self.stopped()
        self.assertNoResult(stopped)
        self.holds = False
        self.held[0].callback(ConsoleAnswer(204, b""))
        self.clock.advance(0)
        self.successResultOf(stopped)
        self.ends("The receiver stops.")

    def test_stop_without_console(self) -> None:
        """A console that does not answer holds up nothing for long; one that is away, nothing at all."""
        self.started()
        self.holds = True
        self.pass_time(1)
        stopped = self.stopped()
        self.clock.advance(TIME_TO_LEAVE - 0.01)
        self.assertNoResult(stopped)
        self.assertEqual(self.host.taps, [])
        self.clock.advance(0.01)
        self.successResultOf(stopped)
        self.setUp()
        self.started()
        self.status = 0
        self.successResultOf(self.stopped())
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def stopped(self) -> Deferred[None]:
        stopped = Deferred.fromCoroutine(self.taps.stop())
        self.clock.advance(0)
        return stopped
