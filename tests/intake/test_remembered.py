"""
Tests for L{webhookrx.intake.remembered}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.remembered import Remembered


class RememberedTests(SynchronousTestCase):
    """What was found for a key that comes again."""

    def setUp(self) -> None:
        self.asked: list[bytes] = []

    def find(self, key: bytes) -> list[bytes] | None:
        """Return something new for each key but C{no}, and note that it was asked for."""
        self.asked.append(key)
        return None if key == b"no" else [key]

    def test_found_once(self) -> None:
        """What is looked up again is the very same object, and nobody looks for it again."""
        remembered = Remembered(self.find, most=2, longest=9)
        self.assertIs(remembered[b"a"], remembered[b"a"])
        self.assertEqual([b"a"], self.asked)

    def test_memory_is_bounded(self) -> None:
        """However many keys come, few are remembered, and no long one."""
        remembered = Remembered(self.find, most=2048, longest=256)
        for number in range(10_000):
            self.assertEqual([b"%d" % number], remembered[b"%d" % number])
            self.assertLessEqual(len(remembered), 2048)
        remembered = Remembered(self.find, most=2048, longest=256)
        for length in (8, 256, 257, 8192):
            self.assertEqual([b"x" * length], remembered[b"x" * length])
        self.assertEqual([8, 256], sorted(map(len, remembered)))

    def test_what_may_be_kept(self) -> None:
        """None is found anew each time, and so is what must not be kept."""
        remembered = Remembered(self.find, most=9, longest=9)
        self.assertEqual([None, None], [remembered[b"no"], remembered[b"no"]])
        self.assertEqual({}, remembered)
        strict = Remembered(self.find, most=9, longest=9, keeps=lambda found: found == [b"a"])
        self.assertEqual(([b"a"], [b"b"], None), (strict[b"a"], strict[b"b"], strict[b"no"]))
        self.assertEqual([b"a"], list(strict))
