"""
Tests for the functions of L{webhookrx.router.expressions}, by tables.
"""

from __future__ import annotations

import os
import time
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.router.expressions.programs import problem, worked_out
from webhookrx.router.expressions import function_table
from webhookrx.router.expressions.calls import FOREIGN, FUNCTIONS

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
    ("isset(log.body.null)", True),
    ("isset(log.body.empty)", True),
    ("isset(1 / 0)", False),
    ("isset(log)", True),
    ("unset(log.body.nothing)", True),
    ("move(log.body.user)", "Alice"),
    # kinds
    ("string(1.5)", "1.5"),
    ("string(true)", "true"),
    ("string(null)", "null"),
    ("string((1, 'a'))", '(1,"a")'),
    ("string(datetime(1500000000))", "1.500000"),
    ("string(datetime(1500000001))", "1.500000001"),
    ("string(ip('::ffff:1.2.3.4'))", "ip('::ffff:1.2.3.4')"),
    ("string(log.body.ratio)", "1.50"),
    ('string({"a": [1, 2.5, null]})', '{"a":[1,2.5,null]}'),
    ('int("12")', 12),
    ('int(" -12")', -12),
    ("int(3.9)", 4),
    ("int(-2.5)", -3),
    ("int(datetime(5))", 5),
    ("int(true)", 1),
    ("int(log.body.ratio)", 2),
    ("double(datetime(1500000000))", (RAW, "1.5")),
    ('double("1e3")', (RAW, "1000.0")),
    ("double(2)", (RAW, "2.0")),
    ('bool("")', False),
    ("bool([])", True),
    ('istype(1, "integer")', True),
    ('istype(1, "object")', True),
    ('istype(ip("::1"), "ip")', True),
    ('istype((1,), "sequence")', True),
    ('istype(1.5, "double")', True),
    ('istype(log.body.ratio, "double")', True),
    ('istype(null, "null")', True),
    ('istype([], "dict")', False),
    ('istype({}, "mapping")', True),
    ('len("äb")', 2),
    ("len([1, 2])", 2),
    ("len(log.body.e)", 1),
    ('keys({"a": 1, "b": 2})', ["a", "b"]),
    ("keys([5, 6])", [0, 1]),
    ('dict_to_pairs({"a": [1]}, "k", "v")', [{"k": "a", "v": [1]}]),
    (r'repr("a\"b")', r'"a\"b"'),
    ("repr(datetime(0))", "datetime(0.000000)"),
    ('repr(bytes("a"))', 'bytes("a")'),
    ("len(uuid())", 36),
    ("uuid4() eq uuid4()", False),
    ("vars()", {}),
    ('bytes("hé")', "aMOp"),
    ('len(bytes("é") + bytes("a"))', 3),
    ("json()", {}),
    ("json_array()", []),
    ('json(\'{"a": 1.50, "b": [true]}\')', {"a": (RAW, "1.50"), "b": [True]}),
    ("dict(log.body.e)", {"a": 1}),
    ("list(log.body.tags)", ["a", "b"]),
    ('tuple("[1, 2]")', [1, 2]),
    ('parse_json("[1, {}]")', [1, {}]),
    ('parse_json("null")', None),
    ('cache_json_file("/etc/teams.json")["web-1"] ?? "none"', "none"),
    ("json_array('[1]')", [1]),
    ('format_json({"a": "ä"})', '{"a":"ä"}'),
    ("format_json(null)", "null"),
    ('format_json("a")', '"a"'),
    ('flatten({"a": {"b": 1}}, separator="=>")', True),
    # texts
    ('lower("ÄB")', "äb"),
    ('lowercase("AB")', "ab"),
    ('upper("äb")', "ÄB"),
    ('uppercase("ab")', "AB"),
    ('startswith("abc", "ab")', True),
    ('startswith("abc", ["x", "AB"], ignorecase=true)', True),
    ('startswith("abc", "AB")', False),
    ('startswith("abc", ["a", 5])', True),
    ('endswith("abc", ["x", "bc"])', True),
    ('includes("abc", "b")', True),
    ('includes("abc", "c", limit=2)', False),
    ('includes("aßc", "SS", ignorecase=true)', True),
    ('strcasecmp("A", "a")', 0),
    ('strcasecmp("a", "B")', -1),
    ('strcasecmp("b", "A")', 1),
    ('str_replace("aXbX", "X", "--")', "a--b--"),
    ('str_replace("aXbX", "X", "", 1)', "abX"),
    ('str_replace("aXbX", "X", "-", 0)', "a-b-"),
    ('str_replace("aa", "", "-")', "-a-a-"),
    ('str_strip("  a ")', "a"),
    ('str_lstrip("  a ")', "a "),
    ('str_rstrip("  a ")', "  a"),
    ('md5("a")', "0cc175b9c0f1b6a831c399e269772661"),
    ('sha1("a")', "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
    ('sha256("a")', "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
    ('len(sha512("a"))', 128),
    ('base64_encode("hé")', "aMOp"),
    ('base64_encode(base64_decode("aMOp"))', "aMOp"),
    ('string(base64_decode("aM*Op="))', "hé"),
    ('base64_decode("/w==")', "/w=="),
    ('string(base64_decode("/w=="))', "\ufffd"),
    ('hex_encode(digest("a", alg="MD5"))', "0cc175b9c0f1b6a831c399e269772661"),
    ('utf8_validate(hex_decode("ff"))', False),
    ('utf8_sanitize(hex_decode("61ff"))', "a\ufffd"),
    ('hex_encode("é")', "c3a9"),
    ('string(hex_decode("C3a9"))', "é"),
    ('urlencode("a b/ü~")', "a%20b%2F%C3%BC~"),
    ('urldecode("a%20b%C3%BC+")', "a bü+"),
    ('urldecode("ü%C3é")', "ü\ufffdé"),
    # patterns
    (r'regexp_search("foo=12", "(?P<k>\w+)=(\d+)")', {"k": "foo", "2": "12"}),
    (r'regexp_search("foo=12", "(?P<k>\w+)=(?P<v>x)?", keep_zero=true)', {"0": "foo=", "k": "foo"}),
    ('regexp_search("äbc", "b")', {"0": "b"}),
    ('regexp_search("abc", "x")', {}),
    ('regexp_search("abc", "x", list_mode=true)', []),
    ('regexp_search("abc", "(a)(x)?", list_mode=true)', ["a", None]),
    ('regexp_subst("aXbX", "X", "-")', "a-bX"),
    ('regexp_subst("aXbX", "x", "-", global=true, ignorecase=true)', "a-b-"),
    ('regexp_subst("äöü", "", "-", global=true)', "-ä-ö-ü-"),
    (r'regexp_subst("k=v", "(\w)=(\w)(x)?", "\2=\1\0\3\9\\n")', "v=kk=v\\3\\9\\n"),
    (r'regexp_subst("k", "(k)", "\1", groups=false)', r"\1"),
    ('regexp_subst("foobar", "$", "-", global=true)', "foobar-"),
    ('regexp_subst("foo bar", "(\\w+)", "[\\1]", global=true)', "[foo] [bar]"),
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
        r"""parse_kv("a=1, b=two words c=\"x, \\\"y\" d='q' e.f-g=")""",
        {"a": "1", "b": "two words", "c": 'x, "y', "d": "q", "e.f-g": ""},
    ),
    ('parse_kv("from:<a@b>;to:c", value_separator=":", pair_separator=";")', {"from": "<a@b>", "to": "c"}),
    ('parse_kv("a=1, stray, b=2, =3")', {"a": "1", "b": "2"}),
    ('parse_kv("no pairs")', {}),
    ('parse_kv("url=http://x/?q=1&r=2 next=1")', {"url": "http://x/?q=1&r=2", "next": "1"}),
    ('parse_kv("token=abc==")', {"token": "abc=="}),
    ('parse_kv("a, b c=1 d", stray_words_key="s")', {"c": "1 d", "s": '"a, b"'}),
    ('parse_kv("a=1 b c=2 d", stray_words_append_to_value=true, pair_separator=" ")', {"a": "1 b", "c": "2 d"}),
    ('format_kv({"a": 1, "b": "x y", "c": [1], "d": null})', 'a=1, b="x y", d=null'),
    ("format_kv({'a': 'it\\'s'}, quote_char=\"'\", always_quote=true)".replace("\\'", ""), "a='its'"),
    ('format_csv(["a", "b,c", 1.5])', 'a,"b,c",1.5'),
    ('format_csv({"a": 1}, columns=["b", "a"], default_value="-", delimiter=";")', "-;1"),
    ("parse_csv('a,\"b,c\", d,')", ["a", "b,c", " d"]),
    ('parse_csv("")', []),
    ('parse_csv("a::b--c", delimiter="", string_delimiters=["::", "--"])', ["a", "b", "c"]),
    ('parse_csv("[a,b],c", quote_pairs=["[]"])', ["a,b", "c"]),
    ("parse_csv('a;b|c', delimiter=\";|\")", ["a", "b", "c"]),
    ('parse_csv(\'"a"x,"b""c"\')', ['a"', 'b""c']),
    ('parse_csv(\'"b""c"\', dialect="escape-double-char")', ['b"c']),
    (r"""parse_csv('"b\"c"', dialect="escape-backslash")""", ['b"c']),
    ('parse_csv("a , b", strip_whitespace=true)', ["a", "b"]),
    ('parse_csv("a,b,c", columns=["x", "y"])', {"x": "a", "y": "b"}),
    ('parse_csv("a,b,c", columns=["x", "y"], greedy=true)', {"x": "a", "y": "b,c"}),
    ('parse_csv("a", columns=["x", "y"])', {"x": "a"}),
    ('parse_csv("\\"open,b")', ["open,b"]),
    (r"""parse_csv('"a\x41\n"', dialect="escape-backslash-with-sequences")""", ["aA\n"]),
    (
        'parse_cef("CEF:0|a|b\\\\|c|1|d|e|5|src=1 msg=two words act=x", separate_extensions=true).extensions',
        {"src": "1", "msg": "two words", "act": "x"},
    ),
    ('parse_leef("LEEF:2.0|V|P|1|E|^|src=1^dst=2").dst', "2"),
    ("parse_xml(\"<a><b>1</b><b x='2'>3</b></a>\")", {"a": {"b": ["1", {"@x": "2", "#text": "3"}]}}),
    # time
    ('strptime("1970-01-01T00:00:01Z", "%Y-%m-%dT%H:%M:%S%z")', SECOND),
    ('strptime("2024-04-10 08:09:10.123 +02:00", "%F %T.%f %z")', 1_712_729_350_123 * 1_000_000),
    ('strptime("10/Apr/2024:08:09:10 -0130", "%d/%b/%Y:%H:%M:%S %z")', 1_712_741_950 * SECOND),
    ('strptime("Apr  3 24 1:02 pm", "%b %e %y %I:%M %p")', 1_712_149_320 * SECOND),
    ('strptime("12 AM 1 January 1970", "%I %p %d %B %Y")', 0),
    ('strptime("Thu, 01 Jan 1970", "%a, %d %b %Y")', 0),
    ('strptime("1970 032", "%Y %j")', 31 * 86_400 * SECOND),
    ('strptime("1712736550.5", "%s.%f")', 1_712_736_550_500_000_000),
    ('strptime("-1", "%s")', None),
    ('strptime("100% 1970-01-01", "100%%%n%F")', 0),
    ('strptime("x", "%Y-%m", "%s")', None),
    ('strptime("1970-01-32", "%F")', None),
    ('strptime("1970-02-30", "%F") == strptime("1970-03-02", "%F")', True),
    ('strptime("1970 367", "%Y %j")', None),
    ('strptime("1970-01-01 and more", "%F")', 0),
    ('strftime("%F", strptime("Nov 14", "%b %d"))', "2023-11-14"),
    ('strftime("%F", strptime("Dec 14", "%b %d"))', "2023-12-14"),
    ('strftime("%F %T%z", strptime("1970-01-01T01:00:00 EST", "%FT%T %Z"))', "1970-01-01 01:00:00-0500"),
    ('strftime("%F", strptime("2024 15 1", "%Y %U %w"))', "2024-04-15"),
    ('datetime("1970-01-01T00:00:01+00:00")', SECOND),
    ("datetime(1.5)", 1_500_000_000),
    ("datetime(5) + 3", 8),
    ('isodate("1970-01-01T01:00:00.5+01:00")', 500_000_000),
    ('format_isodate(set_timezone(datetime(0), "Europe/Berlin"))', "1970-01-01T01:00:00.000000+01:00"),
    (
        'format_isodate(fix_timezone(datetime("2024-03-10T02:30:00Z"), "America/New_York"))',
        "2024-03-10T03:30:00.000000-04:00",
    ),
    ('get_timezone_source(guess_timezone(datetime("2023-11-15T00:13:20Z")))', "guessed"),
    ('format_isodate(guess_timezone(datetime("2023-11-15T00:13:20Z")))', "2023-11-15T00:13:20.000000+02:00"),
    ('get_timestamp(stamp="recvd")', 1_700_000_000 * SECOND),
    ("set_timestamp(datetime(5))", True),
    ('strptime("9999-01-01", "%F")', None),
    ('strptime("1970-01-01 24:00", "%F %R")', None),
    ('strptime("1970-01-01 13 AM", "%F %I %p")', None),
    ('strptime("1970-01-01 1", "%F %H", "%F")', 3_600 * SECOND),
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
    ('startswith("a", 1)', "The argument is a text, or a list of texts"),
    ('startswith("a", [])', "a list of texts that is not empty"),
    ('startswith("a", [1])', "The argument is no text"),
    ('str_replace("a", "a", "b", "c")', "The number of replacements is an integer."),
    ('urldecode("%zz")', "A % stands before no byte"),
    ('parse_cef("CEF:0|a")', "The head has no device_product."),
    ('parse_xml("<a>")', "The text is no XML"),
    ("parse_xml(\"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>\")", "The text is no XML"),
    ("format_kv([])", "The argument is no object."),
    ('ip("nowhere")', "The text is no address."),
    ('strftime("%Y", true)', "The argument is no moment"),
    ('hex_decode("a")', "The text is not hexadecimal."),
    ('int("x")', "The text is no integer."),
    ('int("1_0")', "The text is no integer."),
    ('int("1 ")', "The text is no integer."),
    ('int("1.5")', "The text is no integer."),
    ('double("nan")', "The argument is no number."),
    ('double("1e999")', "The argument is no number."),
    ('int("9223372036854775808")', "more than 64 bits"),
    ("int(99999999999999999999.0)", "more than 64 bits"),
    ("double(log.body.huge)", "too large"),
    ("double([])", "The argument is no number."),
    ("len(1)", "The argument is no text, list or object."),
    ("keys(1)", "The argument is no object and no list."),
    ('unset_empties("a")', "The argument is no object and no list."),
    ("flatten([])", "The argument is no object."),
    ('json("{")', "The text is not JSON"),
    ('json("")', "The text is empty."),
    ('json_array("{}")', "The argument is no list"),
    ("json(null)", "The argument is no object"),
    ('strftime("%Y", "x")', "The argument is no moment"),
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
        """Arguments that a function can't take are reported at its name."""
        for call, sentence in PROBLEMS:
            with self.subTest(call):
                found, line, column = problem(f"a = {call};", BODY)
                self.assertIn(sentence, found)
                self.assertEqual((1, 5), (line, column))

    def test_none_is_left_out(self) -> None:
        """The tables here call each function."""
        called = "".join(call for call, _ in VALUES)
        by_program = {"set_fields", "unset_empties", "subnet"}
        self.assertEqual(set(), {name for name in FUNCTIONS if f"{name}(" not in called} - by_program)

    def test_long_percent_encoding(self) -> None:
        """Wherever a long text is cut into pieces, it comes out whole."""
        for shift in range(4):
            text = "a" * shift + "%C3%BC" * 3_000 + "ü"
            self.assertEqual(unquote(text), worked_out("urldecode(log.body)", text))
            self.assertEqual(quote(text, safe=""), worked_out("urlencode(log.body)", text))
        self.assertIn("too much to do", problem("a = urlencode(log.body);", "%" * 350_000)[0])

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
