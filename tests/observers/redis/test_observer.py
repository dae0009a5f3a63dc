"""The redis observer keeps to the contracts of stores, with a Redis that is played in place of connections to it."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import redis.exceptions
from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.fake_time import FakeTime
from tests.contracts.secret_contract import all_texts
from tests.contracts.store_contract import Record, Row, StoreContract
from webhookrx.errors import Unavailable
from webhookrx.observers.addresses import Server
from webhookrx.observers.redis import client
from webhookrx.observers.redis.appender import id_key
from webhookrx.observers.redis.client import BoundedSocket, RedisConnection, TooLong, connect, reason_of
from webhookrx.observers.redis.observer import RedisObserver
from webhookrx.observers.redis.options import RedisServers, read_redis

URL = "redis://127.0.0.1:6379/0/logs"


def error(code: str, words: str = "some words") -> redis.exceptions.ResponseError:
    """Return an error as redis-py reads it: of codes that it does not know it keeps the code in the text."""
    known = {
        "OOM": redis.exceptions.OutOfMemoryError,
        "READONLY": redis.exceptions.ReadOnlyError,
        "NOSCRIPT": redis.exceptions.NoScriptError,
        "NOPERM": redis.exceptions.NoPermissionError,
        "EXECABORT": redis.exceptions.ExecAbortError,
    }
    if code in known:
        return known[code](words, status_code=code)
    return redis.exceptions.ResponseError(f"{code} {words}")


class PlayedRedis:
    """
    A Redis with one stream, and its connection.

    @ivar log: each transaction, as the values of its messages.
    @ivar confirms: answers to WAIT and WAITAOF, one after the other.
    """

    def __init__(self, time: FakeTime) -> None:
        self.time = time
        self.records: list[Record] = []
        self.known: set[str] = set()
        self.commands: list[Sequence[Any]] = []
        self.info = b"# Server\r\nredis_version:7.2.0\r\naof_enabled:1\r\nconnected_slaves:2\r\n"
        self.confirms: list[Any] = []
        self.play: Callable[[Callable[[], list[Any]]], list[Any]] | None = None
        self.answer: Any = ...
        self.whole: Any = ...
        self.begun: Any = ...
        self.is_away = self.is_stalled = False
        self.shown: str | None = None
        self.error: Exception | None = None

    def connect(
        self,
        servers: RedisServers,
        password: str | None,
        context: ssl.SSLContext | None,
        steps: Iterator[float],
    ) -> tuple[Any, Server]:
        """Connect."""
        if self.is_away:
            raise Unavailable("127.0.0.1:6379: Connection refused")
        self.shown = password
        return self, servers.addresses.servers[0]

    def disconnect(self) -> None:
        """Do nothing."""

    def ask(self, *command: Any, steps: Iterator[float]) -> Any:
        """Answer one command."""
        if command[0] == "INFO":
            return self.info
        assert command[:2] == ("SCRIPT", "LOAD")
        return b"sha"

    def exchange(
        self, commands: Iterable[Sequence[Any]], count: int, steps: Iterator[float], longest: int = 0, idle: float = 0
    ) -> list[Any]:
        """Answer a transaction, or what follows it."""
        given = list(commands)
        assert len(given) == count
        self.commands += given
        if self.is_away:
            raise redis.exceptions.ConnectionError("Connection closed by server.")
        if self.is_stalled:
            for step in steps:
                self.time.sleep(step)
            raise TimeoutError
        if self.error is not None:
            raise self.error
        if next(steps, None) is None:
            raise TimeoutError
        if given[0][0] in ("WAIT", "WAITAOF"):
            return [self.confirms.pop(0)]
        assert given[0] == ("MULTI",)
        assert given[-1] == ("EXEC",)
        play, self.play = self.play, None

        def run() -> list[Any]:
            return [self.run(command) for command in given[1:-1]]

        done = play(run) if play is not None else run()
        begun = [b"OK", *[b"QUEUED"] * (count - 2)] if self.begun is ... else [self.begun] * (count - 1)
        return [*begun, done if self.whole is ... else self.whole]

    def run(self, command: Sequence[Any]) -> Any:
        """Run one command of a transaction."""
        own, value = command[-2:] if command[0] == "EVALSHA" else (command[-3], command[-1])
        if self.whole is not ...:
            return None
        if command[0] == "EVALSHA":
            assert command[4] == id_key("logs", own)
            if own in self.known:
                return 0
        if self.answer not in (..., 0, b"1690000000000-0"):
            return self.answer
        if command[0] == "EVALSHA":
            self.known.add(own)
        self.records.append(Record(own, json.loads(value)["MESSAGE"]))
        return b"%d-0" % len(self.records) if self.answer is ... else self.answer


class RedisTests(StoreContract, SynchronousTestCase):
    """The observer."""

    rows = (
        Row("id of the entry", b"1690000000000-0", "stored"),
        Row("known to the script", 0, "stored"),
        *(
            Row(code, error(code), "later")
            for code in (
                "OOM",
                "READONLY",
                "MISCONF",
                "WRONGTYPE",
                "NOAUTH",
                "WRONGPASS",
                "NOPERM",
                "NOSCRIPT",
                "NOREPLICAS",
                "MASTERDOWN",
                "CLUSTERDOWN",
                "MOVED",
                "ASK",
                "BUSY",
                "ERR",
            )
        ),
        Row("EXECABORT", ("whole", error("EXECABORT")), "later"),
        Row("LOADING", ("raise", redis.exceptions.BusyLoadingError("it loads", status_code="LOADING")), "later"),
    )
    nonsense: tuple[Any, ...] = (
        b"OK",
        b"",
        b"1690000000000",
        None,
        7,
        "1-1",
        [b"1-1"],
        ("whole", None),
        ("whole", b"OK"),
        ("whole", []),
        ("whole", [b"1-1"] * 99),
        ("raise", redis.exceptions.InvalidResponse("Protocol Error: b'HTTP/1.1 400'")),
    )
    refuses = False

    def setUp(self) -> None:
        """Make a Redis."""
        super().setUp()
        self.redis = PlayedRedis(self.time)

    def make_observer(self, **given: str) -> RedisObserver:
        """Make one with these options."""
        target = read_redis([URL], given)
        return RedisObserver("redis:…", target, self.redis.connect, self.time, lambda: 1.0, self.time)

    def make_secret_observer(self, path: str) -> RedisObserver:
        """Make one with a password."""
        return self.make_observer(user="me", password_file=path)

    def shown_secret(self) -> str:
        """Return the password."""
        assert self.redis.shown is not None
        return self.redis.shown

    def stored_records(self) -> list[Record]:
        """Return the entries."""
        return self.redis.records

    def answer_with(self, answer: Any) -> None:
        """Answer so to each message, or to the whole transaction."""
        match answer:
            case ("whole", whole):
                self.redis.whole = whole
            case ("raise", Exception() as raised):
                self.redis.error = raised
            case _:
                self.redis.answer = answer

    def mend(self) -> None:
        """Do as it should."""
        self.redis.answer = self.redis.whole = ...
        self.redis.play = self.redis.error = None
        self.redis.is_away = self.redis.is_stalled = False

    def break_observer(self) -> None:
        """Let no server be there."""
        self.redis.is_away = True

    def stall(self) -> None:
        """Never answer."""
        self.redis.is_stalled = True

    def lose_answer(self) -> None:
        """Store all, and close the connection."""

        def play(run: Callable[[], list[Any]]) -> list[Any]:
            run()
            raise redis.exceptions.ConnectionError("Connection closed by server.")

        self.redis.play = play

    def store_half(self) -> None:
        """A transaction is all or nothing: store nothing."""

        def play(run: Callable[[], list[Any]]) -> list[Any]:
            raise redis.exceptions.ConnectionError("Connection closed by server.")

        self.redis.play = play

    def quote_secret(self) -> None:
        """Quote the password in an error, as old servers do with arguments that they don't know."""
        self.redis.error = error("ERR", f"unknown command, with args beginning with: {self.shown_secret()}")

    def test_stops_at_first_failed_transaction(self) -> None:
        """After a transaction that failed none is sent, so that messages keep their order."""
        observer = self.make_observer(batch="2", retry_for="0s")
        observer.open()
        left = [2]

        def play(run: Callable[[], list[Any]]) -> list[Any]:
            left[0] -= 1
            self.redis.play = play
            return run() if left[0] else [error("OOM"), error("OOM")]

        self.redis.play = play

        self.assertEqual(["stored"] * 2 + ["later"] * 4, self.fates(observer, *"abcdef"))
        self.assertEqual(["a", "b"], self.stored_texts())
        self.assertEqual([], self.deliver(observer, *"cdef"))
        self.assertEqual([*"abcdef"], self.stored_texts())
        observer.close()

    def test_hurry_in_batch_of_many_transactions(self) -> None:
        """A batch of many transactions ends in three seconds once the receiver stops, however many are left."""
        observer = self.make_observer(batch="1")
        observer.open()
        began = self.time.now

        def play(run: Callable[[], list[Any]]) -> list[Any]:
            observer.hurry()
            self.redis.play = play
            self.time.sleep(1.25)
            return run()

        self.redis.play = play

        self.assertEqual(["stored"] * 3 + ["later"] * 3, self.fates(observer, *"abcdef"))
        self.assertLess(self.time.now - began, 4)
        self.assertEqual([*"abc"], self.stored_texts())
        observer.close()

    def test_sentinel_that_hangs(self) -> None:
        """A sentinel that never answers leaves time for the others; when the time is over, nobody waits for any."""
        asked: list[int] = []

        def hang(connection: RedisConnection) -> None:
            asked.append(connection.port)
            self.assertLessEqual(len([*connection._steps]), 1)
            raise redis.exceptions.TimeoutError

        self.patch(RedisConnection, "connect", hang)
        self.patch(client, "HURRY_TIME", 0.0)
        url = "redis://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/0/logs"
        servers = read_redis([url], {"sentinel": "main"}).servers
        steps = iter([0.1] * 5)

        self.assertRaises(Unavailable, connect, servers, None, None, steps)
        self.assertEqual(([1, 2, 3], [0.1, 0.1]), (asked, [*steps]))

    def test_transaction_that_was_not_begun(self) -> None:
        """What runs is not believed unless each command before it was taken: the answers would be to something else."""
        for begun in (error("ERR"), b"OK", b"QUEUED", None, 7):
            with self.subTest(repr(begun)):
                self.redis.begun = begun
                observer = self.make_observer(retry_for="0s")
                observer.open()
                self.assertEqual(["later"], self.fates(observer, "one"))
                observer.close()

    def test_commands(self) -> None:
        """Without dedup it is XADD, with maxlen about that many entries; with it the script gets both."""
        for given, expected in (
            ({"dedup": "off"}, ("XADD", "logs", "*", "id", self.id_of("a"), "message")),
            (
                {"dedup": "off", "maxlen": "7"},
                ("XADD", "logs", "MAXLEN", "~", 7, "*", "id", self.id_of("a"), "message"),
            ),
            ({}, (2, "logs", f"{{logs}}:id:{self.id_of('a')}", 900, "", self.id_of("a"))),
            (
                {"maxlen": "7", "dedup_window": "1h"},
                (2, "logs", f"{{logs}}:id:{self.id_of('a')}", 3600, 7, self.id_of("a")),
            ),
        ):
            with self.subTest(str(given)):
                self.redis.commands.clear()
                observer = self.make_observer(**given)
                observer.open()
                self.assertIsNone(self.store(observer, "a"))
                command = tuple(self.redis.commands[1][:-1])
                self.assertEqual(expected, command if command[0] == "XADD" else command[2:])
                observer.close()

    def test_id_key_is_beside_its_stream(self) -> None:
        """In a cluster the key of an id has the hash slot of the stream."""
        self.assertEqual("{logs}:id:7", id_key("logs", "7"))
        self.assertEqual("a{b}c:id:7", id_key("a{b}c", "7"))

    def test_known_messages_are_counted(self) -> None:
        """Messages that the stream had already are counted, and stored."""
        observer = self.make_observer()
        observer.open()
        self.store(observer, "one", "two")

        self.assertIsNone(self.store(observer, "one", "two", "three"))

        self.assertEqual(2, observer.counts.take().known)
        observer.close()

    # -- WAIT and WAITAOF; no server here knows the latter -----------------------------------------------------------

    def confirmed(self, answer: Any, **given: str) -> str:
        """Store a message that is confirmed so, and return why it is not safe, or nothing."""
        self.redis.confirms = [answer]
        observer = self.make_observer(retry_for="0s", **given)
        observer.open()
        (outcome,) = self.outcomes(observer, "one")
        observer.close()
        return "" if outcome is None else str(outcome)

    def test_confirmed(self) -> None:
        """Enough confirmations make a batch safe, and no answer that is none to the question does."""
        for given, answer, words in (
            ({"wait": "2"}, 2, ""),
            ({"wait": "1"}, 2, ""),
            ({"wait": "2"}, 1, "1 of 2 replicas"),
            ({"wait": "1"}, b"OK", "the answer is none"),
            ({"wait": "1"}, [1, 1], "the answer is none"),
            ({"wait": "1"}, True, "the answer is none"),
            ({"waitaof": "1,0"}, [1, 0], ""),
            ({"waitaof": "1,2"}, [1, 2], ""),
            ({"waitaof": "0,1"}, [0, 1], ""),
            ({"waitaof": "1,0"}, [0, 2], "has not synced"),
            ({"waitaof": "1,2"}, [1, 1], "1 of 2 replicas"),
            ({"waitaof": "1,0"}, 1, "the answer is none"),
            ({"waitaof": "1,0"}, [1], "the answer is none"),
            ({"waitaof": "1,0"}, [b"1", b"0"], "the answer is none"),
            ({"waitaof": "1,0"}, None, "the answer is none"),
            ({"waitaof": "1,0"}, error("ERR", "unknown command 'WAITAOF', with args"), "needs Redis 7.2"),
            ({"wait": "1"}, error("NOPERM"), "NOPERM"),
        ):
            with self.subTest(f"{given} {answer!r}"):
                problem = self.confirmed(answer, **given)
                self.assertIn(words, problem)
                self.assertEqual(bool(words), bool(problem))

    def test_confirmed_at_a_later_try(self) -> None:
        """What was not confirmed is not safe, though it is in the stream; asked again it is there once, and is."""
        self.redis.confirms = [[0, 0], [1, 0]]
        observer = self.make_observer(waitaof="1,0")
        observer.open()

        self.assertIsNone(self.store(observer, "one", "two"))

        self.assert_stored("one", "two")
        self.assertEqual(("WAITAOF", 1, 0, 8000), self.redis.commands[-1])
        taken = observer.counts.take()
        self.assertEqual((2, 2), (taken.known, taken.confirms.count))
        observer.close()

    def test_server_that_can_not_confirm(self) -> None:
        """Nothing is appended to a server that can't confirm: it would be appended again at every try."""
        for info, given, words in (
            (b"redis_version:7.0.15\r\n", {"waitaof": "1,0"}, "Redis 7.0.15 does not know WAITAOF"),
            (b"redis_version:7.2.1\r\naof_enabled:0\r\n", {"waitaof": "1,0"}, "appendonly no"),
            (b"connected_slaves:1\r\n", {"wait": "2"}, "1 of 2 replicas"),
        ):
            with self.subTest(words):
                self.redis.info = info
                self.assertIn(words, self.confirmed(None, **given))
                self.assertEqual([], self.redis.records)

    def test_promises(self) -> None:
        """Only WAITAOF makes it durable; the others say why not."""
        for given, promise in (({}, "written"), ({"wait": "1"}, "written"), ({"waitaof": "1,0"}, "durable")):
            observer = self.make_observer(**given)
            self.assertEqual(promise, observer.promise)
            self.assertEqual(promise != "durable", "waitaof=" in observer.promise_reason)

    def test_warnings(self) -> None:
        """Settings by which acknowledged messages may be lost are said once each."""
        self.redis.info = b"aof_enabled:0\r\nmaxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n"
        observer = self.make_observer(maxlen="1000")
        with all_texts() as texts:
            for _ in range(2):
                observer.open()
                self.store(observer, "one")
                observer.close()

        log = [text for text in texts if "Observer redis:" in text and "warn" in text]
        for words in ("maxlen=1000", "allkeys-lru", "appendonly no"):
            self.assertEqual(1, sum(words in text for text in log), log)


class RedisReasonTests(SynchronousTestCase):
    """What is said of an error."""

    def test_code_and_hint(self) -> None:
        """The code and what it means for an operator are always said, the words only if no secret was sent."""
        self.assertEqual("it answers OOM (maxmemory is reached): some words", reason_of(error("OOM"), excerpt=True))
        self.assertEqual(
            "it answers MISCONF (it can't write its data to its disk)", reason_of(error("MISCONF"), excerpt=False)
        )

    def test_right_that_a_script_lacks(self) -> None:
        """The ERR of a script whose user lacks a right is named as what it is."""
        refusal = error("ERR", "The user executing the script can't run this command or subcommand")

        self.assertIn("NOPERM", reason_of(refusal, excerpt=False))

    def test_other_errors(self) -> None:
        """Of an error without a code only the type is said after a secret was sent, and one line before."""
        self.assertEqual("RedisError", reason_of(redis.exceptions.RedisError("hunter2"), excerpt=False))
        self.assertEqual("a b", reason_of(redis.exceptions.RedisError("a\nb"), excerpt=True))
        self.assertLess(len(reason_of(error("ERR", "x" * 1000), excerpt=True)), 300)


class TricklingSocket(socket.socket):
    """A socket that is not connected, and from which the same comes again and again; or nothing, in time."""

    def __init__(self, piece: bytes) -> None:
        super().__init__()
        self.piece = piece
        self.close()

    def settimeout(self, seconds: float | None) -> None:
        """Wait for nothing."""

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Return the piece."""
        if not self.piece:
            raise TimeoutError
        return self.piece

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Take it."""


class RedisConnectionTests(SynchronousTestCase):
    """Connections."""

    def test_socket_of_others(self) -> None:
        """Should a release of redis-py open the socket itself, and so without our TLS, nothing is sent over it."""
        servers = read_redis([URL], {}).servers
        connection = RedisConnection(servers.addresses.servers[0], servers, "hunter2", None, 0, iter(()))

        error = self.assertRaises(redis.exceptions.ConnectionError, connection._greet, connection)

        self.assertIn("does not let us open its socket", str(error))
        self.assertNotIn("hunter2", repr(connection))

    def test_wait_ends(self) -> None:
        """A server that sends a byte now and then is waited for no longer than one that sends none."""
        bounded = BoundedSocket(TricklingSocket(b"+OK"), iter([0.1] * 5))

        self.assertEqual([b"+OK"] * 5, [bounded.recv(9) for _ in range(5)])
        self.assertRaises(TimeoutError, bounded.recv, 9)
        self.assertRaises(TimeoutError, bounded.sendall, b"PING")

    def test_idle_wait_ends(self) -> None:
        """The next byte is waited for no longer than is said, whatever time there is for all of them."""
        bounded = BoundedSocket(TricklingSocket(b""), iter([0.25] * 99))
        bounded.idle = 1.0

        self.assertRaises(TimeoutError, bounded.recv, 9)
        self.assertEqual(95, len(list(bounded.steps)))

    def test_answer_ends(self) -> None:
        """No more is read than any answer has."""
        bounded = BoundedSocket(TricklingSocket(b"x" * 60), iter([0.1] * 99))
        bounded.left = 100

        self.assertEqual(120, len(bounded.recv(60) + bounded.recv(60)))
        self.assertRaises(TooLong, bounded.recv, 60)

    def test_nonsense(self) -> None:
        """Lengths that are no numbers, and lists without an end of depth, are no answers; nothing of them is quoted."""
        for answer in (
            b"$hunter2\r\n",
            b"*hunter2\r\n",
            b":hunter2\r\n",
            b"*" + b"9" * 5000 + b"\r\n",
            b"*1\r\n" * 5000,
        ):
            with self.subTest(answer[:9]):
                connection = self.connected(answer)
                error = self.assertRaises(
                    redis.exceptions.InvalidResponse, connection.exchange, [("PING",)], 1, iter([0.1] * 9)
                )
                self.assertEqual("what it answers is not the protocol of Redis", str(error))
                self.assertIsNone(error.__cause__)

    def test_closed_connection(self) -> None:
        """A connection that has ended is not made again by redis-py, which knows nothing of what we ask of each."""
        connection = self.connected(b"+OK\r\n")
        connection.disconnect()

        error = self.assertRaises(
            redis.exceptions.ConnectionError, connection.exchange, [("PING",)], 1, iter([0.1] * 9)
        )
        self.assertEqual("the connection is closed", str(error))

    def connected(self, answer: bytes) -> RedisConnection:
        """Return a connection to a server that answers so."""
        servers = read_redis([URL], {}).servers
        connection = RedisConnection(servers.addresses.servers[0], servers, None, None, 0, iter(()))
        bounded = BoundedSocket(TricklingSocket(answer), iter(()))
        connection._sock = connection._bounded = bounded
        connection._parser.on_connect(connection)
        return connection
