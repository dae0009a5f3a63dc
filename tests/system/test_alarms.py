"""
Alarms of the real program, and a target that is away at first.
"""

from __future__ import annotations

import json

from tests.system.http_server import PostServer, Reply
from tests.system.receiver import post, wait_until
from tests.system.test_tap import ControlCase


class AlarmTests(ControlCase):
    """C{alarms:} and C{alarm_targets:}."""

    def test_silent(self) -> None:
        """A silent source fires with workers, too: its target is told once it is there, then of the next message."""
        target = PostServer()
        self.addCleanup(target.stop)
        target.replies = [Reply(503), Reply(reset=True)]
        config = (
            f"alarm_targets: {{ops: 'http://127.0.0.1:{target.port}/c4nary'}}\n"
            "alarms:\n- {name: quiet, kind: silent, when: source = default, for: 15s, notify: ops}\n"
        )
        receiver = self.receiver("--workers", "2", config=config)
        self.assertEqual([], self.status()["alarms"])
        wait_until(lambda: target.stored, "the target is told", 90)
        told = [json.loads(each.body) for each in target.posted]
        self.assertEqual(
            [("quiet", "default", "firing")] * 3, [(each["alarm"], each["subject"], each["state"]) for each in told]
        )
        self.assertEqual({f'"{told[0]["id"]}"'}, {each.fields["idempotency-key"] for each in target.posted})
        self.assertEqual(["firing"], [each["state"] for each in self.status()["alarms"]])
        self.assertEqual(200, self.ask(receiver.port, post(b"hello")).status)
        wait_until(lambda: len(target.stored) == 2, "the target is told that all is well", 60)
        self.assertEqual("ok", json.loads(target.stored[1].body)["state"])
        self.assertNotIn("c4nary", receiver.log())
