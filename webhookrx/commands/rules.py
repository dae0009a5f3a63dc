"""
The subject C{rules}, with C{rules check}: what is wrong with a file of connector rules.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, TextIO

from webhookrx.commands import rules_console, rules_explain, rules_preview
from webhookrx.commands.rules_reading import NamedRouter, add_router_arguments, named_router, read_rules_file
from webhookrx.commands.sender_files import known_senders
from webhookrx.commands.terminal import (
    DONE,
    FAILED,
    Run,
    Verbs,
    diagnostic_facts,
    print_diagnostics,
    print_json,
    shown_name,
    tally,
)
from webhookrx.config.files import Snapshot
from webhookrx.config.guards.context import GuardContext, KnownKeys
from webhookrx.config.guards.of_connector import read_connector_guard
from webhookrx.config.rule_files import check_rule_files, read_json_files
from webhookrx.diagnostics import ERROR, ROUTER_CODES, Diagnostic, diagnose, has_errors, in_order
from webhookrx.errors import ConfigError
from webhookrx.management.preview import SHOWN
from webhookrx.quantities import counted
from webhookrx.query import QueryError
from webhookrx.router.rules.router import Connector, connector_of, connectors_of
from webhookrx.router.rules.rules_file import RulesReading

_ROUTER_CODES: Final = frozenset(code.word for code in ROUTER_CODES)

UNREADABLE: Final = "file-unreadable"
"""The code for a file of which nothing can be read."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of the subject to its parser."""
    parser.description = (
        "Look at a file of connector rules, on any machine: nothing is opened, and nothing is changed; "
        "or compare it with the rules of a console, which push changes."
    )
    verbs = Verbs(parser)

    check = _add(
        verbs,
        "check",
        check_rules,
        "find everything that is wrong with a file, each with its line and column",
        "webhookrx rules check connector-rules.yaml --strict",
    )
    check.add_argument(
        "--files",
        action="store_true",
        help="check files of keys, certificates, secrets and tokens, and JSON files too, as the user that runs this",
    )
    check.add_argument(
        "--senders", metavar="DIR", help="with --files: a directory of sender definitions, as the routers have it"
    )
    check.add_argument("--strict", action="store_true", help="treat warnings as errors")
    check.add_argument(
        "--allow-slow-patterns",
        action="store_true",
        help="report paths that RE2 can't run as warnings, as a router with this option does",
    )
    add_router_arguments(check, "check what comes to a router of this name, too; with --files only its files")

    preview = _add(
        verbs,
        "preview",
        rules_preview.run,
        "show which hosts of the inventory each rule is for, and why it is not for the others",
        "webhookrx rules preview connector-rules.yaml --selector 'label.site = fra'",
    )
    which = preview.add_mutually_exclusive_group()
    which.add_argument("--selector", metavar="TEXT", help="test this selector instead of those of the rules")
    which.add_argument("--rule", metavar="NAME", help="show this rule only")
    preview.add_argument("--all", action="store_true", help=f"show all hosts, not the first {SHOWN} of each kind")

    explain = _add(
        verbs,
        "explain",
        rules_explain.run,
        "show the connectors of a router, and which rules it has none from, and why",
        "webhookrx rules explain connector-rules.yaml --router edge-1 --router-label site=fra",
    )
    add_router_arguments(explain, "the name of the router; of the hosts of the file, or any other", required=True)
    rules_console.add_to(verbs)


def _add(verbs: Verbs, name: str, run: Run, text: str, example: str) -> argparse.ArgumentParser:
    parser = verbs.add(name, run, text, example)
    parser.add_argument("file", metavar="FILE", help="the rules file; - reads it from standard input")
    parser.add_argument("--json", action="store_true", help="print JSON, one object per line")
    return parser


def check_rules(asked: argparse.Namespace, out: TextIO, _: TextIO) -> int:
    """Print what is wrong with a rules file, and how much: C{rules check}."""
    if asked.senders is not None and not asked.files:
        asked.parser.error("argument --senders: it needs --files")
    for option, given in (("--router-label", asked.router_label), ("--elsewhere", asked.elsewhere)):
        if given and asked.router is None:
            asked.parser.error(f"argument {option}: there is no --router that it is of")
    try:
        reading = read_rules_file(asked.file, allow_slow_patterns=asked.allow_slow_patterns)
    except ConfigError as error:
        diagnostics = [Diagnostic(UNREADABLE, ERROR, (), error.problem, file=shown_name(asked.file))]
        return _report(diagnostics, 0, 0, asked, out)
    return _report(_diagnostics(reading, asked), len(reading.rules), len(reading.hosts), asked, out)


def _diagnostics(reading: RulesReading, asked: argparse.Namespace) -> list[Diagnostic]:
    diagnostics = list(reading.diagnostics)
    if asked.router is None:
        connectors = [connector_of("router", rule) for rule in reading.rules]
    else:
        router = named_router(asked, reading.hosts)
        connectors, found = connectors_of(router.router, reading)
        found += _may_match(reading, router)
        # What two rules want on all routers is known already, in other words.
        known = {(each.code, each.field) for each in diagnostics}
        diagnostics += [each for each in found if (each.code, each.field) not in known]
    if asked.files:
        diagnostics = _with_guards(reading, connectors, diagnostics, asked)
        diagnostics += check_rule_files(reading, list(filter(_names_files, connectors)), datetime.now(UTC), Snapshot())
        diagnostics += read_json_files(reading, connectors)[1]
    return in_order(diagnostics)


def _with_guards(
    reading: RulesReading, connectors: Sequence[Connector], diagnostics: list[Diagnostic], asked: argparse.Namespace
) -> list[Diagnostic]:
    """Return what is wrong with senders, secrets and tokens, too, as far as this machine shows."""
    senders = known_senders(asked.senders)
    # Lists of networks and public keys are the router's, and so is what may come in the open.
    context = GuardContext(senders.definitions, None, KnownKeys(are_fetched=True), plaintext=True)
    absolute = (each for each in connectors if all(file.startswith("/") for file in _guard_files(each)))
    # What the file shows by itself is known already.
    found = [
        reading.in_rule(connector.rule, each)
        for connector in absolute
        for each in read_connector_guard(connector, context).found
        if each.code in _ROUTER_CODES
    ]
    if asked.senders is None:
        return diagnostics + [each for each in found if each.code != "sender-unknown"]
    return [each for each in diagnostics if each.code != "sender-not-built-in"] + senders.diagnostics + found


def _guard_files(connector: Connector) -> tuple[str, ...]:
    return (*connector.guard.secrets_file, *connector.guard.auth_token_file)


def _may_match(reading: RulesReading, router: NamedRouter) -> list[Diagnostic]:
    """Return a warning for each rule whose match can't be decided on this machine."""
    mistakes = []
    for index, rule in zip(reading.indices, reading.rules, strict=True):
        with suppress(QueryError):  # that is found already
            match = router.explain(rule)
            if match.matched is None:
                path = ("connector_rules", index, "selector")
                mistakes.append(diagnose("selector-may-match", path, f"It {match}; it is not looked into further."))
    return reading.located(mistakes)


def _names_files(connector: Connector) -> bool:
    """Tell whether both files are named by absolute paths. If not, that is an error already."""
    return connector.key_file.startswith("/") and connector.cert_file.startswith("/")


def _report(diagnostics: list[Diagnostic], rules: int, hosts: int, asked: argparse.Namespace, out: TextIO) -> int:
    valid = not (diagnostics if asked.strict else has_errors(diagnostics))
    if asked.json:
        print_json(out, {"valid": valid, "findings": diagnostic_facts(diagnostics), "rules": rules, "hosts": hosts})
    else:
        print_diagnostics(out, diagnostics)
        print(f"{counted(rules, 'rule')}, {counted(hosts, 'host')}: {tally(diagnostics)}", file=out)
    return DONE if valid else FAILED
