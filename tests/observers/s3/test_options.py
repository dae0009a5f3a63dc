"""The spec string of the s3 observer, and its file of credentials."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import ConfigError
from webhookrx.observers.s3.observer import build_s3
from webhookrx.observers.s3.options import S3Target, read_credentials, read_s3

URL = "s3://logs/in"


def read(url: str = URL, **options: str) -> S3Target:
    """Read a spec string."""
    return read_s3([url], options)


class OptionTests(SynchronousTestCase):
    """What it takes, and what not."""

    def problem(self, url: str = URL, **options: str) -> str:
        """Read a spec string that is wrong; return what is said."""
        return str(self.assertRaises(ConfigError, read, url, **options))

    def test_defaults(self) -> None:
        """Without options: NDJSON with zstd, by day and hour, of 16 MiB or five minutes."""
        target = read()

        self.assertEqual(("logs", "in/", None, None), (target.bucket, target.prefix, target.endpoint, target.region))
        self.assertEqual(("dt=%Y-%m-%d/hh=%H/", "ndjson", "zstd"), (target.name, target.format, target.compress))
        self.assertEqual((16 * 1024**2, 300.0), (target.size, target.age))
        self.assertEqual("", read("s3://logs").prefix)

    def test_wrong_url(self) -> None:
        """A URL that names no bucket, or holds a password, is a mistake."""
        self.assertIn("takes one URL, s3:s3://BUCKET/PREFIX", str(self.assertRaises(ConfigError, read_s3, [], {})))
        self.assertIn("takes one URL", self.problem("https://s3.example.com/logs"))
        for url in ("s3://", "s3://x", "s3://a b", "s3:///logs", "s3://-logs"):
            self.assertIn("is no name of a bucket", self.problem(url))
        for url in ("s3://logs/a b", "s3://logs//a", "s3://logs/../a", "s3://logs/a?b", "s3://logs/" + "x" * 501):
            self.assertIn("the prefix", self.problem(url))
        said = self.problem("s3://key:hunter2@logs/in")
        self.assertIn("no user or password in the URL", said)
        self.assertNotIn("hunter2", said)

    def test_endpoint_without_backslashes(self) -> None:
        """The colons of an endpoint need backslashes, which is said where they were forgotten; nothing is quoted."""
        args = [URL, "//key:hunter2@minio", "9000"]
        said = str(self.assertRaises(ConfigError, read_s3, args, {"endpoint": "https"}))

        self.assertIn(r"a colon in the value of an option is written \:, as in endpoint=https\://HOST\:9000", said)
        self.assertNotIn("hunter2", said)

    def test_endpoint(self) -> None:
        """Another service is reached with TLS; without only on this machine, or where that is allowed."""
        self.assertEqual("https://minio:9000", read(endpoint="https://minio:9000/").endpoint)
        self.assertTrue(read(endpoint="http://127.0.0.1:9000").is_plain)
        self.assertTrue(read(endpoint="http://minio:9000", allow_plaintext="yes").is_plain)
        self.assertIn("would show a session token", self.problem(endpoint="http://minio:9000"))
        for endpoint in ("minio:9000", "ftp://minio", "https://", "https://minio/x", "https://minio?x", "https://m:0"):
            self.assertIn("endpoint", self.problem(endpoint=endpoint))
        self.assertIn("malformed", self.problem(endpoint="https://[::1"))
        said = self.problem(endpoint="https://key:hunter2@minio")
        self.assertNotIn("hunter2", said)

    def test_limits(self) -> None:
        """An object is of 64 MiB at most."""
        self.assertEqual(64 * 1024**2, read(size="64MiB").size)
        self.assertIn("64 MiB or less", self.problem(size="65MiB").replace("64MiB", "64 MiB"))

    def test_names(self) -> None:
        """A name has safe characters, and directives for the time only."""
        for name in ("", "%Y/%m/%d/%H/%M/", "year=%Y/day=%j/", "logs-"):
            self.assertEqual(name, read(name=name).name)
        for name in ("%s", "%", "/x", "a//b", "a b", "../", "%Y%"):
            self.assertIn("it takes letters, digits", self.problem(name=name))

    def test_words(self) -> None:
        """Other options are checked as everywhere."""
        for options in ({"format": "csv"}, {"compress": "none"}, {"region": "Frankfurt"}, {"template": "${"}):
            self.assertIn(next(iter(options)), self.problem(**options))


class CredentialsTests(SynchronousTestCase):
    """The file."""

    def write(self, text: str) -> str:
        """Write one."""
        path = os.path.abspath(self.mktemp())
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_read(self) -> None:
        """It is as AWS's own programs have it; with one section only, that is taken."""
        both = "aws_access_key_id = K\naws_secret_access_key = a/b%c+d==\n"
        for text in (f"[default]\n{both}", f"# x\n[profile-x]\n{both}", f"[other]\nx=1\n[default]\n{both}"):
            found = read_credentials(self.write(text))

            self.assertEqual(("K", "a/b%c+d==", None), (found.key_id, found.secret, found.token))
        found = read_credentials(self.write(f"[default]\n{both}aws_session_token=T\n"))
        self.assertEqual("T", found.token)
        self.assertNotIn("a/b%c", repr(found))

    def test_wrong(self) -> None:
        """A file without credentials is a mistake, and nothing of it is quoted."""
        for text in (
            "hunter2",
            "[default]\nhunter2\n",
            "[default]\naws_access_key_id=hunter2\n",
            "[a]\nx=hunter2\n[b]\n",
            "[default]\naws_access_key_id=hunter2\naws_secret_access_key=hunter2é\n",
            "",
        ):
            error = self.assertRaises(ConfigError, read_credentials, self.write(text))
            self.assertIn("credentials_file", str(error))
            self.assertNotIn("hunter2", str(error))

    def test_missing(self) -> None:
        """A file that is not there is a mistake when the observer is made."""
        error = self.assertRaises(ConfigError, build_s3, "s3:x", [URL], {"credentials_file": "/nosuch"}, "durable")

        self.assertIn("credentials_file: '/nosuch' does not exist", str(error).replace('"', "'"))
