"""
The resources of each endpoint, built from the settings of its sources.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from webhookrx.http.resources import RecordRequest, RootResource, WebhookResource, never_ready
from webhookrx.http.time_slices import TimeSlices
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Judge, Receipt, SourceRules
from webhookrx.interfaces import IDeliveryWindow, IMessageConsumer
from webhookrx.router.rules.rule import CONNECTOR_TYPE
from webhookrx.service.masks import body_mask, signature_headers, token_mask
from webhookrx.service.source_rules import by_listener, classifier_for, connector_rules, json_files, rules_of
from webhookrx.settings import FileContents, GuardSettings, Settings, Source
from webhookrx.wire_interfaces import ITraffic

if TYPE_CHECKING:
    from webhookrx.guard.quota import Buckets
    from webhookrx.senders.signatures.code_verifiers import KeySource
    from webhookrx.service.guards import GuardMaker
    from webhookrx.service.subscriptions import Subscriptions


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


def masked_record(source: Source, record: Callable[..., None] | None) -> RecordRequest | None:
    """
    Return what records the requests to a source, without token and secrets, but with signatures. A request whose body
    may show a secret that can't be masked is not recorded.

    @param record: as L{webhookrx.operations.recorder.Recorder.record}.
    """
    mask, in_body, signatures = token_mask(source), body_mask(source), signature_headers(source)
    if record is None or not (mask or in_body or signatures):
        return record
    # It takes memory that a receiver without guards does not need.
    from webhookrx.senders.signatures.body_mask import CantMask

    def masked(head: Head, body: bytes) -> None:
        if in_body is not None:
            try:
                body = in_body.masked(body)
            except CantMask:
                return
        record(head if mask is None else mask.masked(head), body, signatures)

    return masked


class SharedByGuards(NamedTuple):
    """
    What all guarded sources share.

    @ivar keys: where public keys of senders come from that are no secrets of a source.
    @ivar subscriptions: those of SNS that wait.
    """

    window: IDeliveryWindow
    buckets: Buckets
    keys: KeySource
    subscriptions: Subscriptions | None = None


def _guard_maker(shared: SharedByGuards) -> GuardMaker:
    # It takes megabytes of memory, which a receiver without guards does not need.
    from webhookrx.service.guards import GuardMaker

    return GuardMaker(lambda: shared.buckets, shared.keys, time.time_ns, time.monotonic, shared.subscriptions)


def _guarded(
    source: Source, settings: GuardSettings, rules: SourceRules, traffic: ITraffic, maker: GuardMaker
) -> Callable[..., WebhookResource]:
    """Return what builds the resource of a guarded source, but for its guard."""
    # It takes these megabytes, too.
    from webhookrx.http.guarded_resource import GuardedResource

    guard = maker.guard(source, settings, rules)
    sender = "" if settings.sender is None else settings.sender.id
    traffic.guards(source.name, guard.secrets, guard.tokens, guard.kinds, says_when=guard.says_when, sender=sender)
    return partial(GuardedResource, guard)


def build_roots(
    settings: Settings,
    consumer: IMessageConsumer,
    traffic: ITraffic,
    receipts: Callable[[], Receipt],
    slices: TimeSlices,
    record: Callable[..., None] | None = None,
    ready: Callable[[], bool] = never_ready,
    shared: SharedByGuards | None = None,
) -> dict[str, RootResource]:
    """
    Return the root of each endpoint, by C{Listener.socket}.

    @param receipts: gives each message its L{Receipt}.
    @param slices: handles large bodies.
    @param record: see L{masked_record}; None for no recording.
    @param ready: whether the service as a whole is ready for messages, for health checks at the path of a source.
    @param shared: needed for guarded sources.
    """
    classifier = classifier_for(settings)
    files = json_files(settings)
    resources: dict[str, WebhookResource] = {}
    maker: GuardMaker | None = None
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
        if source.guard is None:
            build: Callable[..., WebhookResource] = partial(WebhookResource, rules)
        else:
            assert shared is not None, "guards share something"
            maker = maker or _guard_maker(shared)
            build = partial(_guarded(source, source.guard, rules, traffic, maker), shared.window)
        resources[source.name] = build(
            consumer, traffic, receipts, slices, decide, for_lines, masked_record(source, record)
        )
    return {
        listener.socket: RootResource(
            [(pattern, resources[source.name]) for source in sources for pattern in source.paths],
            traffic,
            frozenset(source.health.encode("ascii") for source in sources if source.health),
            ready,
        )
        for listener, sources in by_listener(settings.sources)
    }
