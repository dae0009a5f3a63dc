"""
Where a request becomes a message: it carries values to the decision, messages to the chain, and answers back.
"""

from __future__ import annotations

from collections.abc import Callable

from zope.interface import implementer

from webhookrx.errors import NO_ROOM, NOT_STORED, NoRoom, NotStored, Reason
from webhookrx.http.answers import RECEIVED, refusal
from webhookrx.http.interfaces import IExchange, IReceiver
from webhookrx.intake import Admission, Receipt, Refused, SourceRules, admit, judge
from webhookrx.interfaces import IMessageConsumer, ITraffic
from webhookrx.request.received import Head


@implementer(IReceiver)
class WebhookResource:
    """
    One source.

    @param receipts: gives the next L{Receipt}.
    """

    def __init__(
        self, rules: SourceRules, consumer: IMessageConsumer, traffic: ITraffic, receipts: Callable[[], Receipt]
    ) -> None:
        self._rules = rules
        self._consumer = consumer
        self._traffic = traffic
        self._receipts = receipts

    def admit(self, head: Head, raw_groups: dict[str, bytes]) -> Admission | Refused:
        """See L{webhookrx.intake.admit}."""
        return admit(head, self._rules, raw_groups)

    def receive(self, exchange: IExchange, body: bytes) -> None:
        """See L{IReceiver.receive}."""
        verdict = judge(exchange.head, exchange.admission, body, self._receipts())
        if isinstance(verdict, Refused):
            self._refuse(exchange, verdict.reason, verdict.detail)
            return
        try:
            self._consumer.write(verdict.message, _Waiting(self, exchange))
        except NoRoom:
            self._refuse(exchange, NO_ROOM, NO_ROOM.detail)
            return
        self._traffic.accepted(self._rules.name, verdict.notes, verdict.left_out)

    def acknowledged(self, exchange: IExchange, error: NotStored | None) -> None:
        """All observers have the message safe, or C{error} says why not."""
        if error is None:
            exchange.answer(RECEIVED)
        else:
            self._refuse(exchange, NOT_STORED, NOT_STORED.detail)

    def _refuse(self, exchange: IExchange, reason: Reason, detail: str) -> None:
        head = exchange.head
        if exchange.answer(refusal(reason, detail)):
            self._traffic.refused(reason, detail, head.peer_text, head.method, head.path)


class _Waiting:
    """An exchange that waits for its acknowledgement."""

    __slots__ = ("_exchange", "_resource")

    def __init__(self, resource: WebhookResource, exchange: IExchange) -> None:
        self._resource = resource
        self._exchange = exchange

    def __call__(self, error: NotStored | None) -> None:
        self._resource.acknowledged(self._exchange, error)
