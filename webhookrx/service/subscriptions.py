"""
Subscriptions of Amazon SNS that wait to be confirmed: confirmed where the operator wants it, else told of.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from twisted.logger import Logger

from webhookrx.senders.signatures.signed_request import Settings
from webhookrx.senders.signatures.sns import WaitingSubscription, waiting_subscription

_log = Logger()


class FetchOnce(Protocol):
    """Fetches a pinned URL once; see L{webhookrx.service.key_fetcher.KeyFetcher.once}."""

    def __call__(self, url: str, done: Callable[[bytes], None]) -> bool:
        """Return whether it was begun."""


class Subscriptions:
    """
    What to do about questions of SNS.

    @param fetch: makes the request that confirms one.
    """

    def __init__(self, fetch: FetchOnce) -> None:
        self._fetch = fetch

    def stored(self, settings: Settings, body: bytes) -> None:
        """
        Take it that a verified message of SNS is stored, and answered.

        @param settings: those of its sender.
        """
        waiting = waiting_subscription(body, settings)
        if waiting is None:
            return
        if not waiting.url:
            _log.warn(
                "A subscription to {topic} waits: aws sns confirm-subscription --topic-arn {topic} --token ..., "
                "with the Token in message {id}",
                topic=waiting.topic,
                id=waiting.message_id,
            )
        elif not self._fetch(waiting.url, partial(self._confirmed, waiting)):
            _log.warn("The subscription to {topic} can't be confirmed now; ask for it again", topic=waiting.topic)

    def _confirmed(self, waiting: WaitingSubscription, answer: bytes) -> None:
        _log.info("The subscription to {topic} is confirmed", topic=waiting.topic)
