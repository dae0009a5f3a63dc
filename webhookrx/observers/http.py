"""
C{http:URL}: posts messages to another HTTP server.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, cast

from zope.interface import implementer

from webhookrx.backoff import Backoff, Random, parse_retry_after
from webhookrx.errors import ConfigError, Rejected, Unavailable
from webhookrx.interfaces import IWaitingObserver
from webhookrx.observers.client_tls import make_creator
from webhookrx.observers.http_client import make_client
from webhookrx.observers.http_exchange import HTTPAnswer, NoAnswer, Verdict
from webhookrx.observers.http_options import HTTPTarget, read_headers, read_http, read_token

if TYPE_CHECKING:
    from twisted.internet.interfaces import IOpenSSLClientConnectionCreator

    from webhookrx.interfaces import Prepared
    from webhookrx.observers.http_client import Client
    from webhookrx.observers.http_exchange import Header, RequestBody

    #: Makes a client of the files as they are: TLS if any, and the header fields.
    MakeClient = Callable[[HTTPTarget, IOpenSSLClientConnectionCreator | None, Sequence[Header]], Client]


FIRST_PAUSE = 0.25
"""The bound of the first pause between two tries, in seconds."""
LONGEST_PAUSE = 10.0
"""The largest bound of a pause, in seconds."""


@implementer(IWaitingObserver)
class HTTPObserver:
    """
    Posts messages to another HTTP server, and passes its promise on: a whole answer 2xx means that they are safe.

    It sends one request at a time, so that messages arrive in order. A refused request is bisected until the refused
    message is alone; the others are stored.

    @param connect: makes the client, in any thread.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: seconds since the epoch.
    @param stopping: set when the receiver stops; pauses wait on it.
    """

    promise = "durable"

    def __init__(
        self,
        spec: str,
        target: HTTPTarget,
        connect: MakeClient,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        random: Random = random.random,
        stopping: Event | None = None,
    ) -> None:
        self.spec = spec
        self.prepare = target.render_line
        self._target = target
        self._connect = connect
        self._clock = clock
        self._wall_clock = wall_clock
        self._random = random
        self._client: Client | None = None
        # An answer may repeat a secret, in any encoding.
        self._excerpt = target.token_file is None and target.headers_file is None
        self._stopping = Event() if stopping is None else stopping
        self._not_before = clock()

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
        self._stopping.clear()
        self._use(self._make_client())

    def store(self, batch: Sequence[Prepared]) -> list[Exception | None] | None:
        """
        Send a batch in order, in one or more requests, up to the first that fails.

        @return: None, or for each message None, L{Rejected}, or L{Unavailable} from the first unsent one on.
        @raise Unavailable: no message was sent.
        """
        lines = cast("Sequence[bytes]", batch)
        give_up_at = self._clock() + self._target.retry_for
        outcomes: list[Exception | None] = [None] * len(lines)
        waiting = deque(self._target.bodies.cut(lines))
        while waiting:
            begin, end = waiting.popleft()
            try:
                answer = self._send(self._target.bodies.make(lines[begin:end]), give_up_at)
            except Unavailable as problem:
                if begin == 0:
                    raise
                outcomes[begin:] = [problem] * (len(lines) - begin)
                break
            if answer.verdict is Verdict.REFUSED:
                if end - begin > 1:
                    middle = (begin + end) // 2
                    waiting.extendleft(((middle, end), (begin, middle)))
                else:
                    outcomes[begin] = Rejected(answer.describe(excerpt=self._excerpt))
        return outcomes if any(outcomes) else None

    def hurry(self) -> None:
        """End a pause between two tries, and shorten this request and the next ones."""
        self._stopping.set()
        client = self._client
        if client is not None:
            client.stop_now()

    def reopen(self) -> None:
        """
        Read the files again, and connect anew.

        @raise ConfigError: a file is wrong; the contents read before stay in use.
        """
        self._use(self._make_client())
        self._not_before = self._clock()

    def close(self) -> None:
        """Close the connection."""
        self._use(None)

    def _send(self, body: RequestBody, give_up_at: float) -> HTTPAnswer:
        """
        Post a body until an answer decides about its messages.

        @raise Unavailable: no answer did, until C{give_up_at}.
        """
        client = self._client
        if client is None:
            raise Unavailable("it is closed")
        headers = () if body.key is None else ((b"Idempotency-Key", f'"{body.key}"'.encode()),)
        problem = "it asked for a pause (Retry-After)"
        pause = self._retry_after_left()
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, self._random)
        tried = False
        while True:
            if pause or tried:
                if self._clock() + pause > give_up_at:
                    break
                self._stopping.wait(pause)
            tried = True
            try:
                answer = client.post(body.content, headers)
            except NoAnswer as error:
                problem = str(error)
            else:
                if answer.verdict is not Verdict.LATER:
                    return answer
                problem = answer.describe(excerpt=self._excerpt)
                self._note_retry_after(answer)
            # Checked after the request, which may have run for long before the receiver had to stop.
            if self._stopping.is_set():
                break
            pause = backoff.failed(self._retry_after_left())
        raise Unavailable(problem, retry_after=self._retry_after_left() or None)

    def _note_retry_after(self, answer: HTTPAnswer) -> None:
        """Note the end of a C{Retry-After}, which holds for the next batches, too."""
        seconds = parse_retry_after(answer.retry_after, self._wall_clock())
        if seconds is not None:
            self._not_before = self._clock() + seconds

    def _retry_after_left(self) -> float:
        """Return the seconds that are left of a C{Retry-After}."""
        return max(self._not_before - self._clock(), 0.0)

    def _make_client(self) -> Client:
        """
        @raise ConfigError: a file is missing or wrong; nothing has changed.
        """
        creator, headers = self._read_files()
        return self._connect(self._target, creator, headers)

    def _use(self, client: Client | None) -> None:
        """Switch to another client, and close the one before."""
        old, self._client = self._client, client
        # In this order: hurry(), in another thread, first sets the event and then stops the client.
        if client is not None and self._stopping.is_set():
            client.stop_now()
        if old is not None:
            old.close()

    def _read_files(self) -> tuple[IOpenSSLClientConnectionCreator | None, list[Header]]:
        target = self._target
        headers: list[Header] = []
        if target.token_file is not None:
            with _naming("token_file"):
                headers.append(read_token(target.token_file, target.auth_scheme))
        if target.headers_file is not None:
            with _naming("headers_file"):
                headers += read_headers(target.headers_file)
        if target.token_file is not None and any(name.lower() == b"authorization" for name, _ in headers[1:]):
            raise ConfigError("observer 'http': token_file= and headers_file= both set Authorization")
        if target.tls is None:
            return None, headers
        with _naming("TLS"):
            return make_creator(target.host, target.tls), headers


@contextmanager
def _naming(option: str) -> Iterator[None]:
    """Name the observer and the option in errors of a file."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"observer 'http': {option}: {error.problem}") from None


def request_headers(target: HTTPTarget, headers: Sequence[Header]) -> list[Header]:
    """
    Return the header fields of every request.

    @param headers: those from files; of the observer's own fields they replace only C{User-Agent}.
    """
    fields = [(b"Content-Type", target.content_type.encode())]
    if target.bodies.gzip:
        fields.append((b"Content-Encoding", b"gzip"))
    if not any(name.lower() == b"user-agent" for name, _ in headers):
        fields.append((b"User-Agent", b"webhookrx"))
    return [*fields, *headers]


def _connect(target: HTTPTarget, creator: IOpenSSLClientConnectionCreator | None, headers: Sequence[Header]) -> Client:
    """Make a client on the reactor that runs."""
    from twisted.internet import reactor

    fields = request_headers(target, headers)
    return make_client(reactor, creator, target.method, target.url, fields, target.timeout)


def build_http(spec: str, args: Sequence[str], options: Mapping[str, str], ack: str) -> HTTPObserver:
    """
    Make the observer of C{http:URL[:key=value…]}; see L{webhookrx.observers.http_options}.

    @raise ConfigError: an argument, an option or a file is wrong.
    """
    observer = HTTPObserver(spec, read_http(args, options), _connect)
    observer.check()
    return observer
