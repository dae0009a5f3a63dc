"""
Routers as targets of Prometheus, by the JSON of its C{http_sd}
(U{https://prometheus.io/docs/prometheus/latest/http_sd/}).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from webhookrx.management.agent_protocol import RouterFacts

META: Final = "__meta_webhookrx_"
"""Labels that begin with two underscores are for relabelling: Prometheus drops them after it."""

_ADDRESS: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([0-9A-Za-z.-]{1,253})):([1-9][0-9]{0,4})")
_DOMAIN_NAME: Final = re.compile(r"(?:[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?\.)+[A-Za-z][0-9A-Za-z-]{0,62}")
_NO_LABEL: Final = re.compile(r"[^0-9A-Za-z_]")


class ScrapeTarget(msgspec.Struct, frozen=True):
    """
    A group of targets that have the same labels; here it is one router.

    @ivar targets: host and port of its admin endpoint.
    @ivar labels: by their names, which all begin with L{META}.
    """

    targets: tuple[str]
    labels: dict[str, str]


def scrape_target(guid: str, name: str, facts: RouterFacts, labels: Mapping[str, str]) -> ScrapeTarget | None:
    """
    Return a router as a target; None when it has not told of an endpoint that may be asked.

    @param labels: of the router.
    """
    if not may_be_scraped(facts.admin):
        return None
    told = {each: str(getattr(facts, each)) for each in ("hostname", "fqdn", "os", "arch", "version", "form")}
    meta = {"router": name, "guid": guid, **told, **_label_names(labels)}
    return ScrapeTarget((facts.admin,), {f"{META}{key}": value for key, value in meta.items()})


def may_be_scraped(address: str) -> bool:
    """
    Tell whether Prometheus may be sent to an address that a router has told: a host with its domain, or an IP address,
    and a port. It is never one of the machine on which Prometheus runs, nor a link-local one, where clouds have their
    metadata: whoever has a router's certificate tells what they like.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found[3]) > 65_535:
        return False
    host = found[1] or found[2]
    try:
        parsed = ipaddress.ip_address(host)
    except ValueError:
        return found[1] is None and bool(_DOMAIN_NAME.fullmatch(host)) and not _is_of_this_machine(host)
    if (parsed.version == 6) == (found[1] is None):
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        parsed = parsed.ipv4_mapped or parsed
    return not (parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified or parsed.is_multicast)


def _is_of_this_machine(name: str) -> bool:
    return name.lower().endswith((".localhost", ".localdomain"))


def _label_names(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels by names that Prometheus takes; of two that become one, that which needed no change counts."""
    found: dict[str, str] = {}
    for key in sorted(labels, key=lambda each: (not _NO_LABEL.search(each), each)):
        found[f"label_{_NO_LABEL.sub('_', key)}"] = labels[key]
    return found
