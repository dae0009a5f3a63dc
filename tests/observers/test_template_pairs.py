"""
Options that are pairs of a name and a template.
"""

from __future__ import annotations

import re

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.observers.template_pairs import parse_pairs
from webhookrx.testing import make_message

NAME = re.compile("[a-z]+")


class ParsePairsTests(SynchronousTestCase):
    """Tests for L{parse_pairs}."""

    def test_pairs(self) -> None:
        """Pairs are in their order; a template may hold an equals sign, and a comma in a default."""
        pairs = parse_pairs("a=${x:-1,2},b==,c=", NAME, "letters")

        self.assertEqual(
            [("a", "1,2"), ("b", "="), ("c", "")], [(name, each.render(make_message())) for name, each in pairs]
        )

    def test_none(self) -> None:
        """An empty text has none."""
        self.assertEqual((), parse_pairs("", NAME, "letters"))

    def test_mistakes(self) -> None:
        """What is wrong is quoted, and what is allowed is told."""
        for text, said in (
            ("a", '"a" is not NAME=TEMPLATE'),
            ("a=1,", '"" is not NAME=TEMPLATE'),
            ("A=1", 'the name "A" is wrong; a name has letters'),
            ("=1", 'the name "" is wrong'),
            ("a=1,a=2", 'the name "a" is there twice'),
            ("a=$(", "column 1"),
        ):
            self.assertIn(said, str(self.assertRaises(ValueError, parse_pairs, text, NAME, "letters")))
