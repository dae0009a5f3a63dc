"""
An HTTP store that is played: it takes the place of the client, so that requests and answers are values.

Mix L{HTTPStoreContract} into a C{SynchronousTestCase} that says what the server does with a request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from tests.contracts.fake_time import FakeTime
from tests.contracts.store_contract import Record, Row, StoreContract
from webhookrx.config.observers import ObserverSpec
from webhookrx.observers.http_stores.exchange import Extent, HTTPAnswer, NoAnswer
from webhookrx.observers.http_stores.observer import HTTPObserver, request_headers
from webhookrx.observers.retrying import STOP_TIME

if TYPE_CHECKING:
    from webhookrx.observers.http_stores.client import Client
    from webhookrx.observers.http_stores.exchange import Header, StoreRequest
    from webhookrx.observers.http_stores.options import HTTPTarget
    from webhookrx.observers.http_stores.store import HTTPStore

#: What a server does with a request: its answer; raises L{NoAnswer}.
Serve = Callable[["StoreRequest"], HTTPAnswer]


def answer(status: int, body: object = b"", **fields: Any) -> HTTPAnswer:
    """Make an answer; a body that is no bytes becomes JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HTTPAnswer(status, beginning=content, **fields)


def cut(whole: HTTPAnswer) -> HTTPAnswer:
    """Return an answer that is longer than what is kept of it."""
    return HTTPAnswer(whole.status, beginning=whole.beginning[: len(whole.beginning) // 2], extent=Extent.LONG)


def broken(whole: HTTPAnswer) -> HTTPAnswer:
    """Return an answer whose connection was lost after the head."""
    return HTTPAnswer(whole.status, whole.retry_after, extent=Extent.BROKEN)


class PlayedClient:
    """
    Takes the place of L{webhookrx.observers.http_stores.client.Client}.

    @ivar serve: what is done with each request.
    @ivar requests: all that were made.
    @ivar headers: the header fields of each request, with those that all have.
    @ivar seconds: how long a request takes.
    """

    def __init__(self, time: FakeTime, serve: Serve) -> None:
        self.serve = serve
        self.requests: list[StoreRequest] = []
        self.headers: list[dict[bytes, bytes]] = []
        self.seconds = 0.01
        self.timeout = 10.0
        self._fields: Sequence[Header] = ()
        self._stop_at: float | None = None
        self._time = time

    def connect(self, target: HTTPTarget, store: HTTPStore, creator: object, headers: Sequence[Header]) -> Client:
        """Take the place of what makes a client."""
        self._fields = request_headers(store, headers)
        self.timeout = target.timeout
        self._stop_at = None
        return cast("Client", self)

    def post(self, request: StoreRequest, at_most: float | None = None) -> HTTPAnswer:
        """Let the server do what it does."""
        self.requests.append(request)
        self.headers.append(dict([*self._fields, *request.headers]))
        self._time.sleep(self.seconds)
        self.limit = self.timeout if at_most is None else min(at_most, self.timeout)
        return self.serve(request)

    def no_answer(self, request: StoreRequest) -> HTTPAnswer:
        """Let all time pass that a request may take."""
        end = self._time.now + self.limit - self.seconds
        self._time.sleep(max(end - self._time.now, 0.0), self._is_stopped)
        raise NoAnswer("no answer in time")

    def stop_now(self) -> None:
        """Let a request that is under way take three more seconds."""
        self._stop_at = self._time.now + STOP_TIME
        self._time.at(STOP_TIME, lambda: None)

    def close(self) -> None:
        """Do nothing."""

    def _is_stopped(self) -> bool:
        return self._stop_at is not None and self._time.now >= self._stop_at


class HTTPStoreContract(StoreContract):
    """
    What every HTTP store keeps to. Mix it into a C{SynchronousTestCase}, with C{rows} whose answers are L{HTTPAnswer}.

    @cvar url: of the server, on this machine.
    @cvar spec: what the observer declares.
    @cvar secret_option: the option that names a file with a secret.
    @ivar client: what plays the client.
    @ivar store_value: the store of the observer that was made last.
    """

    url: str
    spec: ObserverSpec
    secret_option = "token_file"
    store_value: HTTPStore

    def read(self, args: Sequence[str], options: dict[str, str]) -> tuple[HTTPTarget, HTTPStore]:
        """Read a spec string that is taken apart."""
        raise NotImplementedError

    def serve(self, request: StoreRequest) -> HTTPAnswer:
        """Do what the server does as long as nothing is wrong: store the messages, and refuse C{self.refused}."""
        raise NotImplementedError

    def serve_half(self, request: StoreRequest) -> HTTPAnswer:
        """Store the beginning of a request, as far as the server can do so, and fail."""
        raise NotImplementedError

    def secret_of(self, headers: dict[bytes, bytes]) -> str:
        """Return the secret that came with a request."""
        return headers[b"Authorization"].decode().rpartition(" ")[2]

    def setUp(self) -> None:
        """Make a server that holds nothing."""
        super().setUp()
        self.records: list[Record] = []
        self.refused: str | None = None
        self.client = PlayedClient(self.time, self.serve)

    def make_observer(self, **options: str) -> HTTPObserver:
        """Make one that is not open."""
        target, self.store_value = self.read((self.url,), options)
        return HTTPObserver(
            f"{target.name}:{self.url}",
            target,
            self.store_value,
            self.client.connect,
            self.time,
            lambda: 0.0,
            lambda: 1.0,
            self.time,
        )

    def opened_with(self, **options: str) -> HTTPObserver:
        """Make one with options, and open it."""
        observer = self.make_observer(**options)
        observer.open()
        return observer

    def make_secret_observer(self, path: str) -> HTTPObserver:
        """Make one that reads its secret from a file."""
        return self.make_observer(**{self.secret_option: path})

    def shown_secret(self) -> str:
        """Ask the last request."""
        return self.secret_of(self.client.headers[-1])

    def stored_records(self) -> list[Record]:
        """Ask the server."""
        return self.records

    def break_observer(self) -> None:
        """Let the server be away for good."""

        def refuse_connection(request: StoreRequest) -> HTTPAnswer:
            raise NoAnswer("connection refused")

        self.client.serve = refuse_connection

    def mend(self) -> None:
        """Let it do as it should."""
        self.client.serve = self.serve
        self.refused = None

    def answer_with(self, answer: Any) -> None:
        """Give one answer to each request."""
        is_stored = any(row.answer is answer and row.fate == "stored" for row in self.rows)

        def give(request: StoreRequest) -> HTTPAnswer:
            if is_stored:
                self.serve(request)
            return cast("HTTPAnswer", answer)

        self.client.serve = give

    def lose_answer(self) -> None:
        """Store what comes next, and break the connection."""

        def lose(request: StoreRequest) -> HTTPAnswer:
            self.client.serve = self.serve
            self.serve(request)
            raise NoAnswer("the connection was closed without an answer")

        self.client.serve = lose

    def store_half(self) -> None:
        """Fail in the middle of the next request."""

        def fail(request: StoreRequest) -> HTTPAnswer:
            self.client.serve = self.serve
            return self.serve_half(request)

        self.client.serve = fail

    def stall(self) -> None:
        """Answer nothing."""
        self.client.serve = self.client.no_answer

    def refuse(self, text: str) -> None:
        """Refuse messages with this text for good."""
        self.refused = text

    def quote_secret(self) -> None:
        """Repeat what came."""

        def repeat(request: StoreRequest) -> HTTPAnswer:
            fields = b" ".join(self.client.headers[-1].values())
            return HTTPAnswer(400, beginning=fields + b" " + self.shown_secret().encode())

        self.client.serve = repeat

    def test_too_large_together(self) -> None:
        """A request that is too large says nothing of its messages: it is divided, and all of them are stored."""
        observer = self.opened()
        sizes: list[int] = []

        def serve(request: StoreRequest) -> HTTPAnswer:
            sizes.append(len(request.content))
            return HTTPAnswer(413) if sizes[-1] > sizes[0] * 0.75 or len(sizes) == 1 else self.serve(request)

        self.client.serve = serve

        self.assertEqual([], self.deliver(observer, *"abcd", tries=1))

        self.assert_stored(*"abcd")
        observer.close()


__all__ = ["HTTPStoreContract", "PlayedClient", "Record", "Row", "answer", "broken", "cut"]
