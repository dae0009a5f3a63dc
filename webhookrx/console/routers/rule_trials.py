"""
Trials of rules on a console: what a rule that need not be saved makes of a recorded request, step by step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.threads import deferToThread

from webhookrx.console.api.problems import BUSY, INVALID, ApiFinding, ApiProblem, findings_of
from webhookrx.management.field_changes import MISSING
from webhookrx.query import Fleet, QueryTooCostly, parse
from webhookrx.router.rules.router import router_of
from webhookrx.router.rules.rule import Host, Rule
from webhookrx.router.rules.rules_file import read_rule
from webhookrx.router.steps.traced import TracedStep
from webhookrx.trials.differences import differences
from webhookrx.trials.rule_trial import RuleTrial, try_rule
from webhookrx.trials.traced_events import TracedEvent
from webhookrx.trials.trial import DecisionVerdict, TrialRequest

if TYPE_CHECKING:
    from webhookrx.console.console import Console

MOST_WAITING: Final = 8
"""Trials that wait for the one under way."""

EXAMPLE: Final = "router"
"""The name of the router where the fleet has none that the rule matches."""

_MOST_CHANGES: Final = 100
_LARGEST_VALUE: Final = 2048
_MOST_RECORDS: Final = 512 * 1024
"""Changes of one step, bytes of a value in one, and bytes of all records of an answer."""

_MOST_COMPARED: Final = 8 * 1024 * 1024
"""Bytes of a body times the steps that it is recorded after; that many take a second or two."""

_encode: Final = msgspec.json.Encoder().encode


class TriedChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    A field that a step has changed.

    @ivar before: left out when the field was not there, or its value is long.
    @ivar after: likewise.
    @ivar text: both for people, cut short.
    """

    field: str
    text: str
    before: Any = msgspec.UNSET
    after: Any = msgspec.UNSET


class TriedStep(msgspec.Struct, frozen=True):
    """
    A step that a message has reached.

    @ivar outcome: C{done}, C{skipped}, C{failed} or C{dropped}.
    @ivar problem: why it failed.
    @ivar more_changes: how many there are besides C{changes}.
    @ivar record: the message after it; null when it is as before, or there is no room for it.
    """

    name: str
    outcome: str
    problem: str
    seconds: float
    changes: tuple[TriedChange, ...]
    more_changes: int
    record: Any


class TriedEvent(msgspec.Struct, frozen=True):
    """
    One message.

    @ivar before: it before the first step.
    @ivar not_begun: names of the steps that it has not reached.
    @ivar after: it after all steps; null when one has dropped it, or there is no room for it.
    """

    before: Any
    steps: tuple[TriedStep, ...]
    not_begun: tuple[str, ...]
    is_dropped: bool
    after: Any


class TriedDecision(msgspec.Struct, frozen=True):
    """A decision before the steps."""

    decision: str
    verdict: str
    why: str


class TriedRule(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a rule makes of a request.

    @ivar router: on which router; C{matches} tells whether the rule matches it.
    @ivar path: the path that the request was taken to have come to; empty for its own.
    @ivar outcome: C{stored}, C{dropped}, C{refused}, C{handshake} or C{not judged}.
    @ivar reason: why it was refused.
    @ivar not_judged: what was left out, since only routers have it.
    @ivar findings: warnings about the rule.
    """

    router: str
    matches: bool
    connector: str
    method: str
    target_path: str
    size: int
    pattern: str
    path: str
    outcome: str
    status: int
    reason: str
    detail: str
    decisions: tuple[TriedDecision, ...]
    events: tuple[TriedEvent, ...]
    more_events: int
    not_judged: tuple[str, ...]
    findings: tuple[ApiFinding, ...]
    seconds: float


class RuleTrials:
    """
    Makes trials, one after the other, apart from the reactor. The work that a request can make is bounded.
    """

    def __init__(self, console: Console, in_thread: Callable[..., Deferred[Any]] = deferToThread) -> None:
        self._console = console
        self._in_thread = in_thread
        self._one = DeferredLock()

    async def try_rule(self, text: str, request: TrialRequest, *, router: str, any_path: bool) -> TriedRule:
        """
        Try a request with a rule.

        @param text: the rule in YAML.
        @param router: the name of a router; empty for the first that the rule matches.
        @param any_path: see L{try_rule}.
        @raise ApiProblem: the rule is wrong, there is no such router, or too many wait.
        """
        if len(self._one.waiting) >= MOST_WAITING:
            raise ApiProblem(BUSY, "Too many trials wait; try again.", headers=(("Retry-After", "1"),))
        await self._one.acquire()
        try:
            fleet = self._console.fleet
            hosts = () if fleet is None else fleet.hosts
            tried: TriedRule = await self._in_thread(lambda: _try(text, request, router, hosts, any_path))
            return tried
        finally:
            self._one.release()


def _try(text: str, request: TrialRequest, router: str, hosts: Sequence[Host], any_path: bool) -> TriedRule:
    reading = read_rule(text.encode(), "")
    rule = reading.value
    if rule is None:
        raise ApiProblem(INVALID, "The rule is wrong.", findings_of(reading.diagnostics))
    if len(request.body) * (len(rule.preprocessing.steps) + 2) > _MOST_COMPARED:
        raise ApiProblem(INVALID, "The body is too large to be shown after each of so many steps; try a smaller one.")
    host, matches = _router(rule, router, hosts)
    begun = time.perf_counter()
    trial = try_rule(rule, replace(request, at=request.at or time.time_ns()), host.name, host.labels, any_path=any_path)
    seconds = time.perf_counter() - begun
    room = [_MOST_RECORDS]
    return TriedRule(
        router=host.name,
        matches=matches,
        connector=trial.connector,
        method=request.head.method.decode("latin-1"),
        target_path=request.head.path.decode("latin-1"),
        size=len(request.body),
        pattern=trial.pattern,
        path=trial.path,
        outcome=trial.fate,
        status=trial.status,
        reason=trial.reason,
        detail=trial.detail,
        decisions=tuple(_decision(each) for each in trial.verdicts),
        events=tuple(_event(each, trial, room) for each in trial.events),
        more_events=trial.more_events,
        not_judged=trial.not_judged,
        findings=findings_of(reading.diagnostics),
        seconds=seconds,
    )


def _router(rule: Rule, name: str, hosts: Sequence[Host]) -> tuple[Host, bool]:
    """Return the router that a trial is about, and whether the rule matches it."""
    if name:
        hosts = [host for host in hosts if host.name == name]
        if not hosts:
            raise ApiProblem(INVALID, "There is no router of this name that takes rules.")
    try:
        found = Fleet([router_of(host).record for host in hosts]).matching(parse(rule.selector))
    except QueryTooCostly:
        found = []
    if found:
        return hosts[found[0]], True
    return (hosts[0] if name else Host(EXAMPLE)), False


def _decision(verdict: DecisionVerdict) -> TriedDecision:
    return TriedDecision(verdict.decision.replace("_", " "), verdict.verdict, verdict.why)


def _event(event: TracedEvent, trial: RuleTrial, room: list[int]) -> TriedEvent:
    last = event.before
    steps = []
    for step in event.trace:
        steps.append(_step(last, step, room))
        last = step.record
    is_dropped = any(step.dropped for step in event.trace)
    not_begun = trial.names[len(event.trace) :]
    return TriedEvent(
        _kept(event.before, room), tuple(steps), not_begun, is_dropped, None if is_dropped else _kept(last, room)
    )


def _step(before: Mapping[str, Any], step: TracedStep, room: list[int]) -> TriedStep:
    changes = list(differences(before, step.record))
    shown = tuple(
        TriedChange(each.field, str(each), _short(each.before), _short(each.after)) for each in changes[:_MOST_CHANGES]
    )
    outcome = "dropped" if step.dropped else "failed" if step.problem else "skipped" if step.skipped else "done"
    record = _kept(step.record, room) if changes and not step.dropped else None
    return TriedStep(step.name, outcome, step.problem, step.seconds, shown, len(changes) - len(shown), record)


def _short(value: Any) -> Any:
    """Return a value, unless it is not there or long."""
    return MISSING if value is MISSING or len(_encode(value)) > _LARGEST_VALUE else value


def _kept(record: Any, room: list[int]) -> Any:
    """Return a record as long as there is room."""
    encoded = _encode(record)
    if len(encoded) > room[0]:
        return None
    room[0] -= len(encoded)
    return msgspec.Raw(encoded)
