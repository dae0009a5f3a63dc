"""
Quotas of a receiver that is one process, or several.
"""

from __future__ import annotations

from tests.system.receiver import ReceiverCase, post
from tests.system.workers import serves, workers


class QuotaOfWorkersTests(ReceiverCase):
    """Quotas seen from outside."""

    def test_one_bucket(self) -> None:
        """Workers share one bucket: a quota does not grow with their number, and says when there is room again."""
        receiver = self.start("--workers", "2", "--quota", "messages=1/h,burst=20h")
        one, other = workers(receiver)
        connections = [self.connect(receiver.port) for _ in range(10)]
        answers = []
        for _ in range(4):
            for connection in connections:
                answers.append(connection.send(post(b"x")).answer())
        served = {pid for pid in (one, other) for connection in connections if serves(pid, connection)}
        self.assertEqual({one, other}, served)
        self.assertEqual([200] * 20 + [429] * 20, [answer.status for answer in answers if answer is not None])
        waits = {int(answer.headers["retry-after"]) for answer in answers[20:] if answer is not None}
        self.assertTrue(all(3000 < wait <= 3600 for wait in waits), waits)
        self.assertEqual(20, len(receiver.messages()))
        self.assertEqual(0, receiver.stop())
