"""
The durable consumer of JetStream that all relays of a group share: found, or made, and why it can't be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nats.errors
import nats.js.errors
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from webhookrx.errors import Unavailable
from webhookrx.observers.excerpts import excerpt_of
from webhookrx.observers.nats.client import reason_of
from webhookrx.relay.nats_source import DEFAULT_ACK_WAIT, DEFAULT_MAX_ACK_PENDING

if TYPE_CHECKING:
    from webhookrx.observers.nats.client import NatsClient
    from webhookrx.relay.nats_source import NatsSource


async def find_or_make(client: NatsClient, source: NatsSource, seconds: float) -> ConsumerConfig:
    """
    Return the consumer of a group as it is now, with what the options say.

    @param seconds: for each of two requests.
    @raise Unavailable: messages could get lost with it.
    @raise Exception: it can't be had, see L{explain}.
    """
    manager = client.jsm(timeout=seconds)
    wanted: dict[str, Any] = {
        name: value
        for name, value in (
            ("filter_subject", source.subject),
            ("ack_wait", source.ack_wait),
            ("max_ack_pending", source.max_ack_pending),
        )
        if value is not None
    }
    try:
        config: ConsumerConfig = (await manager.consumer_info(source.stream, source.durable)).config
    except nats.js.errors.NotFoundError:
        defaults = {"ack_wait": DEFAULT_ACK_WAIT, "max_ack_pending": DEFAULT_MAX_ACK_PENDING}
        made = ConsumerConfig(
            durable_name=source.durable,
            deliver_policy=DeliverPolicy.ALL,
            ack_policy=AckPolicy.EXPLICIT,
            **{**defaults, **wanted},
        )
        config = (await manager.add_consumer(source.stream, made)).config
    else:
        if any(getattr(config, name) != value for name, value in wanted.items()):
            config = (await manager.add_consumer(source.stream, config.evolve(**wanted))).config
    if config.ack_policy not in (AckPolicy.EXPLICIT, "explicit") or config.deliver_subject:
        raise Unavailable(f"consumer {source.durable} is not a pull consumer with explicit acknowledgements")
    return config


def explain(error: Exception, source: NatsSource) -> str:
    """Return in one line why a consumer can't be had."""
    excerpt = not source.servers.sends_secret
    if isinstance(error, nats.js.errors.NotFoundError):
        return f"there is no stream {source.stream}"
    if isinstance(
        error,
        (
            nats.js.errors.ServiceUnavailableError,
            nats.js.errors.NoStreamResponseError,
            nats.errors.NoRespondersError,
        ),
    ):
        return "it has no JetStream, or not for this account"
    if isinstance(error, nats.js.errors.APIError):
        text = f"JetStream answers {error.code}, err_code {error.err_code}"
        return f"{text}: {excerpt_of(error.description or '')}" if excerpt else text
    return reason_of(error, excerpt=excerpt)
