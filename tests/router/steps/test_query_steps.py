"""
Tests for L{webhookrx.router.steps.query_steps}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.diagnostics import ERROR, WARNING
from webhookrx.query import parse
from webhookrx.router.rules.rule import SetField, Step
from webhookrx.router.steps.query_steps import doubtful_fields
from webhookrx.router.steps.step_problem import StepError
from webhookrx.router.steps.steps import compile_step, step_problems


class DoubtfulFieldsTests(SynchronousTestCase):
    """Tests for L{doubtful_fields}."""

    def test_meant(self) -> None:
        """A field that no message has is told with what may be meant, where something may."""
        table = {
            "body.a": "log.body.a",
            "attributes.a.b": "log.attributes.a.b",
            "severity_text": "log.severity_text",
            "time_unix_nano": "log.time_unix_nano",
            "webhook.query.team": "log.attributes.webhook.query.team",
            "router.name": "meta.router.name",
            "host.name": "meta.host.name",
            "product": "meta.product",
            "vendor": "meta.vendor",
            "label.team": "meta.connector.labels.team",
            "labels.team": "meta.connector.labels.team",
            "HOST": "meta.host.name",
            "host_name": "meta.host.name",
            "MESSAGE": "log.body",
            "SOURCEIP": "meta.connection.src_ip",
            "Meta.team": "meta.team",
            "LOG.body.x": "log.body.x",
            "team": "",
            "host_label_team": "",
            "logs.body": "",
        }
        for field, meant in table.items():
            near = f' Did you mean "{meant}"?' if meant else ""
            sentence = f'A message has no field "{field}": all are below log or meta.{near}'
            self.assertEqual([(sentence, 5)], list(doubtful_fields(parse(f"NOT {field} = x"))))

    def test_fine(self) -> None:
        """What is below C{log}, C{meta} and C{connector} is fine, known or not; so are they themselves, and C{@ANY}."""
        query = parse(
            "log.body.a = 1 AND meta.team = x AND log.a EXISTS AND meta EXISTS AND connector.name = a AND @ANY =* x"
        )

        self.assertEqual([], list(doubtful_fields(query)))

    def test_each_once(self) -> None:
        """Each field is told once, where it is first; of many only the first three."""
        query = parse("log.x = 1 OR b = 1 OR a = 1 OR b = 2 OR c = 1 OR d = 1")

        self.assertEqual([14, 23, 41], [column for _, column in doubtful_fields(query)])


class DoubtTests(SynchronousTestCase):
    """Tests for what becomes of doubts."""

    def test_warnings(self) -> None:
        """Doubts are warnings beside the mistakes of a step, and keep nothing from being compiled."""
        step = Step(condition="body.a = 1", set=SetField("meta.a", 1))
        wrong = Step(condition="log.x = 1\nOR body.a = 1", set=SetField("a", 1))

        self.assertEqual("set", compile_step(step, 1).kind)
        told = [(each.code, each.severity, each.line, each.column) for each in step_problems(wrong, 1)]
        self.assertEqual([("step-unknown-field", WARNING, 2, 4), ("bad-field", ERROR, 0, 0)], told)
        self.assertEqual("bad-field", self.assertRaises(StepError, compile_step, wrong, 1).diagnostic.code)
