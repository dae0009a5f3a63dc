"""
What a crash has left of a file. That nothing acknowledged is lost is proved in L{tests.system.torture}.
"""

from __future__ import annotations

import json

from tests.system.receiver import ReceiverCase, post


class TornLineTests(ReceiverCase):
    """
    The last line of a file that a crash has cut short.
    """

    def test_torn_line(self) -> None:
        """It stays as it is, on a line of its own, and spoils neither the message before nor the one after."""
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
