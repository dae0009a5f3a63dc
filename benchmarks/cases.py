"""
What is run, what is compared, and what it is to come to: data alone.
"""

from __future__ import annotations

from benchmarks.compared import (
    ALL_PATTERNS,
    DURABLE,
    EARLIER,
    EVERYTHING,
    FEATURES,
    LESS_TIME,
    NGINX,
    ONE_PATTERN,
    ONE_WORKER,
    PLAIN,
    PLAIN_512,
    PURE,
    ROUTER,
    ROUTER_CLASSIFY,
    ROUTER_PARSE,
    ROUTER_STEPS,
    SIGNED,
    SIGNED_16,
    TWO_WORKERS,
    WITHOUT_FEATURES,
    WRITTEN,
)
from benchmarks.comparisons import Bound, Case, Goal, Ratio
from benchmarks.counts import Instructions, SystemCalls
from benchmarks.keeping import Growth, Memory
from benchmarks.peer_cases import beside_peers
from benchmarks.runs import ConstantRate, Loaded, Shares, Steps
from benchmarks.servers import uvicorn
from benchmarks.stores.places import PLACES
from benchmarks.stores.runs import EndToEnd, Storing

REQUESTS = 50_000
"""How many requests L{Memory} and L{Growth} send in the short mode to see what is kept of them."""

GROWTH_NOISE = 512
"""KiB by which the memory of a process that keeps nothing may still differ from one look to the next."""


def all_cases(requests: int = REQUESTS) -> tuple[Case, ...]:
    """
    Return every case, in the order of the table.

    @param requests: how many the cases C{memory} and C{router} send to see what is kept of them.
    """
    return (*beside_peers(), *_of_ours(requests), *_of_stores(), *_figures(requests))


def _of_ours(requests: int) -> tuple[Case, ...]:
    return (
        Case("plain512", "512 connections against 64", (Ratio(PLAIN_512, PLAIN, goal=Goal(0.85, 0.95)),)),
        Case(
            "durable64",
            "--ack durable against written, 64 connections",
            (Ratio(Loaded(DURABLE), PLAIN, "rate", Goal(0.64, 0.75)),),
            "by requests a second, since it waits for the disk",
        ),
        Case(
            "durable512",
            "--ack durable against written, 512 connections",
            (Ratio(Loaded(DURABLE, connections=512), PLAIN_512, "rate", Goal(0.85, 0.95)),),
        ),
        Case(
            "workers2",
            "two workers against one",
            (
                Ratio(Loaded(TWO_WORKERS), Loaded(ONE_WORKER), "rate", Goal(1.9, 1.98)),
                Bound(Shares(TWO_WORKERS), "busiest", "connections at the busier one, of 64", "", Goal(36, 32)),
            ),
            "each worker gets 0.3 of a core, so that the load has room on two: this shows that they do not stand in "
            "each other's way, not what two free cores do; connections are counted by their sockets, the most of five "
            "loads in each round",
        ),
        Case(
            "patterns1000",
            "1,000 path patterns against 1, matching the last",
            (Ratio(Loaded(ALL_PATTERNS, "hooks"), Loaded(ONE_PATTERN, "hooks"), goal=Goal(0.8, 0.95)),),
            "4,096 different paths",
        ),
        Case(
            "everything",
            "token, proxy header, include_request_headers, 20 patterns with two groups",
            (
                Ratio(
                    Loaded(EVERYTHING, "forwarded"),
                    PLAIN,
                    goal=Goal(0.7, 0.8),
                    note="the plain one has shorter requests, and writes lines half as long",
                ),
            ),
        ),
        Case(
            "features",
            "what each option costs, beside none",
            tuple(Ratio(Loaded(receiver, "forwarded"), Loaded(WITHOUT_FEATURES, "forwarded")) for receiver in FEATURES),
            "requests carry what the options look at, whether they are on or off",
        ),
        Case(
            "signatures",
            "a source that verifies what GitHub signs, beside the same source without",
            (
                Ratio(Loaded(SIGNED, "signed"), Loaded(WRITTEN, "signed"), goal=Goal(0.8, 0.85)),
                Ratio(Loaded(SIGNED, "signed8k"), Loaded(WRITTEN, "signed8k")),
                Ratio(Loaded(SIGNED_16, "signed"), Loaded(WRITTEN, "signed")),
            ),
            "each request is signed, by the last of 16 secrets where there are so many, and each message says by which",
        ),
        Case(
            "router",
            "the router form, with more and more of its processing",
            (
                Ratio(Loaded(ROUTER), PLAIN),
                Ratio(Loaded(ROUTER_CLASSIFY), PLAIN, goal=Goal(0.6, 0.75)),
                Ratio(Loaded(ROUTER_PARSE), PLAIN, goal=Goal(0.6, 0.7)),
                Ratio(Loaded(ROUTER_STEPS), PLAIN, goal=Goal(0.5, 0.6)),
                Bound(
                    Growth(ROUTER_STEPS, requests=requests),
                    "growth",
                    "growth over {requests} requests with all of these",
                    "KiB",
                    Goal(GROWTH_NOISE, 0),
                ),
            ),
            "the steps: Select Messages with two terms, Set Field with a condition, an expression",
        ),
        Case(
            "pure",
            "without the compiled module",
            (
                *(
                    Ratio(
                        Loaded(PURE, kind), Loaded(EARLIER, kind), goal=goal, note="go for 0.9 of its time" * bool(goal)
                    )
                    for kind, goal in (("plain", Goal(1.0, LESS_TIME)), ("nested8k", None), ("flat8k", None))
                ),
                Ratio(Loaded(PURE), PLAIN),
            ),
            "WEBHOOKRX_PURE=1, beside an earlier version that had no such module, and beside the module",
        ),
    )


def _of_stores() -> tuple[Case, ...]:
    return (
        Case(
            "stores",
            "observers of stores, each beside the client that it uses, alone",
            tuple(
                Ratio(
                    Storing(place), Storing(place, alone=True), "rate", Goal(0.8, 0.95), f"batches of {place.batch:,}"
                )
                for place in PLACES
            ),
            "messages of 311 bytes to servers on the other core; the client does what a program would do with it to "
            "have them as safe, and its lines are ready; Kafka is librdkafka's mock, S3 moto; HTTP stores are a "
            "program that gives their documented answers and stores nothing, and their client is treq, with bodies "
            "made as the observer makes them",
        ),
        Case(
            "kafka",
            "from request to Kafka, and back",
            (
                Bound(EndToEnd(), "rate", "512 connections", "requests/s", Goal(40_000, 40_000)),
                Ratio(EndToEnd(), Loaded(DURABLE, connections=512), "rate"),
                Ratio(EndToEnd(connections=64), Loaded(DURABLE), "rate"),
            ),
            "acks=all to three brokers of librdkafka's mock, which has the other core together with the load",
        ),
    )


def _figures(requests: int) -> tuple[Case, ...]:
    memory = Memory(WRITTEN, requests=requests)
    steps = Steps()
    return (
        Case(
            "plain64",
            "64 connections",
            (Bound(PLAIN, "cpu", "processor time a request", "µs"),),
            "JSON of 311 bytes, 14 headers, one path pattern, --ack written: what the others are held against",
        ),
        Case(
            "steps",
            "what is done to a message of the router form, part by part",
            (
                Bound(steps, "classify", "Classify, the sender in the middle", "µs", Goal(20, 6)),
                Bound(steps, "slowest sender", "Classify, the slowest sender", "µs"),
                Bound(steps, "unknown", "Classify, a body that no entry knows", "µs", Goal(20, 6)),
                Bound(steps, "parse", "Parse, the sender in the middle", "µs"),
                Bound(steps, "expression", "an expression of five statements", "µs", Goal(10, 5)),
                Bound(steps, "select", "Select Messages with two terms", "µs"),
                Bound(steps, "fleet", "1,000 routers, the selectors of 200 rules", "ms", Goal(100, 50)),
            ),
            "processor time, without a server; samples of all known senders, with the entries of all of them; the "
            "slowest send forms, or JSON inside of JSON, which nobody has read before",
        ),
        Case(
            "syscalls",
            "system calls a request, 64 connections",
            (
                Bound(SystemCalls(WRITTEN), "calls", "webhookrx", "", Goal(2.25, 2.1)),
                Bound(SystemCalls(uvicorn()), "calls", "uvicorn", ""),
                Bound(SystemCalls(NGINX), "calls", "nginx", ""),
            ),
            "strace slows down what it looks at, so that waiting for the disk takes more calls than it would otherwise",
        ),
        Case(
            "instructions",
            "instructions a request in user space, by callgrind",
            tuple(
                Bound(
                    Instructions(server, connections=connections),
                    "instructions",
                    f"{server.name}, {connections} connection{'s' * (connections > 1)}",
                    "thousand",
                )
                for server in (WRITTEN, PURE)
                for connections in (1, 64)
            ),
            "they can be told apart within a percent, on any machine with the same Python",
        ),
        Case(
            "latency",
            "from request to answer",
            (
                Bound(PLAIN, "p99", "webhookrx, 64 connections, p99", "ms", Goal(2.0, 1.6)),
                Bound(Loaded(uvicorn()), "p99", "uvicorn, 64 connections, p99", "ms"),
                Bound(Loaded(NGINX), "p99", "nginx, 64 connections, p99", "ms"),
                Bound(ConstantRate(WRITTEN), "p99", "webhookrx, 3,200 a second, p99", "ms"),
                Bound(ConstantRate(uvicorn()), "p99", "uvicorn, 3,200 a second, p99", "ms"),
                Bound(ConstantRate(NGINX), "p99", "nginx, 3,200 a second, p99", "ms"),
            ),
            "at a constant rate, times count from when each request was due",
        ),
        Case(
            "memory",
            "resident memory",
            (
                Bound(memory, "rest", "at rest", "MiB", Goal(60, 55)),
                Bound(memory, "connection", "an idle connection", "KiB", Goal(4, 1.5)),
                Bound(memory, "tls connection", "an idle TLS connection", "KiB", Goal(30, 18)),
                Bound(memory, "growth", "growth over {requests} requests", "KiB", Goal(GROWTH_NOISE, 0)),
            ),
            "2,000 connections with one request behind them; what the kernel holds for a socket is not in it",
        ),
    )
