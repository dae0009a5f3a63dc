"""
C{python -m benchmarks.console_bundle}: the size of a bundle of 200 rules, and how long console and router take to sign
and to check one, and to ask for a certificate and to issue it.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from statistics import median
from time import process_time
from typing import Final

from webhookrx.agent.router_keys import new_key
from webhookrx.console.routers.authority import make_authority
from webhookrx.management.bundle import BundleRouter, RouterBundle, key_id, open_bundle, public_key, seal

RULES: Final = 200
MOST_BYTES: Final = 64 * 1024
MOST_PACKED: Final = 8 * 1024
"""Bytes that a bundle of L{RULES} rules may have, as it is and packed by gzip."""

_GUID: Final = "0b0e4c9e-8a4f-4c57-9d5e-3d2f5b6a7c80"
_ROUNDS: Final = 101


def rules(count: int) -> str:
    """Return a rules file with a selector, labels and files in each rule."""
    return "connector_rules:\n" + "".join(
        f"- name: rule-{number}\n  selector: label.site = fra AND label.rack = {number % 40}\n"
        f"  labels: {{product: github, team: team-{number % 9}}}\n  protocol: HTTPS\n  port: {8000 + number}\n"
        "  key_file: /etc/webhookrx/tls/key.pem\n  cert_file: /etc/webhookrx/tls/cert.pem\n"
        "  preprocessing: {classify: yes, parse: yes}\n"
        for number in range(count)
    )


def milliseconds(work: Callable[[], object]) -> float:
    """Return the processor time that a call takes, in the middle of many."""
    times = []
    for _ in range(_ROUNDS):
        begun = process_time()
        work()
        times.append(process_time() - begun)
    return median(times) * 1000


def main() -> int:
    """Print the figures; return 1 if one misses its goal."""
    now = datetime.now(UTC)
    with tempfile.TemporaryDirectory() as directory:
        authority = make_authority(directory, now)
    keys = {key_id(key): key for key in map(public_key, authority.signing_keys)}
    bundle = RouterBundle(
        guid=_GUID,
        revision=7,
        made_at=1,
        router=BundleRouter("router-7", {"site": "fra"}),
        rules=rules(RULES),
        authorities=authority.authorities,
        signing_keys=authority.signing_keys,
    )
    envelope = seal(bundle, authority.signing_key)
    request = new_key().csr
    packed = len(gzip.compress(envelope))
    text, text_packed = len(bundle.rules), len(gzip.compress(bundle.rules.encode()))
    figures = (
        ("signed", milliseconds(lambda: seal(bundle, authority.signing_key)), 1.0),
        ("checked", milliseconds(lambda: open_bundle(envelope, keys, _GUID)), 1.0),
        ("key made, with its request", milliseconds(new_key), 20.0),
        ("certificate issued", milliseconds(lambda: authority.issue(request, _GUID, now)), 5.0),
    )
    print(f"{RULES} rules: {text:,} bytes of YAML, packed {text_packed:,}; ", end="")
    print(f"as a signed bundle {len(envelope):,}, packed {packed:,}")
    for what, took, goal in figures:
        print(f"{what}: {took:.2f} ms (goal: {goal:g} ms at most)")
    return int(any(took > goal for _, took, goal in figures) or text > MOST_BYTES or text_packed > MOST_PACKED)


if __name__ == "__main__":
    sys.exit(main())
