"""
The router form with a console: the connectors that the bundles of the console give to this router.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from webhookrx.config.console_files import ConsoleFiles, KeptBundle, read_console_files
from webhookrx.config.console_options import lies_below
from webhookrx.config.files import Snapshot, absolute, signature_of
from webhookrx.config.guards.context import GuardContext
from webhookrx.config.machine import HostFacts
from webhookrx.config.option_reader import NOWHERE, OptionReader
from webhookrx.config.own_senders import OwnSenders
from webhookrx.config.router_form import AS_IT_RUNS, RouterForm, RouterResolver, as_it_runs, form_of, router_labels
from webhookrx.config.rule_files import json_files_of
from webhookrx.diagnostics import ERROR, quoted
from webhookrx.errors import ConfigError
from webhookrx.router.rules import router
from webhookrx.router.rules.router import Connector
from webhookrx.router.rules.rule import check_name
from webhookrx.settings import AgentSettings, BundleInUse, RouterSettings, Settings

if TYPE_CHECKING:
    from webhookrx.router.rules.rules_file import RulesReading


def resolve_console_router(
    options: OptionReader,
    console: AgentSettings,
    host: Callable[[], HostFacts],
    now: datetime,
    running: Settings | None,
    tls_files: Snapshot,
    own_senders: OwnSenders,
    context: GuardContext,
) -> RouterForm | None:
    """
    Return this router and the connectors of its bundles; None when what the console has left here can't be used.

    The bundle that came last is tried, then the one that was applied last. One whose rules can't be used, or name a
    file elsewhere than the host allows, is left aside with a warning: it never ends what runs. A bundle with a file
    that is missing blocks the router: a reload keeps the connectors in use, and a start takes those of the bundle that
    was applied last.

    @param options: those of the service; the others are as for L{webhookrx.config.router_form.resolve_router}.
    """
    problems = options.problems
    problems.add(*own_senders.problems.errors, *own_senders.problems.warnings)
    labels = router_labels(options)
    text = options.value("router-name")
    if text is not None:
        options.attempt("router-name", check_name, text)
    files = options.attempt("console-dir", read_console_files, console.directory)
    if files is None:
        return None
    for problem in files.problems:
        options.warn("console-dir", problem)
    resolver = RouterResolver(options, now, running, tls_files, None, context)
    name = text or (host().hostname if files.identity is None else files.identity.name)
    watched = {}
    if options.raw("senders"):
        senders = absolute(options.raw("senders")[0].text)
        watched[senders] = signature_of(senders)
    nothing = RouterSettings(name, labels, watched, senders=own_senders.definitions)
    slow = options.flag("allow-slow-patterns", False)
    form = _Bundles(options, console, host, running, resolver, nothing, slow).form(files)
    options.show("router-name", form.router.name)
    return form


@dataclass(frozen=True, slots=True)
class _Bundles:
    """
    Takes the first bundle that can be used.

    @ivar nothing: the router before it has any connectors, with the labels of its own.
    """

    options: OptionReader
    console: AgentSettings
    host: Callable[[], HostFacts]
    running: Settings | None
    resolver: RouterResolver
    nothing: RouterSettings
    allow_slow_patterns: bool

    def form(self, files: ConsoleFiles) -> RouterForm:
        """Return the router that the bundles make of this machine."""
        problems = self.options.problems
        not_taken = ""
        waiting: RouterSettings | None = None
        for kept in files.bundles:
            try:
                reading, connectors = self._connectors(kept)
            except ConfigError as error:
                not_taken = not_taken or error.problem
                problems.warn(f"Revision {kept.bundle.revision} of the console is not in use: {error.problem}", NOWHERE)
                continue
            known = len(problems.warnings)
            form = self.resolver.of_rules(reading, connectors, self._state(kept, not_taken))
            if form.router.blocked and self.running is None and kept is not files.bundles[-1]:
                waiting = form.router
                del problems.warnings[known:]
                for reason in waiting.blocked:
                    problems.warn(f"The router is blocked: {reason.text}", NOWHERE)
                continue
            return form if waiting is None else _blocked_too(form, waiting)
        state = replace(self.nothing, not_taken=not_taken)
        if self.running is not None:
            return form_of(*as_it_runs(self.running, state), AS_IT_RUNS)
        if waiting is not None:
            state = replace(state, blocked=waiting.blocked, watched=waiting.watched)
        return form_of(state, (), AS_IT_RUNS)

    def _state(self, kept: KeptBundle, not_taken: str) -> RouterSettings:
        bundle = kept.bundle
        return replace(
            self.nothing,
            name=bundle.router.name,
            labels={**self.nothing.labels, **bundle.router.labels},
            not_taken=not_taken,
            bundle=BundleInUse(bundle.revision, kept.digest, bundle.masks),
        )

    def _connectors(self, kept: KeptBundle) -> tuple[RulesReading, Sequence[Connector]]:
        """
        Return the connectors of a bundle. None of the files that it names has been looked at.

        @raise ConfigError: it can't be used.
        """
        # YAML takes a megabyte of memory, which a receiver without rules does not need.
        from webhookrx.router.rules.rules_file import read_rules

        state = self._state(kept, "")
        where = f"revision {kept.bundle.revision} of the console"
        reading = read_rules(kept.bundle.rules.encode(), where, allow_slow_patterns=self.allow_slow_patterns)
        found = list(reading.diagnostics)
        connectors: list[Connector] = []
        if reading.valid:
            this = router.Router(name=state.name, labels=state.labels, **self.host()._asdict())
            connectors, clashes = router.connectors_of(this, reading)
            found += clashes
        for each in found:
            if each.severity == ERROR:
                raise ConfigError(each.text)
        for sentence in self._elsewhere(connectors):
            raise ConfigError(sentence)
        self.options.problems.add(*found)
        return reading, connectors

    def _elsewhere(self, connectors: Sequence[Connector]) -> Iterator[str]:
        """Yield a sentence for each file that is not where a console may name files."""
        for connector in connectors:
            words = connector.guard
            named = (connector.key_file, connector.cert_file, connector.ca_file)
            for path in filter(None, (*named, *words.secrets_file, *words.auth_token_file)):
                if not lies_below(path, self.console.key_directories):
                    yield f"Rule {quoted(connector.rule)} names {quoted(path)}, which lies below no --key-directory."
            for path in json_files_of(connector):
                if not lies_below(path, self.console.data_directories):
                    yield f"Rule {quoted(connector.rule)} names {quoted(path)}, which lies below no --data-directory."


def _blocked_too(form: RouterForm, waiting: RouterSettings) -> RouterForm:
    """Return the form with what a later bundle waits for."""
    state = replace(
        form.router,
        blocked=tuple(dict.fromkeys((*waiting.blocked, *form.router.blocked))),
        watched={**waiting.watched, **form.router.watched},
    )
    return replace(form, router=state)
