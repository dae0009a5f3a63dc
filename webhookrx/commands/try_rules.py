"""
C{webhookrx try --rules}: what a connector of a rules file makes of a recorded request, and the differences after each
step.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TextIO

from msgspec.structs import replace

from webhookrx.commands.recorded_request import RecordedRequest
from webhookrx.commands.rules_reading import NamedRouter, named_router, read_rules_file, tell_errors
from webhookrx.commands.sender_files import known_senders
from webhookrx.commands.terminal import DONE, FAILED, print_diagnostics, print_json, safe
from webhookrx.commands.traced_steps import print_steps
from webhookrx.commands.try_config import CANT_BE_JUDGED, try_taken
from webhookrx.config.guards.context import GuardContext, KnownKeys
from webhookrx.config.guards.of_connector import read_connector_guard
from webhookrx.config.router_form import source_of
from webhookrx.config.rule_files import read_json_files
from webhookrx.diagnostics import has_errors, quoted, suggestion
from webhookrx.errors import NO_MATCHING_PATH, WebhookrxError
from webhookrx.intake.judge import Refused
from webhookrx.intake.path_patterns import PathPatterns
from webhookrx.router.rules.router import Connector, connector_of, connectors_of
from webhookrx.router.rules.rules_file import RulesReading
from webhookrx.settings import RouterSettings, Settings
from webhookrx.trials.step_facts import step_facts
from webhookrx.trials.trial import STORED, TrialRequest, run_trial
from webhookrx.trials.trial_source import TakenPath, traced_source

_RECEIVED: Final = '{"status":"received"}'
"""What L{webhookrx.http.answers} says."""


class _Route(NamedTuple):
    """
    A connector that takes the path of a request.

    @ivar pattern: which of its paths does.
    @ivar groups: raw.
    """

    connector: Connector
    pattern: str
    groups: dict[str, bytes]


def try_rules(asked: argparse.Namespace, request: RecordedRequest, out: TextIO, err: TextIO) -> int:
    """
    Try a request with the connectors of a rules file.

    @raise WebhookrxError: no connector is there to judge it.
    """
    reading = read_rules_file(asked.rules, allow_slow_patterns=asked.allow_slow_patterns)
    tell_errors(reading, err)
    router = named_router(asked, reading.hosts)
    connectors, clashes = connectors_of(router.router, reading)
    print_diagnostics(err, clashes)
    if not reading.valid or has_errors(clashes):
        print("A router would not take these rules.", file=err)
        return CANT_BE_JUDGED
    chosen = _chosen(asked, reading, router, connectors)
    routes = [route for connector in chosen if (route := _route(connector, request)) is not None]
    if len(routes) > 1:
        names = ", ".join(f"{quoted(route.connector.rule)} (port {route.connector.port})" for route in routes)
        print(safe(f"Several connectors take this path: {names}. Choose one with --rule or --port."), file=err)
        return CANT_BE_JUDGED
    if not routes:
        return _tell_refused(Refused(NO_MATCHING_PATH, NO_MATCHING_PATH.detail), None, request, asked.json, out)
    (route,) = routes
    contents, unusable = read_json_files(reading, [route.connector])
    if unusable:
        print_diagnostics(err, unusable)
        print("A router would not take these rules.", file=err)
        return CANT_BE_JUDGED
    senders = known_senders(asked.senders) if route.connector.preprocessing.classifies or asked.senders else None
    print_diagnostics(err, () if senders is None else senders.diagnostics)
    # A proxy in front of the router may speak TLS; whether the router allows that is not known here.
    context = GuardContext(() if senders is None else senders.definitions, None, KnownKeys(), plaintext=True)
    guard = read_connector_guard(route.connector, context)
    print_diagnostics(err, guard.found)
    if guard.problem:
        print("A router would not take these rules.", file=err)
        return CANT_BE_JUDGED
    source = source_of(route.connector, guard.guard)
    taken = TakenPath(source, source.listeners[0], route.pattern, route.groups)
    of_router = RouterSettings(
        router.router.name,
        router.router.labels,
        senders=() if senders is None else tuple(senders.definitions),
        json_files=contents,
    )
    return _try(route, taken, request, Settings((source,), (), router=of_router), asked, out, err)


def _chosen(
    asked: argparse.Namespace, reading: RulesReading, router: NamedRouter, connectors: Sequence[Connector]
) -> list[Connector]:
    """
    Return the connectors that are asked for. One whose rule may match is taken when it is named.

    @raise WebhookrxError: no request can be read.
    """
    if asked.rule is not None:
        rule = next((rule for rule in reading.rules if rule.name == asked.rule), None)
        if rule is None:
            known = suggestion(asked.rule, [rule.name for rule in reading.rules])
            raise WebhookrxError(f"There is no rule {quoted(asked.rule)}. {known}")
        match = router.explain(rule)
        if match.matched is None:
            connectors = [connector_of(router.router.name, rule)]
        elif not match.matched:
            raise WebhookrxError(f"The rule {quoted(rule.name)} does not match this router; see rules explain.")
    chosen = [each for each in connectors if asked.rule in (None, each.rule) and asked.port in (None, each.port)]
    if not chosen:
        which = "" if asked.port is None else f" at port {asked.port}"
        raise WebhookrxError(f"The router {quoted(router.router.name)} has no connector{which}; see rules explain.")
    return chosen


def _route(connector: Connector, request: RecordedRequest) -> _Route | None:
    match = PathPatterns(connector.paths).match(request.head.path)
    return None if match is None else _Route(connector, connector.paths[match[0]], match[1])


def _try(
    route: _Route,
    taken: TakenPath,
    request: RecordedRequest,
    settings: Settings,
    asked: argparse.Namespace,
    out: TextIO,
    err: TextIO,
) -> int:
    if taken.source.guard is not None or asked.sign is not None or asked.curl:
        return try_taken(taken, settings, request, asked, out, err)
    traced = traced_source(taken, settings)
    head = replace(request.head, peer=replace(request.head.peer, secure=route.connector.protocol == "HTTPS"))
    trial = run_trial(traced.trial, TrialRequest(head, request.body, request.at))
    if trial.refused is not None:
        return _tell_refused(trial.refused, route, request, asked.json, out)
    processing = traced.processing
    assert processing is not None, "it is a connector"
    is_stored = trial.fate == STORED
    before: Any = trial.messages[0].values if processing.before is None else processing.before
    if asked.json:
        print_json(
            out,
            {
                **_request_facts(route, request),
                "stored": is_stored,
                "answer": {"status": 200},
                **step_facts(processing, before),
            },
        )
    else:
        _print_request(route, request, out)
        print(f"answer     200 {_RECEIVED}{'' if is_stored else ', and nothing is stored'}", file=out)
        print_steps(processing, before, out)
    return DONE if is_stored else FAILED


def _tell_refused(refused: Refused, route: _Route | None, request: RecordedRequest, as_json: bool, out: TextIO) -> int:
    reason = refused.reason
    if as_json:
        answer = {"status": reason.status, "reason": reason.word, "detail": refused.detail}
        print_json(out, {**_request_facts(route, request), "stored": False, "answer": answer})
    else:
        _print_request(route, request, out)
        print(f"answer     {reason.status} {reason.word}: {safe(refused.detail)}", file=out)
    return FAILED


def _request_facts(route: _Route | None, request: RecordedRequest) -> dict[str, Any]:
    head = request.head
    facts: dict[str, Any] = {
        "request": {"method": head.method.decode(), "path": head.path.decode("latin-1"), "bytes": len(request.body)}
    }
    if route is not None:
        connector = route.connector
        facts["connector"] = {
            "name": connector.name,
            "rule": connector.rule,
            "port": connector.port,
            "path": route.pattern,
        }
    return facts


def _print_request(route: _Route | None, request: RecordedRequest, out: TextIO) -> None:
    head = request.head
    target = head.path.decode("latin-1") + (f"?{head.query.decode('latin-1')}" if head.query else "")
    print(safe(f"request    {head.method.decode()} {target}, {len(request.body):,} bytes"), file=out)
    if route is not None:
        connector = route.connector
        print(safe(f"connector  {connector.name}, port {connector.port}, path {route.pattern}"), file=out)
