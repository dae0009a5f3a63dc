"""Tests for L{webhookrx.operations.file_watch}."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.files import Signature, signature_of
from webhookrx.operations.file_watch import FileWatch


class FileWatchTests(SynchronousTestCase):
    """What counts as a change, and when."""

    def setUp(self) -> None:
        self.files: dict[str, Signature] = {"a": (1,), "b": (1,)}
        self.watch = FileWatch(lambda path: self.files[path])
        self.watch.use(self.files)

    def test_nothing(self) -> None:
        """Files that stay as they are are no change."""
        self.assertEqual([False, False], [self.watch.tick(), self.watch.tick()])

    def test_settled(self) -> None:
        """A change counts once it has stayed for a look, and it counts once."""
        self.files["b"] = (2,)
        self.assertEqual([False, True, False], [self.watch.tick() for _ in range(3)])

    def test_being_written(self) -> None:
        """A file that changes at each look is being written."""
        for size in range(2, 6):
            self.files["a"] = (size,)
            self.assertFalse(self.watch.tick())
        self.assertTrue(self.watch.tick())

    def test_back_again(self) -> None:
        """What is as it was before is no change."""
        self.files["a"] = (2,)
        self.watch.tick()
        self.files["a"] = (1,)
        self.assertEqual([False, False], [self.watch.tick(), self.watch.tick()])

    def test_since_it_was_read(self) -> None:
        """What has changed between being read and being watched counts; what was read as it is does not."""
        self.files |= {"a": (2,), "c": (7,)}
        for read, changed in (({"c": (0,), "a": (2,)}, True), ({"c": (7,), "a": (2,)}, False)):
            self.watch.use(read)
            self.assertEqual([False, changed, False], [self.watch.tick() for _ in range(3)])

    def test_about_to_be_read(self) -> None:
        """What is read whatever a look would say is no change any more; what changes from then on is one."""
        self.files["a"] = (2,)
        self.watch.tick()
        self.watch.read()
        self.assertEqual([False, False], [self.watch.tick(), self.watch.tick()])
        self.files["a"] = (3,)
        self.assertEqual([False, True], [self.watch.tick(), self.watch.tick()])

    def test_earlier_looks(self) -> None:
        """What was seen before files are read, or watched anew, does not make a change settled."""
        for begin in (self.watch.read, lambda: self.watch.use({"a": (1,), "b": (1,)})):
            self.files["a"] = (2,)
            self.watch.tick()
            self.files["a"] = (1,)
            begin()
            self.files["a"] = (2,)
            self.assertEqual([False, True, False], [self.watch.tick() for _ in range(3)])
            self.files["a"] = (1,)
            self.watch.use(self.files)

    def test_none(self) -> None:
        """There may be nothing to watch."""
        self.watch.use({})
        self.files["a"] = (2,)
        self.assertEqual([False, False], [self.watch.tick(), self.watch.tick()])

    def test_real_files(self) -> None:
        """Without another look it is that at the files themselves."""
        path = self.mktemp()
        watch = FileWatch()
        watch.use({path: signature_of(path)})
        self.assertFalse(watch.tick())
        Path(path).touch()
        self.assertEqual([False, True, False], [watch.tick() for _ in range(3)])
