"""
C{nats:nats://HOST:PORT,…/SUBJECT}: publishes messages to a stream of NATS JetStream.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Protocol, cast

from twisted.logger import Logger
from zope.interface import implementer

from webhookrx.config.specs import SpecOptions
from webhookrx.interfaces import IStoreObserver
from webhookrx.observers.item_outcomes import Outcome, store_items
from webhookrx.observers.keyed_record import unpack
from webhookrx.observers.link_observer import AccessLink, LinkObserver
from webhookrx.observers.nats.client import OLDEST_SOUND
from webhookrx.observers.nats.link import NatsLink
from webhookrx.observers.nats.options import NatsSecrets, read_access, read_nats
from webhookrx.observers.nats.publisher import Outgoing
from webhookrx.observers.retrying import Retries

if TYPE_CHECKING:
    from webhookrx.backoff import Random
    from webhookrx.interfaces import Prepared
    from webhookrx.observers.addresses import Server
    from webhookrx.observers.nats.client import NatsClient
    from webhookrx.observers.nats.options import NatsTarget

_log = Logger()


class Link(AccessLink[NatsSecrets], Protocol):
    """What publishes, see L{NatsLink}."""

    def publish(self, messages: Sequence[Outgoing], steps: Iterable[float]) -> Sequence[Outcome]:
        """Publish messages in order, and return an outcome for each."""


#: Makes what publishes; it calls the function with each new connection.
MakeLink = Callable[["NatsTarget", "Callable[[NatsClient, Server], None]"], Link]


@implementer(IStoreObserver)
class NatsObserver(LinkObserver[NatsSecrets]):
    """
    Publishes each message to JetStream with its id, and waits for the PubAck of each.

    A PubAck means that the stream has written the message; with a server that syncs at once, that it is durable. Within
    C{duplicate_window} of the stream, a message that is sent again is stored once.

    @param make_link: makes what publishes.
    @param clock: seconds on the monotonic clock.
    @param stopping: set when the receiver stops.
    """

    _link: Link

    def __init__(
        self,
        spec: str,
        target: NatsTarget,
        make_link: MakeLink = NatsLink,
        clock: Callable[[], float] = time.monotonic,
        random: Random = random.random,
        stopping: Event | None = None,
    ) -> None:
        retries = Retries(target.retry_for, clock, random, stopping)
        super().__init__(spec, retries, partial(read_access, target.servers, SpecOptions("nats", {})))
        self.prepare = target.encode
        self.takes_lines = target.format.takes_lines
        self.promise = "durable" if target.is_synced else "written"
        self.promise_reason = (
            ""
            if target.is_synced
            else "JetStream acknowledges before it syncs; synced=yes if sync_interval of the servers is always"
        )
        self._target = target
        self._link = make_link(target, self._look_at_server)
        self._has_warned = False

    def store(self, batch: Sequence[Prepared]) -> list[Exception | None] | None:
        """
        Publish a batch in order, and again what was not taken.

        @return: None, or for each message None, L{Rejected}, or L{Unavailable}.
        @raise Unavailable: no message was stored or refused.
        """
        records = [unpack(packed) for packed in cast("Sequence[bytes]", batch)]
        messages = [Outgoing(record.key.decode(), record.id, record.value) for record in records]

        def send(messages: Sequence[Outgoing]) -> Sequence[Outcome]:
            return self._link.publish(messages, self._retries.steps(self._target.timeout))

        return store_items(messages, send, self._retries, self.counts)

    def _look_at_server(self, client: NatsClient, server: Server) -> None:
        """Warn once of a server that may lose what it has acknowledged."""
        if client.version < OLDEST_SOUND and not self._has_warned:
            self._has_warned = True
            _log.warn(
                "Observer {spec}: {server} is nats-server {version}; releases before {sound} may lose what they have "
                "acknowledged when they are killed",
                spec=self.spec,
                server=str(server),
                version=".".join(map(str, client.version)),
                sound=".".join(map(str, OLDEST_SOUND)),
            )


def build_nats(spec: str, args: Sequence[str], options: Mapping[str, str], ack: str) -> NatsObserver:
    """
    Make the observer of C{nats:nats://HOST:PORT,…/SUBJECT[:key=value…]}; see L{webhookrx.observers.nats.options}.

    @raise ConfigError: an argument, an option or a file is wrong.
    """
    observer = NatsObserver(spec, read_nats(args, options))
    observer.check()
    return observer
