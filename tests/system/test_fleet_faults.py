"""
A real console with real routers when something is wrong: it is away, restored, a disk is full, a router is shut out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from typing import Any

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.system.console_process import ConsoleProcess
from tests.system.fleet import Fleet, FleetRouter
from tests.system.numbered_senders import NumberedSenders
from tests.system.receiver import ROOT, wait_until
from tests.system.router_kills import Injection, lost_of
from tests.system.servers.process import free_port

_ENDLESS = 10**7


def run_console_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run C{webhookrx console} to its end."""
    command = [sys.executable, "-m", "webhookrx", "console", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


class FleetFaultTests(SynchronousTestCase):
    """Three routers, or fewer."""

    def start(self, count: int) -> Fleet:
        """Start a fleet, which ends with the test."""
        fleet = Fleet(count)
        self.addCleanup(fleet.clean_up)
        return fleet

    def test_console_away(self) -> None:
        """Without a console, routers go on, start with what they have, and refuse no request; then they follow it."""
        fleet = self.start(3)
        senders = [
            NumberedSenders(each.hooks, _ENDLESS, 4, first=1 + 4 * n, pace=0.02).start()
            for n, each in enumerate(fleet.routers[:2])
        ]
        fleet.console.kill()
        for router in fleet.routers:
            router.wait_for("The console is away", 1)
        last = fleet.routers[2]
        for _ in range(2):
            self.assertEqual(0, last.stop())
            last.start()
            self.assertEqual(last.open_states()[0], last.open_ports())
        time.sleep(2)
        for router in fleet.routers:
            self.assertEqual(router.open_states()[0], router.open_ports())
            self.assertEqual("ready", router.health()[0])
        fleet.console.start()
        for router in fleet.routers:
            fleet.move(router, 1)
        for router in fleet.routers:
            fleet.wait_for_state(router, 1)
        for router, sender in zip(fleet.routers, senders, strict=False):
            sent = sender.stop()
            self.assertEqual((0, 0), (sent.refused, lost_of(router, sent.acknowledged)))
            self.assertGreater(len(sent.acknowledged), 100)

    def test_many_changes(self) -> None:
        """Each of many routers ends at the newest of 50 changes, which come faster than they are applied."""
        count = 20 if os.environ.get("WEBHOOKRX_LONG") else 5
        fleet = self.start(count)
        states = [0] * count
        before = fleet.changes
        for number in range(50):
            at = number % count
            states[at] = 1 - states[at]
            fleet.move(fleet.routers[at], states[at])
        self.assertEqual(50, fleet.changes - before)
        for router, state in zip(fleet.routers, states, strict=True):
            fleet.wait_for_state(router, state)

    def test_restored_backup(self) -> None:
        """A console that is older than its routers hands out nothing and says so, until it is told to go above them."""
        fleet = self.start(3)
        console, first = fleet.console, fleet.routers[0]
        copy = f"{console.path}.copy"
        done = run_console_command("backup", "--db", console.path, copy)
        self.assertEqual(0, done.returncode, done.stderr)
        for router in fleet.routers:
            fleet.move(router, 1)
        for router in fleet.routers:
            fleet.wait_for_state(router, 1)
        self.assertEqual(0, console.end())
        done = run_console_command("restore", "--db", console.path, copy, "--replace")
        self.assertEqual(0, done.returncode, done.stderr)
        console.spawn()
        wait_until(lambda: "older backup" in self.said(console), "it says so to operators")
        wait_until(lambda: "older backup" in fleet.call("GET", "/routers")["problem"], "it says so by its API")
        self.assertIn("Nothing is handed out until `webhookrx console adopt`", console.log_text())
        # What is saved now reaches nobody.
        rule = fleet.rule(first, "late", free_port())
        fleet.call("POST", "/rules", rule)
        time.sleep(3)
        for router in fleet.routers:
            self.assertEqual(router.open_states()[1], router.open_ports())
        status, headers, _ = console.call("GET", f"/rules/{rule['name']}", authorization=fleet.authorization)
        self.assertEqual(200, status)
        fleet.call("DELETE", f"/rules/{rule['name']}", if_match=headers["etag"])
        self.assertEqual(0, console.end())
        done = run_console_command("adopt", "--db", console.path)
        self.assertEqual(0, done.returncode, done.stderr)
        console.start()
        for router in fleet.routers:
            fleet.wait_for_state(router, 0)
        self.assertEqual("", fleet.call("GET", "/routers")["problem"])
        self.assertNotIn("older backup", self.said(console))

    def said(self, console: ConsoleProcess) -> str:
        """Return what a console says of itself; nothing while it starts."""
        try:
            return "\n".join(console.health()["reasons"])
        except OSError:
            return ""

    def test_full_disk_of_router(self) -> None:
        """A router that can't keep a bundle says why and goes on; it takes the bundle once there is room."""
        if shutil.which("strace") is None:
            raise SkipTest("no strace: apt-get install strace")
        fleet = self.start(1)
        (router,) = fleet.routers
        full = Injection(router.pid, "writev", "error=ENOSPC", router.path("console/next.json.new"))
        try:
            fleet.move(router, 1)
            wait_until(lambda: fleet.shown(router)["status"] == "FAILED", "it is told")
            self.assertEqual("The bundle could not be kept: No space left on device.", fleet.shown(router)["error"])
            self.assertEqual(router.open_states()[0], router.open_ports())
            self.assertEqual(["current.json", "identity.json"], sorted(os.listdir(router.path("console"))))
        finally:
            full.end()
        self.assertEqual("", fleet.wait_for_state(router, 1)["error"])

    def test_full_disk_of_console(self) -> None:
        """A console without room refuses changes by a code, is read on, and its routers go on; then it takes them."""
        if shutil.which("strace") is None:
            raise SkipTest("no strace: apt-get install strace")
        fleet = self.start(1)
        (router,) = fleet.routers
        rule = fleet.rule(router, "late", router.ports[1])
        full = Injection(fleet.console.pid, "pwrite64", "error=ENOSPC")
        try:
            status, _, content = self.post_rule(fleet, rule)
            self.assertIn(status, (503, 507), content)
            self.assertIn(b'"code"', content)
            names = [each["name"] for each in fleet.call("GET", "/rules")["rules"]]
            self.assertNotIn(rule["name"], names)
            self.assertEqual(router.open_states()[0], router.open_ports())
        finally:
            full.end()
        wait_until(lambda: self.post_rule(fleet, rule)[0] == 201, "there is room again")
        wait_until(lambda: router.open_ports() == {router.hooks, *router.ports}, "the router has it")

    def post_rule(self, fleet: Fleet, rule: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        """Return the answer to a new rule."""
        return fleet.console.call("POST", "/rules", rule, authorization=fleet.authorization)

    def test_disabled_while_it_polls(self) -> None:
        """The poll of a router that is disabled ends at once; it hears why, and is back once it is approved."""
        fleet = self.start(2)
        router, other = fleet.routers
        wait_until(lambda: fleet.shown(router)["online"], "it polls")
        begun = time.monotonic()
        fleet.call("PATCH", f"/routers/{router.name}", {"state": "disabled"})
        wait_until(
            lambda: self.is_told(
                router, "The console has disabled this router, or does not know it; what runs goes on"
            ),
            "it is told",
            10,
        )
        self.assertLess(time.monotonic() - begun, 10)
        shown = fleet.shown(router)
        self.assertEqual(("disabled", False), (shown["state"], shown["online"]))
        fleet.move(router, 1)
        fleet.move(other, 1)
        fleet.wait_for_state(other, 1)
        self.assertEqual(router.open_states()[0], router.open_ports())
        fleet.call("PATCH", f"/routers/{router.name}", {"state": "approved"})
        fleet.wait_for_state(router, 1)

    def test_stopped_while_it_polls(self) -> None:
        """A router that polls ends at once on SIGTERM, and well."""
        (router,) = self.start(1).routers
        begun = time.monotonic()
        self.assertEqual(0, router.stop(), router.log())
        self.assertLess(time.monotonic() - begun, 10)

    def test_deleted_while_it_polls(self) -> None:
        """The poll of a router that is deleted ends at once, and what it runs goes on."""
        fleet = self.start(1)
        (router,) = fleet.routers
        fleet.call("DELETE", f"/routers/{router.name}")
        wait_until(
            lambda: self.is_told(
                router, "The console has disabled this router, or does not know it; what runs goes on"
            ),
            "it is told",
            10,
        )
        self.assertEqual({}, fleet.shown(router))
        self.assertEqual(router.open_states()[0], router.open_ports())

    def is_told(self, router: FleetRouter, text: str) -> bool:
        """Tell whether a router has logged a text."""
        return text in router.log()
