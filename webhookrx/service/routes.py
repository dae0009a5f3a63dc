"""
The resources of each endpoint, built from the settings of its sources.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from webhookrx.http.resources import Judge, RecordRequest, RootResource, WebhookResource, never_ready
from webhookrx.http.time_slices import TimeSlices
from webhookrx.intake.judge import Receipt, SourceRules
from webhookrx.interfaces import IMessageConsumer, ITraffic
from webhookrx.router.rules.rule import CONNECTOR_TYPE
from webhookrx.settings import ConnectorSettings, FileContents, Listener, Settings, Source

if TYPE_CHECKING:
    from webhookrx.router.connector_intake import ConnectorRules
    from webhookrx.senders.classifier import Classifier


def rules_of(source: Source, settings: Settings) -> SourceRules:
    """Return the rules by which a source decides."""
    return SourceRules(
        source.name,
        parse_json=source.variant == "webhook-json",
        prefix=source.prefix,
        auth_tokens=source.auth_tokens,
        include_request_headers=source.include_request_headers,
        proxy_header=source.proxy_header,
        keep_unparsed=source.on_parse_error == "keep",
        keep_text=source.keep_message == "yes",
        body_limit=settings.limits.body,
        unpack_ratio=settings.limits.unpack_ratio,
    )


def connector_rules(
    source: Source,
    connector: ConnectorSettings,
    settings: Settings,
    classifier: Classifier | None,
    files: Callable[[str], Any] | None = None,
) -> ConnectorRules:
    """
    Return the rules by which a connector decides.

    @param classifier: for connectors that classify.
    @param files: returns the JSON files that expressions name; by default those in the settings.
    """
    # They take megabytes of memory, which a receiver without connectors need not have.
    from webhookrx.router.connector_intake import ConnectorRules
    from webhookrx.router.expressions import tables_of
    from webhookrx.router.steps.processing import Processing

    router = settings.router
    assert router is not None, "connectors are a router's"
    assert not source.auth_tokens, "connectors ask for no token"
    return ConnectorRules(
        source.name,
        port=connector.port,
        labels=connector.labels,
        router=router.name,
        router_labels=router.labels,
        processing=Processing(
            connector.preprocessing, classifier, time.perf_counter, files or tables_of(router.json_files)
        ),
        include_request_headers=source.include_request_headers,
        body_limit=settings.limits.body,
        unpack_ratio=settings.limits.unpack_ratio,
    )


def classifier_for(settings: Settings) -> Classifier | None:
    """Return the classifier with all senders; None if no connector classifies."""
    if not any(source.connector and source.connector.preprocessing.classifies for source in settings.sources):
        return None
    # It reads the data files of all known senders.
    from webhookrx.senders.classifier import Classifier
    from webhookrx.senders.definitions import builtin_definitions

    own = settings.router.senders if settings.router else ()
    # An operator's definition replaces ours of the same id.
    return Classifier({definition.id: definition for definition in (*builtin_definitions(), *own)}.values())


def _json_files(settings: Settings) -> Callable[[str], Any] | None:
    """Return the JSON files of all connectors, each of which is read once."""
    if settings.router is None or not settings.router.json_files:
        return None
    from webhookrx.router.expressions import tables_of

    return tables_of(settings.router.json_files)


def connector_labels(settings: Settings) -> tuple[tuple[str, ...], ...]:
    """Return the labels of each connector, as L{webhookrx.operations.snapshot.Snapshot.connectors} has them."""
    return tuple(
        (
            source.name,
            connector.rule,
            CONNECTOR_TYPE,
            str(connector.port),
            connector.labels["product"],
            connector.labels["vendor"],
            ",".join(f"{name}={value}" for name, value in sorted(connector.labels.items())),
        )
        for source in settings.sources
        if (connector := source.connector) is not None
    )


def tls_files(settings: Settings) -> dict[str, FileContents]:
    """Return the contents of the TLS files of each endpoint when they were checked, by C{Listener.socket}."""
    of_connectors = {} if settings.router is None else settings.router.tls_files
    return {
        listener.socket: settings.tls_files if source.connector is None else of_connectors
        for source in settings.sources
        for listener in source.listeners
    }


def by_listener(sources: Iterable[Source]) -> list[tuple[Listener, list[Source]]]:
    """Return each endpoint once, with the sources that share it, in the order of the settings."""
    shared: dict[str, tuple[Listener, list[Source]]] = {}
    for source in sources:
        for listener in source.listeners:
            _, users = shared.setdefault(listener.socket, (listener, []))
            users.append(source)
    return list(shared.values())


def build_roots(
    settings: Settings,
    consumer: IMessageConsumer,
    traffic: ITraffic,
    receipts: Callable[[], Receipt],
    slices: TimeSlices,
    record: RecordRequest | None = None,
    ready: Callable[[], bool] = never_ready,
) -> dict[str, RootResource]:
    """
    Return the root of each endpoint, by C{Listener.socket}.

    @param receipts: gives each message its L{Receipt}.
    @param slices: handles large bodies.
    @param record: see L{WebhookResource}.
    @param ready: whether the service as a whole is ready for messages, for health checks at the path of a source.
    """
    classifier = classifier_for(settings)
    files = _json_files(settings)
    resources: dict[str, WebhookResource] = {}
    for source in settings.sources:
        rules = rules_of(source, settings)
        decide: Judge | None = None
        for_lines: Judge | None = None
        if source.connector is not None:
            # It takes the same megabytes.
            from webhookrx.router.connector_intake import judge_connector, judge_connector_for_lines

            rules = of_connector = connector_rules(source, source.connector, settings, classifier, files)
            decide, for_lines = judge_connector, judge_connector_for_lines
            traffic.expects(source.name, of_connector.processing.possible_events)
        resources[source.name] = WebhookResource(rules, consumer, traffic, receipts, slices, decide, for_lines, record)
    return {
        listener.socket: RootResource(
            [(pattern, resources[source.name]) for source in sources for pattern in source.paths],
            traffic,
            frozenset(source.health.encode("ascii") for source in sources if source.health),
            ready,
        )
        for listener, sources in by_listener(settings.sources)
    }
