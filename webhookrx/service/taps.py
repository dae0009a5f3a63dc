"""
The taps of a receiver: which sources they are about, and the resources that have them look.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.logger import Logger

from webhookrx.errors import CantTap, GateIsClosed
from webhookrx.http.resources import RootResource
from webhookrx.operations.traffic_log import TrafficLog
from webhookrx.service.masks import body_mask, token_mask
from webhookrx.service.source_rules import classifier_for, json_files, masked_headers
from webhookrx.settings import Settings, Source
from webhookrx.work import TooMuchWork, Work

if TYPE_CHECKING:
    from webhookrx.intake.judge import SourceRules
    from webhookrx.tapping.masking import Masks
    from webhookrx.tapping.tap import Tap
    from webhookrx.tapping.tap_request import TapRequest
    from webhookrx.tapping.taps import Taps
    from webhookrx.tapping.view import SourceView

_log = Logger()


class LocalTaps:
    """
    The taps of the sources of this process. Without any, nothing of it is called and next to nothing is imported.

    @param reactor: whose thread takes the rows of taps.
    @param clock: seconds on the monotonic clock.
    """

    def __init__(self, reactor: Any, traffic: TrafficLog, clock: Callable[[], float] = time.monotonic) -> None:
        self._reactor = reactor
        self._traffic = traffic
        self._clock = clock
        self._taps: Taps | None = None
        self._settings: Settings | None = None
        self._roots: Mapping[str, RootResource] = {}

    def use(self, settings: Settings, roots: Mapping[str, RootResource]) -> None:
        """
        Use other settings.

        @param roots: the resources made of them.
        """
        self._settings, self._roots = settings, roots
        if self._taps is not None and self._taps.active:
            self._use_settings(self._taps)
            self._settle()

    def start(self, request: TapRequest, deliver: Callable[[Tap], object]) -> Tap:
        """
        Start a tap.

        @param deliver: called in the reactor's thread when it has rows to take.
        @raise CantTap: the request is wrong, or no more taps can be started.
        """
        # They take memory that a receiver without taps does not need.
        from webhookrx.tapping.tap import Tap
        from webhookrx.tapping.taps import MOST_TAPS, Taps

        if self._taps is None:
            self._taps = Taps(self._clock)
            self._taps.problem = _look_failed
        if len(self._taps.active) >= MOST_TAPS:
            raise CantTap(f"{MOST_TAPS} taps run already.", "too_many_taps")
        tap = Tap(request, self._clock(), lambda: self._reactor.callFromThread(deliver, tap))
        self._use_settings(self._taps)
        self._taps.add(tap)
        self._settle()
        return tap

    def stop(self, tap: Tap) -> None:
        """End a tap."""
        if self._taps is not None:
            self._taps.remove(tap)
            self._settle()

    def _use_settings(self, taps: Taps) -> None:
        if self._settings is not None:
            taps.masks = masks_of(self._settings)
            taps.use(self._views(self._settings))

    def _settle(self) -> None:
        """Have the sources that a tap is about looked at, and no others."""
        taps = self._taps
        assert taps is not None
        for root in self._roots.values():
            for name, resource in root.sources.items():
                resource.tap(partial(taps.looked_at, name) if taps.is_tapped(name) else None)
        self._traffic.watch_refusals = taps.refused if taps.sees_refusals else None

    def _views(self, settings: Settings) -> dict[str, SourceView]:
        rules = {name: each.rules for root in self._roots.values() for name, each in root.sources.items()}
        return {each.name: _view_of(each, settings, rules[each.name]) for each in settings.sources}


def tapped_sources(settings: Settings, request: TapRequest) -> list[str]:
    """
    Return the names of the sources that a tap would be about.

    @raise CantTap: the request is wrong, or there is none.
    @raise GateIsClosed: the reload gate is closed.
    """
    from webhookrx.tapping.tap_request import MOST_JUDGING, is_about, parsed

    queries = parsed(request)
    check_gate(settings)
    if request.point == "service":
        return []
    names = []
    work = Work(MOST_JUDGING)
    for source in settings.sources:
        connector = source.connector
        port, labels = (None, {}) if connector is None else (connector.port, connector.labels)
        try:
            if is_about(request, queries, source.name, port, labels, work):
                names.append(source.name)
        except TooMuchWork as error:
            raise CantTap(str(error), "too_costly") from None
    if not names:
        known = ", ".join(source.name for source in settings.sources[:20]) or "none"
        raise CantTap(f"No source is meant. The sources are: {known}.", "no_connector")
    return names


def check_gate(settings: Settings) -> None:
    """
    Check that taps may run.

    @raise GateIsClosed: the reload gate is closed.
    """
    if settings.blocked:
        reasons = " ".join(each.text for each in settings.blocked)
        raise GateIsClosed(
            f"The router is blocked until its files are in place, and nothing is tapped meanwhile. {reasons}",
            settings.gate_paths,
        )


def masks_of(settings: Settings) -> Masks:
    """Return what masks what taps show: a console only adds names to those that are masked anyway."""
    from webhookrx.tapping.masking import Masks

    bundle = None if settings.router is None else settings.router.bundle
    return Masks(() if bundle is None else bundle.masks)


def _view_of(source: Source, settings: Settings, rules: SourceRules) -> SourceView:
    if source.connector is None:
        from webhookrx.tapping.view import RequestSource

        mask, in_body = token_mask(source), body_mask(source)
        return RequestSource(
            source.name,
            None if mask is None else mask.masked,
            None if in_body is None else in_body.masked,
            tuple(masked_headers(source, settings)),
        )
    from webhookrx.router.connector_intake import ConnectorRules
    from webhookrx.router.expressions import no_files
    from webhookrx.router.steps.traced import TracedProcessing
    from webhookrx.tapping.view import ConnectorSource

    assert isinstance(rules, ConnectorRules), "connectors have rules of their own"
    preprocessing = source.connector.preprocessing
    return ConnectorSource(
        rules,
        preprocessing,
        partial(_traced, TracedProcessing, preprocessing, settings, no_files),
    )


def _traced(make: Callable[..., Any], preprocessing: Any, settings: Settings, no_files: Any) -> Any:
    classifier = classifier_for(settings) if preprocessing.classifies else None
    return make(preprocessing, classifier, json_files(settings) or no_files)


def _look_failed() -> None:
    _log.failure("A tap could not look at a message; this is said once")
