"""
nats:URL, to relay from: the spec string of a stream of JetStream, without the package that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from webhookrx.config.observers import Argument, ObserverSpec, OptionText
from webhookrx.observers.nats.options import (
    CONNECTION_FILES,
    CONNECTION_OPTIONS,
    CONNECTION_SECRETS,
    CONNECTION_TEXTS,
    PACKAGE,
)
from webhookrx.observers.packages import package_for
from webhookrx.relay.consumer import BrokerOptions, ConsumerKind
from webhookrx.relay.nats_source import SOURCE_OPTIONS, read_source

if TYPE_CHECKING:
    from webhookrx.relay.consumer import Consumer


def build_nats_consumer(spec: str, args: Sequence[str], given: Mapping[str, str], group: str) -> Consumer:
    """
    Make a consumer of a stream; see L{ConsumerKind}.

    @raise webhookrx.errors.ConfigError: an argument, an option or a file is wrong, or the package is missing.
    """
    options = BrokerOptions("nats", given)
    source = read_source(args, options, group)
    with package_for("nats", PACKAGE, kind="broker"):
        from webhookrx.relay.nats_consumer import NatsConsumer
    consumer = NatsConsumer(spec, source)
    consumer.check()
    return consumer


CONSUMER: Final = ConsumerKind(
    ObserverSpec(
        (*SOURCE_OPTIONS, *CONNECTION_OPTIONS),
        Argument.URL,
        CONNECTION_FILES,
        CONNECTION_SECRETS,
        texts={
            "subject": OptionText(
                "all", "which subjects of the stream; `*` stands for one token, `>` for all that follow"
            ),
            "ack_wait": OptionText(
                "`30s`", "after which a message goes to another relay, if nobody has settled or kept it"
            ),
            "max_ack_pending": OptionText("`20000`", "how many messages all relays of the group may have at a time"),
            **CONNECTION_TEXTS,
        },
    ),
    build_nats_consumer,
)
