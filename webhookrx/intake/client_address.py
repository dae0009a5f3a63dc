"""
Where a request comes from: the peer of the connection, or what a trusted proxy says in a header.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple

_MAX_REMEMBERED_LINE: Final = 128
"""Bytes of a header line that is worth remembering, so that the memory below is bounded in bytes too."""
_MAX_COMMAS: Final = 16
"""How many commas inside the quoted strings of the last element are looked at before it is given up."""
_MAX_PEER: Final = 80
"""Characters of the longest address that a socket can name: an IPv6 address and its zone."""

# A list element with its quoted strings whole (RFC 9110 section 5.6.4). Each byte fits in one place only, and no group
# is possessive: in CPython 3.11.2 one that fails half-way does not go back to where it began.
_ELEMENT: Final = re.compile(rb'[^",\\]*(?:"[^"\\]*(?:\\.[^"\\]*)*"[^",\\]*)*', re.DOTALL)
# One "name=value", or none, of a Forwarded element (RFC 7239 section 4), with its semicolon. The colons and brackets
# of an address belong in a quoted string, but many proxies forget it.
_PARAMETER: Final = re.compile(
    r"""[ \t]*+(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\.)*+)"|([^\s",;\\=]+)))?[ \t]*+(?:;|\Z)""", re.DOTALL
)
_INTERFACE_BITS: Final = 64
"""Bits of an IPv6 address that tell the interfaces of one link apart."""
_QUOTED_PAIR: Final = re.compile(r"\\(.)", re.DOTALL)
_PORT: Final = re.compile(r"[0-9]{1,5}")


class ClientAddress(NamedTuple):
    """
    An address in its normal form.

    @ivar ip: such as C{"192.0.2.1"} or C{"2001:db8::1"}; never an IPv4 address in IPv6 clothes.
    @ivar port: None when it was not given.
    """

    ip: str
    port: int | None


def from_proxy_header(values: Sequence[bytes]) -> ClientAddress | None:
    """
    Read the client's address from the one trusted header: the last element of its last line, because only that one
    was written by the proxy in front of us.

    An element is C{ip}, C{ip:port}, C{[v6]}, C{[v6]:port}, a bare IPv6 address, or an element of C{Forwarded}
    (RFC 7239) whose C{for} is one of these.

    @param values: of all lines of that header, in the order of the wire.
    @return: None when there is no such element or it is anything else: a name, C{unknown}, a short form such as
        C{10.1}, an address with a zone, a bad port.
    """
    if not values:
        return None
    line = values[-1]
    return _remembered_line(line) if len(line) <= _MAX_REMEMBERED_LINE else _from_line(line)


@lru_cache(maxsize=1024)
def normal_ip(text: str) -> str | None:
    """
    Bring the address of a peer into its normal form: IPv4 in IPv6 becomes IPv4, a zone such as C{%eth0} stays.

    @return: None when the text is no address.
    """
    if len(text) > _MAX_PEER or not (text.isascii() and text.isprintable()) or " " in text:
        return None
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return _normal(address)


@lru_cache(maxsize=1024)
def sender_of(ip: str) -> str:
    """
    Return whose address it is, for what one sender may take: an IPv4 address is a sender of its own, of IPv6 all that
    have the first 64 bits in common, since a host has any number of those (RFC 4291 section 2.5.1, RFC 7934).

    @param ip: in its normal form, see L{normal_ip}. The zone of a link-local address stays: it is another link's.
    """
    if ":" not in ip:
        return ip
    address, percent, zone = ip.partition("%")
    network = int(IPv6Address(address)) >> _INTERFACE_BITS << _INTERFACE_BITS
    return f"{IPv6Address(network)}{percent}{zone}/{128 - _INTERFACE_BITS}"


def _normal(address: IPv4Address | IPv6Address) -> str:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(address if mapped is None else mapped)


def _from_line(line: bytes) -> ClientAddress | None:
    element = _last_element(line)
    if element is None or not element.isascii():
        return None
    text = element.decode("ascii")
    node = _forwarded_for(text) if "=" in text else text
    return None if node is None else _from_node(node)


_remembered_line = lru_cache(maxsize=1024)(_from_line)


def _last_element(line: bytes) -> bytes | None:
    """
    Split off the last element that is not empty.

    Looked for from the right: what stands before it was written by the client, and a quote left open there must not
    swallow the proxy's own word. In a well-formed line both directions give the same.
    """
    line = line.strip(b", \t")
    comma = len(line)
    for _ in range(_MAX_COMMAS):
        comma = line.rfind(b",", 0, comma)
        element = line[comma + 1 :].strip(b" \t")
        if _ELEMENT.fullmatch(element):
            return element or None
        if comma < 0:
            break
    return None


def _forwarded_for(element: str) -> str | None:
    """Return the one C{for} of a C{Forwarded} element, unquoted; None when the element is not well-formed."""
    node: str | None = None
    position = 0
    while position < len(element):
        parameter = _PARAMETER.match(element, position)
        if parameter is None:
            return None
        position = parameter.end()
        if parameter[1] is not None and parameter[1].lower() == "for":
            if node is not None:
                return None
            node = parameter[3] if parameter[2] is None else _QUOTED_PAIR.sub(r"\1", parameter[2])
    return node


def _from_node(node: str) -> ClientAddress | None:
    """Read an address with or without a port."""
    bracketed = node.startswith("[")
    if bracketed:
        ip, closing, rest = node[1:].partition("]")
        if not closing or (rest and rest[0] != ":"):
            return None
        colon, port_text = rest[:1], rest[1:]
    elif node.count(":") == 1:
        ip, colon, port_text = node.partition(":")
    else:
        ip, colon, port_text = node, "", ""
    if colon and not (_PORT.fullmatch(port_text) and int(port_text) <= 65535):
        return None
    # A zone means something only on the proxy's own machine.
    if "%" in ip:
        return None
    try:
        address = ip_address(ip)
    except ValueError:
        return None
    if bracketed and address.version != 6:
        return None
    return ClientAddress(_normal(address), int(port_text) if colon else None)
