"""
Tests for L{webhookrx.http.head}.
"""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import RequestRefused
from webhookrx.http.answers import KEEP
from webhookrx.http.grammar import check_beginning, grammar
from webhookrx.http.head import RequestHead, parse_head
from webhookrx.intake.head import Peer
from webhookrx.settings import Limits

HOST = b"Host: receiver\r\n"


def parse(block: bytes, secure: bool = False, **limits: int) -> RequestHead:
    """Parse with the default limits, but for those given."""
    head = parse_head(block, Peer("192.0.2.7", 40000, secure), Limits(**limits))
    assert head is not None
    return head


def request(lines: bytes = HOST, first: bytes = b"POST /in HTTP/1.1\r\n") -> bytes:
    """Return a head of that first line and those header lines."""
    return first + lines + b"\r\n"


class AcceptedHeadTests(SynchronousTestCase):
    """Heads that are well-formed."""

    def test_parts(self) -> None:
        """Method, target and headers come out; names in lower case, values without white space around them."""
        head = parse(request(HOST + b"X-A:  b c \t\r\nX-A:\r\nContent-Length: 5\r\n", b"PUT /a?b=%20 HTTP/1.1\r\n"))

        self.assertEqual(
            (b"PUT", b"/a?b=%20", 5, KEEP, False, False),
            (
                head.method,
                head.target,
                head.content_length,
                head.connection,
                head.http_1_0,
                head.expects_continue,
            ),
        )
        self.assertEqual(
            [(b"host", b"receiver"), (b"x-a", b"b c"), (b"x-a", b""), (b"content-length", b"5")], list(head.headers)
        )

    def test_framing(self) -> None:
        """Where the body ends follows from the headers."""
        table: list[tuple[bytes, int | None, bool]] = [
            (b"", 0, False),
            (b"Content-Length: 0\r\n", 0, False),
            (b"Content-Length: 007\r\n", 7, True),
            (b"Content-Length: 12 \r\n", 12, True),
            (b"Content-Length: " + b"9" * 19 + b"\r\n", 10**19 - 1, True),
            (b"Transfer-Encoding: chunked\r\n", None, True),
            (b"transfer-encoding: CHUNKED\r\n", None, True),
        ]
        for lines, length, has_body in table:
            head = parse(request(HOST + lines))
            self.assertEqual((length, has_body), (head.content_length, head.has_body), lines)

    def test_keep_alive(self) -> None:
        """A connection stays by default on HTTP/1.1, on request on HTTP/1.0, and never against the sender's word."""
        table = [
            (b"1.1", b"", True),
            (b"1.1", b"Connection: close\r\n", False),
            (b"1.1", b"Connection: x, Close\r\n", False),
            (b"1.1", b"Connection: closed\r\n", True),
            (b"1.0", b"", False),
            (b"1.0", b"Connection: Keep-Alive\r\n", True),
            (b"1.0", b"Connection: keep-alive, close\r\n", False),
            (b"1.0", b"Connection: keep-alive\r\nConnection: close\r\n", False),
            (b"1.0", b"Connection: close\r\nConnection: keep-alive\r\n", False),
            (b"1.1", b"Connection: close\r\nConnection: keep-alive\r\n", False),
        ]
        for version, lines, expected in table:
            head = parse(request(HOST + lines, b"POST / HTTP/" + version + b"\r\n"))
            self.assertEqual((version == b"1.0", expected), (head.http_1_0, head.connection >= KEEP), (version, lines))

    def test_targets(self) -> None:
        """A target of this receiver comes out in origin-form."""
        table = [
            (b"/", False, b"/"),
            (b"//a/../b?x#".rstrip(b"#"), False, b"//a/../b?x"),
            (b'/%zz{|}"<>\\^`', False, b'/%zz{|}"<>\\^`'),
            (b"http://receiver/in?a=1", False, b"/in?a=1"),
            (b"HTTP://receiver:8181", False, b"/"),
            (b"http://receiver?a=1", False, b"/?a=1"),
            (b"https://[::1]:443/in", True, b"/in"),
        ]
        for target, secure, expected in table:
            head = parse(request(first=b"POST " + target + b" HTTP/1.1\r\n"), secure)
            self.assertEqual(expected, head.target, target)
        self.assertEqual(b"*", parse(request(first=b"OPTIONS * HTTP/1.1\r\n")).target)

    def test_hosts(self) -> None:
        """Every well-formed Host passes; HTTP/1.0 may do without."""
        for host in (b"a", b"a:80", b"a:", b"", b"[::1]", b"[::1]:8181", b"192.0.2.1:1", b"a_b.example", b"%C3%A9"):
            parse(request(b"Host: " + host + b"\r\n"))
        parse(request(b"", b"POST / HTTP/1.0\r\n"))

    def test_methods_nobody_knows(self) -> None:
        """A method is any token, known to llhttp or not, so that it can be refused for what it is."""
        for method in (b"FOO", b"post", b"M-SEARCH", b"DESCRIBE", b"!#$", b"A" * 32):
            head = parse(request(HOST + b"Content-Length: 3\r\n", method + b" /in HTTP/1.1\r\n"))
            self.assertEqual((method, b"/in", 3), (head.method, head.target, head.content_length))

    def test_protocol_switch_is_ignored(self) -> None:
        """An Upgrade is as if it had not been asked for; the body is still the body."""
        head = parse(request(HOST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nContent-Length: 3\r\n"))

        self.assertEqual((3, KEEP), (head.content_length, head.connection))

    def test_expectation(self) -> None:
        """100-continue is known in any case, and is nothing to an HTTP/1.0 sender."""
        self.assertTrue(parse(request(HOST + b"Expect: 100-Continue\r\n")).expects_continue)
        self.assertFalse(parse(request(HOST + b"Expect: 100-continue\r\n", b"POST / HTTP/1.0\r\n")).expects_continue)
        for lines, expected in ((b"", False), (b"Expect: x\r\n", True), (b"Expect: 100-continue, x\r\n", True)):
            self.assertEqual(expected, parse(request(HOST + lines)).expects_other)

    def test_bytes_over_127_in_values(self) -> None:
        """They are allowed in a value (obs-text, RFC 9110 §5.5)."""
        self.assertIn((b"a", b"\xc3\xa9"), list(parse(request(HOST + b"A: \xc3\xa9\r\n")).headers))


class RefusedHeadTests(SynchronousTestCase):
    """Heads that are malformed or doubtful."""

    def assert_refused(self, status: int, block: bytes, **options: Any) -> None:
        """Parsing that head is refused with that status."""
        with self.assertRaises(RequestRefused) as caught:
            parse(block, **options)
        self.assertEqual(status, caught.exception.reason.status, block[:80])

    def test_doubtful_headers(self) -> None:
        """What another server may read in another way is refused."""
        for lines in (
            b"",
            HOST + HOST,
            b"Host: a b\r\n",
            b"Host: a/b\r\n",
            b"Host: a b/c?\r\n",
            b"Host: a@b\r\n",
            b"Host: [::1\r\n",
            HOST + b"A: b\r\n folded\r\n",
            HOST + b"Transfer-Encoding:\r\n chunked\r\n",
            HOST + b"A : b\r\n",
            HOST + b": b\r\n",
            HOST + b"no colon\r\n",
            b" Host: a\r\n",
            HOST + b"A: b\x00c\r\n",
            HOST + b"A: b\rc\r\n",
            HOST + b"A: b\x01c\r\n",
            HOST + b"A: b\nC: d\r\n",
            HOST + b"A\xff: b\r\n",
            HOST + b"Content-Length: 1\r\nContent-Length: 1\r\n",
            HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n",
            HOST + b"Content-Length: 1, 1\r\n",
            HOST + b"Content-Length: 1 1\r\n",
            HOST + b"Content-Length: +1\r\n",
            HOST + b"Content-Length: -1\r\n",
            HOST + b"Content-Length: 0x10\r\n",
            HOST + b"Content-Length: 1_0\r\n",
            HOST + b"Content-Length: \xb2\r\n",
            HOST + b"Content-Length:\r\n",
            HOST + b"Content-Length: " + b"9" * 30 + b"\r\n",
            HOST + b"Content-Length: " + b"9" * 4400 + b"\r\n",
            HOST + b"Content-Length: 18446744073709551615\r\n",
            HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
            HOST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            HOST + b"Transfer-Encoding: identity\r\n",
            HOST + b"Transfer-Encoding: identity\r\nContent-Length: 3\r\n",
            HOST + b"Transfer-Encoding: gzip, chunked\r\n",
            HOST + b"Transfer-Encoding: chunked, chunked\r\n",
            HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            HOST + b"Transfer-Encoding: xchunked\r\n",
            HOST + b"Transfer-Encoding: chunked;q=1\r\n",
            HOST + b"Transfer-Encoding: \x0bchunked\r\n",
            HOST + b"Transfer-Encoding: chunked\t\r\n",
            HOST + b"Transfer-Encoding: chunked\t \r\n",
            HOST + b"Transfer-Encoding:\r\n",
        ):
            self.assert_refused(400, request(lines))

    def test_doubtful_first_lines(self) -> None:
        """A request line has three parts with one blank between them, and one of two versions."""
        for first in (
            b"POST /\r\n",
            b"POST / HTTP/0.9\r\n",
            b"POST / HTTP/1.2\r\n",
            b"POST / HTTP/2.0\r\n",
            b"POST / HTTP/3\r\n",
            b"PRI * HTTP/2.0\r\n",
            b"POST / http/1.1\r\n",
            b"POST / RTSP/1.0\r\n",
            b"DESCRIBE / RTSP/1.0\r\n",
            b"SOURCE / ICE/1.0\r\n",
            b"POST  / HTTP/1.1\r\n",
            b"POST /  HTTP/1.1\r\n",
            b"POST\t/ HTTP/1.1\r\n",
            b"POST / HTTP/1.1 \r\n",
            b" POST / HTTP/1.1\r\n",
            b"POST /a b HTTP/1.1\r\n",
            b"POST /a#b HTTP/1.1\r\n",
            b"POST /a\x01 HTTP/1.1\r\n",
            b"POST /a\x7f HTTP/1.1\r\n",
            b"POST /a\xc3\xa9 HTTP/1.1\r\n",
            b"POST * HTTP/1.1\r\n",
            b"POST in HTTP/1.1\r\n",
            b"POST https://receiver/in HTTP/1.1\r\n",
            b"POST ftp://receiver/in HTTP/1.1\r\n",
            b"POST http:///in HTTP/1.1\r\n",
            b"POST http://:80/in HTTP/1.1\r\n",
            b"POST http://a@b/in HTTP/1.1\r\n",
            b"CONNECT receiver:443 HTTP/1.1\r\n",
            b"CONNECT /in HTTP/1.1\r\n",
            b"A" * 33 + b" / HTTP/1.1\r\n",
            b"PO(ST / HTTP/1.1\r\n",
            b"POST / HTTP/1.1\n",
        ):
            self.assert_refused(400, request(first=first))

    def test_absolute_form_agrees_with_the_connection(self) -> None:
        """By TLS an absolute-form target says https."""
        self.assert_refused(400, request(first=b"POST http://receiver/ HTTP/1.1\r\n"), secure=True)

    def test_http_1_0_is_not_chunked(self) -> None:
        """HTTP/1.0 knows no Transfer-Encoding."""
        self.assert_refused(400, request(HOST + b"Transfer-Encoding: chunked\r\n", b"POST / HTTP/1.0\r\n"))

    def test_limits(self) -> None:
        """At a limit a head passes; one more and it is refused with the status of that limit."""
        parse(request(first=b"POST /" + b"a" * 99 + b" HTTP/1.1\r\n"), target=100)
        self.assert_refused(414, request(first=b"POST /" + b"a" * 100 + b" HTTP/1.1\r\n"), target=100)
        self.assert_refused(414, request(first=b"POST /" + b"a" * 400 + b" HTTP/1.1\r\n"), target=100)
        block = request(HOST + b"A: " + b"b" * 100 + b"\r\n")
        parse(block, header_block=len(block))
        self.assert_refused(431, block, header_block=len(block) - 1)
        # What follows a head is none of it, also where its size is all that lets its other fault be seen.
        wrong = request(HOST + b"A : b\r\n")
        self.assert_refused(400, wrong + b"\r\n\r\nPOST", header_block=len(wrong))
        parse(request(HOST + b"A: b\r\n" * 99))
        self.assert_refused(431, request(HOST + b"A: b\r\n" * 100))

    def test_limits_of_malformed_heads(self) -> None:
        """A head is refused for what is wrong with it, unless its first line is longer than any may be."""
        wrong = HOST + b"A : b\r\n"
        for method in (b"POST", b"M" * 32):
            self.assert_refused(400, request(wrong, method + b" /" + b"a" * 99 + b" HTTP/1.1\r\n"), target=100)
        longest = b"POST /" + b"a" * (100 + 64 - 6)
        self.assert_refused(400, request(first=longest + b"\r\n"), target=100)
        self.assert_refused(414, request(first=longest + b"a\r\n"), target=100)

    def test_grammar_is_made_once(self) -> None:
        """Heads with the same limit are read by the same expression."""
        self.assertIs(grammar(7), grammar(7))

    def test_detail_never_echoes(self) -> None:
        """What the sender wrote does not come back in the detail."""
        for block in (
            request(HOST + b"CANARY : b\r\n"),
            request(HOST + b"A: CANARY\x01\r\n"),
            request(first=b"CANARY(/ HTTP/1.1\r\n"),
        ):
            with self.assertRaises(RequestRefused) as caught:
                parse(block)
            self.assertNotIn("CANARY", caught.exception.detail)

    @settings(suppress_health_check=[HealthCheck.differing_executors])  # runs without the compiled path, too
    @given(st.binary(max_size=200))
    def test_any_bytes(self, junk: bytes) -> None:
        """Whatever comes, it is a head or it is refused."""
        for block in (junk + b"\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\n" + junk + b"\r\n\r\n"):
            with contextlib.suppress(RequestRefused):
                self.assertIsInstance(parse(block), RequestHead)


class BeginningTests(SynchronousTestCase):
    """Heads that are not complete yet."""

    def test_what_may_go_on(self) -> None:
        """The beginning of a good head is waited on."""
        whole = request(HOST)
        for length in range(1, len(whole) - 4):
            check_beginning(whole[:length], 100, 1000)

    def test_tls(self) -> None:
        """Who speaks TLS to a port that does not is told apart, with a whole head's end in it or not."""
        for read, data in (
            (lambda data: check_beginning(data, 100, 1000), b"\x16\x03\x01\x02\x00\x01"),
            (parse, b"\x16\x03\x03\r\n\r\n"),
        ):
            with self.assertRaises(RequestRefused) as caught:
                read(data)
            self.assertEqual("This is TLS, and the port speaks plain HTTP.", caught.exception.detail)

    def test_what_can_not_go_on(self) -> None:
        """What can't become a request within the limits is refused at once."""
        for status, beginning in (
            (400, b"\x16\x03\x01\x02\x00\x01"),
            (400, b"A" * 33),
            (400, b"POST / HTTP/1.1\nHost: a\n\n"),
            (414, b"POST /" + b"a" * 200),
            (414, b"POST /" + b"a" * 200 + b" HTTP/1.1\r\nHost:"),
            (431, b"POST / HTTP/1.1\r\nA: " + b"b" * 1000),
        ):
            with self.assertRaises(RequestRefused) as caught:
                check_beginning(beginning, 100, 1000)
            self.assertEqual(status, caught.exception.reason.status, beginning[:40])

    def test_size(self) -> None:
        """As many bytes as a head may have are waited on, and no more."""
        beginning = b"POST / HTTP/1.1\r\nA: ".ljust(1000, b"b")
        check_beginning(beginning, 100, 1000)
        with self.assertRaises(RequestRefused) as caught:
            check_beginning(beginning + b"b", 100, 1000)
        self.assertEqual(431, caught.exception.reason.status)

    def test_what_was_seen(self) -> None:
        """What was looked at is not looked at again, and what is wrong is found wherever a read has ended."""
        for beginning in (b"POST / HTTP/1.1\nA", b"POST / HTTP/1.1\r\nA: b\nC", b"POST / HTTP/1.1\r\nA: b\r\n\nC"):
            end = beginning.rindex(b"\n")
            for seen in range(end + 1):
                with self.assertRaises(RequestRefused):
                    check_beginning(beginning, 100, 1000, seen)
            check_beginning(beginning, 100, 1000, end + 1)
        for seen in range(len(HOST)):
            check_beginning(b"POST / HTTP/1.1\r\n" + HOST, 100, 1000, seen)
