"""
Publishes messages to JetStream in order, many at a time, and reads the PubAck of each.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.excerpts import excerpt_of
from webhookrx.observers.item_outcomes import Ack, Outcome

if TYPE_CHECKING:
    from webhookrx.observers.nats.client import NatsClient


class Outgoing(NamedTuple):
    """A message as it is published. An empty id is none."""

    subject: str
    id: str
    value: bytes


#: Error codes of JetStream, server/errors.json of nats-server.
_TOO_LARGE: Final = 10054
_HINTS: Final = {
    10023: "JetStream has no resources left",
    10039: "the account has no JetStream",
    10060: "stream= names another stream than the one that takes this subject",
    10076: "JetStream is not enabled",
    10077: "the stream is full, or can't write",
    10109: "the stream is sealed",
}
#: Between the values of a header, and around all: NATS/1.0, line ends, names and colons.
_HEADER: Final = len(b"NATS/1.0\r\n\r\n")
_FIELD: Final = len(b": \r\n")
_ID: Final = "Nats-Msg-Id"
_EXPECTED: Final = "Nats-Expected-Stream"

_NOT_PERMITTED: Final = re.compile(r'for publish to "([^"]*)"', re.IGNORECASE)


class _Error(msgspec.Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _PubAck(msgspec.Struct):
    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    error: _Error | None = None


_decode: Final = msgspec.json.Decoder(_PubAck).decode


def read_ack(status: str | None, data: bytes, stream: str | None, *, excerpt: bool = True) -> Outcome:
    """
    Return what an answer to a published message says of it. Whatever is no PubAck is not believed: any program may
    answer on a subject.

    @param status: of its header; C{"503"} means that nobody has the subject.
    @param stream: the one that must have it; None for any.
    @param excerpt: quote the words of the server.
    """
    if status is not None:
        if status == "503":
            return Unavailable("no stream takes the subject (no responders)")
        return Unavailable(f"the answer is no PubAck, but status {status[:8]}")
    try:
        answer = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Unavailable("the answer is no PubAck")
    if answer.error is not None:
        text = _describe(answer.error, excerpt=excerpt)
        return Rejected(text) if answer.error.err_code == _TOO_LARGE else Unavailable(text)
    if answer.seq < 1 or not answer.stream:
        return Unavailable("the answer is no PubAck")
    if stream is not None and answer.stream != stream:
        return Unavailable("the PubAck is of another stream than that of stream=")
    return Ack.KNOWN if answer.duplicate else Ack.STORED


def _describe(error: _Error, *, excerpt: bool) -> str:
    text = f"JetStream answers {error.code}, err_code {error.err_code}"
    if hint := _HINTS.get(error.err_code):
        text += f" ({hint})"
    words = excerpt_of(error.description) if excerpt else ""
    return f"{text}: {words}" if words else text


def header_of(message: Outgoing, stream: str | None) -> dict[str, str]:
    """Return the header of a message."""
    header = {_EXPECTED: stream} if stream is not None else {}
    return {_ID: message.id, **header} if message.id else header


def size_with_header(message: Outgoing, header: dict[str, str]) -> int:
    """
    Return the bytes that a server compares with its C{max_payload}. nats-py leaves the header out, so that a message
    just below the limit would end the connection, at every try.
    """
    size = len(message.value)
    if header:
        size += _HEADER + sum(len(name) + _FIELD + len(value.encode()) for name, value in header.items())
    return size


class Flight:
    """
    A batch under way.

    @ivar outcomes: None as long as it is unknown.
    @ivar failed: why a subject takes nothing now; later messages of it are not sent, which keeps their order.
    """

    def __init__(self, messages: Sequence[Outgoing]) -> None:
        self.messages = messages
        self.outcomes: list[Outcome | None] = [None] * len(messages)
        self.failed: dict[str, Unavailable] = {}

    def settle(self, place: int, outcome: Outcome) -> None:
        """Note what became of a message."""
        self.outcomes[place] = outcome
        if isinstance(outcome, Unavailable):
            self.failed.setdefault(self.messages[place].subject, outcome)

    def all_outcomes(self, problem: str) -> list[Outcome]:
        """
        Return an outcome for each message.

        @param problem: why the others are unknown.
        """
        return [outcome if outcome is not None else Unavailable(problem) for outcome in list(self.outcomes)]


class Publisher:
    """
    Publishes over one connection, in its loop.

    @param client: connected.
    @param stream: the one that must take all; None for any.
    @param batch: the most messages, and C{size} about the most bytes, that wait for their PubAck.
    @param excerpt: quote the words of the server.
    @param limit: bytes that the user may send at once, as far as known beside C{max_payload} of the server.
    """

    def __init__(
        self,
        client: NatsClient,
        stream: str | None,
        batch: int,
        size: int,
        *,
        excerpt: bool,
        limit: int | None = None,
    ) -> None:
        self._client = client
        self._stream = stream
        self._batch = batch
        self._size = size
        self._excerpt = excerpt
        self._own_limit = limit
        self._inbox = client.new_inbox()
        self._serial = 0
        self._flight = Flight(())
        self._waiting: dict[int, int] = {}
        self._bytes = 0
        self._limit = 0
        self._changed = asyncio.Event()
        self._problem: Exception | None = None

    async def begin(self) -> None:
        """Listen for answers."""
        await self._client.subscribe(f"{self._inbox}.*", cb=self._on_answer)

    async def publish(self, flight: Flight) -> None:
        """
        Publish all messages in order whose outcome is not known yet, and wait for their answers.

        @raise Exception: the connection has ended; C{flight} has what was answered before.
        """
        # What is still to come from an earlier flight has another number.
        self._waiting.clear()
        self._bytes = 0
        self._flight = flight
        for place, message in enumerate(flight.messages):
            if flight.outcomes[place] is not None:
                continue
            failed = flight.failed.get(message.subject)
            if failed is not None:
                flight.outcomes[place] = failed
                continue
            header = header_of(message, self._stream)
            size = size_with_header(message, header)
            limit = min(self._client.max_payload, self._own_limit or self._client.max_payload)
            if size > limit:
                flight.settle(place, Rejected(f"{size} bytes with its header are more than max_payload, {limit}"))
                continue
            if len(self._waiting) >= self._batch or self._bytes + size > self._size:
                await self._until(len(self._waiting) // 2)
            self._raise_problem()
            self._serial += 1
            self._waiting[self._serial] = place
            self._bytes += size
            await self._client.publish(
                message.subject, message.value, reply=f"{self._inbox}.{self._serial}", headers=header or None
            )
        await self._until(0)
        self._raise_problem()

    def settle_only_one(self, outcome: Outcome) -> bool:
        """Note the outcome of the message that waits for its answer, if it is the only one."""
        places = list(self._waiting.values())
        if len(places) != 1:
            return False
        # Later ones of its subject go on: it may never be taken.
        self._flight.outcomes[places[0]] = outcome
        return True

    def on_error(self, error: Exception) -> None:
        """Note what the server says beside its answers."""
        found = _NOT_PERMITTED.search(str(error))
        if found is None:
            self.end(error)
            return
        # nats-py has made it lower case.
        subject = found[1].lower()
        refusal = Unavailable("it says Permissions Violation: the user may not publish to the subject")
        for serial, place in list(self._waiting.items()):
            if self._flight.messages[place].subject.lower() == subject:
                self._settle(serial, refusal)

    def end(self, problem: Exception) -> None:
        """Note that no answer will come any more."""
        self._problem = self._problem or problem
        self._changed.set()

    async def _until(self, count: int) -> None:
        """Wait until no more than C{count} messages wait for their answer."""
        self._limit = count
        while len(self._waiting) > count and self._problem is None:
            self._changed.clear()
            await self._changed.wait()

    def _raise_problem(self) -> None:
        if self._problem is not None:
            raise self._problem

    async def _on_answer(self, answer: Any) -> None:
        number = answer.subject[len(self._inbox) + 1 :]
        if not number.isdecimal() or int(number) not in self._waiting:
            return
        status = answer.headers.get("Status") if answer.headers else None
        self._settle(int(number), read_ack(status, answer.data, self._stream, excerpt=self._excerpt))

    def _settle(self, serial: int, outcome: Outcome) -> None:
        place = self._waiting.pop(serial)
        message = self._flight.messages[place]
        self._bytes -= size_with_header(message, header_of(message, self._stream))
        self._flight.settle(place, outcome)
        if len(self._waiting) <= self._limit:
            self._changed.set()
