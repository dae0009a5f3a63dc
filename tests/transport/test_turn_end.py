"""Tests for L{webhookrx.transport.turn_end}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.transport.turn_end import TurnEnd


class TurnEndTests(SynchronousTestCase):
    """Calls at the end of a turn."""

    def setUp(self) -> None:
        self.turn_end = TurnEnd()
        self.calls: list[str] = []

    def add(self, name: str) -> bool:
        """Have a name noted at the end."""
        return self.turn_end.add(lambda: self.calls.append(name))

    def test_in_order(self) -> None:
        """They come at the end, in their order, and once."""
        self.turn_end.begin()
        self.assertEqual([True, True], [self.add("first"), self.add("second")])
        self.assertEqual([], self.calls)
        self.turn_end.end()
        self.assertEqual(["first", "second"], self.calls)
        self.turn_end.begin()
        self.turn_end.end()
        self.assertEqual(["first", "second"], self.calls)

    def test_outside(self) -> None:
        """Outside a turn nothing is taken."""
        self.assertFalse(self.add("before"))
        self.turn_end.begin()
        self.turn_end.end()
        self.assertFalse(self.add("after"))
        self.turn_end.begin()
        self.turn_end.end()
        self.assertEqual([], self.calls)

    def test_at_the_end(self) -> None:
        """What comes up at the end belongs to a later turn, so that no turn goes on for ever."""
        taken: list[bool] = []
        self.turn_end.begin()
        self.turn_end.add(lambda: taken.append(self.add("late")))
        self.turn_end.end()
        self.assertEqual([False], taken)

    def test_failures(self) -> None:
        """Whatever one of them raises, it is logged, and the others are called."""
        for error in (ValueError, SystemExit):

            def fail(error: type[BaseException] = error) -> None:
                raise error

            self.turn_end.begin()
            self.turn_end.add(fail)
            self.add(error.__name__)
            self.turn_end.end()
            self.assertEqual(1, len(self.flushLoggedErrors(error)))
        self.assertEqual(["ValueError", "SystemExit"], self.calls)
