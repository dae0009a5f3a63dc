"""
The address at which other machines reach an endpoint of this one.
"""

from __future__ import annotations

import ipaddress

from webhookrx.config.endpoints import parse_endpoint
from webhookrx.config.machine import HostFacts


def reachable_at(endpoint: str, host: HostFacts) -> str:
    """
    Return host and port of an endpoint: the address that it is bound to; where that is every address, the first of this
    machine, or else its name with the domain.

    @param endpoint: as in C{Listener.socket}.
    @return: empty if only this machine reaches it, or the port is not known: any free one, or a socket of systemd.
    """
    if not endpoint.startswith("tcp:"):
        return ""
    found = parse_endpoint(endpoint)
    _, bound, port = found.address
    if found.local or not port:
        return ""
    address = ipaddress.ip_address(bound)
    if address.is_link_local:
        return ""
    if not address.is_unspecified:
        return _joined(bound, port)
    # "::" takes the IPv4 addresses, too.
    fitting = (each for each in host.ip if address.version == 6 or ":" not in each)
    where = next(fitting, host.fqdn)
    return _joined(where, port) if where else ""


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
