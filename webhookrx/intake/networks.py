"""
Allow-lists of networks: the addresses from which requests are taken, looked up in less than a microsecond or two.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network
from socket import AF_INET, AF_INET6, inet_pton
from typing import Any, Final, TypeAlias

import msgspec

from webhookrx.diagnostics import quoted
from webhookrx.intake.remembered import Remembered

Network: TypeAlias = IPv4Network | IPv6Network

MOST_NETWORKS: Final = 100_000
"""Networks of one list: more than any cloud publishes."""

LIST_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
"""What a list of networks may be called; an address never looks like it, since it begins with a letter."""

_V4_IN_V6: Final = IPv6Network("::ffff:0:0/96")


def parse_network(text: str) -> Network:
    """
    Read an address or a network, such as C{192.0.2.0/24} or C{2001:db8::1}. IPv4 in IPv6 becomes IPv4.

    @raise ValueError: it is neither; the text is one sentence that says what is allowed.
    """
    try:
        network = ip_network(text)
    except ValueError:
        network = None
    if network is None:
        try:
            around = ip_network(text, strict=False)
        except ValueError:
            raise ValueError(f"{quoted(text)} is no network, such as 192.0.2.0/24 or 2001:db8::/32.") from None
        raise ValueError(f"{quoted(text)} is an address within a network; the network is {around}.")
    if isinstance(network, IPv6Network) and network.subnet_of(_V4_IN_V6):
        mapped = network.network_address.ipv4_mapped
        return IPv4Network((int(mapped or 0), network.prefixlen - 96))
    return network


def read_networks(data: bytes, at: str = "") -> tuple[Network, ...]:
    """
    Read the networks of a file: one a line, where blank lines and what follows a C{#} do not count; or those in a JSON
    document.

    @param at: where they are in a JSON document, as a JSON pointer (RFC 6901) to a text or to an array of texts; C{*}
        stands for all elements of an array, as in C{/prefixes/*/ip_prefix}. Empty: the file holds lines, or one array.
    @raise ValueError: something in it is no network, there is none, or there are too many; the text is one sentence.
    """
    is_json = bool(at) or data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    texts = _at_pointer(data.removeprefix(b"\xef\xbb\xbf"), at) if is_json else _lines(data)
    if not texts:
        raise ValueError(f"There is no network at {quoted(at)}." if at else "It holds no network.")
    if len(texts) > MOST_NETWORKS:
        raise ValueError(f"It holds {len(texts):,} networks, and at most {MOST_NETWORKS:,} are taken.")
    networks = []
    for place, text in texts:
        try:
            networks.append(parse_network(text))
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
    return tuple(networks)


class AllowList:
    """
    The networks from which requests are taken, compiled.

    @param items: the networks of each item of a list, by what people have written: a network, or the name of a list.
    """

    __slots__ = ("_items", "_known", "_v4", "_v6")

    def __init__(self, items: Mapping[str, Sequence[Network]]) -> None:
        self._items = {item: _Ranges(networks) for item, networks in items.items()}
        together = _Ranges([network for networks in items.values() for network in networks])
        self._v4, self._v6 = together.v4, together.v6
        self._known: Remembered[str, bool] = Remembered(self._find, most=1024, longest=80)

    @property
    def items(self) -> tuple[str, ...]:
        """What people have written: networks, and names of lists."""
        return tuple(self._items)

    def allows(self, ip: str) -> bool:
        """
        Return whether a request from this address is taken.

        @param ip: in its normal form, see L{webhookrx.intake.client_address.normal_ip}; its zone does not count.
        """
        return self._known[ip]

    def item_of(self, ip: str) -> str | None:
        """Return the first item that holds an address, for people; None if none does."""
        version, number = _number(ip)
        for item, ranges in self._items.items():
            if _holds(ranges.v6 if version == 6 else ranges.v4, number):
                return item
        return None

    def _find(self, ip: str) -> bool:
        version, number = _number(ip)
        return _holds(self._v6 if version == 6 else self._v4, number)


class _Ranges:
    """Ranges of addresses, apart from each other: by version, the numbers at which they begin, and end, in turns."""

    __slots__ = ("v4", "v6")

    def __init__(self, networks: Sequence[Network]) -> None:
        self.v4 = _edges(network for network in networks if network.version == 4)
        self.v6 = _edges(network for network in networks if network.version == 6)


def _edges(networks: Iterable[Network]) -> list[int]:
    """Return the first number of each range, and the first behind it, in order; ranges that touch become one."""
    edges: list[int] = []
    spans = sorted((int(network.network_address), int(network.broadcast_address) + 1) for network in networks)
    for begin, end in spans:
        if edges and begin <= edges[-1]:
            edges[-1] = max(edges[-1], end)
        else:
            edges += begin, end
    return edges


def _holds(edges: list[int], number: int) -> bool:
    # Behind an odd number of edges a range is open.
    return bisect_right(edges, number) % 2 == 1


def _number(ip: str) -> tuple[int, int]:
    """Return the version and the number of an address; C{(4, -1)}, which no range holds, for what is none."""
    try:
        if ":" in ip:
            packed = inet_pton(AF_INET6, ip.partition("%")[0])
            address = IPv6Address(packed)
            return (6, int(address)) if address.ipv4_mapped is None else (4, int(address.ipv4_mapped))
        return 4, int.from_bytes(inet_pton(AF_INET, ip))
    except (OSError, ValueError):
        return 4, -1


def _lines(data: bytes) -> list[tuple[str, str]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("It is not UTF-8.") from None
    lines = ((f"Line {number}", line.partition("#")[0].strip()) for number, line in enumerate(text.split("\n"), 1))
    return [(place, line) for place, line in lines if line]


def _at_pointer(data: bytes, at: str) -> list[tuple[str, str]]:
    if at and not at.startswith("/"):
        raise ValueError(f"{quoted(at)} is no JSON pointer, such as /hooks.")
    try:
        found: list[Any] = [msgspec.json.decode(data)]
    except msgspec.DecodeError as error:
        raise ValueError(f"It is not JSON: {error}.") from None
    except RecursionError:
        raise ValueError("It is nested too deeply.") from None
    for raw in at.split("/")[1:]:
        name = raw.replace("~1", "/").replace("~0", "~")
        found = [member for value in found for member in _members(value, name)]
    texts = [text for value in found for text in (value if isinstance(value, list) else [value])]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"Something at {quoted(at)} is no text.")
    return [(f"Network {number} at {quoted(at)}", text) for number, text in enumerate(texts, 1)]


def _members(value: Any, name: str) -> list[Any]:
    if isinstance(value, dict):
        return [value[name]] if name in value else []
    if isinstance(value, list):
        if name == "*":
            return value
        return [value[int(name)]] if name.isascii() and name.isdigit() and int(name) < len(value) else []
    return []
