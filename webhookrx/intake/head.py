"""
What of a request matters to the decision, as plain values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

#: Names of headers that are asked for most, so that whoever goes through all lines of a head anyway picks them out.
PREFETCHED = frozenset([b"authorization", b"content-encoding", b"x-forwarded-for"])


def peer_text(ip: str, port: int | None) -> str:
    """Name a peer for a log line: its address, or C{unix} for one that has none."""
    return ip if port is not None else "unix"


class HeaderLines(msgspec.Struct, frozen=True, gc=False):
    """
    The header lines of a well-formed head: lower-case name, value without white space around it; in the order of the
    wire. They are taken apart each time that somebody goes through them.

    @ivar block: the head, its request line included.
    """

    block: bytes

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        for line in self.block.split(b"\r\n")[1:-2]:
            name, _, value = line.partition(b":")
            yield name.lower(), value.strip()


class Head(msgspec.Struct, frozen=True, gc=False):
    """
    The head of a request.

    @ivar method: as sent, such as C{b"POST"}.
    @ivar path: the raw path, not percent-decoded, without the query; visible ASCII only.
    @ivar query: the raw query, without the question mark; empty when there is none.
    @ivar headers: lower-case name and value, optional white space stripped, in the order of the wire. It can be
        gone through several times.
    @ivar peer_ip: address of the connection's other end as text; C{"127.0.0.1"} for a UNIX socket.
    @ivar peer_port: its port; None for a UNIX socket.
    @ivar secure: whether it came by TLS.
    @ivar prefetched: the values of all lines with a name in L{PREFETCHED}, by that name; None when nobody has looked.
    """

    method: bytes
    path: bytes
    query: bytes
    headers: Iterable[tuple[bytes, bytes]]
    peer_ip: str
    peer_port: int | None
    secure: bool
    prefetched: Mapping[bytes, list[bytes]] | None = None

    @property
    def peer_text(self) -> str:
        """Who is at the other end, for a log line."""
        return peer_text(self.peer_ip, self.peer_port)

    def values(self, name: bytes) -> list[bytes]:
        """Return the values of all header lines of that lower-case name, in order. They are read-only."""
        if self.prefetched is not None and name in PREFETCHED:
            return self.prefetched.get(name, [])
        return [value for key, value in self.headers if key == name]
