"""The spec string of the http observer, and its files of tokens and header fields."""

from __future__ import annotations

import os
import re

from twisted.trial.unittest import SynchronousTestCase

from tests.documents import read as read_document
from webhookrx.errors import ConfigError
from webhookrx.message.encoders import encode_line
from webhookrx.observers.batch_limits import BatchLimits
from webhookrx.observers.client_tls import ClientTLS
from webhookrx.observers.http_stores.http import HTTP_SPEC, PlainHTTP, read_http
from webhookrx.observers.http_stores.options import HTTPTarget, read_headers, read_token
from webhookrx.testing import make_message

URL = "https://logs.example.com/in?x=1"


def read(url: str = URL, **options: str) -> HTTPTarget:
    """Read a spec string that is taken apart."""
    return read_http((url,), options)[0]


def read_store(**options: str) -> PlainHTTP:
    """Read what is sent there."""
    return read_http((URL,), options)[1]


class ReadHTTPTests(SynchronousTestCase):
    """Texts to values."""

    def test_defaults(self) -> None:
        """A URL is enough."""
        target, store = read(), read_store()

        self.assertEqual(HTTPTarget("http", URL, "logs.example.com", ClientTLS()), target)
        self.assertEqual(PlainHTTP(format="ndjson", limits=BatchLimits(500, 1024 * 1024)), store)
        self.assertEqual(("POST", "application/x-ndjson"), (target.method, store.content_type))
        self.assertEqual((10.0, 10.0), (target.timeout, target.retry_for))
        self.assertEqual(("durable", ""), (store.promise, store.promise_reason))

    def test_everything(self) -> None:
        """Each option has its value."""
        options = {
            "format": "json",
            "batch": "7",
            "batch_size": "10KiB",
            "gzip": "yes",
            "method": "PUT",
            "content_type": "application/vnd.x+json",
            "token_file": "/t",
            "auth_scheme": "Token",
            "headers_file": "/h",
            "ca_file": "/ca",
            "cert_file": "/c",
            "key_file": "/k",
            "allow_plaintext": "no",
            "timeout": "3s",
            "retry_for": "1m",
        }

        target = read(**options)
        files = [(each.option, each.path) for each in target.secrets]
        self.assertEqual([("token_file", "/t"), ("headers_file", "/h")], files)
        self.assertEqual(
            HTTPTarget(
                name="http",
                url=URL,
                host="logs.example.com",
                tls=ClientTLS("/ca", "/c", "/k"),
                secrets=target.secrets,
                method="PUT",
                timeout=3.0,
                retry_for=60.0,
            ),
            target,
        )
        self.assertEqual(
            PlainHTTP(
                format="json",
                limits=BatchLimits(7, 10240),
                gzip=True,
                render=encode_line,
                content_type="application/vnd.x+json",
            ),
            read_store(**options),
        )
        self.assertEqual({*HTTP_SPEC.options}, {*options, "template"})

    def test_content_types(self) -> None:
        """Each format has its media type, and a template is text."""
        for options, expected in [
            ({"format": "ndjson"}, "application/x-ndjson"),
            ({"format": "json"}, "application/json"),
            ({"format": "each"}, "application/json"),
            ({"template": "$MESSAGE"}, "text/plain; charset=utf-8"),
            ({"template": "$MESSAGE", "format": "lines"}, "text/plain; charset=utf-8"),
            ({"template": "$MESSAGE", "content_type": "text/csv"}, "text/csv"),
        ]:
            with self.subTest(options):
                self.assertEqual(expected, read_store(**options).content_type)

    def test_template(self) -> None:
        """A template makes the text of each message, which goes alone unless lines are asked for."""
        store = read_store(template="<$MESSAGE>")

        self.assertEqual(b"<hello>\n", store.render(make_message()))
        self.assertEqual(("each", BatchLimits(1), False), (store.format, store.limits, store.distinct))
        lines = read_store(template="<$MESSAGE>", format="lines")
        self.assertEqual(("lines", BatchLimits(), False), (lines.format, lines.limits, lines.distinct))

    def test_distinct_templates(self) -> None:
        """Only a template with the unique id of a message, alone or among all pairs, tells any two apart."""
        for template, distinct in [
            ("$RCPTID $MESSAGE", True),
            ("${RCPTID}", True),
            ("${RCPTID:-none}", True),
            ("$(format-json)", True),
            ("$MESSAGE", False),
            ("RCPTID", False),
            ("$$RCPTID", False),
            ("$RCPTIDS", False),
            ("${RCPTIDS}", False),
        ]:
            with self.subTest(template):
                self.assertIs(distinct, read_store(template=template).distinct)

    def test_hosts(self) -> None:
        """The host of the URL is read as it is for certificates and for what is loopback."""
        for url, host in [
            ("https://logs.example.com:8443", "logs.example.com"),
            ("https://[::1]:8443/", "::1"),
            ("HTTPS://Example.COM/", "example.com"),
        ]:
            with self.subTest(url):
                self.assertEqual(host, read(url).host)

    def test_plaintext(self) -> None:
        """A secret goes over plain HTTP to the same machine, or where that is said to be right."""
        for url, options in [
            ("http://127.0.0.1:1/", {}),
            ("http://[::1]/", {}),
            ("http://localhost/", {}),
            ("http://archive.localhost/", {}),
            ("http://logs.example.com/", {"allow_plaintext": "yes"}),
        ]:
            with self.subTest(url):
                self.assertIsNone(read(url, token_file="/t", headers_file="/h", **options).tls)


class DocumentTests(SynchronousTestCase):
    """What the page says of the options."""

    def test_options(self) -> None:
        """Its table has each option and no other."""
        table = (
            read_document("docs/reference/http-observer.md").partition("## Options")[2].partition("\n\n| `format` |")[0]
        )
        rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)

        self.assertEqual({*HTTP_SPEC.options}, {name for row in rows for name in re.findall(r"`(\w+)`", row)})


class RefusedTests(SynchronousTestCase):
    """What can't be meant is an error that says what is allowed."""

    def test_urls(self) -> None:
        """A URL must be one that a request can be sent to as it is written."""
        for url, problem in [
            ("", "takes one URL"),
            ("logs.example.com/in", "does not begin with http"),
            ("ftp://logs.example.com/", "does not begin with http"),
            ("https:///in", "names no host"),
            ("https://h:0/", "port 0"),
            ("https://h:66000/", "is malformed"),
            ("https://[::1/", "is malformed"),
            ("https://h/a b", "a space"),
            ("https://h/\u00e9", "beyond ASCII"),
            ("https://h/in#part", "fragment"),
        ]:
            with self.subTest(url):
                self.assertIn(problem, str(self.assertRaises(ConfigError, read, url)))

    def test_password(self) -> None:
        """A password in the URL is refused, and not repeated."""
        for url in ("https://user:s3cret@h/", "https://s3cret@h", "http://us er:s3cret@h/#x", "http:u:s3cret@h"):
            with self.subTest(url):
                error = str(self.assertRaises(ConfigError, read, url))

                self.assertIn("token_file=", error)
                self.assertNotIn("s3cret", error)

    def test_mistyped_password(self) -> None:
        """Nor where the URL is not one, whatever is wrong with it."""
        for url in (
            "//user:s3cret@h/x",
            "https:/user:s3cret@h/",
            "https:////user:s3cret@h/",
            "https://user:se/s3cret@h/",
            "https://[h/s3cret@h/",
            "https://h:s3/cret:s3cret@h/",
            "https://h/ s3cret@h/",
            "https://h/#s3cret@h",
            "ftp://h/s3cret@h",
        ):
            with self.subTest(url):
                self.assertNotIn("s3cret", str(self.assertRaises(ConfigError, read, url)))

    def test_scheme_left_out(self) -> None:
        """With one C{http:} forgotten, the rest of the URL begins with slashes; the error says how to write it."""
        for url in ("//h/x", "//user:s3cret@h/x"):
            self.assertIn("http:http://HOST/PATH", str(self.assertRaises(ConfigError, read, url)))

    def test_at_sign_elsewhere(self) -> None:
        """An at sign in the path or the query is no password."""
        self.assertEqual(["h", "h"], [read(url).host for url in ("https://h/@me", "https://h?to=me@example.com")])

    def test_arguments(self) -> None:
        """There is one URL."""
        self.assertRaises(ConfigError, read_http, (), {})
        self.assertRaises(ConfigError, read_http, (URL, "x"), {})

    def test_options(self) -> None:
        """A value that is not allowed, or an option without its partner, is named."""
        for options, problem in [
            ({"format": "xml"}, 'format="xml" is not known; it takes ndjson, json, each or lines'),
            ({"format": "lines"}, "needs template="),
            ({"format": "json", "template": "x"}, "template= goes with format=each or format=lines"),
            ({"template": "${"}, "template="),
            ({"batch": "0"}, 'batch="0" is not a count; it takes a whole number from 1 on'),
            ({"batch": "many"}, 'batch="many" is not a count'),
            ({"batch_size": "0"}, 'batch_size="0" is not enough; it takes 1B or more'),
            ({"batch_size": "big"}, 'batch_size="big" is not a size; it takes bytes'),
            ({"format": "each", "batch": "2"}, "batch= does not go with format=each"),
            ({"template": "x", "batch_size": "2"}, "batch_size= does not go with format=each"),
            ({"gzip": "si"}, 'gzip="si" is not yes or no; it takes yes, on, true, no, off or false'),
            ({"method": "GET"}, 'method="GET" is not known; it takes POST or PUT'),
            ({"content_type": "a\nb"}, "it takes a media type"),
            ({"content_type": ""}, "it takes a media type"),
            ({"content_type": "\u00e9"}, "it takes a media type"),
            ({"auth_scheme": "Token"}, "auth_scheme= goes with token_file="),
            ({"auth_scheme": "two words", "token_file": "/t"}, "it takes one word"),
            ({"cert_file": "/c"}, "go together"),
            ({"key_file": "/k"}, "go together"),
            ({"timeout": "0"}, 'timeout="0" is not enough; it takes 1ms or more'),
            ({"timeout": "long"}, 'timeout="long" is not a length of time'),
            ({"retry_for": "-1"}, 'retry_for="-1" is not a length'),
            ({"allow_plaintext": "maybe"}, 'allow_plaintext="maybe"'),
        ]:
            with self.subTest(options):
                error = str(self.assertRaises(ConfigError, read, **options))

                self.assertIn(problem, error)
                self.assertTrue(error.startswith("observer 'http': "), error)

    def test_secrets_in_plaintext(self) -> None:
        """A secret does not go over plain HTTP to another machine."""
        for options in ({"token_file": "/t"}, {"headers_file": "/h"}):
            for url in ("http://logs.example.com/", "http://192.0.2.1/", "http://localhost.example.com/"):
                with self.subTest(f"{url} {options}"):
                    error = str(self.assertRaises(ConfigError, read, url, **options))

                    self.assertIn("allow_plaintext=yes", error)

    def test_tls_options_in_plaintext(self) -> None:
        """TLS options do not go with plain HTTP."""
        self.assertIn("https://", str(self.assertRaises(ConfigError, read, "http://h/", ca_file="/ca")))


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

        self.assertEqual([(b"Authorization", b"Token s3cret-\xc3\xa9")], read_token(path, "Token"))

    def test_wrong(self) -> None:
        """None, several, or one that can't be sent is an error that names the file and quotes nothing of it."""
        for content, problem in [
            (b"# nothing\n", "holds 0 tokens"),
            (b"s3cret\ns3cret2\n", "holds 2 tokens"),
            (b"s3cret two\n", "white space or control characters, which can't be sent"),
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
