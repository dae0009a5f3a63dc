"""Tests for L{webhookrx.router.steps.step_compiler} and what each kind of a step does."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.diagnostics import ERROR, WARNING
from webhookrx.message.fields import FieldError, get_field, split_path
from webhookrx.query import parse
from webhookrx.router.expressions import ExpressionError
from webhookrx.router.steps.context import DROPPED, PROBE, StepContext, StepError, StepEvent
from webhookrx.router.steps.step import Probe, Regex, SetField, Step
from webhookrx.router.steps.step_compiler import compile_step, doubtful_fields, step_name, step_problems
from webhookrx.work import TooMuchWork, Work


def a_record(body: Any = None) -> dict[str, Any]:
    """Return a message of the router form."""
    return {
        "log": {"body": {"user": "ann", "n": 1} if body is None else body, "attributes": {}, "severity_number": 0},
        "meta": {"connector": {"name": "r1-web-in", "labels": {"product": "webhook"}}, "id": "0001"},
    }


def act(step: Step, record: dict[str, Any]) -> StepEvent | None:
    """Do a step to a message, whatever its condition."""
    context = StepContext(record, None, False, None, Work())  # type: ignore[arg-type]  # the steps here look at neither
    return compile_step(step, 1).act(context)


class ProblemTests(SynchronousTestCase):
    """Tests for L{step_problems}."""

    def test_codes(self) -> None:
        """Each mistake has a code, and a place in the step and, where it is about a text, in that."""
        table: list[tuple[Step, str, tuple[str | int, ...], int, int]] = [
            (Step(), "step-kind", (), 0, 0),
            (Step(condition="log.body.a = 1"), "step-kind", (), 0, 0),
            (Step(probe="a", unset="log.body"), "step-kind", (), 0, 0),
            (Step(classify=False), "step-kind", ("classify",), 0, 0),
            (Step(parse=False), "step-kind", ("parse",), 0, 0),
            (Step(select="log.body.a ="), "bad-query", ("select",), 1, 13),
            (Step(probe="a", condition="log.body.a = 1\nAND )"), "bad-query", ("condition",), 2, 5),
            (Step(set=SetField("log", 1)), "bad-field", ("set", "field"), 0, 0),
            (Step(set=SetField("body.user", 1)), "bad-field", ("set", "field"), 0, 0),
            (Step(set=SetField("log..user", 1)), "bad-field", ("set", "field"), 0, 0),
            (Step(set=(SetField("meta.a", 1), SetField("meta", 1))), "bad-field", ("set", 1, "field"), 0, 0),
            (Step(set=()), "bad-field", ("set",), 0, 0),
            (Step(set=SetField("meta.id", "x")), "bad-field", ("set", "field"), 0, 0),
            (Step(set=SetField("log.severity_number.a", 1)), "bad-field", ("set", "field"), 0, 0),
            (Step(set=SetField("log" + ".a" * 32, 1)), "bad-field", ("set", "field"), 0, 0),
            (Step(set=SetField("log.severity_number", "error")), "bad-value", ("set", "value"), 0, 0),
            (Step(set=SetField("log.severity_number", 25)), "bad-value", ("set", "value"), 0, 0),
            (Step(set=SetField("log.severity_number", True)), "bad-value", ("set", "value"), 0, 0),
            (Step(set=SetField("log.severity_text", 3)), "bad-value", ("set", "value"), 0, 0),
            (Step(set=SetField("log.time_unix_nano", -1)), "bad-value", ("set", "value"), 0, 0),
            (Step(set=SetField("log.observed_time_unix_nano", 1 << 63)), "bad-value", ("set", "value"), 0, 0),
            (Step(set=SetField("log.attributes", "x")), "bad-value", ("set", "value"), 0, 0),
            (Step(set=SetField("meta.a", float("nan"))), "bad-value", ("set", "value"), 0, 0),
            (Step(set=SetField("meta.a", [{1: 2}])), "bad-value", ("set", "value"), 0, 0),
            (Step(set=SetField("meta.a", {"b": b"x"})), "bad-value", ("set", "value"), 0, 0),
            (Step(unset="meta"), "bad-field", ("unset",), 0, 0),
            (Step(unset=("meta.a", "meta.id")), "bad-field", ("unset", 1), 0, 0),
            (Step(unset=()), "bad-field", ("unset",), 0, 0),
            (Step(regex=Regex("(?P<a>x")), "bad-regex", ("regex", "pattern"), 1, 1),
            (Step(regex=Regex("(?x)a\n(b")), "bad-regex", ("regex", "pattern"), 2, 1),
            (Step(regex=Regex("(?P<a>x)(?=y)")), "bad-regex", ("regex", "pattern"), 1, 1),
            (Step(regex=Regex("(?P<a>x{99999999999}")), "bad-regex", ("regex", "pattern"), 1, 1),
            (Step(regex=Regex("(a)")), "no-groups", ("regex", "pattern"), 0, 0),
            (Step(regex=Regex("(?P<a>x)", field="body")), "bad-field", ("regex", "field"), 0, 0),
            (Step(regex=Regex("(?P<a>x)", into="meta")), "bad-field", ("regex", "into"), 0, 0),
            (Step(regex=Regex("(?P<a>x)", into="log.severity_text")), "bad-field", ("regex", "into"), 0, 0),
            (Step(probe="a b"), "bad-name", ("probe",), 0, 0),
            (Step(probe=Probe("")), "bad-name", ("probe", "name"), 0, 0),
            (Step(expression="log.body.a = 1;\nlog.body.b ="), "bad-expression", ("expression",), 2, 13),
            (Step(probe="a", label=" b"), "bad-label", ("label",), 0, 0),
            (Step(probe="a", label="x" * 65), "bad-label", ("label",), 0, 0),
            (Step(probe="a", label=""), "bad-label", ("label",), 0, 0),
            (Step(probe="a", on_error="dorp"), "bad-on-error", ("on_error",), 0, 0),
            (Step(unset="log.body", on_error=""), "bad-on-error", ("on_error",), 0, 0),
        ]
        for step, code, member, line, column in table:
            found = step_problems(step, 1)
            self.assertEqual(
                [(each.code, each.path, each.line, each.column) for each in found],
                [(code, member, line, column)],
                step,
            )
            self.assertTrue(found[0].sentence.endswith((".", "?")), found[0].sentence)

    def test_all_at_once(self) -> None:
        """All mistakes of a step are found, also when it is of two kinds; the first of them is raised."""
        step = Step(
            label="a/b",
            condition="=",
            set=(SetField("log", float("inf")), SetField("log.severity_number", "x")),
            regex=Regex("(a", field="x", into="y"),
        )
        codes = [problem.code for problem in step_problems(step, 1)]
        self.assertEqual(
            codes,
            [
                *("bad-label", "bad-query", "step-kind", "bad-field", "bad-value", "bad-value"),
                *("bad-regex", "bad-field", "bad-field"),
            ],
        )
        error = self.assertRaises(StepError, compile_step, step, 1)
        self.assertEqual((error.diagnostic.code, error.diagnostic.sentence), ("bad-label", str(error)))

    def test_nothing_wrong(self) -> None:
        """What is right has no problems."""
        for step in (
            Step(select=""),
            Step(select="log.body.user = ann", condition="meta.connector.labels.product = webhook", label="only Ann"),
            Step(set=SetField("log.severity_number", 17)),
            Step(set=SetField("log.attributes", {})),
            Step(set=SetField("log.time_unix_nano", 0)),
            Step(unset="log.body", on_error="drop"),
            Step(classify=True, on_error="keep"),
            Step(parse=True),
            Step(regex=Regex("(?P<a>x)", field="meta.id", into="meta.found")),
        ):
            self.assertEqual(step_problems(step, 1), [], step)


class NameTests(SynchronousTestCase):
    """Tests for the names of steps."""

    def test_names(self) -> None:
        """A step is called by its label, else by its place and kind."""
        table = [
            (Step(probe="a"), "3 probe"),
            (Step(regex=Regex("(?P<a>x)")), "3 regex"),
            (Step(probe="a", label="Before all"), "Before all"),
            (Step(), "3 step"),
        ]
        for step, name in table:
            self.assertEqual(step_name(step, 3), name)
        compiled = compile_step(Step(probe="a"), 3)
        self.assertEqual((compiled.kind, compiled.name), ("probe", "3 probe"))


class SetTests(SynchronousTestCase):
    """Tests for Set Field."""

    def test_sets(self) -> None:
        """A field is set, with objects made on the way to it."""
        record = a_record()
        self.assertIsNone(act(Step(set=SetField("meta.team.name", "secops")), record))
        self.assertEqual(record["meta"]["team"], {"name": "secops"})

    def test_several(self) -> None:
        """Fields of a list are set in order."""
        record = a_record()
        act(Step(set=(SetField("log.body.a", 1), SetField("log.body.a", 2), SetField("meta.b", None))), record)
        self.assertEqual((record["log"]["body"]["a"], record["meta"]["b"]), (2, None))

    def test_own_copy(self) -> None:
        """Each message has lists and objects of its own."""
        for step in (
            Step(set=SetField("meta.a", {"b": [1]})),
            Step(set=(SetField("meta.a", {"b": [1]}), SetField("meta.c", 1))),
        ):
            compiled, records = compile_step(step, 1), [a_record(), a_record()]
            for record in records:
                compiled.act(StepContext(record, None, False, None, Work()))  # type: ignore[arg-type]
            records[0]["meta"]["a"]["b"].append(2)
            self.assertEqual(records[1]["meta"]["a"], {"b": [1]})

    def test_numbers(self) -> None:
        """A number with a fraction is kept as text of a number, as those of a payload are."""
        record = a_record()
        act(Step(set=SetField("meta.a", [1.5, msgspec.Raw(b"1e400"), True])), record)
        self.assertEqual(record["meta"]["a"], [msgspec.Raw(b"1.5"), msgspec.Raw(b"1e400"), True])

    def test_all_or_none(self) -> None:
        """When one of several can't be set, none is."""
        record = a_record({"user": "ann", "list": [1, {}], "text": "x"})
        before = a_record({"user": "ann", "list": [1, {}], "text": "x"})
        step = Step(
            set=(
                SetField("log.body.user", {"a": 1}),
                SetField("log.body.user.a", 2),
                SetField("log.body.new.deep.er", 1),
                SetField("log.body.new.deep.too", 1),
                SetField("log.body.list.0", 7),
                SetField("log.body.list.1.x.y", 7),
                SetField("log.body.text.no", 1),
            )
        )
        error = self.assertRaises(FieldError, act, step, record)
        self.assertNotIn("ann", str(error))
        self.assertEqual(record, before)

    def test_none_beside_dots(self) -> None:
        """A name with dots further out hides no object that a failing step has made on the way."""
        record, before = a_record({"a": {}, "a.b": 0}), a_record({"a": {}, "a.b": 0})
        step = Step(set=(SetField("log.body.a.b.c", 1), SetField("log.observed.no", 1), SetField("log.body.a.x", 1)))
        record["log"]["observed"] = before["log"]["observed"] = "x"
        self.assertRaises(FieldError, act, step, record)
        self.assertEqual(record, before)

    @given(st.data())
    def test_failed_set_changes_nothing(self, data: st.DataObject) -> None:
        """However fields lie in one another, a step that fails leaves the message as it was, order included."""
        names = st.sampled_from(["a", "b", "a.b", "0"])
        values = st.recursive(
            st.integers(0, 3),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=3),
            max_leaves=8,
        )
        record = a_record(data.draw(st.dictionaries(names, values, max_size=3)))
        path = st.lists(names, min_size=1, max_size=3).map(lambda parts: ".".join(["log.body", *parts]))
        wanted = data.draw(st.lists(st.builds(SetField, path, values), min_size=1, max_size=4))
        record["log"]["text"] = "x"
        before = msgspec.json.encode(record)
        step = Step(set=(*wanted, SetField("log.text.no", 1)))
        self.assertRaises(FieldError, act, step, record)
        self.assertEqual(msgspec.json.encode(record), before)


class UnsetTests(SynchronousTestCase):
    """Tests for Unset Field."""

    def test_unsets(self) -> None:
        """Fields go; one that is not there is no failure."""
        record = a_record()
        self.assertIsNone(act(Step(unset="log.body.user"), record))
        self.assertIsNone(act(Step(unset=("log.body.no", "meta.connector.labels", "log.body.n.x")), record))
        self.assertEqual(record["log"]["body"], {"n": 1})
        self.assertEqual(record["meta"]["connector"], {"name": "r1-web-in"})


class RegexTests(SynchronousTestCase):
    """Tests for the Regex step."""

    def test_groups(self) -> None:
        """The named groups that took part become attributes; others and unnamed ones do not."""
        record = a_record("user=ann from 10.0.0.1")
        record["log"]["attributes"]["kept"] = "x"
        act(Step(regex=Regex(r"user=(?P<user>\w+)( as (?P<role>\w+))? from (?P<ip>[\d.]+)")), record)
        self.assertEqual(record["log"]["attributes"], {"kept": "x", "user": "ann", "ip": "10.0.0.1"})

    def test_field_and_target(self) -> None:
        """Another field is looked at, and another object gets the members; it is made when it is not there."""
        record = a_record()
        wanted = Regex("^(?P<Name>A)", field="log.body.user", into="meta.found.here", ignore_case=True)
        act(Step(regex=wanted), record)
        self.assertEqual(record["meta"]["found"], {"here": {"Name": "a"}})

    def test_very_long_pattern(self) -> None:
        """A pattern that is far too long is refused without being read: that would take very long."""
        (problem,) = step_problems(Step(regex=Regex("(a?)" * 20_000 + "(")), 1)
        self.assertEqual(("bad-regex", 1, 1), (problem.code, problem.line, problem.column))

    def test_json(self) -> None:
        """What is no text is looked at as compact JSON."""
        for body, pattern, group in (
            ({"a": [1, "x"]}, r'^(?P<g>\{"a":\[1,"x"\]\})$', '{"a":[1,"x"]}'),
            ({"a": msgspec.Raw(b"1.50")}, "(?P<g>1.50)", "1.50"),
        ):
            record = a_record(body)
            act(Step(regex=Regex(pattern)), record)
            self.assertEqual(record["log"]["attributes"], {"g": group})

    def test_no_match(self) -> None:
        """Without a match, without a group that took part, and without the field, nothing happens."""
        for wanted in (
            Regex("(?P<a>nobody)", into="meta.new"),
            Regex("(?P<a>nobody)?", into="meta.new"),
            Regex("(?P<a>.)", field="log.body.no", into="meta.new"),
        ):
            record = a_record()
            self.assertIsNone(act(Step(regex=wanted), record))
            self.assertEqual(record, a_record())

    def test_no_object(self) -> None:
        """The step fails when what is to get members is no object, also further up."""
        for into in ("log.body.user", "log.body.user.x"):
            record = a_record()
            step = Step(regex=Regex("(?P<a>ann)", into=into))
            self.assertRaises(FieldError, act, step, record)
            self.assertEqual(record, a_record())


class SelectTests(SynchronousTestCase):
    """Tests for Select Messages."""

    def test_drops(self) -> None:
        """Messages that the query does not match are dropped; an empty query matches all."""
        for query, event in (
            ("log.body.user = ann", None),
            ("log.body.user = bob", (DROPPED, "1 select")),
            ("  ", None),
        ):
            self.assertEqual(act(Step(select=query), a_record()), event, query)


class ProbeTests(SynchronousTestCase):
    """Tests for the Probe."""

    def test_counts(self) -> None:
        """A probe events the message with its name, in whichever form it is written."""
        for written in ("edge.in-1", Probe("edge.in-1")):
            self.assertEqual(act(Step(probe=written), a_record()), (PROBE, "edge.in-1"))


class ConditionTests(SynchronousTestCase):
    """Tests for conditions."""

    def test_condition(self) -> None:
        """A step has what its condition says; none for an empty condition."""
        self.assertIsNone(compile_step(Step(probe="a"), 1).matches)
        self.assertIsNone(compile_step(Step(probe="a", condition=" "), 1).matches)
        matches = compile_step(Step(probe="a", condition="log.body.user = ann"), 1).matches
        assert matches is not None
        for record, expected in ((a_record(), True), (a_record({}), False)):
            context = StepContext(record, None, False, None, Work())  # type: ignore[arg-type]  # it looks at neither
            self.assertIs(expected, matches(context))


class WorkTests(SynchronousTestCase):
    """Tests for what steps take of the work that may be done for a message."""

    def test_counted(self) -> None:
        """What a step copies, looks at or writes is counted before it does so."""
        long = "x" * 10_000
        for step in (
            Step(set=SetField("meta.a", long)),
            Step(set=SetField("meta.a", [1] * 100)),
            Step(set=(SetField("meta.a", {long: 1}), SetField("meta.b", 1))),
            Step(unset=tuple(f"meta.a{number}" for number in range(100))),
            Step(regex=Regex("(?P<a>y)", field="log.body.text")),
            Step(regex=Regex("(?P<a>y)", field="log.body.object")),
            Step(regex=Regex("(?P<a>y)", field="log.body.list")),
            Step(select="log.body.text =* y"),
            Step(expression="x = upper(log.body.text);"),
        ):
            body = {"text": long, "object": {"a": long}, "list": [[]] * 100}
            record, before = a_record(body), a_record(body)
            context = StepContext(record, None, False, None, Work(9_000))  # type: ignore[arg-type]  # it looks at neither
            self.assertRaises((TooMuchWork, ExpressionError), compile_step(step, 1).act, context)
            self.assertEqual(before, record)


class ExpressionTests(SynchronousTestCase):
    """Tests for the expression step."""

    def test_changes(self) -> None:
        """Statements change the message."""
        record = a_record()
        self.assertIsNone(act(Step(expression='log.body.role = "admin";'), record))
        self.assertEqual(get_field(record, split_path("log.body.role")), "admin")

    def test_made_in_all(self) -> None:
        """However many expression steps there are, what they make of one message is bounded."""
        record = a_record({"s": "a" * 1_000_000})
        steps = [compile_step(Step(expression=f'log.body.x{k} = log.body.s + "b";'), k) for k in range(40)]
        context = StepContext(record, None, False, None, Work())  # type: ignore[arg-type]  # no step looks at it
        made = 0
        for step in steps:
            try:
                step.act(context)
            except ExpressionError as error:
                self.assertIn("too much to do", error.problem)
            else:
                made += 1
        self.assertEqual(3, made)
        self.assertEqual(4, len(record["log"]["body"]))

    def test_id_stays(self) -> None:
        """The id of a message stays what it was, in whatever way it is written."""
        for text in ('meta.id = "x";', "unset(meta.id);", 'k = "id"; meta[k] = 1;'):
            record = a_record()
            act(Step(expression=text), record)
            self.assertEqual(record["meta"]["id"], "0001", text)

    def test_drops(self) -> None:
        """C{drop} drops it, by the name of the step."""
        self.assertEqual(act(Step(expression="drop;"), a_record()), (DROPPED, "1 expression"))


class DoubtfulFieldsTests(SynchronousTestCase):
    """Tests for L{doubtful_fields}."""

    def test_meant(self) -> None:
        """A field that no message has is reported with a guess at its meaning, where there is one."""
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
