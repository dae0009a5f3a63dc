"""
The subject C{try}: what a connector makes of a recorded request, and the differences after each step.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TextIO

import msgspec

from webhookrx.commands.rules_reading import (
    NamedRouter,
    add_router_arguments,
    named_router,
    read_rules_file,
    tell_errors,
)
from webhookrx.commands.sender_files import known_senders
from webhookrx.commands.terminal import (
    DONE,
    FAILED,
    describe,
    print_diagnostics,
    print_json,
    read_input,
    safe,
    shown_name,
)
from webhookrx.commands.traced_steps import print_steps, step_facts
from webhookrx.config.rule_files import read_json_files
from webhookrx.diagnostics import has_errors, quoted, suggestion
from webhookrx.errors import NO_MATCHING_PATH, WebhookrxError
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Accepted, Dropped, Receipt, Refused, admit
from webhookrx.intake.path_patterns import PathPatterns
from webhookrx.router.connector_intake import ConnectorRules, judge_connector
from webhookrx.router.expressions import Files, tables_of
from webhookrx.router.rules.router import Connector, connector_of, connectors_of
from webhookrx.router.rules.rules_file import RulesReading
from webhookrx.router.steps.traced import TracedProcessing
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.http_file import HttpFileError, read_http_file
from webhookrx.settings import Limits

CANT_BE_JUDGED: Final = 2
"""The exit status when no connector, or no single one, is there to judge the request."""

_RECEIVED: Final = '{"status":"received"}'
"""What L{webhookrx.http.answers} says."""


class _RecordedRequest(NamedTuple):
    """A recorded request, and when it is taken to have come."""

    head: Head
    body: bytes
    received: int


class _Route(NamedTuple):
    """
    A connector that takes the path of a request.

    @ivar pattern: which of its paths does.
    @ivar groups: raw.
    """

    connector: Connector
    pattern: str
    groups: dict[str, bytes]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subject to its parser; it has no verbs."""
    describe(
        parser,
        _run,
        "Show what a connector makes of a recorded request: the message after each step, and what the step has\n"
        "changed. Nothing is opened or written. The exit status is 0 when the message would be stored, 1 when it\n"
        "would not be or a file can't be read, 2 when several connectors accept the path or an argument is wrong.",
        "webhookrx try request.http --rules connector-rules.yaml --router edge-1",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help="request line, headers, a blank line and the body; or a JSON body alone; - reads standard input",
    )
    parser.add_argument("--rules", metavar="FILE", required=True, help="the rules file")
    add_router_arguments(parser, "the name of the router; of the hosts of the file, or any other", required=True)
    parser.add_argument("--rule", metavar="NAME", help="the rule to try, if several connectors accept the path")
    parser.add_argument("--port", type=int, metavar="N", help="the port of the connector, if several accept the path")
    parser.add_argument("--path", metavar="PATH", help="the path, instead of that of the request")
    parser.add_argument("--at", type=_moment, metavar="TIME", help="the time of receipt, in ISO 8601; default now")
    parser.add_argument(
        "--senders", metavar="DIR", help="a directory of sender definitions, in addition to the built-in ones"
    )
    parser.add_argument(
        "--allow-slow-patterns",
        action="store_true",
        help="accept paths that RE2 can't run, as a router with this option does",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _run(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    request = _request(asked)
    reading = read_rules_file(asked.rules, allow_slow_patterns=asked.allow_slow_patterns)
    tell_errors(reading, err)
    router = named_router(asked, reading.hosts)
    connectors, clashes = connectors_of(router.router, reading)
    print_diagnostics(err, clashes)
    if not reading.valid or has_errors(clashes):
        print("A router would not take these rules.", file=err)
        return CANT_BE_JUDGED
    chosen = _chosen(asked, reading, router, connectors)
    routes = [route for connector in chosen if (route := _route(connector, request.head)) is not None]
    if len(routes) > 1:
        names = ", ".join(f"{quoted(route.connector.rule)} (port {route.connector.port})" for route in routes)
        print(safe(f"Several connectors take this path: {names}. Choose one with --rule or --port."), file=err)
        return CANT_BE_JUDGED
    if not routes:
        return _tell_refused(Refused(NO_MATCHING_PATH, NO_MATCHING_PATH.detail), None, request, asked.json, out)
    contents, unusable = read_json_files(reading, [routes[0].connector])
    if unusable:
        print_diagnostics(err, unusable)
        print("A router would not take these rules.", file=err)
        return CANT_BE_JUDGED
    return _try(routes[0], request, router, tables_of(contents), asked, out, err)


def _request(asked: argparse.Namespace) -> _RecordedRequest:
    try:
        head, _, body = read_http_file(read_input(asked.file))
    except HttpFileError as error:
        raise WebhookrxError(f"{shown_name(asked.file)}: {error}") from None
    if asked.path is not None:
        path, _, query = asked.path.partition("?")
        head = msgspec.structs.replace(head, path=path.encode("utf-8", "surrogateescape"), query=query.encode())
    return _RecordedRequest(head, body, time.time_ns() if asked.at is None else asked.at)


def _moment(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2026-11-22T12:00:00Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * 10**9 + moment.microsecond * 1000


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


def _route(connector: Connector, head: Head) -> _Route | None:
    match = PathPatterns(connector.paths).match(head.path)
    return None if match is None else _Route(connector, connector.paths[match[0]], match[1])


def _try(
    route: _Route,
    request: _RecordedRequest,
    router: NamedRouter,
    files: Files,
    asked: argparse.Namespace,
    out: TextIO,
    err: TextIO,
) -> int:
    connector, limits = route.connector, Limits()
    classifier = None
    if connector.preprocessing.classifies:
        senders = known_senders(asked.senders)
        print_diagnostics(err, senders.diagnostics)
        classifier = Classifier(senders.definitions)
    processing = TracedProcessing(connector.preprocessing, classifier, files)
    rules = ConnectorRules(
        connector.name,
        port=connector.port,
        labels=connector.labels,
        router=router.router.name,
        router_labels=router.router.labels,
        processing=processing,
        include_request_headers=connector.include_request_headers,
        body_limit=limits.body,
        unpack_ratio=limits.unpack_ratio,
    )
    peer = msgspec.structs.replace(request.head.peer, secure=connector.protocol == "HTTPS")
    head = msgspec.structs.replace(request.head, peer=peer)
    admission = admit(head, rules, route.groups)
    if isinstance(admission, Refused):
        return _tell_refused(admission, route, request, asked.json, out)
    verdict = judge_connector(head, admission, request.body, Receipt(request.received, "try"))
    record = processing.before if isinstance(verdict, Dropped) else verdict.message.values
    before: Any = record if processing.before is None else processing.before
    if asked.json:
        print_json(out, _facts(route, request, verdict, before, processing))
    else:
        _describe(route, request, verdict, before, processing, out)
    return DONE if isinstance(verdict, Accepted) else FAILED


def _tell_refused(refused: Refused, route: _Route | None, request: _RecordedRequest, as_json: bool, out: TextIO) -> int:
    reason = refused.reason
    if as_json:
        answer = {"status": reason.status, "reason": reason.word, "detail": refused.detail}
        print_json(out, {**_request_facts(route, request), "stored": False, "answer": answer})
    else:
        _print_request(route, request, out)
        print(f"answer     {reason.status} {reason.word}: {safe(refused.detail)}", file=out)
    return FAILED


# -- for programs ----------------------------------------------------------------------------------------------------


def _request_facts(route: _Route | None, request: _RecordedRequest) -> dict[str, Any]:
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


def _facts(
    route: _Route,
    request: _RecordedRequest,
    verdict: Accepted | Dropped,
    before: dict[str, Any],
    processing: TracedProcessing,
) -> dict[str, Any]:
    return {
        **_request_facts(route, request),
        "stored": isinstance(verdict, Accepted),
        "answer": {"status": 200},
        **step_facts(processing, before),
    }


# -- for people ------------------------------------------------------------------------------------------------------


def _print_request(route: _Route | None, request: _RecordedRequest, out: TextIO) -> None:
    head = request.head
    target = head.path.decode("latin-1") + (f"?{head.query.decode('latin-1')}" if head.query else "")
    print(safe(f"request    {head.method.decode()} {target}, {len(request.body):,} bytes"), file=out)
    if route is not None:
        connector = route.connector
        print(safe(f"connector  {connector.name}, port {connector.port}, path {route.pattern}"), file=out)


def _describe(
    route: _Route,
    request: _RecordedRequest,
    verdict: Accepted | Dropped,
    before: dict[str, Any],
    processing: TracedProcessing,
    out: TextIO,
) -> None:
    _print_request(route, request, out)
    print(f"answer     200 {_RECEIVED}{'' if isinstance(verdict, Accepted) else ', and nothing is stored'}", file=out)
    print_steps(processing, before, out)
