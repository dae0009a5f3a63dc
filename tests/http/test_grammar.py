"""
Tests for L{webhookrx.http.grammar} against llhttp: what one lets through, the other one reads in the same way.
"""

from __future__ import annotations

import contextlib
import random
import re
import time
from collections.abc import Callable

import httptools
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import Wire
from webhookrx.errors import TARGET_TOO_LONG, RequestRefused
from webhookrx.http.grammar import check_beginning
from webhookrx.http.head import RequestHead, parse_head
from webhookrx.intake.head import Peer
from webhookrx.settings import Limits

PEER = Peer("192.0.2.7", 40000, False)

GITHUB = (
    b"POST /events?a=%20b HTTP/1.1\r\n"
    b"Host: receiver.example:8181\r\n"
    b"Content-Type: application/json\r\n"
    b"User-Agent: GitHub-Hookshot/044aadd\r\n"
    b"Accept: */*\r\n"
    b"X-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-4c9367dc0958\r\n"
    b"X-Hub-Signature-256: sha256=d57c68ca6f92289e6987922ff26938930f6e66a2d161ef06abdf1859230aa23c\r\n"
    b"Authorization: Bearer s3cr3t\r\n"
    b"Connection: keep-alive\r\n"
    b"Content-Length: 311\r\n\r\n"
)
HEADS = [
    GITHUB,
    b"POST / HTTP/1.0\r\n\r\n",
    b"POST /in HTTP/1.1\r\nhost:a\r\ntransfer-encoding:\tchunked \r\nexpect: 100-continue\r\n\r\n",
    b"PUT http://receiver/in?x HTTP/1.1\r\nHOST: [::1]:80\r\nconnection: close, upgrade\r\nupgrade: h2c\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost:\r\nX-Forwarded-For: 192.0.2.1, 192.0.2.2\r\nX-Forwarded-For:192.0.2.3\r\n\r\n",
    b'M-SEARCH /a//b?c?d HTTP/1.1\r\nHost: a\r\nA: \xc3\xa9 : "x"\r\nB:\r\nContent-Encoding: GZip\r\n\r\n',
    b"POST /?# HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\nA : b\r\n folded\r\n\r\n",
]
#: What mutations put in: all that has a meaning somewhere in a head.
PIECES = [
    *(bytes([byte]) for byte in range(256)),
    *(b"\r\n", b"\r\n\r\n", b"\r", b"\n", b"\r\n ", b"\r\n\t", b"  ", b"\t", b": ", b" :", b"::", b",", b"\r\nA: b"),
    *(
        b"Content-Length: 5\r\n",
        b"content-length:5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Host: b\r\n",
        b"Host:\r\n",
    ),
    *(b"Connection: close\r\n", b"Expect: 100-continue\r\n", b"Expect: x\r\n", b"Upgrade: x\r\n", b"A: b\r\n" * 9),
    *(b"HTTP/1.0", b"HTTP/1.1", b"HTTP/2.0", b"HTTP/0.9", b"http://a", b"*", b"chunked", b"identity", b"0x5", b"+5"),
    *(b"99999999999999999999", b"/", b"?", b"#", b"%", b"\x00", b"\x7f", b"\x80", b"\xff", b"CONNECT", b"POST", b"GET"),
]


class _Collector:
    """Takes llhttp's callbacks for one head."""

    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value.rstrip(b" \t")))


def read_by_llhttp(block: bytes, method: bytes) -> _Collector:
    """
    Have llhttp read a head. It knows a list of methods and treats some in their own way, so it is shown C{POST}.

    @raise httptools.HttpParserError: it refuses it.
    """
    collector = _Collector()
    parser = httptools.HttpRequestParser(collector)
    with contextlib.suppress(httptools.HttpParserUpgrade):  # it would switch protocols, and has read the head
        parser.feed_data(b"POST" + block[len(method) :])
    return collector


def parse(block: bytes, count_limit: int = 100) -> RequestHead:
    """Parse a head that is complete."""
    head = parse_head(block, PEER, Limits(headers=count_limit))
    assert head is not None
    return head


class DifferentialTests(SynchronousTestCase):
    """Two readers of the same bytes."""

    def assert_agreed(self, block: bytes) -> bool:
        """What we let through llhttp lets through, and it reads the same; return whether we do."""
        end = block.find(b"\r\n\r\n") + 4
        if end < 4:
            self.assertIsNone(self.parsed(block))
            return False
        head = self.parsed(block)
        if head is None:
            return False
        self.assertEqual(end, head.size)
        read = read_by_llhttp(block[:end], head.method)
        self.assertEqual(read.headers, list(head.headers), block)
        if read.target.startswith((b"/", b"*")):
            self.assertEqual(read.target, head.target, block)
        for name, values in head.prefetched.items():
            self.assertEqual([value for key, value in read.headers if key == name], values)
        return True

    def parsed(self, block: bytes) -> RequestHead | None:
        """Return a head; None when it is refused or not complete."""
        try:
            return parse_head(block, PEER, Limits())
        except RequestRefused:
            return None

    @settings(suppress_health_check=[HealthCheck.differing_executors])  # runs without the compiled path, too
    @given(
        st.sampled_from(HEADS),
        st.lists(st.tuples(st.integers(0, 600), st.integers(0, 3), st.sampled_from(PIECES)), max_size=4),
    )
    def test_mutations(self, head: bytes, changes: list[tuple[int, int, bytes]]) -> None:
        """Heads with something put in, taken out or exchanged are refused, or read as llhttp reads them."""
        for at, length, piece in changes:
            at %= len(head) + 1
            head = head[:at] + piece + head[at + length :]
        self.assert_agreed(head)

    def test_every_byte_everywhere(self) -> None:
        """So it is with each single byte put in the place of another or between two, at each place."""
        head = b"POST /a?b HTTP/1.1\r\nHost: a\r\nX-A: b c\r\nContent-Length: 1\r\n\r\n"
        accepted = 0
        for at in range(len(head)):
            for byte in range(256):
                for length in (0, 1):
                    accepted += self.assert_agreed(head[:at] + bytes([byte]) + head[at + length :])
        self.assertGreater(accepted, 1000)

    def test_not_too_strict(self) -> None:
        """What we refuse and llhttp lets through is refused for a reason of ours, not by a slip of the grammar."""
        shuffle = random.Random(1)
        for _ in range(300):
            names = shuffle.sample([b"Accept", b"X_Y", b"x-1", b"!#$%&'*+.^`|~", b"Date", b"Cookie", b"Via"], 4)
            fields = [
                name
                + b":"
                + shuffle.choice([b"", b" ", b"\t", b"   "])
                + bytes(shuffle.choices([*range(0x20, 0x7F), *range(0x80, 0x100), 9], k=shuffle.randrange(40)))
                + b"\r\n"
                for name in names
            ]
            target = b"/" + bytes(shuffle.choices([0x21, 0x22, *range(0x24, 0x7F)], k=shuffle.randrange(40)))
            block = b"POST %b HTTP/1.1\r\nHost: a\r\n%b\r\n" % (target, b"".join(fields))
            self.assertTrue(self.assert_agreed(block), block)


class LazyTests(SynchronousTestCase):
    """What is taken apart only when somebody asks."""

    def test_again(self) -> None:
        """Header lines can be gone through more than once."""
        headers = parse(GITHUB).headers
        self.assertEqual((9, list(headers)), (len(list(headers)), list(headers)))

    def test_notable(self) -> None:
        """Lines that the decision asks for are there at once, as they were written, repeated ones in their order."""
        block = (
            b"POST / HTTP/1.1\r\nHost: a\r\nAUTHORIZATION: Bearer S3\r\nx-forwarded-for:192.0.2.1\r\n"
            b"Content-encoding: \tGZip \r\nX-Forwarded-For: 192.0.2.2\r\n\r\n"
        )
        expected = {
            b"authorization": [b"Bearer S3"],
            b"content-encoding": [b"GZip"],
            b"x-forwarded-for": [b"192.0.2.1", b"192.0.2.2"],
        }
        self.assertEqual(expected, dict(parse(block).prefetched))
        self.assertEqual({}, dict(parse(b"POST / HTTP/1.1\r\nHost: a\r\n\r\n").prefetched))

    def test_names_in_other_places(self) -> None:
        """A name that is part of another, of a value or of the target is not taken for one."""
        block = (
            b"POST /host:b?content-length:5 HTTP/1.1\r\nHost: a\r\nX-Host: b\r\nHosts: c\r\n"
            b"A: authorization: d, content-length: 5\r\nX-Authorization: e\r\n\r\n"
        )
        head = parse(block)
        self.assertEqual((0, {}), (head.content_length, dict(head.prefetched)))

    def test_what_follows(self) -> None:
        """The body is left alone, whatever it looks like; of a head that is not complete nothing is made."""
        head = parse(GITHUB + b"\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n\x00\xff")
        self.assertEqual((len(GITHUB), 311), (head.size, head.content_length))
        for end in range(len(GITHUB)):
            self.assertIsNone(parse_head(GITHUB[:end], PEER, Limits()))


class SentenceTests(SynchronousTestCase):
    """What is said of a head that is refused."""

    def test_limits(self) -> None:
        """What is wrong and too long as well is too long."""
        for status, block in (
            (414, b"POST /" + b"a" * 9000 + b"\r\n\r\n"),
            (431, b"POST / HTTP/1.1\r\nHost: a\r\nA : " + b"b" * 17000 + b"\r\n\r\n"),
        ):
            with self.assertRaises(RequestRefused) as caught:
                parse(block)
            self.assertEqual(status, caught.exception.reason.status)

    def test_sentences(self) -> None:
        """It says where to look."""
        fine = b"POST / HTTP/1.1\r\nHost: a\r\n"
        for block, sentence in (
            (b"PO(ST / HTTP/1.1\r\n", "This is not well-formed HTTP/1.1."),
            (b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n", "This receiver is not a proxy."),
            (b"POST / HTTP/2.0\r\nHost: a\r\n", "Only HTTP/1.1 and HTTP/1.0 are spoken here."),
            (b"POST  / HTTP/1.1\r\nHost: a\r\n", "The request line has more than two blanks."),
            (b"POST /# HTTP/1.1\r\n", "The request target holds a character that must be percent-encoded."),
            (fine + b"A : b\r\n", "Header line 2 is not well-formed."),
            (fine + b"A: b\r\n folded\r\n", "Header line 3 is not well-formed."),
            (fine + b"A: \x00\r\n" + b"A: b\r\n" * 100, "Header line 2 is not well-formed."),
            (fine + b"A: b\r\n" * 100, "There are more than 100 headers."),
        ):
            with self.assertRaises(RequestRefused) as caught:
                parse(block + b"\r\n")
            self.assertEqual(sentence, caught.exception.detail, block)


class LinearTests(SynchronousTestCase):
    """No head costs more than its bytes."""

    def cost(self, make: Callable[[int], bytes], size: int) -> float:
        """Return the seconds that such a head takes at best."""
        block, best = make(size), float("inf")
        for _ in range(5):
            began = time.process_time()
            try:
                head = parse_head(block, PEER, Limits(target=10**9, header_block=10**9, headers=10**6))
                list(head.headers if head is not None else ())
            except RequestRefused:
                pass
            best = min(best, time.process_time() - began)
        return best

    def test_linear(self) -> None:
        """A head of ten times the bytes takes ten times as long, whatever it is made of."""
        fine = b"POST / HTTP/1.1\r\nHost: a\r\n"
        shapes: list[Callable[[int], bytes]] = [
            lambda size: b"POST /" + b"a?" * size + b"# HTTP/1.1\r\n\r\n",
            lambda size: b"POST " + b"/ " * size + b" HTTP/1.1\r\n\r\n",
            lambda size: b"POST http://" + b"a" * size + b"/ HTTP/1.1\r\nHost: a\r\n\r\n",
            lambda size: b"POST http://a/" + b"?/" * size + b" HTTP/1.1\r\nHost: a\r\n\r\n",
            lambda size: fine + b"A:" + b" " * size + b"\x00\r\n\r\n",
            lambda size: fine + b"A:" + b" \t" * size + b"\r\n\r\n",
            lambda size: fine + b"Authorization:" + b" a" * size + b" \r\n\r\n",
            lambda size: fine + b"A" * size + b"\r\n\r\n",
            lambda size: fine + b"A:\r\n" * size + b"\x00\r\n\r\n",
            lambda size: fine + b"Connection:" + b" ,close" * size + b"\r\n\r\n",
            lambda size: fine + b"X-Forwarded-For:\r\n" * size + b"\r\n",
            lambda size: b"POST / HTTP/1.1\r\nHost:" + b"a" * size + b"/\r\n\r\n",
            lambda size: fine + b"A:" + b"b" * size,
        ]
        for number, make in enumerate(shapes):
            small, large = self.cost(make, 3_000), self.cost(make, 30_000)
            self.assertLess(large, 40 * small + 0.002, number)

    def test_many_reads(self) -> None:
        """A head that comes byte by byte costs in proportion to its bytes too."""
        wire = Wire(limits=Limits(header_block=10**6, headers=10**4))

        def cost(lines: int) -> float:
            sender, best = wire.connect(), float("inf")
            for _ in range(2):
                began = time.process_time()
                for byte in b"GET / HTTP/1.1\r\nHost: a\r\n" + b"A: %b\r\n" % (b"b" * 75) * lines + b"\r\n":
                    sender.protocol.dataReceived(b"%c" % byte)
                best = min(best, time.process_time() - began)
            self.assertEqual([405, 405], sender.statuses())
            return best

        self.assertLess(cost(800), 9 * cost(200))


class BeginningTests(SynchronousTestCase):
    """Heads that are not complete yet."""

    #: The longest that may stand beside a target, and a target of 100 bytes.
    LONGEST = b"M" * 32 + b" /" + b"a" * 99 + b" HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100 + b"\r\n\r\n"

    def test_longest_target(self) -> None:
        """A target as long as it may be passes, with whatever stands beside it, however much of it has come."""
        for length in range(1, len(self.LONGEST)):
            check_beginning(self.LONGEST[:length], 100, 1000)
        self.assertIsNotNone(parse_head(self.LONGEST, PEER, Limits(target=100, header_block=1000, headers=10)))

        wire = Wire(limits=Limits(target=100))
        for cut in (140, 142, 144, 146):
            sender = wire.connect()
            sender.send(self.LONGEST[:cut])
            self.assertEqual([], sender.statuses())
            sender.send(self.LONGEST[cut:])
            self.assertEqual([405], sender.statuses())

    def test_too_long(self) -> None:
        """A line that is longer than any with such a target is refused before it ends, and as soon as it has ended."""
        line = b"POST /" + b"a" * 200
        for data in (line, line + b" HTTP/1.1\r\nHost: a\r\n"):
            refused = self.assertRaises(RequestRefused, check_beginning, data, 100, 1000)
            self.assertIs(TARGET_TOO_LONG, refused.reason)
        check_beginning(line[:164], 100, 1000)
        self.assertRaises(RequestRefused, check_beginning, line[:165], 100, 1000)


class CorpusTests(SynchronousTestCase):
    """The samples are what they are meant to be."""

    def test_samples(self) -> None:
        """All but the last one, which is wrong in several ways, are let through."""
        for block in HEADS[:-1]:
            self.assertTrue(re.match(rb"[A-Z-]+", parse(block).method))
        with self.assertRaises(RequestRefused):
            parse(HEADS[-1])
