"""
rules pull, rules diff and rules push: a rules file beside the rules of a console.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, Final, TextIO

from webhookrx.commands.console_client import (
    BAD_ARGUMENTS,
    CONFLICT,
    YAML,
    ConsoleClient,
    ConsoleError,
    add_console_arguments,
    console_of,
)
from webhookrx.commands.rules_reading import read_rules_file
from webhookrx.commands.terminal import (
    DONE,
    FAILED,
    STANDARD_INPUT,
    Run,
    Verbs,
    diagnostic_facts,
    print_diagnostics,
    print_json,
    read_input,
    safe,
    shown_name,
)
from webhookrx.diagnostics import path_text
from webhookrx.errors import ConfigError
from webhookrx.management.rule_changes import PUSH, ManagedRule, PushOutcome, PushPlan, RuleList, plan_push
from webhookrx.management.rule_documents import document_of
from webhookrx.quantities import counted

_MANAGER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_DEFAULT_MANAGER: Final = "files"
_LONGEST_NOTE: Final = 500


def add_to(verbs: Verbs) -> None:
    """Add the verbs that ask a console."""
    pull = _add(
        verbs,
        "pull",
        _pull,
        "write the rules of a console to a file",
        "webhookrx rules pull rules.yaml --console https://console.example.net --token-file token",
    )
    pull.add_argument("file", metavar="FILE", help="the file to write; - writes to standard output")

    diff = _add(
        verbs,
        "diff",
        _diff,
        "show what a push of a rules file would change; the status is 1 if that is anything",
        "webhookrx rules diff rules.yaml --console https://console.example.net --token-file token --prune",
    )
    _add_push_arguments(diff)

    push = _add(
        verbs,
        "push",
        _push,
        "make the rules of a console what a rules file says, all of them or none",
        "webhookrx rules push rules.yaml --console https://console.example.net --token-file token --prune",
    )
    _add_push_arguments(push)
    push.add_argument("--dry-run", action="store_true", help="have the console check everything and change nothing")
    push.add_argument("--note", type=_note, default="", metavar="TEXT", help="why; people see it in the history")


def _add(verbs: Verbs, name: str, run: Run, text: str, example: str) -> argparse.ArgumentParser:
    def ask(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
        try:
            return run(asked, out, err)
        except ConfigError as error:
            print(f"webhookrx: {safe(str(error))}", file=err)
            return BAD_ARGUMENTS
        except ConsoleError as error:
            return _tell_refusal(error, asked, out, err)

    parser = verbs.add(name, ask, text, example)
    add_console_arguments(parser)
    return parser


def _add_push_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the rules file; - reads it from standard input")
    parser.add_argument(
        "--manager",
        type=_manager,
        default=_DEFAULT_MANAGER,
        metavar="NAME",
        help=f"the name of what pushes, which owns the rules that it makes (default: {_DEFAULT_MANAGER})",
    )
    parser.add_argument(
        "--prune", action="store_true", help="delete the rules of this manager that the file does not have"
    )
    parser.add_argument(
        "--take-over", action="store_true", help="change rules of other managers too, and own them from then on"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _pull(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    text = _console(asked, err).request("GET", "/rules.yaml", accept=YAML).body
    if asked.file == STANDARD_INPUT:
        out.write(text.decode("utf-8", "replace"))
    else:
        _replace_file(asked.file, text)
    return DONE


def _diff(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    reading = read_rules_file(asked.file)
    if not reading.valid:
        return _tell_findings(diagnostic_facts(reading.diagnostics), asked, out)
    print_diagnostics(err, reading.diagnostics)
    listed: RuleList = _console(asked, err).request("GET", "/rules").decoded(RuleList)
    current = {each.name: ManagedRule(each.document, each.manager) for each in listed.rules}
    wanted = {rule.name: document_of(rule) for rule in reading.rules}
    plan = plan_push(current, wanted, PUSH + asked.manager, prune=asked.prune, take_over=asked.take_over)
    if asked.json:
        print_json(out, {"revision": listed.revision, "plan": plan})
    else:
        _tell_plan(plan, out)
    return DONE if plan.changes_nothing and not plan.left else FAILED


def _push(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    data = read_input(asked.file)
    console = _console(asked, err)
    query = {"manager": asked.manager}
    flags = {"prune": asked.prune, "take_over": asked.take_over, "dry_run": asked.dry_run}
    query |= {name: "true" for name, is_set in flags.items() if is_set}
    if asked.note:
        query["note"] = asked.note
    etag = console.request("GET", "/rules").etag
    answer = console.request("PUT", "/rules.yaml", query, data, content_type=YAML, if_match=etag)
    outcome: PushOutcome = answer.decoded(PushOutcome)
    if asked.json:
        print_json(out, outcome)
        return DONE
    _print_findings(outcome.findings, asked, err)
    _tell_plan(outcome.plan, out)
    if asked.dry_run:
        print("Nothing was changed: this was a dry run.", file=out)
    else:
        print(f"The console is at revision {outcome.revision}.", file=out)
    return DONE


def _console(asked: argparse.Namespace, err: TextIO) -> ConsoleClient:
    console, warning = console_of(asked)
    if warning:
        print(f"webhookrx: {safe(warning)}", file=err)
    return console


def _tell_plan(plan: PushPlan, out: TextIO) -> None:
    for name in plan.creates:
        print(safe(f"+ {name}"), file=out)
    for update in plan.updates:
        print(safe(f"~ {update.name}{f' (taken from {update.taken_from})' if update.taken_from else ''}"), file=out)
        for change in update.changes:
            print(safe(f"    {change}"), file=out)
    for name in plan.deletes:
        print(safe(f"- {name}"), file=out)
    for name in plan.left:
        print(safe(f"  {name} is not in the file; --prune deletes it"), file=out)
    for name, manager in plan.refused.items():
        print(safe(f"! {name} is of {manager}; --take-over changes it"), file=out)
    done = f"{len(plan.creates)} new, {len(plan.updates)} changed, {len(plan.deletes)} deleted"
    print(f"{counted(plan.unchanged, 'rule')} as they were; {done}", file=out)


def _tell_refusal(error: ConsoleError, asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    if getattr(asked, "json", False) and error.facts:
        print_json(out, error.facts)
        return error.status
    print(f"webhookrx: {safe(str(error))}", file=err)
    _print_findings(error.findings, asked, err)
    if error.status == CONFLICT:
        for name, manager in _texts(error.facts.get("refused")):
            print(safe(f"! {name} is of {manager}; --take-over changes it"), file=err)
    return error.status


def _tell_findings(findings: list[dict[str, Any]], asked: argparse.Namespace, out: TextIO) -> int:
    if asked.json:
        print_json(out, {"findings": findings})
    else:
        _print_findings(findings, asked, out)
    return FAILED


def _print_findings(findings: Iterable[Mapping[str, Any]], asked: argparse.Namespace, out: TextIO) -> None:
    """Print what a console says about a file, as C{rules check} would."""
    for each in findings:
        place = (shown_name(asked.file), each.get("line"), each.get("column"))
        where = ":".join(str(part) for part in place if part)
        path = each.get("path")
        named = each.get("field") or (path_text(tuple(path)) if isinstance(path, list | tuple) else "")
        field = f"{named}: " if named else ""
        text = f"{where}: {each.get('severity')}: {field}{each.get('sentence')} [{each.get('code')}]"
        print(safe(text), file=out)


def _texts(value: Any) -> list[tuple[str, str]]:
    return [(str(name), str(text)) for name, text in value.items()] if isinstance(value, dict) else []


def _replace_file(path: str, content: bytes) -> None:
    """Write a file whole or not at all. One that is there keeps its mode; a new one has that of the umask."""
    directory, name = os.path.split(os.path.realpath(path))
    try:
        mode = os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        umask = os.umask(0o077)
        os.umask(umask)
        mode = 0o666 & ~umask
    with tempfile.NamedTemporaryFile(dir=directory, prefix=f".{name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
            os.replace(file.name, os.path.join(directory, name))
        except BaseException:
            os.unlink(file.name)
            raise


def _manager(text: str) -> str:
    if not _MANAGER.fullmatch(text):
        raise argparse.ArgumentTypeError("it takes 1 to 63 ASCII letters, digits and . _ -, with no sign in front")
    return text


def _note(text: str) -> str:
    if len(text) > _LONGEST_NOTE or not text.isprintable():
        raise argparse.ArgumentTypeError(f"it takes one line of up to {_LONGEST_NOTE} characters")
    return text
