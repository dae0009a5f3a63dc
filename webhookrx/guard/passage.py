"""
Passage: what is known so far of one request on its way through the decisions of a guard.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from webhookrx.errors import RequestRefused
from webhookrx.intake.head import Head
from webhookrx.intake.json_body import json_or_missing
from webhookrx.intake.judge import Admission, Refused
from webhookrx.intake.provenance import BY_CLIENT, BY_TOKEN, NOT_VERIFIED
from webhookrx.intake.reply import Reply
from webhookrx.intake.urlencoded import remembered_query
from webhookrx.message.fields import MISSING
from webhookrx.senders.bundle import Bundle
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.handshakes import HandshakeAnswer
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.verification import Verification

Ending: TypeAlias = Refused | HandshakeAnswer
"""What ends the way of a request: a refusal, or the answer to a question."""

Query: TypeAlias = dict[str, str | list[str]]
NO_QUERY: Final[Query] = {}


class Passage(msgspec.Struct):
    """
    One request. Each decision of L{webhookrx.guard.guard.Guard} fills in what it finds out.

    @ivar by_path: see L{webhookrx.intake.judge.admission_of_path}.
    @ivar size: bytes of the body as it comes, as the head says; None if it does not say.
    @ivar client: the client pattern that its certificate matches; empty where there are none.
    @ivar token: the name of the token that it shows; empty where none is asked for.
    @ivar verification: the check of its signature; None where none is made.
    @ivar is_hashed: that check has had the body as it came.
    @ivar charged: bytes of its body that its quota was charged for.
    @ivar question: the question that it is, where that becomes a message, too.
    @ivar admission: all that its head gives to a message, but for the provenance; None until all decisions on the head
        are taken.
    @ivar body: unpacked; once it was verified, without the secrets that it shows.
    @ivar wire: the body as it came; None if it was not encoded.
    @ivar known_evidence: see L{evidence}; None until somebody needs it.
    @ivar verified: by which secret it was verified.
    @ivar unverified: why it was not; it may be taken nevertheless.
    @ivar delivery_id: the sender's id of the delivery, whole; empty without one.
    @ivar key: of the delivery in the idempotency window; empty if it is not looked up there.
    @ivar reply: the answer that the sender wants once it is stored; None for the usual one.
    @ivar bundle: its events; None if it is one message.
    """

    head: Head
    by_path: Admission | Refused
    size: int | None = None
    client: str = ""
    token: str = ""
    verification: Verification | None = None
    is_hashed: bool = False
    charged: int = 0
    question: HandshakeAnswer | None = None
    admission: Admission | None = None
    body: bytes = b""
    wire: bytes | None = None
    known_evidence: Evidence | None = None
    verified: Verified | None = None
    unverified: Unverified | None = None
    delivery_id: str = ""
    key: bytes = b""
    reply: Reply | None = None
    bundle: Bundle | None = None

    @property
    def proof(self) -> str:
        """What has proved the sender, as messages say it, once the decisions on the body are taken."""
        if self.verified is not None:
            return self.verified.kind
        if self.token:
            return BY_TOKEN
        return NOT_VERIFIED if self.head.peer.client is None else BY_CLIENT

    def evidence(self) -> Evidence:
        """Return what places are looked up in, made once; its head was admitted, and its body is there."""
        if self.known_evidence is None:
            assert self.admission is not None
            body = self.body
            self.known_evidence = Evidence(self.head, self.admission.query, body, None, json_or_missing(body))
        return self.known_evidence

    def evidence_of_head(self) -> Evidence:
        """Return what places outside the body are looked up in."""
        assert self.admission is not None, "its head was admitted"
        return Evidence(self.head, self.admission.query, b"", "", MISSING)


def query_of(head: Head, source: str) -> Query | Refused:
    """Return the query of a request to a source, or why it is refused for it."""
    if not head.query:
        return NO_QUERY
    try:
        return remembered_query(head.query)
    except RequestRefused as refused:
        return Refused(refused.reason, refused.detail, source)
