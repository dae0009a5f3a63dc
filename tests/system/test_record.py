"""
The real program, told to record requests.
"""

from __future__ import annotations

import gzip
import os
import stat
import subprocess
import sys

from tests.system.certificates import write
from tests.system.hanging_up import hang_up
from tests.system.receiver import post, wait_until
from tests.system.routers import RouterCase, free_ports, rule
from tests.system.workers import metrics


class RecordTests(RouterCase):
    """
    Requests as they came, for C{classify} and C{try}.
    """

    def test_record(self) -> None:
        """Requests are recorded up to the limit, and the command reads them."""
        self.check()

    def test_workers(self) -> None:
        """The same with two workers."""
        self.check("--workers", "2")

    def test_reload(self) -> None:
        """It is turned on and off by a reload."""
        (port,) = free_ports(1)
        router = self.router("--config", "config.yaml")
        router.write(rule("hooks", port))
        write(router.path("config.yaml"), b"limits: {body: 1KiB}\n")
        router.start()
        self.assertEqual(200, self.ask(port, post(b"1", "/events")).status)
        write(router.path("config.yaml"), b"record: recorded\n")
        hang_up(router)
        self.assertEqual(200, self.ask(port, post(b"2", "/events")).status)
        wait_until(lambda: recorded(router.path("recorded")), "it is recorded")
        write(router.path("config.yaml"), b"limits: {body: 1KiB}\n")
        hang_up(router)
        self.assertEqual(200, self.ask(port, post(b"3", "/events")).status)
        (path,) = recorded(router.path("recorded"))
        with open(path, "rb") as file:
            self.assertTrue(file.read().endswith(b"\r\n\r\n2"))

    def check(self, *options: str) -> None:
        """Record some; give them to the command."""
        (port,) = free_ports(1)
        router = self.router("--record", "recorded", "--limit", "recorded_requests=2", *options)
        router.write(rule("hooks", port, preprocessing={"classify": True}))
        router.start()
        self.assertIn("Requests are recorded in ", router.log())
        headers = [
            "X-GitHub-Event: push",
            "X-GitHub-Delivery: d-1",
            "Authorization: Bearer CANARY",
            "Content-Encoding: gzip",
        ]
        directory = router.path("recorded")
        packed = gzip.compress(b'{"ref":"refs/heads/main"}')
        for number in (1, 2):
            self.assertEqual(200, self.ask(port, post(packed, "/events/web-1?token=CANARY", headers=headers)).status)
            wait_until(lambda number=number: len(recorded(directory)) == number, f"{number} recorded; {router.log()}")
        self.assertEqual(200, self.ask(port, post(packed, "/events/web-1", headers=headers)).status)
        name = "webhookrx_requests_not_recorded_total"
        wait_until(lambda: metrics(router)[name] == 1, "the third is counted")
        wait_until(lambda: metrics(router)["webhookrx_recorded_requests_total"] == 2, "the others are, too")
        self.assertEqual(2, len(recorded(directory)))
        path = recorded(directory)[0]
        self.assertEqual(0o600, stat.S_IMODE(os.stat(path).st_mode))
        with open(path, "rb") as file:
            self.assertNotIn(b"CANARY", file.read())
        arguments = ("try", path, "--rules", router.path("rules.yaml"), "--router", "edge-1")
        ran = subprocess.run(
            [sys.executable, "-m", "webhookrx", *arguments], capture_output=True, text=True, check=False, timeout=60
        )
        self.assertEqual((0, ""), (ran.returncode, ran.stderr))
        self.assertIn('+ meta.sender = {"delivery_id":"d-1"}', ran.stdout)
        self.assertIn('"host":{"name":"web-1"}', ran.stdout)
        self.assertEqual(["refs/heads/main"] * 3, [body["ref"] for body in router.bodies()])


def recorded(directory: str) -> list[str]:
    """Return the paths of recorded requests."""
    if not os.path.isdir(directory):
        return []
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory)) if name.endswith(".http")]
