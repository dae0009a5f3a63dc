"""
The guard of a source: decides who may send to it, and what its sender asks for, one decision after the other.

The decisions on the head are L{Guard.on_head}, in this order: C{address}, C{client}, C{method}, C{token}, C{secret},
C{values}. Those on the body are L{Guard.on_body}: C{signature}, C{delivery}, C{split}. A source has only those that it
is configured for. Each takes a L{Passage} and returns what ends it: a refusal; or None, and the next one has its turn.

Plain functions on plain values: no Twisted, no file; the clock is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from webhookrx.errors import (
    ADDRESS_NOT_ALLOWED,
    BAD_TOKEN,
    CLIENT_NOT_ALLOWED,
    METHOD_NOT_ALLOWED,
    Reason,
    RequestRefused,
)
from webhookrx.guard.passage import Passage
from webhookrx.intake.client_address import from_proxy_header
from webhookrx.intake.client_patterns import ClientPatterns
from webhookrx.intake.head import Head
from webhookrx.intake.json_body import json_or_missing
from webhookrx.intake.judge import Admission, Refused, SourceRules, admit_by_path
from webhookrx.intake.networks import AllowList
from webhookrx.intake.provenance import BY_CLIENT, BY_TOKEN, MAX_TEXT, NOT_VERIFIED, Provenance
from webhookrx.intake.tokens import TokenCheck
from webhookrx.intake.urlencoded import remembered_query
from webhookrx.senders.classifier import attempt_number, delivery_text
from webhookrx.senders.compiled import CompiledSender
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.signatures.outcome import Unverified
from webhookrx.senders.signatures.verifier import Verifier
from webhookrx.senders.splitting import Splitter

Decision: TypeAlias = Callable[[Passage], Refused | None]


class GuardParts(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a source is guarded with, each None where it is not configured.

    @ivar allow: the networks that requests may come from.
    @ivar clients: the clients that they may come from.
    @ivar tokens: one of which each has to show.
    @ivar sender: the one kind of sender that it hears.
    @ivar verifier: checks signatures.
    @ivar must_verify: what is not verified is refused; else messages say so.
    @ivar splitter: takes batches apart.
    """

    allow: AllowList | None = None
    clients: ClientPatterns | None = None
    tokens: TokenCheck | None = None
    sender: CompiledSender | None = None
    verifier: Verifier | None = None
    must_verify: bool = True
    splitter: Splitter | None = None


class Guard:
    """
    The guard of one source.

    @param rules: those of the source, without tokens.
    @param wall_clock: nanoseconds since the epoch.
    @ivar on_head: the decisions on a head, by name.
    @ivar on_body: those on a body, by name.
    """

    def __init__(self, rules: SourceRules, parts: GuardParts, wall_clock: Callable[[], int]) -> None:
        self.rules = rules
        self.parts = parts
        self._wall_clock = wall_clock
        self._sender = "" if parts.sender is None else parts.sender.id
        on_head: tuple[tuple[str, object, Decision], ...] = (
            ("address", parts.allow, self.address),
            ("client", parts.clients, self.client),
            ("method", self, self.method),
            ("token", parts.tokens, self.token),
            ("secret", parts.verifier, self.secret),
            ("values", self, self.values),
        )
        on_body: tuple[tuple[str, object, Decision], ...] = (
            ("signature", parts.verifier, self.signature),
            ("delivery", parts.sender, self.delivery),
            ("split", parts.splitter, self.split),
        )
        self.on_head = tuple((name, decide) for name, part, decide in on_head if part is not None)
        self.on_body = tuple((name, decide) for name, part, decide in on_body if part is not None)

    def admit(self, head: Head, by_path: Admission | Refused, size: int | None) -> Passage | Refused:
        """
        Take all decisions on a head.

        @param by_path: see L{webhookrx.intake.judge.admission_of_path}.
        @param size: see L{Passage.size}.
        """
        passage = Passage(head, by_path, size)
        for _, decide in self.on_head:
            ending = decide(passage)
            if ending is not None:
                return ending
        return passage

    def judge(self, passage: Passage) -> Refused | None:
        """
        Take all decisions on a body, with yield points.

        @return: None for one that is to be stored.
        """
        for _, decide in self.on_body:
            ending = decide(passage)
            if ending is not None:
                return ending
        return None

    def _refused(self, reason: Reason, detail: str = "") -> Refused:
        return Refused(reason, detail or reason.detail, self.rules.name)

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
        """Decide on its method."""
        if passage.head.method == b"POST":
            return None
        return self._refused(METHOD_NOT_ALLOWED)

    def token(self, passage: Passage) -> Refused | None:
        """Decide on the token that it shows."""
        assert self.parts.tokens is not None
        by_path = passage.by_path
        name = self.parts.tokens.check(passage.head, by_path.groups if type(by_path) is Admission else {})
        if name is None:
            return self._refused(BAD_TOKEN)
        passage.token = name
        return None

    def secret(self, passage: Passage) -> Refused | None:
        """Begin to verify it. What its head shows of a secret itself is judged now."""
        assert self.parts.verifier is not None
        head = passage.head
        try:
            query = remembered_query(head.query) if head.query else {}
        except RequestRefused as refused:
            return self._refused(refused.reason, refused.detail)
        verification = passage.verification = self.parts.verifier.begin(head, query)
        unverified = verification.before_body()
        return None if unverified is None else self._not_verified(passage, unverified)

    def values(self, passage: Passage) -> Refused | None:
        """Decide on the encoding of its body, on captured text and on its query, and gather them."""
        admission = admit_by_path(passage.head, self.rules, passage.by_path)
        if type(admission) is Refused:
            return admission
        assert type(admission) is Admission
        if self.parts.tokens is not None:
            place = self.parts.tokens.place
            if place.kind in ("query", "path"):
                admission = Admission(
                    self.rules,
                    dict(place.groups_without(admission.groups)),
                    dict(place.query_without(admission.query)),
                    admission.encodings,
                )
        passage.admission = admission
        return None

    # -- on the body ---------------------------------------------------------------------------------------------

    def signature(self, passage: Passage) -> Refused | None:
        """Verify it."""
        assert passage.verification is not None
        if passage.unverified is not None:
            return None
        outcome = passage.verification.finish(passage.body, self._wall_clock(), passage.wire)
        if isinstance(outcome, Unverified):
            return self._not_verified(passage, outcome)
        passage.verified = outcome
        return None

    def _not_verified(self, passage: Passage, unverified: Unverified) -> Refused | None:
        if self.parts.must_verify:
            return self._refused(unverified.reason, unverified.detail)
        passage.unverified = unverified
        return None

    def delivery(self, passage: Passage) -> None:
        """Find out which delivery it is."""
        assert self.parts.sender is not None
        passage.delivery_id = delivery_text(self.parts.sender, self.evidence(passage))

    def split(self, passage: Passage) -> Refused | None:
        """Take its body apart."""
        assert self.parts.splitter is not None
        try:
            passage.bundle = self.parts.splitter.split(passage.body, self.evidence(passage).media_type)
        except RequestRefused as refused:
            return self._refused(refused.reason, refused.detail)
        return None

    def evidence(self, passage: Passage) -> Evidence:
        """Return what places are looked up in, made once."""
        if passage.evidence is None:
            assert passage.admission is not None
            body = passage.body
            passage.evidence = Evidence(passage.head, passage.admission.query, body, None, json_or_missing(body))
        return passage.evidence

    def provenance(self, passage: Passage) -> Provenance:
        """Return what is known of the sender, once all decisions are taken."""
        verified = passage.verified
        how: str
        if verified is not None:
            how = verified.kind
        elif passage.token:
            how = BY_TOKEN
        else:
            how = BY_CLIENT if passage.client else NOT_VERIFIED
        sender = self.parts.sender
        return Provenance(
            self._sender,
            how,
            "" if verified is None else verified.secret,
            passage.token,
            passage.delivery_id[:MAX_TEXT].rstrip(),
            "" if sender is None or sender.attempt is None else attempt_number(sender, self.evidence(passage)),
            None if verified is None else verified.signed_at,
        )
