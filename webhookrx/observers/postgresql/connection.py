"""
Connections of psycopg that wait in steps: no server that hangs, and no name server, holds them for longer than is said.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Iterator, Sequence
from os.path import isfile
from typing import Final, NamedTuple, TypeVar

import psycopg
from psycopg import pq
from psycopg.abc import PQGen
from psycopg.conninfo import make_conninfo
from psycopg.waiting import Ready, Wait

from webhookrx.errors import ConfigError
from webhookrx.observers.addresses import Server
from webhookrx.observers.excerpts import excerpt_of
from webhookrx.observers.postgresql.answers import ConnectionFailed
from webhookrx.observers.postgresql.options import PostgreSQLTarget
from webhookrx.observers.retrying import first_of
from webhookrx.observers.sockets import look_up

OLDEST_LIBPQ: Final = 170000
"""The first libpq that cancels without blocking; it can be told to show no password and no certificate, too."""

#: Certificate authorities of the system, where distributions keep them. The OpenSSL in wheels of psycopg looks for them
#: in a directory of its own that is not there, so sslrootcert=system finds none; for the matter see psycopg issue 928.
_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)

_RV = TypeVar("_RV")


class OutOfTime(Exception):
    """What was waited for has not come in time."""


class SteppedConnection(psycopg.Connection[tuple[object, ...]]):
    """A connection that waits in the steps of whoever uses it."""

    steps: Iterator[float] = iter(())

    def wait(self, gen: PQGen[_RV], interval: float = 0.1, timeout: float | None = None) -> _RV:
        """
        Do as psycopg does, which calls this for whatever it waits for.

        @raise OutOfTime: C{steps} have ended.
        """
        poll = select.poll()
        fd = self.pgconn.socket
        try:
            wanted = next(gen)
            while True:
                poll.register(
                    fd, (select.POLLIN if wanted & Wait.R else 0) | (select.POLLOUT if wanted & Wait.W else 0)
                )
                step = next(self.steps, None)
                if step is None:
                    raise OutOfTime
                wanted = gen.send(_ready(poll.poll(step * 1000)))
        except StopIteration as end:
            result: _RV = end.value
            return result


def _ready(found: Sequence[tuple[int, int]]) -> Ready:
    if not found:
        return Ready.NONE
    # A broken connection is for libpq to find by reading.
    reads = Ready.R if found[0][1] & ~select.POLLOUT else Ready.NONE
    return Ready(reads | (Ready.W if found[0][1] & select.POLLOUT else Ready.NONE))


class _Place(NamedTuple):
    """An address of a server."""

    server: Server
    address: str


def connect(target: PostgreSQLTarget, password: str | None, steps: Iterator[float]) -> Iterator[SteppedConnection]:
    """
    Yield a connection to each address of the servers that can be had, in their order; close those that are of no use.

    @raise ConnectionFailed: there is none, or no further one; the text says why that is with the last one.
    """
    places = [place for server in target.addresses.servers for place in _look_up(server, steps)]
    problem = "its name leads to no address"
    # One share is for the work on the connection.
    share = target.timeout / (len(places) + 1)
    for place in places:
        try:
            yield _connect_to(place, target, password, first_of(steps, share))
        except ConnectionFailed as error:
            problem = f"{place.server}: {error}"
    raise ConnectionFailed(problem)


def _connect_to(
    place: _Place, target: PostgreSQLTarget, password: str | None, steps: Iterator[float]
) -> SteppedConnection:
    pgconn = pq.PGconn.connect_start(_parameters(place, target, password))
    try:
        _finish(pgconn, steps)
    except BaseException:
        pgconn.finish()
        raise
    pgconn.nonblocking = 1
    return SteppedConnection(pgconn)


def _finish(pgconn: pq.abc.PGconn, steps: Iterator[float]) -> None:
    """Wait for a connection that was begun, as the manual of libpq says (PQconnectPoll)."""
    status: int = pq.PollingStatus.WRITING
    while status != pq.PollingStatus.OK:
        if status == pq.PollingStatus.FAILED or pgconn.status == pq.ConnStatus.BAD:
            raise ConnectionFailed(_why(pgconn))
        poll = select.poll()
        poll.register(pgconn.socket, select.POLLIN if status == pq.PollingStatus.READING else select.POLLOUT)
        if not any(poll.poll(step * 1000) for step in steps):
            raise ConnectionFailed("the connection was not there in time")
        status = pgconn.connect_poll()


def _why(pgconn: pq.abc.PGconn) -> str:
    """Return why there is no connection. Nothing is quoted once a password was shown."""
    if pgconn.used_password:
        return "it refuses the connection, after it was shown the password; look at user=, password_file= and its log"
    text = pgconn.error_message.decode("utf-8", "replace")
    if "authentication method requirement" in text:
        return "it wants a password, or another proof of who this is; look at user= and password_file="
    return excerpt_of(text) or "there is no connection"


def _parameters(place: _Place, target: PostgreSQLTarget, password: str | None) -> bytes:
    """
    Return the connection string. Whatever the environment, C{~/.pgpass} or C{~/.postgresql} could say that matters is
    said here.
    """
    seconds = max(round(target.timeout), 1)
    tls = target.tls
    parameters: dict[str, str | int] = {
        "host": place.server.host,
        "hostaddr": place.address,
        "port": place.server.port,
        "dbname": target.database,
        "user": target.user,
        "application_name": "webhookrx",
        "client_encoding": "UTF8",
        "gssencmode": "disable",
        "target_session_attrs": "any",
        "sslmode": "disable",
        "sslcertmode": "disable",
        "keepalives": 1,
        "keepalives_idle": seconds,
        "keepalives_interval": seconds,
        "keepalives_count": 3,
        "tcp_user_timeout": round(target.timeout * 1000),
    }
    if password is None:
        # Not even one that libpq has found elsewhere.
        parameters["require_auth"] = "none"
    else:
        parameters["password"] = password
    if tls is not None:
        parameters |= {
            "sslmode": "verify-full",
            "sslrootcert": tls.ca_file or system_authorities(),
            "ssl_min_protocol_version": "TLSv1.2",
        }
        if tls.cert_file is not None and tls.key_file is not None:
            parameters |= {"sslcertmode": "allow", "sslcert": tls.cert_file, "sslkey": tls.key_file}
    return make_conninfo("", **parameters).encode()


def check_libpq() -> None:
    """
    Check the library below psycopg.

    @raise ConfigError: it is too old.
    """
    if pq.version() < OLDEST_LIBPQ:
        raise ConfigError(
            f"observer 'postgresql' needs libpq {OLDEST_LIBPQ // 10000} or newer, which the binary package has: "
            "pip install 'psycopg[binary]>=3.3'"
        )


def system_authorities() -> str:
    """
    Return the file of the certificate authorities that the system trusts.

    @raise ConfigError: there is none where they are looked for.
    """
    found = ssl.get_default_verify_paths().cafile
    path = next((path for path in (found, *_BUNDLES) if path is not None and isfile(path)), None)
    if path is None:
        raise ConfigError("observer 'postgresql': ca_file= is needed: no certificate authorities of the system found")
    return path


def _look_up(server: Server, steps: Iterator[float]) -> list[_Place]:
    """
    Return the addresses of a server. We ask, since libpq would wait for a name server that is away.

    @raise ConnectionFailed: there is none.
    """
    try:
        found = [str(place[0]) for *_, place in look_up(server.host, server.port, socket.SOCK_STREAM, steps)]
    except OSError as error:
        raise ConnectionFailed(f"{server}: {error.strerror or type(error).__name__}") from None
    except UnicodeError:
        raise ConnectionFailed(f"{server}: it is no host name") from None
    if not found:
        raise ConnectionFailed(f"{server}: its name leads to no address")
    return [_Place(server, address) for address in dict.fromkeys(found)]
