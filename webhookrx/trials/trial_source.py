"""
The source that a trial is about: of all that are configured, the one that takes the path of a request.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from webhookrx.config.guards.context import KnownKeys
from webhookrx.config.specs import split_spec
from webhookrx.diagnostics import quoted, suggestion
from webhookrx.errors import WebhookrxError
from webhookrx.guard.guard import Guard
from webhookrx.guard.quota import BUCKETS_SIZE, SECRET_SIZE, Buckets
from webhookrx.intake.judge import SourceRules, admission_of_path, judge
from webhookrx.intake.path_patterns import PathPatterns
from webhookrx.intake.tokens import NamedToken
from webhookrx.router.connector_intake import judge_connector
from webhookrx.router.steps.traced import TracedProcessing
from webhookrx.service.guards import GuardMaker
from webhookrx.service.source_rules import by_listener, classifier_for, connector_rules, rules_of
from webhookrx.settings import GuardSettings, Listener, Settings, Source
from webhookrx.trials.trial import TrialSource


class TakenPath(NamedTuple):
    """
    A source that takes a path.

    @ivar listener: where.
    @ivar pattern: the one of its patterns that matches.
    @ivar groups: raw.
    """

    source: Source
    listener: Listener
    pattern: str
    groups: dict[str, bytes]

    @property
    def port(self) -> int | None:
        """The TCP port; None for another kind of endpoint."""
        return port_of(self.listener)


def port_of(listener: Listener) -> int | None:
    """Return the TCP port of an endpoint; None for another kind."""
    (kind, *args), options = split_spec(listener.socket)
    text = options.get("port", args[0] if args else "")
    return int(text) if kind.lower() in ("tcp", "tcp6") and text.isdigit() else None


def taken_paths(settings: Settings, path: bytes, *, name: str | None, port: int | None) -> list[TakenPath]:
    """
    Return the sources that take a path, each once.

    @param name: that of the only source to look at.
    @param port: the only port to look at.
    @raise WebhookrxError: there is no such source, or no such port.
    """
    names = [source.name for source in settings.sources]
    if name is not None and name not in names:
        raise WebhookrxError(f"There is no source {quoted(name)}. {suggestion(name, names)}".rstrip())
    endpoints = [
        (listener, sources)
        for listener, sources in by_listener(settings.sources)
        if port in (None, port_of(listener)) and (name is None or name in [source.name for source in sources])
    ]
    if not endpoints:
        of = "" if name is None else f" of the source {quoted(name)}"
        raise WebhookrxError(f"No endpoint{of} has the port {port}.")
    found: dict[str, TakenPath] = {}
    for listener, sources in endpoints:
        taken = _taken(listener, sources, path)
        if taken is not None and name is not None and taken.source.name != name:
            asked = next(source for source in sources if source.name == name)
            if _taken(listener, [asked], path) is not None:
                raise WebhookrxError(
                    f"At {listener.text} the source {quoted(taken.source.name)} takes this path, which comes before "
                    f"{quoted(name)}."
                )
            taken = None
        if taken is not None:
            found.setdefault(taken.source.name, taken)
    return list(found.values())


def _taken(listener: Listener, sources: Sequence[Source], path: bytes) -> TakenPath | None:
    targets = [(source, pattern) for source in sources for pattern in source.paths]
    match = PathPatterns([pattern for _, pattern in targets]).match(path)
    if match is None:
        return None
    source, pattern = targets[match[0]]
    return TakenPath(source, listener, pattern, match[1])


class TracedSource(NamedTuple):
    """
    A source for a trial.

    @ivar processing: the steps of a connector, with what they do; None for any other source.
    """

    trial: TrialSource
    processing: TracedProcessing | None


def traced_source(
    taken: TakenPath, settings: Settings, make_processing: type[TracedProcessing] = TracedProcessing
) -> TracedSource:
    """
    Return a source, ready for a trial.

    @param make_processing: what runs the steps of a connector.
    """
    source = taken.source
    processing: TracedProcessing | None = None
    plain = replace(source, auth_tokens=())
    rules: SourceRules
    if source.connector is not None:
        rules = of_connector = connector_rules(
            plain, source.connector, settings, classifier_for(settings), make_processing=make_processing
        )
        assert isinstance(of_connector.processing, TracedProcessing)
        processing = of_connector.processing
    else:
        rules = rules_of(plain, settings)
    guard = source.guard or GuardSettings(
        tokens=tuple(NamedToken(str(number), token) for number, token in enumerate(source.auth_tokens, 1))
    )
    keys = KnownKeys(settings.signing_certs, settings.fetch_keys)

    def guard_at(wall_clock: Callable[[], int]) -> Guard:
        return GuardMaker(_full_buckets, keys, wall_clock, time.monotonic).guard(source, guard, rules)

    trial = TrialSource(
        guard_at=guard_at,
        judge=judge if processing is None else judge_connector,
        by_path=admission_of_path(rules, taken.groups),
        pattern=taken.pattern,
        limits=settings.limits,
        has_options=source.guard is not None,
        unknown_lists=tuple(item for item, networks in guard.allow.items() if not networks),
    )
    return TracedSource(trial, processing)


def _full_buckets() -> Buckets:
    """Return buckets that nothing was taken from."""
    return Buckets(bytearray(os.urandom(SECRET_SIZE) + bytes(BUCKETS_SIZE - SECRET_SIZE)))
