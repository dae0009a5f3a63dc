"""Tests for L{webhookrx.senders.signatures.named_secrets}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.senders.signatures.named_secrets import (
    MAX_SECRETS,
    NamedSecret,
    SecretError,
    doubt_about,
    read_secret_lines,
    read_secrets,
)


class ReadSecretsTests(SynchronousTestCase):
    """A file of secrets."""

    def test_lines(self) -> None:
        """A line is a name and a value, or else all of it is the value of its number."""
        text = "\ufeff# ours\nold = It's = 1\n\n  bGluZQ==  \nnew\t=  x y\r\nIt's a = b\n"
        self.assertEqual(
            [("old", b"It's = 1"), ("4", b"bGluZQ=="), ("new", b"x y"), ("6", b"It's a = b")],
            [(each.name, each.value) for each in read_secrets(text)],
        )
        self.assertEqual([2, 4, 5, 6], [line for line, _ in read_secret_lines(text)])

    def test_bytes(self) -> None:
        """Bytes that are not UTF-8 are kept."""
        (secret,) = read_secrets(b"a = \xff\xe4".decode("utf-8", "surrogateescape"))
        self.assertEqual(b"\xff\xe4", secret.value)

    def test_files(self) -> None:
        """A value that begins with an at sign names a file where files are read, and is a secret elsewhere."""
        (key,) = read_secrets("k = @/etc/key.pem", lambda path: path.encode() + b"!")
        self.assertEqual(b"/etc/key.pem!", key.value)
        (key,) = read_secrets("k = @/etc/key.pem")
        self.assertEqual(b"@/etc/key.pem", key.value)

    def test_mistakes(self) -> None:
        """What is wrong is told with its line, and never with a secret."""
        for text, line, words in (
            ("", 0, "no secret"),
            ("# none\n", 0, "no secret"),
            ("a = 1\nb = 2\na = 3\n", 3, "two secrets"),
            ("hunter2\na = ", 2, "no value"),
            ("x\n" * (MAX_SECRETS + 1), MAX_SECRETS + 1, "more than 16"),
        ):
            error = self.assertRaises(SecretError, read_secrets, text)
            self.assertEqual(line, error.line)
            self.assertIn(words, str(error))
            self.assertNotIn("hunter2", str(error))

    def test_repr(self) -> None:
        """The repr of a secret shows its name alone."""
        self.assertEqual("<NamedSecret a>", repr(NamedSecret("a", b"hunter2")))

    def test_verify_tokens(self) -> None:
        """The names of verify tokens are reserved for them."""
        names = ("verify-token", "verify-token.2", "verify-tokens", "token")
        self.assertEqual([True, True, False, False], [NamedSecret(name, b"x").is_verify_token for name in names])


class DoubtAboutTests(SynchronousTestCase):
    """
    Tests for L{doubt_about}.
    """

    def doubts(self, line: str) -> str:
        (secret,) = read_secrets(line)
        return doubt_about(secret, 1)

    def test_names_that_are_none(self) -> None:
        """A line whose beginning looks like a name, but is a part of the secret, is doubtful."""
        for line in ("main=hunter2", "main =hunter2", "main: hunter2", "my main = hunter2", "main= hunter2"):
            self.assertIn("write NAME = VALUE", self.doubts(line), line)
            self.assertNotIn("hunter2", self.doubts(line))

    def test_quotes(self) -> None:
        """Quotes around a secret belong to it, which is hardly meant."""
        for line in ('main = "hunter2"', "'hunter2'"):
            self.assertEqual("The quotes are taken for a part of the secret.", self.doubts(line), line)

    def test_no_doubt(self) -> None:
        """A secret as services show it is none."""
        for line in ("main = a=b", "c2VjcmV0cw==", "whsec_c2VjcmV0cw==", "user:pass", "main = x: y", '"', "a/b=c"):
            self.assertEqual("", self.doubts(line), line)
