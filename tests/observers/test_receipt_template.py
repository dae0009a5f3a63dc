"""
Names made of templates and the date of receipt.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.observers.receipt_template import ReceiptTemplate
from webhookrx.testing import make_message


class RenderTests(SynchronousTestCase):
    """Tests for L{ReceiptTemplate.render}."""

    def rendered(self, text: str, received: int = 1_767_323_045_678_901_234, **values: str) -> str:
        """Return the name of a message, with its values in capitals."""
        return ReceiptTemplate.parse(text).render(make_message("", {**values}, received), str.upper)

    def test_dates(self) -> None:
        """Each part of the date is that of receipt, in UTC."""
        self.assertEqual("2026-01-02 03 002 2026-01", self.rendered("%Y-%m-%d %H %j %G-%V"))
        self.assertEqual("19700101", self.rendered("%Y%m%d", 0))

    def test_midnight(self) -> None:
        """The last nanosecond of a day is of that day, whatever the zone of the process."""
        midnight = 1_767_312_000_000_000_000

        self.assertEqual("2026-01-01T23", self.rendered("%Y-%m-%dT%H", midnight - 1))
        self.assertEqual("2026-01-02T00", self.rendered("%Y-%m-%dT%H", midnight))

    def test_macros(self) -> None:
        """Values are cleaned, what stands around them and defaults are not; what looks like a date in them is none."""
        self.assertEqual("a-%YB-none", self.rendered("a-${x}-${y:-none}", x="%yb"))

    def test_signs(self) -> None:
        """Two percent signs are one, two dollar signs are one, and a percent sign in a macro is a part of it."""
        self.assertEqual("%Y $ 5%d", self.rendered("%%Y $$ ${x:-5%d}"))

    def test_constant(self) -> None:
        """Only a name without macros and dates is the same for all messages."""
        for text, is_constant in (("a", True), ("a%%", True), ("a$$", True), ("a%Y", False), ("${x}", False)):
            self.assertEqual(is_constant, ReceiptTemplate.parse(text).is_constant, text)

    def test_sample(self) -> None:
        """A sample has nothing in the place of a macro."""
        self.assertEqual("a--1970", ReceiptTemplate.parse("a-${x}-%Y").sample())


class ParseTests(SynchronousTestCase):
    """Tests for L{ReceiptTemplate.parse}."""

    def test_mistakes(self) -> None:
        """A part of a date that is unknown, and a macro that is wrong, are told with their column."""
        for text, said in (
            ("ab%x", "column 3: behind % comes a part of the date, %Y, %m, %d, %H, %j, %G, %V, or another %"),
            ("ab%", "column 3: behind %"),
            ("%Y-${", "column 4: ${ is not closed"),
            ("a\nb", "column 2: a template is one line"),
        ):
            self.assertIn(said, str(self.assertRaises(ValueError, ReceiptTemplate.parse, text)))
