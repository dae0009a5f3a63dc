"""
Tests for L{webhookrx.management.enrolment_token}.
"""

from __future__ import annotations

import hashlib

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.management.enrolment_token import EnrolmentToken, read_token

SECRET = "s3cret-of-32-characters_abcdefgh"
TOKEN = EnrolmentToken("e7", SECRET, "0f" * 32)


class EnrolmentTokenTests(SynchronousTestCase):
    """Tests for L{EnrolmentToken} and L{read_token}."""

    def test_round_trip(self) -> None:
        """A token is read from its text, with the end of the line of its file."""
        self.assertEqual(read_token(TOKEN.text + "\n"), TOKEN)

    def test_hidden(self) -> None:
        """No way to print a token shows its secret."""
        for text in (repr(TOKEN), str(TOKEN), f"{TOKEN}"):
            self.assertNotIn(SECRET, text)

    def test_digest(self) -> None:
        """A console keeps the SHA-256 of the secret."""
        self.assertEqual(TOKEN.secret_digest, hashlib.sha256(SECRET.encode()).hexdigest())

    def test_wrong(self) -> None:
        """Anything else is refused, with a sentence that quotes nothing of it."""
        for text in (
            "",
            f"wrx2.e7.{SECRET}.{'0f' * 32}",
            f"wrx1.e7.short.{'0f' * 32}",
            f"wrx1.e7.{SECRET}.{'0F' * 32}",
            f"wrx1.e7.{SECRET}.{'0f' * 31}",
            f"{TOKEN.text}.more",
            f"{TOKEN.text}\n{TOKEN.text}",
            TOKEN.text + "0" * 300,
        ):
            with self.subTest(text):
                error = self.assertRaises(ValueError, read_token, text)
                self.assertNotIn(SECRET, str(error))
