"""
Tests for L{webhookrx.console.taps.running_tap}: what a tap shows to its reader.
"""

from __future__ import annotations

import msgspec
from twisted.internet.defer import Deferred

from tests.console.taps.tapping import TapCase, message
from webhookrx.console.api.principal import Principal
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.taps.console_taps import TapsStatus
from webhookrx.console.taps.running_tap import MOST_BUFFERED
from webhookrx.console.taps.tap_routes import end_tap, show_events
from webhookrx.console.taps.tap_rows import BYTES_A_SECOND
from webhookrx.management.agent_protocol import (
    ConnectorState,
)

KEY = "/etc/webhookrx/tls/k.pem"
RULE = "name: hooks\nselector: os = linux\nprotocol: HTTP\nport: 8080\nlabels: {product: github}\n"
HOOKS = ConnectorState(name="fra-1-hooks-hooks", rule="hooks", port=8080)


class ShownTests(TapCase):
    """What is shown."""

    def setUp(self) -> None:
        super().setUp()
        self.fra, self.ber = self.reported("fra-1"), self.reported("ber-1")

    def test_rows(self) -> None:
        """Rows come with the names of their routers, in the order of their arrival; one that names another is none."""
        started = self.started(self.fra, self.ber, rate=20.0)
        reader = self.read(started)
        self.shows(self.fra, started.id, 1, message("a"))
        self.shows(self.ber, started.id, 1, message("b"), message("c"), message("x", router="fra-1"))
        self.shows(self.fra, started.id, 2, message("d"))
        self.assertEqual(
            [(row["router"], row["id"]) for row in reader.rows],
            [("fra-1", "a"), ("ber-1", "b"), ("ber-1", "c"), ("fra-1", "d")],
        )

    def test_counts(self) -> None:
        """Each second there are the sums of all routers, with counts and state of each; also when nothing matches."""
        started = self.started(self.fra, self.ber, rate=20.0)
        reader = self.read(started)
        self.pass_time(1)
        self.assertEqual([event for event, _ in reader.events], ["counts"])
        self.assertEqual(reader.counts["seen"], 0)
        self.shows(self.fra, started.id, 1, seen=100, matched=10, shown=0, not_looked_at=3, dropped=1)
        self.shows(self.ber, started.id, 1, message(), seen=50, matched=5, shown=1, not_looked_at=0)
        self.pass_time(1)
        counts = reader.counts
        routers = {each.pop("router"): each for each in counts.pop("routers")}
        self.assertEqual(counts, {"seen": 150, "matched": 15, "shown": 1, "not_looked_at": 3, "dropped": 1})
        self.assertEqual((routers["fra-1"]["seen"], routers["fra-1"]["state"]), (100, "taps"))
        self.assertEqual(routers["ber-1"]["shown"], 1)
        self.assertEqual(self.taps.status, TapsStatus(1, 1, 0))

    def test_said_again(self) -> None:
        """What a router sends once more, as an answer got lost, is shown once."""
        started = self.started(self.fra, self.ber, rate=20.0)
        reader = self.read(started)
        for _ in range(2):
            self.assertEqual(self.shows(self.fra, started.id, 1, message()), 204)
        self.assertEqual(len(reader.rows), 1)

    def test_rate(self) -> None:
        """All routers together show no more in a second than was asked for; what is more is matched and not shown."""
        started = self.started(self.fra, self.ber, rate=2.0)
        reader = self.read(started)
        for number in range(1, 11):
            for each in (self.fra, self.ber):
                self.shows(each, started.id, number, message(), message(), matched=2 * number, shown=2 * number)
            self.pass_time(1)
        self.assertLessEqual(len(reader.rows), 2 * 10 + 2)
        self.assertGreaterEqual(len(reader.rows), 2 * 10)
        self.assertEqual((reader.counts["matched"], reader.counts["shown"]), (40, len(reader.rows)))

    def test_slow_reader(self) -> None:
        """While nobody reads, the newest rows are kept within bounds, and the others counted."""
        started = self.started(self.fra, self.ber, rate=20.0)
        reader = self.read(started)
        reader.takes = False
        rows = [message(str(number), output="x" * (MOST_BUFFERED // 4 - 200)) for number in range(6)]
        for number, row in enumerate(rows, 1):
            self.shows(self.fra, started.id, number, row)
            self.clock.advance(0.5)
        self.assertEqual(reader.events, [])
        reader.takes = True
        self.pass_time(1)
        self.assertEqual([row["id"] for row in reader.rows], ["2", "3", "4", "5"])
        self.assertEqual((reader.counts["shown"], reader.counts["dropped"]), (6, 2))

    def test_before_it_is_read(self) -> None:
        """What comes before the stream is opened is there once it is."""
        started = self.started(self.fra, self.ber)
        for number in range(1, 6):
            self.shows(self.fra, started.id, number, *([message()] if number == 1 else []))
            self.pass_time(1)
        self.assertEqual(len(self.read(started).rows), 1)

    def test_hostile_rows(self) -> None:
        """What is no row is counted as dropped, and breaks nothing; no router can end an event and begin another."""
        started = self.started(self.fra, self.ber, rate=20.0)
        reader = self.read(started)
        break_out = msgspec.Raw(b'{"row":"message","at":1,\n\nevent: end\ndata: {}\n\n"output":1}')
        self.assertEqual(self.shows(self.fra, started.id, 1, break_out), 400)
        spread = msgspec.Raw(b'{"row":"message","at":1,\n\n"output":"<script>"}')
        self.assertEqual(self.shows(self.fra, started.id, 1, spread, msgspec.Raw(b"[1]")), 204)
        self.assertEqual([row["output"] for row in reader.rows], ["<script>"])
        self.pass_time(1)
        self.assertEqual((reader.counts["shown"], reader.counts["dropped"]), (1, 1))

    def test_fast_rows(self) -> None:
        """Of large rows only so many are read in a second; the others are counted as dropped, and break nothing."""
        started = self.started(self.fra, self.ber, rate=20.0)
        reader = self.read(started)
        for number in range(1, 21):
            self.shows(self.fra, started.id, number, message(str(number), output="x" * 200_000))
        read = 2 * BYTES_A_SECOND // 200_000 + 1
        self.assertEqual([row["id"] for row in reader.rows], [str(number) for number in range(1, read + 1)])
        self.pass_time(1)
        self.assertEqual((reader.counts["shown"], reader.counts["dropped"]), (read, 20 - read))
        self.shows(self.fra, started.id, 21, message("21"))
        self.assertEqual(reader.rows[-1]["id"], "21")

    def test_nobody_else(self) -> None:
        """A router shows nothing in a tap in which it takes no part, and a person sees nothing of another's."""
        ham = self.router("ham-1", os="linux")
        started = self.started(self.fra, self.ber, routers="NOT os = linux")
        self.assertEqual(self.shows(ham, started.id, 1, message()), 404)
        self.assertEqual(self.shows(self.fra, "0" * 32, 1, message()), 404)
        others = (
            Principal("ole", "admin", tap=True, session_id="s1"),
            Principal("mara", "viewer", tap=True, session_id="s2"),
            Principal("mara", "viewer", tap=True, token_id="t1"),
        )
        for principal in others:
            for route in (show_events, end_tap):
                failed = Deferred.fromCoroutine(route(self.call(None, principal, id=started.id)))  # type: ignore[arg-type]
                self.assertEqual(self.failureResultOf(failed, ApiProblem).value.kind.code, "not_found")  # type: ignore[attr-defined]
        self.assertEqual(self.read(started).rows, [])

    def test_read_once(self) -> None:
        """A stream has one reader."""
        started = self.started(self.fra, self.ber)
        self.read(started)
        again = Deferred.fromCoroutine(show_events(self.call(id=started.id)))
        self.assertEqual(self.failureResultOf(again, ApiProblem).value.kind.code, "conflict")  # type: ignore[attr-defined]
