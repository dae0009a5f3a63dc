"""
Tests for L{webhookrx.intake.line_judge}.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import Any, TypeVar
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.intake.json_texts import json_texts, mutated
from webhookrx.intake import line_judge
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.judge import Accepted, Receipt, Refused, SourceRules, admit, judge
from webhookrx.intake.line_judge import judge_for_lines
from webhookrx.intake.pairs import MAX_PAIRS
from webhookrx.message.encoders import encode_line, encode_stored
from webhookrx.message.identity import message_id
from webhookrx.message.macros import HARD_MACROS, macro_value
from webhookrx.message.message import Message
from webhookrx.message.template import Template
from webhookrx.speedups import compiled
from webhookrx.yield_point import LONG_CALL, pause_by

T = TypeVar("T")

RECEIPT = Receipt(1_767_323_045_000_701_234, "id-1")
PEER = Peer("192.0.2.7", 40000, False)
FORM = (b"content-type", b"application/x-www-form-urlencoded")

#: Names that mean something, together with those that a prefix or joining makes of others.
_NAMES = [
    *(
        "HOST",
        "MESSAGE",
        "SOURCE",
        "MSG",
        "FULLHOST",
        "ISODATE",
        "DATE",
        "TAGS",
        "SOURCEIP",
        "RCPTID",
        "PROGRAM",
        "OST",
    ),
    *("webhook", "webhook.headers", "headers", "webhook.query", "query", "webhook.query.a", "webhook.left_out.a"),
    *("webhook.sender", "sender", "batch", "webhook.batch", "index", "batch.index", "webhook.client.cn"),
    *("webhook.id", "a", "b", "a.b", "a.b.c", "b.c", "1", "2", "x1"),
]
BODIES = st.one_of(
    json_texts(st.sampled_from(_NAMES).map(lambda name: f'"{name}"'.encode())),
    mutated(json_texts(st.sampled_from(_NAMES).map(lambda name: f'"{name}"'.encode()))),
    st.binary(max_size=60),
    st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from([b"", b"a=b&c=d", b"payload=%7B%22a%22%3A1%7D", b"{'a':1}", b'<13>text\n\x1b\x01\t"\\\xc3\xa9\n']),
)


def make_rules(**options: Any) -> SourceRules:
    """Return the rules of C{webhook-json}, but for those options."""
    return SourceRules(**{"name": "default", "parse_json": True, "body_limit": 1000, "unpack_ratio": 100, **options})


RULES = [
    make_rules(),
    make_rules(parse_json=False),
    make_rules(parse_json=False, keep_text=False, include_request_headers=True),
    *(
        make_rules(prefix=prefix)
        for prefix in ("x", "H", "a.", "webhook", "webhook.", "webhook.query.", "é\u2028", '"')
    ),
    make_rules(keep_text=False, prefix="."),
    make_rules(keep_unparsed=False, name='na"me', include_request_headers=True),
    make_rules(proxy_header="x-forwarded-for", name="n\x7f"),
    make_rules(proxy_header="x-forwarded-for", include_request_headers=True),
]
HEADS: list[tuple[Head, dict[str, bytes]]] = [
    (Head(b"POST", b"/", None, (), PEER), {}),
    (Head(b"POST", b"/", b"", (), Peer('fe80::1%"', None, True)), {"HOST": b"", "PROGRAM": b"p"}),
    (Head(b"POST", b"/", b"a=1&a=%22&b=%C3%A9", (FORM, (b"x-forwarded-for", b"192.0.2.99")), PEER), {"HOST": b"h%22"}),
    (Head(b"POST", b"/", b"a=%E2%80%A8", ((b"x-forwarded-for", b"no"), (b"cookie", b"secret")), PEER), {"a": b"g"}),
    (Head(b"POST", b"/", b"a", ((b"x-odd", b"\xff\x7f"),), PEER), {"MESSAGE": b"m", "TAGS": b"t"}),
]


class LineJudgeCase(SynchronousTestCase):
    """Judges requests by both paths."""

    def both(self, body: bytes, rules: SourceRules, head: Head, groups: dict[str, bytes]) -> Accepted | Refused:
        """Judge a request; fail if the Python path does anything else with it."""
        admission = admit(head, rules, groups)
        assert not isinstance(admission, Refused)
        expected = judge(head, admission, body, RECEIPT)
        verdict = judge_for_lines(rules)[0](head, admission, body, RECEIPT)
        if isinstance(expected, Refused):
            self.assertEqual(expected, verdict)
            return expected
        assert isinstance(verdict, Accepted)
        expected_line = encode_line(expected.message)
        self.assertEqual(expected_line, encode_line(verdict.message))
        for name in ("RCPTID", "SOURCE", "HOST", "FULLHOST", "MESSAGE"):  # the first ones before the values are made
            self.assertEqual(macro_value(name, expected.message), macro_value(name, verdict.message), name)
            key = Template.parse(f"${{{name}:-none}}")
            self.assertEqual(key.render(expected.message), key.render(verdict.message))
        self.assertEqual(message_id(expected.message), message_id(verdict.message))
        self.assertEqual(list(expected.message.values.items()), list(verdict.message.values.items()))
        self.assertEqual(expected.message.received, verdict.message.received)
        self.assertEqual(
            (expected.notes, expected.left_out, expected.events, expected.problem),
            (verdict.notes, verdict.left_out, verdict.events, verdict.problem),
        )
        return verdict

    def line(
        self, body: bytes, head: Head = HEADS[0][0], groups: dict[str, bytes] | None = None, **options: Any
    ) -> str | None:
        """Return the line that was made in C, if it was; up to what each line ends with."""
        verdict = self.both(body, make_rules(**options), head, groups or {})
        line = verdict.message.line if isinstance(verdict, Accepted) else None
        return None if line is None else line.decode().partition(f',"RAWMSG_SIZE":{len(body)},')[0]


class EqualityTests(LineJudgeCase):
    """Whatever comes, lines and values are those of the Python path."""

    @given(BODIES)
    def test_same_as_in_python(self, body: bytes) -> None:
        """For any body, under any rules, with any head."""
        for rules, (head, groups) in product(RULES, HEADS):
            self.both(body, rules, head, groups)

    def test_special_names(self) -> None:
        """For each macro and each name of the receiver's own, with and without a prefix."""
        for name in (*sorted(HARD_MACROS), *_NAMES):
            for value in ("1", '""', "null", '{"a":1}', "{}", "[]"):
                for split in (0, 1, 3):
                    body = f'{{"b":0,"{name[split:]}":{value},"c":0}}'.encode()
                    self.both(body, make_rules(prefix=name[:split]), *HEADS[0])
                    self.both(b"[1," + body + b"]", make_rules(prefix=name[:split]), *HEADS[0])

    def test_long_bodies(self) -> None:
        """For bodies that take memory of their own, and are read without the interpreter's lock."""
        objects = [{"name": "é" * 9, "inner": {"list": [1.5, {"a": "\n"}], "text": '"' * 30}}] * 50
        for size in (1, 20, 300):
            members = {f"{number}": objects[: size // 10 + 1] for number in range(size)}
            for value in (members, [members], "x" * size * 1000, {"a": {"b": members}}):
                body = json.dumps(value, indent=1, ensure_ascii=False).encode()
                for rules in RULES[:3]:
                    self.both(body, rules, *HEADS[0])


class TakenTests(LineJudgeCase):
    """What is usual becomes a line in C."""

    if compiled is None:
        skip = "the compiled path is not in use"

    def assert_line(self, expected: str, body: str, **options: Any) -> None:
        """Fail unless this line is made in C."""
        front = '{"ISODATE":"2026-01-02T03:04:05.000701+00:00","HOST":'
        self.assertEqual(front + expected, self.line(body.encode(), **options))

    def test_pairs(self) -> None:
        """Members are pairs, nested ones joined by dots; arrays and empty objects are values."""
        seen = ',"SOURCEIP":"192.0.2.7","SOURCEPORT":40000,"TRANSPORT":"http"'
        begin = '"192.0.2.7","MESSAGE":'
        source = ',"SOURCE":"default"'
        for body, message, pairs in (
            ("{}", r'"{}"', ""),
            ('{"a":1.50}', r'"{\"a\":1.50}"', ',"a":1.50'),
            ('{"a":{"b":{"c":"é"},"d":{}},"e":[{}]}', None, ',"a.b.c":"é","a.d":{},"e":[{}]'),
            ('[ 1, {"a":2} ]', None, ',"1":1,"2":{"a":2}'),
            ('{"a":1,"MESSAGE":"m","b":2}', '"m"', ',"a":1,"b":2'),
            ('{"MESSAGE":[1],"HOST":"","webhook":{}}', "[1]", ',"webhook":{}'),
        ):
            text = json.dumps(body, ensure_ascii=False) if message is None else message
            self.assert_line(begin + text + source + pairs + seen, body)
        self.assert_line('"h","MESSAGE":2' + source + ',"a":1,"b":2' + seen, '{"a":1,"HOST":"h","b":2,"MESSAGE":2}')
        self.assert_line('[1],"MESSAGE":2' + source + seen, '{"MESSAGE":2,"HOST":[1]}')
        self.assert_line('"192.0.2.7","MESSAGE":"{\'"' + source + seen, "{'", parse_json=False)
        self.assert_line('"192.0.2.7"' + source + ',"p.a":1' + seen, '{"a":1}', keep_text=False, prefix="p.")

    def test_head(self) -> None:
        """Query, groups of the path, headers and the proxy's word are around the pairs."""
        head = Head(b"POST", b"/", b"q=%22", ((b"x-a", b"1"), (b"x-forwarded-for", b"2001:db8::1")), PEER)
        self.assert_line(
            '"h","MESSAGE":"{\\"a\\":1}","SOURCE":"default","a":1,"webhook.query.q":"\\"","PROGRAM":"p",'
            '"webhook.headers":{"X-A":["1"],"X-Forwarded-For":["2001:db8::1"]},"PEERIP":"192.0.2.7","PEERPORT":40000,'
            '"SOURCEIP":"2001:db8::1","TRANSPORT":"http"',
            '{"a":1}',
            head=head,
            groups={"HOST": b"h", "PROGRAM": b"p"},
            include_request_headers=True,
            proxy_header="x-forwarded-for",
        )

    def test_left_to_python(self) -> None:
        """What is special in any way is not made in C."""
        for body in (
            *(
                '{"a":1,"a":2}',
                '{"a":{"b":1},"a.b":2}',
                '{"a.b":1,"a":{"b":2}}',
                '{"a":{"b":1},"a":1}',
                '{"a":{},"a":{}}',
            ),
            *(
                '{"MSG":1}',
                '{"SOURCE":1}',
                '{"DATE":1}',
                '{"webhook":{"headers":1}}',
                '{"webhook.query.a":1}',
                '{"HOST":{"a":1}}',
                '{"HOST":1,"HOST":1}',
            ),
            *('{"PROGRAM":1}', '{"a":1}x', "1", '"a"', "", "{", '{"a":{"b":1}', '{"a":{"b":1,}}', "[1", "{'a':1}"),
            "[" + "1," * MAX_PAIRS + "1]",
            "{" + ",".join(f'"{number}":1' for number in range(MAX_PAIRS + 1)) + "}",
            '{"' + "a" * 1024 + '":1}',
            '{"' + "a" * 1023 + '":{"b":1}}',
            '{"' + "a" * 900 + '":{' + ",".join(f'"{number}":1' for number in range(100)) + "}}",
            '{"a":' * 33 + "1" + "}" * 33,
            "\ufeff{}",
            '{"a":"\u2028"}',
        ):
            self.assertIsNone(self.line(body.encode(), groups={"PROGRAM": b"x"}), body[:80])
        for text in (b"\xff", b"\x7f", "\u202e".encode()):
            self.assertIsNone(self.line(text, parse_json=False))
        self.assertIsNone(self.line(b"{}", groups={"TAGS": b"t"}))
        self.assertIsNone(self.line(b"{}", groups={"HOST": b"\x7f"}))
        self.assertIsNone(self.line(b"{}", name="\u2028"))
        self.assertIsNone(self.line(b'{"a":1}', prefix="p" * 1020))

    def test_as_many_pairs_as_in_python(self) -> None:
        """C takes as many members as Python does, eight thousand elements, and names of up to 1023 bytes."""
        self.assertIsNotNone(self.line(b"[" + b"1," * 7999 + b"1]"))
        self.assertIsNotNone(
            self.line(b"{" + b",".join(b'"%d":1' % number for number in range(MAX_PAIRS)) + b"}", prefix="p" * 6)
        )
        self.assertIsNotNone(self.line(b'{"' + b"a" * 1023 + b'":1}'))

    def test_odd_receipts(self) -> None:
        """An id that needs escapes, and a moment before 1970, are left to Python."""
        rules, (head, groups) = make_rules(), HEADS[0]
        for receipt, taken in (
            (RECEIPT, True),
            (Receipt(5, 'a"'), False),
            (Receipt(5, "a\x7f"), False),
            (Receipt(-1, "a"), False),
            (Receipt(999, "é"), True),
        ):
            admission = admit(head, rules, groups)
            assert not isinstance(admission, Refused)
            verdict = judge_for_lines(rules)[0](head, admission, b'{"a":1}', receipt)
            expected = judge(head, admission, b'{"a":1}', receipt)
            assert isinstance(verdict, Accepted)
            assert isinstance(expected, Accepted)
            self.assertEqual(encode_line(expected.message), encode_line(verdict.message))
            self.assertEqual(taken, verdict.message.line is not None)

    def test_full_table(self) -> None:
        """A table with more names than it has room for leaves all names to Python."""
        assert compiled is not None
        names = b"".join(b"%d\0" % number for number in range(9999))
        for special, taken in ((compiled.name_table(b""), True), (compiled.name_table(names), False)):
            line = compiled.line(b'{"a":1}', *[b""] * 9, special, 1, True)
            self.assertEqual(taken, line is not None)

    def test_moment_beyond_all_clocks(self) -> None:
        """A moment that 64 bits do not hold is a mistake of the caller."""
        assert compiled is not None
        self.assertRaises(OverflowError, compiled.line, b"{}", *[b""] * 10, 1 << 63, True)

    def test_many_peers(self) -> None:
        """However many connections there are, each has its own address, and few of them are remembered."""
        rules = make_rules()
        judged, _ = judge_for_lines(rules)
        by_peer = judged.__self__._by_peer  # type: ignore[attr-defined]
        for port in range(3000):
            head = Head(b"POST", b"/", None, (), Peer("192.0.2.7", port, False))
            admission = admit(head, rules, {})
            assert not isinstance(admission, Refused)
            verdict = judged(head, admission, b"{}", RECEIPT)
            assert isinstance(verdict, Accepted)
            self.assertEqual(port, json.loads(encode_line(verdict.message))["SOURCEPORT"])
            self.assertLessEqual(len(by_peer), 1024)


class MessageTests(SynchronousTestCase):
    """A message whose line was made first has values like any other."""

    if compiled is None:
        skip = "the compiled path is not in use"

    def setUp(self) -> None:
        """Make one."""
        head, groups = HEADS[0]
        rules = make_rules()
        self.admission = admit(head, rules, groups)
        assert not isinstance(self.admission, Refused)
        self.judged = mock.Mock(wraps=judge)
        with mock.patch.object(line_judge, "judge", self.judged):
            verdict = judge_for_lines(rules)[0](head, self.admission, b'{"a":1}', RECEIPT)
        assert isinstance(verdict, Accepted)
        self.message = verdict.message

    def test_values_are_made_once_and_only_when_asked_for(self) -> None:
        """Its line takes no values; the first look at them makes them, others find the same."""
        encode_line(self.message)
        self.judged.assert_not_called()
        values = self.message.values
        values["added"] = 1
        self.assertIs(values, self.message.values)
        self.judged.assert_called_once()
        self.assertEqual(1, values["a"])

    def test_what_stores_ask_for_takes_no_values(self) -> None:
        """The id, the source and the address of the peer are known without them, and so is a host that is text."""
        made = [Template.parse(f"${{{name}}}").render(self.message) for name in ("RCPTID", "SOURCE", "FULLHOST")]

        self.assertEqual(["id-1", "default", "192.0.2.7"], made)
        self.assertEqual("id-1", message_id(self.message))
        self.judged.assert_not_called()

    def test_same_stored_message(self) -> None:
        """A spool stores it as it stores one that has its values."""
        self.assertEqual(encode_stored(Message(self.message.values, RECEIPT.received)), encode_stored(self.message))


class LongTests(SynchronousTestCase):
    """Lines of very large bodies are made beside others."""

    if compiled is None:
        skip = "the compiled path is not in use"

    def test_aside(self) -> None:
        """One of more than a mebibyte lets others go first, and becomes the same."""
        calls: list[str] = []

        def aside(call: Callable[[], T]) -> T:
            calls.append("aside")
            return call()

        pause_by(lambda: None, aside)
        self.addCleanup(pause_by, lambda: None)
        rules, (head, groups) = make_rules(), HEADS[0]
        admission = admit(head, rules, groups)
        assert not isinstance(admission, Refused)
        for size, expected in ((LONG_CALL, []), (LONG_CALL + 1, ["aside"])):
            body = b'{"a":"%s"}' % (b"x" * (size - 8))
            calls.clear()
            judge_usual = judge_for_lines(rules)[1]
            assert judge_usual is not None
            verdict = judge_usual(head, admission, body, RECEIPT)
            assert verdict is not None
            self.assertEqual((expected, size), (calls, len(body)))
            expected_verdict = judge(head, admission, body, RECEIPT)
            assert isinstance(expected_verdict, Accepted)
            self.assertTrue(encode_line(verdict.message) == encode_line(expected_verdict.message))


class PureTests(SynchronousTestCase):
    """Without the compiled path there is the other one."""

    def test_pure(self) -> None:
        """Requests are judged by the Python path itself."""
        self.patch(line_judge, "compiled", None)
        self.assertEqual((judge, None), judge_for_lines(make_rules()))
