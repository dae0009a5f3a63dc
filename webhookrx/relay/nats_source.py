"""
What a relay reads from JetStream: a stream, the durable consumer of the group, and where a message of it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from webhookrx.diagnostics import quoted
from webhookrx.observers.nats.options import NatsServers, read_servers, stream_name
from webhookrx.relay.consumer import BrokerOptions

SOURCE_OPTIONS: Final = ("subject", "ack_wait", "max_ack_pending")

_EXAMPLE: Final = "nats:nats://127.0.0.1:4222/LOGS"
DEFAULT_ACK_WAIT: Final = 30.0
DEFAULT_MAX_ACK_PENDING: Final = 20_000

#: Tokens with dots between them; * stands for one, > for all that follow.
_FILTER: Final = re.compile(r"(?:[^\s.*>]+|\*)(?:\.(?:[^\s.*>]+|\*))*(?:\.>)?|>")


@dataclass(frozen=True, slots=True)
class NatsSource:
    """
    What a relay reads, and as which consumer.

    @ivar durable: the name of the consumer, which all relays of a group share.
    @ivar subject: which subjects of the stream; None for all, or those of a consumer that exists.
    @ivar ack_wait: seconds after which a message that nobody has settled goes to another relay; None for those of a
        consumer that exists.
    @ivar max_ack_pending: how many messages all relays of the group may have at a time; None likewise.
    """

    servers: NatsServers
    stream: str
    durable: str
    subject: str | None = None
    ack_wait: float | None = None
    max_ack_pending: int | None = None


def read_source(args: Sequence[str], options: BrokerOptions, group: str) -> NatsSource:
    """
    Read C{nats:nats://HOST:PORT,…/STREAM[:key=value…]}, but not the files.

    @raise webhookrx.errors.ConfigError: an argument or option is wrong.
    """
    servers = read_servers(args, options, _EXAMPLE)
    try:
        stream = stream_name(servers.addresses.path)
    except ValueError as error:
        raise options.problem(f"the URL must name a stream: {error}; write for example {_EXAMPLE}") from None
    try:
        durable = stream_name(group)
    except ValueError as error:
        raise options.problem(f"the group is the name of a consumer: {quoted(group)}: {error}") from None
    return NatsSource(
        servers,
        stream,
        durable,
        options.read("subject", None, _filter),
        options.duration("ack_wait", None, at_least=1.0),
        options.count("max_ack_pending", 1) if "max_ack_pending" in options else None,
    )


def _filter(text: str) -> str:
    if not _FILTER.fullmatch(text):
        raise ValueError("it takes a subject, in which * stands for one token and > for all that follow")
    return text


def read_place(reply: str) -> tuple[int, int, int, int] | None:
    """
    Read the reply subject of a delivered message: its sequence number in the stream, how often it was delivered, when
    it was stored (nanoseconds since the epoch), and how many wait behind it. None for any other subject.

    There are two forms, see U{https://docs.nats.io/reference/reference-protocols/nats_api_reference}: C{$JS.ACK},
    stream, consumer, deliveries, sequence, that of the consumer, time, pending; and one with domain and account hash
    before the stream, and a token behind.
    """
    tokens = reply.split(".")
    if tokens[:2] != ["$JS", "ACK"]:
        return None
    numbers = tokens[4:9] if len(tokens) == 9 else tokens[6:11]
    if len(numbers) != 5 or not all(number.isdecimal() for number in numbers):
        return None
    deliveries, sequence, _, stored, pending = map(int, numbers)
    return sequence, deliveries, stored, pending
