"""
Reads a rules file for C{rules preview} and C{rules explain}, as far as it can be read; and the router that they name.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TextIO

import msgspec

from webhookrx.commands.terminal import print_diagnostics, read_input, shown_name
from webhookrx.config.machine import HostFacts, this_host
from webhookrx.diagnostics import ERROR
from webhookrx.errors import ConfigError
from webhookrx.query import DecidingTerm, Explanation, parse
from webhookrx.router.rules.router import Router, router_of
from webhookrx.router.rules.rule import Host, Rule, check_label, check_name
from webhookrx.router.rules.rules_file import RulesReading, read_rules
from webhookrx.router.rules.selectors import METADATA, explain_selector


class NamedRouter(NamedTuple):
    """
    The router that a command line names.

    @ivar in_inventory: it is one of the C{hosts} of the file, and has its labels and metadata from there.
    @ivar is_here: it is this machine, so that its own metadata is used.
    @ivar unknown: the metadata that are not known.
    """

    router: Router
    in_inventory: bool
    is_here: bool
    unknown: tuple[str, ...]

    def explain(self, rule: Rule) -> Explanation:
        """
        Return whether a rule matches it, and why.

        @raise webhookrx.query.QueryError: its selector is no query.
        """
        return explain_selector(parse(rule.selector), self.router.record, self.unknown)


def read_rules_file(path: str, *, allow_slow_patterns: bool = False) -> RulesReading:
    """
    Read a rules file.

    @param allow_slow_patterns: see L{read_rules}.
    @raise ConfigError: the file itself can't be read.
    """
    return read_rules(read_input(path), shown_name(path), allow_slow_patterns=allow_slow_patterns)


def tell_errors(reading: RulesReading, err: TextIO) -> None:
    """Print the errors of a file; the rest of it is used all the same."""
    print_diagnostics(err, (each for each in reading.diagnostics if each.severity == ERROR))


def named_router(asked: argparse.Namespace, hosts: Iterable[Host]) -> NamedRouter:
    """
    Return the router that a command line names. Labels that are given join those of the inventory, and win over them.

    A router that is not in the inventory is this machine, unless the command line says that it is another; one that is
    in it is this machine when its name or an address says so.
    """
    labels = dict(asked.router_label)
    host = next((host for host in hosts if host.name == asked.router), None)
    router = Router(asked.router) if host is None else router_of(host)
    here = None if asked.elsewhere else this_host()
    if here is not None and host is not None and not _is_here(router, here):
        here = None
    if here is not None:
        known = {name: value for name in METADATA if (value := getattr(router, name))}
        router = msgspec.structs.replace(router, **here._asdict() | known)
    unknown = () if here is not None else tuple(name for name in METADATA if not getattr(router, name))
    router = msgspec.structs.replace(router, labels={**router.labels, **labels})
    return NamedRouter(router, host is not None, here is not None, unknown)


def _is_here(router: Router, here: HostFacts) -> bool:
    names = {router.name, router.hostname, router.fqdn} - {""}
    return not names.isdisjoint((here.hostname, here.fqdn)) or not set(router.ip).isdisjoint(here.ip)


def add_router_arguments(parser: argparse.ArgumentParser, what: str, *, required: bool = False) -> None:
    """Add C{--router} and C{--router-label} to a verb."""
    parser.add_argument("--router", type=_router_name, metavar="NAME", required=required, help=what)
    parser.add_argument(
        "--router-label",
        type=_label,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a label of that router, in addition to those of the inventory; may be repeated",
    )
    parser.add_argument(
        "--elsewhere",
        action="store_true",
        help="that router is another machine: use only the facts of the inventory",
    )


def terms_text(deciding: Sequence[DecidingTerm]) -> str:
    """Return why a router does not match, for people."""
    return "; ".join(map(str, deciding))


def terms_facts(deciding: Sequence[DecidingTerm]) -> list[dict[str, Any]]:
    """Return the same for JSON."""
    return [
        {"term": term.text, "column": term.column, "field": term.field, "found": term.found and list(term.found)}
        for term in deciding
    ]


def _router_name(text: str) -> str:
    try:
        check_name(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(error.problem) from None
    return text


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    try:
        check_label(key, value)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(error.problem) from None
    return key, value
