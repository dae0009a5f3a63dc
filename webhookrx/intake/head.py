"""
The head of a request, as the decision sees it: plain values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from webhookrx.intake.provenance import ClientIdentity

#: Names of headers that the decision asks for most; a parser that goes through all lines collects their values.
PREFETCHED = frozenset([b"authorization", b"ce-specversion", b"content-encoding", b"x-forwarded-for"])


class Peer(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """
    The other end of a connection.

    @ivar ip: address as text; C{"127.0.0.1"} for a UNIX socket.
    @ivar port: None for a UNIX socket.
    @ivar secure: whether the connection speaks TLS.
    @ivar client: whom its client certificate names, which was verified; None without one.
    """

    ip: str
    port: int | None
    secure: bool
    client: ClientIdentity | None = None

    def __str__(self) -> str:
        """Name it for a log line: its address, or C{unix}."""
        return self.ip if self.port is not None else "unix"


class HeaderLines(msgspec.Struct, gc=False):
    """
    The header lines of a well-formed head: lower-case name, value without white space around it; in the order of the
    wire. Each iteration splits them anew.

    @ivar block: the head, its request line included.
    """

    block: bytes
    _lower: bytes = b""

    @property
    def lower(self) -> bytes:
        """The head in lower case, made once."""
        if not self._lower:
            self._lower = self.block.lower()
        return self._lower

    def first(self, name: bytes) -> bytes | None:
        """
        Return the first value of a header; None when there is none.

        @param name: in lower case.
        """
        lower = self._lower or self.lower
        start = lower.find(b"\r\n" + name + b":")
        if start < 0:
            return None
        start += len(name) + 3
        end = lower.find(b"\r\n", start)
        return self.block[start : end if end >= 0 else None].strip()

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        for line in self.block.split(b"\r\n")[1:-2]:
            name, _, value = line.partition(b":")
            yield name.lower(), value.strip()

    def values(self, name: bytes) -> list[bytes]:
        """Return the values of all lines of that lower-case name, in order."""
        lower = self._lower or self.lower
        wanted = b"\r\n" + name + b":"
        values: list[bytes] = []
        end = 0
        while (begin := lower.find(wanted, end)) >= 0:
            end = lower.find(b"\r\n", begin + 2)
            values.append(self.block[begin + len(wanted) : end].strip())
        return values


class Head(msgspec.Struct, frozen=True, gc=False):
    """
    The head of a request.

    @ivar method: as sent, such as C{b"POST"}.
    @ivar path: the raw path, not percent-decoded, without the query; visible ASCII only.
    @ivar query: the raw query, without the question mark; None or empty when there is none.
    @ivar headers: lower-case name and value, optional white space stripped, in the order of the wire; iterable several
        times.
    @ivar peer: the other end of its connection.
    @ivar prefetched: the values of all lines with a name in L{PREFETCHED}, by that name, maybe with those of other
        names; None when not collected.
    """

    method: bytes
    path: bytes
    query: bytes | None
    headers: Iterable[tuple[bytes, bytes]]
    peer: Peer
    prefetched: Mapping[bytes, list[bytes]] | None = None

    def values(self, name: bytes) -> list[bytes]:
        """Return the values of all header lines of that lower-case name, in order. They are read-only."""
        prefetched = self.prefetched
        if prefetched is not None:
            found = prefetched.get(name)
            if found is not None:
                return found
            if name in PREFETCHED:
                return []
        headers = self.headers
        if type(headers) is HeaderLines:
            return headers.values(name)
        return [value for key, value in headers if key == name]
