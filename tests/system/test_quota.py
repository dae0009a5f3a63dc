"""
Quotas of a receiver that is one process, or several.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Sequence

from tests.system.receiver import PATIENCE, ReceiverCase, post
from tests.system.workers import serves, workers
from webhookrx.guard.quota import SourceQuota
from webhookrx.service.shared_state import make_state_files, open_state

QUOTA = SourceQuota(messages=10_000, burst=0.5)


def take_all(files: Sequence[int], counts: multiprocessing.Queue[int]) -> None:
    """Take what there is room for, for a second."""
    buckets, taken = open_state(files).buckets, 0
    end = time.monotonic() + 1
    while time.monotonic() < end:
        taken += not buckets.take(QUOTA, "s", "", 1, 0, time.monotonic())
    counts.put(taken)


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

    def test_at_once(self) -> None:
        """Processes that do nothing but take from one bucket take little more than there is room for."""
        fork = multiprocessing.get_context("fork")
        files, counts = make_state_files(), fork.Queue()
        for fd in files:
            self.addCleanup(os.close, fd)
        began = time.monotonic()
        processes = [fork.Process(target=take_all, args=(files, counts)) for _ in range(3)]
        for process in processes:
            process.start()
        taken = sum(counts.get(timeout=PATIENCE) for _ in processes)
        room = QUOTA.messages * (time.monotonic() - began + QUOTA.burst)
        for process in processes:
            process.join(PATIENCE)
        self.assertLess(taken, 1.1 * room)
