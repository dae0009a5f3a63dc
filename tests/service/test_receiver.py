"""
Tests for L{webhookrx.service.receiver}: the ids of messages. The rest is in C{test_service} and C{tests/system}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.service.receiver import MessageIds


class MessageIdsTests(SynchronousTestCase):
    """Times and numbers of messages."""

    def test_ids(self) -> None:
        """Ids are in the order of receipt, also when the clock is set back; times are the clock's."""
        times = iter([5_000_000, 4_000_000])
        receipts = MessageIds(lambda: next(times), "start")
        first, second = receipts(), receipts()
        self.assertEqual((5_000_000, 4_000_000), (first.received, second.received))
        self.assertEqual(("start-0000000001", "start-0000000002"), (first.id, second.id))

    def test_any_start(self) -> None:
        """Any text can begin an id."""
        self.assertEqual("100%-%s-0000000001", MessageIds(lambda: 1, "100%-%s")().id)

    def test_processes(self) -> None:
        """Two processes that start in the same moment give different ids."""
        self.assertNotEqual(MessageIds(lambda: 1)().id, MessageIds(lambda: 1)().id)
