"""
Tests for L{webhookrx.management.tap_protocol}.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import CantTap
from webhookrx.management.agent_body import read_body, write_body
from webhookrx.management.tap_protocol import MOST_EVENTS, TapCommand, TapEvents
from webhookrx.tapping.tap_request import TapRequest, parsed

MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "source": st.text(max_size=3) | st.integers(250, 256).map("a".__mul__),
        "connectors": st.sampled_from(["", "connector.port = 8443"]) | st.integers(4090, 4100).map(" ".__mul__),
        "point": st.sampled_from(
            ["", "input", "output", "refused", "service", "probe:a-1._", "probe:", "probe:\u00e9", "probe:" + "a" * 64]
        )
        | st.sampled_from(["probe:" + "a" * 65, "middle", "input\n", "probe:a\n"]),
        "filter": st.integers(4090, 4100).map(" ".__mul__),
        "rate": st.floats(-1, 25) | st.integers(-1, 25),
        "seconds": st.floats(0, 4000) | st.integers(0, 4000),
    },
)


class TapCommandTests(SynchronousTestCase):
    @given(MEMBERS)
    def test_as_request(self, members: dict[str, Any]) -> None:
        """A command may ask for what a tap at the receiver itself may ask for, and for nothing else."""
        command = {"command": "tap", "id": "t", **members}
        self.assertEqual(_is_read(TapCommand, command), _is_taken(members), members)

    def test_defaults(self) -> None:
        """What is not asked for is as at the receiver itself."""
        told, asked = msgspec.structs.asdict(TapCommand(id="t")), msgspec.structs.asdict(TapRequest())
        self.assertEqual({name: each for name, each in told.items() if name != "id"}, asked)


class TapEventsTests(SynchronousTestCase):
    def test_round_trip(self) -> None:
        """Rows come as they were sent, byte for byte."""
        events = TapEvents(number=1, seen=9, matched=2, shown=1, not_looked_at=0, events=(Raw(b'{"a": 1}'),))
        self.assertEqual(bytes(read_body(write_body(events), TapEvents).events[0]), b'{"a": 1}')

    def test_bounds(self) -> None:
        """More rows, and more bytes, than one body may have are refused."""
        counts = b'{"number":1,"seen":1,"matched":1,"shown":1,"not_looked_at":0,"events":[%s]}'
        read_body(counts % b",".join([b"{}"] * MOST_EVENTS), TapEvents)
        for rows in ([b"{}"] * (MOST_EVENTS + 1), [b'"%s"' % (b"a" * TapEvents.most_bytes)]):
            self.assertRaises(ValueError, read_body, counts % b",".join(rows), TapEvents)


def _is_read(kind: Any, members: dict[str, Any]) -> bool:
    try:
        msgspec.convert(members, kind)
    except msgspec.ValidationError:
        return False
    return True


def _is_taken(members: dict[str, Any]) -> bool:
    if not _is_read(TapRequest, members):
        return False
    try:
        # Other rules than bounds are the receiver's alone.
        parsed(TapRequest(point=members.get("point", "")))
    except CantTap:
        return False
    return True
