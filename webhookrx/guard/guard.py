"""
The guard of a source: decides who may send to it, and what its sender asks for, one decision after the other.

A source has only those decisions that it is configured for:

  - L{Guard.on_head}, before its body is read: C{address}, C{client}, C{method}, C{token}, C{secret}, C{quota},
    C{handshake}, C{values}
  - L{Guard.on_body}: C{question}, C{signature}, C{signed_question}, C{delivery}; then the delivery is looked up in the
    idempotency window, which is not for the guard to do
  - L{Guard.on_storing}: C{answer}, C{split}

Each takes a L{Passage} and returns what ends it: a refusal, or the answer to a question; or None, and the next one has
its turn. No Twisted, no file; the clocks are given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Final, TypeAlias

import msgspec

from webhookrx.errors import (
    ADDRESS_NOT_ALLOWED,
    BAD_TOKEN,
    CLIENT_NOT_ALLOWED,
    METHOD_NOT_ALLOWED,
    OVER_QUOTA,
    Reason,
    RequestRefused,
)
from webhookrx.guard.delivery_key import delivery_key
from webhookrx.guard.passage import Passage
from webhookrx.guard.quota import Buckets, SourceQuota, retry_after
from webhookrx.intake.client_address import from_proxy_header
from webhookrx.intake.client_patterns import ClientPatterns
from webhookrx.intake.head import Head
from webhookrx.intake.json_body import json_or_missing
from webhookrx.intake.judge import Admission, Refused, SourceRules, admit_by_path
from webhookrx.intake.networks import AllowList
from webhookrx.intake.provenance import BY_CLIENT, BY_SIGNATURE, BY_TOKEN, MAX_TEXT, NOT_VERIFIED, Provenance
from webhookrx.intake.tokens import TokenCheck
from webhookrx.intake.urlencoded import remembered_query
from webhookrx.message.fields import MISSING
from webhookrx.senders.classifier import attempt_number, delivery_text
from webhookrx.senders.compiled import CompiledSender
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.handshakes import LARGEST_QUESTION, AnswerFailed, HandshakeAnswer, Handshakes, SenderAnswers
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.verification import Verification
from webhookrx.senders.signatures.verifier import Verifier
from webhookrx.senders.splitting import Splitter
from webhookrx.yield_point import LONG_CALL, run_unlocked

Ending: TypeAlias = Refused | HandshakeAnswer
Decision: TypeAlias = Callable[[Passage], Ending | None]
Decisions: TypeAlias = tuple[tuple[str, Decision], ...]

EARLY: Final = ("address", "client", "method")
"""Decisions whose refusals cost no more than a look-up, and so have our own words."""

#: Bytes of a body that all secrets of a source are tried on at once, without a look at the time.
_SOME: Final = 8 * 1024

#: How many times as long a digest takes as what L{LONG_CALL} is meant for.
_DIGEST: Final = 4

MOST_AS_IT_COMES: Final = 8
"""Secrets that a body is tried on as it comes, 64 KiB at a time; with more of them that is done when it is there."""

#: A place that is one header.
_HEADER: Final = re.compile(r"header:([A-Za-z0-9_-]+)(?![A-Za-z0-9_*-])")
_NO_QUERY: Final[dict[str, str | list[str]]] = {}


class GuardParts(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a source is guarded with, each None where it is not configured.

    @ivar allow: the networks that requests may come from.
    @ivar clients: the clients that they may come from.
    @ivar tokens: one of which each has to show.
    @ivar sender: the one kind of sender that it hears.
    @ivar verifier: checks signatures.
    @ivar secrets: by how many secrets, each of which takes its own time.
    @ivar must_verify: what is not verified is refused; else messages say so.
    @ivar quota: how much may come.
    @ivar buckets: those of all quotas; needed for one.
    @ivar handshakes: the sender's questions.
    @ivar answers: the answers that the sender wants.
    @ivar window: seconds for which deliveries are remembered.
    @ivar splitter: takes batches apart.
    @ivar stored: is told the body of each verified request once its message is stored and answered.
    """

    allow: AllowList | None = None
    clients: ClientPatterns | None = None
    tokens: TokenCheck | None = None
    sender: CompiledSender | None = None
    verifier: Verifier | None = None
    secrets: int = 1
    must_verify: bool = True
    quota: SourceQuota | None = None
    buckets: Buckets | None = None
    handshakes: Handshakes | None = None
    answers: SenderAnswers | None = None
    window: float | None = None
    splitter: Splitter | None = None
    stored: Callable[[bytes], None] | None = None


class Guard:
    """
    The guard of one source.

    @param rules: those of the source, without tokens.
    @param wall_clock: nanoseconds since the epoch.
    @param clock: seconds on the monotonic clock.
    @ivar secrets: the names of all secrets and tokens that may prove a request.
    @ivar kinds: what questions are called.
    @ivar header_names: names of headers that it asks for at each request, in lower case.
    @ivar says_when: signatures say when they were made.
    @ivar reads_bodies: some decision looks into bodies, and not only at their bytes.
    @ivar on_head: the decisions on a head, by name.
    @ivar on_body: those on a body, by name.
    @ivar on_storing: those on a message that is not known yet, by name.
    """

    def __init__(
        self, rules: SourceRules, parts: GuardParts, wall_clock: Callable[[], int], clock: Callable[[], float]
    ) -> None:
        self.rules = rules
        self.parts = parts
        self._wall_clock = wall_clock
        self._clock = clock
        self._check_body = None if parts.verifier is None else parts.verifier.check_body
        self._must_verify = parts.verifier is not None and parts.must_verify
        place = None if parts.tokens is None else parts.tokens.place
        # Where it would become a value of messages.
        self._token_place = place if place is not None and place.kind in ("query", "path") else None
        sender, handshakes = parts.sender, parts.handshakes
        # Nor is what proves the sender a value of messages, whether it is looked at or not.
        schemes = () if sender is None else sender.definition.schemes
        places = [place for scheme in schemes for place in scheme.places]
        self._proofs_in_query = frozenset(
            place.removeprefix("query:") for place in places if place.startswith("query:")
        )
        self._sender = "" if sender is None else sender.id
        self._delivery_header = b"" if sender is None or not sender.deliveries else sender.deliveries[0].header
        self._signs_id = sender is not None and _signs_id(sender, parts.verifier)
        asks_unsigned = handshakes is not None and handshakes.asks_unsigned
        asks_signed = handshakes is not None and handshakes.asks_signed
        answers = parts.answers is not None and parts.answers.asks_bodies
        attempt = None if sender is None else sender.attempt
        inside = sender is not None and (
            sender.delivery_is_inside or (attempt is not None and attempt.root is not None)
        )
        self._has_attempt = attempt is not None
        self.reads_bodies = bool(asks_unsigned or asks_signed or inside or answers or parts.splitter)
        self.on_head = _configured(
            ("address", parts.allow, self.address),
            ("client", parts.clients, self.client),
            ("method", True, self.method),
            ("token", parts.tokens, self.token),
            ("secret", parts.verifier is not None and parts.verifier.shows_secret, self.secret),
            ("quota", parts.quota, self.quota),
            ("handshake", handshakes, self.handshake),
            ("values", True, self.values),
        )
        # The method of nearly all, and what is not asked of it.
        self._on_post = tuple(each for each in self.on_head if each[0] != "method")
        self.on_body = _configured(
            ("question", asks_unsigned, self.question),
            ("signature", parts.verifier, self.signature),
            ("signed_question", asks_signed, self.signed_question),
            ("delivery", sender is not None and sender.deliveries, self.delivery),
        )
        verifier, tokens = parts.verifier, parts.tokens
        secrets = dict.fromkeys((*(verifier.names if verifier else ()), *(tokens.names if tokens else ())))
        self.secrets = tuple(secrets)
        self.kinds = () if handshakes is None else handshakes.kinds
        self.says_when = verifier is not None and any(way.scheme.moment is not None for way in verifier.ways)
        self.header_names = self._header_names()
        self.on_storing = _configured(("answer", parts.answers, self.answer), ("split", parts.splitter, self.split))

    def _header_names(self) -> tuple[bytes, ...]:
        """Return the names of headers that it asks for at each request."""
        names = [self._delivery_header]
        for way in self.parts.verifier.ways if self.parts.verifier is not None else ():
            scheme = way.scheme.scheme
            texts = (*scheme.places, scheme.signed, scheme.time.at if scheme.time is not None else "")
            names += (name.lower().encode() for text in texts for name in _HEADER.findall(text))
        return tuple(dict.fromkeys(filter(None, names)))

    @property
    def needs_no_head(self) -> bool:
        """
        Whether nothing but the path and the method of a request is decided on before its body is there, and nothing but
        a signature of the body alone and a delivery after that, both of them in headers.
        """
        names = [name for name, _ in self.on_head], [name for name, _ in self.on_body]
        return (
            self._check_body is not None
            and names == (["method", "values"], ["signature", "delivery"])
            and bool(self._delivery_header)
            and not (self._has_attempt or self.on_storing or self.parts.window)
        )

    def admit(self, passage: Passage) -> Ending | None:
        """
        Take all decisions on a head.

        @return: None for a request whose body is to be read.
        """
        for name, decide in self._on_post if passage.head.method == b"POST" else self.on_head:
            ending = decide(passage)
            if ending is not None:
                return ending if name in EARLY else self.in_sender_words(ending, passage.head)
        return None

    def judge(self, passage: Passage) -> Ending | None:
        """
        Take all decisions on a body, with yield points; those before its delivery is looked up.

        @return: None for one to go on with.
        """
        for _, decide in self.on_body:
            ending = decide(passage)
            if ending is not None:
                return ending
        return None

    def prepare(self, passage: Passage) -> Ending | None:
        """Take all decisions on a message that is not known yet, with yield points; likewise."""
        for _, decide in self.on_storing:
            ending = decide(passage)
            if ending is not None:
                return ending
        return None

    def is_long(self, size: int) -> bool:
        """Tell whether it takes more than a moment to verify a body of so many bytes, or to tell it from others."""
        verifies, remembers = self.parts.verifier is not None, self.parts.window is not None
        return (verifies or remembers) and _DIGEST * size * self.parts.secrets > LONG_CALL

    def in_sender_words(self, ending: Ending, head: Head) -> Ending:
        """Return a refusal as the sender wants to hear it."""
        answers = self.parts.answers
        if answers is None or isinstance(ending, HandshakeAnswer):
            return ending
        query = self._query(head)
        if isinstance(query, Refused):
            query = _NO_QUERY
        reply = answers.refused(head, query, ending.reason, ending.detail, self._wall_clock())
        return ending if reply is None else msgspec.structs.replace(ending, reply=reply)

    def _refused(self, reason: Reason, detail: str = "") -> Refused:
        return Refused(reason, detail or reason.detail, self.rules.name)

    def _query(self, head: Head) -> dict[str, str | list[str]] | Refused:
        if not head.query:
            return _NO_QUERY
        try:
            return remembered_query(head.query)
        except RequestRefused as refused:
            return self._refused(refused.reason, refused.detail)

    # -- on the head ---------------------------------------------------------------------------------------------

    def source_ip(self, head: Head) -> str:
        """Return the address that C{SOURCEIP} is to show."""
        proxy_header = self.rules.proxy_header
        if proxy_header is not None:
            claimed = from_proxy_header(head.values(proxy_header))
            if claimed is not None:
                return claimed.ip
        return head.peer.ip

    def address(self, passage: Passage) -> Refused | None:
        """Decide on the network that a request comes from."""
        assert self.parts.allow is not None
        if self.parts.allow.allows(self.source_ip(passage.head)):
            return None
        return self._refused(ADDRESS_NOT_ALLOWED)

    def client(self, passage: Passage) -> Refused | None:
        """Decide on the certificate that its connection has shown."""
        assert self.parts.clients is not None
        pattern = self.parts.clients.match(passage.head.peer.client)
        if pattern is None:
            return self._refused(CLIENT_NOT_ALLOWED)
        passage.client = pattern
        return None

    def method(self, passage: Passage) -> Refused | None:
        """Decide on its method: messages are sent with POST, questions may be asked with others."""
        head, handshakes = passage.head, self.parts.handshakes
        if head.method == b"POST":
            return None
        if handshakes is None:
            return self._refused(METHOD_NOT_ALLOWED)
        if handshakes.takes(head):
            return None
        return Refused(METHOD_NOT_ALLOWED, METHOD_NOT_ALLOWED.detail, self.rules.name, allow=handshakes.allow(head))

    def token(self, passage: Passage) -> Refused | None:
        """Decide on the token that it shows."""
        assert self.parts.tokens is not None
        by_path = passage.by_path
        name = self.parts.tokens.check(passage.head, by_path.groups if type(by_path) is Admission else {})
        if name is None:
            return self._refused(BAD_TOKEN, self.parts.tokens.place.refusal)
        passage.token = name
        return None

    def secret(self, passage: Passage) -> Refused | None:
        """
        Decide on a secret itself that its head has to show. What is no POST is a question by its head alone, which
        shows none.
        """
        if passage.head.method != b"POST":
            return None
        verification = self.begin(passage)
        if isinstance(verification, Refused):
            return verification
        unverified = verification.before_body()
        return None if unverified is None else self._not_verified(passage, unverified)

    def proved(self, head: Head, body: bytes) -> Provenance | None:
        """
        Decide on a request with a short body at once, where L{needs_no_head}: what all decisions come to for a usual
        one.

        @return: None for one on which all decisions are to be taken, one by one.
        """
        assert self._check_body is not None
        outcome = self._check_body(head, body)
        if type(outcome) is not Verified:
            return None
        values = head.values(self._delivery_header)
        if len(values) != 1 or len(values[0]) > MAX_TEXT or not values[0].replace(b"-", b"").isalnum():
            return None
        return Provenance(self._sender, outcome.kind, outcome.secret, "", values[0].decode())

    def begin(self, passage: Passage) -> Verification | Refused:
        """Begin to verify a request before its body is there; the source verifies requests."""
        verifier, verification = self.parts.verifier, passage.verification
        assert verifier is not None
        if verification is None:
            query = self._query(passage.head)
            if isinstance(query, Refused):
                return query
            verification = passage.verification = verifier.begin(passage.head, query)
        return verification

    def quota(self, passage: Passage) -> Refused | None:
        """Decide whether there is room for it in its quota: for one message, and its body if its size is known."""
        return self._charge(passage, 1, passage.size or 0)

    def more(self, passage: Passage, size: int) -> Refused | None:
        """
        Decide whether there is room for more of its body in its quota.

        @param size: bytes of it that have come, all in all.
        """
        if self.parts.quota is None or size <= passage.charged:
            return None
        return self._charge(passage, 0, size - passage.charged)

    def _charge(self, passage: Passage, messages: int, size: int) -> Refused | None:
        quota, buckets = self.parts.quota, self.parts.buckets
        assert quota is not None
        assert buckets is not None
        whose = quota.whose(passage.token, self.source_ip(passage.head))
        wait = buckets.take(quota, self.rules.name, whose, messages, size, self._clock(), passage.charged)
        if wait:
            return Refused(OVER_QUOTA, OVER_QUOTA.detail, self.rules.name, retry_after=retry_after(wait))
        passage.charged += size
        return None

    def handshake(self, passage: Passage) -> Ending | None:
        """Answer a question that its head alone tells."""
        assert self.parts.handshakes is not None
        query = self._query(passage.head)
        if isinstance(query, Refused):
            return query
        return self._asked(passage, self.parts.handshakes.by_head(passage.head, query, self._clock()))

    def _asked(self, passage: Passage, found: Ending | None) -> Ending | None:
        if (
            isinstance(found, HandshakeAnswer)
            and found.keep
            and (passage.verified is not None or not self._must_verify)
        ):
            passage.question = found
            passage.reply = found.reply
            return None
        return found

    def values(self, passage: Passage) -> Refused | None:
        """Decide on the encoding of its body, on captured text and on its query, and gather them."""
        admission = admit_by_path(passage.head, self.rules, passage.by_path)
        if type(admission) is Refused:
            return admission
        assert type(admission) is Admission
        if self._token_place is not None:
            groups = dict(self._token_place.groups_without(admission.groups))
            query = dict(self._token_place.query_without(admission.query))
            admission = Admission(self.rules, groups, query, admission.encodings)
        if not self._proofs_in_query.isdisjoint(admission.query):
            query = {name: value for name, value in admission.query.items() if name not in self._proofs_in_query}
            admission = Admission(self.rules, admission.groups, query, admission.encodings)
        passage.admission = admission
        return None

    # -- on the body ---------------------------------------------------------------------------------------------

    def question(self, passage: Passage) -> Ending | None:
        """Answer a question that is told by its body and need not be signed."""
        handshakes = self.parts.handshakes
        assert handshakes is not None
        if passage.question is not None or len(passage.body) > LARGEST_QUESTION:
            return None
        return self._asked(passage, handshakes.before_signature(self.evidence(passage), self._clock()))

    def signature(self, passage: Passage) -> Refused | None:
        """Verify it."""
        if passage.unverified is not None:
            return None
        verification, body = passage.verification, passage.body
        if verification is None and len(body) <= _SOME:
            assert self.parts.verifier is not None
            head = passage.head
            query = self._query(head) if head.query else _NO_QUERY
            if isinstance(query, Refused):
                return query
            outcome = self.parts.verifier.check(head, query, body, self._wall_clock(), passage.wire)
        else:
            begun = self.begin(passage)
            if isinstance(begun, Refused):
                return begun
            if len(body) > _SOME and not passage.is_hashed and begun.takes_pieces:
                run_unlocked(_DIGEST * len(body) * self.parts.secrets, begun.update, body)
            outcome = begun.finish(body, self._wall_clock(), passage.wire)
        if type(outcome) is Verified:
            passage.verified = outcome
            return None
        assert type(outcome) is Unverified
        return self._not_verified(passage, outcome)

    def _not_verified(self, passage: Passage, unverified: Unverified) -> Refused | None:
        passage.unverified = unverified
        if self._must_verify:
            return self._refused(unverified.reason, unverified.detail)
        return None

    def signed_question(self, passage: Passage) -> Ending | None:
        """Answer a question that must be signed."""
        handshakes = self.parts.handshakes
        assert handshakes is not None
        if passage.question is not None or len(passage.body) > LARGEST_QUESTION:
            return None
        secret = None if passage.verified is None else passage.verified.secret
        return self._asked(passage, handshakes.after_signature(self.evidence(passage), secret, self._clock()))

    def delivery(self, passage: Passage) -> None:
        """Find out which delivery it is."""
        sender = self.parts.sender
        assert sender is not None
        header = self._delivery_header
        # Most senders have a header for it, which is there, and is plain ASCII.
        values = passage.head.values(header) if header else None
        if values and values[0].replace(b"-", b"").isalnum():
            passage.delivery_id = values[0].decode()
        else:
            passage.delivery_id = delivery_text(sender, self.evidence(passage))
        if self.parts.window is None or not passage.delivery_id:
            return
        proof, digest = self._how_verified(passage), b""
        if proof != BY_SIGNATURE or not self._signs_id:
            digest = run_unlocked(_DIGEST * len(passage.body), sha256, passage.body).digest()
        passage.key = delivery_key(self.rules.name, passage.delivery_id, proof, digest)

    # -- on storing ----------------------------------------------------------------------------------------------

    def answer(self, passage: Passage) -> Refused | None:
        """Make the answer that its sender wants once it is stored."""
        assert self.parts.answers is not None
        if passage.reply is not None:
            return None
        answers = self.parts.answers
        evidence = self.evidence(passage) if answers.asks_bodies else _of_head(passage)
        try:
            passage.reply = answers.stored(evidence, self._wall_clock())
        except AnswerFailed as failed:
            return self._refused(failed.reason, str(failed))
        return None

    def split(self, passage: Passage) -> Refused | None:
        """Take its body apart, unless it is a question."""
        assert self.parts.splitter is not None
        if passage.question is not None:
            return None
        values = passage.head.values(b"content-type")
        media_type = values[0].partition(b";")[0].strip().lower().decode("latin-1") if values else ""
        try:
            bundle = self.parts.splitter.split(passage.body, media_type)
        except RequestRefused as refused:
            return self._refused(refused.reason, refused.detail)
        passage.bundle = bundle
        events = 1 if bundle is None else len(bundle.events)
        if self.parts.quota is not None and events > 1:
            self._charge_for_events(self.parts.quota, passage, events - 1)
        return None

    def _charge_for_events(self, quota: SourceQuota, passage: Passage, more: int) -> None:
        """Charge its quota for events beyond the first: how many there are nobody could tell when it was admitted."""
        buckets = self.parts.buckets
        assert buckets is not None
        whose = quota.whose(passage.token, self.source_ip(passage.head))
        buckets.charge(quota, self.rules.name, whose, more, 0, self._clock())

    # -- what is known -------------------------------------------------------------------------------------------

    def evidence(self, passage: Passage) -> Evidence:
        """Return what places are looked up in, made once."""
        if passage.evidence is None:
            assert passage.admission is not None
            body = passage.body
            passage.evidence = Evidence(passage.head, passage.admission.query, body, None, json_or_missing(body))
        return passage.evidence

    def _how_verified(self, passage: Passage) -> str:
        """Return the strongest proof of a request."""
        if passage.verified is not None:
            return passage.verified.kind
        if passage.token:
            return BY_TOKEN
        return NOT_VERIFIED if passage.head.peer.client is None else BY_CLIENT

    def provenance(self, passage: Passage) -> Provenance:
        """Return what is known of the sender, once the decisions on the body are taken."""
        verified, secret, signed_at = passage.verified, "", None
        if verified is not None:
            secret, signed_at = verified.secret, verified.signed_at
        attempt = ""
        if self._has_attempt:
            assert self.parts.sender is not None
            attempt = attempt_number(self.parts.sender, self.evidence(passage))
        delivery = passage.delivery_id
        if len(delivery) > MAX_TEXT:
            delivery = delivery[:MAX_TEXT].rstrip()
        return Provenance(
            self._sender, self._how_verified(passage), secret, passage.token, delivery, attempt, signed_at
        )


def _configured(*decisions: tuple[str, object, Decision]) -> Decisions:
    """Return those decisions whose part is there."""
    found: Iterable[tuple[str, object, Decision]] = decisions
    return tuple((name, decide) for name, part, decide in found if part)


def _signs_id(sender: CompiledSender, verifier: Verifier | None) -> bool:
    """Tell whether the id of a delivery is one that its signature covers, whatever else a request has."""
    if verifier is None:
        return False
    for place in sender.deliveries:
        if not verifier.covers(place.text):
            return False
        if place.header:  # without which nothing verifies, so that no later place counts
            return True
    return True


def _of_head(passage: Passage) -> Evidence:
    """Return what places outside the body are looked up in."""
    assert passage.admission is not None, "its head was admitted"
    return Evidence(passage.head, passage.admission.query, b"", "", MISSING)
