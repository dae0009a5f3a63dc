"""
Tests for L{webhookrx.management.bundle}.
"""

from __future__ import annotations

import base64
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import BundleRefused
from webhookrx.management.bundle import (
    MOST_BYTES,
    BundleRouter,
    RouterBundle,
    digest,
    key_id,
    open_bundle,
    public_key,
    public_text,
    seal,
)

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
KEYS = {key_id(KEY.public_key()): KEY.public_key()}
GUID = "0b0e4c9e-8a4f-4c57-9d5e-3d2f5b6a7c80"
BUNDLE = RouterBundle(
    guid=GUID,
    revision=7,
    made_at=1_795_000_000_000_000_000,
    router=BundleRouter("fra-1", {"site": "fra"}),
    rules="connector_rules: []\n",
    authorities=("-----BEGIN CERTIFICATE-----\n",),
    signing_keys=(public_text(KEY.public_key()),),
    masks=("pin",),
)
SEALED = seal(BUNDLE, KEY)


class OpenBundleTests(SynchronousTestCase):
    """Tests for L{open_bundle} and L{seal}."""

    def assert_refused(self, envelope: bytes, why: str, guid: str = GUID, newest: tuple[int, str] = (0, "")) -> None:
        """Assert that an envelope is refused, with a reason that quotes nothing of the bundle."""
        error = self.assertRaises(BundleRefused, open_bundle, envelope, KEYS, guid, newest)
        self.assertIn(why, str(error))
        self.assertNotIn("fra-1", str(error))

    def test_round_trip(self) -> None:
        """What was sealed is opened with the public key, as it was."""
        self.assertEqual(open_bundle(SEALED, KEYS, GUID), BUNDLE)

    def test_same_bytes(self) -> None:
        """One bundle is one envelope, byte for byte."""
        self.assertEqual(seal(replace(BUNDLE, router=BundleRouter("fra-1", {"site": "fra"})), KEY), SEALED)

    @given(st.integers(0, len(SEALED) - 1), st.integers(1, 255))
    def test_changed_byte(self, index: int, change: int) -> None:
        """An envelope in which any byte is another one is refused."""
        changed = bytearray(SEALED)
        changed[index] ^= change
        self.assertRaises(BundleRefused, open_bundle, bytes(changed), KEYS, GUID)

    @given(st.integers(0, len(SEALED) - 1))
    def test_cut_off(self, length: int) -> None:
        """The beginning of an envelope is refused."""
        self.assertRaises(BundleRefused, open_bundle, SEALED[:length], KEYS, GUID)

    @given(st.integers(0, len(SEALED)), st.sampled_from([b" ", b"\n", b"\0", b"{}"]))
    def test_added_bytes(self, index: int, added: bytes) -> None:
        """An envelope with more bytes in any place is refused, blanks included."""
        self.assertRaises(BundleRefused, open_bundle, SEALED[:index] + added + SEALED[index:], KEYS, GUID)

    @given(st.binary(max_size=300))
    def test_noise(self, data: bytes) -> None:
        """Anything else is refused, and nothing else happens."""
        self.assertRaises(BundleRefused, open_bundle, data, KEYS, GUID)

    def test_foreign_key(self) -> None:
        """A bundle that another console has signed is refused."""
        self.assert_refused(seal(BUNDLE, OTHER_KEY), "a key that this router does not know")

    def test_borrowed_key_name(self) -> None:
        """The name of a known key does not help the signature of another one."""
        envelope = json.loads(seal(BUNDLE, OTHER_KEY))
        envelope["key"] = key_id(KEY.public_key())
        self.assert_refused(json.dumps(envelope, separators=(",", ":")).encode(), "signature of the bundle is wrong")

    def test_other_router(self) -> None:
        """The bundle of another router is refused."""
        self.assert_refused(SEALED, "for another router", guid=GUID.replace("0b", "1b"))

    def test_older(self) -> None:
        """A bundle that is older than the newest that the router has had is refused."""
        self.assert_refused(SEALED, "has revision 7; this router has had 8", newest=(8, ""))

    def test_same_revision(self) -> None:
        """The bundle that the router has is taken again; another one of its revision is refused."""
        self.assertEqual(open_bundle(SEALED, KEYS, GUID, (7, digest(SEALED))), BUNDLE)
        other = seal(replace(BUNDLE, rules="connector_rules: [] # 2\n"), KEY)
        self.assert_refused(other, "another one than this router has", newest=(7, digest(SEALED)))

    def test_other_format(self) -> None:
        """A format of a later version is refused by its number."""
        self.assert_refused(seal(replace(BUNDLE, format=2), KEY), "has format 2; this version reads 1")

    def test_unknown_member(self) -> None:
        """A signed payload with a member that this version does not know is refused, not half applied."""
        envelope = json.loads(SEALED)
        payload = json.loads(base64.b64decode(envelope["payload"])) | {"observers": ["file:/etc/passwd"]}
        text = json.dumps(payload, separators=(",", ":")).encode()
        kind = b"application/vnd.webhookrx.bundle+json"
        envelope["payload"] = base64.b64encode(text).decode()
        signature = KEY.sign(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(text), text))
        envelope["signature"] = base64.b64encode(signature).decode()
        self.assert_refused(json.dumps(envelope, separators=(",", ":")).encode(), "this version can't read it")

    def test_too_large(self) -> None:
        """What is larger than any bundle is refused before it is read."""
        self.assert_refused(b" " * (MOST_BYTES + 1), "larger than")


class PublicKeyTests(SynchronousTestCase):
    """Tests for L{public_key}."""

    def test_round_trip(self) -> None:
        """A public key is the same after it was a text."""
        self.assertEqual(key_id(public_key(public_text(KEY.public_key()))), key_id(KEY.public_key()))

    def test_wrong(self) -> None:
        """What is no key is a C{ValueError}."""
        for text in ("", "!", "AAAA", "A" * 44):
            with self.subTest(text):
                self.assertRaises(ValueError, public_key, text)
