"""
From sources to what answers on each endpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from webhookrx.config.settings import Listener, Settings, Source
from webhookrx.http.root_resource import RootResource
from webhookrx.http.webhook_resource import WebhookResource
from webhookrx.intake import Receipt, SourceRules
from webhookrx.interfaces import IMessageConsumer, ITraffic


def rules_of(source: Source, settings: Settings) -> SourceRules:
    """Return how a source decides."""
    return SourceRules(
        source.name,
        parse_json=source.source == "webhook-json",
        prefix=source.prefix,
        auth_tokens=source.auth_tokens,
        include_request_headers=source.include_request_headers,
        proxy_header=source.proxy_header,
        keep_unparsed=source.on_parse_error == "keep",
        body_limit=settings.limits.body,
    )


def by_listener(sources: Iterable[Source]) -> list[tuple[Listener, list[Source]]]:
    """Return each endpoint once, with the sources that share it, in the order of the settings."""
    shared: dict[str, tuple[Listener, list[Source]]] = {}
    for source in sources:
        for listener in source.listeners:
            _, users = shared.setdefault(listener.inner, (listener, []))
            users.append(source)
    return list(shared.values())


def build_roots(
    settings: Settings, consumer: IMessageConsumer, traffic: ITraffic, receipts: Callable[[], Receipt]
) -> dict[str, RootResource]:
    """
    Return the root of each endpoint, by C{Listener.inner}.

    @param receipts: gives each message its L{Receipt}.
    """
    resources = {
        source.name: WebhookResource(rules_of(source, settings), consumer, traffic, receipts)
        for source in settings.sources
    }
    return {
        listener.inner: RootResource(
            [(pattern, resources[source.name]) for source in sources for pattern in source.paths], traffic
        )
        for listener, sources in by_listener(settings.sources)
    }
