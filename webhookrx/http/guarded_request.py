"""
A request to a guarded source, from the end of its head to its answer: what is known of it, and how far it has come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from zope.interface import implementer

from webhookrx.errors import Reason, RequestRefused
from webhookrx.guard.passage import Passage
from webhookrx.guard.signature_check import SignatureCheck
from webhookrx.http.answers import FixedAnswer
from webhookrx.http.interfaces import IExchange, IReceiver
from webhookrx.intake.head import Head

if TYPE_CHECKING:
    from webhookrx.http.guarded_resource import GuardedResource


@implementer(IReceiver)
class GuardedRequest(Passage):
    """
    One request to a guarded source.

    @ivar resource: that of its source; None until its head is admitted.
    @ivar exchange: None until its body is there.
    @ivar wire_size: bytes of the body as it came.
    @ivar came: how many of these have come so far, where that is counted.
    @ivar reserved: bytes that are counted for it while it waits.
    @ivar has_claim: a claim of its delivery is to be settled.
    @ivar is_ended: it has its answer.
    """

    resource: GuardedResource = None  # type: ignore[assignment]
    exchange: IExchange = None  # type: ignore[assignment]
    wire_size: int = 0
    came: int = 0
    reserved: int = 0
    has_claim: bool = False
    is_ended: bool = False

    @property
    def watch(self) -> Callable[[bytes], None] | None:
        """See L{IReceiver}."""
        return self._take_piece if self._signatures is not None or self.resource.guard.quotas is not None else None

    @property
    def _signatures(self) -> SignatureCheck | None:
        """The check that takes the body in as it comes; None if there is none."""
        signatures, admission = self.resource.guard.signatures, self.admission
        assert admission is not None, "its head was admitted"
        return signatures if signatures is not None and signatures.takes_pieces and not admission.encodings else None

    def _take_piece(self, data: bytes) -> None:
        self.came += len(data)
        quotas, signatures = self.resource.guard.quotas, self._signatures
        refused = None if quotas is None else quotas.more(self, self.came)
        if refused is not None:
            raise RequestRefused(refused.reason, refused.detail, retry_after=refused.retry_after)
        if signatures is not None:
            signatures.take_piece(self, data)

    def refusal(self, head: Head, reason: Reason, detail: str, retry_after: int = 0) -> FixedAnswer:
        """See L{IReceiver.refusal}."""
        return self.resource.refusal(head, reason, detail, retry_after)

    def receive(self, exchange: IExchange, body: bytes) -> None:
        """See L{IReceiver.receive}."""
        self.exchange = exchange
        self.wire_size = len(body)
        self.resource.take(self, body)
