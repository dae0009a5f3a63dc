"""
Tests for what programs may cost: in length, depth, time and memory.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.expressions.programs import a_record, problem, still, ticking, worked_out
from webhookrx.expressions import ExpressionError, Limits, compile_expression
from webhookrx.expressions.limits import MAX_NESTING, MAX_SOURCE
from webhookrx.expressions.patterns import MAX_WORK

MIB = 1024 * 1024


class SourceTests(SynchronousTestCase):
    """What does not compile because it is too much."""

    def test_length(self) -> None:
        """A program may be as long as the limit, and not longer."""
        compile_expression("#" * MAX_SOURCE, still)
        self.assertIn("longer than 65536", problem("#" * (MAX_SOURCE + 1))[0])

    def test_nesting(self) -> None:
        """What nests too deep is an error at the level that is too much, of whatever it is made."""
        deep = MAX_NESTING - 2
        self.assertEqual(1, worked_out("(" * deep + "1" + ")" * deep))
        for count in (MAX_NESTING + 1, 1_500):
            for opening, inner, closing in [
                ("(", "1", ")"),
                ("[", "", "]"),
                ('{"a": ', "1", "}"),
                ("not ", "1", ""),
                ("- ", "a", ""),
                ("lower(", "1", ")"),
                ("log[", "1", "]"),
                ("1 ? 2 : ", "3", ""),
                ("1 + 2 * (", "3", ")"),
                ("1 ?? 2 or 3 and not 4 == 5 < 6 + 7 * (", "8", ")"),
            ]:
                found, line, column = problem(f"a = {opening * count}{inner}{closing * count};")
                self.assertIn("nests deeper than 64 levels", found)
                self.assertEqual(1, line)
                self.assertGreater(column, MAX_NESTING)
            self.assertIn("nests deeper", problem("log" + ".a" * count + " = 1;")[0])
            self.assertIn("nests deeper", problem("if (1) {" * count + "}" * count)[0])

    def test_no_recursion_error(self) -> None:
        """A program that just fits compiles and runs, also far up the stack."""

        def far_up(frames: int) -> Any:
            return far_up(frames - 1) if frames else worked_out("1 + (" * 60 + "1" + ")" * 60)

        self.assertEqual(61, far_up(200))

    def test_operators_nest_too(self) -> None:
        """Operands count as levels, not only parentheses."""
        found, line, column = problem("a = " + "1 ?? 2 or 3 and not 4 == 5 < 6 + 7 * (" * 20 + "8" + ")" * 20 + ";")
        self.assertEqual(("This nests deeper than 64 levels.", 1), (found, line))
        self.assertGreater(column, 100)

    def test_little_stack(self) -> None:
        """Where the stack ends, there is an error like any other, and what was done is taken back."""
        text = "log.body.user = 1; log.body.user = " + "1 + (" * 60 + "1" + ")" * 60 + ";"
        program, record = compile_expression(text, still), a_record()
        self.addCleanup(sys.setrecursionlimit, sys.getrecursionlimit())
        sys.setrecursionlimit(len(inspect.stack(0)) + 50)
        self.assertRaises(ExpressionError, compile_expression, text, still)
        self.assertRaises(ExpressionError, program.run, record)
        self.assertEqual("Alice", record["log"]["body"]["user"])

    def test_width(self) -> None:
        """Long conditions, sums, lists and runs of elif are not deep."""
        self.assertIs(False, worked_out(" or ".join(["log.body.user eq 'x'"] * 1_000)))
        self.assertEqual(3_000, worked_out(" + ".join(["1"] * 3_000)))
        self.assertEqual([1] * 3_000, worked_out("[" + ", ".join(["1"] * 3_000) + "]"))
        compile_expression("if (0) {}" + " elif (0) {}" * 1_000, still).run(a_record())

    def test_operations(self) -> None:
        """A program with more operations than the limit does not compile: nothing in it is done twice."""
        limits = Limits(operations=100)
        compile_expression("a = 1;" * 50, still, limits)
        self.assertEqual(("The program has more than 100 operations.", 1, 305), problem("a = 1;" * 51, limits=limits))

    def test_patterns(self) -> None:
        """A program has so many regular expressions at most."""
        sentence = "The program has more than 100 regular expressions and formats."
        self.assertEqual((sentence, 101, 13), problem("log.body =~ 'a';\n" * 101))
        self.assertIn("more than 100", problem("glob_match('a', 'a');" * 101)[0])


class TimeTests(SynchronousTestCase):
    """The clock."""

    def run_out(self, program: str, body: Any = None, step: float = 0.001) -> ExpressionError:
        """Return the error of a program that takes too long by a clock."""
        compiled = compile_expression(program, ticking(step))
        return self.assertRaises(ExpressionError, compiled.run, a_record(body))

    def test_long_program(self) -> None:
        """A program that takes longer than its time fails, where it was when that was seen; no default helps."""
        error = self.run_out("a = (1 + 1) ?? 2;\n" * 500)
        self.assertEqual("The run took longer than 5 ms.", error.problem)
        self.assertGreater(error.line, 64)
        self.assertLess(error.line, 130)

    def test_clock_is_not_asked_each_time(self) -> None:
        """An ordinary program asks the clock once, when it starts."""
        self.assertTrue(compile_expression("a = 1; b = a + 1; log.body.x = b;", ticking(1.0)).run(a_record()))

    def test_long_texts_and_lists(self) -> None:
        """Operations on what is long ask the clock each time."""
        body = {
            "s": "a=b " * 2_000,
            "t": "a" * 4_000,
            "l": [""] * 200,
            "d2": ["b"] * 200,
            "d": {str(number): "" for number in range(5_000)},
        }
        for program in [
            "x = lower(log.body.s); " * 10,
            "x = log.body.s + log.body.s; " * 10,
            "x = string(log.body.s); " * 10,
            "x = log.body.d; " * 10,
            "x = 1 in keys(log.body.d); " * 10,
            "x = log.body.s =~ 'c'; " * 10,
            "x = regexp_subst(log.body.s, 'a', 'b', global=true);",
            "x = parse_kv(log.body.s);",
            "x = parse_csv(log.body.s, delimiter=' ');",
            "unset_empties(log.body.d);",
            "x = urlencode(log.body.s);",
            "x = urldecode(log.body.s);",
            "x = includes('a', log.body.d2);",
            "x = 1 in log.body.l; " * 10,
            "x = log.body.t =~ '(a|b)*c{300}'; " * 10,
        ]:
            self.assertIn("took longer", self.run_out(program, body, 0.003).problem, program)

    def test_columns(self) -> None:
        """Of a long text the clock is asked for each column: a quote that is not closed may reach to the end."""
        self.assertIn("took longer", self.run_out("x = parse_csv(log.body);", "a," * 5_000).problem)
        self.assertTrue(compile_expression("x = parse_csv(log.body);", ticking(0.001)).run(a_record("a," * 50)))


class SizeTests(SynchronousTestCase):
    """Memory."""

    def test_doubling(self) -> None:
        """What doubles with each statement ends at the limit, at once."""
        for start, step, sentence in [
            ('"aaaaaaaa"', "x + x", "A text is longer than 1048576 characters."),
            ("[1]", "x + x", "more than 10000 elements"),
            ("[1]", "[x, x]", "more than 10000 elements"),
            ("[1]", '{"a": x, "b": x}', "more than 10000 elements"),
            ("[1]", "[x]", "nests deeper than 128 levels"),
            ("[1]", "[move(x)]", "nests deeper than 128 levels"),
            ('"aaaaaaaa"', "str_replace(x, 'a', 'aa')", "A text is longer"),
            ('"aaaaaaaa"', "regexp_subst(x, 'a', 'aa', global=true)", "too long for this regular expression"),
            ('"aaaaaaaa"', r"regexp_subst(x, '.*', '\0\0', groups=true)", "too long for this regular expression"),
            ('"aaaaaaaa"', "hex_encode(x)", "A text is longer"),
            ('"aaaaaaaa"', "format_json([x, x])", "characters"),
        ]:
            found, _, column = problem(f"x = {start}; " + f"x = {step}; " * (90 if "regexp" in step else 200))
            self.assertIn(sentence, found)
            self.assertGreater(column, len(start) + 5)

    def test_made_in_all(self) -> None:
        """A run may not make more than so much in all."""
        found, *_ = problem("y = []; x = log.body.s + '!'; " + "y[] = x + '!'; " * 50, {"s": "a" * (MIB // 2)})
        self.assertEqual("The run made more than 8388608 characters.", found)
        found, *_ = problem("x = log.body ?? 1;" * 200, {str(number): number for number in range(9_000)})
        self.assertEqual("The run made more than 8388608 characters.", found)

    def test_long_arguments(self) -> None:
        """Texts and lists of a message that are longer than the limit are moved by nothing, and not taken."""
        body = {
            "s": "a" * (MIB + 1),
            "l": [0] * 10_001,
            "d": dict.fromkeys(map(str, range(10_001))),
            "r": msgspec.Raw(b"1." + b"0" * 2 * MIB),
        }
        for call in ("lower(log.body.s)", "log.body.s + ''", "string(log.body.r)", "log.body.r eq ''"):
            self.assertIn("longer than 1048576", problem(f"a = {call};", body)[0])
        self.assertIn("too long", problem("a = log.body.s =~ 'a';", body)[0])
        for call in ("log.body.l", "log.body.l + []", "log.body.d + {}", "1 in log.body.l", "keys(log.body.d)"):
            self.assertIn("more than 10000", problem(f"a = {call};", body)[0])
        self.assertIn("more than 10000", problem("a = includes('a', log.body.l);", body)[0])
        self.assertIn("more than 10000", problem("unset_empties(log.body.l);", body)[0])
        self.assertIn("more than 10000", problem("set_fields(log.body, overrides={'x': log.body.l});", body)[0])
        self.assertIn("more than 1048576", problem("a = format_json([log.body.s]);", body)[0])
        self.assertEqual(10_001, worked_out("len(log.body.l)", body))

    def test_long_numbers(self) -> None:
        """A number of more than 4,096 characters is moved, and not reckoned with: that may take milliseconds."""
        for length, known in ((4_096, True), (4_097, False)):
            digits = "1." + "0" * (length - 2)
            body = {"r": msgspec.Raw(digits.encode()), "s": digits}
            self.assertIs(known, worked_out("log.body.r == 1", body))
            self.assertIs(known, worked_out("log.body.s == 1", body))
            self.assertIs(known, worked_out("(log.body.r + 1 ?? 0) == 2", body))
            self.assertIs(known, worked_out("(int(log.body.s) ?? 0) == 1", body))
            self.assertEqual(("raw", digits), worked_out("log.body.r", body))
        self.assertIs(True, worked_out("log.body ? true : false", msgspec.Raw(b"0." + b"0" * 5_000)))

    def test_parsed(self) -> None:
        """What a text is taken apart into is limited too."""
        body = {
            "csv": "," * 10_001,
            "kv": " ".join(f"k{number}=v" for number in range(10_001)),
            "json": "[" + "0," * 10_001 + "0]",
            "deep": "[" * 129 + "]" * 129,
            "flat": {"a" * 1_000: {"b" * 1_000: dict.fromkeys(map(str, range(5_000)), 0)}},
        }
        for call in ("parse_csv(log.body.csv)", "parse_kv(log.body.kv)", "json(log.body.json)"):
            self.assertIn("more than 10000", problem(f"a = {call};", body)[0])
        self.assertIn("nests deeper", problem("a = json(log.body.deep);", body)[0])
        self.assertIn("more than 1048576", problem("a = flatten(log.body.flat);", body)[0])

    def test_replacements_with_groups(self) -> None:
        """A replacement can't make much of little."""
        long = "\\\\1" * 1_000
        body = {"s": "a" * 30_000}
        found, *_ = problem(f'a = regexp_subst(log.body.s, "(a+)", "{long}", groups=true);', body)
        self.assertIn("A text is longer", found)
        self.assertIn("A text is longer", problem("a = str_replace(log.body.s, 'a', log.body.s);", body)[0])
        found, *_ = problem(f'a = "{long}"; a = regexp_subst("a", "(a)", a + a + a, groups=true);')
        self.assertIn("longer than 4096", found)

    def test_regex_work(self) -> None:
        """The larger a regular expression, the shorter the text that it is run on."""
        for pattern in ("(a?){200}b", "(a|b)*a(a|b){9}c", "(x+x+)+y", "^a"):
            text = "a" * (MAX_WORK // 2)
            found, *_ = problem(f"a = log.body =~ '{pattern}';", text)
            self.assertIn("The text is too long for this regular expression", found)
        self.assertIs(False, worked_out("log.body =~ '(a|a?)+b'", "a" * 20_000))
        self.assertEqual("Mb" * 3, worked_out("regexp_subst(log.body, '(a|a?)+b', 'Mb', global=true)", "aab" * 3))
