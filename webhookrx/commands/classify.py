"""
The subject C{classify}: the sender of a recorded request, and what Parse takes from it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TextIO

from webhookrx.commands.sender_files import Senders, check_samples, evidence_of, known_senders
from webhookrx.commands.terminal import (
    DONE,
    FAILED,
    describe,
    diagnostic_facts,
    print_diagnostics,
    print_json,
    print_table,
    read_input,
    shortened,
    shown_name,
    tally,
)
from webhookrx.diagnostics import has_errors
from webhookrx.errors import WebhookrxError
from webhookrx.quantities import counted
from webhookrx.query import explain
from webhookrx.senders.classifier import LOW, Classifier, Match
from webhookrx.senders.conditions import Conditions
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.extraction import Extracted, extract
from webhookrx.senders.http_file import HttpFileError
from webhookrx.senders.locator import first_value
from webhookrx.senders.otlp import OtlpError

_LONGEST: Final = 200
"""Characters of a message that are shown, unless in JSON."""

_LISTED: Final = ("id", "vendor", "product", "description", "source")
"""What C{--list} tells of a definition."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subject to its parser; it has no verbs."""
    describe(
        parser,
        _run,
        "Show the sender of a recorded request, and what Parse would take from it. The exit status is 1 when no\n"
        "sender is known and the body is not JSON.",
        "webhookrx classify request.http --senders /etc/webhookrx/senders",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="request line, headers, a blank line and the body; or a JSON body alone; - reads standard input",
    )
    what.add_argument("--list", action="store_true", help="list the known senders")
    what.add_argument("--check", metavar="DIR", help="check the sender definitions in a directory, and their samples")
    parser.add_argument(
        "--senders", metavar="DIR", help="a directory of sender definitions, in addition to the built-in ones"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one object per line")


def _run(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    if asked.check is not None:
        if asked.senders is not None:
            asked.parser.error("argument --senders: not allowed with argument --check")
        return _check(known_senders(asked.check), asked.json, out)
    senders = known_senders(asked.senders)
    print_diagnostics(err, senders.diagnostics)
    if asked.list:
        _list(senders, asked.json, out)
        return FAILED if has_errors(senders.diagnostics) else DONE
    try:
        evidence = evidence_of(read_input(asked.file))
    except HttpFileError as error:
        raise WebhookrxError(f"{shown_name(asked.file)}: {error}") from None
    return _classify(Classifier(senders.definitions), evidence, asked.json, out)


# -- a request -------------------------------------------------------------------------------------------------------


def _classify(classifier: Classifier, evidence: Evidence, as_json: bool, out: TextIO) -> int:
    match = classifier.classify(evidence)
    if match is None:
        _tell_none(near_misses(classifier, evidence), as_json, out)
        return FAILED
    try:
        taken = extract(match.sender, evidence)
    except OtlpError as error:
        raise WebhookrxError(f"{match.sender.id}: {match.why}: {error}") from None
    others = [sender.id for sender in classifier.matching_senders(evidence) if sender.id != match.sender.id]
    # Whoever gets a request of last resort may have hoped for another definition.
    misses = near_misses(classifier, evidence) if match.confidence == LOW else []
    if as_json:
        nearly = {"nearly": [miss._asdict() for miss in misses]} if match.confidence == LOW else {}
        print_json(out, _facts(match, taken, others) | nearly)
    else:
        sender = f"{match.sender.vendor}/{match.sender.product}" if match.sender.vendor else "no known sender"
        print(f"{match.sender.id}: {sender}", file=out)
        print_table(out, _rows(match, taken, others))
        print_table(out, _near_rows(misses))
    return DONE


def _tell_none(misses: Sequence[NearMiss], as_json: bool, out: TextIO) -> None:
    if as_json:
        print_json(out, {"classified": False, "nearly": [miss._asdict() for miss in misses]})
        return
    print("no known sender", file=out)
    print_table(out, _near_rows(misses))


def _near_rows(misses: Sequence[NearMiss]) -> list[list[str]]:
    return [["nearly" if not index else "", miss.entry, "; ".join(miss.failed)] for index, miss in enumerate(misses)]


def _facts(match: Match, taken: Extracted, others: Sequence[str]) -> dict[str, Any]:
    sender, moment, severity = match.sender, taken.time_unix_nano, taken.severity
    found: dict[str, Any] = {
        "time": None if moment is None else {"iso": _iso(moment), "unix_nano": moment},
        "message": None if taken.message is None else {"text": taken.message},
        "severity": None if severity is None else {"number": severity[0], "text": severity[1]},
        "host": None if taken.host is None else {"name": taken.host},
    }
    return {
        "classified": True,
        "entry": sender.id,
        "vendor": sender.vendor,
        "product": sender.product,
        "service": match.service,
        "confidence": match.confidence,
        "why": match.why,
        "also_matching": others,
        **{name: facts and {**facts, "from": taken.taken.get(name)} for name, facts in found.items()},
        "body": taken.body,
    }


def _rows(match: Match, taken: Extracted, others: Sequence[str]) -> list[list[str]]:
    moment, severity = taken.time_unix_nano, taken.severity
    values = {
        "time": "" if moment is None else f"{_iso(moment)} ({moment} ns)",
        "message": shortened(taken.message or "", _LONGEST),
        "severity": "" if severity is None else f"{severity[1]} ({severity[0]})",
        "host": taken.host or "",
    }
    rows = [["service", match.service]] if match.service else []
    rows += [["confidence", match.confidence], ["why", match.why]]
    if others:
        rows.append(["also matching", ", ".join(others)])
    for name, value in values.items():
        rows.append([name, value or "not found"])
        if value:
            rows.append(["", f"from {taken.taken.get(name, '')}"])
    return rows


def _iso(moment: int) -> str:
    """Return a moment as ISO 8601 text in UTC, to the nanosecond."""
    second, nanoseconds = divmod(moment, 10**9)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{nanoseconds:09}Z"


# -- senders ---------------------------------------------------------------------------------------------------------


def _list(senders: Senders, as_json: bool, out: TextIO) -> None:
    if as_json:
        for definition in senders.definitions:
            print_json(out, {name: getattr(definition, name) for name in _LISTED})
        return
    rows = [
        [each.id, "" if each.last_resort else f"{each.vendor}/{each.product}", each.description]
        for each in senders.definitions
    ]
    print_table(out, [["entry", "vendor/product", "description"], *rows], indent="")


def _check(senders: Senders, as_json: bool, out: TextIO) -> int:
    diagnostics = [*senders.diagnostics, *check_samples(senders)]
    diagnostics.sort(key=lambda each: (each.file, each.line, each.column))
    valid = not has_errors(diagnostics)
    if as_json:
        print_json(out, {"valid": valid, "findings": diagnostic_facts(diagnostics), "files": len(senders.own)})
    else:
        print_diagnostics(out, diagnostics)
        print(f"{counted(len(senders.own), 'file')}: {tally(diagnostics)}", file=out)
    return DONE if valid else FAILED


_FAILING: Final = 2
"""Conditions that may fail for each that holds."""


class NearMiss(NamedTuple):
    """
    A definition that does not match.

    @ivar failed: of the nearest alternative, the conditions that do not hold, in words; they may quote the
        request.
    """

    entry: str
    failed: list[str]


def near_misses(classifier: Classifier, evidence: Evidence, most: int = 3) -> list[NearMiss]:
    """
    Return the definitions with a condition that holds and tells a sender, and not many more that fail; those with the
    fewest failures first.
    """
    found = []
    for rank, way in enumerate(classifier.alternatives):
        when = way.conditions
        telling = [*_headers(when, evidence), *_parameters(when, evidence), *_body(when, evidence)]
        held = telling.count(None)
        near = len(telling) <= (1 + _FAILING) * held
        failed = [words for words in (*telling, *_surroundings(when, evidence)) if words is not None]
        if failed and near:
            found.append((len(failed), -held, rank, NearMiss(way.sender.id, failed)))
    nearest: dict[str, NearMiss] = {}
    for *_, miss in sorted(found):
        nearest.setdefault(miss.entry, miss)
    return list(nearest.values())[:most]


# Each of these yields None for a condition that holds, else why it does not.


def _headers(when: Conditions, evidence: Evidence) -> Iterator[str | None]:
    there = set(evidence.header_names())
    for name, pattern in when.headers:
        text = name.decode()
        if name not in there:
            yield f"no header {text}"
        elif pattern is not None and not pattern.search(evidence.header(name) or ""):
            yield f"header {text} does not contain {pattern.pattern}"
        else:
            yield None
    if when.any_header:
        names = ", ".join(name.decode() for name in sorted(when.any_header))
        yield f"none of the headers {names}" if there.isdisjoint(when.any_header) else None


def _parameters(when: Conditions, evidence: Evidence) -> Iterator[str | None]:
    for name, pattern in when.parameters:
        value = first_value(evidence.query, name)
        if value is None:
            yield f"no query parameter {name}"
        elif pattern is not None and not pattern.search(value):
            yield f"query parameter {name} does not contain {pattern.pattern}"
        else:
            yield None


def _body(when: Conditions, evidence: Evidence) -> Iterator[str | None]:
    members = evidence.object or {}
    for name in sorted(when.body_keys):
        yield None if name in members else f"no body key {name}"
    if when.query is not None:
        explanation = explain(when.query, members)
        yield None if explanation.matched else ", ".join(map(str, explanation.deciding))


def _surroundings(when: Conditions, evidence: Evidence) -> Iterator[str | None]:
    """What many senders have in common, so that it tells none."""
    if when.content_type:
        yield None if evidence.media_type == when.content_type else f"content type is not {when.content_type}"
    if when.path is not None:
        found = when.path.search(evidence.head.path.decode("latin-1"))
        yield None if found else f"path does not contain {when.path.pattern}"
