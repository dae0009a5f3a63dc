"""
Connections to Redis, by redis-py: to a server or to the master that sentinels know, with our TLS, and with waits that
can be ended.

redis-py's own client would wait for each answer as long as its timeout, and retry by itself; so its connections are
used, and one answer is read after the other. They wait for each piece of an answer anew, and read whatever comes; so
their socket is one with an end to the waiting, and to the bytes.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Any, Final

import redis.exceptions
from redis.connection import Connection

from webhookrx.errors import Unavailable
from webhookrx.observers.addresses import Server
from webhookrx.observers.excerpts import excerpt_of
from webhookrx.observers.redis.options import RedisServers
from webhookrx.observers.retrying import HURRY_TIME, STEP, first_of
from webhookrx.observers.sockets import Deadline, connect_to_host, describe, look_up, shake_hands
from webhookrx.settings import MiB

_PIECE: Final = 65536
"""Bytes that are sent at once, so that a slow network has time for each."""
LONGEST_ANSWER: Final = 4 * MiB
"""Bytes of all answers to what is sent at once, unless entries of a stream are among them."""

#: A command as redis-py takes it.
Command = Sequence[str | bytes | int | float]

_HINTS: Final = {
    "OOM": "maxmemory is reached",
    "READONLY": "it is a replica, which takes no writes",
    "LOADING": "it is still loading its data",
    "MISCONF": "it can't write its data to its disk",
    "WRONGTYPE": "the key is no stream",
    "NOAUTH": "it wants password_file=",
    "WRONGPASS": "user= or the password is wrong",
    "NOPERM": "the user lacks a right, see ACL",
    "NOREPLICAS": "it has fewer replicas than min-replicas-to-write",
    "MASTERDOWN": "it is a replica without its master",
    "CLUSTERDOWN": "its cluster is down",
    "MOVED": "another node of its cluster has the stream",
    "ASK": "another node of its cluster has the stream",
    "BUSY": "it runs a script that does not end",
    "EXECABORT": "it has refused the transaction",
}


class TooLong(OSError):
    """More comes than any answer has."""

    def __init__(self) -> None:
        super().__init__("its answer is longer than any that was asked for")


class BoundedSocket:
    """
    What redis-py uses of a socket, with an end to all waiting and to what is read.

    @ivar steps: seconds to wait next, one by one, until the time is over.
    @ivar left: bytes that may still be read.
    @ivar idle: seconds to wait for the next of them.
    """

    def __init__(self, opened: socket.socket, steps: Iterator[float]) -> None:
        self.steps = steps
        self.left = LONGEST_ANSWER
        self.idle = inf
        self._socket = opened

    def recv(self, size: int) -> bytes:
        """
        Return what comes next.

        @raise TimeoutError: the time is over.
        @raise TooLong: there was too much already.
        """
        if self.left <= 0:
            raise TooLong
        waited = 0.0
        for step in self.steps:
            # 0 would not wait at all, and say so by another error.
            self._socket.settimeout(max(step, 0.001))
            try:
                data = self._socket.recv(size)
            except (TimeoutError, ssl.SSLWantReadError):
                waited += step
                if waited >= self.idle:
                    break
                continue
            self.left -= len(data)
            return data
        raise TimeoutError

    def recv_into(self, buffer: Any) -> int:
        """Do the same as L{recv} into a buffer, for a parser that is written in C."""
        data = self.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def sendall(self, data: bytes) -> None:
        """Send a piece."""
        if next(iter(self.steps), None) is None:
            raise TimeoutError
        self._socket.settimeout(HURRY_TIME)
        self._socket.sendall(data)

    def settimeout(self, seconds: float | None) -> None:
        """Do nothing: C{steps} decides."""

    def shutdown(self, how: int) -> None:
        """End the connection."""
        self._socket.shutdown(how)

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._socket.fileno()


class RedisConnection(Connection):
    """
    A connection whose socket we open, so that TLS checks what all observers check.

    @param context: None without TLS.
    @param steps: seconds to wait next, one by one, until the time for connecting is over.
    """

    def __init__(
        self,
        server: Server,
        servers: RedisServers,
        password: str | None,
        context: ssl.SSLContext | None,
        database: int,
        steps: Iterator[float],
    ) -> None:
        self._tls_context = context
        self._steps = steps
        self._bounded: BoundedSocket | None = None
        super().__init__(
            host=server.host,
            port=server.port,
            db=database,
            username=servers.user if password is not None else None,
            password=password,
            # Of no meaning to a L{BoundedSocket}.
            socket_timeout=HURRY_TIME,
            protocol=2,
            driver_info=None,
            redis_connect_func=self._greet,
        )

    def _connect(self) -> Any:
        addresses = look_up(self.host, self.port, socket.SOCK_STREAM, self._steps)
        deadline = Deadline(HURRY_TIME)
        try:
            opened, _ = connect_to_host(self.host, self.port, socket.SOCK_STREAM, deadline, addresses)
            try:
                if self._tls_context is not None:
                    secured = self._tls_context.wrap_socket(
                        opened, server_hostname=self.host, do_handshake_on_connect=False
                    )
                    opened = secured
                    shake_hands(secured, deadline)
            except BaseException:
                opened.close()
                raise
        finally:
            deadline.close()
        self._bounded = BoundedSocket(opened, self._steps)
        return self._bounded

    def _greet(self, connection: Connection) -> None:
        """Log in, unless another release of redis-py has opened the socket itself, and so without TLS."""
        if self._bounded is None:
            raise redis.exceptions.ConnectionError("this release of redis-py does not let us open its socket")
        connection.on_connect()

    def exchange(
        self,
        commands: Iterable[Command],
        count: int,
        steps: Iterator[float],
        longest: int = LONGEST_ANSWER,
        idle: float = inf,
    ) -> list[Any]:
        """
        Send commands at once, and return their answers: values, or C{redis.exceptions.ResponseError}.

        @param count: of the commands.
        @param steps: seconds to wait next, one by one, until the time is over.
        @param longest: bytes of all answers.
        @param idle: seconds to wait for the next of them.
        @raise redis.exceptions.RedisError: the connection has ended, or an answer is none; it is closed.
        @raise TimeoutError: the time was over; it is closed.
        @raise OSError: an answer is too long; it is closed.
        """
        bounded = self._bounded
        if bounded is None or self._sock is None:
            # redis-py would connect by itself, and leave out what we ask of each connection.
            raise redis.exceptions.ConnectionError("the connection is closed")
        bounded.steps, bounded.left, bounded.idle = steps, longest, idle
        try:
            for packed in self.pack_commands(commands):
                whole = memoryview(packed)
                for begin in range(0, len(whole), _PIECE):
                    self.send_packed_command([whole[begin : begin + _PIECE]], check_health=False)
            return [self._answer() for _ in range(count)]
        except (ValueError, RecursionError):
            # Lengths that are no numbers, and lists in lists; without the text, which may quote them.
            self.disconnect()
            raise redis.exceptions.InvalidResponse("what it answers is not the protocol of Redis") from None
        except BaseException:
            # What comes later would be taken for the answer to something else.
            self.disconnect()
            raise

    def ask(self, *command: str | bytes | int, steps: Iterator[float]) -> Any:
        """
        Send one command, and return its answer.

        @raise redis.exceptions.RedisError: as L{exchange}, or the answer itself.
        """
        (answer,) = self.exchange([command], 1, steps)
        if isinstance(answer, redis.exceptions.RedisError):
            raise answer
        return answer

    def _answer(self) -> Any:
        try:
            return self.read_response(disconnect_on_error=False)
        except redis.exceptions.ResponseError as error:
            return error


def steps_of(seconds: float, clock: Callable[[], float] = time.monotonic) -> Iterator[float]:
    """Yield how long to wait next, until so many seconds have passed."""
    end = clock() + seconds
    while (left := end - clock()) > 0:
        yield min(left, STEP)


def connect(
    servers: RedisServers,
    password: str | None,
    context: ssl.SSLContext | None,
    steps: Iterator[float],
) -> tuple[RedisConnection, Server]:
    """
    Connect to the server, or to the master that one of the sentinels names.

    @param steps: seconds to wait next, one by one, until the time for all of it is over.
    @raise Unavailable: there is none; the text says why.
    """
    server = servers.addresses.servers[0] if servers.sentinel is None else _master(servers, context, steps)
    connection = RedisConnection(server, servers, password, context, servers.database, steps)
    try:
        connection.connect()
    except (redis.exceptions.RedisError, OSError, ValueError, RecursionError) as error:
        connection.disconnect()
        raise Unavailable(f"{server}: {reason_of(error, excerpt=not servers.sends_secret)}") from None
    return connection, server


def _master(servers: RedisServers, context: ssl.SSLContext | None, steps: Iterator[float]) -> Server:
    """Ask one sentinel after the other; they get no password: it is that of the master."""
    problem = ""
    for sentinel in servers.addresses.servers:
        # One that hangs leaves time for the others.
        some = first_of(steps, HURRY_TIME)
        connection = RedisConnection(sentinel, servers, None, context, 0, some)
        try:
            connection.connect()
            answer = connection.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", servers.sentinel or "", steps=some)
        except (redis.exceptions.RedisError, OSError, ValueError, RecursionError) as error:
            problem = f"sentinel {sentinel}: {reason_of(error, excerpt=True)}"
        else:
            match answer:
                case [bytes(host), bytes(port)] if port.isdigit() and len(port) <= 5:
                    return Server(host.decode("utf-8", "replace"), int(port))
            problem = f"sentinel {sentinel} knows no master of that name"
        finally:
            connection.disconnect()
    raise Unavailable(problem)


def reason_of(error: BaseException, *, excerpt: bool) -> str:
    """
    Return one line that says what Redis has answered, or what went wrong with a connection.

    @param excerpt: quote the words of the server. Not after a secret was sent: then only its code.
    """
    if isinstance(error, (TimeoutError, redis.exceptions.TimeoutError)):
        return "no answer in time"
    if isinstance(error.__context__, OSError) and not isinstance(error, redis.exceptions.ResponseError):
        # redis-py has put an error of the socket into other words.
        return describe(error.__context__)
    if isinstance(error, OSError):
        return describe(error)
    if isinstance(error, UnicodeError):
        return "its name is no host name"
    if not isinstance(error, redis.exceptions.RedisError):
        # A number or a list that is none; the text may quote it.
        return "what it answers is not the protocol of Redis"
    code = code_of(error)
    if not code:
        return excerpt_of(str(error)) if excerpt else type(error).__name__
    text = f"it answers {code}"
    if hint := _HINTS.get(code):
        text += f" ({hint})"
    words = excerpt_of(str(error).removeprefix(f"{code} ")) if excerpt else ""
    return f"{text}: {words}" if words else text


def code_of(error: BaseException) -> str:
    """Return the first word of an error that Redis has answered, such as C{OOM}; empty for any other error."""
    if "user executing the script can't run" in str(error):
        # Redis 7 answers ERR to a script whose user lacks the right to a command in it.
        return "NOPERM"
    status = getattr(error, "status_code", None)
    if isinstance(status, str):
        return status
    word = str(error).partition(" ")[0]
    is_answer = isinstance(error, redis.exceptions.ResponseError)
    return word if is_answer and word.isalpha() and word.isupper() else ""


def read_info(answer: Any) -> dict[str, str]:
    """Return the fields of what INFO answers."""
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else ""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line and not line.startswith("#"))
