"""
Tests for L{webhookrx.console.upkeep}, and the copies and backups of keys that it makes.
"""

from __future__ import annotations

import os
import sqlite3
import stat

from twisted.trial.unittest import SynchronousTestCase

from tests.console.store.test_database import one_revision
from webhookrx.commands.main import main
from webhookrx.console import upkeep
from webhookrx.console.key_backup import decrypt_keys, encrypt_keys
from webhookrx.console.routers.authority import KEY_FILES, load_authority
from webhookrx.console.store.copies import check_store
from webhookrx.console.store.files import StoreFiles
from webhookrx.console.store.history import Author, Change, StoreTransaction, newest_revision, read_history
from webhookrx.errors import CannotStart

PASSPHRASE = b"correct horse battery staple"


class UpkeepTests(SynchronousTestCase):
    """A console's files, from the first to a restored one."""

    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())
        self.path = self.file("console.sqlite")
        upkeep.init_console(self.path)

    def file(self, name: str) -> str:
        """Return a name in the directory."""
        return os.path.join(self.directory, name)

    def write(self, name: str, content: bytes) -> str:
        """Write a file."""
        with open(self.file(name), "wb") as file:
            file.write(content)
        return self.file(name)

    def revise(self, times: int = 1) -> None:
        """Append revisions."""
        files = StoreFiles(self.path)
        for _ in range(times):
            files.writer.write(one_revision)
        files.close()

    def problem(self, *arguments: object, **options: object) -> str:
        """Return why restoring fails."""
        return str(self.assertRaises(CannotStart, upkeep.restore, *arguments, **options))

    def test_init(self) -> None:
        """A new console has a database and keys that nobody else reads, and is not made twice."""
        for name in ("console.sqlite", *KEY_FILES):
            self.assertEqual(0o600, stat.S_IMODE(os.stat(self.file(name)).st_mode), name)
        self.assertEqual(0o700, stat.S_IMODE(os.stat(self.directory).st_mode))
        self.assertIn("already", str(self.assertRaises(CannotStart, upkeep.init_console, self.path)))

    def test_init_again(self) -> None:
        """An init that ended before the database was there is run again, with the same keys."""
        pin = load_authority(self.directory).pin
        os.unlink(self.path)
        upkeep.init_console(self.path)
        self.assertEqual(pin, load_authority(self.directory).pin)

    def test_backup_of_running(self) -> None:
        """A copy is made while the store is written, and has what was written before."""
        files = StoreFiles(self.path)
        self.addCleanup(files.close)
        files.writer.write(one_revision)
        self.assertEqual(1, upkeep.back_up(self.path, self.file("copy")))
        files.writer.write(one_revision)
        self.assertEqual(1, check_store(self.file("copy")))
        self.assertEqual(0o600, stat.S_IMODE(os.stat(self.file("copy")).st_mode))
        self.assertEqual([], [name for name in os.listdir(self.directory) if name.startswith("copy.")])
        self.assertRaises(CannotStart, upkeep.back_up, self.path, self.file("copy"))

    def test_restored_elsewhere(self) -> None:
        """A copy with its keys becomes the same console in another directory."""
        self.revise(3)
        passphrase = self.write("passphrase", PASSPHRASE + b"\n")
        upkeep.back_up(self.path, self.file("copy"), self.file("keys"), passphrase)
        with open(self.file("keys"), "rb") as file:
            self.assertNotIn(b"PRIVATE KEY", file.read())
        new = os.path.join(self.directory, "new", "console.sqlite")
        os.mkdir(os.path.dirname(new), 0o700)
        self.assertIn("is missing", self.problem(new, self.file("copy")))
        self.assertEqual(3, upkeep.restore(new, self.file("copy"), self.file("keys"), passphrase))
        self.assertEqual(load_authority(self.directory).pin, load_authority(os.path.dirname(new)).pin)
        files = StoreFiles(new)
        self.addCleanup(files.close)
        self.assertEqual(4, files.writer.write(one_revision))

    def test_replaced(self) -> None:
        """An older copy replaces a console only when that is asked for, and the old database is kept."""
        self.revise()
        upkeep.back_up(self.path, self.file("copy"))
        self.revise(2)
        self.assertIn("--replace", self.problem(self.path, self.file("copy")))
        self.assertEqual(1, upkeep.restore(self.path, self.file("copy"), replace=True))
        self.assertEqual((1, 3), (check_store(self.path), check_store(f"{self.path}.replaced")))

    def test_bad_copies(self) -> None:
        """What is no store of a console, or is damaged, replaces nothing."""
        self.revise()
        upkeep.back_up(self.path, self.file("copy"))
        with open(self.file("copy"), "rb") as file:
            content = file.read()
        other = sqlite3.connect(self.file("other"))
        other.execute("CREATE TABLE a (b)")
        other.close()
        page = 4096
        cases = {
            self.file("none"): "no file",
            self.file("other"): "no store",
            self.write("text", b"a" * 9000): "can't be used",
            self.write("cut", content[: 5 * page]): "",
            self.write("zeros", content[: 3 * page] + bytes(4 * page) + content[7 * page :]): "",
        }
        for path, text in cases.items():
            self.assertIn(text, self.problem(self.path, path, replace=True))
            self.assertEqual(1, check_store(self.path))
        self.assertFalse(os.path.exists(f"{self.path}.replaced"))

    def test_keys(self) -> None:
        """A backup of keys opens with its passphrase alone, and no byte of it can be another."""
        backup = encrypt_keys({"ca.pem": b"secret"}, PASSPHRASE)
        self.assertEqual({"ca.pem": b"secret"}, decrypt_keys(backup, PASSPHRASE))
        self.assertRaises(CannotStart, decrypt_keys, backup, PASSPHRASE + b"!")
        for place in (0, 10, 30, 40, len(backup) - 1):
            changed = bytearray(backup)
            changed[place] ^= 1
            self.assertRaises(CannotStart, decrypt_keys, bytes(changed), PASSPHRASE)
        for short in (b"", backup[:20], backup[:40]):
            self.assertRaises(CannotStart, decrypt_keys, short, PASSPHRASE)
        self.assertRaises(CannotStart, encrypt_keys, {}, b"too short")

    def test_adopt(self) -> None:
        """The revision goes above that of the routers, once, and the history says so."""
        self.assertEqual((0, 0), upkeep.adopt(self.path))
        self.add_router(41)
        self.assertEqual((0, 42), upkeep.adopt(self.path))
        self.assertEqual((42, 42), upkeep.adopt(self.path))
        files = StoreFiles(self.path)
        self.addCleanup(files.close)
        (entry,) = files.reader.read(read_history)
        self.assertEqual((42, "revision", 0, 42), (entry.revision, entry.name, entry.before, entry.after))

    def test_adopt_after_changes(self) -> None:
        """Changes since the older backup was restored do not make its routers its own: it goes above both."""
        files = StoreFiles(self.path)
        files.writer.write(lambda t: t.revise(Author("mara", "api"), [Change("rule", "hooks", "update")], number=50))
        files.close()
        self.add_router(41)
        self.assertEqual((50, 51), upkeep.adopt(self.path))
        self.assertEqual((51, 51), upkeep.adopt(self.path))

    def test_absurd_revision(self) -> None:
        """A revision near the end of numbers is adopted from nobody: the counter would have no room left."""
        self.add_router(upkeep.HIGHEST_REVISION)
        self.assertRaises(CannotStart, upkeep.adopt, self.path)
        files = StoreFiles(self.path)
        self.addCleanup(files.close)
        self.assertEqual(0, files.reader.read(newest_revision))

    def add_router(self, revision: int) -> None:
        """Add a router that has applied this revision."""

        def add(transaction: StoreTransaction) -> None:
            transaction.execute(
                "INSERT INTO router (guid, name, state, enrolled_at, applied_revision)"
                " VALUES ('1', 'fra', 'approved', 0, ?)",
                (revision,),
            )

        files = StoreFiles(self.path)
        files.writer.write(add)
        files.close()

    def test_commands(self) -> None:
        """The commands do all of it, and what can't be done ends with 1."""
        db = self.file("second/console.sqlite")
        passphrase = self.write("passphrase", PASSPHRASE)
        keys = ["--passphrase-file", passphrase]
        for status, arguments in (
            (0, ["init", "--db", db]),
            (1, ["init", "--db", db]),
            (0, ["backup", "--db", db, self.file("c"), "--with-keys", self.file("k"), *keys]),
            (1, ["restore", "--db", db, self.file("c")]),
            (0, ["restore", "--db", db, self.file("c"), "--keys", self.file("k"), "--replace", *keys]),
            (0, ["adopt", "--db", db]),
            (1, ["adopt", "--db", self.file("missing")]),
        ):
            self.assertEqual(status, main(["console", *arguments]), arguments)
        error = self.assertRaises(SystemExit, main, ["console", "backup", "--db", db, "x", "--with-keys", "y"])
        self.assertEqual(2, error.code)
