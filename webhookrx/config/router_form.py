"""
The router form: the connectors that a rules file gives to this router.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from webhookrx.config.endpoint_strings import parse_endpoint
from webhookrx.config.file_signatures import DATA_FILES, signature_of
from webhookrx.config.files import Snapshot, list_directory, read_file
from webhookrx.config.problems import Place, Problems, quoted
from webhookrx.config.rule_files import check_rule_files, read_json_files, tls_of
from webhookrx.config.settings import Connector, Listener, Router, Settings, Source
from webhookrx.config.this_host import HostFacts
from webhookrx.config.tls_files import contents_of
from webhookrx.config.values import Effective, Values
from webhookrx.connectors import router
from webhookrx.connectors.naming import check_label, check_name
from webhookrx.connectors.steps import json_files
from webhookrx.findings import ERROR, Finding, has_errors
from webhookrx.senders.entry import Entry

if TYPE_CHECKING:
    from webhookrx.connectors.rules_file import RulesReading


@dataclass(frozen=True, slots=True)
class RouterForm:
    """
    What came of a rules file.

    @ivar router: this router.
    @ivar sources: its connectors; while its gate is closed those that run.
    @ivar effective: what each of them is, for C{--check}.
    """

    router: Router
    sources: tuple[Source, ...]
    effective: tuple[Effective, ...]


def resolve_router(
    values: Values, host: Callable[[], HostFacts], now: datetime, running: Settings | None, tls_files: Snapshot
) -> RouterForm | None:
    """
    Return the connectors of this router; None when its rules file can't be used. What is wrong is noted.

    @param values: with a rules file.
    @param host: gives the facts of this machine.
    @param now: the time with its zone, for the dates of certificates.
    @param running: the settings in use; None at the start.
    @param tls_files: reads keys and certificates.
    """
    path = values.path("rules")
    directory = values.path("senders")
    labels = _labels(values)
    if path is None:
        return None
    facts = host()
    name = _name(values, facts)
    watched = {each: signature_of(each) for each in (path, directory) if each is not None}
    senders = _senders(values, directory)
    reading = _rules(values, path)
    if reading is None:
        return None
    connectors, clashes = router.connectors_of(router.Router(name=name, labels=labels, **facts._asdict()), reading)
    _note(clashes, values.problems)
    if has_errors(clashes):
        return None
    if not connectors:
        values.problems.warn(f"No rule matches this router, {quoted(name)}.", values.place("rules"))
    named = {file: signature_of(file) for each in connectors for file in (each.key_file, each.cert_file) if file}
    steps = [step for each in connectors for step in each.preprocessing.steps]
    watched |= {file: signature_of(file) for step in steps for file in json_files(step)}
    contents, unread = read_json_files(reading, connectors)
    found = check_rule_files(reading, connectors, now, tls_files) + unread
    _note((each for each in found if each.severity != ERROR), values.problems)
    blocked = tuple(
        f"{_where(each)}: {each.field}: {each.sentence} [{each.code}]" for each in found if each.severity == ERROR
    )
    if blocked:
        state, sources = _as_it_runs(running, Router(name, labels, watched | named, blocked, senders))
        for reason in blocked:
            values.problems.warn(f"The router is blocked: {reason}", Place("", ""))
    else:
        sources = tuple(map(_source, connectors))
        state = Router(name, labels, watched, (), senders, contents_of(sources, tls_files), contents)
    return RouterForm(state, sources, tuple(row for source in sources for row in _effective(source, reading)))


def join_sources(sources: Sequence[Source], form: RouterForm, problems: Problems) -> tuple[Source, ...]:
    """Return sources and connectors together. Names and addresses that both want are noted."""
    for source in sources:
        for connector in form.sources:
            if source.name == connector.name:
                problems.error(f"A connector has the name {quoted(source.name)}, too.", Place("sources", ""))
            for ours in connector.listeners:
                for theirs in source.listeners:
                    if parse_endpoint(ours.inner).address.overlaps(parse_endpoint(theirs.inner).address):
                        problems.error(
                            f"Source {quoted(source.name)} has {quoted(theirs.text)}, and connector "
                            f"{quoted(connector.name)} has port {ours.text}: two endpoints can't take one address.",
                            Place("rules", ""),
                        )
    return (*sources, *form.sources)


def _labels(values: Values) -> dict[str, str]:
    written = values.written("router-label")
    labels: dict[str, str] = {}
    for place, value in () if written is None else ((written.place_of(each), each) for each in written.values):
        key, equals, text = value.text.partition("=")
        if not equals:
            values.problems.error(f"{quoted(value.text)} is no label; it is written as KEY=VALUE.", place)
        elif key in labels:
            values.problems.error(f"The label {quoted(key)} is there twice.", place)
        else:
            labels[key] = text
            values.problems.attempt(place, check_label, key, text)
    values.show("router-label", " ".join(f"{key}={text}" for key, text in labels.items()) or "none")
    return labels


def _name(values: Values, facts: HostFacts) -> str:
    texts = values.texts("router-name")
    name = texts[0].text if texts else facts.hostname
    values.show("router-name", name)
    values.problems.attempt(values.place("router-name"), check_name, name)
    return name


def _senders(values: Values, directory: str | None) -> tuple[Entry, ...]:
    """Return what the operator's data files hold."""
    if directory is None:
        return ()
    place = values.place("senders")
    names = values.problems.attempt(place, list_directory, directory) or []
    paths = [os.path.join(directory, name) for name in names if name.endswith(DATA_FILES)]
    files = [(path, content[0]) for path in paths if (content := values.problems.attempt(place, read_file, path))]
    if not files:
        values.problems.warn(f"{quoted(directory)} holds no data files (*.yaml).", place)
        return ()
    # It needs YAML, which is not small.
    from webhookrx.senders.entries import all_entries

    entries, findings = all_entries((), files)
    _note(findings, values.problems)
    return tuple(entries)


def _rules(values: Values, path: str) -> RulesReading | None:
    """Return what a rules file says; None, and everything that is wrong noted, when it can't be used."""
    data = values.problems.attempt(values.place("rules"), read_file, path)
    if data is None:
        return None
    from webhookrx.connectors.rules_file import read_rules

    slow = values.flag("allow-slow-patterns", False)
    reading = read_rules(data[0], values.texts("rules")[0].text, allow_slow_patterns=slow)
    _note(reading.findings, values.problems)
    return reading if reading.valid else None


def _where(finding: Finding) -> str:
    return f"{finding.file}:{finding.line}:{finding.column}" if finding.line else finding.file


def _note(findings: Iterable[Finding], problems: Problems) -> None:
    for finding in findings:
        where = _where(finding)
        note = problems.error if finding.severity == ERROR else problems.warn
        note(f"{finding.sentence} [{finding.code}]", Place(finding.field, where))


def _as_it_runs(running: Settings | None, wanted: Router) -> tuple[Router, tuple[Source, ...]]:
    """
    Return the router and its connectors as they are in use, for one that is blocked.

    @param wanted: what it would be, with what it is to watch and why it is blocked.
    """
    if running is None:
        return wanted, ()
    current = running.router or wanted
    state = replace(
        wanted,
        name=current.name,
        labels=current.labels,
        senders=current.senders,
        tls_files=current.tls_files,
        json_files=current.json_files,
    )
    return state, tuple(source for source in running.sources if source.connector)


def _source(connector: router.Connector) -> Source:
    port = str(connector.port)
    listener = Listener(port, parse_endpoint(port).inner, tls=tls_of(connector))
    details = Connector(connector.rule, connector.port, connector.labels, connector.preprocessing)
    return Source(
        connector.name,
        "connector",
        connector.paths,
        health=connector.health,
        listeners=(listener,),
        connector=details,
    )


def _effective(source: Source, reading: RulesReading) -> list[Effective]:
    """Return what a connector is, each with its place in the file."""
    assert source.connector is not None
    rule = source.connector.rule
    labels = " ".join(f"{key}={value}" for key, value in source.connector.labels.items())
    rows = (
        ("rule", rule, "name"),
        ("port", source.listeners[0].text, "port"),
        ("paths", " ".join(source.paths), "paths"),
        ("labels", labels, "labels"),
    )
    found = []
    for name, value, member in rows:
        try:
            line = reading.position(rule, member).line
        except KeyError:  # the rule of a connector that runs has gone, but its router is blocked
            line = 0
        found.append(Effective(source.name, name, value, f"{reading.file}:{line}" if line else "as it runs"))
    return found
