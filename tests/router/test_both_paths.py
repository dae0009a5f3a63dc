"""
Tests that the router form makes the same messages with the compiled path and without it.
"""

from __future__ import annotations

from itertools import product
from unittest import SkipTest, mock

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.test_samples import CLASSIFIER, DATA
from webhookrx import speedups
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Accepted, Admission, Judge, Receipt
from webhookrx.message.encoders import encode_line, encode_stored
from webhookrx.message.macros import macro_value
from webhookrx.message.message import Message
from webhookrx.router import connector_intake
from webhookrx.router.connector_intake import ConnectorRules, judge_connector, judge_connector_for_lines
from webhookrx.router.steps.processing import Processing
from webhookrx.router.steps.step import Preprocessing, SetField, Step
from webhookrx.senders.http_file import read_http_file

SAMPLES = [read_http_file(path.read_bytes()) for path in sorted((DATA / "samples").glob("*.http"))]
STEPS = (
    Step(expression="log.attributes.copy = log.body; log.body.added = 1;"),
    Step(set=SetField("meta.connector.labels.seen", "yes"), condition="log.body.message EXISTS"),
)


def rules_of(preprocessing: Preprocessing) -> ConnectorRules:
    """Return the rules of a connector."""
    return ConnectorRules(
        "in",
        port=8443,
        labels={"team": "secops"},
        router="edge-1",
        router_labels={"site": "fra"},
        processing=Processing(preprocessing, CLASSIFIER),
        body_limit=1 << 20,
        unpack_ratio=100,
    )


RULES = tuple(
    rules_of(each)
    for each in (
        Preprocessing(),
        Preprocessing(classify=True),
        Preprocessing(classify=True, parse=True),
        Preprocessing(classify=True, parse=True, steps=(Step(parse=True), Step(unset="log.attributes"))),
        Preprocessing(classify=True, parse=True, steps=STEPS),
    )
)

#: Ends of JSON and of UTF-8, and what is misleading, long or twice there.
PIECES = st.sampled_from(
    [
        b"",
        b" ",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xe2\x80\xa8",
        b"\x7f",
        b"}",
        b"[",
        b'"',
        b",",
        b"\\u0041",
        b"\\ud800",
        b"\\/",
        b"-0",
    ]
) | st.sampled_from([b"1" * 70, b"1.50e3", b'"a":1,"a":2,', b"\xc3\xa9", b"[" * 130 + b"]" * 130, b"null", b"\n{}"])


class BothPathsTests(SynchronousTestCase):
    """Messages of connectors."""

    def setUp(self) -> None:
        if speedups.compiled is None:
            raise SkipTest(speedups.missing)

    def made(self, judge: Judge, head: Head, query: dict[str, str | list[str]], body: bytes) -> list[object]:
        """Return all that connectors make of a request."""
        made: list[object] = []
        for rules in RULES:
            receipt = Receipt(1_700_000_000_123_456_789, "id-1")
            verdict = judge(head, Admission(rules, {"HOST": "a", "b": "c"}, query, []), body, receipt)
            assert isinstance(verdict, Accepted)
            message = verdict.message
            made.append((encode_line(message), encode_stored(message), verdict.notes, verdict.events, verdict.problem))
        return made

    def assert_same(self, head: Head, query: dict[str, str | list[str]], body: bytes) -> None:
        """A request becomes the same messages on all paths."""
        found = self.made(judge_connector, head, query, body)
        self.assertEqual(self.made(judge_connector_for_lines, head, query, body), found)
        with mock.patch.object(connector_intake, "compiled", None):
            self.assertEqual(self.made(judge_connector, head, query, body), found)
            self.assertEqual(self.made(judge_connector_for_lines, head, query, body), found)

    def test_samples(self) -> None:
        """All recorded requests do."""
        for head, query, body in SAMPLES:
            self.assert_same(head, query, body)

    @given(
        st.sampled_from(SAMPLES),
        st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), PIECES), min_size=1, max_size=3),
    )
    def test_changed(
        self, sample: tuple[Head, dict[str, str | list[str]], bytes], changes: list[tuple[float, int, bytes]]
    ) -> None:
        """So do those with bytes that were put in or left out."""
        head, query, body = sample
        for place, size, piece in changes:
            start = int(place * len(body))
            body = body[:start] + piece + body[start + size :]
        self.assert_same(head, query, body)

    def test_macros(self) -> None:
        """Macros are the same whether or not the line was made first; what stores ask for takes no values."""
        head, query, body = next(each for each in SAMPLES if each[2].startswith(b'{"'))
        receipt = Receipt(1, "id-1")
        for rules, groups in product(
            RULES, ({}, {"HOST": "h", "SOURCE": "s"}, {"HOST": "", "SOURCE": "", "RCPTID": "r"})
        ):
            admission = Admission(rules, groups, query, [])
            valued = judge_connector(head, admission, body, receipt)
            judged = mock.Mock(wraps=judge_connector)
            with mock.patch.object(connector_intake, "judge_connector", judged):
                lined = judge_connector_for_lines(head, admission, body, receipt)
            assert isinstance(valued, Accepted)
            assert isinstance(lined, Accepted)
            for name in ("RCPTID", "SOURCE", "FULLHOST", "HOST"):
                self.assertEqual(macro_value(name, valued.message), macro_value(name, lined.message))
            judged.assert_not_called()
            for name in ("SOURCEIP", "MESSAGE", "HOST", "SOURCE"):
                self.assertEqual(macro_value(name, valued.message), macro_value(name, lined.message))

    def test_untouched(self) -> None:
        """An object that no step changes is in the line as it came; without steps it is not even decoded."""
        head, query, body = next(each for each in SAMPLES if each[2].startswith(b'{"'))
        for rules, is_made, is_decoded in zip(
            RULES, (True, True, True, True, False), (False, True, True, True, True), strict=True
        ):
            decode = mock.Mock(side_effect=connector_intake.decode_exactly)
            with mock.patch.object(connector_intake, "decode_exactly", decode):
                verdict = judge_connector_for_lines(head, Admission(rules, {}, query, []), body, Receipt(1, "id-1"))
            assert isinstance(verdict, Accepted)
            self.assertEqual((verdict.message.line is not None, decode.called), (is_made, is_decoded))

    def test_changed_inside(self) -> None:
        """A body in which a step has changed a member is written as it is then."""
        for steps in (
            (Step(expression="log.body.a.b = 2;"),),
            (Step(set=SetField("log.body.a.b", 2)),),
            (Step(expression="$MESSAGE = log.body.a;"), Step(expression="log.body.b = 2;")),
        ):
            rules = rules_of(Preprocessing(classify=True, parse=True, steps=steps))
            verdict = judge_connector_for_lines(
                SAMPLES[0][0], Admission(rules, {}, {}, []), b'{"a": {"b": 1}}', Receipt(1, "id-1")
            )
            assert isinstance(verdict, Accepted)
            self.assertIn(b'"b":2}', encode_line(verdict.message))
            self.assertEqual(encode_line(verdict.message), encode_line(Message(verdict.message.values, 1)))
