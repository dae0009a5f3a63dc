"""
Alarms of a real console: a real router goes away and comes back, and the console is killed at each step between.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any
from urllib.request import urlopen

from twisted.trial.unittest import SynchronousTestCase

from tests.system.console_process import ConsoleProcess
from tests.system.http_server import PostServer, Reply
from tests.system.receiver import wait_until
from tests.system.test_console_router import ConsoleRouter

AWAY = {"kind": "router_away", "for": "30s", "notify": "ops"}


class ConsoleAlarmTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.console = ConsoleProcess()
        self.addCleanup(self.console.stop)
        self.authorization = f"Bearer {self.console.token()}"
        self.target = PostServer()
        self.addCleanup(self.target.stop)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return what a call answers."""
        status, _, content = self.console.call(method, path, body, authorization=self.authorization, **headers)
        self.assertLess(status, 300, content)
        return json.loads(content) if content else None

    def router(self) -> ConsoleRouter:
        """Return a router that has told the console of itself."""
        here = tempfile.mkdtemp(prefix="webhookrx-")
        with open(os.open(os.path.join(here, "token"), os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(self.call("POST", "/enrolments", {"approve": "auto"})["token"])
        os.mkdir(os.path.join(here, "keys"))
        router = ConsoleRouter(here, self.console.routers, os.path.join(here, "keys"))
        self.addCleanup(router.clean_up)
        router.start()
        wait_until(
            lambda: any(each["health"] for each in self.call("GET", "/routers")["routers"]),
            f"it has told of itself: {router.log()}",
        )
        return router

    def restart(self) -> None:
        """Kill the console, start it, and wait until it has looked at its routers."""
        self.console.kill()
        self.console.start()
        wait_until(lambda: self.call("GET", "/alarms")["looked_at"], "it has looked")

    def test_told_once(self) -> None:
        """
        A router goes away: its target is told once, also when the console is killed before the answer and after it;
        when it comes back, the target is told that, too.
        """
        url = f"http://127.0.0.1:{self.target.port}/c4nary"
        shown = self.call("PUT", "/alarm-targets/ops", {"url": url})
        self.assertEqual(f"http://127.0.0.1:{self.target.port}/***", shown["url"])
        self.call("PUT", "/alarms/gone", AWAY, if_none_match="*")
        router = self.router()
        self.target.replies = [Reply(silent=True)]
        router.kill()
        wait_until(lambda: self.target.posted, "the target is told", 120)
        self.restart()
        wait_until(lambda: self.target.stored, "the target is told by the next process", 60)
        wait_until(lambda: "webhookrx_console_alarm_posts_waiting 0" in self.metrics(), "that is noted")
        self.restart()
        self.assertIn("webhookrx_console_alarm_posts_waiting 0", self.metrics())
        router.start()
        wait_until(lambda: len(self.target.stored) == 2, "the target is told that it is back", 120)
        told = [json.loads(each.body) for each in self.target.posted]
        self.assertEqual(
            [("gone", "router_away", "firing"), ("gone", "router_away", "firing"), ("gone", "router_away", "ok")],
            [(each["alarm"], each["kind"], each["state"]) for each in told],
        )
        self.assertEqual((told[0]["id"], told[0]["since"]), (told[1]["id"], told[1]["since"]))
        self.assertNotEqual(told[0]["id"], told[2]["id"])
        self.assertEqual(
            [f'"{each["id"]}"' for each in told], [each.fields["idempotency-key"] for each in self.target.posted]
        )
        self.assertEqual({"/c4nary"}, {each.path for each in self.target.posted})
        self.assertNotIn("c4nary", self.console.log_text())
        self.assertNotIn("c4nary", json.dumps([self.call("GET", path) for path in ("/activity", "/audit")]))

    def metrics(self) -> str:
        """Return what the console counts."""
        with urlopen(f"http://127.0.0.1:{self.console.admin}/metrics", timeout=60) as answer:
            return str(answer.read(), "utf-8")
