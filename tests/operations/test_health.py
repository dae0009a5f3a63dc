"""
Tests for L{webhookrx.operations.health}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.operations.snapshots import EMPTY, make_snapshot
from webhookrx.interfaces import LaneStatus
from webhookrx.operations.health import AWAY_COUNTS, FAILURE_COUNTS, WorkerState, health_of
from webhookrx.operations.snapshot import ConsoleStanding, Phase
from webhookrx.router.gate import ClosedConnector, GateReason

AWAY = EMPTY._replace(away="connection refused CANARY")
FULL = EMPTY._replace(full=True)


STANDING = ConsoleStanding("APPLIED", 7, "", 0.0, "", "", False)


class HealthTests(SynchronousTestCase):
    """From snapshot to a judgement."""

    def test_ready(self) -> None:
        """A receiver that runs, with all its endpoints bound and all its observers well, is ready."""
        self.assertEqual(("ready", ()), health_of(make_snapshot()))

    def test_a_console_that_is_away_for_a_moment(self) -> None:
        """A receiver is ready while its console is there, and for ten minutes after."""
        for away in (0.0, AWAY_COUNTS - 1):
            self.assertEqual(("ready", ()), health_of(make_snapshot(console=STANDING._replace(away=away))))

    def test_table(self) -> None:
        """Each thing that is wrong has its state and its sentence."""
        for different, state, reason in (
            ({"phase": Phase.STARTING}, "not_ready", "The receiver is starting."),
            ({"phase": Phase.DRAINING}, "not_ready", "The receiver is draining."),
            ({"endpoints": {"tcp:1": True, "tcp:2": False}}, "not_ready", "Endpoint tcp:2 is not bound."),
            (
                {"console": STANDING._replace(lacks_bundle=True)},
                "not_ready",
                "The router has no rules of its console yet.",
            ),
            (
                {"console": STANDING._replace(away=10_800.0, problem="CANARY")},
                "degraded",
                "No console for 3 h: what runs goes on.",
            ),
            ({"lanes": [LaneStatus("file:/x", stalled=True)]}, "not_ready", "Observer file:/x hangs."),
            (
                {"lanes": [LaneStatus("file:/x", failed_ago=0.0)]},
                "not_ready",
                "Observer file:/x could not make its last messages safe.",
            ),
            ({"lanes": [LaneStatus("spool:/y", backlog=FULL)]}, "not_ready", "Observer spool:/y is full."),
            (
                {"reload_succeeded": False},
                "degraded",
                "The last reload failed: the settings and secrets from before are in use.",
            ),
            (
                {"lanes": [LaneStatus("spool:/y", backlog=AWAY)]},
                "degraded",
                "Observer spool:/y keeps messages for an observer that is away.",
            ),
        ):
            health = health_of(make_snapshot(**different))
            self.assertEqual((state, (reason,)), health)
            self.assertEqual(state != "not_ready", health.is_ready)

    def test_old_failure(self) -> None:
        """An observer whose failure is some time ago may be tried again."""
        for failed_ago, state in (
            (FAILURE_COUNTS - 0.1, "not_ready"),
            (FAILURE_COUNTS, "ready"),
            (86400.0, "ready"),
        ):
            self.assertEqual(
                state, health_of(make_snapshot(lanes=[LaneStatus("file:/x", failed_ago=failed_ago)])).state
            )

    def test_all_reasons(self) -> None:
        """All problems are reasons, the worst first, each observer once."""
        lanes = [
            LaneStatus("spool:/a", backlog=AWAY),
            LaneStatus("spool:/b", stalled=True, failed_ago=1.0, backlog=AWAY._replace(full=True)),
        ]
        self.assertEqual(
            (
                "The receiver is draining.",
                "Observer spool:/b hangs.",
                "Observer spool:/a keeps messages for an observer that is away.",
                "Observer spool:/b keeps messages for an observer that is away.",
            ),
            health_of(make_snapshot(phase=Phase.DRAINING, lanes=lanes)).reasons,
        )

    def test_overloaded(self) -> None:
        """While more is sent than can be read it is degraded, and still ready for messages."""
        health = health_of(make_snapshot(overloaded=True))
        self.assertEqual(("degraded", True), (health.state, health.is_ready))
        self.assertIn("More is sent than can be read", health.reasons[0])

    def test_blocked(self) -> None:
        """A router that is blocked is degraded and says why; with nothing that receives it is not ready."""
        blocked = (GateReason("rules.yaml:3:1: error: x"), GateReason("rules.yaml:9:1: error: y"))
        reasons = tuple(f"The router is blocked: {reason.text}" for reason in blocked)
        self.assertEqual(("degraded", reasons), health_of(make_snapshot(blocked=blocked)))
        self.assertEqual(
            ("not_ready", ("The router is blocked, so it has no connectors.", *reasons)),
            health_of(make_snapshot(blocked=blocked, sources=[])),
        )
        self.assertEqual("ready", health_of(make_snapshot(sources=[])).state)

    def test_closed(self) -> None:
        """Connectors that could not begin are a reason; without any other source it is not ready."""
        closed = (ClosedConnector("a", "r", 8443, "why"),)
        sentences = ('Connector "a" is closed: why',)
        self.assertEqual(("degraded", sentences), health_of(make_snapshot(closed=closed)))
        self.assertEqual(
            ("not_ready", ("All connectors of the router are closed.", *sentences)),
            health_of(make_snapshot(closed=closed, sources=[])),
        )

    def test_not_taken(self) -> None:
        """Rules that are not taken make it degraded."""
        expected = ("degraded", ("The rules file is not in use: why",))
        self.assertEqual(expected, health_of(make_snapshot(not_taken="The rules file is not in use: why")))

    def test_refused_by_the_console(self) -> None:
        """A router that waits for approval, or is disabled, says so at once, without the words of the console."""
        for refusal, begins in (("pending", "The router waits for approval"), ("disabled", "The console has disabled")):
            standing = STANDING._replace(refusal=refusal, away=7200.0, problem="CANARY")
            state, (reason,) = health_of(make_snapshot(console=standing))
            self.assertEqual("degraded", state)
            self.assertTrue(reason.startswith(begins), reason)

    def test_quiet(self) -> None:
        """What other machines say is not repeated."""
        self.assertNotIn("CANARY", str(health_of(make_snapshot(lanes=[LaneStatus("spool:/y", backlog=AWAY)]))))

    def test_workers(self) -> None:
        """It is ready while one worker receives; one that does not makes it degraded."""
        well, away, stuck = WorkerState(0, True), WorkerState(1, False), WorkerState(2, True, True)
        for workers, expected in (
            ([well, well], ("ready", ())),
            ([well, away], ("degraded", ("Worker 1 is not up.",))),
            ([well, stuck], ("degraded", ("Worker 2 hangs.",))),
            ([away], ("not_ready", ("No worker receives.", "Worker 1 is not up."))),
            ([stuck, away], ("not_ready", ("No worker receives.", "Worker 2 hangs.", "Worker 1 is not up."))),
        ):
            self.assertEqual(expected, health_of(make_snapshot(), workers))
