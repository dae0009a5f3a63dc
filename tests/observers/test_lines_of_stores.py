"""What stores get of messages whose lines were made first."""

from __future__ import annotations

import os
from itertools import product
from unittest import mock

from hypothesis import given
from twisted.trial.unittest import SynchronousTestCase

from tests.intake.test_line_judge import BODIES, HEADS, RECEIPT, RULES, make_rules
from tests.specs import parse_observer
from webhookrx.intake import line_judge
from webhookrx.intake.judge import Accepted, Refused, admit, judge
from webhookrx.intake.line_judge import judge_for_lines
from webhookrx.interfaces import IMessageObserver
from webhookrx.observers.registry import build
from webhookrx.pipeline.batch import Encoders
from webhookrx.speedups import compiled

#: They ask for nothing but what is known of a line.
PLAIN = (
    "kafka:kafka://h/t",
    "kafka:kafka://h/t:key=${SOURCE}:id=${RCPTID}",
    "nats:nats://h/logs.${SOURCE}.${HOST}",
    "redis:redis://h/0/s",
    "postgresql:postgresql://h/d/t:user=u:tls=no",
    "http:http://h/",
    "clickhouse:http://h/d.t",
    "elasticsearch:http://h/logs-%Y",
    "splunk-hec:http://127.0.0.1:token_file=TOKEN",
    "loki:http://h",
)
#: They ask for more.
OTHERS = (
    r"kafka:kafka://h/t:key=${PROGRAM\:-x}/${FULLHOST\:-none}:id=${a}",
    "kafka:kafka://h/t:template=${HOST} $(format-json):key=",
    "nats:nats://h/logs.${TRANSPORT}",
    "elasticsearch:http://h/logs-${SOURCE}:id=off",
    "loki:http://h:labels=host=${HOST},a=${a.b}:template=${MESSAGE}",
    "otlp:http://h",
)


class LineCase(SynchronousTestCase):
    """Has an observer of each spec string."""

    def setUp(self) -> None:
        """Make them; they connect to nothing."""
        token = os.path.abspath(self.mktemp())
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("token")
        self.plain, self.others = (
            [self.build(spec.replace("TOKEN", token)) for spec in specs] for specs in (PLAIN, OTHERS)
        )

    def build(self, spec: str) -> IMessageObserver:
        """Make an observer."""
        return build(parse_observer(spec), "written")


class SameTests(LineCase):
    """Both ways are the same to the last byte."""

    @given(BODIES)
    def test_same(self, body: bytes) -> None:
        """For any body, under any rules, with any head."""
        self.assert_same(body)

    def test_hosts(self) -> None:
        """For any kind of host that a body may set, also a long one."""
        for host in (
            *("1", "null", '""', '[{"HOST":"x"}]', '{"HOST":"x"}', '"\\\\"', '"a\\""', '"\\u0041"', '"é"', "true"),
            *('"' + "h" * size + '"' for size in (254, 255, 256, 9999)),
        ):
            self.assert_same(f'{{"a":1,"HOST":{host},"@timestamp":2}}'.encode())
        self.assert_same(b'{"a":"' + b"x" * 70_000 + b'"}')

    def assert_same(self, body: bytes) -> None:
        """Fail unless both ways are the same for this body, under all rules."""
        for rules, (head, groups) in product(RULES, HEADS):
            admission = admit(head, rules, groups)
            assert not isinstance(admission, Refused)
            expected = judge(head, admission, body, RECEIPT)
            if isinstance(expected, Refused):
                continue
            judged = judge_for_lines(rules)[0]
            for observer in (*self.plain, *self.others):
                verdict = judged(head, admission, body, RECEIPT)
                assert isinstance(verdict, Accepted)
                self.assertEqual(observer.prepare(expected.message), observer.prepare(verdict.message), observer.spec)


class ValuesTests(LineCase):
    """Who asks for lines makes do with them."""

    if compiled is None:
        skip = "the compiled path is not in use"

    def test_no_values(self) -> None:
        """A usual message is prepared without its values, but for a host with escapes."""
        for body, is_made in ((b'{"a":1}', False), (b'{"HOST":"h"}', False), (b'{"HOST":"\\n"}', True)):
            for observer in self.plain:
                judged = mock.Mock(wraps=judge)
                rules, head = make_rules(), HEADS[0][0]
                admission = admit(head, rules, {})
                assert not isinstance(admission, Refused)
                with mock.patch.object(line_judge, "judge", judged):
                    verdict = judge_for_lines(rules)[0](head, admission, body, RECEIPT)
                assert isinstance(verdict, Accepted)
                observer.prepare(verdict.message)
                if not is_made:
                    judged.assert_not_called()
                elif observer.spec.startswith("postgresql"):
                    judged.assert_called_once()

    def test_who_asks(self) -> None:
        """All that put the line to what they make ask for lines, and no others."""

        def asks(observer: IMessageObserver) -> bool:
            return Encoders([observer], lambda *failure: None).make_lines

        self.assertEqual([True] * len(PLAIN), [asks(observer) for observer in self.plain])
        self.assertEqual([True, False, True, True, False, False], [asks(observer) for observer in self.others])
