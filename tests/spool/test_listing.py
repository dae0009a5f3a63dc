"""What is known of messages without reading them."""

from __future__ import annotations

import sqlite3

from tests.spool.faulty_spool import stored
from tests.spool.test_queue import QueueCase, letter
from webhookrx.spool import listing
from webhookrx.spool.directory import SpoolDirectory
from webhookrx.spool.listing import ListedMessage, Listing
from webhookrx.spool.rows import Row, checksum


class ListingTests(QueueCase):
    """A file with three messages that wait, and one that is dead."""

    def setUp(self) -> None:
        """Open it."""
        super().setUp()
        queue = self.open()
        self.batch = stored("one", "two", "three", "bad", received=1000)
        queue.append(self.batch)
        queue.ack([], [letter(queue.next_batch()[3])])
        queue.close()
        self.listing = Listing(SpoolDirectory(self.path, self.faults), 1)
        self.addCleanup(self.listing.close)

    def test_entries(self) -> None:
        """An entry says what a look at the message itself says, whether it waits or is dead."""
        entries = self.listing.waiting(0, 100)
        self.assertEqual([(1, 1000), (2, 1000), (3, 1000)], [entry[:2] for entry in entries])
        rows = [Row(number, checksum(number, data), data) for number, data in enumerate(self.batch, 1)]
        self.assertEqual([ListedMessage.of(row) for row in rows[:3]], entries)
        self.assertEqual((None, "", 0), entries[0][3:])
        self.assertEqual([ListedMessage.of(letter(rows[3]))], self.listing.dead(0, 100))

    def test_between(self) -> None:
        """Those between two numbers come, a hundred at most in one go."""
        self.assertEqual([2], [entry.id for entry in self.listing.waiting(1, 3)])
        self.assertEqual([], self.listing.dead(4, 100))
        self.patch(listing, "TOGETHER", 2)
        self.assertEqual([1, 2], [entry.id for entry in self.listing.waiting(0, 100)])

    def test_damage(self) -> None:
        """Values of another kind say nothing, and text that is none is shown as far as it is."""
        db = sqlite3.connect(self.listing._db.execute("PRAGMA database_list").fetchone()[2])
        db.execute("UPDATE waiting SET received = 'x', data = 5")
        db.execute("UPDATE dead SET received = -1, reason = CAST(x'6eff' AS TEXT), spec = 7, died = 'x'")
        db.commit()
        db.close()
        self.assertEqual(ListedMessage(1, None, 1), self.listing.waiting(0, 100)[0])
        self.assertEqual(ListedMessage(4, None, len(self.batch[3]), "n\ufffd", "7", 0), self.listing.dead(0, 100)[0])

    def test_close(self) -> None:
        """It lets go of its file."""
        self.listing.close()
        self.assertRaises(sqlite3.ProgrammingError, self.listing.waiting, 0, 100)
