"""
Tests for what C{docs/reference/query-language.md} says.
"""

from __future__ import annotations

import re

from twisted.trial.unittest import SynchronousTestCase

from tests import documents
from webhookrx.message.fields import MAX_NAMES
from webhookrx.query import format_tree, parse
from webhookrx.query.predicates import OPERATORS
from webhookrx.query.query_lexer import MAX_LENGTH
from webhookrx.query.query_parser import MAX_EXPRESSIONS, MAX_LEVELS, MAX_TERMS

PAGE = documents.read("docs/reference/query-language.md")


class PageTests(SynchronousTestCase):
    """The page and the code."""

    def test_examples(self) -> None:
        """Every example is a query."""
        lines = [line for block in documents.blocks(PAGE) for line in block.text.splitlines()]

        self.assertGreater(len(lines), 15)
        for line in lines:
            with self.subTest(query=line):
                parse(line)

    def test_same(self) -> None:
        """The two lines that are said to be the same are."""
        (block,) = [block.text for block in documents.blocks(PAGE) if block.text.startswith("a = 1")]
        first, second, *_ = [format_tree(parse(line).tree) for line in block.splitlines()]

        self.assertEqual(first, second)

    def test_operators(self) -> None:
        """The table has all operators, each where it belongs."""
        rows = re.findall(r"^\| .* \| `(\S+)` \| `(\S+)` \|$", PAGE, re.MULTILINE)

        compare = {operator for operator in OPERATORS if OPERATORS[operator].kind == "compares"}
        self.assertEqual(set(OPERATORS) - compare, {operator for row in rows for operator in row})
        (numbers,) = re.findall(r"^- Numbers are compared by (.*)[:.]", PAGE, re.MULTILINE)
        self.assertEqual(compare, set(re.findall("`([<>=]+)`", numbers)))
        for ignoring, strict in rows:
            self.assertEqual(OPERATORS[strict], OPERATORS[ignoring]._replace(strict=True))
            self.assertFalse(OPERATORS[ignoring].strict)

    def test_limits(self) -> None:
        """The limits are those of the code."""
        limits = PAGE.split("## Limits")[1]
        for number in (MAX_LENGTH, MAX_TERMS, MAX_EXPRESSIONS, MAX_LEVELS, MAX_NAMES):
            self.assertIn(f" {number:,} ", limits)
