"""
Tests for L{webhookrx.senders.text_template}.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import scope_of
from webhookrx.senders.locator import LocatorError
from webhookrx.senders.text_template import TextTemplate, first_text


class TextTests(SynchronousTestCase):
    """Texts with places."""

    def test_table(self) -> None:
        """A piece that yields nothing goes with what separates it from the one before."""
        scope = scope_of({"a": "A", "b": "B", "c": "C"}, {"x": "X"})
        for text, expected in {
            "/a": "A",
            "/x": None,
            "header:x": "X",
            "path": "/events",
            "plain": "plain",
            "": None,
            "{/a}": "A",
            "{/x}": None,
            "x {/x}": None,
            "{/a} {/b}": "A B",
            "{header:x}.{/a} {/b}": "X.A B",
            "{header:x}.{/x} {/b}": "X B",
            "{/x}.{/a}": "A",
            "{/x}.{/x} {/a}: {/b}": "A: B",
            "{/a}.{/x}": "A",
            "{/a}, {/x}, {/b}": "A, B",
            "{/a} by {/b}": "A by B",
            "{/a} by {/x}": "A by",
            "{/a} ({/b})": "A (B)",
            "{/a} ({/x})": "A",
            "{/a} ({/x}) {/b}": "A B",
            "{/a} ({/b}: {/c})": "A (B: C)",
            "{/a} ({/b}: {/x})": "A (B)",
            "{/a} ({/x}: {/c})": "A (C)",
            "{/a} ({/x}: {/x})": "A",
            "{/a} ({/x}: {/x}) {/b}": "A B",
            "[{/a}] {/b}": "[A] B",
            "[{/x}] {/b}": "B",
            "[{/x} {/a}] {/b}": "[A] B",
            '{/a} "{/b}"': 'A "B"',
            '{/a} "{/x}" {/b}': "A B",
            "{/a} [({/x})] {/b}": "A B",
            "{/a} ({/x}": "A",
            "({/x}) {/a}": "A",
            "New: {/a}": "New: A",
            "New: {/x}{/a}": "New: A",
            "{/a}: {/x}{/b} ({/x}{/x})": "A: B",
            "{/a}!": "A!",
            "{/a}{/x}!": "A!",
            "{{{/a}}}": "{A}",
            "{{/a}}": "{/a}",
            "{/a}{/x}{/b}": "AB",
            "{/x}{/b}": "B",
            "#{/a}": "#A",
            "#{/x} {/b}": "B",
        }.items():
            rendered = TextTemplate(text).render(scope)
            self.assertEqual(rendered and rendered[0], expected, text)

    def test_taken(self) -> None:
        """What a text was taken from is named as in the entry."""
        scope = scope_of({"a": "A", "b": "B"}, {"x": "X"})
        for text, taken in {
            "/a": "/a",
            "{/a} {/x} {header:X}": "/a, header:X",
            "{/a}": "/a",
            "plain": "text",
        }.items():
            rendered = TextTemplate(text).render(scope)
            self.assertEqual(rendered and rendered[1], taken)

    def test_first_text(self) -> None:
        """The first of several texts that yields something counts."""
        scope = scope_of({"a": "A", "b": "B"})
        self.assertEqual(
            first_text((TextTemplate("{/x}"), TextTemplate("{/b}!"), TextTemplate("/a")), scope), ("B!", "/b")
        )
        self.assertIsNone(first_text((TextTemplate("/x"),), scope))
        self.assertIsNone(first_text((), scope))

    def test_bad(self) -> None:
        """What is no text with places is a mistake with its column."""
        for text, column in {"{": 1, "a }": 3, "a {b}": 4, "{/a} {/~}": 8, "{header:}": 9, "{{{": 3, "{}": 2}.items():
            with self.assertRaises(LocatorError, msg=text) as caught:
                TextTemplate(text)
            self.assertEqual(caught.exception.column, column, text)

    @given(
        st.lists(
            st.sampled_from(["{/a}", "{/x}", " ", ", ", ": ", " (", ")", "[", "] ", '"', "word", "-> "]), max_size=9
        )
    )
    def test_nothing_lost(self, parts: list[str]) -> None:
        """Whatever is left out, values and words stay, in their order."""
        rendered = TextTemplate("".join(parts)).render(scope_of({"a": "VALUE"}))
        if "{/a}" in parts:
            assert rendered is not None
            wanted = [{"{/a}": "VALUE"}.get(part, part) for part in parts if part in ("{/a}", "word")]
            found = "".join(each for each in rendered[0] if each.isalpha())
            self.assertEqual(found, "".join(wanted))
        elif "{/x}" in parts:
            self.assertIsNone(rendered)

    @given(
        st.lists(
            st.sampled_from(
                [
                    "{/a}",
                    "{/b}",
                    "{/x}",
                    "{/y}",
                    "{header:x}",
                    "{header:z}",
                    " ",
                    ", ",
                    ": ",
                    " (",
                    ")",
                    "[",
                    '"',
                    "word",
                ]
            ),
            max_size=12,
        ),
        st.sets(st.sampled_from(["x", "y"])),
    )
    def test_narrowed(self, parts: list[str], also: set[str]) -> None:
        """A text without the places that lead nowhere renders the same, whether others are there or not."""
        text = TextTemplate("".join(parts))
        for body in ({"a": "A", "b": "B"}, {"a": "A", "b": None}, {"b": ""}, {}):
            scope = scope_of(body, {"x": "X"})
            narrowed = text.narrowed({*body, *also})
            self.assertEqual(None if narrowed is None else narrowed.render(scope), text.render(scope))
