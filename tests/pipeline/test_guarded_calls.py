"""What an observer answered, read as one entry a message."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import Rejected
from webhookrx.pipeline.guarded_calls import outcome_of_each, refused_in, rejects_only


class OutcomeTests(SynchronousTestCase):
    """Whatever C{store} returns or raises, each message has an outcome."""

    def test_rejects_only(self) -> None:
        """An observer complains of messages alone only if each complaint is a refusal for good."""
        refused, away = Rejected("no"), OSError("away")
        for outcome, expected in (
            ([refused, None, refused], True),
            ([refused, refused], True),
            ((None, None), True),
            ([refused, away], False),
            ([away, refused, None], False),
            ([None, away], False),
            ([away], False),
            (away, False),
            ("no", False),
            (None, False),
        ):
            self.assertIs(expected, rejects_only(outcome), outcome)

    def test_refused_in(self) -> None:
        """Only refusals for good count, and only where the observer has said one thing of each message."""
        refused, away = Rejected("no"), OSError("away")
        for outcome, expected in (
            ([refused, None, refused], 2),
            ((refused, away, None), 1),
            ([refused, refused], 0),
            ([away, None, None], 0),
            (refused, 0),
            (None, 0),
        ):
            self.assertEqual(expected, refused_in(3, outcome), outcome)

    def test_outcome_of_each(self) -> None:
        """An observer that does not say one thing of each message has said nothing of any."""
        self.assertEqual(["x"] * 2, outcome_of_each(2, OSError("x")))
        self.assertEqual([None, "x"], outcome_of_each(2, [None, OSError("x")]))
        for outcome in ([None], [None] * 3, 5):
            self.assertEqual(2, sum(word is not None for word in outcome_of_each(2, outcome)), outcome)
