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
from webhookrx.observers.http_answers import Answer, Verdict
from webhookrx.observers.http_client import NoAnswer, make_client
from webhookrx.observers.http_headers import read_headers, read_token
from webhookrx.observers.http_settings import Target, read_target

if TYPE_CHECKING:
    from twisted.internet.interfaces import IOpenSSLClientConnectionCreator

    from webhookrx.interfaces import Prepared
    from webhookrx.observers.http_bodies import Body
    from webhookrx.observers.http_client import Client, Reactor
    from webhookrx.observers.http_headers import Header

    #: Makes a client of the files as they are: TLS if any, and the header fields.
    MakeClient = Callable[[Target, IOpenSSLClientConnectionCreator | None, Sequence[Header]], Client]


FIRST_PAUSE = 0.25
"""The bound of the first pause between two tries, in seconds."""
LONGEST_PAUSE = 10.0
"""The largest bound of a pause, in seconds."""


@implementer(IWaitingObserver)
class HTTPObserver:
    """
    Posts messages to another HTTP server, which has them safe once its 2xx has come whole: its word is passed on.

    One request at a time, so that messages arrive in order. What a server refuses for good is sought out by halves,
    until it is alone; the rest is sent.

    @param spec: the spec string.
    @param target: where to, and how.
    @param connect: makes the client, in whatever thread.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: seconds since the epoch.
    @param random: spreads the pauses.
    @param stopping: is set when the receiver stops; pauses wait on it.
    """

    promise = "durable"

    def __init__(
        self,
        spec: str,
        target: Target,
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
        # Whatever an answer repeats of a secret, in whatever disguise, is not told.
        self._excerpt = target.token_file is None and target.headers_file is None
        self._stopping = Event() if stopping is None else stopping
        self._not_before = clock()

    def check(self) -> None:
        """
        Read every file that is named, without opening a connection.

        @raise ConfigError: one of them is missing or wrong.
        """
        self._read_files()

    def open(self) -> None:
        """
        Read the files. The first connection is made with the first request: the other end may be away.

        @raise ConfigError: a file is missing or wrong.
        """
        # It may have been closed in a hurry, and be needed again after all.
        self._stopping.clear()
        self._use(self._make_client())

    def store(self, batch: Sequence[Prepared]) -> list[Exception | None] | None:
        """
        Send a batch, in as many requests as it takes, in order: after the first that fails nothing more is sent.

        @return: None, or for each message None, L{Rejected}, or L{Unavailable} from the first on that was not sent.
        @raise Unavailable: the first messages could not be sent already.
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
        """End a pause between two tries, and let the requests that are still to come be short."""
        self._stopping.set()
        client = self._client
        if client is not None:
            client.hurry()

    def reopen(self) -> None:
        """
        Read the files again, and connect anew with what they hold.

        @raise ConfigError: one is wrong; what was read before stays in use.
        """
        self._use(self._make_client())
        self._not_before = self._clock()

    def close(self) -> None:
        """Close the connection."""
        self._use(None)

    def _send(self, body: Body, give_up_at: float) -> Answer:
        """
        Post a body until the answer decides on its messages.

        @raise Unavailable: none did, in the tries that there was time for.
        """
        client = self._client
        if client is None:
            raise Unavailable("it is closed")
        headers = () if body.key is None else ((b"Idempotency-Key", f'"{body.key}"'.encode()),)
        problem = "it asked to be left alone"
        pause = self._asked_for()
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
                self._heed(answer)
            # Looked at after the request, which may have been under way for long when the receiver was told to stop.
            if self._stopping.is_set():
                break
            pause = backoff.failed(self._asked_for())
        raise Unavailable(problem, retry_after=self._asked_for() or None)

    def _heed(self, answer: Answer) -> None:
        """Note until when the other end wants to be left alone: that holds for the batches to come, too."""
        seconds = parse_retry_after(answer.retry_after, self._wall_clock())
        if seconds is not None:
            self._not_before = self._clock() + seconds

    def _asked_for(self) -> float:
        """Return for how many seconds more the other end wants to be left alone."""
        return max(self._not_before - self._clock(), 0.0)

    def _make_client(self) -> Client:
        """
        @raise ConfigError: a file is missing or wrong; nothing has changed.
        """
        creator, headers = self._read_files()
        return self._connect(self._target, creator, headers)

    def _use(self, client: Client | None) -> None:
        """Have another client, and close the one before."""
        old, self._client = self._client, client
        # In this order: hurry(), beside this, first says so and then looks for the client.
        if client is not None and self._stopping.is_set():
            client.hurry()
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
    """Put the observer and the option before what is wrong with a file."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"observer 'http': {option}: {error.problem}") from None


def fields_of(target: Target, headers: Sequence[Header]) -> list[Header]:
    """
    Return the header fields of every request.

    @param headers: those from files; only what the observer says of itself gives way to them.
    """
    fields = [(b"Content-Type", target.content_type.encode())]
    if target.bodies.gzip:
        fields.append((b"Content-Encoding", b"gzip"))
    if not any(name.lower() == b"user-agent" for name, _ in headers):
        fields.append((b"User-Agent", b"webhookrx"))
    return [*fields, *headers]


def _connect(target: Target, creator: IOpenSSLClientConnectionCreator | None, headers: Sequence[Header]) -> Client:
    """Make a client on the reactor that runs."""
    from twisted.internet import reactor

    fields = fields_of(target, headers)
    return make_client(cast("Reactor", reactor), creator, target.method, target.url, fields, target.timeout)


def build_http(spec: str, args: Sequence[str], options: Mapping[str, str], ack: str) -> HTTPObserver:
    """
    Make the observer of C{http:URL[:key=value…]}; see L{webhookrx.observers.http_settings}.

    @raise ConfigError: an argument or option is wrong, or a file that one names.
    """
    observer = HTTPObserver(spec, read_target(args, options), _connect)
    observer.check()
    return observer
