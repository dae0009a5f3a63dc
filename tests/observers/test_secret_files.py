"""Files that hold one secret."""

from __future__ import annotations

from twisted.python.filepath import FilePath
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.observers.secret_files import read_secret


class ReadSecretTests(SynchronousTestCase):
    """A file to its secret."""

    def read(self, content: bytes) -> str:
        """Write a file, and read it."""
        path = FilePath(self.mktemp())
        path.setContent(content)
        return read_secret(path.path, SpecOptions("redis", {}), "password_file")

    def test_secrets(self) -> None:
        """Line ends around it do not count; all else does, the sign of a comment too."""
        table = {
            b"tiger": "tiger",
            b"tiger\n": "tiger",
            b"tiger\r\n": "tiger",
            b"\n\ntiger\n\n": "tiger",
            b" a b # c ": " a b # c ",
            b"#tiger\n": "#tiger",
            b"\xef\xbb\xbftiger\n": "tiger",
            "schlüssel\n".encode(): "schlüssel",
        }
        for content, secret in table.items():
            self.assertEqual(secret, self.read(content), content)

    def test_mistakes(self) -> None:
        """A file that is not one line of text is refused, and nothing of it is quoted."""
        table = {
            b"": "holds 0 lines; it must hold one",
            b"\r\n\n": "holds 0 lines; it must hold one",
            b"tiger\nlion\n": "holds 2 lines; it must hold one",
            b"tiger\xff\n": "is not UTF-8",
            b"tiger\0\n": "holds a control character",
            b"tiger\rlion\n": "holds a control character",
        }
        for content, sentence in table.items():
            with self.subTest(content):
                text = str(self.assertRaises(ConfigError, self.read, content))
                self.assertIn("observer 'redis': password_file: ", text)
                self.assertIn(sentence, text)
                self.assertNotIn("tiger", text)

    def test_missing(self) -> None:
        """A file that is not there is an error that names observer and option."""
        error = self.assertRaises(ConfigError, read_secret, "/nowhere/at/all", SpecOptions("nats", {}), "creds_file")

        self.assertIn("observer 'nats': creds_file: ", str(error))
        self.assertIn("/nowhere/at/all", str(error))
