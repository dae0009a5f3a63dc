"""
Tests for L{webhookrx.console.taps.tap_order}.
"""

from __future__ import annotations

from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.console.api.problems import INVALID, ApiProblem
from webhookrx.console.taps.tap_order import TapOrder, checked
from webhookrx.management.agent_protocol import AgentCommand
from webhookrx.management.tap_protocol import TapCommand


def read(**members: Any) -> TapOrder:
    """Return an order as a call has it."""
    return msgspec.json.decode(msgspec.json.encode(members), type=TapOrder)


class TapOrderTests(SynchronousTestCase):
    def test_command(self) -> None:
        """A router is told what was asked for, but which routers."""
        order = read(
            routers="label.site = fra",
            connectors="connector.labels.product = github",
            source="hooks",
            point="probe:after",
            filter="log.body = a",
            rate=2.5,
            **{"for": "90s"},
        )
        told = checked(order).command("t1")
        self.assertEqual(
            told,
            TapCommand(
                id="t1",
                source="hooks",
                connectors="connector.labels.product = github",
                point="probe:after",
                filter="log.body = a",
                rate=2.5,
                seconds=90,
            ),
        )
        # What the console may send is within what a router takes.
        self.assertEqual(msgspec.json.decode(msgspec.json.encode(told), type=AgentCommand), told)

    def test_defaults(self) -> None:
        """Nothing given is input and output of all, once a second, for ten minutes."""
        self.assertEqual(checked(read()).command("t"), TapCommand(id="t", point="", rate=1.0, seconds=600))

    def test_times(self) -> None:
        """A time is a text with a unit, or seconds; parts of seconds are whole ones."""
        for given, seconds in (("10m", 600), (90, 90), ("1h", 3600), ("1.5s", 2), (1, 1)):
            self.assertEqual(checked(read(**{"for": given})).seconds, seconds, given)

    def test_wrong(self) -> None:
        """What a router would refuse is refused before one is asked, with a sentence."""
        for members, sentence in (
            ({"for": "61m"}, "for: A tap lasts from 1 to 3600 seconds."),
            ({"for": "0s"}, "for: A tap lasts from 1 to 3600 seconds."),
            ({"for": -1}, "for: A tap lasts from 1 to 3600 seconds."),
            ({"for": "soon"}, "for: 'soon' is not a duration"),
            ({"point": "middle"}, "A tap shows one of the points"),
            ({"point": "service", "source": "hooks"}, "are of no source and no connector"),
            ({"routers": "label.site ="}, "The query of routers is wrong"),
            ({"connectors": "("}, "The query of connectors is wrong"),
            ({"filter": "a = "}, "The query of filter is wrong"),
        ):
            with self.subTest(members=members):
                problem = self.assertRaises(ApiProblem, checked, read(**members))
                self.assertIs(problem.kind, INVALID)
                self.assertIn(sentence, problem.detail)

    def test_bounds(self) -> None:
        """What is out of bounds is not read at all."""
        for members in (
            {"rate": 0},
            {"rate": 21},
            {"filter": "a" * 4097},
            {"for": 1.5},
            {"more": 1},
        ):
            with self.subTest(members=members), self.assertRaises(msgspec.ValidationError):
                read(**members)
