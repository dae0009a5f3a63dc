"""
Tests for L{webhookrx.config.console_files}.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.console_files import (
    CURRENT,
    IDENTITY,
    NEXT,
    REFUSED,
    RouterIdentity,
    accept_bundle,
    forget_console,
    mark_applied,
    read_console_files,
    refuse_next,
    write_identity,
)
from webhookrx.config.files import write_state
from webhookrx.errors import BundleRefused, ConfigError
from webhookrx.filesystem import FileSystem
from webhookrx.management.bundle import BundleRouter, RouterBundle, digest, public_text, seal

GUID = "0b0e4c9e-8a4f-4c57-9d5e-3d2f5b6a7c80"
OLD_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
NEW_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OLD_TEXT = public_text(OLD_KEY.public_key())
NEW_TEXT = public_text(NEW_KEY.public_key())
WRITES = ("mkdir", "unlink", "open", "writev", "fsync", "close", "rename")

IDENTITY_OF_ROUTER = RouterIdentity(
    console="https://console.example:9443",
    guid=GUID,
    name="fra-1",
    key="s3cret",
    certificate="C",
    authorities=("A",),
    signing_keys=(OLD_TEXT,),
)


def bundle_of(revision: int, *signing_keys: str, key: Ed25519PrivateKey = OLD_KEY, authority: str = "A") -> bytes:
    """Return an envelope."""
    bundle = RouterBundle(
        guid=GUID,
        revision=revision,
        made_at=1,
        router=BundleRouter("fra-1"),
        rules=f"connector_rules: [] # {revision}\n",
        authorities=(authority,),
        signing_keys=signing_keys or (OLD_TEXT,),
    )
    return seal(bundle, key)


class Killed(BaseException):
    """The process has been killed."""


class KilledFileSystem(FileSystem):
    """
    A file system of a process that is killed at a call: half of a write is done, and no call after it.

    @ivar calls: the names of calls so far.
    """

    def __init__(self, at: int = -1) -> None:
        self.calls: list[str] = []
        for name in WRITES:
            setattr(self, name, self._call(name, getattr(os, name), at))

    def _call(self, name: str, real: Any, at: int) -> Any:
        def call(*args: Any) -> Any:
            number = len(self.calls)
            self.calls.append(name)
            if at >= 0 and number >= at:
                if number == at and name == "writev":
                    os.write(args[0], bytes(args[1][0][: len(args[1][0]) // 2]))
                if name == "close":
                    os.close(args[0])
                raise Killed
            return real(*args)

        return call


class ConsoleFilesTests(SynchronousTestCase):
    """Tests for what the files hold after each step."""

    def setUp(self) -> None:
        """Enrol, and apply revision 7."""
        self.directory = self.mktemp()
        write_identity(self.directory, IDENTITY_OF_ROUTER)
        self.apply(bundle_of(7))

    def apply(self, envelope: bytes, file_system: FileSystem | None = None) -> None:
        """Accept a bundle and mark it as applied."""
        accept_bundle(self.directory, envelope, file_system or FileSystem())
        mark_applied(self.directory, digest(envelope), file_system or FileSystem())

    def revisions(self) -> list[int]:
        """Return the revisions of the bundles, in the order in which they are tried."""
        return [each.bundle.revision for each in read_console_files(self.directory).bundles]

    def test_not_enrolled(self) -> None:
        """Without a directory nothing is known, and no bundle is accepted."""
        directory = self.mktemp()
        self.assertEqual(read_console_files(directory), (None, (), (), None))
        self.assertRaises(ConfigError, accept_bundle, directory, bundle_of(1))

    def test_steps(self) -> None:
        """An accepted bundle is tried first and the applied one after it, until the new one is applied."""
        accept_bundle(self.directory, bundle_of(8))
        self.assertEqual(self.revisions(), [8, 7])
        self.assertEqual([each.is_applied for each in read_console_files(self.directory).bundles], [False, True])
        mark_applied(self.directory, digest(bundle_of(8)))
        self.assertEqual(self.revisions(), [8])
        self.assertEqual(os.listdir(self.directory).count(NEXT), 0)

    def test_overtaken(self) -> None:
        """A bundle that came while an older one was applied stays the next."""
        accept_bundle(self.directory, bundle_of(8))
        accept_bundle(self.directory, bundle_of(9))
        mark_applied(self.directory, digest(bundle_of(8)))
        self.assertEqual(self.revisions(), [9, 7])

    def test_older(self) -> None:
        """A bundle that is older than one that is not applied yet is refused, and changes nothing."""
        accept_bundle(self.directory, bundle_of(9))
        self.assertRaises(BundleRefused, accept_bundle, self.directory, bundle_of(8))
        self.assertEqual(self.revisions(), [9, 7])

    def test_again(self) -> None:
        """The bundle that is applied may come again, and is not written again."""
        file_system = KilledFileSystem()
        accept_bundle(self.directory, bundle_of(7), file_system)
        self.assertEqual(file_system.calls, [])

    def test_other_users(self) -> None:
        """No other user can read a file."""
        for name in (IDENTITY, CURRENT):
            mode = os.stat(os.path.join(self.directory, name)).st_mode
            self.assertEqual(stat.S_IMODE(mode), 0o600)

    def test_hidden(self) -> None:
        """The repr of an identity shows no key, and neither does the error of a damaged one."""
        self.assertNotIn("s3cret", repr(IDENTITY_OF_ROUTER))
        for content in (b'{"key":"s3cret"', b'{"key":"s3cret"}', b"[" * 10_000):
            write_state(self.directory, IDENTITY, content)
            error = self.assertRaises(ConfigError, read_console_files, self.directory)
            self.assertNotIn("s3cret", str(error))

    def test_damaged(self) -> None:
        """A damaged next bundle is named, and the applied one is used."""
        envelope = bytearray(bundle_of(8))
        envelope[40] ^= 1
        write_state(self.directory, NEXT, bytes(envelope))
        files = read_console_files(self.directory)
        self.assertEqual(self.revisions(), [7])
        self.assertIn("next.json can't be used", files.problems[0])

    def test_put_back(self) -> None:
        """An older next bundle that somebody has put there is not used."""
        write_state(self.directory, NEXT, bundle_of(6))
        self.assertEqual(self.revisions(), [7])
        self.assertEqual(read_console_files(self.directory).problems, ("next.json is older than current.json.",))

    def test_new_keys(self) -> None:
        """Keys and CA certificates of an accepted bundle are trusted beside the old; once it is applied, alone."""
        accept_bundle(self.directory, bundle_of(8, OLD_TEXT, NEW_TEXT, authority="B"))
        identity = read_console_files(self.directory).identity
        assert identity is not None
        self.assertEqual(identity.authorities, ("B", "A"))
        self.apply(bundle_of(8, OLD_TEXT, NEW_TEXT, authority="B"))
        self.apply(bundle_of(9, NEW_TEXT, key=NEW_KEY, authority="B"))
        identity = read_console_files(self.directory).identity
        assert identity is not None
        self.assertEqual((identity.authorities, identity.signing_keys), (("B",), (NEW_TEXT,)))
        self.assertRaises(BundleRefused, accept_bundle, self.directory, bundle_of(10))
        self.assertEqual(self.revisions(), [9])

    def test_own_key_taken(self) -> None:
        """A bundle that takes away the key by which it is signed is refused: no later start could verify it."""
        self.assertRaises(BundleRefused, accept_bundle, self.directory, bundle_of(8, NEW_TEXT))
        self.assertRaises(BundleRefused, accept_bundle, self.directory, bundle_of(8, OLD_TEXT, "no key"))
        self.assertEqual(self.revisions(), [7])

    def test_killed(self) -> None:
        """Killed at any call, the router has the old or the new bundle, and can take the new one after a restart."""
        new = bundle_of(8, OLD_TEXT, NEW_TEXT, authority="B")
        complete = KilledFileSystem()
        self.apply(new, complete)
        self.assertGreater(len(complete.calls), 20)
        for at in range(len(complete.calls)):
            with self.subTest(at):
                self.setUp()
                self.assertRaises(Killed, self.apply, new, KilledFileSystem(at))
                files = read_console_files(self.directory)
                self.assertEqual(files.problems, ())
                self.assertIn(self.revisions(), ([7], [8, 7], [8]))
                self.apply(new)
                self.assertEqual(self.revisions(), [8])
                identity = read_console_files(self.directory).identity
                assert identity is not None
                self.assertEqual(identity.authorities, ("B",))

    def test_order(self) -> None:
        """A bundle is safe before its name is, and the name before it is called accepted; likewise once applied."""
        file_system = KilledFileSystem()
        accept_bundle(self.directory, bundle_of(8), file_system)
        write = ["writev", "fsync", "close", "rename", "open", "fsync", "close"]
        self.assertEqual(file_system.calls[-len(write) :], write)
        mark_applied(self.directory, digest(bundle_of(8)), file_system)
        self.assertEqual(file_system.calls[-4:], ["rename", "open", "fsync", "close"])

    def test_full_disk(self) -> None:
        """With a full disk the bundle is not accepted, what was there stays, and nothing else is left."""
        file_system = KilledFileSystem()

        def full(*_: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        file_system.writev = full  # type: ignore[method-assign]
        self.assertRaises(OSError, accept_bundle, self.directory, bundle_of(8), file_system)
        self.assertEqual(self.revisions(), [7])
        self.assertEqual(sorted(os.listdir(self.directory)), [CURRENT, IDENTITY])

    def refuse(self, envelope: bytes, file_system: FileSystem | None = None) -> None:
        """Accept a bundle that then can't be applied."""
        accept_bundle(self.directory, envelope)
        refuse_next(self.directory, digest(envelope), "Port 80 is taken.", file_system or FileSystem())

    def test_refused(self) -> None:
        """A bundle that can't be applied is tried no more, and why is known, until another one is accepted."""
        self.refuse(bundle_of(8))
        files = read_console_files(self.directory)
        self.assertEqual((self.revisions(), files.newest[0], files.problems), ([7], 7, ()))
        assert files.refused is not None
        self.assertEqual((files.refused.digest, files.refused.error), (digest(bundle_of(8)), "Port 80 is taken."))
        for again in (bundle_of(8), bundle_of(9)):
            self.refuse(bundle_of(8))
            accept_bundle(self.directory, again)
            self.assertEqual(read_console_files(self.directory).refused, None)
            self.assertEqual(len(self.revisions()), 2)

    def test_refused_too_late(self) -> None:
        """A bundle that is applied, or that was replaced, is not refused."""
        refuse_next(self.directory, digest(bundle_of(7)), "why")
        accept_bundle(self.directory, bundle_of(9))
        refuse_next(self.directory, digest(bundle_of(8)), "why")
        files = read_console_files(self.directory)
        self.assertEqual((self.revisions(), files.refused), ([9, 7], None))

    def test_refused_by_another_version(self) -> None:
        """Another version may be able to apply it; and a note that is damaged counts for nothing."""
        for refused in (
            b'{"digest": "%s", "error": "x", "version": "0"}' % digest(bundle_of(8)).encode(),
            b"{",
            b"[" * 9999,
        ):
            accept_bundle(self.directory, bundle_of(8))
            write_state(self.directory, REFUSED, refused)
            self.assertEqual((self.revisions(), read_console_files(self.directory).refused), ([8, 7], None))

    def test_killed_while_refused(self) -> None:
        """Killed at any call, a start tries the refused bundle or does not, and from the note on it does not."""
        complete = KilledFileSystem()
        self.refuse(bundle_of(8), complete)
        noted = complete.calls.index("rename")
        for at in range(len(complete.calls)):
            with self.subTest(at):
                self.setUp()
                self.assertRaises(Killed, self.refuse, bundle_of(8), KilledFileSystem(at))
                self.assertEqual(self.revisions(), [8, 7] if at <= noted else [7])
                self.apply(bundle_of(9))
                self.assertEqual(self.revisions(), [9])

    def test_full_disk_while_refused(self) -> None:
        """A full disk keeps the note away, and the bundle is gone all the same."""
        file_system = KilledFileSystem()

        def full(*_: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        file_system.writev = full  # type: ignore[method-assign]
        self.assertRaises(OSError, self.refuse, bundle_of(8), file_system)
        self.assertEqual(sorted(os.listdir(self.directory)), [CURRENT, IDENTITY])

    def test_renewal(self) -> None:
        """An identity that is killed while it is replaced is the old or the new one."""
        new = replace(IDENTITY_OF_ROUTER, key="k2", certificate="C2")
        complete = KilledFileSystem()
        write_identity(self.directory, new, complete)
        for at in range(len(complete.calls)):
            with self.subTest(at):
                write_identity(self.directory, IDENTITY_OF_ROUTER)
                self.assertRaises(Killed, write_identity, self.directory, new, KilledFileSystem(at))
                self.assertIn(read_console_files(self.directory).identity, (IDENTITY_OF_ROUTER, new))

    def test_forget(self) -> None:
        """Nothing is left of a console that is forgotten, and that may be said twice."""
        self.refuse(bundle_of(8))
        accept_bundle(self.directory, bundle_of(9))
        self.refuse(bundle_of(9))
        forget_console(self.directory)
        forget_console(self.directory)
        self.assertEqual(os.listdir(self.directory), [])
        forget_console(self.mktemp())
