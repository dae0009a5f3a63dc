"""
Tests for L{webhookrx.management.agent_protocol}.
"""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.management.agent_body import MOST_REQUEST_BYTES, read_body, write_body
from webhookrx.management.agent_protocol import (
    BUCKETS,
    LONGEST_SPEC,
    MOST_COMMANDS,
    MOST_SENDERS,
    MOST_SPOOLS,
    AppliedState,
    CheckFilesCommand,
    CommandAnswer,
    ConnectorState,
    CountsReport,
    EnrolRequest,
    GateState,
    HeardSender,
    ReloadCommand,
    RenewCommand,
    RouterFacts,
    RouterReport,
    SeriesCounts,
    SpoolState,
    SyncAnswer,
)
from webhookrx.management.tap_protocol import TapCommand, UntapCommand
from webhookrx.store_counts import Histogram

COMMANDS = (
    TapCommand(id="t1", connectors="port = 8443", point="probe:after-parse", filter="a = b", rate=5),
    UntapCommand(id="t2", tap="t1"),
    CheckFilesCommand(id="f1", paths=("/etc/webhookrx/tls/a.pem",)),
    ReloadCommand(id="r1"),
    RenewCommand(id="r2"),
)
REPORT = RouterReport(
    number=3,
    begun=5,
    instance="i1",
    base=2,
    applied=AppliedState(status="BLOCKED", revision=4, digest="ab" * 32, newest=5, error="A key is missing."),
    connectors=(ConnectorState(name="fra-1-hooks-8443", rule="hooks", port=8443),),
    gate=GateState(reasons=("A key is missing.",), paths=("/etc/webhookrx/tls/a.key",)),
    facts=RouterFacts(hostname="fra-1", labels={"site": "fra"}),
    counts=CountsReport(
        begun=5, since=6, until=7, series=(SeriesCounts(name="a", messages=2, refused={"bad_token": 1}),)
    ),
    spools=(SpoolState(name="spool:/x", messages=2, bytes=9, oldest=5), SpoolState(name="spool:/y")),
    senders=(HeardSender("a", "github", 5.5), HeardSender("a", "gitlab")),
    answers=(CommandAnswer(id="f1", files={"/etc/webhookrx/tls/a.pem": "present"}),),
)


class ReadBodyTests(SynchronousTestCase):
    """Tests for L{read_body} and L{write_body}."""

    def test_round_trip(self) -> None:
        """Reports and commands are read as they were written."""
        answer = SyncAnswer(commands=COMMANDS)
        self.assertEqual(read_body(write_body(answer), SyncAnswer).commands, COMMANDS)
        self.assertEqual(read_body(write_body(REPORT), RouterReport), REPORT)

    def test_bundle_bytes(self) -> None:
        """A bundle comes byte for byte, blanks included: its signature and its name depend on them."""
        envelope = b'{"payload":"e30=", "key":"k"}'
        self.assertEqual(bytes(read_body(b'{"bundle":' + envelope + b"}", SyncAnswer).bundle), envelope)
        self.assertEqual(bytes(read_body(b"{}", SyncAnswer).bundle), b"")

    def test_unknown_member(self) -> None:
        """Members of a later version are left out."""
        self.assertEqual(read_body(b'{"later": 1}', SyncAnswer).commands, ())

    def test_bounds(self) -> None:
        """What is outside the bounds is refused, by the place and without the value."""
        reload = {"command": "reload", "id": "r"}
        for text, place in (
            ({"commands": [{"command": "s3cret", "id": "x"}]}, "$.commands[0].command"),
            ({"commands": [{"command": "tap", "id": "x", "rate": 21}]}, "$.commands[0].rate"),
            ({"commands": [{"command": "tap", "id": "x", "seconds": 3601}]}, "$.commands[0].seconds"),
            ({"commands": [{"command": "tap", "id": "x", "point": "s3cret"}]}, "$.commands[0].point"),
            ({"commands": [{"command": "check_files", "id": "x", "paths": []}]}, "$.commands[0].paths"),
            ({"commands": [{"command": "reload", "id": "../s3cret"}]}, "$.commands[0].id"),
            ({"commands": [{"command": "untap", "id": "x", "tap": "s3cret\n"}]}, "$.commands[0].tap"),
            ({"commands": [reload] * (MOST_COMMANDS + 1)}, "$.commands"),
        ):
            with self.subTest(text):
                error = self.assertRaises(ValueError, read_body, json.dumps(text).encode(), SyncAnswer)
                self.assertEqual(str(error), f"The body is not as it should be at {place}.")

    def test_spools(self) -> None:
        """Routers may leave spools out, as older ones do; there are no more, and none larger, than there may be."""
        start: dict[str, object] = {"number": 1, "begun": 1, "instance": "i"}
        self.assertIsNone(read_body(json.dumps(start).encode(), RouterReport).spools)
        for spools, place in (
            ([{"name": "x"}] * (MOST_SPOOLS + 1), "$.spools"),
            ([{"name": "x" * (LONGEST_SPEC + 1)}], "$.spools[0].name"),
            ([{"name": "x", "messages": -1}], "$.spools[0].messages"),
            ([{"name": "x", "bytes": 1 << 53}], "$.spools[0].bytes"),
            ([{"name": "x", "oldest": -1}], "$.spools[0].oldest"),
        ):
            with self.subTest(place):
                body = json.dumps({**start, "spools": spools}).encode()
                error = self.assertRaises(ValueError, read_body, body, RouterReport)
                self.assertEqual(str(error), f"The body is not as it should be at {place}.")

    def test_senders(self) -> None:
        """Senders are bounded, too."""
        for senders, place in (
            ([["a", "x"]] * (MOST_SENDERS + 1), "$.senders"),
            ([["a", "x" * 254, 1.0]], "$.senders[0][1]"),
            ([["a", "x", -1.0]], "$.senders[0][2]"),
            ([["a"]], "$.senders[0]"),
        ):
            with self.subTest(place):
                body = json.dumps({"number": 1, "begun": 1, "instance": "i", "senders": senders}).encode()
                error = self.assertRaises(ValueError, read_body, body, RouterReport)
                self.assertEqual(str(error), f"The body is not as it should be at {place}.")

    def test_too_large(self) -> None:
        """A body that is larger than any of its type is refused before it is read."""
        error = self.assertRaises(ValueError, read_body, b" " * (MOST_REQUEST_BYTES + 1), EnrolRequest)
        self.assertIn("larger than 65,536 bytes", str(error))
        self.assertGreater(RouterReport.most_bytes, EnrolRequest.most_bytes)

    @given(st.binary(max_size=200))
    def test_noise(self, data: bytes) -> None:
        """Anything that is no report is a C{ValueError}."""
        self.assertRaises(ValueError, read_body, data, RouterReport)

    def test_deep(self) -> None:
        """Nesting without end is a C{ValueError}."""
        self.assertRaises(ValueError, read_body, b'{"later":' + b"[" * 30_000, EnrolRequest)

    def test_token_hidden(self) -> None:
        """The repr of a request to enrol shows no token."""
        request = EnrolRequest(token="wrx1.e.s3cret", csr="", name="fra-1", facts=RouterFacts())
        self.assertNotIn("s3cret", repr(request))

    def test_buckets(self) -> None:
        """Counts have room for all buckets of times to an answer."""
        self.assertEqual(len(Histogram.empty().counts), BUCKETS)
