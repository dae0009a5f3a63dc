"""
Tests for L{webhookrx.intake.path_patterns}.
"""

from __future__ import annotations

import re
import time
from typing import Any
from urllib.parse import quote

import re2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import BAD_ENCODING, RequestRefused
from webhookrx.intake import path_patterns
from webhookrx.intake.path_patterns import (
    LinearSet,
    PathPatterns,
    compile_pattern,
    decode_groups,
    spans_of,
)

HOST = "/events/(?P<HOST>.*)"

# Patterns, path, and what is found: the index of the pattern and its groups.
MATCHES: list[tuple[list[str], bytes, tuple[int, dict[str, bytes]] | None]] = [
    (["/.*"], b"/", (0, {})),
    (["/.*"], b"/any/thing", (0, {})),
    (["/.*"], b"", None),
    (["/events"], b"/events", (0, {})),
    (["/events"], b"/events/", None),
    (["/events"], b"/eventsx", None),
    (["/events"], b"/x/events", None),
    (["/events"], b"//events", None),
    (["/events"], b"/EVENTS", None),
    (["/events"], b"/%65vents", None),
    (["/events"], b"/x/../events", None),
    (["/events"], b"http://h/events", None),
    (["/events", HOST], b"/events", (0, {})),
    (["/events", HOST], b"/events/web1", (1, {"HOST": b"web1"})),
    (["/events", HOST], b"/events/a%2Fb+c", (1, {"HOST": b"a%2Fb+c"})),
    (["/events", HOST], b"/events/", (1, {"HOST": b""})),
    (["/(?P<FULLHOST>[^/]+)/(?P<MSG>.*)"], b"/h/m", (0, {"HOST": b"h", "MESSAGE": b"m"})),
    (["/(?=h)(?P<FULLHOST>[^/]+)/(?P<MSG>.*)"], b"/h/m", (0, {"HOST": b"h", "MESSAGE": b"m"})),
    (["/a.*", "/ab"], b"/ab", (0, {})),
    (["/ab", "/a.*"], b"/ab", (0, {})),
    (["/x", "/a.*", "/ab", "/.*"], b"/ab", (1, {})),
    ([r"/(?P<a>\w+)/(?P<b>\d+)?"], b"/x/", (0, {"a": b"x"})),
    ([r"/(?P<a>\w+)/(?P<b>\d+)?"], b"/x/12", (0, {"a": b"x", "b": b"12"})),
    (["/(?:(?P<a>a)|(?P<b>b))"], b"/b", (0, {"b": b"b"})),
    (["/([^/]+)/(?P<HOST>[^/]+)/(.*)"], b"/a/b/c/d", (0, {"HOST": b"b"})),
    (["/(a)(b)?"], b"/a", (0, {})),
    (["/a|/b"], b"/b", (0, {})),
    (["/a|/b"], b"/a/b", None),
    (["/(?P<l>.*?)(?P<g>.*)"], b"/ab", (0, {"l": b"", "g": b"ab"})),
    (["/x$"], b"/x", (0, {})),
    (["^/x"], b"/x", (0, {})),
    (["(?i)/EvEnts"], b"/evENTS", (0, {})),
    # In C{re}, {,3} counts; in RE2 it is plain text.
    (["/a{,3}"], b"/", (0, {})),
    (["/a{,3}"], b"/aaa", (0, {})),
    (["/a{,3}"], b"/aaaa", None),
    (["/a{,3}"], b"/a{,3}", None),
    (["/a{,}b"], b"/aaaab", (0, {})),
    ([r"/a\{,3}"], b"/a{,3}", (0, {})),
    (["/[{,3}]"], b"/,", (0, {})),
    (["/[]{,3}]"], b"/]", (0, {})),
    ([r"/[\]{,3}]"], b"/{", (0, {})),
    ([r"/x\Z"], b"/x", (0, {})),
    ([r"/\141"], b"/a", (0, {})),
    # Only for C{re}.
    (["/(?=.*x)(?P<HOST>.*)"], b"/axb", (0, {"HOST": b"axb"})),
    (["/(?=.*x)(?P<HOST>.*)"], b"/ab", None),
    ([r"/(?P<a>\w)(?P=a)"], b"/zz", (0, {"a": b"z"})),
    ([r"/(\w)\1"], b"/zy", None),
    (["/" + "()" * 11 + r"(x)\12"], b"/xx", (0, {})),
    (["/(?=x)(?:(?P<a>x)|(?P<b>y))"], b"/x", (0, {"a": b"x"})),
    (["/a*+b"], b"/aab", (0, {})),
    # Both kinds, in order.
    (["/(?=x).*", "/.*"], b"/x", (0, {})),
    (["/(?=x).*", "/.*"], b"/y", (1, {})),
    (["/.*", "/(?=x).*"], b"/x", (0, {})),
    (["/y", "/(?=x).*", "/.*", "/(?=z).*"], b"/x", (1, {})),
    (["/y", "/(?=x).*", "/(?=z).*"], b"/z", (2, {})),
    (["/y", "/(?=x).*", "/(?=z).*"], b"/w", None),
    # Only for RE2.
    (["/(?<HOST>[^/]+)"], b"/web1", (0, {"HOST": b"web1"})),
    ([r"/x\z"], b"/x", (0, {})),
    (["/é?x"], b"/x", (0, {})),
    ([], b"/", None),
]

DOES_NOT_COMPILE = ["/(a", "/a)", "/[a", "*", "/a{2,1}", "/(?P<>x)", "/(?P<a", "(" * 3000, "/\\", "/(?=(", "/(?P=x)"]

#: Seen to hold a backtracking matcher for seconds.
HOSTILE = [
    ("/(a+)+b", b"/" + b"a" * 8190),
    ("/(a|a)*b", b"/" + b"a" * 8190),
    ("/(a|aa)+b", b"/" + b"a" * 8190),
    ("/(.*a){12}b", b"/" + b"a" * 8190),
    (r"/(\w+\.?)+@x", b"/" + b"a" * 8190),
    (r"/(([^/]+)/?)*\.json", b"/" + b"a" * 8190),
    ("/(?P<x>(a*)*)*b", b"/" + b"a" * 8190),
    ("/(x+x+)+y", b"/" + b"x" * 8190),
]


@st.composite
def linear_patterns(draw: st.DrawFn) -> str:
    """Patterns that mean the same to both. No group is repeated: what it holds then differs by dialect."""
    simple = st.sampled_from(
        ["a", "b", ".", "/", "[ab]", "[^a]", r"\w", r"\d", "%", "(?:a|b)", "(?:ab|a|)", r"\.", "1"]
    )
    repeated = st.builds(str.__add__, simple, st.sampled_from(["", "*", "+", "?", "*?", "+?", "{2}", "{,2}", "{1,3}"]))
    pieces = draw(st.lists(repeated, max_size=4))
    for name in draw(st.sampled_from([[], ["g"], ["g", "h"]])):
        start = draw(st.integers(0, len(pieces)))
        end = draw(st.integers(start, len(pieces)))
        joined = "".join(pieces[start:end])
        pieces[start:end] = [f"(?P<{name}>{joined})" + draw(st.sampled_from(["", "?"]))]
    return draw(st.sampled_from(["/", "", "^/"])) + "".join(pieces) + draw(st.sampled_from(["", "$", r"\Z", "|/b"]))


class PathPatternsTests(SynchronousTestCase):
    def test_matches(self) -> None:
        """The first pattern that matches the whole raw path wins, with the raw text of its groups."""
        for patterns, path, expected in MATCHES:
            self.assertEqual((patterns, path, expected), (patterns, path, PathPatterns(patterns).match(path)))

    def test_again(self) -> None:
        """A path gets the same answer each time, whether its pattern runs on RE2 or not, found or not."""
        for patterns, path, expected in MATCHES:
            compiled = PathPatterns(patterns)
            self.assertEqual([expected] * 3, [compiled.match(path) for _ in range(3)])

    def test_group_order(self) -> None:
        """Groups come in the order of the pattern, whatever their names."""
        for pattern in ("/(?P<z>.)(?P<a>.)(?P<m>.)", "/(?=.)(?P<z>.)(?P<a>.)(?P<m>.)"):
            found = PathPatterns([pattern]).match(b"/123")

            assert found is not None
            self.assertEqual(["z", "a", "m"], list(found[1]))

    def test_does_not_compile(self) -> None:
        """A pattern that is no regular expression is an error."""
        for pattern in DOES_NOT_COMPILE:
            self.assertRaises(ValueError, PathPatterns, ["/.*", pattern])

    def test_which_one_runs(self) -> None:
        """What RE2 can express runs on RE2, and only the rest on C{re}."""
        for pattern in ("/.*", HOST, "/a{,3}", r"/x\Z", "/(a+)+b", "(?i)/x", "/é", "/(?<a>x)"):
            self.assertIsNone(compile_pattern(pattern).backtracking, pattern)
        for pattern in ("/(?=x)", "/(?!x)", "/(?<=x)", r"/(a)\1", "/(?>a)", "/a++", "/a{1001}", "/\udcff"):
            self.assertIsNone(compile_pattern(pattern).linear, pattern)

    def test_hostile_paths(self) -> None:
        """No path of 8 KiB keeps a pattern that is known for it busy: 50 ms is far more than any needs."""
        for pattern, path in HOSTILE:
            patterns = PathPatterns([pattern])
            started = time.process_time()
            self.assertIsNone(patterns.match(path), pattern)
            self.assertLess(time.process_time() - started, 0.05, pattern)

    def test_a_thousand(self) -> None:
        """The last of a thousand patterns is found in about the time of one: within five times here."""

        def cost(patterns: PathPatterns, prefix: bytes) -> float:
            best = 1.0
            for turn in range(5):
                paths = [b"%s/%d" % (prefix, turn * 1000 + number) for number in range(1000)]
                started = time.process_time()
                for path in paths:
                    patterns.match(path)
                best = min(best, time.process_time() - started)
            return best

        thousand = [f"/tenant{number}/(?P<HOST>[^/]+)" for number in range(1000)]
        one = cost(PathPatterns(thousand[999:]), b"/tenant999")
        all_of_them = cost(PathPatterns(thousand), b"/tenant999")

        self.assertEqual((999, {"HOST": b"web1"}), PathPatterns(thousand).match(b"/tenant999/web1"))
        self.assertLess(all_of_them, one * 5)

    def test_too_large_for_one_set(self) -> None:
        """Patterns that RE2 can't hold in one set are spread over several, in order; also when it refuses one."""
        large = [f"/x{number}/(?P<HOST>.{{1,1000}})" for number in range(40)]
        for most in (64_000, 1_000_000):
            self.patch(path_patterns, "_MOST_OF_SET", most)
            patterns = PathPatterns([*large, "/x7/.*", "/.*"])

            self.assertEqual((7, {"HOST": b"web1"}), patterns.match(b"/x7/web1"))
            self.assertEqual((39, {"HOST": b"web1"}), patterns.match(b"/x39/web1"))
            self.assertEqual((40, {}), patterns.match(b"/x7/"))
            self.assertEqual((41, {}), patterns.match(b"/x7"))

    def test_size(self) -> None:
        """The size of a pattern is that of what RE2 makes of it; one for C{re} has none."""
        self.assertGreater(compile_pattern("/[a-z]{1,200}").size, 400)
        self.assertLess(compile_pattern("/[a-z]+").size, 20)
        self.assertEqual(0, compile_pattern("/(?=a)[a-z]+").size)

    def test_each_compiled_in_one_set(self) -> None:
        """RE2 compiles each pattern into one set, and is never asked for a set that it has to refuse."""
        asked: list[int] = []
        make = re2.Set.FullMatchSet

        class Counted:
            """A set that notes how many patterns it has when it is compiled."""

            def __init__(self, options: Any) -> None:
                made = make(options)
                self.count = 0
                self.add, self.compile, self.Match = made.Add, made.Compile, made.Match

            def Add(self, pattern: str) -> None:
                self.count += 1
                self.add(pattern)

            def Compile(self) -> None:
                asked.append(self.count)
                self.compile()

        self.patch(re2.Set, "FullMatchSet", Counted)
        patterns = PathPatterns([f"/x{number}/[a-z]{{1,900}}" for number in range(100)])

        self.assertEqual([35, 35, 30], asked)
        self.assertEqual((99, {}), patterns.match(b"/x99/a"))

    def test_too_large_for_any_set(self) -> None:
        """A pattern that is too large for a set of its own still matches, in its place."""
        patterns = PathPatterns(["/a", "/b(?P<HOST>" + ".{1000}" * 20 + ")", "/.*"])

        self.assertEqual((0, {}), patterns.match(b"/a"))
        self.assertEqual((1, {"HOST": b"x" * 20_000}), patterns.match(b"/b" + b"x" * 20_000))
        self.assertEqual((2, {}), patterns.match(b"/c"))

    def test_quiet(self) -> None:
        """A pattern that RE2 refuses leaves nothing in the warnings of Python."""
        PathPatterns(["/(?=x)[[a]"])

        self.assertEqual([], self.flushWarnings())

    @given(
        st.lists(linear_patterns(), min_size=1, max_size=4),
        st.lists(st.text(alphabet="ab/1%.", max_size=8).map("/".__add__), min_size=1, max_size=6),
    )
    def test_as_one_after_the_other(self, patterns: list[str], paths: list[str]) -> None:
        """The answer is that of trying C{re.fullmatch} with one pattern after the other."""
        compiled = PathPatterns(patterns)
        self.assertTrue(all(compile_pattern(pattern).linear for pattern in patterns))
        for path in paths:
            expected = None
            for index, pattern in enumerate(patterns):
                found = re.fullmatch(pattern, path)
                if found is not None:
                    groups = found.groupdict().items()
                    expected = (index, {name: text.encode() for name, text in groups if text is not None})
                    break

            self.assertEqual((patterns, path, expected), (patterns, path, compiled.match(path.encode())))


class LinearSetTests(SynchronousTestCase):
    def test_all_and_first(self) -> None:
        """All patterns that match are told by the index that the caller gave them, and the lowest of them."""
        members = [(index, compile_pattern(text)) for index, text in ((3, "/a.*"), (5, "/b"), (8, "/.*"))]
        patterns = LinearSet(members)

        self.assertEqual([3, 8], sorted(patterns.all(b"/ab")))
        self.assertEqual(3, patterns.first(b"/ab"))
        self.assertEqual(8, patterns.first(b"/c"))
        self.assertEqual([], patterns.all(b"c"))
        self.assertIsNone(patterns.first(b"c"))

    def test_empty(self) -> None:
        """Of no patterns none matches."""
        self.assertEqual([], LinearSet([]).all(b"/"))
        self.assertIsNone(LinearSet([]).first(b"/"))


class DecodeGroupsTests(SynchronousTestCase):
    def test_decoded(self) -> None:
        """Percent-encoded UTF-8 becomes text; all else stays as it is."""
        table = [
            (b"", ""),
            (b"web1", "web1"),
            (b"a%2Fb", "a/b"),
            (b"a%2fb", "a/b"),
            (b"a+b", "a+b"),
            (b"%C3%A9", "é"),
            (b"%c3%a9", "é"),
            (b"%zz", "%zz"),
            (b"%", "%"),
            (b"%4", "%4"),
            (b"%%41", "%A"),
            (b"%2541", "%41"),
            (b"a%00b", "a\0b"),
            (b"%0a", "\n"),
            (b"%F0%9F%90%8D", "🐍"),
        ]
        for raw, text in table:
            self.assertEqual((raw, {"HOST": text}), (raw, decode_groups({"HOST": raw})))

    def test_several(self) -> None:
        """Each group is decoded, in order."""
        self.assertEqual([("b", "1"), ("a", "/")], list(decode_groups({"b": b"1", "a": b"%2f"}).items()))
        self.assertEqual({}, decode_groups({}))

    def test_not_utf8(self) -> None:
        """Text that is not UTF-8 once decoded is refused: cut, overlong and surrogate forms too."""
        for raw in (b"%ff", b"%C3", b"%C0%AF", b"%ED%A0%80", b"%F4%90%80%80", b"ok%80"):
            refused = self.assertRaises(RequestRefused, decode_groups, {"a": b"x", "HOST": raw})

            self.assertEqual((raw, BAD_ENCODING), (raw, refused.reason))

    @given(st.text(max_size=30))
    def test_round_trip(self, text: str) -> None:
        """Whatever text is quoted comes out as it was."""
        self.assertEqual({"HOST": text}, decode_groups({"HOST": quote(text, safe="").encode("ascii")}))


class _PublicPart:
    """An C{re2} expression as its documentation has it."""

    def __init__(self, pattern: str) -> None:
        self._linear = compile_pattern(pattern).linear
        self.groups = self._linear.groups
        self.fullmatch = self._linear.fullmatch


class SpansTests(SynchronousTestCase):
    """Tests for L{spans_of}."""

    def test_short_cut(self) -> None:
        """The short cut through C{re2} is there, and says what the way around it says."""
        pattern = "/(?P<a>x)?(y*)/(?P<b>.*)"
        linear = compile_pattern(pattern).linear
        self.assertTrue(hasattr(linear, "_regexp"), "google-re2 has changed: spans_of() now takes the slow way")
        for path in (b"/xyy/z", b"//", b"/y/"):
            self.assertEqual(list(spans_of(linear)(path)), list(spans_of(_PublicPart(pattern))(path)))
        self.assertEqual([(0, 2), (-1, -1), (1, 1), (2, 2)], list(spans_of(linear)(b"//")))
