"""
redis:URL, to relay from: the spec string of a stream of Redis, without the package that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from webhookrx.config.observers import Argument, ObserverSpec, OptionText
from webhookrx.observers.packages import package_for
from webhookrx.observers.redis.options import (
    CONNECTION_OPTIONS,
    CONNECTION_TEXTS,
    FILES,
    PACKAGE,
    SECRETS,
    read_servers,
)
from webhookrx.relay.consumer import BrokerOptions, ConsumerKind
from webhookrx.relay.redis_source import RedisSource

if TYPE_CHECKING:
    from webhookrx.relay.consumer import Consumer

DEFAULT_CLAIM_AFTER: Final = 30.0


def build_redis_consumer(spec: str, args: Sequence[str], given: Mapping[str, str], group: str) -> Consumer:
    """
    Make a consumer of a stream; see L{ConsumerKind}.

    @raise webhookrx.errors.ConfigError: an argument, an option or a file is wrong, or the package is missing.
    """
    options = BrokerOptions("redis", given)
    servers, stream = read_servers(args, options)
    claim_after = options.duration("claim_after", DEFAULT_CLAIM_AFTER, at_least=1.0)
    with package_for("redis", PACKAGE, kind="broker"):
        from webhookrx.relay.redis_consumer import RedisConsumer
    consumer = RedisConsumer(spec, RedisSource(servers, stream, group, claim_after))
    consumer.check()
    return consumer


CONSUMER: Final = ConsumerKind(
    ObserverSpec(
        ("claim_after", *CONNECTION_OPTIONS),
        Argument.URL,
        FILES,
        SECRETS,
        texts={
            "claim_after": OptionText(
                "`30s`", "after which an entry goes to another relay, if nobody has settled or kept it"
            ),
            **CONNECTION_TEXTS,
        },
    ),
    build_redis_consumer,
)
