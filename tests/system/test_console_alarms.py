"""
Alarms of a real console and a real router, while the console is killed at each step between: a router that goes away,
messages that wait in its spool, and a sender that goes silent.

C{WEBHOOKRX_LONG=1} sets no clock, and waits for messages and senders to become old.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Sequence
from typing import Any
from urllib.request import urlopen

from twisted.trial.unittest import SynchronousTestCase

from tests import LONG, documents
from tests.system.console_process import ConsoleProcess
from tests.system.http_server import PostServer, Reply
from tests.system.receiver import Connection, NotReached, post, wait_until
from tests.system.routers import free_ports
from tests.system.test_console_router import ConsoleRouter
from tests.system.wall_clock import LIBRARIES, WallClock

AWAY = {"kind": "router_away", "for": "30s", "notify": "ops"}

#: Seconds within which what is a minute old is told.
AGED = 180.0

#: By what Classify finds two senders.
SENDERS = {"github": "X-GitHub-Event: push", "gitlab": "X-Gitlab-Event: Push Hook"}

#: The alarms of the docs: the name, and what is sent.
EXAMPLE = re.compile(r"/api/v1/alarms/(\w+) .*\\\n +-d '(.+)'$", re.MULTILINE)


class AlarmCase(SynchronousTestCase):
    """A console, and a target of its alarms."""

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

    def router(self, *options: str, command: Sequence[str] = ()) -> ConsoleRouter:
        """Return a router that has told the console of itself; see L{ConsoleRouter}."""
        here = tempfile.mkdtemp(prefix="webhookrx-")
        with open(os.open(os.path.join(here, "token"), os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(self.call("POST", "/enrolments", {"approve": "auto"})["token"])
        os.mkdir(os.path.join(here, "keys"))
        router = ConsoleRouter(here, self.console.routers, os.path.join(here, "keys"), *options, command=command)
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

    def metrics(self) -> str:
        """Return what the console counts."""
        with urlopen(f"http://127.0.0.1:{self.console.admin}/metrics", timeout=60) as answer:
            return str(answer.read(), "utf-8")


class ConsoleAlarmTests(AlarmCase):
    """A router that goes away."""

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


class AgeTests(AlarmCase):
    """
    What becomes old: messages that wait in a spool, and the last message of a sender.

    @ivar port: of the rule that senders post to.
    @ivar away: where the observer behind the spool is to be.
    @ivar sent: the numbers of the messages that were acknowledged.
    """

    def setUp(self) -> None:
        super().setUp()
        self.port, self.away = free_ports(2)
        self.spec = f"spool:waiting:observer=http:http://127.0.0.1:{self.away}/in"
        self.subjects = {"backlog": f"fra-7/{self.spec}", "senders": "fra-7/fra-7-hooks-hooks/github"}
        self.sent: list[int] = []
        self.call("PUT", "/alarm-targets/ops", {"url": f"http://127.0.0.1:{self.target.port}/"})

    def use_examples(self) -> None:
        """Write the alarms of the docs as they stand there; then have two of them fire after a minute."""
        found = {name: json.loads(text) for name, text in EXAMPLE.findall(documents.read("docs/console/alarms.md"))}
        self.assertEqual(["quiet", "backlog", "senders"], list(found))
        for name, alarm in found.items():
            self.call("PUT", f"/alarms/{name}", alarm, if_none_match="*")
        for name in self.subjects:
            self.call("PUT", f"/alarms/{name}", {**found[name], "for": "1m"}, if_match='"g1"')

    def hear(self) -> None:
        """Have the console hear of the router at once: what a command has come to is told with a report."""

        def is_heard() -> bool:
            status, _, content = self.console.call("POST", "/routers/fra-7:reload", authorization=self.authorization)
            self.assertIn(status, (204, 503), content)
            return status == 204

        wait_until(is_heard, "the router answers")

    def look(self) -> None:
        """Have the console look at once, as it does when somebody saves an alarm: here as it is."""
        alarm = self.call("GET", "/alarms/senders")["alarm"]
        self.call("PUT", "/alarms/senders", alarm, if_match='"g2"')

    def send(self, sender: str) -> None:
        """Post a message as a sender does."""
        number = len(self.sent)
        with Connection(self.port) as connection:
            answer = connection.send(post(json.dumps({"number": number}).encode(), "/in", [SENDERS[sender]])).answer()
        assert answer is not None
        self.assertEqual(200, answer.status)
        self.sent.append(number)

    def rows(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return what is known of spools and senders that are not well, by alarm and subject."""
        rows = self.call("GET", "/alarms")["states"]
        return {(each["alarm"], each["subject"]): each for each in rows if each["alarm"] in self.subjects}

    def told(self) -> dict[tuple[str, str], list[str]]:
        """Return the states that the target was told, by alarm and subject; what is told again has the same id."""
        posts = {each["id"]: each for each in (json.loads(each.body) for each in self.target.stored)}
        told: dict[tuple[str, str], list[str]] = {}
        for each in posts.values():
            told.setdefault((each["alarm"], each["subject"]), []).append(each["state"])
        return told

    def wait_for(self, state: str, *told: str) -> dict[str, float]:
        """
        Wait until the spool and the silent sender are in a state, while another sender goes on and is well.

        @param told: what the target is then told of both, from the beginning.
        @return: since when they are in that state, by alarm; empty when they are well.
        """
        wanted = {} if state == "ok" else dict.fromkeys(self.subjects.items(), state)
        rows: dict[tuple[str, str], dict[str, Any]] = {}

        def is_there() -> bool:
            self.send("gitlab")
            self.look()
            time.sleep(0.2)
            rows.clear()
            rows.update(self.rows())
            return {key: row["state"] for key, row in rows.items()} == wanted

        self.hear()
        try:
            wait_until(is_there, state, AGED)
        except NotReached as error:
            raise NotReached(f"{error}; {rows}") from None
        expected = {key: list(told) for key in self.subjects.items()}
        wait_until(lambda: self.told() == expected, f"{expected} is told")
        return {row["alarm"]: row["since"] for row in rows.values()}

    def test_spool_and_sender(self) -> None:
        """
        While the observer behind a spool is away, and one of two senders is silent, a target is told of each once, also
        when the console is killed before and after that; it is told of the end when the messages are through, and when
        the sender sends again. The alarms are the examples of the docs.
        """
        clock = None if LONG or not LIBRARIES else WallClock(self.mktemp(), "-2m")
        self.use_examples()
        router = self.router("--observer", self.spec, command=() if clock is None else clock.command)
        rule = {"name": "hooks", "protocol": "HTTP", "port": self.port, "paths": ["/in"]}
        self.call("POST", "/rules", {**rule, "preprocessing": {"classify": True}})
        wait_until(lambda: self.call("GET", "/routers")["routers"][0]["connectors"], f"its rule: {router.log()}")
        self.send("github")
        self.send("gitlab")

        self.console.kill()
        if clock is not None:
            # What a console has not heard of is as old as the router says, by its clock: a minute goes by in no time.
            clock.set("+0")
        self.send("gitlab")
        self.console.start()
        since = self.wait_for("firing", "firing")
        texts = {each["alarm"]: each["text"] for each in (json.loads(each.body) for each in self.target.stored)}
        self.assertRegex(texts["backlog"], r"^\d+ messages wait, the oldest for (?:\d+ min )?\d+ s\.$")
        self.assertRegex(texts["senders"], r"^Its last message came (?:\d+ min )?\d+ s ago\.$")

        self.restart()
        self.assertEqual(set(self.subjects.items()), set(self.rows()))
        self.assertEqual(since, self.wait_for("firing", "firing"))

        behind = PostServer(port=self.away)
        self.addCleanup(behind.stop)
        self.send("github")
        wait_until(lambda: set(self.sent) <= set(numbers(behind)), "all messages are through")
        self.wait_for("ok", "firing", "ok")
        wait_until(lambda: set(self.sent) <= set(numbers(behind)), "all messages are through")
        self.assertEqual(self.sent, list(dict.fromkeys(numbers(behind))))


def numbers(server: PostServer) -> list[int]:
    """Return the numbers of the messages that a server has."""
    return [json.loads(line)["log"]["body"]["number"] for line in server.lines()]
