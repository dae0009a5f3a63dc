"""
The agent of a console beside the service: what it is told of the receiver, and when.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace
from twisted.logger import Logger

from webhookrx.agent.agent import ConsoleAgent
from webhookrx.agent.reports import ToldState
from webhookrx.config.console_files import refuse_next
from webhookrx.config.machine import HostFacts, this_host
from webhookrx.config.reachable import reachable_at
from webhookrx.errors import ConfigError
from webhookrx.management.agent_protocol import (
    LONGEST_SPEC,
    MOST_CONNECTORS,
    MOST_FILES,
    MOST_SENDERS,
    MOST_SPOOLS,
    ConnectorState,
    GateState,
    HeardSender,
    RouterFacts,
    SeriesCounts,
    SpoolState,
)
from webhookrx.operations.counters import Counters
from webhookrx.operations.health import WorkerState, health_of
from webhookrx.operations.snapshot import ConsoleStanding, ReceiverSnapshot
from webhookrx.router.steps.context import DROPPED
from webhookrx.service.description import cannot_listen
from webhookrx.service.service_taps import ServiceTaps
from webhookrx.settings import Settings, Source
from webhookrx.transport.listener_service import CannotListen

_log = Logger()

_MOST_ENDPOINTS: Final = 256
_LONGEST_ENDPOINT: Final = 1_024
_MOST_REASONS: Final = 64
_LONGEST: Final = 2_000
_LONGEST_PATH: Final = 4_096

HOST_EVERY: Final = 60.0
"""Seconds between two looks at names and addresses of this machine: each takes a dozen system calls or more."""


class FactsOfHost:
    """
    The facts of this machine, which are some time old at most.

    @param seconds: the monotonic clock.
    """

    def __init__(self, seconds: Callable[[], float], look: Callable[[], HostFacts] = this_host) -> None:
        self._seconds = seconds
        self._look = look
        self._known: tuple[float, HostFacts] | None = None

    def __call__(self) -> HostFacts:
        """Return them."""
        now = self._seconds()
        if self._known is None or now - self._known[0] >= HOST_EVERY:
            self._known = now, self._look()
        return self._known[1]


class AgentOfService:
    """
    The agent, and what it sees of the service.

    @param settings: returns the settings in use, which have a console.
    @param reload: reads everything again.
    @param counters: returns everything counted so far.
    @param snapshot: returns the receiver as it is now.
    """

    def __init__(
        self,
        reactor: Any,
        settings: Callable[[], Settings],
        reload: Callable[[], None],
        counters: Callable[[], Counters],
        snapshot: Callable[[], ReceiverSnapshot],
        workers: Callable[[], tuple[WorkerState, ...]],
        taps: ServiceTaps,
    ) -> None:
        self._settings = settings
        self._counters = counters
        self._snapshot = snapshot
        self._workers = workers
        self._host = FactsOfHost(reactor.seconds)
        self.reload = reload
        self.tapped_sources = taps.sources
        self.start_tap = taps.start
        self.stop_tap = taps.stop
        console = settings().console
        assert console is not None
        self._agent = ConsoleAgent(reactor, console, self)
        self.start = self._agent.start
        self.stop = self._agent.stop
        self.settled = self._agent.settled

    @property
    def settings(self) -> Settings:
        """The settings in use."""
        return self._settings()

    @property
    def standing(self) -> ConsoleStanding:
        """How the receiver stands with its console."""
        view, router = self._agent.view, self.settings.router
        return ConsoleStanding(
            view.status,
            view.revision,
            view.error,
            view.away,
            view.refusal,
            view.problem,
            router is not None and not view.revision,
        )

    def state(self) -> ToldState:
        """Return what is told of the receiver."""
        settings, snapshot, counters = self.settings, self._snapshot(), self._counters()
        if snapshot.console is not None:
            # How long the console has been away changes all the time, and the console knows it.
            snapshot = replace(snapshot, console=snapshot.console._replace(away=0.0))
        health = health_of(snapshot, self._workers())
        return ToldState(
            connectors=tuple(_connectors(settings, snapshot))[:MOST_CONNECTORS],
            gate=_gate(settings),
            facts=self._facts(),
            health=health.state,
            health_reasons=tuple(_portable(each)[:_LONGEST] for each in health.reasons[:_MOST_REASONS]),
            series=tuple(_series(settings, counters)),
            spools=_spools(snapshot),
            senders=tuple(islice(_senders(settings, counters), MOST_SENDERS)),
        )

    def _facts(self) -> RouterFacts:
        settings = self.settings
        assert settings.console is not None
        own = (source for source in settings.sources if source.connector is None)
        endpoints = dict.fromkeys(listener.socket for source in own for listener in source.listeners)
        host = self._host()
        return RouterFacts(
            **{**host._asdict(), "ip": host.ip[:64]},
            form="source" if settings.router is None else "router",
            endpoints=tuple(_portable(each)[:_LONGEST_ENDPOINT] for each in endpoints)[:_MOST_ENDPOINTS],
            labels=dict(settings.console.labels),
            admin="" if settings.admin is None else reachable_at(settings.admin.socket, host),
        )


def refuse_bundle(settings: Settings, error: CannotListen) -> None:
    """
    Note that a start can't open a port of a connector: with a bundle that was never applied, each restart would fail in
    the same way. The next start takes the one before.
    """
    router, console = settings.router, settings.console
    ports = {source.listeners[0].text for source in settings.sources if source.connector is not None}
    if console is None or router is None or router.bundle is None or error.text not in ports:
        return
    try:
        refuse_next(console.directory, router.bundle.digest, str(cannot_listen(error, settings)))
    except (OSError, ConfigError) as problem:
        _log.error("That the newest rules can't be applied could not be noted: {problem}", problem=str(problem))


def _gate(settings: Settings) -> GateState:
    return GateState(
        reasons=tuple(each.text[:_LONGEST] for each in settings.blocked[:MOST_FILES]),
        paths=tuple(each for each in settings.gate_paths if len(each) <= _LONGEST_PATH)[:MOST_FILES],
    )


def _series(settings: Settings, counters: Counters) -> Iterator[SeriesCounts]:
    refused: dict[str, dict[str, int]] = {}
    for (word, name), count in counters.labelled("refused"):
        if count:
            refused.setdefault(name, {})[word] = count
    dropped: Counter[str] = Counter()
    for (name, _), count in counters.labelled(DROPPED):
        dropped[name] += count
    for source in settings.sources[:MOST_CONNECTORS]:
        counts = counters.sources[source.name]
        yield SeriesCounts(
            name=source.name,
            messages=counts.messages,
            bytes=counts.bytes,
            last=counts.last,
            answers=tuple(counts.answers.counts),
            answer_seconds=counts.answers.sum,
            refused=refused.get(source.name, {}),
            dropped=dropped[source.name],
            text_bodies=counters.get("text_body", source.name),
        )
    # Before a source was known.
    if "" in refused and len(settings.sources) < MOST_CONNECTORS:
        yield SeriesCounts(name="", refused=refused[""])


def _spools(snapshot: ReceiverSnapshot) -> tuple[SpoolState, ...]:
    spools: dict[str, SpoolState] = {}
    for lane in snapshot.lanes:
        if lane.backlog is not None:
            name, oldest = _portable(lane.spec)[:LONGEST_SPEC], max(0, lane.backlog.oldest or 0)
            state = SpoolState(name=name, messages=lane.backlog.messages, bytes=lane.backlog.bytes, oldest=oldest)
            spools.setdefault(name, state)
    return tuple(spools.values())[:MOST_SPOOLS]


def _senders(settings: Settings, counters: Counters) -> Iterator[HeardSender]:
    for source in settings.sources[:MOST_CONNECTORS]:
        for sender, last in counters.sources[source.name].last_by_sender.items():
            if sender:
                yield HeardSender(name=source.name, sender=sender, last=max(0.0, last))


def _connectors(settings: Settings, snapshot: ReceiverSnapshot) -> Iterator[ConnectorState]:
    for source in settings.sources:
        if source.connector is not None:
            yield _open(source, snapshot)
    for each in settings.closed:
        reason = each.reason[:_LONGEST]
        yield ConnectorState(name=each.name, rule=each.rule, port=each.port, state="closed", reason=reason)


def _open(source: Source, snapshot: ReceiverSnapshot) -> ConnectorState:
    assert source.connector is not None
    listener = source.listeners[0]
    end = 0.0 if listener.tls is None else snapshot.certificates.get(listener.tls.cert_file, 0.0)
    is_open = snapshot.endpoints.get(listener.text, False)
    return ConnectorState(
        name=source.name,
        rule=source.connector.rule,
        port=source.connector.port,
        state="open" if is_open else "closed",
        reason="" if is_open else "Its port is not open.",
        certificate_end=max(0, int(end * 1e9)),
    )


def _portable(text: str) -> str:
    """Return a text as JSON can have it: the name of a file in it need not be UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()
