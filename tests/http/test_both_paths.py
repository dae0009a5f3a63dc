"""
Tests of whole requests: with the compiled path and without it they get the same answer and become the same message.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import Wire
from tests.senders.test_samples import DATA
from webhookrx.message.encoders import encode_line
from webhookrx.settings import Limits
from webhookrx.speedups import compiled

#: Header lines, without those that this test writes itself, and the body of each recorded request.
_SAMPLES = [
    (
        [line for line in head.split(b"\n")[1:] if not line.lower().startswith((b"content-", b"transfer-", b"host:"))],
        body,
    )
    for head, _, body in (
        path.read_bytes().replace(b"\r\n", b"\n").partition(b"\n\n")
        for path in sorted((DATA / "samples").glob("*.http"))
    )
]

_SOURCES: dict[str, dict[str, Any]] = {
    "/json": {"parse_json": True},
    "/prefix": {"parse_json": True, "prefix": "a.", "include_request_headers": True},
    "/proxy": {"parse_json": True, "prefix": "webhook.", "proxy_header": "x-forwarded-for", "keep_text": False},
    "/text": {"include_request_headers": True},
    "/(?P<HOST>[^/]+)/(?P<PROGRAM>.*)": {"parse_json": True, "keep_unparsed": False},
}

_PATHS = st.sampled_from(
    [b"/json", b"/prefix", b"/proxy?x=1&x=%20", b"/text?%41=b", b"/h%C3%A9/p", b"/a/", b"/none", b"/json#", b"/te xt"]
)
_LINES = st.sampled_from(
    [
        b"Cookie: a",
        b"Host: b",
        b"X-Forwarded-For: 198.51.100.7",
        b"Connection: close",
        b"Expect: x",
        b"A:\xff\t",
        b"A :",
    ]
)
_PIECES = st.sampled_from(
    [
        *(bytes([byte]) for byte in b'\0\t\n "\\/{}[]:,0-eE.\x7f\x80\xc2\xe2\xff'),
        *(b"\\u0000", b"\\u2028", b"\\ud83d\\ude00", b"\\ud800", "\u2028é😀\u0085".encode(), b"9" * 70, b"null"),
        *(b'{"HOST":"h","a":1}', b'"HOST":"",', b'"MESSAGE":[],', b'"webhook.query.a":1,', b'"RCPTID":0,', b'"a":{},'),
    ]
)


class WholeRequestTests(SynchronousTestCase):
    """Recorded requests, some of them changed, to each kind of source."""

    if compiled is None:
        skip = "the compiled path is not in use"

    def outcome(self, data: bytes) -> tuple[object, ...]:
        """Return all that comes of bytes on a connection."""
        wire = Wire(_SOURCES, Limits(body=200_000, header_block=2048, headers=25, target=512))
        sender = wire.connect()
        sender.send(data)
        wire.settle()
        return (
            [(message.line or encode_line(message), message.values) for message in wire.consumer.messages],
            (sender.transport.written, sender.transport.end),
            (wire.traffic.refusals, wire.traffic.details, wire.traffic.acceptances, wire.traffic.failures),
        )

    def assert_same(self, path: bytes, lines: list[bytes], body: bytes) -> None:
        """Messages, answers and what is counted are the same."""
        head = [b"POST %b HTTP/1.1" % path, b"Host: a", *lines, b"Content-Length: %d" % len(body)]
        data = b"\r\n".join([*head, b"", body])
        found = self.outcome(data)
        with ExitStack() as without:
            for name, module in list(sys.modules.items()):
                if name.startswith("webhookrx.") and getattr(module, "compiled", None) is compiled:
                    without.enter_context(patch.object(module, "compiled", None))
            self.assertEqual(self.outcome(data), found)

    def test_samples(self) -> None:
        """As they were recorded."""
        for lines, body in _SAMPLES:
            for path in (b"/json", b"/prefix", b"/proxy?a=b", b"/text", b"/h/p"):
                self.assert_same(path, lines, body)

    @given(
        st.sampled_from(_SAMPLES),
        _PATHS,
        st.lists(_LINES, max_size=2),
        st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 3), _PIECES), max_size=4),
    )
    def test_changed(
        self, sample: tuple[list[bytes], bytes], path: bytes, more: list[bytes], changes: list[tuple[int, int, bytes]]
    ) -> None:
        """With other lines in the head, and some bytes of the body exchanged."""
        lines, body = sample
        for at, length, piece in changes:
            at %= len(body) + 1
            body = body[:at] + piece + body[at + length :]
        self.assert_same(path, lines + more, body)
