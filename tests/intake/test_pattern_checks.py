"""
Tests for L{webhookrx.intake.pattern_checks}.
"""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.diagnostics import Diagnostic
from webhookrx.intake import pattern_checks
from webhookrx.intake.path_patterns import PathPatterns
from webhookrx.intake.pattern_checks import health_path_problem

NO_RE2 = "can't run on RE2; on Python's re, a hostile path could block the receiver, even without a token."
NO_SLASH = "can never match: every path begins with '/'."
INVISIBLE = "can never match: a path holds visible ASCII characters only, the others come percent-encoded."

# One pattern, and its error behind the quoted pattern.
ERRORS = [
    ("/(a", "does not compile: missing ), unterminated subpattern at position 1."),
    ("/[a", "does not compile: unterminated character set at position 1."),
    ("/(?P<a>x)(?P<a>y)", 'has more than one group "a"; each group needs a name of its own.'),
    ("/(?<a>x)(?<a>y)", 'has more than one group "a"; each group needs a name of its own.'),
    ("/(?P<b>x)(?P<a>x)|/(?P<a>y)", 'has more than one group "a"; each group needs a name of its own.'),
    ("/(?=x)(?P<a>x)(?P<a>y)", 'has more than one group "a"; each group needs a name of its own.'),
    ("/(?P<SOURCEIP>.*)", 'has a group "SOURCEIP", which is a hard macro; only the receiver sets it.'),
    ("/(?=x)(?P<DATE>.*)", 'has a group "DATE", which is a hard macro; only the receiver sets it.'),
    ("/(?P<HOST>x)/(?P<FULLHOST>y)", 'has more than one group that sets "HOST".'),
    ("/(?=x)(?P<MSG>x)(?P<MESSAGE>y)", 'has more than one group that sets "MESSAGE".'),
]

NO_ERRORS = [
    "/.*",
    "/(?P<HOST>.*)/(?P<PROGRAM>.*)/(?P<PID>.*)/(?P<MESSAGE>.*)/(?P<date>.*)",
    "/(a)(b)",
    r"/\(?P<a>\(?P<a>",
    "/[(?P<a>][(?P<a>]",
    "/x{900}",
]

# What RE2 can't run: look-around, references to groups, atomic groups, possessive and very large repetitions.
SLOW = ["/(?=a).*", "/(?<=/)(?<!x)(?P<a>x)", r"/(a)\1", "/(?P<a>a)(?P=a)", "/(?>a*)b", "/x*+", "/(?:x{900}){900}"]

# Patterns, and the warnings: index, and the text behind the quoted pattern.
WARNINGS: list[tuple[list[str], list[tuple[int, str]]]] = [
    ([], []),
    (["/.*"], []),
    (["/events", "/events/(?P<HOST>.*)"], []),
    (["/events/.*", "/events"], []),
    (["/x", "/y", "/x"], [(2, "is hidden by pattern 1, which is the same.")]),
    (["/.*", "/x"], [(1, 'is hidden by pattern 1, "/.*", which matches every path.')]),
    (["/y", "/(?P<HOST>.*)", "/x.*"], [(2, 'is hidden by pattern 2, "/(?P<HOST>.*)", which matches every path.')]),
    (["^/.*?$", "/x"], [(1, 'is hidden by pattern 1, "^/.*?$", which matches every path.')]),
    ([r"\A.*\Z", "/x"], [(1, r'is hidden by pattern 1, "\A.*\Z", which matches every path.')]),
    (["/(.*)", "/(?=x).*"], [(1, 'is hidden by pattern 1, "/(.*)", which matches every path.')]),
    (["/$.*", "/x.*"], []),
    (["/.+", "/x"], [(1, 'is hidden by pattern 1, "/.+".')]),
    (["/.+", "/"], []),
    (["/a", "/[^/]+", "/abc"], [(2, 'is hidden by pattern 2, "/[^/]+".')]),
    (["/[^/]+", "/(?:ab)"], [(1, 'is hidden by pattern 1, "/[^/]+".')]),
    (["(?i)/events", "(?i)/EVENTS"], []),
    (["(?i)/EVENTS", "/events"], [(1, 'is hidden by pattern 1, "(?i)/EVENTS".')]),
    (["/events", "(?i)/EVENTS"], []),
    (["/events", "/(?i:EVENTS)"], []),
    # A pattern that matches more than one path is not compared with what others match.
    (["/(?i:events)", "(?i)/e(?-i:vents)"], []),
    (["(?i)/x+", "(?i)/xx*"], []),
    (["/x+", "(?i)/xx*"], []),
    (["/a.*", "/a[0-9]+"], []),
    (["/a[0-9]+", "/a.*"], []),
    (["/e/.*", "/e/(?P<HOST>[^/]+)"], []),
    (["/e/[^/]+", "/e/.+"], []),
    (["/e/[^/]+", r"/e/\w+"], []),
    ([r"/e/\w+", r"/e/\W*\w"], []),
    ([r"/\D+", r"/\S+"], []),
    ([r"/\S+", r"/\D+"], []),
    ([r"/\S+", r"/\W\d"], []),
    (["/(?:a|b|c)", "/[ab]"], []),
    (["/[ab]", "/(?:a|b|c)"], []),
    (["/[^x]", "/[^xy]"], []),
    (["/[a-y]", "/[a-z]"], []),
    (["/.{0,100}", "/.*x"], []),
    (["/.{3,}", "/.{4}"], []),
    ([r"/x\b.*", r"/x\b/.*"], []),
    # No one pattern hides the third, although the first two together do.
    (["/a.*", "/b.*", "/[ab].*"], []),
    # An earlier pattern on re is not tried.
    (["/(?=a).*", "/a.*"], []),
    # Nothing can be told of what re does not understand, or can't have been meant to be looked into.
    (["/a.*", "/(?<HOST>a)"], []),
    (["/.+", "/" + "(a)" * 51], []),
    ([r"/(a)\1"], []),
    (["/x*+"], []),
    (["events"], [(0, NO_SLASH)]),
    (["events/(?P<HOST>.*)"], [(0, NO_SLASH)]),
    ([""], [(0, NO_SLASH)]),
    (["[a-z]+/x"], [(0, NO_SLASH)]),
    (["https://host/x"], [(0, NO_SLASH)]),
    (["^events$"], [(0, NO_SLASH)]),
    (["/?events", "[/a]x", ".*x", "events|/x", "(?:/x)?y", r"\C*"], []),
    (["/café"], [(0, INVISIBLE)]),
    (["/a b"], [(0, INVISIBLE)]),
    (["/café?", "/[éx]", r"/\s"], []),
    (["/.*", "x"], [(1, NO_SLASH)]),
]


IDLE = {"path-without-slash", "path-invisible", "path-glob", "path-hidden"}


def check(patterns: list[str]) -> tuple[tuple[Diagnostic, ...], tuple[Diagnostic, ...]]:
    """Return what makes patterns unusable or slow, and what keeps them from doing anything."""
    found = pattern_checks.check_patterns(patterns)
    return tuple(each for each in found if each.code not in IDLE), tuple(each for each in found if each.code in IDLE)


class CheckPatternsTests(SynchronousTestCase):
    def test_errors(self) -> None:
        """A pattern that can't be used is told by its index, quoted, with the reason."""
        for pattern, expected in ERRORS:
            errors, warnings = check(["/(?P<HOST>.*)", pattern])

            self.assertEqual([(1, f'"{pattern}" {expected}')], [(error.path[0], error.sentence) for error in errors])
            self.assertEqual((), warnings)

    def test_no_errors(self) -> None:
        """Other groups are fine: soft macros, names of one's own, and what only looks like a group."""
        for pattern in NO_ERRORS:
            self.assertEqual((pattern, ()), (pattern, check([pattern])[0]))

    def test_not_linear(self) -> None:
        """A pattern that RE2 can't run is an error of a kind of its own, so that who takes the risk may use it."""
        for pattern in SLOW:
            errors, warnings = check(["/x", pattern])
            found = [(error.path[0], error.code, error.sentence) for error in errors]
            self.assertEqual([(1, "path-not-linear", f'"{pattern}" {NO_RE2}')], found)
            self.assertEqual((), warnings)

    def test_all_errors(self) -> None:
        """All errors are told at once, two of one pattern too."""
        errors = check(["/(", "/x", "/(?P<DATE>a)(?P<YEAR>b)", "["])[0]

        self.assertEqual([0, 2, 2, 3], [error.path[0] for error in errors])

    def test_warnings(self) -> None:
        """A hidden pattern, and one that can never match, is probably not meant."""
        for patterns, expected in WARNINGS:
            errors, warnings = check(patterns)

            told = [(found.path[0], found.sentence) for found in warnings]
            self.assertEqual([], [error for error in errors if error.code != "path-not-linear"], patterns)
            self.assertEqual([(index, f'"{patterns[index]}" {text}') for index, text in expected], told)

    def test_quoted_in_one_line(self) -> None:
        """A pattern with a control character does not break the line that tells of it."""
        (warning,) = check(["/x\n"])[1]

        self.assertEqual(rf"'/x\n' {INVISIBLE}", warning.sentence)

    def test_unusable_hides_nothing(self) -> None:
        """A pattern with an error is left out of the comparison."""
        self.assertEqual((), check(["/(?P<DATE>.*)", "/x"])[1])

    def test_quiet(self) -> None:
        """Nothing of this shows as a warning of Python."""
        check(["/[[a]", "/x(?i)", "/[a||b]"])

        self.assertEqual([], self.flushWarnings())

    def test_a_thousand(self) -> None:
        """A thousand patterns are checked in a moment: 5 s is far more than it takes."""
        started = time.process_time()
        found = check([f"/tenant{number}/(?P<HOST>[^/]+)/.*" for number in range(1000)])

        self.assertEqual(((), ()), found)
        self.assertLess(time.process_time() - started, 5)

    def test_most_instructions(self) -> None:
        """Patterns that are too much together are told by the one that is too much, and none behind it is compiled."""
        found = pattern_checks.check_patterns(
            ["/(", *[f"/{number}/[a-z]{{1,200}}" for number in range(9)], "/)"], 2_000
        )

        self.assertEqual([("path-syntax", 0), ("paths-too-large", 5)], [(each.code, each.path[0]) for each in found])
        self.assertIn("at most 2,000 instructions", found[1].sentence)
        self.assertIn('"/4/[a-z]{1,200}" have 2,0', found[1].sentence)
        self.assertEqual([], pattern_checks.check_patterns(["/[a-z]{1,200}"] * 1, 2_000))

    def test_refused_for_their_size(self) -> None:
        """A pattern that RE2 refuses for its size counts, as that has taken long; another does not."""
        large = ["/(?:x{900}){900}", *[rf"/{number}" + r"\w{900}" * 900 for number in range(3)]]
        found = pattern_checks.check_patterns([*SLOW, "/(", "/\ud800", *large], 500_000)

        self.assertEqual("paths-too-large", found[-1].code)
        self.assertEqual(len(SLOW) + 2 + 3, found[-1].path[0])

    def test_long_comparisons(self) -> None:
        """Whether patterns of one path are hidden is not looked for where it would take long, but for equal ones."""
        paths = ["/a", "/ab.*", "/abc", "/x", "/(?:x)"]
        self.assertEqual([2, 4], [each.path[0] for each in check(paths)[1]])
        for name in ("_MOST_COMPARED", "_MOST_AT_ONCE"):
            with self.subTest(name):
                self.patch(pattern_checks, name, 10)
                self.assertEqual([4], [each.path[0] for each in check(paths)[1]])
                self.patch(pattern_checks, name, 10_000_000)

    def test_paths_without_patterns(self) -> None:
        """Ten thousand paths are compared with each other in no time: 5 s is far more than it takes."""
        started = time.process_time()
        found = check([*[f"/hook/{number}" for number in range(10_000)], "/hook/(?:77)"])[1]

        self.assertEqual(
            [(10_000, 'is hidden by pattern 78, "/hook/77".')],
            [(each.path[0], each.sentence.split('" ', 1)[1]) for each in found],
        )
        self.assertLess(time.process_time() - started, 5)

    def test_deep_patterns(self) -> None:
        """Repetitions in repetitions and groups in groups end in time, and without an error of ours."""
        nested = "/" + "(?:" * 50 + ".*x" + ")*" * 50
        started = time.process_time()
        for pattern in (
            "/(?:(?:(?:a.*)*b.*)*c.*)*",
            "/(?:.{0,10}){90}",
            "/((a|b|c.*)+/)*x",
            "/(?:(?:(?:(?:a?)*)*)*)*",
            nested,
        ):
            self.assertEqual((), check(["/.+", pattern])[0])

        self.assertLess(time.process_time() - started, 10)

    def test_stars(self) -> None:
        """A star that repeats a slash is what people write who mean anything below it."""
        for pattern, meant in (("/events/*", "/events/.*"), ("/*", "/.*"), ("/a/*/b", "/a/.*/b")):
            (warning,) = check([pattern])[1]
            text = "repeats the slash, and matches nothing below it: for anything below write"
            self.assertEqual(("path-glob", f'"{pattern}" {text} "{meant}".'), (warning.code, warning.sentence))
        for pattern in ("/events/.*", r"/a\/*", "/a[/*]", "/a//*", "/ab*", "/(a/)*"):
            self.assertEqual((), check([pattern])[1], pattern)

    def test_health_path(self) -> None:
        """Health has one path, which is no pattern."""
        for path in ("/healthz", "/", "/a/b.c-d_e~f", "/%41;v=1"):
            self.assertEqual(None, health_path_problem(path))
        for path in ("healthz", "", "*"):
            self.assertIn("begins with a slash", str(health_path_problem(path)))
        for path in ("/.*", "/a|b", "/(a)", "/a?b=c", "/a#b", "/a b", "/\u00e4", "/a\n"):
            self.assertIn("is not one path", str(health_path_problem(path)))

    @given(
        st.lists(st.from_regex(r"/?([ab./]|\[\^?[ab]\]|\(a\|b?\)|\(\?P<HOST>.\)|\\[wdS]){0,4}[*+?]?", fullmatch=True)),
        st.text(alphabet="ab/1", max_size=6).map("/".__add__),
    )
    def test_hidden_by_the_same_or_all_is_certain(self, patterns: list[str], path: str) -> None:
        """A pattern that is called hidden, or can never match, never wins."""
        errors, warnings = check(patterns)
        if errors:
            return
        found = PathPatterns(patterns).match(path.encode())
        sure = {warning.path[0] for warning in warnings if warning.code != "path-glob"}

        self.assertFalse(found is not None and found[0] in sure, (patterns, path))
