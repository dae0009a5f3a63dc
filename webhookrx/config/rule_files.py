"""
The files that connector rules name, keys, certificates and JSON files: whether they are there and can be used by this
process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from webhookrx.config import tls_files
from webhookrx.config.files import Snapshot, read_file
from webhookrx.config.settings import TLS
from webhookrx.connectors.router import Connector
from webhookrx.connectors.steps import json_files
from webhookrx.errors import ConfigError
from webhookrx.expressions import Mistake, table_of
from webhookrx.findings import Finding, quoted

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


def read_json_files(reading: RulesReading, connectors: Sequence[Connector]) -> tuple[dict[str, bytes], list[Finding]]:
    """
    Return what the JSON files hold that expressions of these connectors name, by path, and what is wrong with them,
    each at its place in the rules file.

    @param connectors: those of one router, by the rules of that file.
    """
    contents: dict[str, bytes] = {}
    problems: dict[str, tuple[str, str]] = {}
    findings: list[Finding] = []
    for connector in connectors:
        for number, step in enumerate(connector.preprocessing.steps):
            for path in json_files(step):
                if path not in contents and path not in problems:
                    problem = _read_json_file(path, contents)
                    if problem is not None:
                        problems[path] = problem
                if path in problems:
                    member = ("preprocessing", "steps", number, "expression")
                    code, sentence = problems[path]
                    findings.append(reading.finding(code, connector.rule, member, sentence))
    return contents, findings


def _read_json_file(path: str, contents: dict[str, bytes]) -> tuple[str, str] | None:
    """Read a file into the others; return a code and a sentence when it can't be used."""
    try:
        content = read_file(path)[0]
        table_of(content)
    except ConfigError as error:
        return "json-file-unusable" if os.path.lexists(path) else "json-file-missing", error.problem
    except Mistake as mistake:
        return "json-file-unusable", f"{quoted(path)} can't be used: {mistake.problem}"
    contents[path] = content
    return None


def tls_of(connector: Connector) -> TLS | None:
    """Return the files of a connector; None for one of plain HTTP."""
    return TLS(connector.key_file, connector.cert_file) if connector.protocol == "HTTPS" else None
