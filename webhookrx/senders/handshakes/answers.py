"""
The answers of one source to messages, as its sender wants to hear them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhookrx.errors import BAD_PAYLOAD, Reason, WebhookrxError
from webhookrx.intake.head import Head
from webhookrx.intake.reply import Reply
from webhookrx.message.fields import MISSING
from webhookrx.query import QueryTooCostly
from webhookrx.regex import RegexTooCostly
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.handshakes.compilation import CompiledAnswer, compiled_answers
from webhookrx.senders.handshakes.handshakes import reply_of
from webhookrx.senders.handshakes.shapes import LONGEST
from webhookrx.senders.handshakes.texts import (
    NoValue,
    Values,
    scope_of,
    words_of_now,
    words_of_settings,
)


class AnswerFailed(WebhookrxError):
    """
    The answer that a sender waits for can't be made: the request is refused with C{bad_payload}.

    The text is one sentence that quotes nothing of the request.
    """

    reason = BAD_PAYLOAD


class SenderAnswers:
    """
    Makes answers to messages.

    @ivar asks_bodies: an answer depends on the body, or is for some bodies only.
    """

    def __init__(self, definition: SenderDefinition, *, settings: Mapping[str, Any] | None = None) -> None:
        self._answers = compiled_answers(definition)
        self._settings = words_of_settings(settings or {})
        self.asks_bodies = any(map(_asks_body, self._answers))

    def __bool__(self) -> bool:
        """Whether the sender wants any other answer than ours."""
        return bool(self._answers)

    def stored(self, evidence: Evidence, now: int) -> Reply | None:
        """
        Return the answer to a message that is to be stored, before it is; None for the ordinary one.

        @param now: nanoseconds since the epoch.
        @raise AnswerFailed: it can't be made.
        """
        answer = self._answer_for(evidence)
        if answer is None:
            return None
        values = Values(scope_of(evidence), {**self._settings, **words_of_now(now)}, _is_short)
        try:
            return reply_of(answer.stored, values)
        except NoValue as missing:
            raise AnswerFailed(
                f"The answer to this sender needs {missing.place}, which is missing, empty or too long."
            ) from None

    def refused(
        self, head: Head, query: Mapping[str, str | list[str]], reason: Reason, detail: str, now: int
    ) -> Reply | None:
        """
        Return the answer to a refused request, with the status of the reason; None for the ordinary one.

        @param now: nanoseconds since the epoch.
        """
        evidence = Evidence(head, query, b"", "", MISSING)
        for answer in self._answers:
            if answer.refused is None or (answer.conditions is not None and not _holds(answer, evidence)):
                continue
            words = {**self._settings, **words_of_now(now), "reason": reason.word, "detail": detail}
            try:
                return reply_of(answer.refused, Values(scope_of(evidence), words, _is_short), reason.status)
            except NoValue:
                return None
        return None

    def _answer_for(self, evidence: Evidence) -> CompiledAnswer | None:
        for answer in self._answers:
            if answer.conditions is None or _holds(answer, evidence):
                return answer
        return None


def _holds(answer: CompiledAnswer, evidence: Evidence) -> bool:
    assert answer.conditions is not None, "the caller has checked it"
    try:
        return answer.conditions.match(evidence, evidence.header_names())
    except (QueryTooCostly, RegexTooCostly):
        return False


def _is_short(value: str) -> bool:
    return len(value) <= LONGEST


def _asks_body(answer: CompiledAnswer) -> bool:
    conditions = answer.conditions
    return any(place.root is not None for text in answer.stored.texts for place in text.places) or (
        conditions is not None and bool(conditions.body_keys or conditions.query)
    )
