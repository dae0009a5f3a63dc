"""Tests for L{webhookrx.config.file_signatures}."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config import file_signatures
from webhookrx.config.file_signatures import signature_of


class SignatureTests(SynchronousTestCase):
    """What is seen of a file."""

    def test_changes(self) -> None:
        """Appearing, other content, another mode, being replaced and going away are all seen."""
        path = Path(self.mktemp())
        found = [signature_of(str(path))]
        path.write_text("one")
        found.append(signature_of(str(path)))
        path.write_text("two words")
        found.append(signature_of(str(path)))
        path.chmod(0o600)
        found.append(signature_of(str(path)))
        other = Path(self.mktemp())
        other.write_text("two words")
        os.replace(other, path)
        found.append(signature_of(str(path)))
        path.unlink()
        self.assertEqual(found[0], signature_of(str(path)))
        self.assertEqual(5, len(set(found)))

    def test_each_part(self) -> None:
        """Each of file system, number, size and times makes a difference alone: not all file systems have them all."""
        path = self.mktemp()
        Path(path).touch()
        real = os.stat(path)
        parts = ("st_mode", "st_dev", "st_ino", "st_mtime_ns", "st_ctime_ns", "st_size")
        same = {name: getattr(real, name) for name in parts}
        before = signature_of(path)
        for name in parts[1:]:
            other = SimpleNamespace(**(same | {name: same[name] + 1}))
            self.patch(file_signatures.os, "stat", lambda _, other=other: other)
            self.assertNotEqual(before, signature_of(path), name)

    def test_errors(self) -> None:
        """Why a file can't be looked at is a part of it: a directory may have come where there was none."""
        Path(path := self.mktemp()).touch()
        self.assertNotEqual(signature_of(self.mktemp()), signature_of(f"{path}/below"))

    def test_readable(self) -> None:
        """Whether this process may read it is a part of it, whoever it runs as."""
        path = self.mktemp()
        Path(path).touch()
        before = signature_of(path)
        self.patch(os, "access", lambda *_, effective_ids: not effective_ids)
        self.assertNotEqual(before, signature_of(path))

    def test_link(self) -> None:
        """That of a link is that of the file that it leads to, be it by a link to a directory that is switched."""
        top = Path(self.mktemp())
        found = []
        for name in ("one", "two"):
            (top / name).mkdir(parents=True)
            (top / name / "file").write_text("same")
        (top / "data").symlink_to("one")
        (top / "file").symlink_to("data/file")
        found.append(signature_of(str(top / "file")))
        (top / "new").symlink_to("two")
        os.replace(top / "new", top / "data")
        self.assertNotEqual(found[0], signature_of(str(top / "file")))

    def test_directory(self) -> None:
        """That of a directory changes with each data file in it, be it written in place, renamed, or a dead link."""
        directory = Path(self.mktemp())
        directory.mkdir()
        found = [signature_of(str(directory))]
        (directory / "a.yaml").write_text("one")
        found.append(signature_of(str(directory)))
        (directory / "a.yaml").write_text("longer")
        found.append(signature_of(str(directory)))
        (directory / "b.yml").symlink_to("nowhere")
        found.append(signature_of(str(directory)))
        (directory / "b.yml").rename(directory / "c.yml")
        found.append(signature_of(str(directory)))
        self.assertEqual(5, len(set(found)))
        names = os.listdir(directory)
        for order in (sorted(names), sorted(names, reverse=True)):
            self.patch(os, "listdir", lambda _, order=order: order)
            self.assertEqual(found[-1], signature_of(str(directory)))

    def test_other_files(self) -> None:
        """Other files in a directory make no difference: what is received may be written there."""
        directory = Path(self.mktemp())
        directory.mkdir()
        before = signature_of(str(directory))
        (directory / "messages.jsonl").write_text("{}")
        self.assertEqual(before, signature_of(str(directory)))

    def test_no_name(self) -> None:
        """What can't be the name of a file has a signature, too."""
        self.assertEqual((), signature_of("a\0b"))
