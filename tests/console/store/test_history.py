"""
Tests for L{webhookrx.console.store.history}: the store against a model of it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import partial

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.console.store.database import StoreReader, StoreWriter
from webhookrx.console.store.history import (
    Author,
    Change,
    HistoryEntry,
    StoreTransaction,
    find_changes,
    newest_revision,
    read_history,
)

MARA = Author("mara", "api")
NAMES = st.sampled_from(["fra", "ber", "muc"])


class _Undone(Exception):
    """Ends a transaction that is to leave nothing."""


class HistoryModel(RuleBasedStateMachine):
    """Changes, transactions that fail, raised counters and restarts, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        self.model: list[tuple[int, str, str | None]] = []
        self.newest = 0
        self.open()

    def open(self) -> None:
        """Open the file."""
        path = os.path.join(self.directory, "console.sqlite")
        self.writer = StoreWriter(path, lambda: 1000.0)
        self.reader = StoreReader(path)

    def teardown(self) -> None:
        """Remove the file."""
        self.close()
        shutil.rmtree(self.directory)

    def close(self) -> None:
        """Close the file."""
        self.reader.close()
        self.writer.close()

    @rule(names=st.lists(NAMES, min_size=1, max_size=3), after=st.none() | st.text(max_size=9), jump=st.integers(1, 5))
    def change(self, names: list[str], after: str | None, jump: int) -> None:
        """A revision of some changes, numbered as the next or a later one."""
        changes = [Change("rule", name, "update", after=after) for name in names]
        number = self.writer.write(lambda made: made.revise(MARA, changes, number=self.newest + jump))
        self.model += [(number, name, after) for name in names]
        self.newest += jump

    @rule(name=NAMES)
    def undo(self, name: str) -> None:
        """A transaction that fails after its revision."""

        def work(transaction: StoreTransaction) -> None:
            transaction.revise(MARA, [Change("rule", name, "delete")])
            raise _Undone

        try:
            self.writer.write(work)
        except _Undone:
            return
        raise AssertionError("it did not fail")

    @rule(back=st.integers(0, 3))
    def refuse(self, back: int) -> None:
        """A number that is not above all others is refused."""
        try:
            self.writer.write(
                lambda made: made.revise(MARA, [Change("rule", "a", "create")], number=self.newest - back)
            )
        except ValueError:
            return
        raise AssertionError("the number was taken")

    @rule()
    def restart(self) -> None:
        """A console that starts again."""
        self.close()
        self.open()

    @invariant()
    def same(self) -> None:
        """The history is what the model says, read as a whole, by name, in pages, and as lines."""
        read = partial(self.reader.read, lambda db: read_history(db, count=10_000))
        assert [(each.revision, each.name, each.after) for each in read()] == self.model[::-1]
        assert self.reader.read(newest_revision) == self.newest
        named = self.reader.read(lambda db: read_history(db, name="fra", count=10_000))
        assert len(named) == sum(name == "fra" for _, name, _ in self.model)
        assert [each.revision for each in all_changes(self.reader)] == [number for number, _, _ in self.model[::-1]]


def all_changes(reader: StoreReader) -> list[HistoryEntry]:
    """Return all changes, read in pages."""
    found: list[HistoryEntry] = []
    following: int | None = 1 << 53
    while following is not None:
        page, following = reader.read(partial(find_changes, wanted=None, before=following, count=500))
        found += page
    return found


class HistoryModelTests(SynchronousTestCase):
    """The store does as the model."""

    def test_model(self) -> None:
        """Whatever is done in whatever order, the history is the same in both."""
        run_state_machine_as_test(HistoryModel, settings=settings(stateful_step_count=20))


class PageTests(SynchronousTestCase):
    """Long histories."""

    def test_pages(self) -> None:
        """Lines of more than a page are all there, once each, the newest first."""
        path = os.path.abspath(self.mktemp())
        writer = StoreWriter(path, lambda: 1000.0)
        self.addCleanup(writer.close)
        changes = [Change("rule", f"rule {number}", "create", after={"a": number}) for number in range(2500)]
        writer.write(lambda transaction: transaction.revise(MARA, changes))
        reader = StoreReader(path)
        self.addCleanup(reader.close)
        self.assertEqual([*range(2499, -1, -1)], [each.after["a"] for each in all_changes(reader)])
