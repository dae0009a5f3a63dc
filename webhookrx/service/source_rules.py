"""
The rules by which sources and connectors decide, made of their settings; and which of them share an endpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from webhookrx.intake.header_masking import is_masked
from webhookrx.intake.judge import SourceRules
from webhookrx.settings import ConnectorSettings, Listener, Settings, Source

if TYPE_CHECKING:
    from webhookrx.router.connector_intake import ConnectorRules
    from webhookrx.router.expressions import Files
    from webhookrx.router.steps.processing import Processing
    from webhookrx.router.steps.step import Preprocessing
    from webhookrx.senders.classifier import Classifier
    from webhookrx.senders.definition import SenderDefinition


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
        masked_headers=masked_headers(source, settings),
    )


def connector_rules(
    source: Source,
    connector: ConnectorSettings,
    settings: Settings,
    classifier: Classifier | None,
    files: Callable[[str], Any] | None = None,
    make_processing: Callable[[Preprocessing, Classifier | None, Files], Processing] | None = None,
) -> ConnectorRules:
    """
    Return the rules by which a connector decides.

    @param classifier: for connectors that classify.
    @param files: returns the JSON files that expressions name; by default those in the settings.
    @param make_processing: makes what runs the steps; by default what a receiver has.
    """
    # They take megabytes of memory, which a receiver without connectors need not have.
    from webhookrx.router.connector_intake import ConnectorRules
    from webhookrx.router.expressions import tables_of
    from webhookrx.router.steps.processing import Processing

    router = settings.router
    assert router is not None, "connectors are a router's"
    assert not source.auth_tokens, "connectors ask for no token"
    files = files or tables_of(router.json_files)
    if make_processing is not None:
        processing = make_processing(connector.preprocessing, classifier, files)
    else:
        processing = Processing(connector.preprocessing, classifier, time.perf_counter, files)
    return ConnectorRules(
        source.name,
        port=connector.port,
        labels=connector.labels,
        router=router.name,
        router_labels=router.labels,
        processing=processing,
        include_request_headers=source.include_request_headers,
        body_limit=settings.limits.body,
        unpack_ratio=settings.limits.unpack_ratio,
        masked_headers=masked_headers(source, settings),
    )


def masked_headers(source: Source, settings: Settings) -> frozenset[str]:
    """
    Return the headers with the token of a source, and those that some definition in use looks for proofs in, unless
    they are masked anyway: a request may come to the wrong source.
    """
    guards = [each.guard for each in settings.sources if each.guard is not None]
    senders = list({guard.sender.id: guard.sender for guard in guards if guard.sender is not None}.values())
    senders += settings.router.senders if settings.router is not None else ()
    names = {name for sender in senders for scheme in sender.schemes for name in scheme.headers}
    if source.guard is not None and source.guard.token_place.kind == "header":
        names.add(source.guard.token_place.name)
    return frozenset(name for name in names if not is_masked(name))


class _ClassifierInUse:
    """
    The classifier that connectors have. To make one takes a tenth of a second, in which nobody is served, so that
    a reload takes the one in use, unless senders have changed. Without connectors that have it, it is gone.
    """

    def __init__(self) -> None:
        self._own: tuple[SenderDefinition, ...] = ()
        self._last: Callable[[], Classifier | None] = lambda: None

    def of(self, own: tuple[SenderDefinition, ...]) -> Classifier:
        """
        Return the classifier with all senders.

        @param own: the definitions of the operator, which replace ours of the same id.
        """
        known = self._last()
        if known is not None and own == self._own:
            return known
        # It reads the data files of all known senders.
        from webhookrx.senders.classifier import Classifier
        from webhookrx.senders.definitions import builtin_definitions

        made = Classifier({definition.id: definition for definition in (*builtin_definitions(), *own)}.values())
        self._own, self._last = own, ref(made)
        return made


_in_use: Final = _ClassifierInUse()


def classifier_for(settings: Settings) -> Classifier | None:
    """Return the classifier with all senders; None if no connector classifies."""
    if not any(source.connector and source.connector.preprocessing.classifies for source in settings.sources):
        return None
    return _in_use.of(settings.router.senders if settings.router else ())


def json_files(settings: Settings) -> Callable[[str], Any] | None:
    """Return the JSON files of all connectors, each of which is read once."""
    if settings.router is None or not settings.router.json_files:
        return None
    from webhookrx.router.expressions import tables_of

    return tables_of(settings.router.json_files)


def by_listener(sources: Iterable[Source]) -> list[tuple[Listener, list[Source]]]:
    """Return each endpoint once, with the sources that share it, in the order of the settings."""
    shared: dict[str, tuple[Listener, list[Source]]] = {}
    for source in sources:
        for listener in source.listeners:
            _, users = shared.setdefault(listener.socket, (listener, []))
            users.append(source)
    return list(shared.values())
