"""
C{rules preview}: which hosts of the inventory a selector is for, and which not, by which terms.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, TextIO

from webhookrx.commands.query import problem_facts, problem_lines
from webhookrx.commands.rules_reading import read_rules_file, tell_errors, terms_facts, terms_text
from webhookrx.commands.terminal import DONE, FAILED, encodable, print_json, print_table, safe
from webhookrx.diagnostics import quoted_short, suggestion
from webhookrx.errors import WebhookrxError
from webhookrx.management.preview import SHOWN, SelectorPreview, selector_previews
from webhookrx.query import QueryError, parse
from webhookrx.router.rules.router import router_of
from webhookrx.router.rules.rule import Rule


def run(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Print what each selector comes to; it fails when there is a mistake in the file or the selector."""
    reading = read_rules_file(asked.file)
    tell_errors(reading, err)
    routers = [router_of(host) for host in reading.hosts]
    if not routers:
        raise WebhookrxError(f"{reading.file}: no hosts can be read; a preview needs an inventory of them.")
    if asked.selector is None:
        selectors: list[tuple[str | None, str]] = [
            (rule.name, rule.selector) for rule in _chosen(reading.rules, asked.rule)
        ]
    else:
        selectors = [(None, encodable(asked.selector))]
    queries = []
    for rule, text in selectors:
        try:
            queries.append((rule, parse(text)))
        except QueryError as error:
            _tell_mistake(rule, text, error, asked.json, out, err)
    shown = None if asked.all else SHOWN
    for preview in selector_previews(queries, routers, shown):
        if asked.json:
            print_json(out, _facts(preview))
        else:
            _describe(preview, shown, out)
    return DONE if reading.valid and len(queries) == len(selectors) else FAILED


def _tell_mistake(rule: str | None, text: str, error: QueryError, as_json: bool, out: TextIO, err: TextIO) -> None:
    if as_json:
        print_json(out, {**_of_rule(rule), "selector": text, **problem_facts(text, error)})
    elif rule is None:
        print("\n".join(problem_lines(text, error)), file=err)
    else:
        # Its mistake is printed with the other errors of the file.
        print(f"rule {safe(rule)}: its selector is no query", file=out)


def _chosen(rules: Sequence[Rule], name: str | None) -> Sequence[Rule]:
    if name is None:
        return rules
    chosen = [rule for rule in rules if rule.name == name]
    if not chosen:
        raise WebhookrxError(
            f"There is no rule {quoted_short(name)}. {suggestion(name, [rule.name for rule in rules])}"
            if rules
            else "There are no rules."
        )
    return chosen


def _facts(preview: SelectorPreview) -> dict[str, Any]:
    return {
        **_of_rule(preview.rule),
        "selector": preview.selector,
        "hosts": preview.hosts,
        "matching": preview.matching,
        "not_matching": preview.hosts - len(preview.matching),
        "why_not": [{"host": name, "terms": terms_facts(deciding)} for name, deciding in preview.missing],
    }


def _of_rule(name: str | None) -> dict[str, str]:
    return {} if name is None else {"rule": name}


def _describe(preview: SelectorPreview, shown: int | None, out: TextIO) -> None:
    about = "selector" if preview.rule is None else f"rule {safe(preview.rule)}"
    hosts = "1 host matches" if preview.hosts == 1 else f"{preview.hosts:,} hosts match"
    print(f"{about}: {len(preview.matching):,} of {hosts}", file=out)
    print(f"  {safe(preview.selector.strip()) or 'no selector: every router'}", file=out)
    matching = preview.matching[:shown]
    rows = [["yes", name] for name in matching]
    rows += [["no", name, terms_text(deciding)] for name, deciding in preview.missing]
    print_table(out, rows, indent="    ")
    left = {
        "that match": len(preview.matching) - len(matching),
        "that do not": preview.hosts - len(preview.matching) - len(preview.missing),
    }
    more = [f"{count:,} more {which}" for which, count in left.items() if count]
    if more:
        print(f"    … and {', '.join(more)} (--all)", file=out)
