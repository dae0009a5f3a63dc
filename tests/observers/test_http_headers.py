"""Tokens and header fields from files."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import ConfigError
from webhookrx.observers.http_headers import read_headers, read_token


class _FileTests(SynchronousTestCase):
    def write(self, content: bytes) -> str:
        """Write a file and return its path."""
        path = os.path.abspath(self.mktemp())
        with open(path, "wb") as file:
            file.write(content)
        return path


class ReadTokenTests(_FileTests):
    """One token."""

    def test_token(self) -> None:
        """It stands behind its scheme; comments and white space around are not part of it."""
        path = self.write(b"# for the archive\n\n  s3cret-\xc3\xa9 \r\n")

        self.assertEqual((b"Authorization", b"Token s3cret-\xc3\xa9"), read_token(path, "Token"))

    def test_wrong(self) -> None:
        """None, several, or one that can't be sent is an error that names the file and quotes nothing of it."""
        for content, problem in [
            (b"# nothing\n", "holds 0 tokens"),
            (b"s3cret\ns3cret2\n", "holds 2 tokens"),
            (b"s3cret two\n", "white space"),
            (b"s3cret\x00\n", "control characters"),
        ]:
            with self.subTest(problem):
                path = self.write(content)
                error = self.assertRaises(ConfigError, read_token, path, "Bearer")

                self.assertIn(problem, str(error))
                self.assertIn(path, str(error))
                self.assertNotIn("s3cret", str(error))

    def test_missing(self) -> None:
        """A file that is not there is an error that says so."""
        error = self.assertRaises(ConfigError, read_token, "/does/not/exist", "Bearer")

        self.assertIn("does not exist", str(error))


class ReadHeadersTests(_FileTests):
    """Fields, one a line."""

    def test_fields(self) -> None:
        """Each is a name and a value; names may come twice, and values may hold colons, spaces and any letters."""
        path = self.write(b"\xef\xbb\xbf# tenant\r\nX-Scope-OrgID: a b:c\t\r\n\nX-Key:k\xc3\xa9y\nX-Key:\t2\n")

        self.assertEqual(
            [(b"X-Scope-OrgID", b"a b:c"), (b"X-Key", b"k\xc3\xa9y"), (b"X-Key", b"2")], read_headers(path)
        )

    def test_wrong(self) -> None:
        """What is no field, or not one for a file to set, is an error with file and line that quotes no value."""
        for line, problem in [
            (b"s3cret", "line 2 is not a header field"),
            (b" X-Key: s3cret", "line 2 is not a header field"),
            (b"X-Key : s3cret", "line 2 is not a header field"),
            (b"X\xc3\xa9: s3cret", "line 2 is not a header field"),
            (b": s3cret", "line 2 is not a header field"),
            (b"X-Key:", "line 2: the value of X-Key is empty"),
            (b"X-Key: s3cret\rX-Other: 1", "line 2: the value of X-Key"),
            (b"X-Key: s3cret\x00", "line 2: the value of X-Key"),
            (b"content-length: 1", "line 2: content-length is set by the observer"),
            (b"Transfer-Encoding: chunked", "line 2: Transfer-Encoding is set by the observer"),
            (b"Idempotency-Key: s3cret", "line 2: Idempotency-Key is set by the observer"),
        ]:
            with self.subTest(line):
                path = self.write(b"X-Good: 1\n" + line + b"\n")
                error = self.assertRaises(ConfigError, read_headers, path)

                self.assertIn(problem, str(error))
                self.assertIn(path, str(error))
                self.assertNotIn("s3cret", str(error))

    def test_empty(self) -> None:
        """A file without a field is not what was meant."""
        self.assertIn("no header field", str(self.assertRaises(ConfigError, read_headers, self.write(b"# later\n"))))
