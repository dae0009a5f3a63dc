"""
Reads a stream of NATS JetStream as one of a group of relays, which share a durable pull consumer.

A message is acknowledged once it is settled, and the acknowledgement is confirmed by the server. Until then the server
is told every third of C{ack_wait} that it is in progress, so that nobody else gets it while the observer is away.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any, Final, TypeVar

import nats.errors
from twisted.logger import Logger

from webhookrx.errors import Unavailable
from webhookrx.observers.nats.asyncio_thread import AsyncioThread
from webhookrx.observers.nats.client import NatsClient, close, connect, reason_of
from webhookrx.observers.nats.options import NatsAccess, read_access
from webhookrx.observers.retrying import STEP
from webhookrx.relay.consumer import BrokerOptions, Record
from webhookrx.relay.nats_durable import explain, find_or_make
from webhookrx.relay.nats_source import DEFAULT_ACK_WAIT, NatsSource, read_place
from webhookrx.relay.unsettled import Unsettled, UnsettledRecord

if TYPE_CHECKING:
    from nats.js.api import ConsumerConfig

T = TypeVar("T")

_CALL_TIME: Final = 1.0
"""Seconds that a call may take besides its wait for the first record."""
_CONNECT_TIME: Final = 10.0
"""Seconds for connecting to one server, in the background."""
_QUIET: Final = 0.005
"""Seconds without a further message after which what was there is complete, should the end of a request be lost."""

_PROGRESS: Final = b"+WPI"
_REJECT: Final = b"-NAK"

_log = Logger()


class NatsConsumer:
    """
    A consumer, see L{webhookrx.relay.consumer.Consumer}. Besides the thread of the relay it has one with a loop; what
    both read and write is only touched by the latter while the former waits.

    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, spec: str, source: NatsSource, clock: Callable[[], float] = time.monotonic) -> None:
        self.spec = spec
        self._source = source
        self._clock = clock
        self._options = BrokerOptions("nats", {})
        self._thread = AsyncioThread("webhookrx-relay-nats")
        self._stopping = Event()
        self._access: NatsAccess | None = None
        self._client: NatsClient | None = None
        self._connecting: asyncio.Task[NatsClient] | None = None
        self._first = 0
        self._serial = 0
        self._news = asyncio.Event()
        self._statuses: dict[str, str] = {}
        self._answers: dict[str, UnsettledRecord] = {}
        self._unsettled = Unsettled(source.ack_wait or DEFAULT_ACK_WAIT, clock)
        self._asked = clock()
        self._lag: int | None = None
        self._warned = False

    def check(self) -> None:
        """
        Read the files.

        @raise ConfigError: a file is missing or wrong.
        """
        self._read_files()

    def open(self) -> None:
        """Read the files; the first fetch connects."""
        self._access = self._read_files()

    def fetch(self, messages: int, size: int, seconds: float) -> Sequence[Record]:
        """Ask for what is there, and wait for the next one if there is nothing."""
        return self._run(self._fetch(messages, size, seconds), seconds + _CALL_TIME)

    def settle(self, records: Sequence[Record]) -> None:
        """Acknowledge messages, and wait until the server has confirmed that."""
        held = self._unsettled.find(records)
        if held:
            self._run(self._settle(held), _CALL_TIME)

    def keep_alive(self) -> None:
        """Tell the server that messages are in progress, after connecting anew if that is needed."""
        self._unsettled.forget_lost()
        held = self._unsettled.due()
        if not held:
            return
        try:
            self._run(self._keep(held), _CALL_TIME)
        except Exception:
            # The next fetch or settle says what is wrong.
            _log.debug("Broker {spec} was not told what is in progress", spec=self.spec)

    def is_ours(self, record: Record) -> bool:
        """Tell whether the server has not given it to another one, as far as we can know."""
        return self._unsettled.is_ours(record)

    def lag(self) -> int | None:
        """Return how many messages wait, as of the last one that came."""
        return self._lag

    def reopen(self) -> None:
        """Read the files again; they are used by the next connection, which is made at once."""
        self._access = self._read_files()
        self._disconnect()

    def hurry(self) -> None:
        """End the wait for the next message."""
        self._stopping.set()

    def close(self) -> None:
        """Give back what is not settled, and close the connection."""
        client, self._client = self._client, None
        if client is not None:
            try:
                self._thread.run(close(client, _tell(client, self._unsettled.all(), _REJECT)), [STEP] * 20)
            except Exception:
                _log.debug("Broker {spec} was not told what is not settled", spec=self.spec)
        self._thread.close()

    # -- in the relay's thread -------------------------------------------------------------------------------------

    def _run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """
        @raise Unavailable: it fails, or takes longer.
        """
        steps = [STEP] * (int(seconds / STEP) + 1)
        try:
            return self._thread.run(work, steps)
        except Unavailable:
            raise
        except (TimeoutError, asyncio.CancelledError):
            problem = "no answer in time"
        except (nats.errors.Error, OSError) as error:
            problem = reason_of(error, excerpt=not self._source.servers.sends_secret)
        self._disconnect()
        raise Unavailable(problem)

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            try:
                self._thread.run(close(client), [STEP] * 10)
            except Exception:
                client.abort()

    def _read_files(self) -> NatsAccess:
        return read_access(self._source.servers, self._options)

    # -- in the loop -----------------------------------------------------------------------------------------------

    async def _connected(self, seconds: float) -> NatsClient:
        """
        Return the connection, which is made in the background.

        @raise Unavailable: there is none, or not within C{seconds}.
        """
        if self._client is not None and self._client.is_connected:
            return self._client
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
        done, _ = await asyncio.wait([self._connecting], timeout=seconds)
        if not done:
            raise Unavailable("it has not answered yet")
        task, self._connecting = self._connecting, None
        self._client = task.result()
        return self._client

    async def _connect(self) -> NatsClient:
        access = self._access
        if access is None:
            raise Unavailable("it is closed")
        source = self._source
        problems: list[Exception] = []
        client, _ = await connect(
            source.servers, *access, _CONNECT_TIME, problems.append, self._news.set, first=self._first
        )
        try:
            await self._set_up(client)
        except BaseException as error:
            self._first += 1
            await close(client)
            if isinstance(error, (nats.errors.Error, OSError, TimeoutError)):
                # A missing right is said beside the answers, of which there is none.
                told = problems[0] if problems else error
                raise Unavailable(explain(told, source)) from None
            raise
        return client

    async def _set_up(self, client: NatsClient) -> None:
        """Find or make the durable consumer, and listen."""
        config = await find_or_make(client, self._source, _CONNECT_TIME / 2)
        self._look_at(config)
        self._unsettled.keep_for = config.ack_wait or DEFAULT_ACK_WAIT
        self._inbox = client.new_inbox()
        self._statuses.clear()
        self._answers.clear()
        await client.subscribe(f"{self._inbox}.*", cb=self._on_message)

    def _look_at(self, config: ConsumerConfig) -> None:
        """Warn once of a consumer with which messages may get lost."""
        if (config.max_deliver or -1) > 0 and not self._warned:
            self._warned = True
            _log.warn(
                "Broker {spec}: consumer {name} has max_deliver={count}: after so many deliveries JetStream gives a "
                "message up",
                spec=self.spec,
                name=self._source.durable,
                count=config.max_deliver,
            )

    async def _fetch(self, messages: int, size: int, seconds: float) -> list[Record]:
        began = self._clock()
        client = await self._connected(max(seconds, 0.5))
        records = self._unsettled.take(messages, size)
        if records:
            return records
        status = await self._pull(client, {"batch": messages, "max_bytes": max(size, 1), "no_wait": True}, _CALL_TIME)
        if status.startswith("409") and not self._unsettled.arrived:
            # The next one is larger than that.
            await self._pull(client, {"batch": 1, "no_wait": True}, _CALL_TIME)
        left = began + seconds - self._clock()
        if not self._unsettled.arrived and left > 0 and not self._stopping.is_set():
            await self._pull(client, {"batch": 1, "expires": int(left * 1e9)}, left)
        return self._unsettled.take(messages, size)

    async def _pull(self, client: NatsClient, request: dict[str, Any], seconds: float) -> str:
        """
        Make one request, and wait until all messages for it, or its end, have come.

        @return: the status with which it has ended; empty if it has not said.
        @raise Unavailable: there is no such consumer any more, or no answer.
        """
        self._serial += 1
        reply = f"{self._inbox}.p{self._serial}"
        source = self._source
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{source.stream}.{source.durable}"
        unsettled = self._unsettled
        enough = unsettled.arrived + request["batch"]
        self._statuses.clear()
        self._asked = self._clock()
        await client.publish(subject, json.dumps(request).encode(), reply=reply)
        end = self._clock() + seconds
        lingers = "expires" in request
        while unsettled.arrived < enough and reply not in self._statuses:
            if not client.is_connected:
                raise Unavailable("it has closed the connection")
            left = end - self._clock()
            if left <= 0 or (lingers and self._stopping.is_set()):
                if lingers or unsettled.arrived:
                    return ""
                # A consumer that is not there does not answer either. The next connection looks for it.
                self._client = None
                await close(client)
                raise Unavailable("no answer in time")
            before = unsettled.arrived
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), _QUIET if before else min(left, STEP))
            except TimeoutError:
                if before and unsettled.arrived == before:
                    return ""
        status = self._statuses.get(reply, "")
        if status.startswith("404") and not unsettled.all():
            self._lag = 0
        if status.startswith("503") or status == "409 Consumer Deleted":
            self._client = None
            await close(client)
            raise Unavailable(f"there is no consumer {source.durable} any more")
        return status

    async def _on_message(self, message: Any) -> None:
        token = message.subject[len(self._inbox) + 1 :] if message.subject.startswith(f"{self._inbox}.") else ""
        headers = message.headers or {}
        if token.startswith("a"):
            self._answers.pop(token, None)
        elif token.startswith("p"):
            self._statuses[message.subject] = f"{headers.get('Status', '')} {headers.get('Description', '')}".strip()
        elif message.reply:
            self._deliver(message.reply, message.data, headers)
        self._news.set()

    def _deliver(self, reply: str, data: bytes, headers: dict[str, str]) -> None:
        """Take a message that was delivered."""
        place = read_place(reply)
        if place is None:
            return
        sequence, delivered, received, self._lag = place
        own = headers.get("webhookrx-id") or headers.get("Nats-Msg-Id") or ""
        origin = f"{self._source.stream}/{sequence}"
        self._unsettled.deliver(
            Record(data, own, origin, received, object(), redelivered=delivered > 1), reply, self._asked
        )

    async def _settle(self, held: Sequence[UnsettledRecord]) -> None:
        client = await self._connected(_CALL_TIME / 2)
        self._answers.clear()
        for each in held:
            self._serial += 1
            self._answers[f"a{self._serial}"] = each
            await client.publish(each.token, b"", reply=f"{self._inbox}.a{self._serial}")
        end = self._clock() + _CALL_TIME / 2
        while self._answers and client.is_connected and self._clock() < end:
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), STEP)
            except TimeoutError:
                continue
        missing = {each.record.origin for each in self._answers.values()}
        for each in held:
            if each.record.origin not in missing:
                self._unsettled.forget(each.record.origin)
        if missing:
            raise Unavailable(f"{len(missing)} acknowledgements are not confirmed")

    async def _keep(self, held: Sequence[UnsettledRecord]) -> None:
        client = await self._connected(_CALL_TIME / 2)
        now = self._clock()
        await _tell(client, held, _PROGRESS)
        self._unsettled.keep(held, now)


async def _tell(client: NatsClient, held: Sequence[UnsettledRecord], word: bytes) -> None:
    """Say something about messages that are not settled, and wait until the server has read it."""
    for each in held:
        await client.publish(each.token, word)
    await asyncio.wait_for(client.flush(), 1.0)
