"""
The router form: the connectors that a rules file gives to this router.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from webhookrx.config.endpoints import parse_endpoint
from webhookrx.config.files import Snapshot, absolute, read_file, signature_of
from webhookrx.config.guard_options import guard_rows
from webhookrx.config.guards.context import GuardContext
from webhookrx.config.guards.of_connector import read_connector_guard
from webhookrx.config.machine import HostFacts
from webhookrx.config.option_reader import NOWHERE, Effective, OptionReader, Origin, Problems
from webhookrx.config.own_senders import OwnSenders
from webhookrx.config.pem import check_tls_files, contents_of
from webhookrx.config.rule_files import (
    LastSet,
    SavedSet,
    check_rule_files,
    json_contents,
    json_files_of,
    read_json_files,
    read_last_set,
    tls_of,
)
from webhookrx.diagnostics import ERROR, has_errors, quoted
from webhookrx.errors import ConfigError
from webhookrx.router.gate import ClosedConnector, GateReason
from webhookrx.router.rules import router
from webhookrx.router.rules.rule import check_label, check_name
from webhookrx.settings import TLS, ConnectorSettings, GuardSettings, Listener, RouterSettings, Settings, Source

if TYPE_CHECKING:
    from webhookrx.router.rules.rules_file import RulesReading


AS_IT_RUNS: Final = "as it runs"
_LAST: Final = "the last good set"


@dataclass(frozen=True, slots=True)
class RouterForm:
    """
    The result of reading a rules file.

    @ivar sources: the connectors of this router; those in use while the router is blocked.
    @ivar effective: their settings, for C{--check}.
    """

    router: RouterSettings
    sources: tuple[Source, ...]
    effective: tuple[Effective, ...]


def resolve_router(
    options: OptionReader,
    host: Callable[[], HostFacts],
    now: datetime,
    running: Settings | None,
    tls_files: Snapshot,
    own_senders: OwnSenders,
    context: GuardContext,
    *,
    state_dir: str | None = None,
    checks_only: bool = False,
) -> RouterForm | None:
    """
    Return this router and its connectors; None when the rules file can't be used. Mistakes are noted.

    A reload with a key, certificate or JSON file that can't be used keeps the connectors in use: the router is blocked.
    A start has no connectors in use: it takes the last good set, without one the connectors of the rules, and closes
    those whose files can't be used. A start with a rules file that can't be used takes the last good set, too.

    @param options: those of the service, with a rules file.
    @param now: the time with its zone, for the dates of certificates.
    @param running: the settings in use; None at a start.
    @param tls_files: reads keys and certificates.
    @param own_senders: the sender definitions of the operator.
    @param context: what guards share.
    @param state_dir: the directory of the last good set; None without one.
    @param host: see L{webhookrx.config.resolve.Environment}.
    @param checks_only: the same.
    """
    path = options.path("rules")
    senders_path = None if not options.raw("senders") else absolute(options.raw("senders")[0].text)
    labels = router_labels(options)
    if path is None:
        return None
    facts = host()
    name = _name(options, facts)
    problems = options.problems
    known_errors = len(problems.errors)
    watched = {each: signature_of(each) for each in (path, senders_path) if each is not None}
    problems.add(*own_senders.problems.errors, *own_senders.problems.warnings)
    slow = options.flag("allow-slow-patterns", False)
    reading, content = _rules(options, path, slow)
    connectors: list[router.Connector] = []
    if reading is not None:
        connectors, clashes = router.connectors_of(router.Router(name=name, labels=labels, **facts._asdict()), reading)
        problems.add(*clashes)
    errors = problems.errors[known_errors:]
    resolver = RouterResolver(options, now, running, tls_files, state_dir, context)
    if errors and not checks_only:
        last = resolver.last_set()
        if last is not None:
            del problems.errors[known_errors:]
            for error in errors:
                problems.warn(
                    f"The rules file can't be used; the last good connectors are in use: {error.text}", NOWHERE
                )
            return resolver.closing(last, RouterSettings("", {}, watched, not_taken=errors[0].text), _LAST)
    if reading is None or has_errors(clashes):
        return None
    if not connectors:
        options.warn("rules", f"No rule matches this router, {quoted(name)}.")
    state = RouterSettings(name, labels, watched, senders=own_senders.definitions)
    if state_dir is not None and not errors:
        texts = tuple((file, data.decode()) for file, data in own_senders.files)
        rules = tuple(each.rule for each in connectors)
        saved = SavedSet(name, labels, rules, reading.file, content.decode(), texts, slow)
        state = replace(state, good=saved.encode())
    return resolver.of_rules(reading, connectors, state)


@dataclass(frozen=True, slots=True)
class RouterResolver:
    """
    Decides which connectors a router opens. The fields are those of L{resolve_router}.
    """

    options: OptionReader
    now: datetime
    running: Settings | None
    tls_files: Snapshot
    state_dir: str | None
    context: GuardContext

    def of_rules(
        self, reading: RulesReading, connectors: Sequence[router.Connector], state: RouterSettings
    ) -> RouterForm:
        """Return the connectors of the rules, or those in use or of the last good set while a file can't be used."""
        problems = self.options.problems
        # Before they are read: a change while they are read is seen, too.
        named = {file: signature_of(file) for each in connectors for file in _tls_files_of(each)}
        json_files = {file: signature_of(file) for each in connectors for file in json_files_of(each)}
        contents, unusable = read_json_files(reading, connectors)
        guards = [read_connector_guard(each, self.context) for each in connectors]
        of_guards = {file: signature for guard in guards for file, signature in guard.watched.items()}
        found = check_rule_files(reading, connectors, self.now, self.tls_files) + unusable
        for connector, guard in zip(connectors, guards, strict=True):
            found += (reading.in_rule(connector.rule, each) for each in guard.found)
        problems.add(*(each for each in found if each.severity != ERROR))
        blocked = tuple(GateReason(each.text, each.named) for each in found if each.severity == ERROR)
        state = replace(state, watched={**state.watched, **json_files, **of_guards})
        if not blocked:
            sources = tuple(source_of(each, guard.guard) for each, guard in zip(connectors, guards, strict=True))
            files = contents_of(sources, self.tls_files)
            return form_of(replace(state, tls_files=files, json_files=contents), sources, reading)
        for reason in blocked:
            problems.warn(f"The router is blocked: {reason.text}", NOWHERE)
        state = replace(state, watched={**state.watched, **named}, blocked=blocked, good=b"")
        if self.running is not None:
            return form_of(*as_it_runs(self.running, state), AS_IT_RUNS)
        last = self.last_set()
        wanted = LastSet(state.name, state.labels, connectors, state.senders)
        return self.closing(last or wanted, state, _LAST if last else reading)

    def last_set(self) -> LastSet | None:
        """Return the last good set for a start; None without one. A set that can't be used is a warning."""
        if self.state_dir is None or self.running is not None:
            return None
        try:
            return read_last_set(self.state_dir)
        except ConfigError as error:
            self.options.warn("state-dir", f"The last good connectors can't be used: {error}")
            return None

    def closing(self, wanted: LastSet, state: RouterSettings, origin: RulesReading | str) -> RouterForm:
        """
        Return the connectors of a set whose files can be used; the others are closed, with warnings.

        @param state: the files to watch, and why the rules are not in use.
        @param origin: see L{form_of}.
        """
        watched = dict(state.watched)
        wrong: dict[TLS, str] = {}
        sources: list[Source] = []
        closed: list[ClosedConnector] = []
        context = self.context.with_own(wanted.senders)
        named = {file for connector in wanted.connectors for file in json_files_of(connector)}
        watched |= {file: watched.get(file) or signature_of(file) for file in named}
        contents, unusable = json_contents(wanted.connectors)
        for connector in wanted.connectors:
            tls = tls_of(connector)
            if tls is not None and tls not in wrong:
                watched |= {file: watched.get(file) or signature_of(file) for file in _tls_files_of(connector)}
                found = check_tls_files(tls, self.now, self.tls_files)
                wrong[tls] = next((each.sentence for each in found if each.severity == ERROR), "")
            missing = (unusable[file].sentence for file in json_files_of(connector) if file in unusable)
            guard = read_connector_guard(connector, context)
            watched |= {file: watched.get(file) or signature for file, signature in guard.watched.items()}
            problem = "" if tls is None else wrong[tls]
            problem = problem or next(missing, "") or guard.problem
            if problem:
                closed.append(ClosedConnector(connector.name, connector.rule, connector.port, problem))
                self.options.problems.warn(closed[-1].sentence, NOWHERE)
            else:
                sources.append(source_of(connector, guard.guard))
        state = replace(
            state,
            name=wanted.router,
            labels=wanted.labels,
            watched=watched,
            senders=wanted.senders,
            closed=tuple(closed),
            tls_files=contents_of(sources, self.tls_files),
            json_files=contents,
        )
        return form_of(state, tuple(sources), origin)


def form_of(state: RouterSettings, sources: tuple[Source, ...], origin: RulesReading | str) -> RouterForm:
    """
    @param origin: the rules that the connectors come from, or another origin in words.
    """
    return RouterForm(state, sources, tuple(row for source in sources for row in _effective(source, origin)))


def join_sources(sources: Sequence[Source], form: RouterForm, problems: Problems) -> tuple[Source, ...]:
    """Return sources and connectors together. Names and addresses that both have are errors."""
    for source in sources:
        for connector in form.sources:
            if source.name == connector.name:
                problems.error(f"A connector has the name {quoted(source.name)}, too.", Origin(("sources",)))
            for ours in connector.listeners:
                for theirs in source.listeners:
                    if parse_endpoint(ours.socket).address.overlaps(parse_endpoint(theirs.socket).address):
                        problems.error(
                            f"Source {quoted(source.name)} has {quoted(theirs.text)}, and connector "
                            f"{quoted(connector.name)} has port {ours.text}: two endpoints can't take one address.",
                            Origin(("rules",)),
                        )
    return (*sources, *form.sources)


def router_labels(options: OptionReader) -> dict[str, str]:
    """Return the labels of the options; mistakes are noted."""
    labels: dict[str, str] = {}
    for value in options.raw("router-label"):
        key, equals, text = value.text.partition("=")
        if not equals:
            options.problems.error(f"{quoted(value.text)} is not a label; write KEY=VALUE.", value.origin)
        elif key in labels:
            options.problems.error(f"The label {quoted(key)} is given twice.", value.origin)
        else:
            labels[key] = text
            options.problems.attempt(value.origin, check_label, key, text)
    options.show("router-label", " ".join(f"{key}={text}" for key, text in labels.items()) or "none")
    return labels


def _name(options: OptionReader, facts: HostFacts) -> str:
    text = options.value("router-name")
    name = facts.hostname if text is None else text
    options.show("router-name", name)
    options.attempt("router-name", check_name, name)
    return name


def _rules(options: OptionReader, path: str, allow_slow_patterns: bool) -> tuple[RulesReading | None, bytes]:
    """Return a rules file and its content; None for one that can't be used. Mistakes are noted."""
    data = options.attempt("rules", read_file, path)
    if data is None:
        return None, b""
    from webhookrx.router.rules.rules_file import read_rules

    reading = read_rules(data[0], options.raw("rules")[0].text, allow_slow_patterns=allow_slow_patterns)
    options.problems.add(*reading.diagnostics)
    return reading if reading.valid else None, data[0]


def as_it_runs(running: Settings, wanted: RouterSettings) -> tuple[RouterSettings, tuple[Source, ...]]:
    """
    Return the router and the connectors in use.

    @param wanted: the files to watch, and why the router is blocked.
    """
    current = running.router or wanted
    state = replace(
        wanted,
        name=current.name,
        labels=current.labels,
        senders=current.senders,
        closed=current.closed,
        tls_files=current.tls_files,
        json_files=current.json_files,
        bundle=current.bundle,
    )
    return state, tuple(source for source in running.sources if source.connector)


def _tls_files_of(connector: router.Connector) -> list[str]:
    return [file for file in (connector.key_file, connector.cert_file, connector.ca_file) if file]


def source_of(connector: router.Connector, guard: GuardSettings | None) -> Source:
    """Return the settings of a connector."""
    port = str(connector.port)
    listener = Listener(port, parse_endpoint(port).socket, tls=tls_of(connector))
    details = ConnectorSettings(connector.rule, connector.port, connector.labels, connector.preprocessing)
    return Source(
        connector.name,
        "connector",
        connector.paths,
        include_request_headers=connector.include_request_headers,
        health=connector.health,
        listeners=(listener,),
        connector=details,
        guard=guard,
    )


#: The names of options of guards as rules have them, where they differ in more than their dashes.
_IN_RULES: Final = {"allow-client": "allow_clients", "sender-setting": "sender_settings"}


def _guard_rows(guard: GuardSettings | None) -> list[tuple[str, str, str]]:
    """Return name, value and rule field of each option of a guard that is not the default."""
    defaults = guard_rows(GuardSettings())
    rows = {} if guard is None else guard_rows(guard)
    if guard is not None and guard.token_files:
        rows["auth-token-file"] = " ".join(guard.token_files)
    return [
        (name, value, _IN_RULES.get(name, name.replace("-", "_")))
        for name, value in rows.items()
        if value != defaults.get(name)
    ]


def _effective(source: Source, origin: RulesReading | str) -> list[Effective]:
    """
    Return the settings of a connector, each with its origin.

    @param origin: see L{form_of}.
    """
    assert source.connector is not None
    rule = source.connector.rule
    labels = " ".join(f"{key}={value}" for key, value in source.connector.labels.items())
    rows = (
        ("rule", rule, "name"),
        ("port", source.listeners[0].text, "port"),
        ("paths", " ".join(source.paths), "paths"),
        ("labels", labels, "labels"),
        *_guard_rows(source.guard),
    )
    return [
        Effective(
            source.name,
            name,
            value,
            origin if isinstance(origin, str) else f"{origin.file}:{origin.position(rule, member).line}",
        )
        for name, value, member in rows
    ]
