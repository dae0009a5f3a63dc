"""
The resource of a connector of the router form.
"""

from __future__ import annotations

from typing import Any

from webhookrx.http.interfaces import IExchange
from webhookrx.http.resources import WebhookResource
from webhookrx.router.connector_intake import DroppedMessage, KeptMessage, judge_connector


class ConnectorResource(WebhookResource):
    """
    One connector. A message that its steps drop is answered with 200 all the same: it was meant to be dropped.
    """

    _judge = staticmethod(judge_connector)

    def _take(self, exchange: IExchange, verdict: Any, wire_size: int, prepared: object = None) -> None:
        """See L{WebhookResource._take}."""
        name = self.rules.name
        if isinstance(verdict, DroppedMessage):
            self._traffic.processed(name, verdict.events, verdict.problem)
            exchange.acknowledged(None)
        elif not isinstance(verdict, KeptMessage):
            super()._take(exchange, verdict, wire_size)
        elif self._write(exchange, verdict.message, prepared):
            self._traffic.accepted(name, verdict.notes, 0, wire_size)
            if verdict.events:
                self._traffic.processed(name, verdict.events, verdict.problem)
