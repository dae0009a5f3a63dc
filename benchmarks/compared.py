"""
The servers that cases compare, and the runs that most are held against: data alone.
"""

from __future__ import annotations

from benchmarks.lines import Nested
from benchmarks.receivers import Receiver, RouterReceiver
from benchmarks.runs import Loaded
from benchmarks.servers import Nginx
from benchmarks.traffic import GROUP_PATTERNS, PATTERNS, SECRET, TOKEN

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
SIGNED = Receiver(name="webhookrx with a signature", secrets=(SECRET,))
SIGNED_16 = Receiver(
    name="webhookrx with a signature and 16 secrets",
    secrets=(*(f"another-{number}" for number in range(15)), SECRET),
)
ONE_WORKER = Receiver(name="webhookrx, 1 worker", quota_each=0.3)
TWO_WORKERS = Receiver(name="webhookrx, 2 workers", quota_each=0.3, options=("--workers=2",))
PURE = Receiver(name="webhookrx without the module", pure=True)
EARLIER = Receiver(name="webhookrx 26.11.3", release="26.11.3")
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

LESS_TIME = 1 / 0.9
"""As a ratio, what takes 0.9 of the other's time."""
