"""
The observer of every HTTP store: its connection, its secrets, and the end of its waiting.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, cast

from zope.interface import implementer

from webhookrx.errors import ConfigError, Unavailable
from webhookrx.interfaces import IStoreObserver
from webhookrx.observers.client_tls import make_creator
from webhookrx.observers.http_stores.client import make_client
from webhookrx.observers.http_stores.delivery import Delivery
from webhookrx.observers.retrying import Retries
from webhookrx.store_counts import StoreCounts

if TYPE_CHECKING:
    from twisted.internet.interfaces import IOpenSSLClientConnectionCreator

    from webhookrx.backoff import Random
    from webhookrx.interfaces import Prepared
    from webhookrx.observers.http_stores.client import Client
    from webhookrx.observers.http_stores.exchange import Header, HTTPAnswer, StoreRequest
    from webhookrx.observers.http_stores.options import HTTPTarget
    from webhookrx.observers.http_stores.store import HTTPStore

    #: Makes a client of the files as they are: TLS if any, and the header fields.
    MakeClient = Callable[[HTTPTarget, HTTPStore, IOpenSSLClientConnectionCreator | None, Sequence[Header]], Client]


@implementer(IStoreObserver)
class HTTPObserver:
    """
    Posts messages to an HTTP store, and passes its promise on.

    It sends one request at a time, so that messages arrive in order. What the store has judged one by one is settled
    so; a request that is refused as a whole is bisected until the refused message is alone, and the others are stored.

    @param connect: makes the client, in any thread.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: seconds since the epoch.
    @param stopping: set when the receiver stops; pauses wait on it.
    """

    def __init__(
        self,
        spec: str,
        target: HTTPTarget,
        store: HTTPStore,
        connect: MakeClient,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        random: Random = random.random,
        stopping: Event | None = None,
    ) -> None:
        self.spec = spec
        self.prepare = store.render
        self.takes_lines = store.takes_lines
        self.promise = store.promise
        self.promise_reason = store.promise_reason
        self.wants = store.wants
        self.counts = StoreCounts()
        self._target = target
        self._store = store
        self._connect = connect
        self._clock = clock
        self._client: Client | None = None
        # An answer may repeat a secret, in any encoding.
        self._quotes = not target.secrets
        self._wall_clock = wall_clock
        self._retries = Retries(target.retry_for, clock, random, stopping)

    def check(self) -> None:
        """
        Read the files, without opening a connection.

        @raise ConfigError: a file is missing or wrong.
        """
        self._read_files()

    def open(self) -> None:
        """
        Read the files. The first request connects: the server may be away at the start.

        @raise ConfigError: a file is missing or wrong.
        """
        # It may have been stopped, and be needed again.
        self._retries.resume()
        self._use(self._make_client())

    def store(self, batch: Sequence[Prepared]) -> list[Exception | None] | None:
        """
        Send a batch in order, in one or more requests, up to the first that fails.

        @return: None, or for each message None, L{Rejected}, or L{Unavailable} from the first unsent one on.
        @raise Unavailable: no message was sent.
        """
        if self._client is None:
            raise Unavailable("it is closed")
        delivery = Delivery(
            self._store,
            cast("Sequence[bytes]", batch),
            self._retries,
            self._post,
            self.counts,
            self._clock,
            self._wall_clock,
            quotes=self._quotes,
        )
        delivery.run()
        return delivery.outcomes if any(delivery.outcomes) else None

    def hurry(self) -> None:
        """End a pause between two tries, and shorten this request and the next ones."""
        self._retries.hurry()
        client = self._client
        if client is not None:
            client.stop_now()

    def reopen(self) -> None:
        """
        Read the files again, and connect anew.

        @raise ConfigError: a file is wrong; the contents read before stay in use.
        """
        self._use(self._make_client())
        self._retries.forget_pause()

    def close(self) -> None:
        """Close the connection."""
        self._use(None)

    def _post(self, request: StoreRequest) -> HTTPAnswer:
        client = self._client
        assert client is not None  # store() and close() are never called two at a time
        return client.post(request, self._retries.time_left())

    def _make_client(self) -> Client:
        """
        @raise ConfigError: a file is missing or wrong; nothing has changed.
        """
        creator, headers = self._read_files()
        return self._connect(self._target, self._store, creator, headers)

    def _use(self, client: Client | None) -> None:
        """Switch to another client, and close the one before."""
        old, self._client = self._client, client
        # In this order: hurry(), in another thread, first sets the event and then stops the client.
        if client is not None and self._retries.stopping.is_set():
            client.stop_now()
        if old is not None:
            old.close()

    def _read_files(self) -> tuple[IOpenSSLClientConnectionCreator | None, list[Header]]:
        target = self._target
        headers: list[Header] = []
        setters: dict[bytes, tuple[str, str]] = {}
        for secret in target.secrets:
            with self._naming(secret.option):
                fields = secret.read(secret.path)
            for name, _ in fields:
                option, written = setters.setdefault(name.lower(), (secret.option, name.decode()))
                if option != secret.option:
                    problem = f"{option}= and {secret.option}= both set {written}"
                    raise ConfigError(f"observer {target.name!r}: {problem}")
            headers += fields
        if target.tls is None:
            return None, headers
        with self._naming("TLS"):
            return make_creator(target.host, target.tls), headers

    @contextmanager
    def _naming(self, option: str) -> Iterator[None]:
        """Name the observer and the option in errors of a file."""
        try:
            yield
        except ConfigError as error:
            raise ConfigError(f"observer {self._target.name!r}: {option}: {error.problem}") from None


def request_headers(store: HTTPStore, headers: Sequence[Header]) -> list[Header]:
    """
    Return the header fields of every request.

    @param headers: those from files; of the observer's own fields they replace only C{User-Agent}.
    """
    fields = store.fields()
    if not any(name.lower() == b"user-agent" for name, _ in headers):
        fields.append((b"User-Agent", b"webhookrx"))
    return [*fields, *headers]


def connect(
    target: HTTPTarget,
    store: HTTPStore,
    creator: IOpenSSLClientConnectionCreator | None,
    headers: Sequence[Header],
) -> Client:
    """Make a client on the reactor that runs."""
    from twisted.internet import reactor

    fields = request_headers(store, headers)
    return make_client(
        reactor, creator, target.method, target.url, fields, target.timeout, store.keep, store.answer_fields
    )
