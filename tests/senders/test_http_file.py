"""
Tests for L{webhookrx.senders.http_file}.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.head import Head, HeaderLines, Peer
from webhookrx.senders.http_file import HttpFileError, read_http_file, recorded


class ReadRecordedTests(SynchronousTestCase):
    """A request that was written to a file."""

    def test_request(self) -> None:
        """Request line, headers and body, with either kind of line ends."""
        text = b'POST /events/a?team=red&x=1&x=2 HTTP/1.1\nHost: h\nX-Event:  push \nX-Empty:\n\n{"a":\n\n1}\n'
        for data in (text, text.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + text):
            head, query, body = read_http_file(data)
            self.assertEqual((head.method, head.path, head.query), (b"POST", b"/events/a", b"team=red&x=1&x=2"))
            self.assertEqual(list(head.headers), [(b"host", b"h"), (b"x-event", b"push"), (b"x-empty", b"")])
            self.assertEqual(query, {"team": "red", "x": ["1", "2"]})
            self.assertEqual(body, data.partition(b"\r\n\r\n" if b"\r" in data else b"\n\n")[2])

    def test_parts(self) -> None:
        """The request line, the headers and the body may be missing."""
        for data, path, headers, body in (
            (b"X-Event: push\n\nbody", b"/", [(b"x-event", b"push")], b"body"),
            (b"POST /a\n\n", b"/a", [], b""),
            (b"POST /a HTTP/1.1", b"/a", [], b""),
            (b"X-A: 1\n", b"/", [(b"x-a", b"1")], b""),
            (b"\nbody\n", b"/", [], b"body\n"),
            (b"", b"/", [], b""),
        ):
            head, query, found = read_http_file(data)
            self.assertEqual((head.method, head.path, list(head.headers), found), (b"POST", path, headers, body))
            self.assertEqual(query, {})

    def test_body_alone(self) -> None:
        """What begins with a brace or a bracket is a body."""
        for data in (b'{"a": 1}', b"[1]", b" \n{}\n\n{}", b"\xef\xbb\xbf{}"):
            head, query, body = read_http_file(data)
            self.assertEqual((head.path, list(head.headers), query, body), (b"/", [], {}, data))

    def test_way_of_the_body(self) -> None:
        """Headers about how the body came are left out: it is here as it is."""
        data = b"X-A: 1\nContent-Encoding: gzip\nTransfer-Encoding: chunked\nContent-Length: 7\n\nbody"
        head, _, body = read_http_file(data)
        self.assertEqual((list(head.headers), body), ([(b"x-a", b"1")], b"body"))

    def test_bad(self) -> None:
        """What is no recording is told in one sentence, with the line."""
        for data, words in {
            b"plain text": "Line 1 is",
            b"POST /a HTTP/1.1\nPOST /b HTTP/1.1\n\n": "Line 2 is",
            b"X-A: 1\n folded\n\n": "Line 2 is",
            b"X A: 1\n\n": "Line 1 is",
            b"POST /a?x=%ff HTTP/1.1\n\n": "The query in line 1 ",
        }.items():
            with self.assertRaises(HttpFileError, msg=data) as caught:
                read_http_file(data)
            self.assertTrue(str(caught.exception).startswith(words), str(caught.exception))
            self.assertIsInstance(caught.exception, ValueError)

    @given(st.binary(max_size=60) | st.text("AB: \r\n{?=&%/", max_size=40).map(str.encode))
    def test_anything(self, data: bytes) -> None:
        """Any bytes are a recording or an error."""
        try:
            _, _, body = read_http_file(data)
        except HttpFileError:
            return
        self.assertTrue(data.endswith(body))


class RecordedTests(SynchronousTestCase):
    """A request that is written to a file."""

    def head(self, *lines: bytes, path: bytes = b"/events/a", query: bytes = b"") -> Head:
        """Return a head with these lines."""
        block = b"\r\n".join([b"POST / HTTP/1.1", *lines, b"", b""])
        return Head(b"POST", path, query, HeaderLines(block), Peer("192.0.2.1", 1, False))

    def test_whole(self) -> None:
        """What is written is read as what it was, whatever the body is."""
        lines = (b"X-GitHub-Event: push", "x-name: ž".encode(), b"x-latin: \xe9", b"x-empty:", b"A: 1", b"a: 2")
        head = self.head(*lines, query=b"a=1&b=%20&&c")
        for body in (b"", b"{}", b"\xff\x00\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n"):
            found, query, read = read_http_file(recorded(head) + body)
            self.assertEqual((b"POST", b"/events/a", b"a=1&b=%20&&c"), (found.method, found.path, found.query))
            self.assertEqual((list(head.headers), body), (list(found.headers), read))
            self.assertEqual("1", query["a"])

    def test_masks(self) -> None:
        """What lets somebody in is masked, in headers and in the query; signatures and their times are not."""
        kept = (
            b"X-Hub-Signature-256: sha256=ab", b"X-Slack-Signature: v0=ab", b"X-Slack-Request-Timestamp: 1700000000",
            b"Webhook-Id: msg_1", b"Webhook-Timestamp: 1700000000", b"Webhook-Signature: v1,ab",
            b"Stripe-Signature: t=1,v1=ab",
        )  # fmt: skip
        secret = (
            b"Authorization: Bearer CANARY", b"Cookie: CANARY", b"X-Gitlab-Token: CANARY", b"X-Api-Key: CANARY",
            b"X-Amz-Firehose-Access-Key: CANARY",
        )  # fmt: skip
        query = b"token=CANARY&api_key=CANARY&API%5FKEY=CANARY&code=CANARY&sig=CANARY&team=ops&token"
        text = recorded(self.head(*kept, *secret, query=query)) + b"{}"
        self.assertNotIn(b"CANARY", text)
        for line in kept:
            self.assertIn(b"\r\n" + line + b"\r\n", text)
        self.assertIn(b"\r\nAuthorization: ***\r\n", text)
        self.assertTrue(
            text.startswith(
                b"POST /events/a?token=***&api_key=***&API%5FKEY=***&code=***&sig=***&team=ops&token HTTP/1.1\r\n"
            )
        )

    def test_of_the_wire(self) -> None:
        """How the body was packed for its way is left out, since it is written unpacked."""
        text = (
            recorded(self.head(b"Content-Encoding: gzip", b"Content-Length: 7", b"Transfer-Encoding: chunked")) + b"x"
        )
        self.assertEqual(b"POST /events/a HTTP/1.1\r\n\r\nx", text)
