"""
The keys and certificates that connector rules name: whether they are there and can be used by this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from webhookrx.config import tls_files
from webhookrx.config.files import Snapshot
from webhookrx.config.settings import TLS
from webhookrx.connectors.router import Connector
from webhookrx.findings import Finding

if TYPE_CHECKING:
    from webhookrx.connectors.rules_file import RulesReading


def check_rule_files(
    reading: RulesReading, connectors: Sequence[Connector], now: datetime, files: Snapshot
) -> list[Finding]:
    """
    Look at the files of these connectors, and say of each what is wrong, at its place in the rules file.

    @param connectors: those of one router, by the rules of that file.
    @param now: the time with its zone, for the dates of certificates.
    @param files: reads them, and keeps what was in them.
    """
    # To look at an RSA key takes up to a second, and all connectors may have the same.
    checked: dict[TLS, list[tls_files.Finding]] = {}
    findings: list[Finding] = []
    for connector in connectors:
        tls = tls_of(connector)
        if tls is None:
            continue
        if tls not in checked:
            checked[tls] = tls_files.check_tls_files(tls, now, files)
        findings += (
            reading.finding(found.code, connector.rule, (found.role,), found.problem) for found in checked[tls]
        )
    return findings


def tls_of(connector: Connector) -> TLS | None:
    """Return the files of a connector; None for one of plain HTTP."""
    return TLS(connector.key_file, connector.cert_file) if connector.protocol == "HTTPS" else None
