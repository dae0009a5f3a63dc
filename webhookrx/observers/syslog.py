"""
C{syslog:TRANSPORT:…}: sends messages as RFC 5424 over TCP, TLS, UDP or a UNIX socket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from zope.interface import implementer

from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError, Rejected, Unavailable
from webhookrx.interfaces import IWaitingObserver
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
from webhookrx.observers.syslog_options import (
    Destination,
    check_belongs,
    read_destination,
    read_format,
    read_framing,
    read_max_size,
    read_server_name,
    read_timeout,
    read_tls,
)

if TYPE_CHECKING:
    from webhookrx.interfaces import Prepared
    from webhookrx.message.message import Message
    from webhookrx.message.rfc5424 import SyslogFormat

#: Opens a connection; raises C{OSError}, or L{ConfigError} for files that are wrong by now.
Connect: TypeAlias = Callable[[Deadline], SyslogConnection]


@implementer(IWaitingObserver)
class SyslogObserver:
    """
    Keeps one connection and sends each batch on it. It is opened by the first batch, so that a server which is away
    does not keep the receiver from starting, and again by the first batch after it was lost.

    Its word means that the messages have left this machine (C{"written"}); with datagrams over a network, that they
    were sent (C{"queued"}). A batch that failed may have arrived in part: it may be there twice once it is sent again.

    @param spec: the spec string.
    @param server: where it sends to, for people.
    @param promise: what its word means.
    @param format: makes bytes of a message.
    @param connect: opens a connection.
    @param timeout: seconds that a C{store} may take, save for the look-up of a host name.
    @param max_size: bytes of the longest message that is sent, header and all.
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
        """Be ready; the first batch connects."""
        self._deadline = Deadline(self._timeout)

    def hurry(self) -> None:
        """End what waits within a second, and what is to come as well."""
        deadline = self._deadline  # another thread may close it
        if deadline is not None:
            deadline.stop_now()

    def store(self, batch: Sequence[Prepared]) -> list[Exception | None] | None:
        """
        Send a batch. One that fails on a connection of an earlier batch is tried once more on a new one.

        @return: None, or an entry a message: L{Rejected} for one that is too long.
        @raise Unavailable: the server did not take it.
        """
        messages = cast("Sequence[bytes]", batch)
        refused = self._too_long(messages)
        places = [place for place in range(len(messages)) if place not in refused]
        if places:
            refusals = self._deliver([messages[place] for place in places])
            refused |= {places[index]: refusal for index, refusal in refusals.items()}
        return [refused.get(place) for place in range(len(messages))] if refused else None

    def reopen(self) -> None:
        """Let the next batch connect anew, with certificates that are read anew."""
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
                    # The server was restarted, most likely; it is there again or it is not.
                    self._disconnect()
            self._connection = self._connect(deadline)
            return self._send(messages)
        except OSError as error:
            self._disconnect()
            raise Unavailable(f"{self._server}: {describe(error)}") from error
        except ConfigError as error:
            # The files of certificates, read anew, are not what they were at the start.
            raise Unavailable(f"{self._server}: {error.problem}") from error
        except BaseException:
            # It may be in the middle of a frame: what came next would be taken for the rest of it.
            self._disconnect()
            raise

    def _is_connected(self) -> bool:
        """Look whether the connection is still there, and forget it when not."""
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
    C{syslog:unix:PATH}, with any of L{webhookrx.observers.syslog_options.SYSLOG_SPEC}. Nothing is connected.

    @raise ConfigError: an argument or option is wrong, or a file of certificates.
    """
    options = SpecOptions("syslog", given)
    destination = read_destination(spec, args)
    check_belongs(destination.transport, options)
    octet_counting = destination.transport == "tls" or (
        destination.transport == "tcp" and read_framing(options) == "octet-counting"
    )
    return SyslogObserver(
        spec,
        str(destination),
        "queued" if destination.transport == "udp" else "written",
        read_format(options, octet_counting=octet_counting),
        _connect_for(destination, options),
        timeout=read_timeout(options),
        max_size=read_max_size(options),
    )


def _connect_for(destination: Destination, options: SpecOptions) -> Connect:
    transport, host, port = destination
    if transport == "tcp":
        frame = octet_counted if read_framing(options) == "octet-counting" else line
        return partial(connect_tcp, host, port, frame=frame)
    if transport == "tls":
        return partial(
            connect_tls, host, port, make_context=read_tls(options), server_name=read_server_name(options, host)
        )
    if transport == "udp":
        return partial(connect_udp, host, port)
    return partial(connect_unix, host)
