"""
Where a request becomes a message: it carries values to the decision, messages to the chain, and answers back.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from zope.interface import implementer

from webhookrx.errors import NO_ROOM, NOT_STORED, NoRoom, NotStored, Reason
from webhookrx.http.answers import RECEIVED, refusal_now
from webhookrx.http.interfaces import IExchange, IReceiver
from webhookrx.intake import Admission, Receipt, Refused, SourceRules, admit, judge
from webhookrx.interfaces import IMessageConsumer, ITraffic
from webhookrx.request.received import Head


@implementer(IReceiver)
class WebhookResource:
    """
    One source.

    @param receipts: gives the next L{Receipt}.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(
        self,
        rules: SourceRules,
        consumer: IMessageConsumer,
        traffic: ITraffic,
        receipts: Callable[[], Receipt],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = rules
        self._consumer = consumer
        self._traffic = traffic
        self._receipts = receipts
        self._clock = clock

    def admit(self, head: Head, raw_groups: dict[str, bytes]) -> Admission | Refused:
        """See L{webhookrx.intake.admit}."""
        return admit(head, self._rules, raw_groups)

    def receive(self, exchange: IExchange, body: bytes) -> None:
        """See L{IReceiver.receive}."""
        verdict = judge(exchange.head, exchange.admission, body, self._receipts())
        if isinstance(verdict, Refused):
            self.refuse(exchange, verdict.reason, verdict.detail)
            return
        try:
            self._consumer.write(verdict.message, exchange)
        except NoRoom:
            self.refuse(exchange, NO_ROOM, NO_ROOM.detail)
            return
        self._traffic.accepted(self._rules.name, verdict.notes, verdict.left_out, len(body))

    def acknowledged(self, exchange: IExchange, error: NotStored | None) -> None:
        """See L{IReceiver.acknowledged}."""
        if error is not None:
            self.refuse(exchange, NOT_STORED, NOT_STORED.detail)
        elif exchange.answer(RECEIVED):
            self._traffic.answered(self._rules.name, self._clock() - exchange.began)

    def refuse(self, exchange: IExchange, reason: Reason, detail: str) -> None:
        """Refuse a request, and say so."""
        head = exchange.head
        if exchange.answer(refusal_now(reason, detail, self._consumer)):
            self._traffic.refused(reason, detail, head.peer_text, head.method, head.path, self._rules.name)
