"""
What is done to a message of the router form, part by part, in this process: C{python -m benchmarks.steps}.

It prints the medians as JSON, in microseconds of processor time a message: C{classify}, of all senders with samples the
one in the middle, and C{slowest sender}; C{unknown}, a body that no entry knows; C{parse}, as C{classify};
C{expression} and C{select}. C{fleet} is in milliseconds. Each is what a connector does for it, with all that only this
part needs.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from statistics import median
from typing import Any, NamedTuple

from benchmarks.traffic import plain_body
from webhookrx.http.head import parse_head
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.json_body import PayloadError, body_text, parse_strict_json
from webhookrx.message.fields import MISSING
from webhookrx.query import Fleet
from webhookrx.query import parse as parse_query
from webhookrx.router.rules.router import Router
from webhookrx.router.steps.context import StepContext
from webhookrx.router.steps.processing import Processing
from webhookrx.router.steps.sender_steps import classify, parse
from webhookrx.router.steps.step import Preprocessing, Step
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.http_file import read_http_file
from webhookrx.settings import Limits
from webhookrx.work import Work

ROUNDS = 21
"""Of which the median counts."""

MESSAGES = 50
"""In each round, none of them used before."""

FLEET_ROUNDS = 7
ROUTERS = 1_000
RULES = 200

EXPRESSION = """\
# Drop noise.
if (log.body.level eq "debug" or log.body.path =~ "^/health") { drop; };

log.body.user = lower(log.body.user);
meta.team = log.body.labels.team ?? "none";
unset(log.body.password);

if (log.body.status >= 500) {
  log.severity_number = 17;
  log.severity_text = "ERROR";
} elif (log.body.status >= 400) {
  log.severity_number = 13;
};
"""
"""Five statements: the program of docs/reference/expressions.md."""

WEB_SERVER = (
    b'{"level":"info","path":"/cart/items","user":"Ada","labels":{"team":"shop","site":"fra"},"password":"secret",'
    b'"status":404,"size":5120,"agent":"Mozilla/5.0","seconds":0.031}'
)
"""A body that it has something to do for in each of them."""

SELECT = "log.body.service = checkout AND log.body.level != debug"


class Request(NamedTuple):
    """One as the decision has it: its JSON is read, as it is for every message."""

    head: Head
    query: Mapping[str, str | list[str]]
    body: bytes
    text: str
    decoded: Any

    def evidence(self) -> Evidence:
        """Return what nobody has looked at yet."""
        return Evidence(self.head, self.query, self.body, self.text, self.decoded)

    def record(self) -> dict[str, Any]:
        """Return a message, as far as steps look at it; its JSON is read anew, for steps change it."""
        body = _decoded(self.body)
        log = {"body": body if isinstance(body, dict) else self.text, "attributes": {}, "severity_text": ""}
        return {"log": log, "meta": {"host": {"name": self.head.peer.ip}, "id": "an id"}}


def received(head: Head, query: Mapping[str, str | list[str]], body: bytes) -> Request:
    """Return a request with its head as the wire brings it."""
    lines = [b"%b: %b" % line for line in head.headers if line[0] not in (b"host", b"content-length")]
    target = head.path + (b"?" + head.query if head.query else b"")
    first = b"%b %b HTTP/1.1\r\nHost: logs.example.com\r\nContent-Length: %d" % (head.method, target, len(body))
    read = parse_head(b"\r\n".join((first, *lines, b"", b"")), head.peer, Limits(target=1 << 16, header_block=1 << 16))
    assert read is not None, "a blank line ends it"
    return Request(read, query, body, body_text(body)[0], _decoded(body))


def _decoded(body: bytes) -> Any:
    try:
        return parse_strict_json(body)
    except PayloadError:
        return MISSING


def samples() -> dict[str, list[Request]]:
    """Return the recorded requests of each sender, by the id of its entry."""
    data = files("webhookrx.senders").joinpath("data")
    return {
        entry.id: [received(*read_http_file(data.joinpath(name).read_bytes())) for name in entry.samples]
        for entry in builtin_definitions()
        if entry.samples
    }


def application() -> Request:
    """Return what no entry knows: what an application posts, with the body of the other cases."""
    return posted(plain_body(0, random.Random(0)))


def posted(body: bytes) -> Request:
    """Return a body with the headers that a client of HTTP sets by itself."""
    headers = [(b"Content-Type", b"application/json"), (b"Accept", b"*/*"), (b"User-Agent", b"python-requests/2.32.5")]
    return received(Head(b"POST", b"/events", b"", headers, Peer("127.0.0.1", 40000, False)), {}, body)


def microseconds(made: Callable[[], Any], done: Callable[[Any], object]) -> float:
    """
    Return the processor time of something, the median of many.

    @param made: makes what it is done to, which is not measured.
    """
    times = []
    for _ in range(ROUNDS):
        things = [made() for _ in range(MESSAGES)]
        began = time.process_time_ns()
        for thing in things:
            done(thing)
        times.append((time.process_time_ns() - began) / MESSAGES)
    return median(times) / 1e3


def of_processing(preprocessing: Preprocessing, request: Request, classifier: Classifier | None = None) -> float:
    """Return what steps take, with all that is there for their sake."""
    processing = Processing(preprocessing, classifier, time.perf_counter)

    def run(record: dict[str, Any]) -> None:
        outcome = processing.run(record, request.evidence())
        assert outcome.kept and not outcome.problem

    return microseconds(request.record, run)


def of_senders(classifier: Classifier) -> tuple[list[float], list[float]]:
    """Return what Classify and what Parse take, a figure for each sender: the median of its samples."""
    classify_times, parse_times = [], []
    for sender, requests in samples().items():
        each = [_of_sample(sender, request, classifier) for request in requests]
        classify_times.append(median(times[0] for times in each))
        parse_times.append(median(times[1] for times in each))
    return classify_times, parse_times


def _of_sample(sender: str, request: Request, classifier: Classifier) -> tuple[float, float]:
    def classified() -> StepContext:
        context = StepContext(request.record(), request.evidence(), False, classifier, Work())
        assert classify(context) == ("classified", sender)
        return context

    classified()
    return of_processing(Preprocessing(classify=True), request, classifier), microseconds(classified, parse)


def fleet_milliseconds(routers: int = ROUTERS, rules: int = RULES) -> float:
    """Return what it takes to read the selectors of rules and to find the routers of each; the median of some."""
    records, selectors = fleet(routers, rules)
    times = []
    for _ in range(FLEET_ROUNDS):
        began = time.process_time_ns()
        asked = Fleet(records)
        found = [asked.matching(parse_query(selector)) for selector in selectors]
        times.append((time.process_time_ns() - began) / 1e6)
        assert any(found)
    return median(times)


def fleet(routers: int, rules: int) -> tuple[list[dict[str, Any]], Sequence[str]]:
    """Return routers as selectors see them, and selectors of all kinds, no two of them alike."""
    sites, environments = ("fra", "ber", "ams", "iad", "sin", "gru"), ("prod", "stage", "test")
    records = [
        Router(
            f"edge-{number:04}",
            {
                "site": sites[number % len(sites)],
                "env": environments[number % len(environments)],
                "team": f"team-{number % 40}",
                **({"wec": "enabled"} if number % 2 else {}),
            },
            hostname=f"edge-{number:04}",
            fqdn=f"edge-{number:04}.{sites[number % len(sites)]}.example.com",
            ip=(f"10.0.{number // 250}.{number % 250 + 1}",),
            os="linux",
            arch="x86_64" if number % 5 else "aarch64",
            version=f"26.11.{number % 4}",
        ).record
        for number in range(routers)
    ]
    forms = (
        "label.site = {site} AND label.team = team-{number}",
        "label.env = {environment} AND NOT label.team = team-{number}",
        "name = edge-{number:04} OR name = edge-{next:04}",
        "name =* '{number:03}' AND label.wec EXISTS",
        "fqdn =~ '^edge-0*{number}\\..*example' OR label.team = team-{next}",
        "ip =~ '^10\\.0\\.[0-3]\\.{number}$' AND os = linux",
        "(label.site = {site} OR arch = aarch64) AND version != 26.11.1 AND label.team !* {number}",
        "@ANY =* edge-{number:04}",
    )
    selectors = [
        forms[number % len(forms)].format(
            number=number,
            next=number + 1,
            site=sites[number % len(sites)],
            environment=environments[number % len(environments)],
        )
        for number in range(rules)
    ]
    return records, selectors


def main() -> None:
    """Measure and print."""
    classifier = Classifier(builtin_definitions())
    known, parsed = of_senders(classifier)
    unknown = application()
    assert classifier.classify(unknown.evidence(), last_resort=False) is None
    figures = {
        "classify": median(known),
        "slowest sender": max(known),
        "unknown": of_processing(Preprocessing(classify=True), unknown, classifier),
        "parse": median(parsed),
        "expression": of_processing(Preprocessing(steps=(Step(expression=EXPRESSION),)), posted(WEB_SERVER)),
        "select": of_processing(Preprocessing(steps=(Step(select=SELECT),)), unknown),
        "fleet": fleet_milliseconds(),
    }
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main()
