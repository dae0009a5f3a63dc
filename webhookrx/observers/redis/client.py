"""
Connections to Redis, by redis-py: to a server or to the master that sentinels know, with our TLS, and with waits that
can be ended.

redis-py's own client would wait for each answer as long as its timeout, and retry by itself; so its connections are
used, and one answer is read after the other.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from threading import Thread
from typing import Any, Final

import redis.exceptions
from redis.connection import Connection

from webhookrx.errors import Unavailable
from webhookrx.observers.addresses import Server
from webhookrx.observers.excerpts import excerpt_of
from webhookrx.observers.redis.options import RedisServers
from webhookrx.observers.retrying import HURRY_TIME
from webhookrx.observers.sockets import Deadline, connect_socket, describe, shake_hands

_PIECE: Final = 65536
"""Bytes that are sent at once, so that a slow network has time for each."""

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


class RedisConnection(Connection):
    """
    A connection whose socket we open, so that TLS checks what all observers check.

    @param context: None without TLS.
    """

    def __init__(
        self, server: Server, servers: RedisServers, password: str | None, context: ssl.SSLContext | None, database: int
    ) -> None:
        self._tls_context = context
        self._is_opened = False
        super().__init__(
            host=server.host,
            port=server.port,
            db=database,
            username=servers.user if password is not None else None,
            password=password,
            # Of what has begun to come or to go; waits for an answer are in steps.
            socket_timeout=HURRY_TIME,
            protocol=2,
            driver_info=None,
            redis_connect_func=self._greet,
        )

    def _connect(self) -> socket.socket:
        deadline = Deadline(HURRY_TIME)
        try:
            opened = _open(self.host, self.port, deadline)
            try:
                if self._tls_context is not None:
                    secured = self._tls_context.wrap_socket(
                        opened, server_hostname=self.host, do_handshake_on_connect=False
                    )
                    opened = secured
                    shake_hands(secured, deadline)
                opened.settimeout(HURRY_TIME)
            except BaseException:
                opened.close()
                raise
        finally:
            deadline.close()
        self._is_opened = True
        return opened

    def _greet(self, connection: Connection) -> None:
        """Log in, unless another release of redis-py has opened the socket itself, and so without TLS."""
        if not self._is_opened:
            raise redis.exceptions.ConnectionError("this release of redis-py does not let us open its socket")
        connection.on_connect()

    def exchange(self, commands: Iterable[Command], count: int, steps: Iterable[float]) -> list[Any]:
        """
        Send commands at once, and return their answers: values, or C{redis.exceptions.ResponseError}.

        @param count: of the commands.
        @param steps: seconds to wait next, one by one, until the time is over.
        @raise redis.exceptions.RedisError: the connection has ended, or an answer is none; it is closed.
        @raise TimeoutError: the time was over; it is closed.
        """
        try:
            for packed in self.pack_commands(commands):
                whole = memoryview(packed)
                for begin in range(0, len(whole), _PIECE):
                    self.send_packed_command([whole[begin : begin + _PIECE]], check_health=False)
            return [self._answer(steps) for _ in range(count)]
        except BaseException:
            # What comes later would be taken for the answer to something else.
            self.disconnect()
            raise

    def ask(self, *command: str | bytes | int) -> Any:
        """
        Send one command, and return its answer.

        @raise redis.exceptions.RedisError: as L{exchange}, or the answer itself.
        """
        (answer,) = self.exchange([command], 1, [HURRY_TIME])
        if isinstance(answer, redis.exceptions.RedisError):
            raise answer
        return answer

    def _answer(self, steps: Iterable[float]) -> Any:
        if not self.can_read(0):
            for step in steps:
                if self.can_read(step):
                    break
            else:
                raise TimeoutError
        try:
            return self.read_response(disconnect_on_error=False)
        except redis.exceptions.ResponseError as error:
            return error


def _open(host: str, port: int, deadline: Deadline) -> socket.socket:
    """
    Connect to the first address of a host that answers. The name is looked up in a thread, so that this ends, too.

    @raise OSError: no address answers, or the host has none.
    """
    found: Future[list[Any]] = Future()

    def look_up() -> None:
        try:
            found.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except BaseException as error:
            found.set_exception(error)

    Thread(target=look_up, name="webhookrx-lookup", daemon=True).start()
    if not wait([found], deadline.left()).done:
        raise TimeoutError("its name was not looked up in time")
    problem: OSError = ConnectionError("it has no address")
    addresses = found.result()
    for number, (family, kind, _, _, address) in enumerate(addresses):
        try:
            # An address that never answers must leave time for the others.
            return connect_socket(family, kind, address, deadline, deadline.left() / (len(addresses) - number))[0]
        except OSError as error:
            problem = error
    raise problem


def connect(
    servers: RedisServers,
    password: str | None,
    context: ssl.SSLContext | None,
    is_over: Callable[[], bool] = lambda: False,
) -> tuple[RedisConnection, Server]:
    """
    Connect to the server, or to the master that one of the sentinels names.

    @param is_over: tells whether no further server is to be asked.
    @raise Unavailable: there is none; the text says why.
    """
    server = servers.addresses.servers[0] if servers.sentinel is None else _master(servers, context, is_over)
    connection = RedisConnection(server, servers, password, context, servers.database)
    try:
        connection.connect()
    except (redis.exceptions.RedisError, OSError, UnicodeError) as error:
        connection.disconnect()
        raise Unavailable(f"{server}: {reason_of(error, excerpt=not servers.sends_secret)}") from None
    return connection, server


def _master(servers: RedisServers, context: ssl.SSLContext | None, is_over: Callable[[], bool]) -> Server:
    """Ask one sentinel after the other; they get no password: it is that of the master."""
    problem = ""
    for sentinel in servers.addresses.servers:
        connection = RedisConnection(sentinel, servers, None, context, 0)
        try:
            connection.connect()
            answer = connection.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", servers.sentinel or "")
        except (redis.exceptions.RedisError, OSError, UnicodeError) as error:
            problem = f"sentinel {sentinel}: {reason_of(error, excerpt=True)}"
        else:
            match answer:
                case [bytes(host), bytes(port)] if port.isdigit():
                    return Server(host.decode("utf-8", "replace"), int(port))
            problem = f"sentinel {sentinel} knows no master of that name"
        finally:
            connection.disconnect()
        if is_over():
            break
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
