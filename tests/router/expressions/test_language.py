"""
Tests for L{webhookrx.router.expressions}: what programs do, by tables.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.router.expressions.programs import a_record, plain, problem, worked_out
from webhookrx.router.expressions import ExpressionError, compile_expression

RAW = "raw"

EXPRESSIONS: list[tuple[str, Any]] = [
    # literals
    ("1", 1),
    ("-9223372036854775807", -9223372036854775807),
    ("2.5", (RAW, "2.5")),
    ("true", True),
    ("null", None),
    (r'"a\n\t\"\\\x41\u00e9\d"', 'a\n\t"\\Aé\\d'),
    (r'"\x4\o101\a\v"', "\x04A\a\v"),
    ('"on two \\\nlines"', "on two lines"),
    (r"'it\n $HOST'", r"it\n $HOST"),
    (r"/a\d\/b/", r"a\d/b"),
    ("0x1F + 010 + 2K + 1KiB", 31 + 8 + 2000 + 1024),
    ("-9223372036854775808", -(2**63)),
    ("(1, 2.5)", [1, (RAW, "2.5")]),
    ("len(())", 0),
    ("(1, 2)[1]", 2),
    ('{"a":?? log.body.nothing, "b":?? null, "c":?? 1}', {"c": 1}),
    # texts with macros
    ('"from ${HOST} as $HOST$$"', "from web-1 as web-1$"),
    ('"$HOST"', "web-1"),
    ('"cost: 5$ or \\$6"', "cost: 5$ or \\$6"),
    ('"${webhook.query.team}"', "blue"),
    # slices
    ('"hello"[1..3]', "el"),
    ('"hello"[..-1]', "hell"),
    ('"hello"[-3..]', "llo"),
    ('"héllo"[1..2]', "é"),
    ('"hello"[9..]', ""),
    ("[1, 2.5, [],]", [1, (RAW, "2.5"), []]),
    ('{"a": {"b": 1}, "c": [null],}', {"a": {"b": 1}, "c": [None]}),
    # fields and macros
    ("log.body.user", "Alice"),
    ('log["body"]["user"]', "Alice"),
    ('log.body["us" + "er"]', "Alice"),
    ("log.body.tags[0]", "a"),
    ("log.body.tags[-1]", "b"),
    ("log.body.tags[1 - 1]", "a"),
    ("log.attributes.webhook.query.team", "blue"),
    ('log.attributes["webhook.path.HOST"]', "web-1"),
    ("log.body.ratio", (RAW, "1.50")),
    ("$HOST", "web-1"),
    ("${MESSAGE}.user", "Alice"),
    ("$MSG.count", 3),
    ("$SOURCEIP + $TRANSPORT", "192.0.2.1https"),
    ("$SOURCEPORT", 5000),
    ('{"a": [1]}.a[0]', 1),
    ('keys({"q": 1})[0]', "q"),
    # arithmetic
    ("1 + 2 * 3", 7),
    ("(1 + 2) * 3", 9),
    ("10 - 4 - 3", 3),
    ("2 * 3 / 4", 1),
    ("7 / 2", 3),
    ("-7 / 2", -3),
    ("7 / -2", -3),
    ("-7 % 3", -1),
    ("7.0 / 2", (RAW, "3.5")),
    ("log.body.ratio + 1", (RAW, "2.5")),
    ("-log.body.count", -3),
    ("+3 - -1", 4),
    ('"a" + "b" + "c"', "abc"),
    ("[1] + [2.5]", [1, (RAW, "2.5")]),
    ('{"a": 1, "b": 1} + {"b": 2}', {"a": 1, "b": 2}),
    # comparison: signs by number unless both are texts, words by text
    ('"5" == 5', True),
    ('"5.0" == 5', True),
    ('"5.0" == "5"', False),
    ('"10" < "9"', True),
    ('"10" < 9', False),
    ("10 lt 9", True),
    ('5 eq "5"', True),
    ("5 ne 5", False),
    ('"b" gt "a" and "b" ge "b" and "a" le "a"', True),
    ("2 >= 2 and 2 <= 2 and 3 > 2 and not 3 != 3", True),
    ("log.body.ratio == 1.5", True),
    ("log.body.ratio > 1", True),
    ('log.body.ratio eq "1.50"', True),
    ('"abc" == 0', False),
    ('"abc" != 0', True),
    ("[1] == [1]", False),
    ("null == null", True),
    ("null == 0", False),
    ("null < 1", True),
    ("false == 0", True),
    ('true eq "true"', True),
    ('null eq ""', False),
    ('null eq "null"', True),
    ('" 10" == 10', True),
    ('"0x10" == 16', True),
    ('log.body.tags eq "[\\"a\\",\\"b\\"]"', True),
    ('"5" === 5', False),
    ("5 === 5", True),
    ("1.5 === log.body.ratio", True),
    ("5 !== 5.0", True),
    ("1 < 2 == true", True),
    # patterns
    ('log.body.user =~ "^A.*e$"', True),
    ('log.body.user !~ "^A"', False),
    ('log.body.count =~ "^[0-9]$"', True),
    (r'"a5" =~ "\d"', True),
    ('"x" =~ "x" == true', True),
    # in
    ('"a" in log.body.tags', True),
    ('"z" in log.body.tags', False),
    ('1 in ["1"]', False),
    ('"user" in log.body', True),
    ("1 in log.body", False),
    ('"z" not in log.body.tags', True),
    ('not "a" in ["a"]', False),
    ('"10.1.2.3" in subnet("10.0.0.0/8")', True),
    ('ip("10.1.2.3") not in subnet("10.0.0.0/8")', False),
    ('ip("::1") in subnet("10.0.0.0/8")', False),
    ('ip("::1") in subnet("::/64")', True),
    ('"admin\n" =~ "^admin$"', False),
    ('"日本" =~ "^..$"', True),
    (r'"a1" =~ /^a\d$/', True),
    ('log.body.user ?: "none"', "Alice"),
    ('"" ?: "none"', "none"),
    # boolean operators and their precedence
    ("true or false and false", True),
    ("not false and false", False),
    ("not 1 == 2", True),
    ("not not 1", True),
    ('"a" or "b"', True),
    ("false or false or 1", True),
    ("true and 1 and 0", False),
    ("1 and log.body.ratio", True),
    # choice and default
    ('"" ? 1 : 2', 2),
    ("true ? 1 : false ? 2 : 3", 1),
    ("false ? 1 : false ? 2 : 3", 3),
    ("1 < 2 ? log.body.user : 1 / 0", "Alice"),
    ("log.body.nothing ?? 1", 1),
    ("log.body.nothing ?? null ?? log.body.user", "Alice"),
    ("null ?? null", None),
    ("1 / 0 ?? 2", 2),
    ("(log.body.user.x ?? 1) + 1", 2),
    ("false ?? 1", False),
    ("log.body.nothing.x[log.body.count] ?? 4", 4),
    ("true or 1 / 0", True),
    ("false and 1 / 0", False),
]

PROGRAMS: list[tuple[str, bool, dict[str, Any]]] = [
    # what of log.body changes; MISSING is written as None under the name "-"
    ("", True, {}),
    (" # nothing\n;;", True, {}),
    ("log.body.user = lower(log.body.user);", True, {"user": "alice"}),
    ("log.body.a.b.c = 1;", True, {"a": {"b": {"c": 1}}}),
    ('log.body["a b"] = 1;', True, {"a b": 1}),
    ("log.body.list[] = 1; log.body.list[] = 2;", True, {"list": [1, 2]}),
    ("log.body.tags[0] = 1; log.body.tags[2] = 3; log.body.tags[-2] = 2;", True, {"tags": [1, 2, 3]}),
    ("log.body.count += 1;", True, {"count": 4}),
    ('log.body.user += "!";', True, {"user": "Alice!"}),
    ("log.body.tags += [1.5];", True, {"tags": ["a", "b", (RAW, "1.5")]}),
    ("x = 1.5; x += 1; log.body.x = x;", True, {"x": (RAW, "2.5")}),
    ("log.body.x =?? log.body.nothing; log.body.y =?? 1; log.body.z =?? null;", True, {"y": 1}),
    ("log.body.x =?? log.body.tags;", True, {"x": ["a", "b"]}),
    ("declare x = 2; x = x * x; log.body.count = x;", True, {"count": 4}),
    ("x = {}; x.a.b = 1; log.body.x = x;", True, {"x": {"a": {"b": 1}}}),
    ("if (log.body.count == 3) { log.body.x = 1; };", True, {"x": 1}),
    ("if (false) { log.body.x = 1; } elif (1) { log.body.x = 2; } else { log.body.x = 3; }", True, {"x": 2}),
    ("if (0) { log.body.x = 1; } elif (0) { log.body.x = 2; } else { log.body.x = 3; };", True, {"x": 3}),
    ("if (true) {} else { drop; };", True, {}),
    ("if (true) { done; }; log.body.x = 1;", True, {}),
    ("if (true) { log.body.x = 1; drop; }; log.body.x = 2;", False, {"x": 1}),
    ("log.body.x = false; log.body.y = 0;", True, {"x": False, "y": 0}),
    ("log.body.count == 3; log.body.x = 1;", True, {"x": 1}),
    ("log.body.count == 4; log.body.x = 1;", False, {}),
    ('"";', False, {}),
    ("[];", True, {}),
    ("{};", True, {}),
    ("log.body.count == 3 and done; drop;", True, {}),
    ("log.body.x = 1; log.body.count == 3 ? drop : 1;", False, {"x": 1}),
    ("null;", False, {}),
    ("log.body.user;", True, {}),
    ("drop; log.body.x = 1;", False, {}),
    ("done; drop;", True, {}),
    # values put into the record are its own
    ("log.body.x = log.body.tags; log.body.x[0] = 1;", True, {"x": [1, "b"]}),
    ("x = log.body.tags; x[0] = 1;", True, {}),
    ("x = [1]; log.body.x = x; x[] = 2; log.body.y = x;", True, {"x": [1], "y": [1, 2]}),
    ("x = [log.body.tags]; x[0][0] = 1;", True, {}),
    ('x = {"t": log.body.tags}; x.t[0] = 1;', True, {}),
    ("x = move(log.body.tags); log.body.x = x; x[0] = 1;", True, {"tags": None, "x": ["a", "b"]}),
    ("log.body.tags += log.body.tags; log.body.tags[0] = 1;", True, {"tags": [1, "b", "a", "b"]}),
    ("x = log.body.nothing ?? log.body.tags; x[0] = 1;", True, {}),
    ("x = true ? log.body.tags : 1; x[0] = 1;", True, {}),
    # fields
    ("unset(log.body.user, log.body.nothing, log.body.tags[0]);", True, {"user": None, "tags": ["b"]}),
    ("unset(log.body.nothing.at.all);", True, {}),
    ("x = 1; unset(x); if (isset(x)) { log.body.x = 1; };", True, {}),
    ("log.body.new = move(log.body.user);", True, {"new": "Alice", "user": None}),
    (
        'log.body.e = {"a": "", "b": [null, 1, {"c": []}], "d": "x"}; unset_empties(log.body.e);',
        True,
        {"e": {"b": [1], "d": "x"}},
    ),
    ('log.body.e = {"a": "", "b": [""]}; unset_empties(log.body.e, recursive=false);', True, {"e": {"b": [""]}}),
    (
        'log.body.e = {"a": "-", "b": "", "c": 0}; unset_empties(log.body.e, targets=["-", null]);',
        True,
        {"e": {"b": "", "c": 0}},
    ),
    (
        """
        log.body.e = {"a": "N/A", "b": [[]], "c": "x"};
        unset_empties(log.body.e, targets=["n/a", []], ignorecase=true, replacement="-");
        """,
        True,
        {"e": {"a": "-", "b": ["-"], "c": "x"}},
    ),
    ('log.body.e = {"a": {"b": 1, "c": {}}, "d": 2}; flatten(log.body.e);', True, {"e": {"d": 2, "a.b": 1}}),
    (
        'log.body.e = {"a": 1}; x = set_fields(log.body.e, replacements={"a": 2, "b": 3}); x.c = 1;',
        True,
        {"e": {"a": 2}},
    ),
    # switch, break, declared variables, pairs
    (
        'switch (log.body.user) { case "Alice": log.body.x = 1; case "Bob": log.body.y = 1; break; default: drop; }',
        True,
        {"x": 1, "y": 1},
    ),
    ("switch (log.body.count) { case 1: drop; case 2..4: log.body.x = 1; break; case 4..9: drop; };", True, {"x": 1}),
    ("switch (log.body.count) { case 9: drop; break; default: log.body.x = 1; };", True, {"x": 1}),
    ("switch (log.body.count) { case log.body.nothing: drop; };", True, {}),
    ("if (true) { break; drop; }; log.body.x = 1; break; drop;", True, {"x": 1}),
    ("declare x = 1; y = 2; log.body.x = vars();", True, {"x": {"x": 1}}),
    ('$note = "a"; log.body.x = "${note}b" + ($other ?? "c");', True, {"x": "abc"}),
    ("dpath(log.body.x.y) = 1;", True, {"x": {"y": 1}}),
    (
        'net = subnet("10.0.0.0/8"); log.body.x = net; log.body.y = "10.1.1.1" in net;',
        True,
        {"x": "10.0.0.0/255.0.0.0", "y": True},
    ),
    (
        """
        set_fields(
            log.body,
            overrides={"user": [log.body.nothing, "Bob"], "x": null, "t": log.body.tags},
            defaults={"count": 9, "y": [1]}
        );
        """,
        True,
        {"user": "Bob", "t": ["a", "b"], "y": 1},
    ),
    ('$MESSAGE.x = "y"; ${HOST} = "other"; log.body.host = meta.host.name;', True, {"x": "y", "host": "other"}),
    (
        "log.attributes.webhook.query.team = 1; log.body.x = keys(log.attributes);",
        True,
        {"x": ["webhook.query.team", "webhook.path.HOST"]},
    ),
    ("unset(log.attributes.webhook.query.team); log.body.x = len(log.attributes);", True, {"x": 1}),
]


class ExpressionTests(SynchronousTestCase):
    """Expressions."""

    def test_values(self) -> None:
        """An expression gives the value of the table."""
        for expression, expected in EXPRESSIONS:
            with self.subTest(expression):
                found = worked_out(expression)
                self.assertEqual((type(expected), expected), (type(found), found))

    def test_truth(self) -> None:
        """False are empty texts, zeros, false and null; all else is true."""
        for value, expected in [
            ('""', False),
            ("0", False),
            ("0.0", False),
            ("log.body.zero", False),
            ("false", False),
            ("null", False),
            ("[]", True),
            ("{}", True),
            ("datetime(0)", False),
            ('ip("0.0.0.0")', True),
            ('subnet("0.0.0.0/0")', False),
            ('"0"', True),
            ("-1", True),
            ("0.1", True),
            ("log.body.one", True),
            ("log.body.array", True),
            ("[0]", True),
            ('{"": null}', True),
        ]:
            body = {"zero": msgspec.Raw(b"0.00e5"), "one": msgspec.Raw(b"0.1"), "array": msgspec.Raw(b"[0]")}
            self.assertIs(expected, worked_out(f"{value} ? true : false", body), value)


class StatementTests(SynchronousTestCase):
    """Statements."""

    def test_programs(self) -> None:
        """A program keeps or drops the message, and changes what the table says and nothing else of the body."""
        for program, kept, changes in PROGRAMS:
            with self.subTest(program):
                record = a_record()
                expected = plain(copy.deepcopy(record["log"]["body"]))
                for name, value in changes.items():
                    expected[name] = value
                    if value is None:
                        del expected[name]
                self.assertIs(kept, compile_expression(program).run(record))
                self.assertEqual(expected, plain(record["log"]["body"]))

    def test_whole_body(self) -> None:
        """The body can be replaced, and a body that is a text be taken apart."""
        record = a_record("user=alice port=22")
        program = compile_expression("log.body = parse_kv(log.body); log.body.port = int(log.body.port);")
        self.assertTrue(program.run(record))
        self.assertEqual({"user": "alice", "port": 22}, record["log"]["body"])

    def test_runs_are_independent(self) -> None:
        """A local variable of one run is not there in the next, and constants stay as they are."""
        program = compile_expression("log.body.x = [1]; log.body.x[] = 2; if (isset(y)) { drop; }; y = 1;")
        for _ in range(2):
            record = a_record()
            self.assertTrue(program.run(record))
            self.assertEqual([1, 2], record["log"]["body"]["x"])

    def test_moved_numbers_stay_exact(self) -> None:
        """A number that is only moved keeps its digits."""
        body = {"n": msgspec.Raw(b"0.10000000000000000000001"), "big": 10**30}
        record = a_record(body)
        compile_expression("meta.n = {'l': [log.body.n]}; meta.big = log.body.big;").run(record)
        self.assertEqual(
            ({"l": [(RAW, "0.10000000000000000000001")]}, 10**30), (plain(record["meta"]["n"]), record["meta"]["big"])
        )

    def test_text(self) -> None:
        """A program knows its text."""
        self.assertEqual("done;", compile_expression("done;").text)

    def test_error_text(self) -> None:
        """An error says where and what."""
        error = self.assertRaises(ExpressionError, compile_expression, "done")
        self.assertEqual("line 1, column 5: Expected ';' after a statement, found the end.", str(error))


COMPILE_ERRORS: list[tuple[str, int, int, str]] = [
    # tokens
    ('log.body.x = "abc;', 1, 14, "The text that begins here is not closed."),
    ("log.body.x = 'abc;", 1, 14, "The text that begins here is not closed."),
    ("a = 1 & 2;", 1, 7, "'&' has no meaning here."),
    ("a = 1 && 2;", 1, 7, "Write and for &&."),
    ("a = 1 || 2;", 1, 7, "Write or for ||."),
    ("a = !1;", 1, 5, "Write not for !."),
    ("a ??= 1;", 1, 3, "Write =?? to assign"),
    ("a = log.body[..];", 1, 13, "A slice has a beginning or an end"),
    ("a = 5 =~ 'x';", 1, 5, "stands a text, not a number"),
    ("a = 1e3;", 1, 6, "Numbers have no exponent: write 1000 or 1000.0 for 1e3."),
    ("a = `x`;", 1, 5, "single or double quotes"),
    ("a = 12ab;", 1, 7, "A number ends with a digit."),
    ("a = 1.;", 1, 7, "Expected a name after"),
    ("a = $;", 1, 5, "A macro is written $NAME or ${NAME}."),
    ('a = "x $HSOT";', 1, 5, "Nothing sets the macro or pair 'HSOT'. Did you mean $HOST?"),
    ('a = "x $(echo)";', 1, 5, "There are no template functions"),
    (r'a = "\ud800";', 1, 5, "A lone surrogate"),
    ('a = "\ud800";', 1, 6, "A lone surrogate"),
    ("a = 9223372036854775808;", 1, 5, "more than 64 bits"),
    ("a = 1" + "0" * 400 + ";", 1, 5, "more than 64 bits"),
    # statements
    ("log.body.x = 1", 1, 15, "Expected ';' after a statement, found the end."),
    ("log.body.x = 1\nlog.body.y = 2;", 2, 1, "Expected ';' after a statement, found 'log'."),
    ("}", 1, 1, "closes nothing"),
    ("if (1) { drop;", 1, 15, "Expected '}'"),
    ("if 1 { drop; }", 1, 4, "Expected '(' after if, found '1'."),
    ("if (1) drop;", 1, 8, "Expected '{' after if (…), found 'drop'."),
    ("if (1 { drop; }", 1, 7, "Expected ')' after the condition of if"),
    ("if (log.body.x = 1) { drop; }", 1, 16, "write == for numbers"),
    ("if (1) {} else if (2) {}", 1, 16, "Write elif for else if."),
    ("else { }", 1, 1, "stands after the block of an if"),
    ("if (1) {} else drop;", 1, 16, "Expected '{' after else"),
    ("switch (log.body.x) { ", 1, 23, "Expected '}' after the cases of a switch"),
    ('switch (1) { case "a": case "a": drop; }', 1, 24, "two of this case"),
    ("switch (1) { default: default: drop; }", 1, 23, "two of this case"),
    ("case 1: drop;", 1, 1, "stands in the block of a switch"),
    ("dpath(log.body.x);", 1, 18, "dpath() is a field that is set"),
    ("for (x in log) {}", 1, 1, "There are no loops."),
    ("return 1;", 1, 1, "Write done"),
    ("declare log = 1;", 1, 9, "Expected the name of a variable"),
    ("declare x;", 1, 10, "Expected '='"),
    ("1 = 2;", 1, 1, "Only fields"),
    ("lower(log.body.x) = 2;", 1, 1, "Only fields"),
    ("log = 1;", 1, 1, "'log' can't be set as a whole"),
    ("meta += {};", 1, 1, "'meta' can't be set as a whole"),
    ("$SOURCEIP = 1;", 1, 1, "The macro SOURCEIP can't be set."),
    ("$HSOT;", 1, 1, "Nothing sets the macro or pair 'HSOT'. Did you mean $HOST?"),
    ("${.sdata.x};", 1, 1, "There are HOST, FULLHOST"),
    ("$ISODATE;", 1, 1, "There is no macro 'ISODATE' here."),
    # expressions
    ("a = ;", 1, 5, "Expected a value, found ';'."),
    ("a = 1 +;", 1, 8, "Expected a value, found ';'."),
    ("a = and 1;", 1, 5, "Expected a value, found 'and'."),
    ("a = (1;", 1, 7, "Expected ')' after an expression in parentheses"),
    ("a = [1;", 1, 7, "Expected ',' or ']' in a list"),
    ('a = {"x" 1};', 1, 10, "Expected ':' after the name of a member"),
    ('a = {"x": 1;', 1, 12, "Expected ',' or '}' in an object"),
    ("a = true ? 1;", 1, 13, "Expected ':' between the values of '?'"),
    ("a = log.1;", 1, 9, "Expected a name after '.'"),
    ("a = log.body[1;", 1, 15, "Expected ']' after a key"),
    ("a = log.body[];", 1, 5, "it can only be set"),
    ("a = lower('x')[];", 1, 5, "it can only be set"),
    ("log.body[].x = 1;", 1, 1, "it can only be set"),
    ("log.body[] += 1;", 1, 1, "it can only be set"),
    ("unset(log.body[]);", 1, 7, "it can only be set"),
    ("body.x = 1;", 1, 1, "Nothing sets the variable 'body'. Did you mean 'log.body'?"),
    ("x.a = 1;", 1, 1, "Nothing sets the variable 'x'. Fields begin with log or meta."),
    ("a = bodi.x;", 1, 5, "Nothing sets the variable 'bodi'. Fields begin with log or meta."),
    ("user = 1; a = usr;", 1, 15, "Did you mean 'user'?"),
    ("a = lgo.body.x;", 1, 5, "Did you mean 'log'?"),
    ("log.body.x =~ log.body.y;", 1, 15, "stands a regular expression, written as a text"),
    ('log.body.x =~ "(";', 1, 15, "The regular expression does not compile"),
    (r'log.body.x =~ "(a)\1";', 1, 15, "RE2 can't run this"),
    ('log.body.x =~ "((a{100}){9}b){9}";', 1, 15, "RE2 can't run this"),
    ('log.body.x =~ "[^a]{900}";', 1, 15, "too large"),
    # calls
    ("a = lowr(log.body.x);", 1, 5, "There is no function 'lowr'. Did you mean lower()?"),
    ("a = qqqqq();", 1, 5, "There is no function 'qqqqq'."),
    ("a = now();", 1, 5, "Write get_timestamp"),
    ('a = cache_json_file("teams.json");', 1, 21, "absolute"),
    ("rename(log.body.x, log.body.y);", 1, 1, "Write meta.new = move(meta.old)."),
    ("a = lower();", 1, 5, "lower(text) takes 1 argument, not 0."),
    ('a = lower("a", "b");', 1, 5, "lower(text) takes 1 argument, not 2."),
    ('a = str_replace("a");', 1, 5, "takes 3 or 4 arguments, not 1."),
    ('a = strptime("a");', 1, 5, "takes 2 to 16 arguments, not 1."),
    ("unset();", 1, 1, "takes up to 16 arguments, not 0."),
    ('a = lower("a" "b");', 1, 15, "Expected ',' or ')' in the arguments of lower()"),
    ('a = lower("a", case=true);', 1, 16, "lower() has no option 'case'; it has none."),
    ('a = includes("a", "b", case=true);', 1, 24, "it has ignorecase, limit."),
    ('a = includes("a", "b", ignorecase=1);', 1, 35, "The option 'ignorecase' is true or false"),
    ('a = includes("a", "b", ignorecase=log.body.x);', 1, 35, "written in the program"),
    ('a = includes("a", ignorecase=true, "b");', 1, 36, "Options stand behind all arguments."),
    ('a = includes("a", "b", ignorecase=true, ignorecase=true);', 1, 41, "is given twice"),
    ('a = regexp_search("a", log.body.x);', 1, 24, "takes a text here that is written in the program"),
    ('a = regexp_search("a", "(");', 1, 24, "does not compile"),
    ('a = regexp_search("a", ["a"]);', 1, 24, "The pattern is one text."),
    ('a = strptime("a", "%Y-%m-%d", "%Q");', 1, 19, "There is no %Q in a format that reads"),
    ('a = strptime("a", ["%Y-%m-%d"]);', 1, 19, "A format is a text."),
    ('a = parse_kv("a", value_separator=" ");', 1, 35, "has one character, neither a blank nor a quote"),
    ('a = parse_csv("a", dialect="x");', 1, 28, "is one of escape-none"),
    ('a = digest("a", alg="x");', 1, 21, "is one of md5"),
    ('a = istype(1, "int");', 1, 15, "Write integer."),
    ('a = fix_timezone(datetime(1), "Mars/Olympus");', 1, 31, "There is no time zone of that name"),
    ('a = datetime("yesterday");', 1, 14, "no moment of ISO 8601"),
    ('a = subnet("10.0.0.0/33");', 1, 12, "no network"),
    ("unset_empties(log.body, targets=[1]);", 1, 34, "Targets are texts"),
    ('a = strftime("%Q", 1);', 1, 14, "There is no %Q in a format that writes"),
    ('a = strftime(["%Y"], 1);', 1, 14, "A format is a text."),
    ('a = strftime("' + "%Y" * 200 + '", 1);', 1, 14, "longer than 256"),
    ("unset(lower('a'));", 1, 7, "unset() takes a field, such as log.body.user."),
    ("unset(log);", 1, 7, "can't be removed as a whole"),
    ("a = move(meta);", 1, 10, "can't be removed as a whole"),
    ("set_fields(log.body, overrides=log.body);", 1, 32, "is written as an object"),
    ("set_fields(log.body, overrides={log.body.x: 1});", 1, 33, "is written as a text"),
]

RUN_ERRORS: list[tuple[str, int, int, str]] = [
    ("a = log.body.nothing;", 1, 5, "log.body.nothing is not there."),
    ('a = log.body["no such"][3];', 1, 5, 'log.body["no such"][3] is not there.'),
    ("x = 1;\n a = log.body[log.body.user];", 2, 6, "log.body[…] is not there."),
    ('if (log.body.nothing eq "x") { drop; };', 1, 5, "log.body.nothing is not there."),
    ("a = log.body.user.first;", 1, 5, "is not there"),
    ("a = log.body.tags[2];", 1, 5, "is not there"),
    ("a = log.body.tags[-3];", 1, 5, "is not there"),
    ("a = log.body[true];", 1, 14, "A key is a text or an integer."),
    ("a = json()[null];", 1, 11, "A key is a text or an integer."),
    ("a = json().x;", 1, 11, "There is no such member or element."),
    ("if (false) { b = 1; }; a = b;", 1, 28, "b is not there."),
    ('a = "x" + 1;', 1, 9, "'+' adds two numbers"),
    ("a = true + 1;", 1, 10, "'+' adds two numbers"),
    ('a = 1 + "x" + 2;', 1, 7, "'+' adds two numbers"),
    ("a = [1] + {};", 1, 9, "'+' adds two numbers"),
    ("a = log.body.count * 1" + "0" * 308 + ".0 * 10.5;", 1, 20, "too large"),
    ("a = 'abc'[2..1];", 1, 10, "A slice ends before it begins."),
    ("a = [1][0..1];", 1, 8, "Only texts can be cut"),
    ("a = 'x' in subnet('10.0.0.0/8');", 1, 9, "is no address"),
    ('a = "x" - 1;', 1, 9, "'-' stands between two numbers"),
    ("a = 1 / 0;", 1, 7, "There is no division by zero."),
    ("a = 1 % 0;", 1, 7, "There is no division by zero."),
    ("a = 1.5 % 2;", 1, 9, "stands between two integers"),
    ("a = 1.0 / 0;", 1, 9, "There is no division by zero."),
    ("a = 1 + 2 / 0 + 3;", 1, 11, "There is no division by zero."),
    ("a = -log.body.user;", 1, 5, "'-' stands before a number."),
    ("a = 9223372036854775807 + 1;", 1, 25, "more than 64 bits"),
    ("a = -9223372036854775807 - 2;", 1, 26, "more than 64 bits"),
    ("a = log.body.count + 1 - 3 * 9223372036854775807;", 1, 28, "more than 64 bits"),
    ("a = 1 in 5;", 1, 7, "Behind 'in' stands a list, an object or a network."),
    ('a = log.body =~ "x";', 1, 14, "matched against a text"),
    ("a = {1: 2};", 1, 6, "The name of a member is a text."),
    ("log.body.user.first = 1;", 1, 1, "There is no place for this field"),
    ("log.body.user.first.x = 1;", 1, 1, "There is no place for this field"),
    ("log.body.tags.x = 1;", 1, 1, "There is no place for this field"),
    ("log.body.tags[5] = 1;", 1, 1, "The list has no such element."),
    ("log.body[5] = 1;", 1, 1, "There is no place for this field"),
    ("log.body.x += 1;", 1, 1, "log.body.x is not there."),
    ("log.body.user += 1;", 1, 15, "'+' adds two numbers"),
    ("log.body.tags += 1;", 1, 15, "'+' adds two numbers"),
    ("set_fields(log.body.user, overrides={'a': 1});", 1, 1, "The argument is no object."),
    ("unset_empties(log.body.nothing);", 1, 15, "is not there"),
    ("a = move(log.body.nothing);", 1, 10, "is not there"),
]


class ErrorTests(SynchronousTestCase):
    """Errors, and where they are."""

    def test_compile_errors(self) -> None:
        """A mistake in a program is reported when it is compiled, at the token that does not fit."""
        for program, line, column, sentence in COMPILE_ERRORS:
            with self.subTest(program):
                error = self.assertRaises(ExpressionError, compile_expression, program)
                self.assertIn(sentence, error.problem)
                self.assertEqual((line, column), (error.position.line, error.position.column))

    def test_run_errors(self) -> None:
        """A failure on a message is reported with the place in the program, and not a word of the message."""
        for program, line, column, sentence in RUN_ERRORS:
            with self.subTest(program):
                compile_expression(program)
                found, *place = problem(program)
                self.assertIn(sentence, found)
                self.assertEqual([line, column], place)
                self.assertNotIn("Alice", found)

    def test_defaults_catch(self) -> None:
        """Whatever fails on a message, a default takes its place."""
        for program, *_ in RUN_ERRORS:
            if program.startswith("a = "):
                self.assertEqual("d", worked_out(f'({program[4:-1]}) ?? "d"'))
