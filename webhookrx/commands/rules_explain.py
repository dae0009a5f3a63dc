"""
C{rules explain}: the connectors of one router.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TextIO

import msgspec

from webhookrx.commands.output import (
    DONE,
    FAILED,
    counted,
    findings_facts,
    print_findings,
    print_json,
    print_table,
    safe,
)
from webhookrx.commands.rules_reading import (
    NamedRouter,
    named_router,
    read_rules_file,
    tell_errors,
    terms_facts,
    terms_text,
)
from webhookrx.commands.step_words import preprocessing_words
from webhookrx.diagnostics import Finding
from webhookrx.query import Deciding, QueryError, explain, parse
from webhookrx.router.rules.router import Connector, Router, connectors_of
from webhookrx.router.rules.rules_file import RulesReading


class _Other(NamedTuple):
    """
    A rule that gives the router no connector.

    @ivar deciding: the terms of its selector that keep it from matching; empty when it matches, but clashes, or when
        nobody knows whether it matches.
    """

    rule: str
    deciding: Sequence[Deciding]
    reason: str
    may_match: bool = False


def run(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Print the connectors; it fails when there is a mistake in the file, or two rules want the same of this router."""
    reading = read_rules_file(asked.file)
    tell_errors(reading, err)
    router = named_router(asked, reading.hosts)
    connectors, clashes = connectors_of(router.router, reading)
    others = _others(reading, router, {connector.rule for connector in connectors})
    if asked.json:
        print_json(out, _facts(router, connectors, others, clashes))
    else:
        _describe(router, connectors, others, clashes, len(reading.rules), out)
    return DONE if reading.valid and not clashes else FAILED


def _others(reading: RulesReading, router: NamedRouter, connected: set[str]) -> list[_Other]:
    record = router.router.record
    others = []
    for rule in reading.rules:
        if rule.name in connected:
            continue
        try:
            explanation = explain(parse(rule.selector), record)
        except QueryError:
            others.append(_Other(rule.name, (), "its selector is no query"))
            continue
        judged = router.judge(rule)
        if judged.matched is None:
            others.append(_Other(rule.name, (), str(judged), True))
            continue
        deciding = () if explanation.matched else explanation.deciding
        others.append(_Other(rule.name, deciding, terms_text(deciding) or "it clashes with another rule"))
    return others


def _facts(
    router: NamedRouter, connectors: Sequence[Connector], others: Sequence[_Other], clashes: Sequence[Finding]
) -> dict[str, Any]:
    return {
        "router": {name: value for name, value in msgspec.structs.asdict(router.router).items() if value},
        "in_inventory": router.in_inventory,
        "this_machine": router.is_here,
        "unknown": router.unknown,
        "connectors": [
            {**msgspec.structs.asdict(each), "in_words": preprocessing_words(each.preprocessing)} for each in connectors
        ],
        "without_connector": [
            {
                "rule": other.rule,
                "reason": other.reason,
                "may_match": other.may_match,
                "terms": terms_facts(other.deciding),
            }
            for other in others
        ],
        "clashes": findings_facts(clashes),
    }


def _describe(
    router: NamedRouter,
    connectors: Sequence[Connector],
    others: Sequence[_Other],
    clashes: Sequence[Finding],
    rules: int,
    out: TextIO,
) -> None:
    print(f"router {safe(router.router.name)}{_origin(router)}", file=out)
    print_table(out, _router_rows(router.router))
    print(f"\n{counted(len(connectors), 'connector')} from {counted(rules, 'rule')}", file=out)
    for connector in connectors:
        print(f"\n{safe(connector.name)}", file=out)
        print_table(out, _rows(connector))
    for may_match, heading in ((True, "perhaps a connector from"), (False, "no connector from")):
        rows = [[other.rule, other.reason] for other in others if other.may_match is may_match]
        if rows:
            print(f"\n{heading}", file=out)
            print_table(out, rows)
    if clashes:
        print(file=out)
        print_findings(out, clashes)


def _origin(router: NamedRouter) -> str:
    metadata = "metadata of this machine" if router.is_here else ""
    if not router.in_inventory:
        metadata = f"not one of the hosts; labels as given, {metadata or 'metadata unknown'}"
    return f" ({metadata})" if metadata else ""


def _router_rows(router: Router) -> list[list[str]]:
    plain = {"labels": _labels(router.labels), "ip": " ".join(router.ip)}
    plain |= {name: getattr(router, name) for name in ("hostname", "fqdn", "os", "arch", "version")}
    plain["meta"] = msgspec.json.encode(router.meta).decode() if router.meta else ""
    return [[name, value] for name, value in plain.items() if value]


def _rows(connector: Connector) -> list[list[str]]:
    rows = [["rule", connector.rule], ["protocol", connector.protocol], ["port", str(connector.port)]]
    rows += _column("paths", connector.paths)
    rows += [[name, file] for name, file in (("key", connector.key_file), ("certificate", connector.cert_file)) if file]
    rows.append(["labels", _labels(connector.labels)])
    if connector.include_request_headers:
        rows.append(["headers", "in log.attributes, credentials masked"])
    return rows + _column("preprocessing", preprocessing_words(connector.preprocessing) or ["none"])


def _column(name: str, values: Sequence[str]) -> list[list[str]]:
    return [["" if index else name, value] for index, value in enumerate(values)]


def _labels(labels: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in labels.items())
