"""
What is run, what is compared, and what it is to come to: data alone.
"""

from __future__ import annotations

from benchmarks.comparisons import Bound, Case, Goal, Ratio
from benchmarks.lines import Nested
from benchmarks.runs import ConstantRate, Growth, Handshakes, Loaded, Memory, Steps, SystemCalls
from benchmarks.servers import Nginx, Receiver, RouterReceiver, aiohttp, granian, tornado, uvicorn
from benchmarks.traffic import GROUP_PATTERNS, PATTERNS, TOKEN

WRITTEN = Receiver(name="webhookrx")
DURABLE = Receiver(name="webhookrx durable", ack="durable")
OVER_TLS = {kind: Receiver(name=f"webhookrx TLS {kind}", tls=kind) for kind in ("ecdsa", "rsa")}
ONE_PATTERN = Receiver(name="webhookrx with 1 pattern", paths=PATTERNS[-1:])
ALL_PATTERNS = Receiver(name="webhookrx with 1,000 patterns", paths=PATTERNS)
EVERYTHING = Receiver(
    name="webhookrx with everything",
    paths=GROUP_PATTERNS,
    options=("--include-request-headers", "--proxy-header=yes", f"--auth-token={TOKEN}"),
)
FEATURES = (
    Receiver(name="webhookrx with a token", paths=("/.*",), options=(f"--auth-token={TOKEN}",)),
    Receiver(name="webhookrx with a proxy header", paths=("/.*",), options=("--proxy-header=yes",)),
    Receiver(name="webhookrx with request headers", paths=("/.*",), options=("--include-request-headers",)),
    Receiver(name="webhookrx with 20 patterns with groups", paths=GROUP_PATTERNS),
    Receiver(name="webhookrx with two observers", paths=("/.*",), options=("--observer=file:second.jsonl",)),
    Receiver(name="webhookrx with an admin endpoint", paths=("/.*",), options=("--admin=unix:admin.sock",)),
)
WITHOUT_FEATURES = Receiver(name="webhookrx with none of these", paths=("/.*",))
ONE_WORKER = Receiver(name="webhookrx, 1 worker", quota=0.3)
TWO_WORKERS = Receiver(name="webhookrx, 2 workers", quota=0.6, options=("--workers=2",))
ROUTER = RouterReceiver(name="webhookrx, router form")
ROUTER_CLASSIFY = RouterReceiver(
    name="webhookrx, router form with Classify",
    preprocessing="{classify: yes}",
    lines=Nested(rule="github"),
)
ROUTER_PARSE = RouterReceiver(
    name="webhookrx, router form with Classify and Parse",
    preprocessing="{classify: yes, parse: yes}",
    lines=Nested(rule="github", fields=(("log.severity_text", "INFO"),)),
)
ROUTER_STEPS = RouterReceiver(
    name="webhookrx, router form with Classify, Parse and three steps",
    preprocessing="""
      classify: yes
      parse: yes
      steps:
        - select: meta.vendor = github AND log.body.service = checkout
        - set: {field: meta.team, value: payments}
          condition: meta.service = push
        - expression: log.attributes.user = lower(log.body.user);""",
    lines=Nested(
        rule="github",
        fields=(("log.severity_text", "INFO"), ("meta.team", "payments")),
        copies=(("log.attributes.user", "user"),),
    ),
)
NGINX = Nginx(name="nginx")
NGINX_TLS = {kind: Nginx(name=f"nginx TLS {kind}", tls=kind) for kind in ("ecdsa", "rsa")}

PLAIN = Loaded(WRITTEN)
"""What most others are held against."""
PLAIN_512 = Loaded(WRITTEN, connections=512)

REQUESTS = 50_000
"""How many requests L{Memory} and L{Growth} send in the short mode to see what is kept of them."""

GROWTH_NOISE = 512
"""KiB by which the memory of a process that keeps nothing may still differ from one look to the next."""


def all_cases(requests: int = REQUESTS) -> tuple[Case, ...]:
    """
    Return every case, in the order of the table.

    @param requests: how many the cases C{memory} and C{router} send to see what is kept of them.
    """
    memory = Memory(WRITTEN, requests=requests)
    steps = Steps()
    return (
        Case(
            "plain64",
            "64 connections",
            (Bound(PLAIN, "cpu", "processor time a request", "µs"),),
            "JSON of 311 bytes, 14 headers, one path pattern, --ack written: what the others are held against",
        ),
        Case("plain512", "512 connections against 64", (Ratio(PLAIN_512, PLAIN, goal=Goal(0.85, 0.95)),)),
        Case(
            "durable64",
            "--ack durable against written, 64 connections",
            (Ratio(Loaded(DURABLE), PLAIN, "rate", Goal(0.6, 0.75)),),
            "by requests a second, since it waits for the disk",
        ),
        Case(
            "durable512",
            "--ack durable against written, 512 connections",
            (Ratio(Loaded(DURABLE, connections=512), PLAIN_512, "rate", Goal(0.85, 0.95)),),
        ),
        Case(
            "vs-tornado",
            "the collector's Tornado shape",
            (Ratio(PLAIN, Loaded(tornado()), goal=Goal(10, 15)),),
            "the peer does not parse the body, and leaves out what the collector does in C; it writes each message "
            "alone, as the collector takes them",
        ),
        Case(
            "vs-uvicorn",
            "uvicorn with httptools, uvloop and a bare ASGI application",
            (
                Ratio(PLAIN, Loaded(uvicorn()), goal=Goal(1.2, 1.6)),
                Ratio(PLAIN_512, Loaded(uvicorn(), connections=512)),
            ),
            "all Python peers do webhookrx's job with orjson, but answer before they write",
        ),
        Case(
            "vs-nginx",
            "nginx writing the body to its access log",
            (Ratio(PLAIN, Loaded(NGINX), goal=Goal(0.5, 0.7)), Ratio(PLAIN_512, Loaded(NGINX, connections=512))),
            "the peer does not parse the body, and answers before it writes, which it does ten times a second",
        ),
        Case("vs-aiohttp", "aiohttp on uvloop", (Ratio(PLAIN, Loaded(aiohttp())),)),
        Case("vs-granian", "granian, RSGI", (Ratio(PLAIN, Loaded(granian())),)),
        Case(
            "tls",
            "TLS 1.3, connections that stay",
            (
                Ratio(Loaded(OVER_TLS["ecdsa"]), PLAIN, goal=Goal(0.7, 0.82)),
                Ratio(Loaded(OVER_TLS["ecdsa"]), Loaded(NGINX_TLS["ecdsa"])),
            ),
        ),
        Case(
            "tls-new",
            "a new TLS connection for each request",
            (
                *(
                    Ratio(Handshakes(OVER_TLS[kind]), Handshakes(NGINX_TLS[kind]), goal=Goal(0.5, 0.65))
                    for kind in ("ecdsa", "rsa")
                ),
                Ratio(Loaded(OVER_TLS["ecdsa"], "closing"), Loaded(NGINX_TLS["ecdsa"], "closing")),
            ),
            "full handshakes, whose client is slower than the servers; then wrk, which resumes a session where the "
            "server lets it",
        ),
        Case(
            "workers2",
            "two workers against one",
            (Ratio(Loaded(TWO_WORKERS), Loaded(ONE_WORKER), "rate", Goal(1.8, 1.95)),),
            "each worker gets 0.3 of a core, so that the load has room on two: this shows that they do not stand in "
            "each other's way, not what two free cores do",
        ),
        Case(
            "patterns1000",
            "1,000 path patterns against 1, matching the last",
            (Ratio(Loaded(ALL_PATTERNS, "hooks"), Loaded(ONE_PATTERN, "hooks"), goal=Goal(0.8, 0.95)),),
            "1,024 different paths",
        ),
        Case(
            "body8k",
            "a body of 8 KiB",
            tuple(
                Ratio(Loaded(WRITTEN, kind), Loaded(NGINX, kind), goal=Goal(0.8, 1.2))
                for kind in ("nested8k", "flat8k")
            ),
            "nested8k: objects in objects, as a code host posts them; flat8k: long texts and lists; nginx does not "
            "parse them",
        ),
        Case(
            "everything",
            "token, proxy header, include_request_headers, 20 patterns with two groups",
            (Ratio(Loaded(EVERYTHING, "forwarded"), PLAIN, goal=Goal(0.7, 0.85)),),
        ),
        Case(
            "features",
            "what each option costs, beside none",
            tuple(Ratio(Loaded(receiver, "forwarded"), Loaded(WITHOUT_FEATURES, "forwarded")) for receiver in FEATURES),
            "requests carry what the options look at, whether they are on or off",
        ),
        Case(
            "router",
            "the router form, with more and more of its processing",
            (
                Ratio(Loaded(ROUTER), PLAIN),
                Ratio(Loaded(ROUTER_CLASSIFY), PLAIN, goal=Goal(0.6, 0.75)),
                Ratio(Loaded(ROUTER_PARSE), PLAIN),
                Ratio(Loaded(ROUTER_STEPS), PLAIN),
                Bound(
                    Growth(ROUTER_STEPS, requests=requests),
                    "growth",
                    f"growth over {requests:,} requests with all of these",
                    "KiB",
                    Goal(GROWTH_NOISE, 0),
                ),
            ),
            "the steps: Select Messages with two terms, Set Field with a condition, an expression",
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
                Bound(SystemCalls(WRITTEN), "calls", "webhookrx", "", Goal(2.3, 2.05)),
                Bound(SystemCalls(uvicorn()), "calls", "uvicorn", ""),
                Bound(SystemCalls(NGINX), "calls", "nginx", ""),
            ),
            "strace slows down what it looks at, so that waiting for the disk takes more calls than it would otherwise",
        ),
        Case(
            "latency",
            "from request to answer",
            (
                Bound(PLAIN, "p99", "webhookrx, 64 connections, p99", "ms", Goal(2.0, 1.2)),
                Bound(ConstantRate(WRITTEN), "p99", "webhookrx, 3,200 a second, p99", "ms"),
                Bound(ConstantRate(NGINX), "p99", "nginx, 3,200 a second, p99", "ms"),
            ),
            "at a constant rate, times count from when each request was due",
        ),
        Case(
            "memory",
            "resident memory",
            (
                Bound(memory, "rest", "at rest", "MiB", Goal(60, 50)),
                Bound(memory, "connection", "an idle connection", "KiB", Goal(4, 1.5)),
                Bound(memory, "tls connection", "an idle TLS connection", "KiB", Goal(30, 18)),
                Bound(memory, "growth", f"growth over {requests:,} requests", "KiB", Goal(GROWTH_NOISE, 0)),
            ),
            "2,000 connections with one request behind them; what the kernel holds for a socket is not in it",
        ),
        Case(
            "body1",
            "one connection",
            (
                Ratio(Loaded(WRITTEN, connections=1), Loaded(NGINX, connections=1), "rate"),
                Ratio(Loaded(WRITTEN, connections=1), Loaded(uvicorn(), connections=1), "rate"),
            ),
        ),
    )
