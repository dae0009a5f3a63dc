"""
The cases that hold webhookrx against what a user might take in its place: data alone.
"""

from __future__ import annotations

from benchmarks.compared import LESS_TIME, NGINX, NGINX_TLS, OVER_TLS, PLAIN, PLAIN_512, WRITTEN
from benchmarks.comparisons import Bound, Case, Goal, Ratio
from benchmarks.counts import SystemCalls
from benchmarks.disturbed import DISTURBANCES, Disturbed
from benchmarks.runs import Handshakes, Loaded
from benchmarks.servers import aiohttp, granian, tornado, uvicorn


def beside_peers() -> tuple[Case, ...]:
    """Return the cases, in the order of the table."""
    return (
        Case(
            "vs-nginx",
            "nginx writing the body to its access log",
            (
                Ratio(PLAIN, Loaded(NGINX), goal=Goal(0.54, 0.67)),
                Ratio(PLAIN_512, Loaded(NGINX, connections=512)),
            ),
        ),
        Case(
            "vs-uvicorn",
            "uvicorn with httptools, uvloop and a bare ASGI application",
            (
                Ratio(PLAIN, Loaded(uvicorn()), goal=Goal(2.2, 2.7)),
                Ratio(PLAIN_512, Loaded(uvicorn(), connections=512)),
            ),
        ),
        Case("vs-tornado", "the collector's Tornado shape", (Ratio(PLAIN, Loaded(tornado()), goal=Goal(14, 17)),)),
        Case("vs-aiohttp", "aiohttp on uvloop", (Ratio(PLAIN, Loaded(aiohttp())),)),
        Case("vs-granian", "granian, RSGI", (Ratio(PLAIN, Loaded(granian())),)),
        Case(
            "body8k",
            "a body of 8 KiB",
            tuple(
                Ratio(Loaded(WRITTEN, kind), Loaded(server, kind), goal=goal)
                for kind, reached in (("nested8k", Goal(1.0, 1.2)), ("flat8k", Goal(1.3, 1.6)))
                for server, goal in ((NGINX, reached), (uvicorn(), None))
            ),
            "nested8k: objects in objects, as a code host posts them; flat8k: long texts and lists",
        ),
        Case(
            "recorded",
            "what many kinds of senders post",
            tuple(Ratio(Loaded(WRITTEN, "recorded"), Loaded(server, "recorded")) for server in (NGINX, uvicorn())),
            "bodies and headers of 164 recorded samples with other digits in each request, and texts in several "
            "languages, as they are or escaped; every other target has a query",
        ),
        Case(
            "body1",
            "one connection",
            (
                Ratio(
                    Loaded(WRITTEN, connections=1),
                    Loaded(uvicorn(), connections=1),
                    "p50",
                    Goal(1.0, LESS_TIME),
                    "go for 0.9 of its time",
                ),
                Ratio(Loaded(WRITTEN, connections=1), Loaded(NGINX, connections=1), "p50"),
                Bound(
                    SystemCalls(WRITTEN, connections=1), "calls", "webhookrx, system calls a request", "", Goal(7, 6)
                ),
                Bound(SystemCalls(uvicorn(), connections=1), "calls", "uvicorn, system calls a request", ""),
                Bound(SystemCalls(NGINX, connections=1), "calls", "nginx, system calls a request", ""),
            ),
            "one sender that waits for each answer: nothing is shared with another request",
        ),
        Case(
            "tls",
            "TLS 1.3, connections that stay",
            (
                Ratio(Loaded(OVER_TLS["ecdsa"]), Loaded(NGINX_TLS["ecdsa"]), goal=Goal(0.55, 0.65)),
                Ratio(Loaded(OVER_TLS["ecdsa"]), PLAIN, goal=Goal(0.7, 0.82)),
            ),
        ),
        Case(
            "new",
            "a new connection for each request",
            (
                Ratio(Loaded(WRITTEN, "closing"), Loaded(NGINX, "closing")),
                Ratio(Loaded(WRITTEN, "closing"), Loaded(uvicorn(), "closing")),
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
            "hostile",
            "how long an honest sender waits beside hostile ones",
            tuple(
                Bound(Disturbed(server, beside), "p99", f"{server.name}, p99 of an honest sender beside {beside}", "ms")
                for beside in DISTURBANCES
                for server in (WRITTEN, uvicorn(), NGINX)
            ),
            "400 small requests a second, counted from when each was due, while four connections send the most "
            "expensive bodies of 1 MiB, or heads at the limits, as fast as they are taken",
        ),
    )
