"""Facts of several processes."""

from __future__ import annotations

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.operations.facts import EMPTY, make_facts
from webhookrx.interfaces import LaneStatus
from webhookrx.operations.facts import Facts, Level, Phase, portable, total
from webhookrx.operations.health import health_of

BUSY = EMPTY._replace(messages=2, bytes=20, oldest=5, dead=1, dropped=3, damaged=1)


class PortableTests(SynchronousTestCase):
    """Facts for another process."""

    def test_round_trip(self) -> None:
        """What arrives is what was sent, as msgpack and as JSON."""
        facts = make_facts(
            phase=Phase.DRAINING,
            lanes=[
                LaneStatus("file:/x", 1, 10, stalled=True, failed_ago=0.5),
                LaneStatus("spool:/y", backlog=BUSY._replace(away="no answer", full=True)),
            ],
            sources=["github"],
            queue_bytes=Level(5, 64),
            connectors=(("edge-1-a-b", "a", "webhook", "8181", "webhook", "generic", "x=y"),),
            blocked=("why",),
            closed=("c",),
            not_taken="n",
            unread_age=1.5,
            overloaded=True,
        )
        for codec in (msgspec.msgpack, msgspec.json):
            self.assertEqual(facts, codec.decode(codec.encode(portable(facts)), type=Facts))

    def test_overload(self) -> None:
        """It is overloaded when one of its processes is, and what is unread is as old as the oldest of all."""
        well = make_facts(unread_age=0.2)
        self.assertEqual((0.2, False), total([well, make_facts()])[-2:])
        self.assertEqual((1.5, True), total([well, make_facts(unread_age=1.5, overloaded=True), well])[-2:])

    def test_no_text(self) -> None:
        """Names of files that are no text have escapes, wherever they stand."""
        facts = make_facts(
            endpoints={"unix:/\udce9": True},
            lanes=[LaneStatus("file:/\udce9"), LaneStatus("spool:/é", backlog=EMPTY._replace(away="/\udce9: gone"))],
            sources=["\udce9", "é"],
            certificates={"/\udce9": 1.0},
            blocked=("/\udce9",),
            closed=("/\udce9",),
            not_taken="/\udce9",
        )
        arrived = msgspec.msgpack.decode(msgspec.msgpack.encode(portable(facts)), type=Facts)

        self.assertEqual({"unix:/\\udce9": True}, arrived.endpoints)
        self.assertEqual(["file:/\\udce9", "spool:/é"], [lane.spec for lane in arrived.lanes])
        self.assertEqual("/\\udce9: gone", arrived.lanes[1].backlog.away if arrived.lanes[1].backlog else None)
        self.assertEqual((["\\udce9", "é"], {"/\\udce9": 1.0}), (arrived.sources, arrived.certificates))
        self.assertEqual((("/\\udce9",), ("/\\udce9",)), (arrived.blocked, arrived.closed))
        self.assertEqual("/\\udce9", arrived.not_taken)


class TotalTests(SynchronousTestCase):
    """One receiver that consists of several."""

    def test_one(self) -> None:
        """The facts of one are those of all."""
        facts = make_facts(lanes=[LaneStatus("file:/x"), LaneStatus("spool:/y", backlog=BUSY)], sources=["a", "b"])

        self.assertEqual(facts, total([facts]))

    def test_phase(self) -> None:
        """It runs when all do, and drains as soon as one does."""
        starting, running, draining = Phase.STARTING, Phase.RUNNING, Phase.DRAINING
        for phases, expected in (
            ([running, running], running),
            ([running, starting], starting),
            ([starting, starting], starting),
            ([starting, draining], draining),
            ([draining, running], draining),
        ):
            self.assertEqual(expected, total([make_facts(phase=phase) for phase in phases]).phase)

    def test_sums(self) -> None:
        """What there is, and what there may be, adds up."""
        first = make_facts(
            queue_bytes=Level(1, 64), queue_messages=Level(2, 100), connections=Level(3, 1000), requests=4
        )
        second = make_facts(
            queue_bytes=Level(10, 64), queue_messages=Level(20, 100), connections=Level(30, 1000), requests=40
        )
        facts = total([first, second])

        self.assertEqual((Level(11, 128), Level(22, 200)), (facts.queue_bytes, facts.queue_messages))
        self.assertEqual((Level(33, 2000), 44), (facts.connections, facts.requests))

    def test_what_is_wrong(self) -> None:
        """What is wrong with the connectors of one is wrong with all, and told once."""
        facts = total(
            [make_facts(), make_facts(closed=("a",), not_taken="why"), make_facts(closed=("a", "b"), not_taken="other")]
        )
        self.assertEqual((("a", "b"), "why"), (facts.closed, facts.not_taken))

    def test_worst(self) -> None:
        """What is wrong with one is wrong with all; settings and certificates are as old as the oldest."""
        good = make_facts(endpoints={"a": True, "b": True}, certificates={"x": 5.0, "y": 6.0}, loaded=100.0)
        bad = make_facts(
            endpoints={"a": True, "b": False, "c": True},
            certificates={"x": 4.0, "y": 7.0, "z": 8.0},
            paused=True,
            reload_succeeded=False,
            loaded=50.0,
        )
        for order in ([good, bad], [bad, good]):
            facts = total(order)
            self.assertEqual({"a": True, "b": False, "c": True}, facts.endpoints)
            self.assertEqual({"x": 4.0, "y": 6.0, "z": 8.0}, facts.certificates)
            self.assertEqual((True, False, 50.0), (facts.paused, facts.reload_succeeded, facts.loaded))
        facts = total([good, good])
        self.assertEqual((False, True), (facts.paused, facts.reload_succeeded))

    def test_sources(self) -> None:
        """Each source is there once, also while a reload has come to some only."""
        facts = total([make_facts(sources=["a", "b"]), make_facts(sources=["b", "c"])])

        self.assertEqual(["a", "b", "c"], facts.sources)

    def test_router(self) -> None:
        """Each connector, and each reason for which the router is blocked, is there once."""
        one, two = (("edge-1-a-b", "a"),), (("edge-1-c-d", "c"),)
        facts = total(
            [make_facts(connectors=one, blocked=("x", "y")), make_facts(connectors=one + two, blocked=("y", "z"))]
        )

        self.assertEqual((one + two, ("x", "y", "z")), (facts.connectors, facts.blocked))

    def test_lanes(self) -> None:
        """There is one lane for each observer; the last failure of any tells, and so does one that hangs."""
        first = make_facts(lanes=[LaneStatus("x", 1, 10, failed_ago=50.0), LaneStatus("y", 2, 20)])
        second = make_facts(lanes=[LaneStatus("x", 3, 30, failed_ago=2.0), LaneStatus("y", 4, 40, stalled=True)])
        third = make_facts(lanes=[LaneStatus("x", 5, 50)])
        facts = total([first, second, third])

        self.assertEqual(
            [LaneStatus("x", 9, 90, failed_ago=2.0), LaneStatus("y", 6, 60, stalled=True)],
            facts.lanes,
        )
        self.assertEqual("not_ready", health_of(facts).state)

    def test_backlogs(self) -> None:
        """What all keep adds up; one that is away or full tells for all."""
        away = EMPTY._replace(messages=1, bytes=10, oldest=3, away="no answer", full=True)
        lanes = [LaneStatus("y", backlog=backlog) for backlog in (EMPTY, BUSY, away, None)]
        (lane,) = total([make_facts(lanes=[lane]) for lane in lanes]).lanes

        self.assertEqual(
            BUSY._replace(messages=3, bytes=30, oldest=3, away="no answer", full=True),
            lane.backlog,
        )
