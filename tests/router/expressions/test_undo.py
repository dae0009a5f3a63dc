"""
Tests that a run that fails changes nothing, and that nothing but L{ExpressionError} comes out of programs.
"""

from __future__ import annotations

import copy
import random
from typing import Any
from unittest import mock

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.router.expressions.programs import a_record
from webhookrx.router.expressions import ExpressionError, compile_expression
from webhookrx.router.expressions.calls import FUNCTIONS
from webhookrx.router.expressions.program import Program
from webhookrx.router.expressions.run import Run

NUMBERS = st.sampled_from(["0", "1", "-5", "2.5", "9223372036854775807", "0x1F"])
TEXTS = st.sampled_from(['"a"', '""', '"b=1, c=2"', '"[1,{}]"', '"2024-01-01"', "'ä\\'\\\\'"])
CONSTANTS = NUMBERS | TEXTS | st.sampled_from(["true", "false", "null", "[]", "{}", '[1, "a"]', '{"a": {"b": [1]}}'])
PATTERNS = st.sampled_from(['"(?P<n>a)|(b)"', '"%Y-%m-%d"', '"%s"', '"a*"', '""'])
SIGNS = st.sampled_from(
    ["+", "-", "*", "/", "%", "==", "!=", "===", "!==", "<", ">=", "eq", "lt", "and", "or", "??", "in"]
)
PATHS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["log.body", "log.body", "log.attributes", "log.new", "meta", "meta.host", "x", "y", "z"]),
    st.sampled_from(["", ".a", ".user", "[0]", "[-1]", '["c d"]', ".tags", ".webhook.query.team", "[x]", "[z.a]"]),
    st.sampled_from(["", "", ".b", "[1]", ".b.c"]),
)
OF_FIELDS = ("isset", "unset", "move", "unset_empties", "set_fields", "flatten")
GIVEN = {bool: "true", str: '"="', tuple: '["a", "b"]', dict: '{"a": [x, 1], "b": z.a}', object: '["a"]'}


@st.composite
def calls(draw: Any, values: st.SearchStrategy[str]) -> str:
    """Return calls of functions with arguments that compile."""
    function = FUNCTIONS[draw(st.sampled_from(sorted(FUNCTIONS)))]
    arguments = []
    for index in range(draw(st.integers(function.least, min(function.most, function.least + 1)))):
        argument = PATTERNS if index in function.constants else PATHS if function.name in OF_FIELDS else values
        arguments.append(draw(argument))
    arguments += [f"{name}={GIVEN[kind]}" for name, kind in function.options.items() if draw(st.booleans())]
    return f"{function.name}({', '.join(arguments)})"


VALUES = st.recursive(
    CONSTANTS | PATHS,
    lambda inner: (
        st.builds("({} {} {})".format, inner, SIGNS, inner)
        | st.builds('({} =~ "a|b+")'.format, inner)
        | st.builds("({} ? {} : {})".format, inner, inner, inner)
        | st.builds("(not {})".format, inner)
        | st.builds("[{}, {}]".format, inner, inner)
        | st.builds('{{"a": {}, {}: 1}}'.format, inner, inner)
        | calls(inner)
    ),
    max_leaves=6,
)
ASSIGNMENTS = st.builds(
    "{}{} {} {};".format, PATHS, st.sampled_from(["", "", "", "[]"]), st.sampled_from(["=", "=", "+=", "=??"]), VALUES
)
STATEMENTS = st.recursive(
    ASSIGNMENTS | ASSIGNMENTS | st.builds("({}) or true;".format, VALUES),
    lambda inner: st.builds("if ({}) {{ {} }} else {{ {} {} }};".format, VALUES, inner, inner, inner),
    max_leaves=4,
)
PROGRAMS = st.builds(
    'x = 1; y = [1, {{"a": 2}}]; z = {{"a": log.body ?? 1}}; {} {}'.format,
    st.lists(STATEMENTS, max_size=8).map(" ".join),
    st.sampled_from(["", "x = 1 / 0;"]),
)
BODIES = st.sampled_from(
    [
        "a=1 b=2",
        {"user": "A", "tags": ["x", ["y", {"a": ""}]], "a": {"b": {"c": msgspec.Raw(b"1.50")}, "c d": 0}, "": 10**30},
        {"a": [[], {}, ""], "user": {"b": None}, "tags": {}, "c d": {"b": [1, 2]}},
        {},
    ]
)

SOUP = """
    log meta body x if elif else drop done declare not and or in eq lt true null lower unset isset regexp_search
    parse_csv 1 2.5 "a" '(b' $HOST $X ${HOST} ( ) [ ] { } . , ; : ? = == =?? ?? += + - * / % < =~ !~ ! & " ' # \\ \x00 é
    log.body.x= if(1){ };
""".split()  # noqa: SIM905
SOUP += ["\n", "\ud800"]


def compiled(text: str) -> Program | None:
    """Return a program, or None when it has an error that says what and where."""
    try:
        return compile_expression(text)
    except ExpressionError as error:
        lines = text.split("\n")
        assert 1 <= error.position.line <= len(lines), text
        assert 1 <= error.position.column <= len(lines[error.position.line - 1]) + 1, text
        assert error.problem.endswith((".", "?", ";")), error.problem
        return None


class UndoTests(SynchronousTestCase):
    """After an error the record is what it was before."""

    def assert_undone(self, program: str, body: Any = None) -> None:
        """Fail unless a program fails and leaves the record as it was, the order of members with it."""
        record = a_record(body)
        before = msgspec.json.encode(record)
        self.assertRaises(ExpressionError, compile_expression(program).run, record)
        self.assertEqual(before, msgspec.json.encode(record))

    def test_each_change(self) -> None:
        """Each kind of change is taken back."""
        for change in [
            "log.body.user = 1;",
            "log.body.new.at.all = 1;",
            "log.body.tags[0] = 1; log.body.tags[-1] = 1; log.body.tags[] = 1;",
            "unset(log.body.tags[0]); log.body.tags[] = 2; unset(log.body.tags[0], log.body.tags[0]);",
            "unset(log.body.user); log.body.user = 2; log.body.more = 3; unset(log.body.level);",
            "log.body.more = 1; unset(log.body.more, log.body.user); log.body.more = 2;",
            "log.body.tags += [1]; log.body.user += '!';",
            "x = move(log.body.tags); x[0] = 1; log.body.tags = x; log.body.tags[1] = 1;",
            "log.body = 1; log.body = {}; log.body.x = 1;",
            "unset(log.attributes.webhook.query.team); log.attributes.webhook.path.HOST = 1;",
            "log.body.e = {'a': '', 'b': ['', 1]}; unset_empties(log.body.e); unset_empties(log.body, targets=['b']);",
            "set_fields(log.body, overrides={'user': 1, 'n': 2}, defaults={'m': 3});",
        ]:
            self.assert_undone(change + " x = 1 / 0;")

    def test_any_exception(self) -> None:
        """Also what nobody thought of becomes an error, and is taken back."""
        record = a_record({"user": object()})
        program = compile_expression("log.new = 1; log.new = [log.body.user]; x = format_json(log.new);")
        error = self.assertRaises(ExpressionError, program.run, record)
        self.assertEqual("The run failed in an unforeseen way: TypeError.", error.problem)
        self.assertNotIn("new", record["log"])

    def test_interrupt(self) -> None:
        """An interrupt is none of ours, but what was done is taken back."""
        program = compile_expression("log.body.user = 1; x = upper(log.body.text);")
        record = a_record({"user": "Alice", "text": "x" * 10_000})
        with mock.patch.object(Run, "spend", side_effect=KeyboardInterrupt):
            self.assertRaises(KeyboardInterrupt, program.run, record)
        self.assertEqual("Alice", record["log"]["body"]["user"])

    def test_records_without_anything(self) -> None:
        """A record of whatever shape fails or works; it never breaks."""
        program = "log.body.a = 1; meta.b = log.body; unset(meta.c.d); x = log.body.user.a ?? 1;"
        for record in ({}, {"log": None}, {"log": "x", "meta": []}, {"log": {"body": [1]}}):
            before = copy.deepcopy(record)
            try:
                compile_expression(program).run(record)
            except ExpressionError:
                self.assertEqual(before, record)

    @given(PROGRAMS, BODIES)
    def test_random_programs(self, text: str, body: Any) -> None:
        """Of any program there is a result or an error, and after an error the record is byte for byte as before."""
        program = compiled(text)
        if program is None:
            return
        record = a_record(body)
        before = msgspec.json.encode(record)
        try:
            program.run(record)
            msgspec.json.encode(record)
        except ExpressionError as error:
            self.assertEqual(before, msgspec.json.encode(record))
            self.assertIsNone(error.__cause__)


class SoupTests(SynchronousTestCase):
    """Texts that are no programs."""

    def test_tokens(self) -> None:
        """Of tokens in any order there is a program or an error with a place in the text."""
        choose = random.Random(5)
        for _ in range(1_500):
            text = choose.choice(["", " "]).join(choose.choices(SOUP, k=choose.randint(1, 15)))
            program = compiled(text)
            if program is not None:
                try:
                    program.run(a_record())
                except ExpressionError as error:
                    self.assertIsNone(error.__cause__)

    @given(st.text(max_size=60))
    def test_texts(self, text: str) -> None:
        """Of any text there is a program or an error with a place in it."""
        compiled(text)

    def test_cut_and_changed(self) -> None:
        """A program that is cut anywhere, or has one character more, compiles or has an error with a place in it."""
        whole = """if (log.a eq "x" or not $HOST =~ '^a') { drop; } else { x["k"] = [1.5, {"a": y ?? -1}]; y = x; };"""
        for offset in range(len(whole)):
            compiled(whole[:offset])
            for extra in "\"'({];.?$\\9":
                compiled(whole[:offset] + extra + whole[offset:])
