"""
Tests for L{webhookrx.console.taps.console_taps}: which routers take part in a tap, and how many there may be.
"""

from __future__ import annotations

from typing import Any

import msgspec
from twisted.internet.defer import Deferred

from tests.console.taps.tapping import MARA_AT_HOME, TapCase, message
from webhookrx.console.api.principal import Principal
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.taps.console_taps import MOST_OF_PERSON, MOST_TAPPED, MOST_TAPS, TapsStatus
from webhookrx.console.taps.tap_order import TapOrder
from webhookrx.console.taps.tap_routes import end_tap, start_tap
from webhookrx.management.agent_protocol import (
    MOST_COMMANDS,
    ConnectorState,
    GateState,
    ReloadCommand,
)
from webhookrx.management.tap_protocol import TapCommand

KEY = "/etc/webhookrx/tls/k.pem"
RULE = "name: hooks\nselector: os = linux\nprotocol: HTTP\nport: 8080\nlabels: {product: github}\n"
HOOKS = ConnectorState(name="fra-1-hooks-hooks", rule="hooks", port=8080)


class StartTests(TapCase):
    """Who takes part."""

    def test_started(self) -> None:
        """Routers that match and say yes take part; those that do not match are asked nothing."""
        fra, ber = self.reported("fra-1", os="linux"), self.reported("ber-1", os="freebsd")
        started = self.started(fra, routers="os = linux", filter="a = b", rate=5.0, lasts=30)
        self.assertEqual((started.routers, started.left_out, started.seconds), (("fra-1",), (), 30))
        self.assertEqual(self.commands(ber), ())

    def test_told(self) -> None:
        """A router is told of the tap by the id that the person gets."""
        fra = self.reported("fra-1")
        asked = self.asked(filter="a = b")
        (told,) = self.commands(fra)
        assert isinstance(told, TapCommand)
        self.assertEqual((told.filter, told.point, told.seconds), ("a = b", "", 600))
        fra.report(base=1, answers=({"id": told.id},))
        self.assertEqual(self.successResultOf(asked).id, told.id)

    def test_left_out(self) -> None:
        """Each router that takes no part is named with the reason: its own words, or what the console knows."""
        self.save_rule(RULE)
        self.reported("ber-1", os="linux")  # and is away from then on
        yes, no, silent = (self.reported(f"{name}-1", os="linux") for name in ("fra", "ham", "muc"))
        none = self.router("str-1", os="linux")
        waits = self.router("wue-1", approve="manual", os="linux")
        self.wall += 3_600
        for each in (yes, no, silent, none):
            each.report(base=each.number, connectors=(HOOKS,) if each is not none else ())
        asked = self.asked(connectors="connector.labels.product = github")
        self.answer(yes)
        self.answer(no, problem="Taps are not allowed here.", code="not_allowed")
        self.commands(silent)
        self.assertEqual(waits.sync().responseCode, 403)
        self.assertEqual(self.commands(none), ())
        self.assertNoResult(asked)
        self.clock.advance(5)
        started = self.successResultOf(asked)
        self.assertEqual(started.routers, ("fra-1",))
        self.assertEqual(
            [(each.router, each.code, each.reason) for each in started.left_out],
            [
                ("ber-1", "away", "It is away."),
                ("ham-1", "not_allowed", "Taps are not allowed here."),
                ("muc-1", "unanswered", "It has not answered within 5 seconds."),
                ("str-1", "no_connector", "None of the connectors that it has reported matches."),
            ],
        )
        self.assertEqual(started.left_out_in_all, 4)

    def test_connectors(self) -> None:
        """A router is asked when one of its connectors may be meant: by the labels of its rule, its name or port."""
        self.save_rule(RULE)
        fra = self.router("fra-1", os="linux")
        fra.report(connectors=(HOOKS, ConnectorState(name="own", rule="", port=0)))
        for query, matches in (
            ("connector.labels.product = github", True),
            ("connector.labels.vendor = generic", True),
            ("connector.port = 8080", True),
            ("connector.name = fra-1-hooks-hooks", True),
            ("connector.name = own", False),
            ("connector.labels.product = gitlab", False),
        ):
            with self.subTest(query=query):
                self.clock.advance(100)
                asked = self.asked(connectors=query)
                told = self.commands(fra)
                self.assertEqual(any(isinstance(each, TapCommand) for each in told), matches)
                self.clock.advance(5)
                self.failureResultOf(asked, ApiProblem)

    def test_all_gates_closed(self) -> None:
        """Where all routers lack files, nothing starts, and the answer has the paths (specification 2.2 rule 7)."""
        fra, ber = self.router("fra-1"), self.router("ber-1")
        for each in (fra, ber):
            each.report(gate=GateState(reasons=("A key is missing.",), paths=(KEY,)))
        self.reported("ham-1")
        asked = self.asked(connectors="connector.port = 1")
        self.answer(fra, problem="Blocked.", code="reload_gate_closed", paths=(KEY, "/etc/a"))
        self.answer(ber, problem="Blocked.", code="reload_gate_closed", paths=(KEY,))
        problem: Any = self.failureResultOf(asked, ApiProblem).value
        self.assertEqual((problem.kind.code, problem.kind.status), ("reload_gate_closed", 409))
        document = msgspec.json.decode(msgspec.json.encode(problem.document()))
        self.assertEqual(document["paths"], ["/etc/a", KEY])
        self.assertEqual([each["router"] for each in document["left_out"]], ["ber-1", "fra-1", "ham-1"])
        self.assertEqual(self.audit(), [])

    def test_one_gate_closed(self) -> None:
        """A router whose gate is closed is left out with its paths; others take part."""
        fra, ber = self.reported("fra-1"), self.reported("ber-1")
        asked = self.asked()
        self.answer(ber, problem="Blocked.", code="reload_gate_closed", paths=tuple(f"/{n}" for n in range(30)))
        self.answer(fra)
        (left_out,) = self.successResultOf(asked).left_out
        self.assertEqual((left_out.router, left_out.code), ("ber-1", "reload_gate_closed"))
        self.assertEqual(left_out.paths, tuple(f"/{n}" for n in range(20)))

    def test_nothing_to_tap(self) -> None:
        """Without a router that takes part there is no tap, and the answer says why."""
        self.assertEqual((self.refused().kind.code, self.refused().detail), ("nothing_to_tap", "No router matches."))
        fra, ber = self.reported("fra-1"), self.reported("ber-1")
        asked = self.asked()
        self.answer(fra, problem="No.", code="not_allowed")
        self.answer(ber, problem="Blocked.", code="reload_gate_closed", paths=(KEY,))
        problem: Any = self.failureResultOf(asked, ApiProblem).value
        self.assertEqual(problem.kind.code, "nothing_to_tap")
        self.assertEqual([each.code for each in problem.members["left_out"]], ["reload_gate_closed", "not_allowed"])
        self.assertEqual(self.taps.status, TapsStatus())

    def test_events_before_the_answer(self) -> None:
        """What a router shows before its answer has come is kept, and counts as one that never comes."""
        fra = self.reported("fra-1")
        asked = self.asked()
        (told,) = self.commands(fra)
        self.assertEqual(self.shows(fra, told.id, 1, message()), 204)
        self.clock.advance(5)
        started = self.successResultOf(asked)
        self.assertEqual(started.routers, ("fra-1",))
        self.assertEqual([row["id"] for row in self.read(started).rows], ["m1"])

    def test_late_router(self) -> None:
        """A router that has said nothing in time is told to end the tap, and not heard."""
        fra, ber = self.reported("fra-1"), self.reported("ber-1")
        asked = self.asked()
        self.answer(fra)
        (told,) = self.commands(ber)
        self.clock.advance(5)
        started = self.successResultOf(asked)
        self.assertEqual(self.shows(ber, started.id, 1, message()), 404)
        self.assertEqual([each.tap for each in self.commands(ber)], [told.id])  # type: ignore[union-attr]
        self.assertEqual(self.read(started).rows, [])

    def test_a_router_with_too_many_commands(self) -> None:
        """A router for which too many commands wait is left out as one that does not answer."""
        fra, ber = self.reported("fra-1"), self.reported("ber-1")
        for _ in range(MOST_COMMANDS):
            self.fleet.polls.command(fra.guid, lambda id: ReloadCommand(id=id), 60).addErrback(lambda failure: None)
        started = self.started(ber)
        self.assertEqual([(each.router, each.code) for each in started.left_out], [("fra-1", "unanswered")])


class BoundsTests(TapCase):
    """How many there may be."""

    def test_routers(self) -> None:
        """More routers than a tap takes are refused before one is asked."""
        guids = [self.reported(f"fra-{number}").guid for number in range(MOST_TAPPED + 1)]
        problem = self.refused()
        self.assertEqual((problem.kind.code, problem.kind.status), ("too_many_routers", 422))
        self.assertEqual(problem.members, {"matched": MOST_TAPPED + 1, "most": MOST_TAPPED})
        self.assertEqual([self.fleet.polls.due(guid) for guid in guids], [()] * len(guids))

    def test_of_one_person(self) -> None:
        """A person has some taps at a time, however they came in; those whose routers are still asked count."""
        fra = self.reported("fra-1")
        by_token = Principal("mara", "admin", tap=True, token_id="t1")
        first = self.started(fra)
        for number in range(MOST_OF_PERSON - 1):
            self.asked(by_token if number % 2 else MARA_AT_HOME)
        for principal in (MARA_AT_HOME, by_token):
            self.assertEqual((self.refused(principal).kind.code), "too_many")
        self.done(end_tap(self.call(id=first.id)))
        self.assertNoResult(self.asked())
        self.assertNoResult(self.asked(Principal("ole", "viewer", tap=True, session_id="s2")))

    def test_in_all(self) -> None:
        """A console has some taps at a time."""
        self.reported("fra-1")
        for number in range(MOST_TAPS):
            self.assertNoResult(self.asked(Principal(f"person-{number}", "viewer", tap=True)))
        self.assertEqual(self.refused().kind.code, "too_many")

    def test_pace(self) -> None:
        """Taps that are started one after the other have a pace, also those that come to nothing."""
        codes = [self.refused().kind.code for _ in range(12)]
        self.assertEqual(codes, ["nothing_to_tap"] * 10 + ["too_many"] * 2)
        self.clock.advance(5)
        self.assertEqual(self.refused().kind.code, "nothing_to_tap")


class NoRoutersTests(TapCase):
    def test_before_the_routers_are_read(self) -> None:
        """While the console has no routers yet, it says so."""
        self.console.fleet = None
        failed = Deferred.fromCoroutine(start_tap(self.call(body=TapOrder())))
        self.assertEqual(self.failureResultOf(failed, ApiProblem).value.kind.code, "busy")  # type: ignore[attr-defined]
