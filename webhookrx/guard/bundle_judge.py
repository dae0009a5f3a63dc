"""
Makes messages of the events of a bundle: each is judged as a body of its own, all of them or none.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sized
from typing import Final

import msgspec

from webhookrx.errors import TOO_MANY_EVENTS
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Accepted, Admission, Dropped, Judge, Receipt, Refused, SourceRules
from webhookrx.intake.judge import judge as judge_values
from webhookrx.intake.line_judge import judge_for_lines
from webhookrx.intake.provenance import BatchPlace, Provenance
from webhookrx.message.message import Message
from webhookrx.senders.bundle import NOWHERE, Bundle, SplitEvent
from webhookrx.yield_point import yield_point

MAX_PREPARED: Final = 64 * 1024 * 1024
"""Bytes that all messages of one body may take, prepared: each repeats envelope, query and headers."""

_TOO_MUCH: Final = "The events of this body would take too much room, with what goes along with each."


class JudgedBundle(msgspec.Struct):
    """
    The messages of a bundle, and what is worth counting of all of them together.

    @ivar messages: in the order of the events, without those that a step has dropped.
    @ivar prepared: each of them, prepared.
    @ivar events: how many events there were.
    @ivar notes: see L{Accepted.notes}.
    @ivar left_out: see L{Accepted.left_out}.
    @ivar steps: what the steps of a connector have counted, see L{Accepted.events}.
    @ivar problem: the first problem of a step.
    @ivar bare: how many events have lost their envelope, since it is too long.
    """

    messages: list[Message]
    prepared: list[Sized]
    events: int
    notes: Counter[str]
    left_out: int = 0
    steps: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    problem: str = ""
    bare: int = 0


class BundleJudge:
    """
    Judges the events of bundles to one source.

    @param rules: those of the source.
    @param judge: makes a message, as L{webhookrx.intake.judge.judge} does, which is the default.
    @param for_lines: does the same for messages that are wanted as lines; by default C{judge}.
    """

    def __init__(self, rules: SourceRules, judge: Judge | None = None, for_lines: Judge | None = None) -> None:
        self._rules = rules
        # A text or number that is an event by itself is no body that fails to be JSON.
        self._text_rules = copy.copy(rules)
        self._text_rules.parse_json = False
        self._judge: Judge = judge or judge_values
        self._judge_lines: Judge = for_lines or self._judge
        self._judge_text_lines = self._judge_lines
        if judge is None and for_lines is None:
            self._judge_lines = judge_for_lines(rules)[0]
            self._judge_text_lines = judge_for_lines(self._text_rules)[0]

    def judge(
        self,
        bundle: Bundle,
        head: Head,
        admission: Admission,
        receipt: Receipt,
        prepare: Callable[[Message], Sized],
        *,
        by_lines: bool,
    ) -> JudgedBundle | Refused:
        """
        Make messages of all events, with yield points.

        @param admission: with the provenance of the request.
        @param receipt: the id of each message is that with C{-1}, C{-2}, … behind it.
        @param prepare: see L{webhookrx.interfaces.IMessageConsumer.prepare}.
        @param by_lines: messages are wanted as lines.
        @return: a refusal if one event is refused, or they take more than L{MAX_PREPARED}.
        """
        count = len(bundle.events)
        judged = JudgedBundle([], [], count, Counter(), bare=bundle.left_out)
        size = 0
        for number, event in enumerate(bundle.events, 1):
            verdict = self._event(event, number, count, head, admission, receipt, by_lines)
            if isinstance(verdict, Refused):
                return verdict
            judged.steps.update(verdict.events)
            judged.problem = judged.problem or verdict.problem
            if isinstance(verdict, Accepted):
                judged.notes.update(verdict.notes)
                judged.left_out += verdict.left_out
                prepared = prepare(verdict.message)
                size += len(prepared)
                if size > MAX_PREPARED:
                    return Refused(TOO_MANY_EVENTS, _TOO_MUCH, self._rules.name)
                judged.messages.append(verdict.message)
                judged.prepared.append(prepared)
            yield_point()
        return judged

    def _event(
        self,
        event: SplitEvent,
        number: int,
        count: int,
        head: Head,
        admission: Admission,
        receipt: Receipt,
        by_lines: bool,
    ) -> Accepted | Dropped | Refused:
        around = event.around
        place = BatchPlace(number, count, around.envelope, None if around is NOWHERE else around)
        provenance = msgspec.structs.replace(admission.provenance or Provenance(), batch=place)
        if event.is_text:
            rules, judge = self._text_rules, self._judge_text_lines if by_lines else self._judge
        else:
            rules, judge = self._rules, self._judge_lines if by_lines else self._judge
        own = Admission(rules, admission.groups, admission.query, admission.encodings, provenance)
        return judge(head, own, event.body, Receipt(receipt.received, f"{receipt.id}-{number}"))
