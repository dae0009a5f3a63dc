"""
Tests for L{webhookrx.query.query_parser} and L{webhookrx.query.query_lexer}.
"""

from __future__ import annotations

import sys

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.query import FieldUse, QueryError, format_tree, line_and_column, parse
from webhookrx.query.query_lexer import MAX_LENGTH
from webhookrx.query.query_parser import MAX_EXPRESSIONS, MAX_LEVELS, MAX_TERMS

ALL = "= != =* !* =~ !~ == !== ==* !=* ==~ !=~ < <= > >="
THEN = " and a value, IN and values in parentheses, or EXISTS"
QUOTES = "a value that holds blanks, commas or operators needs quotes."


class StructureTests(SynchronousTestCase):
    """How terms are put together, shown by the parentheses of the normalised text."""

    TABLE = (
        ("", ""),
        (" \n\t ", ""),
        ("name = my-axorouter", "name = my-axorouter"),
        ("a=1 OR b=2 AND c=3", "a = 1 OR (b = 2 AND c = 3)"),
        ("a=1 AND b=2 OR c=3", "(a = 1 AND b = 2) OR c = 3"),
        ("a=1, b=2 or c=3", "(a = 1 AND b = 2) OR c = 3"),
        ("a=1 AND (b=2 OR c=3)", "a = 1 AND (b = 2 OR c = 3)"),
        ("NOT a=1 AND b=2", "NOT a = 1 AND b = 2"),
        ("NOT (a=1 AND b=2)", "NOT (a = 1 AND b = 2)"),
        ("not not a=1", "NOT NOT a = 1"),
        ("a=1 and b=2 And (c=3 aNd ((d=4)))", "a = 1 AND b = 2 AND c = 3 AND d = 4"),
        ("a=1 OR (b=2 OR c=3) OR d=4", "a = 1 OR b = 2 OR c = 3 OR d = 4"),
        ("a exists, b NOT EXISTS AND not c Exists", "a EXISTS AND NOT b EXISTS AND NOT c EXISTS"),
        (
            "( host_name =* azure AND host_label_team = network ) OR ( host_name =* app AND host_label =* win )",
            "(host_name =* azure AND host_label_team = network) OR (host_name =* app AND host_label =* win)",
        ),
        ("@ANY =* keyword1 AND @any =* keyword2", "@ANY =* keyword1 AND @ANY =* keyword2"),
        ("a=1\n  AND b=2\n", "a = 1 AND b = 2"),
        ("a in(1,'x y',10.0.0.0/8) , NOT b IN ( ')' )", "a IN (1, 'x y', 10.0.0.0/8) AND NOT b IN (')')"),
        ("a not in (in, @ANY) OR in IN (in)", "NOT a IN (in, '@ANY') OR in IN (in)"),
        ("a < -1.5 OR b>=1e3", "a < -1.5 OR b >= 1e3"),
        ("a.'b.c' = 1 AND 'a.b'.c EXISTS", "a.'b.c' = 1 AND 'a.b'.c EXISTS"),
        ("a.'b'.\"c\" = 1 AND 'x y'.z = 2", "a.b.c = 1 AND 'x y.z' = 2"),
        ("connector.name = a AND connector EXISTS", "meta.connector.name = a AND meta.connector EXISTS"),
    )

    def test_table(self) -> None:
        """NOT binds tighter than AND, AND tighter than OR; a comma is AND."""
        for text, expected in self.TABLE:
            with self.subTest(query=text):
                self.assertEqual(expected, format_tree(parse(text).tree))

    def test_fields(self) -> None:
        """A query tells which fields it asks for, and where."""
        query = parse("label.a = 1 OR NOT ('b c' EXISTS, @ANY = x) OR label.a = 2 OR 'a'.'b.c' IN (1)")

        uses = (FieldUse("label.a", 1), FieldUse("b c", 21), FieldUse("label.a", 48), FieldUse("a.'b.c'", 63))
        self.assertEqual(uses, query.fields)
        self.assertEqual("parse('a = 1')", repr(parse("a = 1")))


class WordTests(SynchronousTestCase):
    """Names and values, with and without quotes."""

    def value(self, text: str) -> str:
        """Return the value of a query of one term, by what it matches."""
        (term,) = [parse(text).tree]
        return str(term.value)  # type: ignore[union-attr]  # a Term

    def test_operators_without_blanks(self) -> None:
        """The longest operator wins, with or without blanks around it."""
        for operator in ALL.split():
            for text in (f"a{operator}1", f"a {operator} 1", f"a{operator} 1", f"'a'{operator}'1'"):
                with self.subTest(query=text):
                    self.assertEqual(f"a {operator} 1", format_tree(parse(text).tree))

    def test_values_without_quotes(self) -> None:
        """What can't be mistaken needs no quotes."""
        for value in (
            *("8443", "10.0.0.0/8", "fe80::1", "user@example.net", "_x", "-5", "A-z", "@ANY", "C:/x", "."),
            *("a+b", "50%", "web*", "what?", "^web", "web$", "a#b", "münchen", "日本"),
        ):
            with self.subTest(value=value):
                self.assertEqual(value, self.value(f"a = {value}"))
                self.assertEqual(value, self.value(f"a={value}"))

    def test_quotes(self) -> None:
        """In quotes only a backslash before the quote or a backslash is an escape."""
        table = {
            "'x y'": "x y",
            '"x y"': "x y",
            "`x y`": "x y",
            "''": "",
            r"'\d+\.'": r"\d+\.",
            r"'it\'s'": "it's",
            r'''"it's"''': "it's",
            r"'\"'": r"\"",
            r"'a\\'": "a\\",
            r"'\\\\'": r"\\",
            r"'\\d'": r"\d",
            "'and'": "and",
            "'= ( ) , ! \t ü “'": "= ( ) , ! \t ü “",
        }
        for written, expected in table.items():
            with self.subTest(written=written):
                self.assertEqual(expected, self.value(f"a = {written}"))

    def test_written_again(self) -> None:
        """The normalised text takes the quotes that need fewest escapes."""
        table = {
            "a = web*": "a = 'web*'",
            "a = 'AND'": "a = 'AND'",
            "a = 'x'": "a = x",
            r"a = 'it\'s'": '''a = "it's"''',
            r"""a = '\'"'""": """a = `'"`""",
            r"""a = '\'"`'""": r"""a = '\'"`'""",
            r"a =~ '\d'": r"a =~ '\d'",
            r"a = '\\\\'": r"a = '\\\\'",
            r"a = 'x\\'": r"a = 'x\\'",
            "'b c' = 1": "'b c' = 1",
            "'@any' = 1": "'@any' = 1",
            "'not' exists": "'not' EXISTS",
        }
        for text, expected in table.items():
            with self.subTest(query=text):
                self.assertEqual(expected, format_tree(parse(text).tree))


class ErrorTests(SynchronousTestCase):
    """What is said of a text that is no query, and of which place in it."""

    def error(self, text: str) -> tuple[int, str]:
        """Return column and problem of a text."""
        error = self.assertRaises(QueryError, parse, text)
        self.assertEqual(f"column {error.column}: {error.problem}", str(error))
        return error.column, error.problem

    TABLE = (
        ("name = = x", 8, 'A value is expected after "=", not "="; a value that begins with it needs quotes.'),
        ("name =", 7, """A value is expected after "=", not the end of the query; the empty value is written ''."""),
        ("name = (x)", 8, 'A value is expected after "=", not "("; a value that begins with it needs quotes.'),
        ("a = and", 5, 'A value is expected after "=", not "and", which is a keyword: as a value it needs quotes.'),
        ("a = exists", 5, 'after "=", not "exists", which is a keyword'),
        (
            "name",
            5,
            f'An operator is expected after "name", not the end of the query: {ALL}{THEN}',
        ),
        ("name ", 5, "not the end of the query"),
        (
            "a = x, y",
            9,
            f'after "y", not the end of the query: {ALL}{THEN}; {QUOTES}',
        ),
        ("name is x", 6, 'An operator is expected after "name", not "is"'),
        ("name and x = 1", 6, 'after "name", not "and"'),
        ("(a = b", 1, 'This "(" is never closed: a ")" is missing.'),
        ("a = 1 AND (b = 2 OR (c = 3)", 11, 'This "(" is never closed'),
        ("(a = b c = d)", 8, f'AND, OR or ")" is missing before "c"; {QUOTES}'),
        ("a = b)", 6, 'There is no "(" for this ")".'),
        ("a = b c = d", 7, f'AND or OR is missing before "c"; {QUOTES}'),
        ("a = b=c", 6, 'AND or OR is missing before "="'),
        ("a = b 'c'", 7, 'AND or OR is missing before "c"'),
        ("a = b NOT c = d", 7, 'AND or OR is missing before "NOT"'),
        ("a = 'x", 5, "This quote is never closed: a second ' is missing."),
        ("a = 'x\\'", 5, "never closed"),
        ("a = 'x\\", 5, "never closed"),
        ("a = 'x\ny'", 7, "Line ends and control characters can't stand in quotes"),
        ("a = `x\u2028y`", 7, "Line ends"),
        ("a === b", 3, f'There is no operator "===", only {ALL}; a value that begins'),
        (f"a {'=' * 9_999}", 3, f'There is no operator "{"=" * 59}…", only'),
        (f"a {'b' * 9_999}", 3, f'not "{"b" * 59}…": ='),
        ("a <> b", 3, f'There is no operator "<>", only {ALL};'),
        ("a > x", 5, "Behind > stands a number, such as 400 or -1.5."),
        ("a <= 0x10", 6, "Behind <= stands a number"),
        ("a < 01", 5, "Behind < stands a number"),
        ("a IN 1", 6, 'Values in parentheses are expected after "IN".'),
        ("a IN ()", 7, 'A value is expected after "IN", not ")"'),
        ("a in (1,)", 9, 'A value is expected after "in", not ")"'),
        ("a IN (1 2)", 9, 'A comma or ")" is missing before "2"'),
        ("a IN (1", 8, 'A comma or ")" is missing before the end of the query'),
        ("a IN (and)", 7, 'not "and", which is a keyword'),
        ("a IN (10.0.0.1/8)", 3, "10.0.0.1/8 is no network: its prefix is too long, or it has bits set behind it."),
        ("a IN (::1/129)", 3, "::1/129 is no network"),
        ("a.'' = 1", 1, "A field is written as names with a dot between them, such as log.'a.b'."),
        ("a = *x", 5, 'A value that begins with "*" needs quotes; "contains" is written =* value.'),
        ("a = 1 && b = 2", 7, 'There is no operator "&": write AND, or put a value that holds it in quotes.'),
        ("a = 1 || b = 2", 7, 'There is no operator "|": write OR'),
        ("!a = 1", 1, f'There is no operator "!" alone: write NOT, or one of {ALL}.'),
        ("a = !b", 5, 'There is no operator "!" alone'),
        ("a = “x”", 5, "The character “ needs quotes around the name or value that holds it; quotes are ' \" and `."),
        ("a =~ \\d", 6, "The character \\ needs quotes"),
        ("a = \x00", 5, "The character U+0000 can't stand in a query."),
        ("a*b = 1", 2, "A field that holds the character * needs quotes around it."),
        ("a..b = 1", 1, "A field is written as names with a dot between them, such as log.body.user."),
        (f"a{'.a' * 128} = 1", 1, "A field has no more than 128 names."),
        ("'' = 1", 1, "A field is written as names"),
        ("= 1", 1, 'A field is expected here, such as name or label.site, not "=".'),
        ("()", 2, 'not ")".'),
        (", a = 1", 1, 'not ",".'),
        ("a = 1 AND", 10, "A field is expected here, such as name or label.site, not the end of the query."),
        ("a = 1,", 7, "not the end of the query."),
        ("a = 1 AND OR b = 2", 11, 'not "OR". A field that is called like a keyword needs quotes.'),
        ("or = 1", 1, 'not "or". A field that is called like a keyword needs quotes.'),
        ("NOT = 1", 5, 'not "=". A field that is called like a keyword needs quotes.'),
        ("NOT", 4, "A field is expected here"),
        ("a NOT = 1", 3, "NOT stands before the field; only EXISTS and IN may follow it here."),
        ("@ANY EXISTS", 1, "@ANY needs an operator and a value."),
        ("@ANY NOT EXISTS", 1, "@ANY needs an operator and a value."),
        ("a = 1 AND b =~ '('", 16, "The regular expression does not compile: missing )"),
        ("b !=~ (?=x)", 7, 'A value is expected after "!=~", not "("'),
        ("b =~ '(?=x)'", 6, "RE2 can't run this regular expression"),
    )

    def test_table(self) -> None:
        """Each error points at the very token, and says what was expected."""
        for text, column, problem in self.TABLE:
            with self.subTest(query=text):
                found_column, found_problem = self.error(text)
                self.assertEqual(column, found_column)
                self.assertIn(problem, found_problem)

    def test_lines(self) -> None:
        """The column of a text with several lines can be told as line and column."""
        text = "a = 1\n  AND b = = 2"
        column, _ = self.error(text)

        self.assertEqual((17, (2, 11)), (column, line_and_column(text, column)))
        self.assertEqual((1, 3), line_and_column(text, 3))
        self.assertEqual((2, 1), line_and_column("a\n", 3))


class LimitTests(SynchronousTestCase):
    """How large a query may be."""

    def test_limits(self) -> None:
        """What is just within each limit is read; what is just beyond it is an error that names the limit."""
        deep = f"({'NOT (' * (MAX_LEVELS // 2)}"
        table = (
            ("(" * MAX_LEVELS + "a=1" + ")" * MAX_LEVELS, "(" * (MAX_LEVELS + 1) + "a=1", "64 levels", 65),
            ("NOT " * MAX_LEVELS + "a=1", "NOT " * (MAX_LEVELS + 1) + "a=1", "64 levels", 257),
            ("(a=1)," * 100 + "a=1", deep, "64 levels", len(deep)),
            ("NOT a=1," * 100 + "a=1", "NOT (" * 33, "64 levels", 161),
            (",".join(["a=1"] * MAX_TERMS), ",".join(["a=1"] * (MAX_TERMS + 1)), "1,000 terms", 4001),
            (
                ",".join(["a=~x"] * MAX_EXPRESSIONS),
                ",".join(["a=~x"] * (MAX_EXPRESSIONS + 1)),
                "100 regular expressions",
                504,
            ),
            ("a=" + "x" * (MAX_LENGTH - 2), "a=" + "x" * (MAX_LENGTH - 1), "16,384 characters", MAX_LENGTH + 1),
        )
        for within, beyond, limit, column in table:
            with self.subTest(limit=limit, query=beyond[:20]):
                parse(within).matches({"a": "1"})
                error = self.assertRaises(QueryError, parse, beyond)
                self.assertIn(limit, error.problem)
                self.assertEqual(column, error.column)

    def test_misleading(self) -> None:
        """What an error quotes shows as what it is."""
        for text in ("a = 'b' 'c\u202ed'", "'a\u202eb' c", "a = b 'x\u200fy'"):
            error = self.assertRaises(QueryError, parse, text)
            self.assertTrue(error.problem.isprintable(), error.problem)
            self.assertIn("\\u20", error.problem)

    def test_deep_stack(self) -> None:
        """The deepest query can be read, matched, written and explained from deep in a program."""
        text = "NOT (a=1 OR b=2 AND " * (MAX_LEVELS // 2) + "c=3" + ")" * (MAX_LEVELS // 2)
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(600 + len(_stack()))
        try:
            query = parse(text)
            query.matches({})
            format_tree(query.tree)
        finally:
            sys.setrecursionlimit(before)


def _stack() -> list[object]:
    frames: list[object] = []
    frame = sys._getframe()
    while frame.f_back:
        frames.append(frame)
        frame = frame.f_back
    return frames
