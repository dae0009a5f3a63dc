"""
C{rules check}: everything that is wrong with a rules file.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, TextIO

from webhookrx.commands.input import shown_name
from webhookrx.commands.output import DONE, FAILED, counted, findings_facts, print_findings, print_json, tally
from webhookrx.commands.rules_reading import NamedRouter, named_router, read_rules_file
from webhookrx.config.files import Snapshot
from webhookrx.config.rule_files import check_rule_files, read_json_files
from webhookrx.diagnostics import ERROR, Finding, has_errors, in_order
from webhookrx.errors import ConfigError
from webhookrx.query import QueryError
from webhookrx.router.rules.mistake import Mistake
from webhookrx.router.rules.router import Connector, connector_of, connectors_of
from webhookrx.router.rules.rules_file import RulesReading

UNREADABLE: Final = "file-unreadable"
"""The code for a file of which nothing can be read."""


def run(asked: argparse.Namespace, out: TextIO, _: TextIO) -> int:
    """Print what is wrong, and how much."""
    for option, given in (("--router-label", asked.router_label), ("--elsewhere", asked.elsewhere)):
        if given and asked.router is None:
            asked.parser.error(f"argument {option}: there is no --router that it is of")
    try:
        reading = read_rules_file(asked.file, allow_slow_patterns=asked.allow_slow_patterns)
    except ConfigError as error:
        findings = [Finding(UNREADABLE, ERROR, shown_name(asked.file), 0, 0, "", error.problem)]
        return _report(findings, 0, 0, asked, out)
    return _report(_findings(reading, asked), len(reading.rules), len(reading.hosts), asked, out)


def _findings(reading: RulesReading, asked: argparse.Namespace) -> list[Finding]:
    findings = list(reading.findings)
    if asked.router is None:
        connectors = [connector_of("router", rule) for rule in reading.rules]
    else:
        router = named_router(asked, reading.hosts)
        connectors, found = connectors_of(router.router, reading)
        found += _may_match(reading, router)
        # What two rules want on all routers is known already, in other words.
        known = {(finding.code, finding.field) for finding in findings}
        findings += [finding for finding in found if (finding.code, finding.field) not in known]
    if asked.files:
        findings += check_rule_files(reading, list(filter(_names_files, connectors)), datetime.now(UTC), Snapshot())
        findings += read_json_files(reading, connectors)[1]
    return in_order(findings)


def _may_match(reading: RulesReading, router: NamedRouter) -> list[Finding]:
    """Return a finding for each rule of which nobody can know here whether it matches."""
    mistakes = []
    for place, rule in zip(reading.places, reading.rules, strict=True):
        with suppress(QueryError):  # that is found already
            judged = router.judge(rule)
            if judged.matched is None:
                path = ("connector_rules", place, "selector")
                mistakes.append(Mistake("selector-may-match", path, f"It {judged}; it is not looked into further."))
    return reading.findings_of(mistakes)


def _names_files(connector: Connector) -> bool:
    """Tell whether both files are named by absolute paths. If they are not, there is a finding already."""
    return connector.key_file.startswith("/") and connector.cert_file.startswith("/")


def _report(findings: list[Finding], rules: int, hosts: int, asked: argparse.Namespace, out: TextIO) -> int:
    valid = not (findings if asked.strict else has_errors(findings))
    if asked.json:
        print_json(out, {"valid": valid, "findings": findings_facts(findings), "rules": rules, "hosts": hosts})
    else:
        print_findings(out, findings)
        print(f"{counted(rules, 'rule')}, {counted(hosts, 'host')}: {tally(findings)}", file=out)
    return DONE if valid else FAILED
