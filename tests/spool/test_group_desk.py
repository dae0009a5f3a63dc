"""The spools of all workers as people see them together."""

from __future__ import annotations

import os
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.spool.admin import AdminError, NoSpool, SpoolTotals
from webhookrx.spool.group_desk import SpoolAdmin


class _Desk:
    """That of one worker, who has a message for each letter of the name of its directory."""

    def __init__(self, path: str) -> None:
        self.name = os.path.basename(path)
        self.caution = "is open to all" if self.name == "worker-2" else None
        self.is_closed = False

    def totals(self) -> SpoolTotals:
        return SpoolTotals(len(self.name), 10, 1000 - len(self.name), 1, 5)

    def close(self) -> None:
        self.is_closed = True


class GroupDeskTests(SynchronousTestCase):
    """Three workers, the second of whom has no spool."""

    def setUp(self) -> None:
        """Make their directories."""
        self.path = os.path.join(os.path.abspath(self.mktemp()), "spool")
        for number in (1, 2):
            os.makedirs(os.path.join(self.path, f"worker-{number}"))
        self.desks: list[_Desk] = []
        self.missing = {"worker-1"}
        self.broken = ""

    def make(self, path: str) -> Any:
        """Make a desk, unless there is no spool."""
        desk = _Desk(path)
        if desk.name in self.missing:
            raise NoSpool(path)
        if desk.name == self.broken:
            raise AdminError("broken")
        self.desks.append(desk)
        return desk

    def test_together(self) -> None:
        """Who has a spool is named, what is in all of them is summed, and what is to be said of one is said."""
        desk = SpoolAdmin(self.path, self.make)
        self.assertEqual([0, 2], list(desk.workers))
        self.assertEqual({os.path.join(self.path, "worker-2"): "is open to all"}, desk.cautions)
        self.assertEqual(SpoolTotals(13, 20, 992, 2, 10), desk.totals())
        self.assertEqual(SpoolTotals(8, 10, 992, 1, 5), desk.totals(2))
        self.assertEqual(0, desk.totals(1).messages)

    def test_close(self) -> None:
        """All of them are closed, also when one of those that follow can't be looked at."""
        SpoolAdmin(self.path, self.make).close()
        self.broken = "worker-2"
        self.assertRaises(AdminError, SpoolAdmin, self.path, self.make)
        self.assertEqual(["spool", "worker-2", "spool"], [desk.name for desk in self.desks])
        self.assertEqual([True] * 3, [desk.is_closed for desk in self.desks])

    def test_none(self) -> None:
        """Where nobody has a spool there is none."""
        self.missing = {"spool", "worker-1", "worker-2"}
        self.assertRaises(NoSpool, SpoolAdmin, self.path, self.make)
