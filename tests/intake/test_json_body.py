"""
Tests for L{webhookrx.intake.json_body}.

In the tables here, an outcome that is not text is compact JSON as a JSON line would show it, so that the spelling of
numbers is looked at too.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake import json_body as payload
from webhookrx.intake.json_body import (
    MAX_DEPTH,
    MAX_UNUSUAL,
    PayloadError,
    body_text,
    json_or_missing,
    parse_json,
    parse_strict_json,
)
from webhookrx.intake.pairs import flatten, name_budget, set_pairs
from webhookrx.message.encoders import encode_line
from webhookrx.message.fields import MISSING
from webhookrx.message.message import Message, Value
from webhookrx.yield_point import PIECE


def shown(value: Value) -> str:
    """Return a value as compact JSON."""
    return msgspec.json.encode(value).decode()


def pairs_from_json(body: bytes, prefix: str) -> tuple[dict[str, Value], int]:
    """Return the pairs of a body, and how many members were left out."""
    pairs: dict[str, Value] = {}
    left_out = len(set_pairs(body, prefix, pairs))
    return pairs, left_out


def as_bytes(body: str | bytes) -> bytes:
    return body if isinstance(body, bytes) else body.encode()


#: Legal by RFC 8259, and what they mean.
LEGAL: list[tuple[str | bytes, str]] = [
    ("{}", "{}"),
    ("[]", "[]"),
    (" \t\r\n{ } \n", "{}"),
    ("[ ]", "[]"),
    ('{"a":"b"}', '{"a":"b"}'),
    ('{ "a" : [ 1 , 2 ] }', '{"a":[1,2]}'),
    ('{"a":{"b":{"c":null}}}', '{"a":{"b":{"c":null}}}'),
    ('{"":0}', '{"":0}'),
    ('{"a":1,"b":2}', '{"a":1,"b":2}'),
    ('{"a":1,"a":2}', '{"a":2}'),
    ('{"a":{"x":1},"a":{"y":2}}', '{"a":{"y":2}}'),
    ("[true,false,null]", "[true,false,null]"),
    ("[[],{}]", "[[],{}]"),
    ("[[[[[]]]]]", "[[[[[]]]]]"),
    ("[0]", "[0]"),
    ("[-1]", "[-1]"),
    ("[-0]", "[0]"),
    ("[-0.0]", "[-0.0]"),
    ("[0.0]", "[0.0]"),
    ("[1.0]", "[1.0]"),
    ("[1.50]", "[1.50]"),
    ("[0.1]", "[0.1]"),
    ("[0.1000000000000000055511151231257827]", "[0.1000000000000000055511151231257827]"),
    ("[1e3]", "[1e3]"),
    ("[1E+3]", "[1E+3]"),
    ("[1.5e-07]", "[1.5e-07]"),
    ("[0e0]", "[0e0]"),
    ("[1e400]", "[1e400]"),
    ("[-1e-400]", "[-1e-400]"),
    ("[1e99999999999]", "[1e99999999999]"),
    ("[9223372036854775807]", "[9223372036854775807]"),
    ("[9223372036854775808]", "[9223372036854775808]"),
    ("[-9223372036854775809]", "[-9223372036854775809]"),
    ("[18446744073709551616]", "[18446744073709551616]"),
    ("[123456789012345678901234567890]", "[123456789012345678901234567890]"),
    ("[100000000000000000000000]", "[100000000000000000000000]"),
    (f"[{'9' * 4300}]", f"[{'9' * 4300}]"),
    (f"[{'9' * 4301}]", f'["{"9" * 4301}"]'),
    (f"[-{'9' * 9000},1.50,7]", f'["-{"9" * 9000}",1.50,7]'),
    ('["\\u00e9"]', '["é"]'),
    ('["é"]', '["é"]'),
    ('["\\ud83d\\ude00"]', '["😀"]'),
    ('["\\uD83D\\uDE00"]', '["😀"]'),
    ('["😀"]', '["😀"]'),
    ('["\\u0000"]', '["\\u0000"]'),
    ('{"a\\u0000b":"x\\u0000y"}', '{"a\\u0000b":"x\\u0000y"}'),
    ('["\\"\\\\\\/\\b\\f\\n\\r\\t"]', '["\\"\\\\/\\b\\f\\n\\r\\t"]'),
    ('["\\u2028"]', '["\u2028"]'),
    ('["\u2028\u2029\x7f\x85"]', '["\u2028\u2029\x7f\x85"]'),
    ('["\\uFFFF\\uFDD0"]', '["\uffff\ufdd0"]'),
    ('["\U0010ffff"]', '["\U0010ffff"]'),
    ('["\ufeff"]', '["\ufeff"]'),
    ('["a/*b*/c//d"]', '["a/*b*/c//d"]'),
    ('"text"', '"text"'),
    ("42", "42"),
    ("1.0", "1.0"),
    ("true", "true"),
    ("null", "null"),
    ('""', '""'),
    ("9" * 5000, f'"{"9" * 5000}"'),
    (json.dumps("[" * 200), json.dumps("[" * 200)),
]

#: RFC 8259 lets a reader choose. What is chosen here is part of the product.
CHOSEN: list[tuple[str | bytes, str]] = [
    # A byte order mark is skipped.
    (b"\xef\xbb\xbf{}", "{}"),
    (b'\xef\xbb\xbf{"a":1.50}', '{"a":1.50}'),
    # A lone surrogate is no character: U+FFFD. Its neighbours stay.
    ('["\\ud800"]', '["\ufffd"]'),
    ('["\\udc00"]', '["\ufffd"]'),
    ('["a\\ud800b"]', '["a\ufffdb"]'),
    ('["\\ud800\\ud83d\\ude00"]', '["\ufffd😀"]'),
    ('["\\ude00\\ud83d"]', '["\ufffd\ufffd"]'),
    ('["\\\\ud800"]', '["\\\\ud800"]'),
    ('["\\\\\\ud800"]', '["\\\\\ufffd"]'),
    ('{"\\udfff":{"b":["\\ud800",1.50,null,true,12]}}', '{"\ufffd":{"b":["\ufffd",1.50,null,true,12]}}'),
    (f'["\\ud800",{"8" * 700}]', f'["\ufffd",{"8" * 700}]'),
    ('"\\ud800"', '"\ufffd"'),
    # Depth up to the limit.
    ("[" * MAX_DEPTH + "]" * MAX_DEPTH, "[" * MAX_DEPTH + "]" * MAX_DEPTH),
    ('{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH, '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH),
    ("[" + "[]," * 200 + "{}]", "[" + "[]," * 200 + "{}]"),
]

#: Refused by RFC 8259, taken as JSON5.
LENIENT: list[tuple[str | bytes, str]] = [
    ("{'MESSAGE':'message-value'}", '{"MESSAGE":"message-value"}'),
    ("{MESSAGE:'x'}", '{"MESSAGE":"x"}'),
    ("{a1:1,$b:2,_c:3,é:4,null:5}", '{"a1":1,"$b":2,"_c":3,"é":4,"null":5}'),
    ("['it\\'s','say \"x\"']", '["it\'s","say \\"x\\""]'),
    ("['a1','2',\"3\"]", '["a1","2","3"]'),
    ('/* 1 */{"a":1}', '{"a":1}'),
    ('{"a":1} // 2', '{"a":1}'),
    ('{"a":/**/1//x\n}', '{"a":1}'),
    ('{"a":1,}', '{"a":1}'),
    ("[1,]", "[1]"),
    (b"\xef\xbb\xbf{'a':1}", '{"a":1}'),
    ("\u00a0{}", "{}"),
    ("[NaN,Infinity,-Infinity,+NaN]", '["NaN","Infinity","-Infinity","NaN"]'),
    ('{"a":NaN}', '{"a":"NaN"}'),
    ("[+1,-1,0,-0]", "[1,-1,0,0]"),
    ("[.5,-.5,5.,-5.e3,+1.50]", "[0.5,-0.5,5.0,-5.0e3,1.50]"),
    ("[1e400,1.50,1E5,]", "[1e400,1.50,1E5]"),
    ("[123456789012345678901234567890,]", "[123456789012345678901234567890]"),
    (f"[{'9' * 9000},]", f'["{"9" * 9000}"]'),
    ("[0x1F,-0Xa,+0x0]", "[31,-10,0]"),
    ("['\\x41\\u00e9\\v\\0\\q']", '["Aé\\u000b\\u0000q"]'),
    ("['a\\\nb']", '["ab"]'),
    ("['a\tb']", '["a\\tb"]'),
    ("['a\x00b']", '["a\\u0000b"]'),
    ("['\\ud83d\\ude00']", '["😀"]'),
    ("['\\\\',1.0]", '["\\\\",1.0]'),
    ("{\\u0061:1}", '{"a":1}'),
    ("{'a':{'b':[1.0,{'c':'d'}]},}", '{"a":{"b":[1.0,{"c":"d"}]}}'),
    ("{a\u03011:2,\\u00611:3}", '{"a\u03011":2,"a1":3}'),
    ("[\u00a01.50,\ufeff2.0\u2028]//1.0\u2028", "[1.50,2.0]"),
    ("[true,false,null,]", "[true,false,null]"),
    ("'text'", '"text"'),
]

#: Neither JSON nor JSON5.
ILLEGAL: list[str | bytes] = [
    "",
    " \n",
    "abc",
    "hello world",
    "<xml/>",
    "a=1&b=2",
    "{",
    "[",
    "}",
    "]",
    "{]",
    "[}",
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1]',
    '{"a" 1}',
    '{"a":1 "b":2}',
    '{"a":1,,"b":2}',
    "{,}",
    "[,]",
    "[,1]",
    "[1,,2]",
    "[1 2]",
    "[1:2]",
    "[1;2]",
    "(1)",
    '["a',
    "['a",
    '["a\\"]',
    '["a\\',
    '["\\x"]',
    '["\\u12"]',
    '["\\u00g0"]',
    '["a\nb"]',
    "['a\nb']",
    "['a''b']",
    '["a""b"]',
    '{"a":1} x',
    '{"a":1}{"b":2}',
    '{"a":1}\n{"b":2}',
    "[1]]",
    "[1]\x00",
    "\x00[]",
    "[1\x00]",
    "\x1f[]",
    "# c\n{}",
    "{} /* x",
    "/*",
    "//",
    "[tru]",
    "[True]",
    "[undefined]",
    "[None]",
    "[nan]",
    "[inf]",
    "[-]",
    "[+]",
    "[--1]",
    "[++1]",
    "[- 1]",
    "[-NaNa]",
    "[1-2]",
    "[007]",
    "[-01]",
    "[1_0]",
    "[0b1]",
    "[0o7]",
    "[0x]",
    "[0xg]",
    f"[0x{'f' * 65}]",
    "[1e]",
    "[1e+]",
    "[1.2.3]",
    "[.]",
    "[1.e]",
    "[1a]",
    "[1'a']",
    "[\u0661]",
    "[１]",
    "{1:2}",
    "{1.5:2}",
    "{0x1:2}",
    "{a b:1}",
    "{a-b:1}",
    "{[1]:2}",
    "['\\ud800']",
    "['\\udc001']",
    b"\xff",
    b'["\xff"]',
    b'{"a":"\xc3\x28"}',
    b'["\xed\xa0\x80"]',
    b'["\xc0\xaf"]',
    b'["\xf4\x90\x80\x80"]',
    b'{"\\ud800":"\xff"}',
    b"{'a':'\xff'}",
    b"\xef\xbb{}",
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbf" * 5000,
    b"[]\xef\xbb\xbf" + b"x",
    '{"a":1}'.encode("utf-16"),
    '{"a":1}'.encode("utf-16-le"),
    '{"a":1}'.encode("utf-16-be"),
    '{"a":1}'.encode("utf-32"),
    '["\\ud800"',
    '["\\ud800",NaN',
    f"[{'9' * 5000},",
    f"[{'9' * 5000}x]",
]

#: Deeper than the limit, by little or by much.
TOO_DEEP: list[str] = [
    "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
    '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1),
    '[{"a":' * MAX_DEPTH + "1" + "}]" * MAX_DEPTH,
    '{"x":"\\ud800","a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}",
    "[" * 900 + "]" * 900,
    "[" * 100_000 + "]" * 100_000,
    "[" * 100_000,
    '{"a":' * 100_000,
    '{"\\ud800":' * 40_000,
]


class ParseTests(SynchronousTestCase):
    """Tests for L{parse_strict_json} and L{parse_json} by table."""

    def test_size_of_the_tables(self) -> None:
        """The tables hold what a corpus of JSON texts should: more than two hundred."""
        self.assertLess(200, sum(map(len, (LEGAL, CHOSEN, LENIENT, ILLEGAL, TOO_DEEP))))

    def test_legal(self) -> None:
        """Legal JSON is read exactly, by both; where the RFC leaves a choice, it is the documented one."""
        for body, expected in (*LEGAL, *CHOSEN):
            for parse in (parse_strict_json, parse_json):
                with self.subTest(body=body[:40], parse=parse.__name__):
                    self.assertEqual(expected, shown(parse(as_bytes(body))))

    def test_legal_by_the_standard_library(self) -> None:
        """The table of legal texts agrees with another reader."""
        for body, expected in LEGAL:
            with self.subTest(body=body[:40]):
                self.assertEqual(self.numbers_as_text(as_bytes(body)), self.numbers_as_text(expected.encode()))

    def numbers_as_text(self, body: bytes) -> object:
        return json.loads(body, parse_int=lambda digits: digits.replace("-0", "0"), parse_float=str)

    def test_lenient(self) -> None:
        """What only JSON5 allows is read leniently, with numbers exact, and refused strictly."""
        for body, expected in LENIENT:
            with self.subTest(body=body[:40]):
                self.assertEqual(expected, shown(parse_json(as_bytes(body))))
                self.assertRaises(PayloadError, parse_strict_json, as_bytes(body))

    def test_illegal(self) -> None:
        """What is neither is refused with a sentence that quotes nothing of it."""
        for body in ILLEGAL:
            for parse in (parse_strict_json, parse_json):
                with self.subTest(body=body[:40], parse=parse.__name__):
                    sentence = str(self.assertRaises(PayloadError, parse, as_bytes(body)))
                    self.assertRegex(sentence, r"\AThe body [ -~]+\.\Z")
                    self.assertLess(len(sentence), 100)

    def test_too_deep(self) -> None:
        """Nesting beyond the limit is refused as such, whatever the depth, and never breaks anything."""
        for body in TOO_DEEP:
            with self.subTest(body=body[:20], length=len(body)):
                error = self.assertRaises(PayloadError, parse_json, body.encode())
                self.assertEqual("The body is JSON that nests deeper than 128 levels.", str(error))

    def test_too_deep_leniently(self) -> None:
        """The limit holds for JSON5 too."""
        fits = "['a'," + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "]"
        self.assertEqual("a", parse_json(fits.encode())[0])  # type: ignore[index]
        for body in ("[" * (MAX_DEPTH + 1) + "'a'" + "]" * (MAX_DEPTH + 1), "{a:" * 100_000):
            with self.subTest(length=len(body)):
                self.assertRaises(PayloadError, parse_json, body.encode())

    def test_brackets_in_text(self) -> None:
        """Brackets within strings are not depth."""
        text = "[{" * 1000
        self.assertEqual([text], parse_json(json.dumps([text]).encode()))

    def test_sentences(self) -> None:
        """The sentence says what is wrong, and where."""
        for body, sentence in (
            (b"", "The body is empty."),
            (b" \r\n", "The body is empty."),
            (b"\xef\xbb\xbf", "The body is empty."),
            (b'{"a":"\xff"}', "The body is not UTF-8."),
            (b'{"a":"\\ud800\xff"}', "The body is not UTF-8."),
            (b'{"a":1} x', "The body is not JSON: trailing characters (byte 9)."),
            (b'{"a":"\\ud800" x', "The body is not JSON: expected ',' or '}' (byte 14)."),
            (b'["\\ud800",NaN, x', "The body is not JSON: invalid character (byte 10)."),
            (b"[" + b"9" * 5000 + b",NaN, x", "The body is not JSON: NaN and Infinity are not numbers there."),
            (b"[" + b"9" * 5000 + b" x", "The body is not JSON: expecting ',' delimiter (character 5002)."),
        ):
            with self.subTest(body=body):
                self.assertEqual(sentence, str(self.assertRaises(PayloadError, parse_json, body)))

    def test_lenient_look_has_a_limit(self) -> None:
        """Only bodies up to a size are looked at as JSON5; legal JSON may be longer."""
        fits = b"['" + b"x" * (MAX_UNUSUAL - 4) + b"']"
        self.assertEqual(MAX_UNUSUAL, len(fits))
        self.assertEqual(["x" * (MAX_UNUSUAL - 4)], parse_json(fits))
        self.assertRaises(PayloadError, parse_json, fits.replace(b"x'", b"xx'"))
        self.assertEqual(["x" * MAX_UNUSUAL], parse_json(b'["' + b"x" * MAX_UNUSUAL + b'"]'))

    def test_long_fractions(self) -> None:
        """A number of a million digits that is no integer is kept to the last of them."""
        digits = b"7" * 1_000_000
        for number in (b"0." + digits, b"-1." + digits, b"1e" + digits):
            self.assertEqual([msgspec.Raw(number)], parse_json(b"[" + number + b"]"))

    def test_long_integers(self) -> None:
        """Integers are numbers as long as Python reads them, and text beyond that, wherever they are."""
        for digits in (65, 640, 641, 4300):
            for sign in (b"", b"-"):
                number = sign + b"7" * digits
                for body in (b"[%s]", b'{"a":[%s]}', b'{"a":%s,"b":"' + b"x" * 5000 + b'"}'):
                    value = parse_json(body % number)
                    self.assertIn(number, shown(value).replace("'", "").encode())
                    self.assertNotIn(b'"' + number, shown(value).encode())
        for digits in (4301, 10_000):
            for sign in ("", "-"):
                number = sign + "7" * digits
                self.assertEqual([[number]], parse_json(f"[[{number}]]".encode()))

    def test_many_long_integers(self) -> None:
        """In a larger body they would cost too much; those in texts do not count."""
        for number in (b"7" * 65, b"-" + b"7" * 5000):
            body = b'{"t":"%s","a":[1, %s]}' % (b"x" * MAX_UNUSUAL, number)
            error = self.assertRaises(PayloadError, parse_json, body)
            self.assertEqual("The body holds an integer of more than 64 digits.", str(error))
        for member in (b'"%s"' % (b"7" * 5000), b"7" * 64, b"1.%s" % (b"7" * 5000)):
            parse_json(b'{"t":"%s","a":%s}' % (b"x" * MAX_UNUSUAL, member))

    def test_cut_by_pieces(self) -> None:
        """A long integer is found wherever pieces of the body begin and end."""
        for size in range(PIECE - 80, PIECE + 8):
            self.assertRaises(PayloadError, parse_json, b'{"t":"%s","a":%s}' % (b"x" * size, b"7" * 65))

    def test_too_long(self) -> None:
        """A body may be too long to be read as JSON in one go."""
        self.patch(payload, "MAX_JSON", 20)
        parse_strict_json(b'["%s"]' % (b"x" * 16))
        error = self.assertRaises(PayloadError, parse_strict_json, b'["%s"]' % (b"x" * 17))
        self.assertEqual("The body is longer than 20 bytes, too long to be read as JSON.", str(error))

    def test_lone_surrogates(self) -> None:
        """Escapes of half a character become U+FFFD; whole characters, and backslashes before a u, stay."""
        for text, expected in (
            (r"\ud800", "\ufffd"),
            (r"\udc00", "\ufffd"),
            (r"a\uD83D\uDE00b", "a😀b"),
            (r"\ud83d\ude00\ude00", "😀\ufffd"),
            (r"\ud83d\ud83d\ude00", "\ufffd😀"),
            (r"\ude00\ud83d", "\ufffd\ufffd"),
            (r"\ud800x\udc00", "\ufffdx\ufffd"),
            (r"\\ud800\ud800", "\\ud800\ufffd"),
            (r"\\\ud800", "\\\ufffd"),
            (r"\\\\ud800\udfff", "\\\\ud800\ufffd"),
        ):
            for before in ("", "x" * 100_000):
                body = f'{{"a":["{before}{text}"],"{text}":1}}'.encode()
                self.assertEqual({"a": [before + expected], expected: 1}, parse_strict_json(body), text)

    def test_lone_surrogates_in_a_long_body(self) -> None:
        """In a very long body they are not looked for."""
        self.assertRaises(PayloadError, parse_strict_json, b'["%s\\ud800"]' % (b"x" * payload.MAX_REPAIRED))


class ForgedNumberTests(SynchronousTestCase):
    """Numbers go through the lenient decoder as strings, which nobody but us can make."""

    def lines(self, body: str) -> list[str]:
        """Return the lines that come of a body."""
        pairs, _ = pairs_from_json(body.encode(), "")
        return encode_line(Message(pairs, 0)).decode().splitlines()

    def test_escapes_of_eight_digits(self) -> None:
        """pyjson5 takes escapes that JSON5 has not. What comes of them is text like any other."""
        for body in (
            r"""{a:'\U0000dc001}\n{"HOST":"victim","MESSAGE":"forged"}\n{"b":1'}""",
            r"""{a:'\U0000dc001,"SOURCEIP":"6.6.6.6","MESSAGE":"x","z":1'}""",
            r"""{a:'\U0000dc00'}""",
            r"""{'\U0000d800':1, a:['\U0000d800', 1.50]}""",
        ):
            (line,) = self.lines(body)
            self.assertNotIn("victim", json.loads(line))
            self.assertLessEqual(json.loads(line).keys(), {"ISODATE", "a", "\ufffd"})

    def test_beyond_unicode(self) -> None:
        """An escape beyond Unicode is no JSON."""
        for body in (r"{a:'\U00110000'}", r"{a:'\UFFFFFFFF'}"):
            self.assertRaises(PayloadError, parse_json, body.encode())

    def test_guessed_mark(self) -> None:
        """Even who knew the mark could make nothing of it that is no number."""
        for text in ("1}", "1\\n2", "", "0x", "1 "):
            with self.assertRaises(PayloadError):
                parse_json(f"{{a:'{payload._NUMBER_MARK}{text}'}}".encode())
        self.assertEqual("[1.50,0.5,255,-1e5]", shown(parse_json(b"[1.50,.5,0xff,-1e5,]")))


class HostileTests(SynchronousTestCase):
    """Time and memory that hostile bodies take stay in proportion to their length."""

    def bodies(self, size: int) -> Iterable[tuple[str, bytes]]:
        for unit in (
            *(
                b"[",
                b"{'a':",
                b"'",
                b"\\",
                b"/",
                b"/*",
                b"/**/",
                b" ",
                b"+",
                b"1.",
                b"1e",
                b"a1",
                b"'\\",
                b"'a'\"",
                b"\\u",
            ),
            *(b'"\\', b"-.", b"0x", b"$", b"\xef\xbb\xbf", b'["\\ud800",', b"9", b"\n//"),
        ):
            yield repr(unit), (unit * (size // len(unit)))
        for unit in (b"1,", b"'',", b"1.5,", b"a,", b"[],", b'"\\ud800",', b"0x1,", b"'\\\\',", b"/*1*/1,"):
            yield "[" + repr(unit), b"[" + (unit * (size // len(unit))) + b"]"

    def test_linear(self) -> None:
        """No pattern of text makes the look as JSON, or as JSON5, take more than linear time."""
        for name, body in self.bodies(MAX_UNUSUAL - 2):
            began = time.process_time()
            with contextlib.suppress(PayloadError):
                parse_json(body)
            with self.subTest(name=name):
                # Quadratic behaviour would take minutes; twenty times the usual tenth of a second tells them apart.
                self.assertLess(time.process_time() - began, 2.0)


class FlattenTests(SynchronousTestCase):
    """Tests for L{flatten} and L{pairs_from_json}."""

    def check(self, body: str, expected: str, prefix: str = "", left_out: int = 0) -> None:
        with self.subTest(body=body, prefix=prefix):
            pairs, count = pairs_from_json(body.encode(), prefix)
            self.assertEqual((expected, left_out), (shown(pairs), count))  # type: ignore[arg-type]

    def test_collector_table(self) -> None:
        """What the collector makes pairs of becomes the same pairs here, and what it loses is kept."""
        for body, expected in (
            ('{"a":"x"}', '{"a":"x"}'),
            ('{"a":1,"b":-0,"c":true,"d":null}', '{"a":1,"b":0,"c":true,"d":null}'),
            ('{"h":{"i":{"j":"v"}}}', '{"h.i.j":"v"}'),
            ('{"a":["x","y"],"b":[]}', '{"a":["x","y"],"b":[]}'),
            ('{"a":[1,"two",null,{"b":{"c":1.0}}]}', '{"a":[1,"two",null,{"b":{"c":1.0}}]}'),
            ('{"a":"\\u00e9\\ud83d\\ude00"}', '{"a":"é😀"}'),
            ('{"a":1,"a":2}', '{"a":2}'),
            ('{".lead":1,"..two":2}', '{".lead":1,"..two":2}'),
            ('{"a b":1,"é":2,"1":3,"0":4}', '{"a b":1,"é":2,"1":3,"0":4}'),
            # Two ways to one name: the last in the document wins, whichever way it came.
            ('{"a.b":1,"a":{"b":2}}', '{"a.b":2}'),
            ('{"a":{"b":2},"a.b":1}', '{"a.b":1}'),
            # The collector saturates, rounds, cuts or drops these.
            ('{"a":9223372036854775808}', '{"a":9223372036854775808}'),
            ('{"a":0.0000001,"b":3.0,"c":1e400}', '{"a":0.0000001,"b":3.0,"c":1e400}'),
            ('{"a":"x\\u0000y"}', '{"a":"x\\u0000y"}'),
            ('{"a\\u0000b":1}', '{"a\\u0000b":1}'),
            ('{"":1,"a":{"":2}}', '{"":1,"a.":2}'),
            ('{"a":{},"b":{"c":{}}}', '{"a":{},"b.c":{}}'),
            ("{'MESSAGE':'message-value'}", '{"MESSAGE":"message-value"}'),
            ('{"a":NaN}', '{"a":"NaN"}'),
            ("{}", "{}"),
            ("[]", "{}"),
        ):
            self.check(body, expected)

    def test_prefix(self) -> None:
        """The prefix comes before each name once, as it is."""
        self.check('{"a":1,"b":{"c":2},"":3}', '{".wh.a":1,".wh.b.c":2,".wh.":3}', ".wh.")
        self.check('{"DATE":1,"MSG":"x"}', '{"wh.DATE":1,"wh.MSG":"x"}', "wh.")
        self.check(
            '[1,"two",null,{"a":{"b":1.0}},["x"]]', '{"p1":1,"p2":"two","p3":null,"p4":{"a":{"b":1.0}},"p5":["x"]}', "p"
        )

    def test_array(self) -> None:
        """The elements of an array are numbered from 1."""
        self.check('[{"a":1}]', '{"1":{"a":1}}')
        self.check("[1.0,[1,2],{}]", '{"1":1.0,"2":[1,2],"3":{}}')

    def test_soft_macros(self) -> None:
        """Soft macros are replaced, under their second names too; of two spellings the last wins."""
        self.check('{"HOST":"h","PROGRAM":"p","PID":5}', '{"HOST":"h","PROGRAM":"p","PID":5}')
        self.check('{"MSG":"a"}', '{"MESSAGE":"a"}')
        self.check('{"MSG":"a","MSGONLY":"b","FULLHOST":"c"}', '{"MESSAGE":"b","HOST":"c"}')
        self.check('{"MESSAGE":"a","MSG":"b"}', '{"MESSAGE":"b"}')
        self.check('{"SG":"a"}', '{"MESSAGE":"a"}', "M")
        self.check('{"FULLHOST":{"a":1},"x":{"MSG":2}}', '{"FULLHOST.a":1,"x.MSG":2}')

    def test_left_out(self) -> None:
        """Names that belong to the receiver are left out and counted, however they are put together."""
        for body, prefix, expected, left_out in (
            ('{"SOURCEIP":"6.6.6.6","a":1}', "", '{"a":1}', 1),
            ('{"DATE":1,"R_ISODATE":2,"PEERIP":3,"RCPTID":4,"TRANSPORT":5}', "", "{}", 5),
            ('{"CEIP":1,"x":2}', "SOUR", '{"SOURx":2}', 1),
            ('{"SOURCEIP":{}}', "", "{}", 1),
            ('{"SOURCEIP":{"x":1}}', "", "{}", 1),
            ('{"webhook.headers":1,"webhook.query.a":2}', "", "{}", 2),
            ('{"webhook":{"headers":1,"query":{"a":1,"b":{"c":2}},"other":3}}', "", '{"webhook.other":3}', 3),
            ('{"webhook":{"query.a":1},"webhook.query":{"b":2}}', "", "{}", 2),
            ('{"webhook":{"query":1,"queryx":{"a":2}}}', "", '{"webhook.query":1,"webhook.queryx.a":2}', 0),
            ('{"webhook":{"headers":{"X":1},"headersx":{"a":2}}}', "", '{"webhook.headersx.a":2}', 1),
            ('{"headers":1,"query":{"a":2},"a":3}', "webhook.", '{"webhook.a":3}', 2),
            ('{"hook":{"query":{"a":1},"parse_error":2,"body_base64":3}}', "web", "{}", 3),
            ('{"a":1}', "webhook.query.", "{}", 1),
            ('{"x":{"webhook":{"query":{"a":1}}}}', "", '{"x.webhook.query.a":1}', 0),
            ("[1,2]", "webhook.query.", "{}", 2),
            ('["x"]', "webhook.", '{"webhook.1":"x"}', 0),
            ("[" + "0," * 12 + "0]", "HOUR", None, 1),
        ):
            if expected is not None:
                self.check(body, expected, prefix, left_out)
            else:
                pairs, count = pairs_from_json(body.encode(), prefix)
                self.assertEqual((12, left_out, False), (len(pairs), count, "HOUR12" in pairs))

    def test_into(self) -> None:
        """Pairs that are there already stay unless they are replaced."""
        pairs: dict[str, Value] = {"MESSAGE": "body", "x": 1}
        self.assertEqual([("PRI", 1)], flatten({"MSG": "text", "PRI": 1}, "", pairs, 0))
        self.assertEqual({"MESSAGE": "text", "x": 1}, pairs)

    def test_not_for_pairs(self) -> None:
        """Scalars have no names."""
        for body in (b'"a"', b"1", b"null", b"true", b"'a'", b"NaN", b'"\\ud800"'):
            with self.subTest(body=body):
                error = self.assertRaises(PayloadError, pairs_from_json, body, "")
                self.assertEqual("The body is JSON, but neither an object nor an array.", str(error))

    def test_bad_json(self) -> None:
        """What is no JSON has no pairs."""
        self.assertEqual("The body is empty.", str(self.assertRaises(PayloadError, pairs_from_json, b"", "")))

    def test_deep(self) -> None:
        """As deep as may be, the names are joined to the last level."""
        pairs, _ = pairs_from_json(b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH, "")
        self.assertEqual({".".join("a" * MAX_DEPTH): 1}, pairs)

    def test_name_budget(self) -> None:
        """Names that grow out of proportion are refused before they are built."""
        name = "n" * 1000
        members = ",".join(f'"{number}":0' for number in range(60))
        body = f'{{"{name}":{{{members}}}}}'.encode()
        self.assertEqual(60, len(pairs_from_json(body, "")[0]))
        members = ",".join(f'"{number}":0' for number in range(1000))
        body = f'{{"{name}":{{{members}}}}}'.encode()
        error = self.assertRaises(PayloadError, pairs_from_json, body, "")
        self.assertEqual("The names in the body are too long once nested objects are joined.", str(error))

    def test_name_budget_counts_every_object(self) -> None:
        """The budget is for all nested objects together, exact to the character."""
        value: dict[str, Value] = {"aa": {"x": 1, "y": 2}, "bb": {"z": {"q": 1}}}
        # 2 members below "aa.", 1 below "bb.", 1 below "bb.z.".
        self.assertEqual(0, len(flatten(value, "", {}, 2 * 3 + 3 + 5)))
        self.assertRaises(PayloadError, flatten, value, "", {}, 2 * 3 + 3 + 5 - 1)

    def test_name_budget_grows(self) -> None:
        """Larger bodies may have more and longer names, as far as they do not grow by themselves."""
        self.assertEqual(64 * 1024, name_budget(b""))
        self.assertEqual(64 * 1024 + 4 * 1000, name_budget(bytes(1000)))
        size = 100_000
        for body, names in (
            (b"x" * size, 4 * size),
            (b'"' * size, 4 * size),
            (b"\x7f" * size, (8 - 6 - 6) * size),
            (b"\xc2\x80" * (size // 2), (8 - 3 - 3) * size),
            (b"\xe2\x80\xa8" * (size // 3), 4 * (size // 3 * 3)),
        ):
            self.assertEqual(64 * 1024 + names, name_budget(body), body[:3])

    def test_many_members(self) -> None:
        """Members by the thousand all become pairs."""
        members = {f"key{number}": number for number in range(10_000)}
        self.assertEqual((members, 0), pairs_from_json(json.dumps(members).encode(), ""))

    def test_many_elements(self) -> None:
        """A body of more values than the limit, wherever they are, is refused before any is made."""
        self.patch(payload, "MAX_ELEMENTS", 3)
        self.patch(payload, "MAX_UNUSUAL", 0)  # no other look either
        for body in (b"[1,2,3]", b'{"a":[1,2]}', b'["[[[[,,,,{{{{\\",,,"]', b'["' + b'\\",' * 50 + b'"]'):
            pairs_from_json(body, "")
        for body in (
            b"[1,2,3,4]",
            b"[[[[]]]]",
            b'{"a":{"b":{"c":{"d":1}}}}',
            b'["' + b'\\",' * 50,
        ):
            self.assertRaises(PayloadError, pairs_from_json, body, "")
        self.patch(payload, "decode_exactly", None)
        self.assertRaises(PayloadError, pairs_from_json, b"[1,2,3,4]", "")

    def test_names_that_are_escaped(self) -> None:
        """A name of characters that come out as escapes counts for what comes out."""
        for name, cost in (("ab", 3), ("a\x7f", 8), ("aé", 4), ('"', 3)):
            value: dict[str, Value] = {name: {"x": 1}}
            self.assertEqual(0, len(flatten(value, "", {}, cost)))
            self.assertRaises(PayloadError, flatten, value, "", {}, cost - 1)

    def test_below_reserved_names(self) -> None:
        """What would stand below one of the receiver's own names is left out with it."""
        for body in (
            '{"webhook.headers":{"X":["forged"]}}',
            '{"webhook":{"parse_error":{"z":1}}}',
            '{"RCPTID":{"a":{"b":1}}}',
        ):
            self.check(body, "{}", "", 1)


class BodyTextTests(SynchronousTestCase):
    """Tests for L{body_text}."""

    def test_text(self) -> None:
        """UTF-8 is itself; U+FFFD stands for what is not, and the second value says so."""
        for body, expected in (
            (b"", ("", True)),
            ("é😀\x00\n".encode(), ("é😀\x00\n", True)),
            (b"\\xff", ("\\xff", True)),
            (b"a\xffb\xc3", ("a\ufffdb\ufffd", False)),
            (b"\xc3\xa9\xff", ("é\ufffd", False)),
            (b"\xed\xa0\x80", ("\ufffd" * 3, False)),
            (b"\xf0\x9f\x98", ("\ufffd", False)),
            (b"\xef\xbb\xbfa", ("\ufeffa", True)),
        ):
            with self.subTest(body=body):
                self.assertEqual(expected, body_text(body))

    def test_pieces(self) -> None:
        """A long body is the same text, wherever it is cut."""
        for unit in ("é", "😀", "aé😀"):
            for before in range(5):
                body = b"x" * (PIECE - before) + unit.encode() * 30_000
                self.assertEqual((body.decode(), True), body_text(body))
                self.assertEqual((body.decode() + "\ufffd", False), body_text(body + b"\xf0\x9f"))
                self.assertEqual(((b"\xff" + body).decode("utf-8", "replace"), False), body_text(b"\xff" + body))


TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)

#: Text of the pieces that JSON and JSON5 are made of, legal now and then.
PIECES = st.lists(
    st.sampled_from(
        [
            *"[]{},:'\"\\/*+-.0179eExXa_$ \n\t",
            *("//", "/*", "*/", "null", "true", "NaN", "Infinity", '"a":', "'b':", "c:", "1.5", "1e9", "0x1f", "\\\n"),
            *("\\u0041", "\\ud800", "\\udc00", "\\ud83d\\ude00", "é", "\u2028", "\ufeff", "\udc00"),
        ]
    ),
    max_size=16,
).map(lambda pieces: "".join(pieces).encode("utf-8", "surrogatepass"))


class PropertyTests(SynchronousTestCase):
    """What holds for any body."""

    @given(JSON, st.booleans())
    def test_round_trip(self, value: object, ascii_only: bool) -> None:
        """What a common writer wrote is read, and written again, without a change."""
        body = json.dumps(value, ensure_ascii=ascii_only).encode()
        self.assertEqual(value, json.loads(shown(parse_json(body))))

    @given(st.dictionaries(TEXT, JSON, max_size=5))
    def test_round_trip_to_a_line(self, members: dict[str, object]) -> None:
        """Below a prefix, members that are no objects stand in the line as they were in the body."""
        pairs, left_out = pairs_from_json(json.dumps(members).encode(), "p:")
        line = json.loads(encode_line(Message(pairs, 0)))
        kept = {f"p:{key}": member for key, member in members.items() if not (isinstance(member, dict) and member)}
        clear = {
            key: member for key, member in kept.items() if not any(key.startswith(f"p:{other}.") for other in members)
        }
        self.assertEqual((clear, 0), ({key: line[key] for key in clear}, left_out))

    @given(PIECES | st.binary() | TEXT.map(str.encode), st.sampled_from(["", "webhook.", "HO"]))
    def test_any_body(self, body: bytes, prefix: str) -> None:
        """Any body is either refused, or becomes one line of JSON without a hard macro of the sender's."""
        try:
            pairs, _ = pairs_from_json(body, prefix)
        except PayloadError:
            return
        line = encode_line(Message(pairs, 0)).decode()
        self.assertEqual(1, len(line.splitlines()))
        self.assertEqual({"ISODATE", *pairs}, json.loads(line).keys())
        self.assertNotIn("\udc00", json.dumps(json.loads(line), ensure_ascii=False))

    @given(PIECES)
    def test_strict_agrees_with_the_standard_library(self, body: bytes) -> None:
        """What the strict look accepts is what the standard library does, its constants and byte order marks apart."""
        assume(not body.startswith(b"\xef\xbb\xbf"))
        try:
            expected = json.loads(body.decode(), parse_constant=payload._no_constant)
        except (ValueError, PayloadError):
            self.assertRaises(PayloadError, parse_strict_json, body)
        else:
            self.assertEqual(
                json.dumps(expected).replace("\\ud800", "\\ufffd").replace("\\udc00", "\\ufffd"),
                json.dumps(json.loads(shown(parse_strict_json(body)))).replace("\\ud800", "\\ufffd"),
            )


class JsonOrMissingTests(SynchronousTestCase):
    """JSON, or a word for none."""

    def test_table(self) -> None:
        """What strict JSON refuses is missing, and null is not."""
        for body, expected in ((b'{"a":1}', {"a": 1}), (b"[1]", [1]), (b"null", None), (b"17", 17)):
            self.assertEqual(expected, json_or_missing(body))
        for body in (b"", b"{'a':1}", b'{"a":1} x', b"\xff", b"[" * 200 + b"]" * 200):
            self.assertIs(MISSING, json_or_missing(body))
