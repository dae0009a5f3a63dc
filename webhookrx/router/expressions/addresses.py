"""
Addresses and networks, read as inet_aton(3) and inet_pton(3) read them.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Final

from webhookrx.router.expressions.function import Function, text_argument
from webhookrx.router.expressions.limits import CALL
from webhookrx.router.expressions.mistakes import OperationError
from webhookrx.router.expressions.run import Run
from webhookrx.router.expressions.values import ADDRESSES, NETWORKS

_LONGEST: Final = 64
"""Characters of an address or a network."""


def ipv4_address(text: str) -> IPv4Address:
    """
    Return an address in one of the forms of inet_aton(3), such as C{127.1}.

    @raise ValueError: it is none.
    """
    if not text.isascii() or not text[:1].isdigit():
        raise ValueError(text)
    try:
        return IPv4Address(socket.inet_aton(text.split(maxsplit=1)[0]))
    except OSError:
        raise ValueError(text) from None


def _ip(run: Run, value: Any) -> IPv4Address | IPv6Address:
    if type(value) in ADDRESSES:
        found: IPv4Address | IPv6Address = value
        return found
    text = text_argument(run, value)
    run.spend(CALL * 2)
    try:
        if len(text) > _LONGEST or "%" in text:
            raise ValueError
        return IPv6Address(text) if ":" in text else ipv4_address(text)
    except ValueError:
        raise OperationError("The text is no address.") from None


def _subnet(run: Run, value: Any) -> IPv4Network | IPv6Network:
    if type(value) in NETWORKS:
        found: IPv4Network | IPv6Network = value
        return found
    text = text_argument(run, value)
    run.spend(CALL * 4)
    address, slash, mask = text.partition("/")
    try:
        if len(text) > _LONGEST or "%" in text or (slash and not mask):
            raise ValueError
        if ":" in address:
            return IPv6Network((IPv6Address(address), int(mask) if slash else 128), strict=False)
        bits = mask if "." in mask else int(mask) if slash else 32
        return IPv4Network((ipv4_address(address), bits), strict=False)
    except ValueError:
        raise OperationError('The text is no network, such as "192.0.2.0/24".') from None


ADDRESS_FUNCTIONS: Final = (
    Function("ip", "text", "The address in a text, for `in`; stored, it is that text again.", _ip),
    Function("subnet", "text", "The network in a text, such as `192.0.2.0/24`, for `in`.", _subnet, folds=True),
)
