"""
Where a request to a connector becomes a message.
"""

from __future__ import annotations

from webhookrx.connector_intake import Dropped, judge_connector
from webhookrx.errors import NO_ROOM, NoRoom
from webhookrx.http.answers import RECEIVED
from webhookrx.http.interfaces import IExchange
from webhookrx.http.webhook_resource import WebhookResource
from webhookrx.intake import Refused


class ConnectorResource(WebhookResource):
    """
    One connector of the router form. What its steps drop is answered with 200 all the same: it was meant to be dropped.
    """

    def receive(self, exchange: IExchange, body: bytes) -> None:
        """See L{IReceiver.receive}."""
        verdict = judge_connector(exchange.head, exchange.admission, body, self._receipts())
        if isinstance(verdict, Refused):
            self.refuse(exchange, verdict.reason, verdict.detail)
            return
        name = self._rules.name
        if isinstance(verdict, Dropped):
            self._traffic.processed(name, verdict.marks, verdict.problem)
            if exchange.answer(RECEIVED):
                self._traffic.answered(name, self._clock() - exchange.began)
            return
        try:
            self._consumer.write(verdict.message, exchange)
        except NoRoom:
            self.refuse(exchange, NO_ROOM, NO_ROOM.detail)
            return
        self._traffic.accepted(name, verdict.notes, 0, len(body))
        if verdict.marks:
            self._traffic.processed(name, verdict.marks, verdict.problem)
