"""
Tests for what programs may cost: in length, depth, time and memory.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import sys
import time
from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

import webhookrx.router.expressions
from tests.router.expressions.programs import a_record, problem, worked_out
from webhookrx.router.expressions import ExpressionError, RunLimits, compile_expression
from webhookrx.router.expressions.run import MAX_NESTING, MAX_SOURCE, OPERATION
from webhookrx.work import Work

MIB = 1024 * 1024


class SourceTests(SynchronousTestCase):
    """What does not compile because it is too much."""

    def test_length(self) -> None:
        """A program may be as long as the limit, and not longer."""
        compile_expression("#" * MAX_SOURCE)
        text, line, column = problem("#" * (MAX_SOURCE + 1))
        self.assertIn("longer than 65536", text)
        self.assertEqual((1, 1), (line, column))

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
        program, record = compile_expression(text), a_record()
        self.addCleanup(sys.setrecursionlimit, sys.getrecursionlimit())
        sys.setrecursionlimit(len(inspect.stack(0)) + 50)
        self.assertRaises(ExpressionError, compile_expression, text)
        self.assertRaises(ExpressionError, program.run, record)
        self.assertEqual("Alice", record["log"]["body"]["user"])

    def test_width(self) -> None:
        """Long conditions, sums, lists and runs of elif are not deep."""
        self.assertIs(False, worked_out(" or ".join(["log.body.user eq 'x'"] * 1_000)))
        self.assertEqual(3_000, worked_out(" + ".join(["1"] * 3_000)))
        self.assertEqual([1] * 3_000, worked_out("[" + ", ".join(["1"] * 3_000) + "]"))
        compile_expression("if (0) {}" + " elif (0) {}" * 1_000).run(a_record())

    def test_operations(self) -> None:
        """A program with more operations than the limit does not compile: nothing in it is done twice."""
        limits = RunLimits(operations=100)
        compile_expression("a = 1;" * 50, limits)
        self.assertEqual(("The program has more than 100 operations.", 1, 303), problem("a = 1;" * 51, limits=limits))

    def test_patterns(self) -> None:
        """A program has so many regular expressions at most."""
        sentence = "The program has more than 100 regular expressions and formats."
        self.assertEqual((sentence, 101, 13), problem("log.body =~ 'a';\n" * 101))
        self.assertIn("more than 100", problem("glob_match('a', 'a');" * 101)[0])


class WorkTests(SynchronousTestCase):
    """Work."""

    def spent(self, program: str, body: Any = None) -> int:
        """Return the units that a program takes."""
        work = Work()
        compile_expression(program).run(a_record(body), work)
        return Work().left - work.left

    def test_operations(self) -> None:
        """Each operation counts, in the blocks that are done and in no others."""
        one, two = self.spent("a = 1;"), self.spent("a = 1; b = 2;")
        self.assertEqual(OPERATION * 2, two - one)
        self.assertEqual(self.spent("if (0) {}"), self.spent("if (0) { " + "a = 1; " * 100 + "}"))
        self.assertLess(
            self.spent("if (1) { a = 1; }") + 100 * OPERATION, self.spent("if (1) {" + "a = 1; " * 100 + "}")
        )

    def test_same_on_each_run(self) -> None:
        """It is the same whenever it is done, and nothing in it is a clock."""
        program = "x = parse_kv(log.body); log.body = {'a': upper(x.a ?? ''), 'n': len(x)};"
        self.assertEqual(1, len({self.spent(program, "a=1, b=2 " * 50) for _ in range(5)}))
        for module in pkgutil.iter_modules(webhookrx.router.expressions.__path__):
            source = importlib.import_module(f"webhookrx.router.expressions.{module.name}")
            self.assertFalse({"time", "perf_counter", "monotonic", "thread_time"} & vars(source).keys(), module.name)

    def test_what_is_long(self) -> None:
        """What is long costs more, by about as much as it is longer, wherever it is read or made."""
        calls = [
            "lower(F)", "upper(F)", "F + F", "format_json(F)", "str_strip(F)", "sha256(F)", "base64_encode(F)",
            "base64_decode(F)", "hex_encode(F)", "urlencode(F)", "urldecode(F)", "includes(F, 'zz')",
            "startswith(F, F)", "strcasecmp(F, F)", "str_replace(F, 'a', 'b')", "parse_kv(F)", "parse_csv(F)",
            "parse_json(F) ?? 1", "parse_xml(F) ?? 1", "parse_cef(F) ?? 1", "parse_leef(F) ?? 1", "F =~ 'x(a|b)y'",
            "regexp_search(F, '(a+)')", "regexp_subst(F, 'z', 'y')", "glob_match(F, '*z')", "string(F)", "F eq F",
            "bytes(F)", "repr(F)", "F[1..]", "[F]", '"x$MSG"', "digest(F)", "utf8_sanitize(F)", "format_kv({'a': F})",
            "format_csv([F])",
        ]  # fmt: skip
        for call in calls:
            program = f"meta.x = {call.replace('F', 'log.body')};"
            short, long = (self.spent(program, "a" * size) for size in (2_000, 20_000))
            self.assertGreater(long, 5 * short, call)
        for call in ("F", "keys(F)", "F + F", "format_json(F)", "5 in F", "list(F)", "[F]", "unset_empties(F)"):
            program = f"meta.x = {call.replace('F', 'log.body')};"
            short, long = (self.spent(program, [0] * size) for size in (400, 4_000))
            self.assertGreater(long, 5 * short, call)

    def test_no_default_helps(self) -> None:
        """A program that has too much to do fails as a whole, and all that it did is taken back."""
        text = "log.body.x = 1; " + "a = (upper(log.body.s) ?? 1); " * 300
        record = a_record({"s": "a" * 10_000})
        error = self.assertRaises(ExpressionError, compile_expression(text).run, record)
        self.assertEqual("The program has too much to do with this message.", error.problem)
        self.assertNotIn("x", record["log"]["body"])

    def test_shared(self) -> None:
        """What one program spends the next has not, also when it fails."""
        work = Work(1_000_000)
        program = compile_expression("x = upper(log.body); x = upper(log.body) + 1;")
        body = "a" * 20_000
        for _ in range(3):
            try:
                program.run(a_record(body), work)
            except ExpressionError as error:
                last = error.problem
        self.assertIn("too much to do", last)
        self.assertLessEqual(0, work.left)
        self.assertLess(work.left, 1_000_000 - 2 * 12 * 20_000)

    def test_matches_that_look_ahead(self) -> None:
        """Each match of an expression that may look far ahead, and be short, costs what it may look at."""
        near, far = (
            self.spent(f"x = regexp_subst(log.body, '{pattern}', 'x', global=true);", "a" * 300)
            for pattern in ("a", "a(?:.*b)?")
        )
        self.assertGreater(far, near + 300 * 300)

    def test_hostile_values(self) -> None:
        """What takes long is counted as that: a unit is some nanoseconds, whatever a program does to whatever text."""
        texts = {
            "commas": "," * 100_000,
            "blanks": " " * 100_000,
            "quotes": "a='" * 30_000,
            "tags": "<a>" + "<b c='d'>x</b>" * 7_000 + "</a>",
            "bars": "CEF:0|" + "\\|" * 50_000,
            "letters": "ab" * 50_000,
            "json": "[" + '{"a":[]},' * 10_000 + "0]",
            "accents": "é" * 100_000,
        }
        for call in [
            "parse_kv(F)", "parse_kv(F, pair_separator='  ')", "parse_kv(F, stray_words_key='s')", "parse_csv(F)",
            "parse_xml(F)", "parse_cef(F)", "parse_json(F)", "upper(F)", "urlencode(F)", "base64_decode(F)",
            "F =~ '[ab]*a[ab]{30}c'", "regexp_subst(F, '(a)', '<\\1>', global=true)",
            "regexp_subst(F, 'a(?:.*c)?', '', global=true)", "regexp_search(F, '(.*)(.*)(.*)x?$')",
            "str_replace(F, 'ab', 'abc')", "format_kv({'k': F})",
        ]:  # fmt: skip
            for name, text in texts.items():
                work, record = Work(), a_record(text)
                program = compile_expression(f"x = {call.replace('F', 'log.body')} ?? 1;")
                start = time.thread_time()
                with contextlib.suppress(ExpressionError):
                    program.run(record, work)
                took = time.thread_time() - start
                # Ten times what it should take, for machines that are slow.
                self.assertLess(took, 0.02 + (Work().left - work.left) * 25e-9, f"{call} of {name}")


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
            ('"aaaaaaaa"', "regexp_subst(x, 'a', 'aa', global=true)", "too much to do"),
            ('"aaaaaaaa"', r"regexp_subst(x, '.*', '\0\0')", "too much to do"),
            ('"aaaaaaaa"', "hex_encode(x)", "A text is longer"),
            ('"aaaaaaaa"', "format_json([x, x])", "characters"),
        ]:
            program = f"x = {start}; " + f"x = {step}; " * (90 if "regexp" in step else 200)
            found, _, column = problem(program, limits=RunLimits(work=10**8))
            self.assertIn(sentence, found)
            self.assertGreater(column, len(start) + 5)

    def test_made_in_all(self) -> None:
        """A run may not make more than so much in all."""
        found, *_ = problem("y = []; x = log.body.s + '!'; " + "y[] = x + '!'; " * 50, {"s": "a" * (MIB // 2)})
        self.assertEqual("The program has too much to do with this message.", found)
        found, *_ = problem("log.body.x = [" + "log.body.s, " * 100 + "];", {"s": "a" * (MIB // 2)})
        self.assertEqual("The program has too much to do with this message.", found)
        found, *_ = problem("x = log.body ?? 1;" * 200, {str(number): number for number in range(9_000)})
        self.assertEqual("The program has too much to do with this message.", found)

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
        self.assertIn("longer than 1048576", problem("a = log.body.s =~ 'a';", body)[0])
        for call in ("log.body.l", "log.body.l + []", "log.body.d + {}", "1 in log.body.l", "keys(log.body.d)"):
            self.assertIn("more than 10000", problem(f"a = {call};", body)[0])
        self.assertIn("more than 10000", problem("a = includes('a', log.body.l);", body)[0])
        self.assertIn("more than 10000", problem("a = list(log.body.l);", body)[0])
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
            self.assertIs(known, worked_out("(double(log.body.s) ?? 0) == 1", body))
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
        lenient = RunLimits(work=10**9)
        for call in ("parse_csv(log.body.csv)", "parse_kv(log.body.kv)", "list(log.body.json)"):
            self.assertIn("more than 10000", problem(f"a = {call};", body, lenient)[0])
        self.assertIn("nests deeper", problem("a = list(log.body.deep);", body)[0])
        self.assertIn("more than 1048576", problem("flatten(log.body.flat);", body)[0])

    def test_replacements_with_groups(self) -> None:
        """A replacement can't make much of little."""
        long = "\\\\1" * 1_000
        body = {"s": "a" * 30_000}
        lenient = RunLimits(work=10**9)
        found, *_ = problem(f'a = regexp_subst(log.body.s, "(a+)", "{long}");', body, lenient)
        self.assertIn("A text is longer", found)
        self.assertIn("A text is longer", problem("a = str_replace(log.body.s, 'a', log.body.s);", body)[0])
        found, *_ = problem(f'a = "{long}"; a = regexp_subst("a", "(a)", a + a + a);')
        self.assertIn("longer than 4096", found)

    def test_regex_work(self) -> None:
        """A regular expression that may be slow is not run on a long text; one that can't be is."""
        for pattern in ("[ab]*a[ab]{30}c", "(a|ab|b){20}x", "[^b]{100}b"):
            found, *_ = problem(f"a = log.body =~ '{pattern}';", "a" * 100_000)
            self.assertEqual("The program has too much to do with this message.", found)
        for pattern in ("password=\\S+", "^a+b", "(x+x+)+y", "(a|a?)+b"):
            self.assertIs(False, worked_out(f"log.body =~ '{pattern}'", "a" * 1_000_000))
        self.assertEqual("Mb" * 3, worked_out("regexp_subst(log.body, '(a|a?)+b', 'Mb', global=true)", "aab" * 3))
