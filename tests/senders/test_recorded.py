"""
Tests for L{webhookrx.senders.recorded}.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.senders.recorded import RecordingError, read_recorded


class ReadRecordedTests(SynchronousTestCase):
    """A request that was written to a file."""

    def test_request(self) -> None:
        """Request line, headers and body, with either kind of line ends."""
        text = b'POST /events/a?team=red&x=1&x=2 HTTP/1.1\nHost: h\nX-Event:  push \nX-Empty:\n\n{"a":\n\n1}\n'
        for data in (text, text.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + text):
            head, query, body = read_recorded(data)
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
            head, query, found = read_recorded(data)
            self.assertEqual((head.method, head.path, list(head.headers), found), (b"POST", path, headers, body))
            self.assertEqual(query, {})

    def test_body_alone(self) -> None:
        """What begins with a brace or a bracket is a body."""
        for data in (b'{"a": 1}', b"[1]", b" \n{}\n\n{}", b"\xef\xbb\xbf{}"):
            head, query, body = read_recorded(data)
            self.assertEqual((head.path, list(head.headers), query, body), (b"/", [], {}, data))

    def test_way_of_the_body(self) -> None:
        """Headers about how the body came are left out: it is here as it is."""
        data = b"X-A: 1\nContent-Encoding: gzip\nTransfer-Encoding: chunked\nContent-Length: 7\n\nbody"
        head, _, body = read_recorded(data)
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
            with self.assertRaises(RecordingError, msg=data) as caught:
                read_recorded(data)
            self.assertTrue(str(caught.exception).startswith(words), str(caught.exception))
            self.assertIsInstance(caught.exception, ValueError)

    @given(st.binary(max_size=60) | st.text("AB: \r\n{?=&%/", max_size=40).map(str.encode))
    @settings(max_examples=300, deadline=None, derandomize=True)
    def test_anything(self, data: bytes) -> None:
        """Any bytes are a recording or an error."""
        try:
            _, _, body = read_recorded(data)
        except RecordingError:
            return
        self.assertTrue(data.endswith(body))
