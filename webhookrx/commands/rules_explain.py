"""
C{rules explain}: the connectors of one router.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TextIO

import msgspec

from webhookrx.commands.rules_reading import (
    NamedRouter,
    named_router,
    read_rules_file,
    tell_errors,
    terms_facts,
    terms_text,
)
from webhookrx.commands.terminal import (
    DONE,
    FAILED,
    diagnostic_facts,
    print_diagnostics,
    print_json,
    print_table,
    safe,
    shortened,
)
from webhookrx.diagnostics import Diagnostic
from webhookrx.quantities import counted
from webhookrx.query import DecidingTerm, QueryError
from webhookrx.router.rules.router import Connector, Router, connectors_of
from webhookrx.router.rules.rules_file import RulesReading
from webhookrx.router.steps.step import DROP, TAG, Preprocessing, Probe, SetField, Step


class _Other(NamedTuple):
    """
    A rule that gives the router no connector.

    @ivar deciding: the terms of its selector that keep it from matching; empty when it matches, but clashes, or when
        it is unknown whether it matches.
    """

    rule: str
    deciding: Sequence[DecidingTerm]
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
    others = []
    for rule in reading.rules:
        if rule.name in connected:
            continue
        try:
            explanation = router.explain(rule)
        except QueryError:
            others.append(_Other(rule.name, (), "its selector is no query"))
            continue
        if explanation.matched is None:
            others.append(_Other(rule.name, (), str(explanation), True))
            continue
        deciding = () if explanation.matched else explanation.deciding
        others.append(_Other(rule.name, deciding, terms_text(deciding) or "it clashes with another rule"))
    return others


def _facts(
    router: NamedRouter, connectors: Sequence[Connector], others: Sequence[_Other], clashes: Sequence[Diagnostic]
) -> dict[str, Any]:
    return {
        "router": {name: value for name, value in msgspec.structs.asdict(router.router).items() if value},
        "in_inventory": router.in_inventory,
        "this_machine": router.is_here,
        "unknown": router.unknown,
        "connectors": [
            {
                **{name: value for name, value in msgspec.structs.asdict(each).items() if name not in _OF_GUARDS},
                **guard_facts(each),
                "in_words": preprocessing_words(each.preprocessing),
            }
            for each in connectors
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
        "clashes": diagnostic_facts(clashes),
    }


def _describe(
    router: NamedRouter,
    connectors: Sequence[Connector],
    others: Sequence[_Other],
    clashes: Sequence[Diagnostic],
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
        print_diagnostics(out, clashes)


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
    for name, value in guard_facts(connector).items():
        rows += _column(name, _texts(value))
    if connector.include_request_headers:
        rows.append(["headers", "in log.attributes, credentials masked"])
    return rows + _column("preprocessing", preprocessing_words(connector.preprocessing) or ["none"])


def _column(name: str, values: Sequence[str]) -> list[list[str]]:
    return [["" if index else name, value] for index, value in enumerate(values)]


#: What a connector has for its guard, which is shown as a rule spells it.
_OF_GUARDS: Final = ("guard", "ca_file")


def guard_facts(connector: Connector) -> dict[str, Any]:
    """Return who may send to a connector and what its sender asks for, as far as its rule says it, in its words."""
    words = {**msgspec.structs.asdict(connector.guard), "ca_file": connector.ca_file}
    return {name: value for name, value in words.items() if name != "has_tokens" and value not in ("", (), {}, None)}


def _texts(value: Any) -> list[str]:
    """Return the value of such a field, in one line or several."""
    if isinstance(value, dict):
        return [f"{name}={' '.join(texts)}" for name, texts in value.items()]
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    return [value if isinstance(value, str) else " ".join(value)]


def _labels(labels: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in labels.items())


_LONGEST: Final = 72
"""Characters of a value or a statement that are shown."""


_ON_ERROR: Final[dict[str | None, str]] = {
    DROP: "the message is dropped",
    TAG: "the message gets a note in meta.step_errors",
}

_CLASSIFY: Final = "Classify: find the sender of the message"
_CLASSIFY_KNOWN: Final = f"{_CLASSIFY}, JSON of unknown senders left alone"
_PARSE: Final = "Parse: take time, message, severity and host of a known sender from it"


def preprocessing_words(preprocessing: Preprocessing) -> list[str]:
    """Return what is done to each message of a connector, in its order. Steps have the numbers that counters show."""
    classify = _CLASSIFY if preprocessing.classify_fallback else _CLASSIFY_KNOWN
    words = [text for text, wanted in ((classify, preprocessing.classify), (_PARSE, preprocessing.parse)) if wanted]
    return words + [f"{number}. {step_words(step)}" for number, step in enumerate(preprocessing.steps, 1)]


def step_words(step: Step) -> str:
    """Return what a step does, with its label and its condition."""
    words = ", and ".join(_kinds(step)) or "nothing"
    if step.condition is not None:
        words += f", if {step.condition}"
    if step.on_error in _ON_ERROR:
        words += f"; {_ON_ERROR[step.on_error]} when it fails"
    return f"{step.label}: {words}" if step.label else words


def _kinds(step: Step) -> list[str]:
    """Return what it does. A step that is in order has one kind."""
    words = []
    if step.select is not None:
        words.append(f"go on only with messages that match {step.select or 'anything'}")
    if step.set is not None:
        fields = (step.set,) if isinstance(step.set, SetField) else step.set
        words.append(f"set {', '.join(f'{each.field} to {_value(each.value)}' for each in fields)}")
    if step.unset is not None:
        words.append(f"unset {step.unset if isinstance(step.unset, str) else ', '.join(step.unset)}")
    if step.regex is not None:
        case = " in any case" if step.regex.ignore_case else ""
        words.append(f"match {step.regex.field} against {step.regex.pattern}{case}; its groups into {step.regex.into}")
    if step.probe is not None:
        words.append(f"count as {step.probe.name if isinstance(step.probe, Probe) else step.probe}")
    if step.classify:
        words.append(_CLASSIFY_KNOWN if step.classify_fallback is False else _CLASSIFY)
    if step.parse:
        words.append(_PARSE)
    if step.expression is not None:
        words.append(f"run {_statements(step.expression)}")
    return words


def _value(value: Any) -> str:
    return shortened(msgspec.json.encode(value).decode(), _LONGEST)


def _statements(text: str) -> str:
    first, *more = [line for line in map(str.strip, text.splitlines()) if line] or ["nothing"]
    return shortened(first, _LONGEST) + (f" … ({counted(len(more), 'more line')})" if more else "")
