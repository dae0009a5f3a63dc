"""
A trial: one request through all decisions of a source, each with its verdict. Nothing is opened or written.

The decisions are those of the L{Guard} that the source has as a receiver, taken one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from webhookrx.diagnostics import quoted
from webhookrx.errors import BODY_TOO_LARGE, HEADERS_TOO_LARGE, STALE_SIGNATURE, TARGET_TOO_LONG
from webhookrx.guard.bundle_judge import BundleJudge
from webhookrx.guard.guard import EARLY, Guard
from webhookrx.guard.passage import Ending, Passage
from webhookrx.http.answers import (
    CLOSE,
    KEEP,
    OVER_TLS,
    RECEIVED,
    AnswerWriter,
    FixedAnswer,
    answer_of,
    answer_to_question,
    refusal_to,
)
from webhookrx.http.body import DISCARDED_BODY
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Accepted, Admission, Judge, Receipt, Refused, source_ip
from webhookrx.message.encoders import encode_line
from webhookrx.message.message import Message
from webhookrx.quantities import counted
from webhookrx.senders.handshakes import HandshakeAnswer
from webhookrx.settings import Limits
from webhookrx.trials.reasons_why import MASKED, is_masked, lack_of_recording, why, why_not

PASSES: Final = "passes"
REFUSES: Final = "refuses"
ANSWERS: Final = "answers"
NOT_JUDGED: Final = "not judged"

STORED: Final = "stored"
HANDSHAKE: Final = "handshake"
REFUSED: Final = "refused"
DROPPED: Final = "dropped"

_NANOSECONDS: Final = 10**9


class DecisionVerdict(NamedTuple):
    """
    One decision.

    @ivar verdict: L{PASSES}, L{REFUSES}, L{ANSWERS}, or L{NOT_JUDGED} where a recording does not tell.
    @ivar why: one sentence or phrase, without a secret.
    """

    decision: str
    verdict: str
    why: str


class TrialRequest(msgspec.Struct, frozen=True):
    """
    A request to try.

    @ivar at: when it comes, in nanoseconds since the epoch; None for when it was signed, else now.
    @ivar knows_address: it is known where it comes from.
    @ivar knows_client: it is known which certificate it comes with.
    @ivar signed: the headers that it is signed with for the trial, in lower case.
    """

    head: Head
    body: bytes
    at: int | None = None
    knows_address: bool = True
    knows_client: bool = True
    signed: frozenset[bytes] = frozenset()


class TrialSource(msgspec.Struct, frozen=True):
    """
    A source that takes the path of a request.

    @ivar guard_at: makes its guard, with a wall clock.
    @ivar judge: makes a message of a request to it.
    @ivar by_path: see L{webhookrx.intake.judge.admission_of_path}.
    @ivar pattern: the one of its path patterns that matches.
    @ivar limits: those of the service.
    @ivar has_options: it has options of a guard, so that messages say where they come from.
    @ivar unknown_lists: the lists of networks that it names and nobody knows here.
    """

    guard_at: Callable[[Callable[[], int]], Guard]
    judge: Judge
    by_path: Admission | Refused
    pattern: str
    limits: Limits
    has_options: bool
    unknown_lists: tuple[str, ...] = ()


class Trial(msgspec.Struct):
    """
    What has become of a request.

    @ivar at: when it was taken to have come, in nanoseconds since the epoch.
    @ivar is_signed_time: that is when it was signed.
    @ivar fate: L{STORED}, L{HANDSHAKE}, L{REFUSED} or L{DROPPED}; L{NOT_JUDGED} if a recording does not tell.
    @ivar refused: why it is refused, or can't be judged; None if it is not.
    @ivar question: the kind of the question that it is; empty if it is none.
    @ivar answer: all bytes of the answer.
    @ivar signed_at: when it was signed, if a signature says so and is genuine.
    @ivar messages: as they would be stored.
    """

    at: int
    is_signed_time: bool = False
    verdicts: list[DecisionVerdict] = msgspec.field(default_factory=list)
    fate: str = NOT_JUDGED
    refused: Refused | None = None
    question: str = ""
    status: int = 0
    answer: bytes = b""
    signed_at: int | None = None
    messages: list[Message] = msgspec.field(default_factory=list)


def run_trial(source: TrialSource, request: TrialRequest, now: Callable[[], int] = time.time_ns) -> Trial:
    """
    Take a request through all decisions of a source.

    @param now: nanoseconds since the epoch, for a request that does not say when it was signed.
    """
    trial = _Walk(source, request, now() if request.at is None else request.at).trial()
    # The age of a stale signature tells its time to some nanoseconds, and the second walk tells it exactly.
    while request.at is None and trial.signed_at is not None and trial.at != trial.signed_at:
        trial = _Walk(source, request, trial.signed_at).trial()
        trial.is_signed_time = True
    return trial


class _Walk:
    """
    One walk through all decisions.

    @param at: nanoseconds since the epoch.
    """

    def __init__(self, source: TrialSource, request: TrialRequest, at: int) -> None:
        self._source = source
        self._request = request
        self._guard = source.guard_at(lambda: at)
        self._trial = Trial(at)
        self._has_body = False
        self._has_masked_secret = False
        self._passage = Passage(request.head, source.by_path, len(request.body))

    def trial(self) -> Trial:
        """Return what becomes of the request."""
        passage, guard = self._passage, self._guard
        if self._fits():
            self._note("path", PASSES, self._source.pattern)
            if self._takes(guard.on_head) and self._is_short_enough():
                passage.body = self._request.body
                self._has_body = True
                if self._takes(guard.on_body) and self._takes_delivery() and self._takes(guard.on_storing):
                    self._judge()
        return self._trial

    def _note(self, decision: str, verdict: str, reason: str) -> None:
        self._trial.verdicts.append(DecisionVerdict(decision, verdict, reason))

    def _takes(self, decisions: tuple[tuple[str, Callable[[Passage], Ending | None]], ...]) -> bool:
        """Take decisions; return whether the request goes on after them."""
        for name, decide in decisions:
            unknown = self._unknown(name)
            if unknown:
                self._note(name, NOT_JUDGED, unknown)
                continue
            ending = decide(self._passage)
            self._see_time()
            if ending is None:
                # What the head shows of a secret is judged once.
                is_told = name == "signature" and self._has_masked_secret
                reason = "" if is_told else why(name, self._guard, self._passage)
                if reason:
                    self._note(name, PASSES, reason)
            elif not self._is_masked(name, ending):
                self._end(name, ending)
                return False
        return True

    def _unknown(self, name: str) -> str:
        """Return why a decision can't be taken; empty if it can."""
        request, source = self._request, self._source
        if name == "address":
            ip = source_ip(request.head, self._guard.rules)
            if not request.knows_address and ip == request.head.peer.ip:
                return "give --peer to say where it comes from"
            allow = self._guard.parts.allow
            if source.unknown_lists and allow is not None and not allow.allows(ip):
                return f"what is in {', '.join(source.unknown_lists)} is in the configuration of the router"
        if name == "client" and not request.knows_client:
            return "give --client-cert to say which certificate it comes with"
        return ""

    def _is_masked(self, name: str, ending: Ending) -> bool:
        """Note, and return, whether only the mask of a recording is refused."""
        if name not in ("token", "secret", "signature") or isinstance(ending, HandshakeAnswer):
            return False
        if not is_masked(name, self._guard, self._passage):
            return False
        self._note(name, NOT_JUDGED, MASKED)
        self._has_masked_secret |= name == "secret"
        return True

    def _see_time(self) -> None:
        """Remember when the request was signed, once that is known."""
        verified, unverified = self._passage.verified, self._passage.unverified
        if verified is not None:
            self._trial.signed_at = verified.signed_at
        elif unverified is not None and unverified.reason is STALE_SIGNATURE and unverified.skew is not None:
            self._trial.signed_at = self._trial.at - round(unverified.skew * _NANOSECONDS)

    def _fits(self) -> bool:
        """Decide on the sizes of a head, as far as a recording has them."""
        head, limits = self._request.head, self._source.limits
        target = len(head.path) + (len(head.query) + 1 if head.query else 0)
        lines = [len(name) + len(value) + len(": \r\n") for name, value in head.headers]
        reason = None
        if target > limits.target:
            reason = TARGET_TOO_LONG
        elif len(lines) > limits.headers or target + sum(lines) > limits.header_block:
            reason = HEADERS_TOO_LARGE
        if reason is not None:
            self._end("sizes", Refused(reason, reason.detail))
            return False
        self._note("sizes", PASSES, f"a target of {target:,} bytes, {counted(len(lines), 'header')}")
        return True

    def _is_short_enough(self) -> bool:
        size, most = len(self._request.body), self._guard.rules.body_limit
        if size > most:
            self._end("length", Refused(BODY_TOO_LARGE, BODY_TOO_LARGE.detail, self._guard.rules.name))
            return False
        self._note("length", PASSES, f"{counted(size, 'byte')} of at most {most:,}")
        return True

    def _takes_delivery(self) -> bool:
        """Note that deliveries are remembered: they are not looked up, which would open their file."""
        if self._passage.key:
            known = f"whether {quoted(self._passage.delivery_id)} was stored before is not looked up"
            self._note("idempotency", NOT_JUDGED, known)
        return True

    def _end(self, name: str, ending: Ending) -> None:
        """Note what ends the way of the request."""
        trial = self._trial
        if isinstance(ending, HandshakeAnswer):
            self._note(name, ANSWERS, f"the question {ending.kind}")
            trial.fate, trial.question = HANDSHAKE, ending.kind
            self._answer(answer_to_question(ending.reply))
            return
        said = ending if name in EARLY else self._guard.in_sender_words(ending, self._request.head)
        assert isinstance(said, Refused), "a refusal stays one"
        lacks = lack_of_recording(name, self._guard, self._request.head, ending)
        self._note(name, NOT_JUDGED if lacks else REFUSES, lacks or why_not(name, self._guard, self._passage, ending))
        trial.fate = NOT_JUDGED if lacks else REFUSED
        trial.refused = ending
        self._answer(refusal_to(said))

    def _answer(self, answer: FixedAnswer) -> None:
        writer = AnswerWriter()
        writer.at(self._trial.at / _NANOSECONDS)
        head = self._request.head
        # What is answered before a large body is read is the last answer of its connection.
        closes = not self._has_body and len(self._request.body) > DISCARDED_BODY
        closes = closes or any(b"close" in value.lower() for value in head.values(b"connection"))
        connection = CLOSE if closes else KEEP
        written = writer.bytes_of(answer, connection + OVER_TLS if head.peer.secure else connection)
        self._trial.status = answer.status
        self._trial.answer = written[: len(written) - len(answer.body)] if head.method == b"HEAD" else written

    def _judge(self) -> None:
        """Make messages of the request."""
        passage, guard, trial = self._passage, self._guard, self._trial
        assert passage.admission is not None, "its head was admitted"
        admission = passage.admission
        if self._source.has_options:
            admission = msgspec.structs.replace(admission, provenance=guard.provenance(passage))
        receipt = Receipt(trial.at, "try")
        head = passage.head
        if passage.bundle is not None:
            events = BundleJudge(guard.rules, self._source.judge)
            judged = events.judge(passage.bundle, head, admission, receipt, encode_line, by_lines=False)
            if isinstance(judged, Refused):
                self._end("payload", judged)
                return
            trial.messages = judged.messages
            notes = tuple(judged.notes)
        else:
            verdict = self._source.judge(head, admission, passage.body, receipt)
            if isinstance(verdict, Refused):
                self._end("payload", verdict)
                return
            trial.messages = [verdict.message] if isinstance(verdict, Accepted) else []
            notes = verdict.notes if isinstance(verdict, Accepted) else ()
        self._note("payload", PASSES, ", ".join(note.replace("_", " ") for note in notes) or "it can be read")
        is_empty = passage.bundle is not None and not passage.bundle.events
        trial.fate = STORED if trial.messages or is_empty else DROPPED
        self._answer(RECEIVED if passage.reply is None else answer_of(passage.reply))
