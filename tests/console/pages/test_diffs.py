"""
Tests for L{webhookrx.console.pages.diffs}, and for the macro that shows differences.
"""

from __future__ import annotations

import random
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from twisted.trial.unittest import SynchronousTestCase

from tests.console.pages.paging import check_html, text_of
from webhookrx.console.pages.diffs import (
    ADDED,
    LONGEST_LINE,
    MOST_LINES,
    REMOVED,
    SAME,
    SKIPPED,
    DiffLine,
    change_diff,
    document_diff,
    text_diff,
)
from webhookrx.console.pages.rendering import TEMPLATES

_TEXTS = st.lists(st.sampled_from(["a", "b", "c", "  d", "e: f", ""]), max_size=30).map("\n".join)


def signed(lines: list[DiffLine]) -> list[str]:
    """Return lines with a sign for each kind."""
    return [{SAME: " ", ADDED: "+", REMOVED: "-", SKIPPED: "…"}[line.kind] + line.text for line in lines]


class TextDiffTests(SynchronousTestCase):
    """Differences of texts and documents."""

    def test_context(self) -> None:
        """Lines around a change are shown, and others are counted."""
        before = "".join(f"{number}\n" for number in range(20))
        after = before.replace("10\n", "ten\n")
        self.assertEqual(
            ["…9 lines that are the same", " 9", "-10", "+ten", " 11", "…8 lines that are the same"],
            signed(text_diff(before, after, context=1)),
        )
        self.assertEqual(21, len(text_diff(before, after, context=-1)))
        self.assertEqual(["…1 line that is the same", "-b"], signed(text_diff("a\nb", "a", context=0)))

    def test_nothing(self) -> None:
        """The same text has no differences; a new one is added as a whole, one that is gone is removed."""
        self.assertEqual([], text_diff("a\n", "a"))
        self.assertEqual([], text_diff(None, ""))
        self.assertEqual(["+a", "+b"], signed(text_diff(None, "a\nb\n")))
        self.assertEqual(["-a", "-b"], signed(text_diff("a\nb\n", None)))

    @given(_TEXTS, _TEXTS)
    def test_both_sides(self, before: str, after: str) -> None:
        """Without the lines that were added it is the old text, without those that were removed the new one."""
        lines = text_diff(before, after, context=-1)
        if lines:
            for text, kind in ((before, ADDED), (after, REMOVED)):
                kept = [line.text for line in lines if line.kind != kind]
                self.assertEqual(text.removesuffix("\n").split("\n") if text else [], kept)

    def test_hostile(self) -> None:
        """No character turns others around, and a long line is cut."""
        lines = text_diff("a\u202eb", "x" * 5000)
        self.assertEqual(["-a\\u202eb", "+" + "x" * (LONGEST_LINE - 1) + "…"], signed(lines))

    def test_bounds(self) -> None:
        """Whatever the texts are, it takes little time and shows a bounded number of lines."""
        rng = random.Random(5)
        words = [str(number) for number in range(12)]
        cases = [
            ("\n".join(["a"] * 100_000), "\n".join(["a", "b"] * 50_000)),
            ("\n".join(rng.choices(words, k=480)), "\n".join(rng.choices(words, k=480))),
            ("\n".join(rng.choices(words, k=220)), "\n".join(rng.choices(words, k=220))),
            ("\n".join(map(str, range(500))), "\n".join(map(str, range(499, -1, -1)))),
            ("x" * 10_000_000, "y" * 10_000_000),
        ]
        for before, after in cases:
            begun = time.process_time()
            lines = text_diff(before, after)
            self.assertLess(time.process_time() - begun, 5)
            self.assertLessEqual(len(lines), MOST_LINES + 1)
            self.assertLessEqual(max(len(line.text) for line in lines), LONGEST_LINE)
        self.assertIn(SKIPPED, [line.kind for line in text_diff(*cases[0])])
        self.assertEqual("599 more lines are not shown", text_diff(*cases[3])[-1].text)

    def test_documents(self) -> None:
        """Documents are compared as YAML."""
        self.assertEqual(
            [" name: a", " labels:", "-  team: x", "+  team: y"],
            signed(document_diff({"name": "a", "labels": {"team": "x"}}, {"name": "a", "labels": {"team": "y"}})),
        )
        self.assertEqual(["+state: approved"], signed(change_diff("router", None, {"state": "approved"})))
        self.assertEqual(["-value: 3", "+value: 4"], signed(change_diff("setting", 3, 4)))

    def test_rules(self) -> None:
        """Comments count where both sides were written as YAML; else the documents are compared; managers are told."""
        other = {"protocol": "HTTP", "name": "a", "port": 1}
        lines = change_diff("rule", {"manager": "ui", "rule": other}, {"manager": "ui", "rule": {**other, "port": 2}})
        self.assertEqual([" name: a", " protocol: HTTP", "-port: 1", "+port: 2"], signed(lines))
        old: dict[str, Any] = {"manager": "ui", "rule": {"name": "a"}}
        written = {"manager": "ui", "rule": {"name": "a"}, "yaml": "name: a  # why\n"}
        self.assertEqual([], change_diff("rule", old, written))
        again = {**written, "yaml": "name: a  # because\n"}
        self.assertEqual(["-name: a  # why", "+name: a  # because"], signed(change_diff("rule", written, again)))
        self.assertEqual(["+name: a  # why"], signed(change_diff("rule", None, written)))
        pushed = {**old, "manager": "push:ci"}
        self.assertEqual(["+# manager: push:ci", " name: a"], signed(change_diff("rule", old, pushed)))


class DiffMacroTests(SynchronousTestCase):
    """How differences are shown."""

    def test_markup(self) -> None:
        """Markup in a text stays text, and each line says what it is."""
        environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        macro = environment.get_template("_diff.html").module.diff  # type: ignore[attr-defined]
        html = str(macro(text_diff("a\n<script>x</script>", "a\n  b"), "What <changes>"))
        check_html(html)
        self.assertNotIn("<script>", html)
        self.assertIn('<span class="same">  a</span><del>', html)
        self.assertIn("removed: - <script>x</script>", text_of(html).replace("  ", " "))
        self.assertIn('<span aria-hidden="true">+ </span>  b</ins></div>', html)
        self.assertIn("Nothing differs.", text_of(str(macro([]))))
