"""
A link to JetStream: publishes batches from a thread that blocks, and finds the message for which a server ends its
connection.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import nats.errors

from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.item_outcomes import Outcome
from webhookrx.observers.nats.asyncio_thread import AsyncioThread
from webhookrx.observers.nats.client import close, connect, reason_of
from webhookrx.observers.nats.publisher import Flight, Outgoing, Publisher

if TYPE_CHECKING:
    from webhookrx.observers.addresses import Server
    from webhookrx.observers.nats.client import NatsClient
    from webhookrx.observers.nats.options import NatsAccess, NatsSecrets, NatsTarget

_MOST_CULPRITS: Final = 3
"""Messages of a batch for each of which a new connection is made."""


class NatsLink:
    """
    Publishes batches from a thread that blocks, over a connection that stays open between them.

    @param on_connected: called in another thread with each new connection and its server.
    """

    def __init__(self, target: NatsTarget, on_connected: Callable[[NatsClient, Server], None]) -> None:
        self._target = target
        self._on_connected = on_connected
        self._thread = AsyncioThread("webhookrx-nats")
        self._access: NatsAccess | None = None
        self._connected: tuple[NatsClient, Publisher] | None = None
        self._first = 0
        self._is_careful = False

    def use(self, secrets: NatsSecrets, context: ssl.SSLContext | None) -> None:
        """Use these for the next connection, and end the present one."""
        self.close()
        self._access = secrets, context

    def publish(self, messages: Sequence[Outgoing], steps: Iterable[float]) -> Sequence[Outcome]:
        """
        Publish messages in order, and return an outcome for each.

        @param steps: seconds to wait next, one by one, until its time is over.
        """
        flight = Flight(messages)
        culprits = 0
        while True:
            problem, has_ended = self._try(flight, steps)
            if not problem:
                self._is_careful = False
                break
            if not has_ended:
                self._drop()
                break
            if self._is_careful:
                culprits += self._settle_culprit(problem)
            is_new, self._is_careful = not self._is_careful, True
            self._drop()
            if culprits >= _MOST_CULPRITS or not (culprits or is_new):
                break
        return flight.all_outcomes(problem or "no PubAck in time")

    def _try(self, flight: Flight, steps: Iterable[float]) -> tuple[str, bool]:
        """Return what is wrong, if anything, and whether a connection has ended while it was used."""
        try:
            self._thread.run(self._publish(flight), steps)
        except TimeoutError:
            return "no PubAck in time", False
        except Unavailable as error:
            return str(error), False
        except (nats.errors.Error, OSError, asyncio.CancelledError) as error:
            return reason_of(error, excerpt=not self._target.servers.sends_secret), True
        return "", False

    def _settle_culprit(self, problem: str) -> bool:
        """
        Note what became of the only message under way when the connection ended: others must not wait for it for ever.

        An account may allow less than C{max_payload}, which the server does not tell before. It ends the connection for
        a message that is larger, and what it says may be lost with that: then the message is not refused.
        """
        assert self._connected is not None
        is_violation = "maximum payload violation" in problem.lower()
        text = "the account takes no payload as large as that"
        return self._connected[1].settle_only_one(Rejected(text) if is_violation else Unavailable(problem))

    def _drop(self) -> None:
        """End the connection; the next one begins with the next server."""
        self._first += 1
        self.close()

    def close(self) -> None:
        """End the connection, if there is one."""
        connected, self._connected = self._connected, None
        if connected is not None:
            client, publisher = connected
            publisher.end(nats.errors.ConnectionClosedError())
            with_bound = [0.1] * 15
            try:
                self._thread.run(close(client), with_bound)
            except TimeoutError:
                client.abort()
        self._thread.close()
        # What was cancelled in the middle may have connected in the meantime.
        self._connected = None

    async def _publish(self, flight: Flight) -> None:
        if self._connected is None or not self._connected[0].is_connected:
            await self._connect()
        assert self._connected is not None
        await self._connected[1].publish(flight)

    async def _connect(self) -> None:
        if self._access is None:
            raise Unavailable("it is closed")
        secrets, context = self._access
        target = self._target
        publisher: Publisher | None = None

        def note_error(error: Exception) -> None:
            if publisher is not None:
                publisher.on_error(error)

        def note_end() -> None:
            if publisher is not None:
                publisher.end(client.last_error or nats.errors.ConnectionClosedError())

        # All of them have had their try when the time of a batch is over.
        seconds = 0.8 * target.timeout / len(target.servers.addresses.servers)
        client, server = await connect(target.servers, secrets, context, seconds, note_error, note_end, self._first)
        excerpt = not target.servers.sends_secret
        batch = 1 if self._is_careful else target.limits.messages
        publisher = Publisher(
            client, target.stream, batch, target.limits.size, excerpt=excerpt, limit=secrets.payload_limit
        )
        self._connected = client, publisher
        self._on_connected(client, server)
        await publisher.begin()
