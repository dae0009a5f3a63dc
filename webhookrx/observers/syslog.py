"""
C{syslog:TRANSPORT:…}: sends messages as RFC 5424 over TCP, TLS, UDP or a UNIX socket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from zope.interface import alsoProvides, implementer

from webhookrx.errors import ConfigError, Rejected, Unavailable
from webhookrx.interfaces import ILocalObserver, IWaitingObserver
from webhookrx.observers.sockets import Deadline, describe
from webhookrx.observers.syslog_connection import (
    SyslogConnection,
    connect_tcp,
    connect_tls,
    connect_udp,
    connect_unix,
    line,
    octet_counted,
)
from webhookrx.observers.syslog_options import SyslogTarget, read_syslog

if TYPE_CHECKING:
    from webhookrx.interfaces import Prepared
    from webhookrx.message.message import Message
    from webhookrx.message.rfc5424 import SyslogFormat

#: Opens a connection; raises C{OSError}, or L{ConfigError} for files that have changed and are wrong.
Connect: TypeAlias = Callable[[Deadline], SyslogConnection]


@implementer(IWaitingObserver)
class SyslogObserver:
    """
    Sends each batch over one connection. The first batch opens it, so that the receiver starts while the server is
    away, and so does the first batch after it was lost.

    Its promise is that the messages have left this machine (C{"written"}); with datagrams over a network, that they
    were sent (C{"queued"}). A failed batch may have arrived in part, and a retry may duplicate that part.

    @param server: the destination, for people.
    @param timeout: seconds that a C{store} may take, without the look-up of a host name.
    @param max_size: bytes of the longest message that is sent, with its header.
    """

    def __init__(
        self,
        spec: str,
        server: str,
        promise: str,
        format: SyslogFormat,
        connect: Connect,
        *,
        timeout: float,
        max_size: int,
    ) -> None:
        self.spec = spec
        self.promise = promise
        self.prepare: Callable[[Message], bytes] = format.encode
        self._server = server
        self._connect = connect
        self._timeout = timeout
        self._max_size = max_size
        self._deadline: Deadline | None = None
        self._connection: SyslogConnection | None = None

    def open(self) -> None:
        """Prepare; the first batch connects."""
        self._deadline = Deadline(self._timeout)

    def hurry(self) -> None:
        """End this batch and all later ones within a second."""
        deadline = self._deadline  # another thread may set it to None
        if deadline is not None:
            deadline.stop_now()

    def store(self, batch: Sequence[Prepared]) -> list[Exception | None] | None:
        """
        Send a batch. If it fails on the connection of an earlier batch, it is retried once on a new one.

        @return: None, or an entry a message: L{Rejected} if the message is too long.
        @raise Unavailable: the server did not take the batch.
        """
        messages = cast("Sequence[bytes]", batch)
        refused = self._too_long(messages)
        places = [place for place in range(len(messages)) if place not in refused]
        if places:
            refusals = self._deliver([messages[place] for place in places])
            refused |= {places[index]: refusal for index, refusal in refusals.items()}
        return [refused.get(place) for place in range(len(messages))] if refused else None

    def reopen(self) -> None:
        """Let the next batch read the certificates again, and connect anew."""
        self._disconnect()

    def close(self) -> None:
        """Close the connection."""
        self._disconnect()
        if self._deadline is not None:
            deadline, self._deadline = self._deadline, None
            deadline.close()

    def _too_long(self, messages: Sequence[bytes]) -> dict[int, Rejected]:
        return {
            place: Rejected(f"{len(message)} bytes are more than max_size={self._max_size}")
            for place, message in enumerate(messages)
            if len(message) > self._max_size
        }

    def _deliver(self, messages: Sequence[bytes]) -> dict[int, Rejected]:
        deadline = self._deadline
        if deadline is None:
            raise Unavailable("it is not open")
        deadline.begin()
        try:
            if self._is_connected():
                try:
                    return self._send(messages)
                except TimeoutError:
                    raise
                except OSError:
                    # Most likely the server was restarted; it may be back already.
                    self._disconnect()
            self._connection = self._connect(deadline)
            return self._send(messages)
        except OSError as error:
            self._disconnect()
            raise Unavailable(f"{self._server}: {describe(error)}") from error
        except ConfigError as error:
            # The files of certificates have changed since the start, and are wrong.
            raise Unavailable(f"{self._server}: {error.problem}") from error
        except BaseException:
            # It may be inside a frame: the next bytes would be taken for the rest of it.
            self._disconnect()
            raise

    def _is_connected(self) -> bool:
        """Tell whether the connection still works, and drop it if not."""
        if self._connection is not None:
            try:
                self._connection.check()
            except OSError:
                self._disconnect()
        return self._connection is not None

    def _send(self, messages: Sequence[bytes]) -> dict[int, Rejected]:
        assert self._connection is not None
        return self._connection.send(messages)

    def _disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()


def build_syslog(spec: str, args: Sequence[str], given: Mapping[str, str], ack: str) -> SyslogObserver:
    """
    Make the observer of C{syslog:tcp:HOST:PORT}, C{syslog:tls:HOST[:PORT]}, C{syslog:udp:HOST[:PORT]} or
    C{syslog:unix:PATH}, with any of L{webhookrx.observers.syslog_options.SYSLOG_SPEC}, without connecting it.

    @raise ConfigError: an argument, an option or a file of certificates is wrong.
    """
    target = read_syslog(spec, args, given)
    observer = SyslogObserver(
        spec,
        str(target),
        "queued" if target.transport == "udp" else "written",
        target.format,
        _connect_to(target),
        timeout=target.timeout,
        max_size=target.max_size,
    )
    # Over TCP it waits until the other machine has acknowledged the bytes.
    if target.transport in ("udp", "unix"):
        alsoProvides(observer, ILocalObserver)
    return observer


def _connect_to(target: SyslogTarget) -> Connect:
    host, port = target.host, target.port
    if target.make_context is not None:
        return partial(connect_tls, host, port, make_context=target.make_context, server_name=target.server_name)
    if target.transport == "tcp":
        return partial(connect_tcp, host, port, frame=octet_counted if target.octet_counting else line)
    if target.transport == "udp":
        return partial(connect_udp, host, port)
    return partial(connect_unix, host)
