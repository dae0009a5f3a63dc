"""
The subject C{rules}: a file of connector rules, what is wrong with it, and what it comes to on which routers.
"""

from __future__ import annotations

import argparse

from webhookrx.commands import rules_check, rules_explain, rules_preview
from webhookrx.commands.rules_reading import add_router_arguments
from webhookrx.commands.verbs import Run, Verbs


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of the subject to its parser."""
    parser.description = "Look at a file of connector rules, on any machine: nothing is opened, and nothing is changed."
    verbs = Verbs(parser)

    check = _add(
        verbs,
        "check",
        rules_check.run,
        "find everything that is wrong with a file, each with its line and column",
        "webhookrx rules check connector-rules.yaml --strict",
    )
    check.add_argument(
        "--files", action="store_true", help="look at the key and certificate files, too, as the user that runs this"
    )
    check.add_argument("--strict", action="store_true", help="warnings count as errors")
    check.add_argument(
        "--allow-slow-patterns",
        action="store_true",
        help="paths that RE2 can't run are a warning, as for a router with this option",
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
    which.add_argument("--selector", metavar="TEXT", help="look at this selector instead of those of the rules")
    which.add_argument("--rule", metavar="NAME", help="look at this rule only")
    preview.add_argument(
        "--all", action="store_true", help=f"show all hosts, not the first {rules_preview.SHOWN} of each kind"
    )

    explain = _add(
        verbs,
        "explain",
        rules_explain.run,
        "show the connectors of a router, and which rules it has none from, and why",
        "webhookrx rules explain connector-rules.yaml --router edge-1 --router-label site=fra",
    )
    add_router_arguments(explain, "the name of the router; of the hosts of the file, or any other", required=True)


def _add(verbs: Verbs, name: str, run: Run, text: str, example: str) -> argparse.ArgumentParser:
    parser = verbs.add(name, run, text, example)
    parser.add_argument("file", metavar="FILE", help="the rules file; - reads it from standard input")
    parser.add_argument("--json", action="store_true", help="JSON, one object a line")
    return parser
