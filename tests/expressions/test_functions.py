"""
Tests for the functions of L{webhookrx.expressions}, by tables.
"""

from __future__ import annotations

import os
import time
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.expressions.programs import problem, worked_out
from webhookrx.expressions import function_table
from webhookrx.expressions.calls import FUNCTIONS
from webhookrx.expressions.function_table import FOREIGN

RAW = "raw"
SECOND = 1_000_000_000

VALUES: list[tuple[str, Any]] = [
    # fields
    ("isset(log.body.user)", True),
    ("isset(log.body.nothing)", False),
    ("isset(log.body.user.x)", False),
    ('isset(log.body["us" + "er"])', True),
    ("isset(log.body[true])", False),
    ("isset(log.body.no)", True),
    ("isset(log.body.null)", False),
    ("isset(log.body.empty)", False),
    ("isset(log)", True),
    ("unset(log.body.nothing)", True),
    ("move(log.body.user)", "Alice"),
    # kinds
    ("string(1.5)", "1.5"),
    ("string(true)", "true"),
    ("string(null)", ""),
    ("string(log.body.ratio)", "1.50"),
    ('string({"a": [1, 2.5, null]})', '{"a":[1,2.5,null]}'),
    ('int("12")', 12),
    ('int("-12.9")', -12),
    ("int(3.9)", 3),
    ("int(true)", 1),
    ("int(log.body.ratio)", 1),
    ('double("1e3")', (RAW, "1000.0")),
    ("double(2)", (RAW, "2.0")),
    ('bool("")', False),
    ("bool([0])", True),
    ('istype(1, "int")', True),
    ('istype(1.5, "double")', True),
    ('istype(log.body.ratio, "double")', True),
    ('istype(null, "null")', True),
    ('istype([], "dict")', False),
    ('istype({}, "json_object")', True),
    ('len("äb")', 2),
    ("len([1, 2])", 2),
    ("len(log.body.e)", 1),
    ('keys({"a": 1, "b": 2})', ["a", "b"]),
    ("json()", {}),
    ("json_array()", []),
    ('json(\'{"a": 1.50, "b": [true]}\')', {"a": (RAW, "1.50"), "b": [True]}),
    ("json(log.body.tags)", ["a", "b"]),
    ("json_array('[1]')", [1]),
    ('format_json({"a": "ä"})', '{"a":"ä"}'),
    ("format_json(null)", "null"),
    ('format_json("a")', '"a"'),
    ('flatten({"a": {"b": 1, "c": {"d": [2]}}, "e": {}})', {"a.b": 1, "a.c.d": [2], "e": {}}),
    ('flatten({"a": {"b": 1}}, separator="=>")', {"a=>b": 1}),
    # texts
    ('lower("ÄB")', "äb"),
    ('lowercase("AB")', "ab"),
    ('upper("äb")', "ÄB"),
    ('uppercase("ab")', "AB"),
    ('startswith("abc", "ab")', True),
    ('startswith("abc", ["x", "AB"], ignorecase=true)', True),
    ('startswith("abc", "AB")', False),
    ('startswith("abc", [])', False),
    ('endswith("abc", ["x", "bc"])', True),
    ('includes("abc", "b")', True),
    ('includes("aßc", "SS", ignorecase=true)', True),
    ('strcasecmp("A", "a")', 0),
    ('strcasecmp("a", "B")', -1),
    ('strcasecmp("b", "A")', 1),
    ('str_replace("aXbX", "X", "--")', "a--b--"),
    ('str_replace("aXbX", "X", "", 1)', "abX"),
    ('str_replace("aXbX", "X", "-", 0)', "aXbX"),
    ('str_strip("  a ")', "a"),
    ('str_lstrip("  a ")', "a "),
    ('str_rstrip("  a ")', "  a"),
    ('md5("a")', "0cc175b9c0f1b6a831c399e269772661"),
    ('sha1("a")', "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
    ('sha256("a")', "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
    ('len(sha512("a"))', 128),
    ('base64_encode("hé")', "aMOp"),
    ('base64_decode("aMOp")', "hé"),
    ('base64_decode("/w==")', "\ufffd"),
    ('hex_encode("é")', "c3a9"),
    ('hex_decode("C3a9")', "é"),
    ('urlencode("a b/ü~")', "a%20b%2F%C3%BC~"),
    ('urldecode("a%20b%C3%BC%zz")', "a bü%zz"),
    ('urldecode("ü%C3é%")', "ü\ufffdé%"),
    # patterns
    (r'regexp_search("foo=12", "(?P<k>\w+)=(\d+)")', {"k": "foo", "2": "12"}),
    (r'regexp_search("foo=12", "(?P<k>\w+)=(?P<v>x)?", keep_zero=true)', {"0": "foo=", "k": "foo"}),
    ('regexp_search("äbc", "b")', {"0": "b"}),
    ('regexp_search("abc", "x")', {}),
    ('regexp_search("abc", "x", list_mode=true)', []),
    ('regexp_search("abc", "(a)(x)?", list_mode=true)', ["a", ""]),
    ('regexp_subst("aXbX", "X", "-")', "a-bX"),
    ('regexp_subst("aXbX", "x", "-", global=true, ignorecase=true)', "a-b-"),
    ('regexp_subst("äöü", "", "-", global=true)', "-ä-ö-ü-"),
    (r'regexp_subst("k=v", "(\w)=(\w)(x)?", "\2=\1\0\3\9\\", groups=true)', "v=kk=v\\9\\"),
    (r'regexp_subst("k", "(k)", "\1")', r"\1"),
    ('regexp_subst("abc", "x", "y")', "abc"),
    ('glob_match("web-1.log", "web-*.log")', True),
    ('glob_match("a/b", "a*")', False),
    ('glob_match("a/b", "*/?")', True),
    ('glob_match(".hidden", "*")', False),
    ('glob_match(".hidden", ".h*")', True),
    ('glob_match("x5", ["y*", "x[0-9]"])', True),
    ('glob_match("xd", "x[!a-c]")', True),
    ('glob_match("x]", "x[]]")', True),
    ('glob_match("x[", "x[[]")', True),
    (r'glob_match("a*\n", "a\**")', True),
    ('glob_match("ab", "a.")', False),
    ('glob_match("a(", "a(")', True),
    # parsing
    (
        "parse_kv('a=1, b=two words c=\"x, \\\\\"y\" d=\\'q\\' e.f-g=')",
        {"a": "1", "b": "two words", "c": 'x, "y', "d": "q", "e.f-g": ""},
    ),
    ('parse_kv("from:<a@b>;to:c", value_separator=":", pair_separator=";")', {"from": "<a@b>", "to": "c"}),
    ('parse_kv("a=1, stray, b=2, =3")', {"a": "1", "b": "2"}),
    ('parse_kv("no pairs")', {}),
    ("parse_csv('a,\"b,c\", d,')", ["a", "b,c", " d", ""]),
    ('parse_csv("")', [""]),
    ("parse_csv('a;b|c', delimiter=\";|\")", ["a", "b", "c"]),
    ('parse_csv("a,b,c", delimiter="")', ["a,b,c"]),
    ('parse_csv(\'"a"x,"b""c"\')', ["ax", 'b"c"']),
    ('parse_csv(\'"b""c"\', dialect="escape-double-char")', ['b"c']),
    (r"""parse_csv('"b\\"c"', dialect="escape-backslash")""", ['b"c']),
    ('parse_csv("a , b", strip_whitespace=true)', ["a", "b"]),
    ('parse_csv("a,b,c", columns=["x", "y"])', {"x": "a", "y": "b"}),
    ('parse_csv("a,b,c", columns=["x", "y"], greedy=true)', {"x": "a", "y": "b,c"}),
    ('parse_csv("a", columns=["x", "y"])', {"x": "a"}),
    ('parse_csv("\\"open,b")', ['"open', "b"]),
    # time
    ('strptime("1970-01-01T00:00:01Z", "%Y-%m-%dT%H:%M:%S%z")', SECOND),
    ('strptime("2024-04-10 08:09:10.123 +02:00", "%F %T.%f %z")', 1_712_729_350_123 * 1_000_000),
    ('strptime("10/Apr/2024:08:09:10 -0130", "%d/%b/%Y:%H:%M:%S %z")', 1_712_741_950 * SECOND),
    ('strptime("Apr  3 24 1:02 pm", "%b %e %y %I:%M %p")', 1_712_149_320 * SECOND),
    ('strptime("12 AM 1 January 1970", "%I %p %d %B %Y")', 0),
    ('strptime("Thu, 01 Jan 1970", "%a, %d %b %Y")', 0),
    ('strptime("1970 032", "%Y %j")', 31 * 86_400 * SECOND),
    ('strptime("1712736550.5", "%s.%f")', 1_712_736_550_500_000_000),
    ('strptime("-1", "%s")', -SECOND),
    ('strptime("100% 1970-01-01", "100%%%n%F")', 0),
    ('strptime("x", "%Y-%m", "%s")', None),
    ('strptime("1970-02-30", "%F")', None),
    ('strptime("1970 366", "%Y %j")', None),
    ('strptime("9999-01-01", "%F")', None),
    ('strptime("1970-01-01 24:00", "%F %R")', None),
    ('strptime("1970-01-01 13 AM", "%F %I %p")', None),
    ('strptime("1970-01-01 1", "%F", "%F %H")', 3_600 * SECOND),
    ('strptime("01/02/69", "%D")', -364 * 86_400 * SECOND),
    (
        'strftime("%a %A %b %B %C %d %D %e %f %3f %9f %F %H %I %j", 1712736550123456789)',
        "Wed Wednesday Apr April 20 10 04/10/24 10 123456 123 123456789 2024-04-10 08 08 101",
    ),
    (
        'strftime("%m %M %p %R %S %T %u %w %y %Y %z %Z %s %% %h", 1712736550123456789)',
        "04 09 AM 08:09 10 08:09:10 3 3 24 2024 +0000 +00:00 1712736550 % Apr",
    ),
    ('strftime("%I %p%n%t", 43200000000000)', "12 PM\n\t"),
    ('strftime("%F %T.%6f", -1)', "1969-12-31 23:59:59.999999"),
]

PROBLEMS: list[tuple[str, str]] = [
    ("lower(1)", "The argument is no text; string() makes one."),
    ("lower(log.body)", "The argument is no text"),
    ('startswith("a", 1)', "The argument is no text"),
    ('startswith("a", [1])', "The argument is no text"),
    ('str_replace("a", "", "b")', "The text to replace is empty."),
    ('str_replace("a", "a", "b", "c")', "The number of replacements is an integer."),
    ('base64_decode("a")', "The text is not Base64."),
    ('base64_decode("ä")', "The text is not Base64."),
    ('hex_decode("a")', "The text is not hexadecimal."),
    ('int("x")', "The argument is no number."),
    ('int("1_0")', "The argument is no number."),
    ('int(" 1")', "The argument is no number."),
    ('int("nan")', "The argument is no number."),
    ('int("1e999")', "The argument is no number."),
    ('int("9223372036854775808")', "more than 64 bits"),
    ("int(1e300)", "more than 64 bits"),
    ("double(log.body.huge)", "too large"),
    ("double([])", "The argument is no number."),
    ("len(1)", "The argument is no text, list or object."),
    ("keys([])", "The argument is no object."),
    ("flatten([])", "The argument is no object."),
    ('json("{")', "The text is not JSON"),
    ('json("")', "The text is empty."),
    ('json_array("{}")', "The argument is no list."),
    ('parse_kv("a", value_separator="==")', "value_separator is one character"),
    ('parse_kv("a", pair_separator="")', "value_separator is one character"),
    ('parse_csv("a", dialect="x")', "dialect is one of"),
    ('strftime("%Y", "x")', "The moment is no integer"),
    ('strftime("%Y", log.body.huge)', "not within the years"),
]

BODY = {
    "user": "Alice",
    "ratio": msgspec.Raw(b"1.50"),
    "tags": ["a", "b"],
    "no": False,
    "null": None,
    "empty": "",
    "e": {"a": 1},
    "huge": 10**600,
}


class FunctionTests(SynchronousTestCase):
    """Functions."""

    def test_values(self) -> None:
        """A function returns what the table says."""
        for call, expected in VALUES:
            with self.subTest(call):
                found = worked_out(call, BODY)
                self.assertEqual((type(expected), expected), (type(found), found))

    def test_problems(self) -> None:
        """What a function can't take is told at its name."""
        for call, sentence in PROBLEMS:
            with self.subTest(call):
                found, line, column = problem(f"a = {call};", BODY)
                self.assertIn(sentence, found)
                self.assertEqual((1, 5), (line, column))

    def test_none_is_left_out(self) -> None:
        """The tables here call each function."""
        called = "".join(call for call, _ in VALUES)
        by_program = {"set_fields", "unset_empties"}
        self.assertEqual(set(), {name for name in FUNCTIONS if f"{name}(" not in called} - by_program)

    def test_long_percent_encoding(self) -> None:
        """Wherever a long text is cut into pieces, it comes out whole."""
        for shift in range(4):
            text = "a" * shift + "%C3%BC%" * 3_000 + "ü%"
            self.assertEqual(unquote(text), worked_out("urldecode(log.body)", text))
            self.assertEqual(quote(text, safe=""), worked_out("urlencode(log.body)", text))
        self.assertIn("A text is longer", problem("a = urlencode(log.body);", "%" * 350_000)[0])

    def test_time_zone_does_not_matter(self) -> None:
        """A moment without a zone is UTC, wherever this runs."""
        self.addCleanup(time.tzset)
        os.putenv("TZ", "Asia/Tokyo")
        self.addCleanup(os.unsetenv, "TZ")
        time.tzset()
        self.assertEqual(0, worked_out('strptime("1970-01-01", "%F")'))
        self.assertEqual("00", worked_out('strftime("%H", 0)'))

    def test_table(self) -> None:
        """The table of the docs has a line for each function."""
        lines = function_table().splitlines()
        self.assertEqual(len(FUNCTIONS) + 2, len(lines))
        self.assertIn("| `lower(text)` | The text in lower case. |", lines)

    def test_foreign_functions_are_none_of_ours(self) -> None:
        """What is said to be left out is left out."""
        self.assertEqual(set(), FOREIGN.keys() & FUNCTIONS.keys())
