"""
The guard of a source: decides who may send to it, and what its sender asks for, one decision after the other.

A source has only those decisions that it is configured for:

  - L{Guard.on_head}, before its body is read: C{address}, C{client}, C{method}, C{token}, C{secret}, C{quota},
    C{handshake}, C{values}
  - L{Guard.on_body}: C{question}, C{signature}, C{mask}, C{signed_question}, C{delivery}; then the delivery is looked
    up in the idempotency window, which is not for the guard to do
  - L{Guard.on_storing}: C{answer}, C{split}

Each takes a L{Passage} and returns what ends it: a refusal, or the answer to a question; or None, and the next one has
its turn. No Twisted, no file; the clocks are given.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Final, TypeAlias

import msgspec

from webhookrx.errors import (
    ADDRESS_NOT_ALLOWED,
    BAD_TOKEN,
    CLIENT_NOT_ALLOWED,
    METHOD_NOT_ALLOWED,
    Reason,
    RequestRefused,
)
from webhookrx.guard.delivery_key import delivery_key, signs_id
from webhookrx.guard.parts import GuardParts
from webhookrx.guard.passage import NO_QUERY, Ending, Passage, query_of
from webhookrx.guard.quota_check import QuotaCheck
from webhookrx.guard.signature_check import SignatureCheck, digest_cost, takes_long
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Admission, Refused, SourceRules, admit_by_path, source_ip
from webhookrx.intake.provenance import BY_SIGNATURE, MAX_TEXT, Provenance
from webhookrx.senders.classifier import attempt_number, delivery_text
from webhookrx.senders.handshakes import LARGEST_QUESTION, AnswerFailed, HandshakeAnswer
from webhookrx.senders.signatures.body_mask import mask_for
from webhookrx.senders.signatures.outcome import Verified
from webhookrx.yield_point import run_unlocked

Decision: TypeAlias = Callable[[Passage], Ending | None]
Decisions: TypeAlias = tuple[tuple[str, Decision], ...]

EARLY: Final = ("address", "client", "method")
"""Decisions whose refusals cost no more than a look-up, and so have our own words."""


class Guard:
    """
    The guard of one source.

    @param rules: those of the source, without tokens.
    @param wall_clock: nanoseconds since the epoch.
    @param clock: seconds on the monotonic clock.
    @ivar signatures: checks signatures and secrets that heads show; None where nothing is verified.
    @ivar quotas: checks the quota; None without one.
    @ivar secrets: the names of all secrets that may prove a request.
    @ivar tokens: those of all tokens.
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
        self.signatures = self.quotas = None
        if parts.verifier is not None:
            mask = None if parts.sender is None else mask_for(parts.sender.definition.schemes)
            self.signatures = SignatureCheck(
                rules.name, parts.verifier, parts.secrets, parts.must_verify, wall_clock, mask
            )
        if parts.quota is not None:
            assert parts.buckets is not None, "a quota has buckets"
            self.quotas = QuotaCheck(rules, parts.quota, parts.buckets, clock)
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
        self._signs_id = sender is not None and signs_id(sender, parts.verifier)
        asks_unsigned = handshakes is not None and handshakes.asks_unsigned
        asks_signed = handshakes is not None and handshakes.asks_signed
        answers = parts.answers is not None and parts.answers.asks_bodies
        attempt = None if sender is None else sender.attempt
        inside = sender is not None and (
            sender.delivery_is_inside or (attempt is not None and attempt.root is not None)
        )
        self._has_attempt = attempt is not None
        verifier, tokens, signatures, quotas = parts.verifier, parts.tokens, self.signatures, self.quotas
        masks = signatures is not None and signatures.body_mask is not None
        self.reads_bodies = bool(asks_unsigned or asks_signed or inside or answers or parts.splitter or masks)
        self.on_head = _configured(
            ("address", self.address if parts.allow else None),
            ("client", self.client if parts.clients else None),
            ("method", self.method),
            ("token", self.token if parts.tokens else None),
            ("secret", signatures.secret if signatures and signatures.shows_secret else None),
            ("quota", quotas.quota if quotas else None),
            ("handshake", self.handshake if handshakes else None),
            ("values", self.values),
        )
        # The method of nearly all, and what is not asked of it.
        self._on_post = tuple(each for each in self.on_head if each[0] != "method")
        self.on_body = _configured(
            ("question", self.question if asks_unsigned else None),
            ("signature", signatures.signature if signatures else None),
            ("mask", signatures.mask if signatures and masks else None),
            ("signed_question", self.signed_question if asks_signed else None),
            ("delivery", self.delivery if sender is not None and sender.deliveries else None),
        )
        self.on_storing = _configured(
            ("answer", self.answer if parts.answers else None), ("split", self.split if parts.splitter else None)
        )
        self.secrets = () if verifier is None else tuple(dict.fromkeys(verifier.names))
        self.tokens = () if tokens is None else tuple(dict.fromkeys(tokens.names))
        self.kinds = () if handshakes is None else handshakes.kinds
        self.says_when = verifier is not None and verifier.says_when
        header_names = (self._delivery_header, *(verifier.header_names if verifier is not None else ()))
        self.header_names = tuple(dict.fromkeys(filter(None, header_names)))

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
        return (verifies or remembers) and takes_long(size, self.parts.secrets)

    def in_sender_words(self, ending: Ending, head: Head) -> Ending:
        """Return a refusal as the sender wants to hear it."""
        answers = self.parts.answers
        if answers is None or isinstance(ending, HandshakeAnswer):
            return ending
        query = query_of(head, self.rules.name)
        if isinstance(query, Refused):
            query = NO_QUERY
        reply = answers.refused(head, query, ending.reason, ending.detail, self._wall_clock())
        return ending if reply is None else msgspec.structs.replace(ending, reply=reply)

    def _refused(self, reason: Reason, detail: str = "") -> Refused:
        return Refused(reason, detail or reason.detail, self.rules.name)

    # -- on the head ---------------------------------------------------------------------------------------------

    def address(self, passage: Passage) -> Refused | None:
        """Decide on the network that a request comes from."""
        assert self.parts.allow is not None
        if self.parts.allow.allows(source_ip(passage.head, self.rules)):
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
        if name is not None:
            passage.token = name
        elif self._needs_token(passage.head):
            return self._refused(BAD_TOKEN, self.parts.tokens.place.refusal)
        return None

    def _needs_token(self, head: Head) -> bool:
        """Tell whether a request needs a token: all but a question that is answered to anyone."""
        handshakes = self.parts.handshakes
        if handshakes is None or head.method == b"POST":
            return True
        query = query_of(head, self.rules.name)
        return isinstance(query, Refused) or handshakes.needs_token(head, query)

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

    def handshake(self, passage: Passage) -> Ending | None:
        """Answer a question that its head alone tells."""
        assert self.parts.handshakes is not None
        query = query_of(passage.head, self.rules.name)
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
        return self._asked(passage, handshakes.before_signature(passage.evidence(), self._clock()))

    def signed_question(self, passage: Passage) -> Ending | None:
        """Answer a question that must be signed."""
        handshakes = self.parts.handshakes
        assert handshakes is not None
        if passage.question is not None or len(passage.body) > LARGEST_QUESTION:
            return None
        secret = None if passage.verified is None else passage.verified.secret
        return self._asked(passage, handshakes.after_signature(passage.evidence(), secret, self._clock()))

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
            passage.delivery_id = delivery_text(sender, passage.evidence())
        if self.parts.window is None or not passage.delivery_id:
            return
        proof, digest = passage.proof, b""
        if proof != BY_SIGNATURE or not self._signs_id:
            digest = run_unlocked(digest_cost(len(passage.body)), sha256, passage.body).digest()
        passage.key = delivery_key(self.rules.name, passage.delivery_id, proof, digest)

    # -- on storing ----------------------------------------------------------------------------------------------

    def answer(self, passage: Passage) -> Refused | None:
        """Make the answer that its sender wants once it is stored."""
        assert self.parts.answers is not None
        if passage.reply is not None:
            return None
        answers = self.parts.answers
        evidence = passage.evidence() if answers.asks_bodies else passage.evidence_of_head()
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
        if self.quotas is not None and events > 1:
            self.quotas.charge_for_events(passage, events - 1)
        return None

    # -- what is known -------------------------------------------------------------------------------------------

    def provenance(self, passage: Passage) -> Provenance:
        """Return what is known of the sender, once the decisions on the body are taken."""
        verified, secret, signed_at = passage.verified, "", None
        if verified is not None:
            secret, signed_at = verified.secret, verified.signed_at
        attempt = ""
        if self._has_attempt:
            assert self.parts.sender is not None
            attempt = attempt_number(self.parts.sender, passage.evidence())
        delivery = passage.delivery_id
        if len(delivery) > MAX_TEXT:
            delivery = delivery[:MAX_TEXT].rstrip()
        return Provenance(self._sender, passage.proof, secret, passage.token, delivery, attempt, signed_at)


def _configured(*decisions: tuple[str, Decision | None]) -> Decisions:
    """Return those decisions that are there."""
    return tuple((name, decide) for name, decide in decisions if decide is not None)
