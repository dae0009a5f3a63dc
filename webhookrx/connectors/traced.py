"""
The steps of a connector, watched: the message after each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from webhookrx.connectors.passage import DROPPED, Action, Mark, Passage
from webhookrx.connectors.processing import Outcome, Processing, told
from webhookrx.connectors.rule import Preprocessing
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.evidence import Evidence


class Done(NamedTuple):
    """
    What a step did to one message.

    @ivar step: its name.
    @ivar record: the message after it, which nothing changes any more.
    @ivar skipped: its condition does not match.
    @ivar problem: why it failed; empty when it did not.
    @ivar dropped: it has dropped the message.
    """

    step: str
    record: dict[str, Any]
    skipped: bool = False
    problem: str = ""
    dropped: bool = False


class TracedProcessing(Processing):
    """
    Does what L{Processing} does, and remembers what that was.

    @ivar names: all steps, in order.
    @ivar before: the message before the first step; None when there was none.
    @ivar done: what was done, in order; a step that is not in it was not begun.
    """

    __slots__ = ("before", "done", "names")

    def __init__(self, preprocessing: Preprocessing, classifier: Classifier | None) -> None:
        super().__init__(preprocessing, classifier)
        self.names = tuple(name for name, *_ in self._steps)
        self.before: dict[str, Any] | None = None
        self.done: list[Done] = []
        steps: list[Any] = []
        for step in self._steps:
            name, matches, act = step[:3]
            asked = None if matches is None else self._asked(name, matches)
            steps.append((name, asked, self._watched(name, act), *step[3:]))
        self._steps = tuple(steps)

    def run(self, record: dict[str, Any], evidence: Evidence, host_is_set: bool = False) -> Outcome:
        """See L{Processing.run}."""
        self.before = copied(record)
        self.done = []
        return super().run(record, evidence, host_is_set)

    def _asked(self, name: str, matches: Callable[[Any], bool]) -> Callable[[Any], bool]:
        """Return what asks for a condition, and remembers when it was not met."""

        def asked(given: Any) -> bool:
            last = self.done[-1].record if self.done else self.before or {}
            try:
                matched = matches(given)
            except Exception as error:
                self.done.append(Done(name, last, problem=told(name, error)))
                raise
            if not matched:
                self.done.append(Done(name, last, skipped=True))
            return matched

        return asked

    def _watched(self, name: str, act: Action) -> Action:
        """Return what does a step, and remembers what that did."""

        def watched(passage: Passage) -> Mark | None:
            try:
                mark = act(passage)
            except Exception as error:
                self.done.append(Done(name, copied(passage.record), problem=told(name, error)))
                raise
            dropped = mark is not None and mark[0] == DROPPED
            self.done.append(Done(name, copied(passage.record), dropped=dropped))
            return mark

        return watched


def copied(value: Any) -> Any:
    """Return a value with objects and arrays of its own."""
    if isinstance(value, dict):
        return {name: copied(member) for name, member in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value
