"""
The process is killed at any moment: what got a 200 is in the file, and the file stays one that can be read.

Five rounds for each C{--ack} level; fifty with C{WEBHOOKRX_LONG=1} in the environment.
"""

from __future__ import annotations

import json
import random
import time

from tests.system.load import Load, missing
from tests.system.receiver import LONG, Receiver, ReceiverCase, post

ROUNDS = 50 if LONG else 5


class KillTests(ReceiverCase):
    """
    Sixteen senders on connections that stay, and C{kill -9}.
    """

    def kill_rounds(self, ack: str) -> None:
        """Kill and start again; look at all that was acknowledged in any round."""
        receiver = self.prepare("--ack", ack)
        seed = random.randrange(1 << 32)
        moments = random.Random(seed)
        acknowledged: list[str] = []
        for number in range(ROUNDS):
            receiver.start()
            load = Load(receiver.port).start()
            time.sleep(moments.uniform(0.0, 0.6))
            receiver.kill()
            acknowledged += load.wait()
            self.assertEqual([], load.refused, f"round {number} of seed {seed}")
            self.assert_readable(receiver, acknowledged, f"round {number} of seed {seed}")
        self.assertGreater(len(acknowledged), 16 * ROUNDS)
        # One more start mends the end of the file, and new messages are whole.
        receiver.start()
        self.assertEqual(200, self.ask(receiver.port, post(b"after all")).status)
        receiver.stop()
        *_, last, end = receiver.lines()
        self.assertEqual(("after all", b""), (json.loads(last)["MESSAGE"], end))
        self.assert_readable(receiver, acknowledged, f"after seed {seed}")

    def assert_readable(self, receiver: Receiver, acknowledged: list[str], when: str) -> None:
        """All that was acknowledged is there; what can't be read is the beginning of a line, one a crash at most."""
        messages, torn = [], []
        for line in receiver.lines():
            try:
                messages.append(json.loads(line))
            except ValueError:
                torn.append(line)
        self.assertEqual([], missing(acknowledged, messages), when)
        self.assertLessEqual(len(torn), ROUNDS + 1, when)
        for line in torn:
            self.assertTrue(b'{"ISODATE":"'.startswith(line[:12]), (when, line))
            self.assertNotIn(b'RCPTID":"', line[:-60], when)
        numbers = [message["RCPTID"] for message in messages]
        self.assertEqual(len(numbers), len(set(numbers)), when)

    def test_durable(self) -> None:
        """With C{--ack durable}, what got a 200 is there, and each line is whole or the last before a crash."""
        self.kill_rounds("durable")

    def test_written(self) -> None:
        """The same holds with C{--ack written}: the operating system has not crashed."""
        self.kill_rounds("written")

    def test_torn_line(self) -> None:
        """A line that a crash has cut short stays a line of its own."""
        receiver = self.start()
        self.ask(receiver.port, post(b"before"))
        receiver.kill()
        with open(receiver.path("messages.jsonl"), "ab") as file:
            file.write(b'{"ISODATE":"2026-11-2')
        receiver.start()
        self.ask(receiver.port, post(b"after"))
        receiver.stop()
        before, torn, after, end = receiver.lines()
        self.assertEqual(("before", "after"), (json.loads(before)["MESSAGE"], json.loads(after)["MESSAGE"]))
        self.assertEqual((b'{"ISODATE":"2026-11-2', b""), (torn, end))
