"""
Makes the pictures of the docs: C{python -m tests.system.console_pictures} starts a console with three routers, sends
them messages, and writes C{docs/console/pictures/*.png}. It needs Chromium and the extra C{browser}.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from typing import Any, Final

from tests.system.browser import ConsoleBrowser, sign_in
from tests.system.console_process import ConsoleProcess
from tests.system.fleet import FleetRouter
from tests.system.receiver import ROOT, Connection, post, wait_until
from tests.system.routers import free_ports

DIRECTORY: Final = os.path.join(ROOT, "docs", "console", "pictures")

#: Where files of rules are, and those of the demo are not.
KEYS: Final = "/etc/webhookrx/tls"

#: Seconds of messages: counts of whole minutes are shown.
SECONDS: Final = 200

#: Each picture: its name, its page, and whether it is dark.
PICTURES: Final = (
    ("overview", "/", False),
    ("routers", "/routers", False),
    ("router", "/routers/nyc-1", False),
    ("rules", "/rules", False),
    ("rule", "/rules/github", False),
    ("rule-dark", "/rules/github", True),
    ("history", "/rules/github/history", False),
    ("tap", "/tap", False),
    ("analytics", "/analytics?by=connector.name", False),
    ("alarms", "/alarms", False),
    ("activity", "/activity", False),
    ("settings", "/settings", False),
)

BODIES: Final = (
    {"action": "opened", "repository": {"full_name": "example/shop"}, "sender": {"login": "mara"}},
    {"status": "firing", "alerts": [{"labels": {"alertname": "DiskFull", "instance": "db-1"}}]},
    {"event": "deploy", "version": "2026.11.3", "by": "pipeline"},
)


class Demo:
    """A console with three routers, of which one lacks a key."""

    def __init__(self) -> None:
        self.console = ConsoleProcess()
        self.authorization = f"Bearer {self.console.token(tap=True, name='demo')}"
        self.routers: list[FleetRouter] = []
        self.ports = free_ports(12)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return what a call answers, which is good."""
        status, _, content = self.console.call(method, path, body, authorization=self.authorization, **headers)
        assert status < 300, (method, path, status, content)
        return json.loads(content) if content else None

    def begin(self) -> None:
        """Enrol the routers, and give them rules."""
        token = self.call("POST", "/enrolments", {"approve": "auto", "uses": 3})["token"]
        for number, name in enumerate(("fra-1", "fra-2", "nyc-1")):
            here = tempfile.mkdtemp(prefix="webhookrx-")
            with open(os.open(os.path.join(here, "token"), os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(token)
            router = FleetRouter(name, here, self.console.routers, self.ports[3 * number : 3 * number + 3])
            router.allow_keys(KEYS)
            self.routers.append(router)
            router.spawn()
        for rule in self.rules():
            self.call("POST", "/rules", rule)
        silent = {"kind": "silent", "when": "rule = github", "for": "6h", "expect_within": "1d"}
        self.call("PUT", "/alarms/github-quiet", silent, if_none_match="*")
        wait_until(
            lambda: {each["status"] for each in self.shown()} == {"APPLIED", "BLOCKED"}, "the rules are there", 60
        )

    def is_there(self) -> bool:
        """Tell whether the routers run what they can."""
        return {each["status"] for each in self.shown()} == {"APPLIED", "BLOCKED"}

    def rules(self) -> list[dict[str, Any]]:
        """Return the rules."""
        hooks = [router.hooks for router in self.routers]
        names = ("github", "alerts", "deploys")
        labels = ({"vendor": "github", "team": "code"}, {"vendor": "prometheus"}, {"team": "platform"})
        found: list[dict[str, Any]] = [
            {
                "name": name,
                "description": f"What {name} sends",
                "protocol": "HTTP",
                "port": port,
                "selector": f"label.site = {router.name}",
                "labels": label,
                "paths": ["/events", "/events/(?P<HOST>.*)"],
            }
            for name, port, router, label in zip(names, hooks, self.routers, labels, strict=True)
        ]
        found[0]["preprocessing"] = {"classify": True, "parse": True}
        found.append(
            {
                "name": "payments",
                "protocol": "HTTPS",
                "port": self.routers[2].ports[0],
                "selector": "label.site = nyc-1",
                "key_file": f"{KEYS}/payments.key",
                "cert_file": f"{KEYS}/payments.pem",
            }
        )
        return found

    def shown(self) -> list[dict[str, Any]]:
        """Return the routers."""
        return list(self.call("GET", "/routers")["routers"])

    def send(self, seconds: float) -> None:
        """Send messages, and some that are refused."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for router, body in zip(self.routers[:2], BODIES, strict=False):
                with Connection(router.hooks) as connection:
                    for path in ("/events/db-1", "/events", "/nothing"):
                        connection.send(post(json.dumps(body).encode(), path)).answer()
            time.sleep(0.2)

    def clean_up(self) -> None:
        """Leave nothing behind."""
        for router in self.routers:
            router.clean_up()
        self.console.stop()


def main() -> None:
    """Make all pictures."""
    os.makedirs(DIRECTORY, exist_ok=True)
    chromium, demo = ConsoleBrowser(), Demo()
    try:
        demo.begin()
        demo.send(SECONDS)
        url = f"http://127.0.0.1:{demo.console.port}"
        for name, path, dark in PICTURES:
            context = chromium.context(
                color_scheme="dark" if dark else "light", viewport={"width": 1280, "height": 900}
            )
            page = sign_in(context, url)
            page.goto(url + path)
            page.wait_for_load_state("networkidle")
            if name == "tap":
                page.click("button.primary")
                demo.send(5)
            # What a router says of its machine is that of whoever makes the pictures.
            height = 475 if name == "router" else 900
            page.screenshot(
                path=os.path.join(DIRECTORY, f"{name}.png"), clip={"x": 0, "y": 0, "width": 1280, "height": height}
            )
            context.close()
    finally:
        chromium.close()
        demo.clean_up()


if __name__ == "__main__":
    main()
