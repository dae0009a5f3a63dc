"""
Tests for L{webhookrx.console.pages.one_by_one}.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.console.pages import one_by_one


class OneByOneTests(SynchronousTestCase):
    """Work apart from the reactor."""

    def test_order(self) -> None:
        """One piece waits for the one before, also if that fails."""
        begun: list[tuple[str, Deferred[Any]]] = []

        def in_thread(work: str) -> Deferred[Any]:
            begun.append((work, Deferred()))
            return begun[-1][1]

        self.patch(one_by_one, "deferToThread", in_thread)
        made = [Deferred.fromCoroutine(one_by_one.one_by_one(name)) for name in ("a", "b", "c")]  # type: ignore[arg-type]
        self.assertEqual(["a"], [name for name, _ in begun])
        begun[0][1].errback(ValueError())
        self.failureResultOf(made[0], ValueError)
        self.assertEqual(["a", "b"], [name for name, _ in begun])
        begun[1][1].callback("B")
        begun[2][1].callback("C")
        self.assertEqual(["B", "C"], [self.successResultOf(each) for each in made[1:]])
