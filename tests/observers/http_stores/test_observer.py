"""The http observer with a server that is played: what is sent again, what is divided, what is given up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from threading import Event
from typing import TYPE_CHECKING, cast

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.contracts.observer_contract import ObserverContract
from webhookrx.errors import ConfigError, Rejected, Unavailable
from webhookrx.interfaces import IWaitingObserver
from webhookrx.observers.http_stores.exchange import HTTPAnswer, NoAnswer
from webhookrx.observers.http_stores.http import build_http, read_http
from webhookrx.observers.http_stores.observer import HTTPObserver, request_headers
from webhookrx.testing import make_message

if TYPE_CHECKING:
    from webhookrx.observers.http_stores.client import Client
    from webhookrx.observers.http_stores.exchange import Header, StoreRequest
    from webhookrx.observers.http_stores.options import HTTPTarget
    from webhookrx.observers.http_stores.store import HTTPStore

URL = "http://127.0.0.1:8080/in"

#: What the server does with a request: its answer, or why there is none.
Play = Callable[[bytes], "HTTPAnswer | NoAnswer"]


class Clock(Event):
    """A monotonic clock, and an event on which waiting takes no time but lets the clock go on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        """Let time pass, unless the event is set."""
        assert timeout is not None
        self.pauses.append(timeout)
        if not self.is_set():
            self.now += timeout
        return self.is_set()


class Server:
    """
    Plays server and client.

    @ivar plays: what is done with the next requests; afterwards all are stored.
    @ivar play: what is done with those after them.
    @ivar bodies: each that was posted.
    @ivar keys: the idempotency key of each.
    @ivar stored: bodies that were answered 2xx.
    @ivar at_most: the seconds of requests that have fewer than others.
    """

    def __init__(self, clock: Clock, *plays: HTTPAnswer | NoAnswer) -> None:
        self.clock = clock
        self.plays = list(plays)
        self.play: Play = lambda body: HTTPAnswer(200)
        self.bodies: list[bytes] = []
        self.keys: list[bytes | None] = []
        self.stored: list[bytes] = []
        self.log: list[str] = []
        self.at_most: list[float] = []
        self.fields: Sequence[Header] = ()

    def connect(self, target: HTTPTarget, store: HTTPStore, creator: object, headers: Sequence[Header]) -> Client:
        """Take the place of what makes a client."""
        self.fields = headers
        return cast("Client", self)

    def post(self, request: StoreRequest, at_most: float | None = None) -> HTTPAnswer:
        """HTTPAnswer as told. It takes an eighth of a second."""
        content, headers, _ = request
        if at_most is not None:
            self.at_most.append(at_most)
        self.clock.now += 0.125
        self.bodies.append(content)
        self.keys.append(dict(headers).get(b"Idempotency-Key"))
        play = self.plays.pop(0) if self.plays else self.play(content)
        if isinstance(play, NoAnswer):
            raise play
        if play.status < 300:
            self.stored.append(content)
        return play

    def stop_now(self) -> None:
        """Note it."""
        self.log.append("stop_now")

    def close(self) -> None:
        """Note it."""
        self.log.append("close")

    def stored_texts(self) -> list[str]:
        """Return the texts of the messages that are stored."""
        return [json.loads(line)["MESSAGE"] for body in self.stored for line in body.decode().splitlines()]


def refuse(word: bytes, status: int = 400) -> Play:
    """Refuse each body that holds a word."""
    return lambda body: HTTPAnswer(status, beginning=b"no") if word in body else HTTPAnswer(200)


class _HTTPTests(SynchronousTestCase):
    observer: HTTPObserver

    def setUp(self) -> None:
        """Make a clock and a server."""
        self.clock = Clock()
        self.server = Server(self.clock)

    def make(self, **options: str) -> HTTPObserver:
        """Make an observer whose pauses are as long as they may be."""
        target, store = read_http((URL,), options)
        return HTTPObserver(
            f"http:{URL}", target, store, self.server.connect, self.clock, lambda: 0.0, lambda: 1.0, self.clock
        )

    def open(self, **options: str) -> HTTPObserver:
        """Make one and open it."""
        self.observer = self.make(**options)
        self.observer.open()
        return self.observer

    def send(self, *texts: str) -> Sequence[Exception | None] | None:
        """Store messages."""
        return self.observer.store([self.observer.prepare(make_message(text)) for text in texts])

    def write(self, content: bytes) -> str:
        """Write a file and return its path."""
        path = os.path.abspath(self.mktemp())
        with open(path, "wb") as file:
            file.write(content)
        return path


class HTTPContractTests(ObserverContract, _HTTPTests):
    """An http observer is an observer."""

    def make_observer(self) -> HTTPObserver:
        """Make one that is not open."""
        return self.make()

    def break_observer(self) -> None:
        """Let the server be away for good."""
        self.clock.set()
        self.server.play = lambda body: NoAnswer("connection refused")

    def stored_texts(self) -> list[str]:
        """Ask the server."""
        return self.server.stored_texts()

    def test_waiting(self) -> None:
        """It is one that may wait."""
        self.assertTrue(verifyObject(IWaitingObserver, self.make_observer()))


class SendTests(_HTTPTests):
    """What is asked of the server."""

    def test_requests(self) -> None:
        """A batch goes out in requests of at most so many messages, in order, each under its own key."""
        self.open(batch="2")

        self.assertIsNone(self.send("a", "b", "c", "d", "e"))

        self.assertEqual([2, 2, 1], [body.count(b"\n") for body in self.server.bodies])
        self.assertEqual(["a", "b", "c", "d", "e"], self.server.stored_texts())
        self.assertEqual(3, len({*self.server.keys}))

    def test_key(self) -> None:
        """The key is a string of a structured field, and the same for each try and for the same batch later."""
        self.server.plays = [HTTPAnswer(503), NoAnswer("reset")]
        self.open()

        self.send("a")
        self.send("a")

        self.assertEqual([self.server.keys[0]] * 4, self.server.keys)
        self.assertRegex(cast(bytes, self.server.keys[0]), rb'^"[0-9a-f]{64}"$')

    def test_no_key(self) -> None:
        """Texts that two messages may share go without a key."""
        self.open(template="$MESSAGE")

        self.send("a")

        self.assertEqual(([None], [b"a"]), (self.server.keys, self.server.bodies))

    def test_nothing(self) -> None:
        """An empty batch is safe, without a request."""
        self.open()

        self.assertIsNone(self.send())

        self.assertEqual([], self.server.bodies)

    def test_closed(self) -> None:
        """After its close nothing is sent."""
        self.open().close()
        self.observer.close()

        self.assertRaises(Unavailable, self.send, "a")
        self.assertEqual((["close"], []), (self.server.log, self.clock.pauses))


class RetryTests(_HTTPTests):
    """What somebody may mend is tried again, for a while."""

    def test_back(self) -> None:
        """Whatever went wrong, once the server is back the batch is stored, after pauses that grow."""
        self.server.plays = [
            HTTPAnswer(408),
            HTTPAnswer(425),
            NoAnswer("no answer within 10 s"),
            HTTPAnswer(404),
            HTTPAnswer(302),
        ]
        self.open(retry_for="1m")

        self.assertIsNone(self.send("a"))

        self.assertEqual(["a"], self.server.stored_texts())
        self.assertEqual([0.25, 0.5, 1.0, 2.0, 4.0], self.clock.pauses)

    def test_away(self) -> None:
        """When the time is over it says what was wrong last, and no further try is begun after that time."""
        self.server.play = lambda body: NoAnswer("connection refused")
        self.open(retry_for="2s")

        error = self.assertRaises(Unavailable, self.send, "a")

        self.assertEqual(("connection refused", None), (str(error), error.retry_after))
        self.assertEqual([0.25, 0.5], self.clock.pauses)

    def test_once(self) -> None:
        """Without time to retry there is one try."""
        self.server.play = lambda body: HTTPAnswer(500)
        self.open(retry_for="0s")

        self.assertRaises(Unavailable, self.send, "a")
        self.assertEqual(1, len(self.server.bodies))

    def test_order(self) -> None:
        """What follows a request that failed is not sent; what came before it is safe and not sent again."""
        self.server.plays = [HTTPAnswer(200), HTTPAnswer(503)]
        self.open(batch="2", retry_for="0s")

        outcomes = self.send("a", "b", "c", "d", "e")

        assert outcomes is not None
        self.assertEqual([None, None], outcomes[:2])
        self.assertEqual(["it answers 503 Service Unavailable"] * 3, [str(each) for each in outcomes[2:]])
        self.assertIsInstance(outcomes[2], Unavailable)
        self.assertEqual(["a", "b"], self.server.stored_texts())
        self.assertEqual(2, len(self.server.bodies))

    def test_retry_after(self) -> None:
        """No request is made before the end of a Retry-After."""
        self.server.plays = [HTTPAnswer(429, "7")]
        self.open(retry_for="10s")

        self.assertIsNone(self.send("a"))

        self.assertEqual([7.0], self.clock.pauses)

    def test_retry_after_too_long(self) -> None:
        """If that is longer than the time left, this batch and the next ones fail at once."""
        self.server.plays = [HTTPAnswer(503, "60")]
        self.open()

        first = self.assertRaises(Unavailable, self.send, "a")
        self.clock.now += 20.0
        second = self.assertRaises(Unavailable, self.send, "a")

        self.assertEqual((60.0, 40.0), (first.retry_after, second.retry_after))
        self.assertEqual(1, len(self.server.bodies))
        self.clock.now += 35.0
        self.assertIsNone(self.send("a"))
        self.assertEqual([5.0], self.clock.pauses)

    def test_retry_after_over(self) -> None:
        """Once that time is over, nothing is left of it."""
        self.server.plays = [HTTPAnswer(503, "20")]
        self.open()
        self.assertRaises(Unavailable, self.send, "a")
        self.clock.now += 20.0

        self.assertIsNone(self.send("a"))

        self.assertEqual([], self.clock.pauses)


class RefusedTests(_HTTPTests):
    """What no retry mends is sought out."""

    def test_culprit(self) -> None:
        """The one that is refused is rejected with status and excerpt; all others are stored, in order."""
        for status in (400, 413, 422):
            with self.subTest(status):
                self.setUp()
                self.server.play = refuse(b"BAD", status)
                self.open()

                outcomes = self.send("a", "b", "c", "BAD", "d", "e", "f")

                assert outcomes is not None
                self.assertEqual([3], [place for place, each in enumerate(outcomes) if each is not None])
                self.assertIsInstance(outcomes[3], Rejected)
                self.assertRegex(str(outcomes[3]), f"^it answers {status} .*: no$")
                self.assertEqual(["a", "b", "c", "d", "e", "f"], self.server.stored_texts())

    def test_all(self) -> None:
        """When each is refused, each is rejected, after at most two requests a message."""
        self.server.play = lambda body: HTTPAnswer(400)
        self.open()

        outcomes = self.send(*"abcdefgh")

        assert outcomes is not None
        self.assertEqual([Rejected] * 8, [type(each) for each in outcomes])
        self.assertEqual(15, len(self.server.bodies))

    def test_few_requests(self) -> None:
        """A culprit among many is found with few requests."""
        self.server.play = refuse(b"BAD")
        self.open()

        self.send(*["a"] * 300, "BAD", *["a"] * 199)

        self.assertLess(len(self.server.bodies), 25)

    def test_each(self) -> None:
        """Alone from the start, it is rejected at once."""
        self.server.play = refuse(b"BAD")
        self.open(format="each")

        outcomes = self.send("a", "BAD", "b")

        assert outcomes is not None
        self.assertEqual([type(None), Rejected, type(None)], [type(each) for each in outcomes])
        self.assertEqual(3, len(self.server.bodies))

    def test_away_while_dividing(self) -> None:
        """A server that goes away meanwhile leaves the rest unsent; rejected messages stay rejected."""
        self.server.plays = [HTTPAnswer(400), HTTPAnswer(400), HTTPAnswer(400), HTTPAnswer(200), HTTPAnswer(503)]
        self.open(retry_for="0s")

        outcomes = self.send("BAD", "b", "c", "d")

        assert outcomes is not None
        self.assertEqual([Rejected, type(None), Unavailable, Unavailable], [type(each) for each in outcomes])
        self.assertEqual(5, len(self.server.bodies))


class HurryTests(_HTTPTests):
    """The receiver stops."""

    def test_pause(self) -> None:
        """A pause ends at once; there is one more try."""
        self.open(retry_for="1h")
        self.server.play = lambda body: NoAnswer("connection refused")
        wait = self.clock.wait

        def stop(timeout: float | None = None) -> bool:
            if len(self.server.bodies) == 3:
                self.observer.hurry()
            return wait(timeout)

        self.patch(self.clock, "wait", stop)

        self.assertRaises(Unavailable, self.send, "a")
        self.assertEqual(4, len(self.server.bodies))

    def test_request(self) -> None:
        """A request that is under way is the last try."""
        self.open(retry_for="1h")

        def stop(body: bytes) -> NoAnswer:
            if len(self.server.bodies) == 3:
                self.observer.hurry()
            return NoAnswer("no answer within 3 s")

        self.server.play = stop

        self.assertRaises(Unavailable, self.send, "a")
        self.assertEqual(3, len(self.server.bodies))

    def test_while_reopening(self) -> None:
        """Told between the making of a new client and its first use, the new one is in a hurry too."""
        self.open()
        make_client = self.observer._make_client

        def stop() -> Client:
            client = make_client()
            self.observer.hurry()
            return client

        self.patch(self.observer, "_make_client", stop)
        self.observer.reopen()

        self.assertEqual(["stop_now", "stop_now", "close"], self.server.log)

    def test_one_try(self) -> None:
        """From then on each request is tried once."""
        self.open().hurry()
        self.server.plays = [HTTPAnswer(200), HTTPAnswer(500)]

        self.assertIsNone(self.send("a"))
        self.assertRaises(Unavailable, self.send, "b")

        self.assertEqual((2, ["a"]), (len(self.server.bodies), self.server.stored_texts()))

    def test_client(self) -> None:
        """The client is stopped, also one that is made later; without a client nothing happens."""
        self.open().hurry()
        self.observer.reopen()
        self.make().hurry()

        self.assertEqual(["stop_now", "stop_now", "close"], self.server.log)

    def test_many_requests(self) -> None:
        """However many requests a batch needs, they get three seconds together; what is not sent is to come later."""
        self.open(batch="1")

        def play(body: bytes) -> HTTPAnswer:
            self.clock.now += 0.375
            if len(self.server.bodies) == 3:
                self.stopped_at = self.clock.now
                self.observer.hurry()
            return HTTPAnswer(200)

        self.server.play = play
        outcomes = self.send(*map(str, range(20)))

        assert outcomes is not None
        stored = [place for place, each in enumerate(outcomes) if each is None]
        self.assertEqual([*range(3 + 6)], stored)
        self.assertEqual({"the receiver stops"}, {str(each) for each in outcomes if each is not None})
        self.assertLessEqual(self.clock.now - self.stopped_at, 3.0)
        self.assertEqual([3.0 - 0.5 * number for number in range(6)], self.server.at_most)

    def test_next_batch(self) -> None:
        """A batch that comes after it has as much."""
        self.open().hurry()
        self.clock.now += 60.0

        self.assertIsNone(self.send("a"))

        self.assertEqual([3.0], self.server.at_most)

    def test_opened_again(self) -> None:
        """One that was closed in a hurry and is opened again after all has its time to retry again."""
        self.open().hurry()
        self.observer.close()
        self.observer.hurry()
        self.observer.open()
        self.server.plays = [HTTPAnswer(500), HTTPAnswer(500)]

        self.assertIsNone(self.send("a"))


class FieldsTests(SynchronousTestCase):
    """The header fields of every request."""

    def test_own(self) -> None:
        """Each has the type of its body, and its sender."""
        self.assertEqual(
            [(b"Content-Type", b"application/x-ndjson"), (b"User-Agent", b"webhookrx")],
            request_headers(read_http((URL,), {})[1], []),
        )

    def test_packed(self) -> None:
        """A packed body is announced."""
        self.assertIn((b"Content-Encoding", b"gzip"), request_headers(read_http((URL,), {"gzip": "yes"})[1], []))

    def test_other_name(self) -> None:
        """Fields from a file come along, and one of them may give another name."""
        headers = [(b"user-agent", b"ours"), (b"X-Key", b"1")]

        fields = request_headers(read_http((URL,), {})[1], headers)

        self.assertEqual([(b"Content-Type", b"application/x-ndjson"), *headers], fields)


class FilesTests(_HTTPTests):
    """Secrets come from files."""

    def test_fields(self) -> None:
        """Token and further fields go with each request."""
        self.open(token_file=self.write(b"t0ken\n"), headers_file=self.write(b"X-Scope: a\n"))

        self.assertEqual([(b"Authorization", b"Bearer t0ken"), (b"X-Scope", b"a")], list(self.server.fields))

    def test_reopen(self) -> None:
        """They are read again on a reopen, and the server is asked again at once."""
        path = self.write(b"t0ken\n")
        self.server.plays = [HTTPAnswer(401, "200")]
        self.open(token_file=path)
        self.assertRaises(Unavailable, self.send, "a")
        with open(path, "wb") as file:
            file.write(b"better\n")

        self.observer.reopen()

        self.assertIsNone(self.send("a"))
        self.assertEqual([(b"Authorization", b"Bearer better")], list(self.server.fields))
        self.assertEqual(["close"], self.server.log)

    def test_reopen_fails(self) -> None:
        """A file that has become wrong is an error, and the contents read before stay in use."""
        path = self.write(b"t0ken\n")
        self.open(token_file=path)
        os.remove(path)

        error = self.assertRaises(ConfigError, self.observer.reopen)

        self.assertIn("token_file", str(error))
        self.assertEqual([], self.server.log)
        self.assertIsNone(self.send("a"))

    def test_no_secret_in_errors(self) -> None:
        """A server that repeats a secret does not bring it into an error."""
        self.server.play = lambda body: HTTPAnswer(403, beginning=b"the token hunter%32hunter2, and swordfi")
        token_file, headers_file = self.write(b"hunter2hunter2\n"), self.write(b"X-Key: swordfish\n")
        for files in ({"token_file": token_file}, {"headers_file": headers_file}):
            with self.subTest(files):
                self.open(retry_for="0s", **files)

                error = self.assertRaises(Unavailable, self.send, "a")

                self.assertEqual(
                    "it answers 403 Forbidden (look at token_file=, headers_file= and cert_file=)", str(error)
                )

    def test_excerpt(self) -> None:
        """Without a secret its words are told."""
        self.server.play = lambda body: HTTPAnswer(403, beginning=b"who are you?")
        self.open(retry_for="0s")

        self.assertTrue(str(self.assertRaises(Unavailable, self.send, "a")).endswith(": who are you?"))

    def test_build(self) -> None:
        """Each file is read when the observer is built, and what is wrong names option and file."""
        token, headers = self.write(b"t\n"), self.write(b"authorization: x\n")
        for options, problem in [
            ({"token_file": "/does/not/exist"}, 'token_file: "/does/not/exist"'),
            ({"headers_file": "/does/not/exist"}, 'headers_file: "/does/not/exist"'),
            ({"ca_file": "/does/not/exist"}, 'ca_file: "/does/not/exist"'),
            ({"cert_file": "/no/cert", "key_file": "/no/key"}, 'key_file: "/no/key"'),
            ({"token_file": token, "headers_file": headers}, "both set Authorization"),
        ]:
            with self.subTest(problem):
                error = self.assertRaises(ConfigError, build_http, "http:https://h", ("https://h",), options, "durable")

                self.assertIn(problem, str(error))
                self.assertTrue(str(error).startswith("observer 'http': "))

    def test_built(self) -> None:
        """What is right makes an observer with its spec and promise."""
        spec = "http:https://h:retry_for=1s"
        observer = build_http(spec, ("https://h",), {"retry_for": "1s"}, "written")

        self.assertEqual((spec, "durable"), (observer.spec, observer.promise))
        # Nothing is connected before there is a message.
        observer.open()
        observer.close()
