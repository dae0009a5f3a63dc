"""Tests for L{webhookrx.operations.snapshot}."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from tests.operations.snapshots import EMPTY, make_snapshot
from webhookrx.interfaces import LaneStatus
from webhookrx.operations import snapshot as snapshot_module
from webhookrx.operations.health import health_of
from webhookrx.operations.snapshot import Level, Phase, ReceiverSnapshot, merge
from webhookrx.router.gate import ClosedConnector, GateReason

A, B = (ClosedConnector(name, "r", 80, "why") for name in "ab")
BUSY = EMPTY._replace(messages=2, bytes=20, oldest=5, dead=1, dropped=3, damaged=1)


class PortableTests(SynchronousTestCase):
    """Snapshots for another process."""

    def test_round_trip(self) -> None:
        """What arrives is what was sent, as msgpack and as JSON."""
        snapshot = make_snapshot(
            phase=Phase.DRAINING,
            lanes=[
                LaneStatus("file:/x", 1, 10, stalled=True, failed_ago=0.5),
                LaneStatus("spool:/y", backlog=BUSY._replace(away="no answer", full=True)),
            ],
            sources=["github"],
            queue_bytes=Level(5, 64),
            connectors=(("edge-1-a-b", "a", "webhook", "8181", "webhook", "generic", "x=y"),),
            blocked=(GateReason("why", "/k"),),
            closed=(ClosedConnector("c", "r", 80, "why"),),
            not_taken="n",
            unread_age=1.5,
            overloaded=True,
        )
        for codec in (msgspec.msgpack, msgspec.json):
            self.assertEqual(snapshot, codec.decode(codec.encode(snapshot), type=ReceiverSnapshot))

    def test_overload(self) -> None:
        """It is overloaded when one of its processes is, and what is unread is as old as the oldest of all."""
        well = make_snapshot(unread_age=0.2)
        for others, expected in (
            ([make_snapshot()], (0.2, False)),
            ([make_snapshot(unread_age=1.5, overloaded=True), well], (1.5, True)),
        ):
            merged = merge([well, *others])
            self.assertEqual(expected, (merged.unread_age, merged.overloaded))


class MergeTests(SynchronousTestCase):
    """One receiver that consists of several."""

    def test_one(self) -> None:
        """The snapshot of one are those of all."""
        snapshot = make_snapshot(
            lanes=[LaneStatus("file:/x"), LaneStatus("spool:/y", backlog=BUSY)], sources=["a", "b"]
        )

        self.assertEqual(replace(snapshot, sources=("a", "b")), merge([snapshot]))

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
            self.assertEqual(expected, merge([make_snapshot(phase=phase) for phase in phases]).phase)

    def test_sums(self) -> None:
        """What there is, and what there may be, adds up."""
        first = make_snapshot(
            queue_bytes=Level(1, 64), queue_messages=Level(2, 100), connections=Level(3, 1000), requests=4
        )
        second = make_snapshot(
            queue_bytes=Level(10, 64), queue_messages=Level(20, 100), connections=Level(30, 1000), requests=40
        )
        snapshot = merge([first, second])

        self.assertEqual((Level(11, 128), Level(22, 200)), (snapshot.queue_bytes, snapshot.queue_messages))
        self.assertEqual((Level(33, 2000), 44), (snapshot.connections, snapshot.requests))

    def test_what_is_wrong(self) -> None:
        """A problem of the connectors of one is a problem of all, and reported once."""
        snapshot = merge(
            [
                make_snapshot(),
                make_snapshot(closed=(A,), not_taken="why"),
                make_snapshot(closed=(A, B), not_taken="other"),
            ]
        )
        self.assertEqual(((A, B), "why"), (snapshot.closed, snapshot.not_taken))

    def test_worst(self) -> None:
        """What is wrong with one is wrong with all; settings and certificates are as old as the oldest."""
        good = make_snapshot(endpoints={"a": True, "b": True}, certificates={"x": 5.0, "y": 6.0}, loaded=100.0)
        bad = make_snapshot(
            endpoints={"a": True, "b": False, "c": True},
            certificates={"x": 4.0, "y": 7.0, "z": 8.0},
            paused=True,
            reload_succeeded=False,
            loaded=50.0,
        )
        for order in ([good, bad], [bad, good]):
            snapshot = merge(order)
            self.assertEqual({"a": True, "b": False, "c": True}, snapshot.endpoints)
            self.assertEqual({"x": 4.0, "y": 6.0, "z": 8.0}, snapshot.certificates)
            self.assertEqual((True, False, 50.0), (snapshot.paused, snapshot.reload_succeeded, snapshot.loaded))
        snapshot = merge([good, good])
        self.assertEqual((False, True), (snapshot.paused, snapshot.reload_succeeded))

    def test_sources(self) -> None:
        """Each source is there once, also while a reload has come to some only."""
        snapshot = merge([make_snapshot(sources=["a", "b"]), make_snapshot(sources=["b", "c"])])

        self.assertEqual(("a", "b", "c"), snapshot.sources)

    def test_router(self) -> None:
        """Each connector, and each reason for which the router is blocked, is there once."""
        one, two = (("edge-1-a-b", "a"),), (("edge-1-c-d", "c"),)
        x, y, z = map(GateReason, "xyz")
        snapshot = merge(
            [make_snapshot(connectors=one, blocked=(x, y)), make_snapshot(connectors=one + two, blocked=(y, z))]
        )

        self.assertEqual((one + two, (x, y, z)), (snapshot.connectors, snapshot.blocked))

    def test_lanes(self) -> None:
        """There is one lane for each observer; the last failure of any tells, and so does one that hangs."""
        first = make_snapshot(lanes=[LaneStatus("x", 1, 10, failed_ago=50.0), LaneStatus("y", 2, 20)])
        second = make_snapshot(lanes=[LaneStatus("x", 3, 30, failed_ago=2.0), LaneStatus("y", 4, 40, stalled=True)])
        third = make_snapshot(lanes=[LaneStatus("x", 5, 50)])
        snapshot = merge([first, second, third])

        self.assertEqual(
            [LaneStatus("x", 9, 90, failed_ago=2.0), LaneStatus("y", 6, 60, stalled=True)],
            snapshot.lanes,
        )
        self.assertEqual("not_ready", health_of(snapshot).state)

    def test_backlogs(self) -> None:
        """What all keep adds up; one that is away or full tells for all."""
        away = EMPTY._replace(messages=1, bytes=10, oldest=3, away="no answer", full=True)
        lanes = [LaneStatus("y", backlog=backlog) for backlog in (EMPTY, BUSY, away, None)]
        (lane,) = merge([make_snapshot(lanes=[lane]) for lane in lanes]).lanes

        self.assertEqual(
            BUSY._replace(messages=3, bytes=30, oldest=3, away="no answer", full=True),
            lane.backlog,
        )

    def test_all_fields(self) -> None:
        """Each field has its way of merging; without any worker nothing is there."""
        self.assertEqual(ReceiverSnapshot.__struct_fields__, tuple(snapshot_module._MERGE))
        self.assertEqual((Phase.STARTING, Level(0, 0), {}), _some_of(merge([])))


def _some_of(snapshot: ReceiverSnapshot) -> tuple[object, ...]:
    return snapshot.phase, snapshot.connections, snapshot.endpoints
