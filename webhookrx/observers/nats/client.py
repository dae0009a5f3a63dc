"""
Connections to NATS, by nats-py: to one of several servers, with TLS that is never left out, and with errors in our
words.

nats-py would connect again by itself, with the secrets that it knows, and send once more what waited. That is left to
whoever uses the connection: it reads the files anew, and knows what was answered.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import nats.errors
from nats.aio.client import Client
from nats.protocol.parser import AWAITING_CONTROL_LINE, Parser

from webhookrx.errors import Unavailable
from webhookrx.observers.excerpts import excerpt_of
from webhookrx.observers.sockets import describe
from webhookrx.settings import MiB

if TYPE_CHECKING:
    from webhookrx.observers.addresses import Server
    from webhookrx.observers.nats.options import NatsSecrets, NatsServers

OLDEST_SOUND: Final = (2, 10, 23)
"""
The release that mends the loss of streams when the process of a server with 2.10.20 to 2.10.22 is killed, see
U{https://github.com/nats-io/nats-server/releases/tag/v2.10.23}.
"""

#: What a server says in -ERR, https://docs.nats.io/reference/reference-protocols/nats-protocol#okerr.
_KNOWN_WORDS: Final = (
    "authorization violation",
    "authentication timeout",
    "user authentication expired",
    "user authentication revoked",
    "account authentication expired",
    "permissions violation",
    "maximum payload violation",
    "maximum connections exceeded",
    "maximum account active connections exceeded",
    "maximum control line exceeded",
    "stale connection",
    "slow consumer",
    "secure connection - tls required",
)
_NO_TLS: Final = "it offers no TLS"
_NOT_HEARD: Final = "this release of nats-py does not let us ask for TLS"
_NO_INFO: Final = "what it says of itself is no INFO of NATS, or its max_payload is below 1 KiB"
_OUR_WORDS: Final = (_NO_TLS, _NOT_HEARD, _NO_INFO)

LEAST_PAYLOAD: Final = 1024
"""
Bytes of C{max_payload} below which it is not believed: all messages would be refused for good. Whoever is between may
have written it, since a server says it before TLS.
"""
LONGEST_MESSAGE: Final = 64 * MiB
"""Bytes of a message that is read: the most that nats-server lets C{max_payload} be."""
LONGEST_LINE: Final = MiB
"""Bytes of a line of the protocol that is read."""


class BoundedParser(Parser):
    """Reads what a server sends, but neither a message nor a line without an end, which nats-py would gather."""

    async def parse(self, data: bytes = b"") -> None:
        """
        Read a piece.

        @raise nats.errors.ProtocolError: more comes than any server sends, or what is none of the protocol. Other
            errors nats-py would write to stderr, and leave the connection as it is.
        """
        try:
            await super().parse(data)
        except (nats.errors.ProtocolError, OSError):
            raise
        except Exception:
            raise nats.errors.ProtocolError("nats: what comes is not the protocol") from None
        is_line = self.state == AWAITING_CONTROL_LINE
        if len(self.buf) > LONGEST_LINE if is_line else self.needed > LONGEST_MESSAGE:
            raise nats.errors.ProtocolError("nats: more comes than any server sends")


class NatsClient(Client):
    """
    A connection that never does without TLS where that is wanted, and knows only the servers that it was told.

    @param needs_tls: the URL says C{tls://}.
    """

    def __init__(self, *, needs_tls: bool) -> None:
        super().__init__()
        self._needs_tls = needs_tls
        self._has_heard = False
        self._ps = BoundedParser(self)

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """
        See what the server says of itself, in the clear, before anything is sent to it.

        nats-py encrypts only if the server asks for it, so that whoever is between could leave that out and read the
        password (U{https://github.com/nats-io/nats.py/pull/912} mends this in its successor). And it would connect to
        any server that is named here.
        """
        self._has_heard = True
        if not _is_info(info):
            raise nats.errors.Error(_NO_INFO)
        info.pop("connect_urls", None)
        if initial_connection and self._needs_tls:
            if not info.get("tls_required") and not info.get("tls_available"):
                raise nats.errors.Error(_NO_TLS)
            info["tls_required"] = True
        await super()._process_info(info, initial_connection)

    def check(self) -> None:
        """
        Check that the server was heard by us: another release of nats-py may not ask L{_process_info} any more.

        @raise nats.errors.Error: it was not, and TLS is needed.
        """
        if self._needs_tls and not self._has_heard:
            raise nats.errors.Error(_NOT_HEARD)

    def abort(self) -> None:
        """Close the socket at once. C{close} waits until a server that hangs has read all."""
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()

    @property
    def version(self) -> tuple[int, int, int]:
        """The version of the server; zeros if it says none."""
        try:
            version = self.connected_server_version
            return version.major, version.minor, version.patch
        except (ValueError, TypeError):
            # The text of the error quotes it.
            return 0, 0, 0


def _is_info(info: Any) -> bool:
    """Tell whether that is what a server may say of itself."""
    if type(info) is not dict:
        return False
    limit = info.get("max_payload", LEAST_PAYLOAD)
    return type(limit) is int and limit >= LEAST_PAYLOAD


async def connect(
    servers: NatsServers,
    secrets: NatsSecrets,
    context: ssl.SSLContext | None,
    seconds: float,
    on_error: Callable[[Exception], None],
    on_closed: Callable[[], None],
    first: int = 0,
) -> tuple[NatsClient, Server]:
    """
    Connect to the first server that answers.

    @param context: goes with C{tls://}.
    @param seconds: for each of them.
    @param on_error: called with what goes wrong later, such as a missing right.
    @param on_closed: called when the connection has ended.
    @param first: which one to begin with.
    @raise Unavailable: none answers; the text is that of the last one.
    """
    problem = ""
    pool = servers.addresses.servers
    for number in range(len(pool)):
        server = pool[(first + number) % len(pool)]
        client = NatsClient(needs_tls=servers.tls is not None)
        try:
            await asyncio.wait_for(
                _connect_one(client, server, servers, secrets, context, on_error, on_closed), seconds
            )
        except Exception as error:
            problem = f"{server}: {reason_of(error, excerpt=not servers.sends_secret)}"
        else:
            return client, server
        finally:
            if not client.is_connected:
                client.abort()
    raise Unavailable(problem)


async def _connect_one(
    client: NatsClient,
    server: Server,
    servers: NatsServers,
    secrets: NatsSecrets,
    context: ssl.SSLContext | None,
    on_error: Callable[[Exception], None],
    on_closed: Callable[[], None],
) -> None:
    async def note_error(error: Exception) -> None:
        # Raised while it connects, it ends the tries, which nats-py would go on with for ever.
        if client.is_connected or client.is_closed:
            on_error(error)
        else:
            raise error

    async def note_closed() -> None:
        on_closed()

    options: dict[str, Any] = {}
    if context is not None:
        options |= {"tls": context, "tls_hostname": server.host}
    if secrets.password is not None:
        options |= {"user": servers.user, "password": _shown_after(client.check, secrets.password)}
    elif secrets.jwt is not None:
        from nats.aio.client import RawCredentials

        options["user_credentials"] = RawCredentials(
            f"-----BEGIN NATS USER JWT-----\n{secrets.jwt}\n-----BEGIN USER NKEY SEED-----\n{secrets.seed}\n"
        )
    elif secrets.seed is not None:
        options["nkeys_seed_str"] = secrets.seed
    await client.connect(
        f"{'nats' if context is None else 'tls'}://{server}",
        name="webhookrx",
        error_cb=note_error,
        closed_cb=note_closed,
        allow_reconnect=False,
        dont_randomize=True,
        # Seconds; the whole has a bound of its own.
        connect_timeout=3600,
        ping_interval=10,
        **options,
    )
    client.check()


def _shown_after(check: Callable[[], None], secret: str) -> Callable[[], str]:
    """Return what nats-py calls for a secret when it is about to be sent."""

    def show() -> str:
        check()
        return secret

    return show


async def close(client: NatsClient, settle: Awaitable[object] | None = None) -> None:
    """
    Close a connection within a second or so.

    @param settle: waited for before.
    """
    if settle is not None:
        with suppress(Exception):
            await asyncio.wait_for(settle, 0.5)
    client.abort()
    with suppress(Exception):
        await asyncio.wait_for(client.close(), 0.5)


def reason_of(error: BaseException | None, *, excerpt: bool) -> str:
    """
    Return one line that says what went wrong with a connection.

    @param excerpt: quote the words of the server. Not after a secret was sent: then only phrases that the protocol has.
    """
    if isinstance(error, (TimeoutError, asyncio.TimeoutError, nats.errors.TimeoutError)):
        return "no answer in time"
    if isinstance(error, OSError):
        return describe(error)
    text = " ".join(str(error).removeprefix("nats: ").split()) if error is not None else "the connection is closed"
    if isinstance(error, (nats.errors.UnexpectedEOF, nats.errors.ConnectionClosedError)):
        return "it has closed the connection"
    known = next((words for words in _KNOWN_WORDS if words in text.lower()), None)
    if known == "authorization violation":
        return "it says Authorization Violation: user, password, creds or nkey are wrong"
    if not excerpt and text not in _OUR_WORDS:
        return f"it says {known}" if known is not None else type(error).__name__
    return excerpt_of(text)
