"""
Tests for L{webhookrx.guard.delivery_key}.
"""

from __future__ import annotations

from hashlib import sha256

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.guard.delivery_key import KEY_SIZE, delivery_key


class DeliveryKeyTests(SynchronousTestCase):
    """
    Tests for L{delivery_key}.
    """

    def test_same(self) -> None:
        """The same delivery at the same source has the same key, in every process."""
        key = delivery_key("github", "72d3162e-cc78", "signature")
        self.assertEqual("1f5bb582c564255c35bdbfc88ac3c1ad", key.hex())
        self.assertEqual(KEY_SIZE, len(key))

    def test_different(self) -> None:
        """Another source, id, proof or body is another delivery, wherever one text ends and the next begins."""
        digests = [sha256(b"a").digest(), sha256(b"b").digest()]
        keys = [
            delivery_key("a", "bc", "no"),
            delivery_key("ab", "c", "no"),
            delivery_key("abc", "", "no"),
            delivery_key("", "abc", "no"),
            delivery_key("a", "c", "nob"),
            delivery_key("ano", "bc", ""),
            delivery_key("a", "bc", "token"),
            delivery_key("a", "bc", "no", digests[0]),
            delivery_key("a", "bc", "token", digests[0]),
            delivery_key("a", "bc", "no", digests[1]),
            delivery_key("a", "bc" + digests[0].decode("latin-1"), "no"),
            delivery_key("a", "1 2 0 ", "no"),
            delivery_key("a", "\udc80", "no"),
        ]
        self.assertEqual(len(keys), len(set(keys)))
