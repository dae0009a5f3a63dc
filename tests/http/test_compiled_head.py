"""
Tests for the two ways in which L{webhookrx.http.head} reads a head: both give the same, whatever comes.
"""

from __future__ import annotations

import random
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.http import test_grammar, test_head
from tests.http.test_grammar import HEADS, PIECES
from webhookrx.errors import RequestRefused
from webhookrx.http import head as module
from webhookrx.http.head import parse_head
from webhookrx.intake.head import Peer
from webhookrx.settings import Limits
from webhookrx.speedups import compiled, in_order

PLAIN = Peer("192.0.2.7", 40000, False)
TLS = Peer("2001:db8::1", 443, True)

#: What senders and proxies send, that is for the compiled path.
USUAL = [
    test_grammar.GITHUB,
    b"POST /webhook-json HTTP/1.1\r\nHost: a.example\r\nUser-Agent: wrk/4.2\r\nContent-Length: 270\r\n\r\n",
    (
        b"POST /stripe HTTP/1.1\r\nContent-Type: application/json; charset=utf-8\r\nCache-Control: no-cache\r\n"
        b"User-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\r\nAccept: */*; q=0.5, application/xml\r\n"
        b"Stripe-Signature: t=1,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd\r\n"
        b"Content-Length: 3000\r\nConnection: close\r\nHost: receiver.example\r\n\r\n"
    ),
    (
        b"POST /okta HTTP/1.1\r\nHost: 192.0.2.1:8443\r\nX-Forwarded-For: 198.51.100.7, 192.0.2.9\r\n"
        b"X-Real-IP: 192.0.2.9\r\nConnection: Keep-Alive\r\nContent-Encoding: gzip\r\nAUTHORIZATION:Bearer t\t\r\n"
        b"content-length: 12 \r\nx-forwarded-for: \r\n\r\n"
    ),
    b"GET /healthz?verbose?a HTTP/1.1\r\nHost: [2001:db8::7]:8181\r\nUser-Agent: kube-probe/1.29\r\n\r\n",
    b'M-SEARCH /a//../b\\"{|}%zz? HTTP/1.1\r\nHost:\r\nX: \xc3\xa9\xff\ta  \t\r\nY:\r\n\r\n',
]
SHORT = b"POST /a?b HTTP/1.1\r\nHost: a\r\nX-A: b c\r\nContent-Length: 1\r\n\r\n"


class _Counting:
    """The compiled path, with a count of what it takes."""

    def __init__(self) -> None:
        self.taken = 0

    def parse_head(self, *arguments: Any) -> Any:
        """Do what the compiled path does."""
        assert compiled is not None
        head = compiled.parse_head(*arguments)
        self.taken += head is not None
        return head


class _PathsCase(SynchronousTestCase):
    """Reads heads in both ways."""

    if compiled is None:
        skip = "the compiled path is not in use"

    def setUp(self) -> None:
        self.counting = _Counting()

    def outcome(self, path: object, data: bytes, peer: Peer, limits: Limits) -> str:
        """Return what comes of a head, in full, when it is read with a compiled path or without."""
        patch = self.patch(module, "compiled", path)
        try:
            return repr(parse_head(data, peer, limits))
        except RequestRefused as refused:
            return repr((refused.reason, refused.detail))
        finally:
            patch.restore()

    def assert_same(self, data: bytes, peer: Peer = PLAIN, **limits: int) -> None:
        """Both give the same: a head with the same fields, a refusal of the same words, or nothing yet."""
        allowed = Limits(**limits)
        expected = self.outcome(None, data, peer, allowed)
        self.assertEqual(expected, self.outcome(self.counting, data, peer, allowed), data)


class SameHeadTests(_PathsCase):
    """The compiled path gives the head that the grammar gives, or leaves it to the grammar."""

    @given(
        st.sampled_from([*USUAL, *HEADS]),
        st.lists(st.tuples(st.integers(0, 600), st.integers(0, 3), st.sampled_from(PIECES)), max_size=3),
        st.sampled_from([PLAIN, TLS]),
        st.binary(max_size=5),
    )
    def test_mutations(self, data: bytes, changes: list[tuple[int, int, bytes]], peer: Peer, body: bytes) -> None:
        """So it is with heads in which something is put in, taken out or exchanged."""
        for at, length, piece in changes:
            at %= len(data) + 1
            data = data[:at] + piece + data[at + length :]
        self.assert_same(data + body, peer)

    @given(st.binary(max_size=200))
    def test_any_bytes(self, junk: bytes) -> None:
        """So it is with any bytes, by themselves and among header lines."""
        self.assert_same(junk)
        self.assert_same(b"POST / HTTP/1.1\r\nHost: a\r\n" + junk + b"\r\n\r\n")

    def test_many(self) -> None:
        """So it is with thousands of mutations, at limits that some of them keep, and with bodies of any kind."""
        chance = random.Random(14)
        for number in range(12_000):
            data = chance.choice(USUAL if number % 4 else HEADS)
            for _ in range(chance.choice((0, 1, 1, 2))):
                at = chance.randrange(len(data) + 1)
                data = data[:at] + chance.choice(PIECES) + data[at + chance.randrange(3) :]
            limits = {}
            if chance.random() < 0.3:
                limits["target"] = chance.randrange(1, 30)
            if chance.random() < 0.3:
                limits["header_block"] = len(data) + chance.randrange(-2, 3)
            if chance.random() < 0.3:
                limits["headers"] = chance.randrange(1, 10)
            self.assert_same(data + chance.choice((b"", b"{}", b"\r\n\r\n")), chance.choice((PLAIN, TLS)), **limits)
        self.assertGreater(self.counting.taken, 3_000)

    def test_every_byte_everywhere(self) -> None:
        """So it is with each single byte in the place of another, at each place."""
        for at in range(len(SHORT)):
            for byte in range(256):
                self.assert_same(SHORT[:at] + bytes([byte]) + SHORT[at + 1 :])
        self.assertGreater(self.counting.taken, 2_000)

    def test_beginnings(self) -> None:
        """Of a head that is not complete neither makes anything, wherever it ends."""
        for data in USUAL:
            for end in range(len(data)):
                self.assert_same(data[:end])
        self.assertEqual(0, self.counting.taken)

    def test_long_values(self) -> None:
        """So it is with each byte at each place of a value that is long enough to be looked at in blocks."""
        for at in range(40):
            for byte in b"\x00\x08\t\n\r\x1f \x7e\x7f\x80\xff":
                for value in (b"a" * 40, b"a" * 39 + b" ", b"\t" * 40):
                    line = b"X: " + value[:at] + bytes([byte]) + value[at:]
                    self.assert_same(b"POST / HTTP/1.1\r\nHost: a\r\n" + line + b"\r\n\r\n")

    def test_limits(self) -> None:
        """The compiled path takes what is at a limit, and nothing beyond."""
        for data in USUAL:
            head = parse_head(data, PLAIN, Limits())
            assert head is not None
            at = {"target": len(head.target), "header_block": head.size, "headers": len(list(head.headers))}
            for name, limit in at.items():
                for beside, taken in ((0, 1), (1, 1), (-1, 0)):
                    self.counting.taken = 0
                    self.assert_same(data + b"body", **{name: max(1, limit + beside)})
                    self.assertEqual(taken, self.counting.taken, (name, beside, data))

    def test_limits_of_any_size(self) -> None:
        """A limit that is larger than any memory is one that every head keeps."""
        for data in USUAL:
            self.counting.taken = 0
            self.assert_same(data, target=1 << 70, header_block=1 << 80)
            self.assertEqual(1, self.counting.taken)


class TakenTests(_PathsCase):
    """Which heads the compiled path takes."""

    def taken(self, data: bytes) -> bool:
        """Return whether it takes a head."""
        self.counting.taken = 0
        self.assert_same(data)
        return bool(self.counting.taken)

    def test_usual(self) -> None:
        """It takes what senders and proxies send."""
        for data in USUAL:
            self.assertTrue(self.taken(data), data)

    def test_framing(self) -> None:
        """It takes a plain Host, a Content-Length of 18 digits, and a connection that is kept or closed."""
        table = [
            (b"", True),
            (b"Content-Length: " + b"9" * 18, True),
            (b"Content-Length: " + b"0" * 18, True),
            (b"Content-Length: " + b"0" * 19, False),
            (b"Content-Length: 1\r\nContent-Length: 1", False),
            (b"Content-Length: 0x1", False),
            (b"Content-Length:", False),
            (b"Connection: KEEP-alive \t\r\nConnection: close", True),
            (b"Connection: close, keep-alive", False),
            (b"Connection: upgrade", False),
            (b"Connection:", False),
            (b"Transfer-Encoding: chunked", False),
            (b"Expect: 100-continue", False),
            (b"Host: b", False),
        ]
        for lines, taken in table:
            data = b"POST / HTTP/1.1\r\nHost: a\r\n" + lines + b"\r\n\r\n"
            self.assertEqual(taken, self.taken(data if lines else data[:-2]), lines)

    def test_hosts(self) -> None:
        """It takes every Host that is well-formed, and no other."""
        table = [
            *(
                (host, True)
                for host in (b"a", b"a:", b"a:65535", b":1", b"[::1]", b"[::ffff:1.2.3.4]:1", b"%c3;=,()~_")
            ),
            *((host, False) for host in (b"a:123456", b"a:b", b"a/b", b"a b", b"a@b", b"[]", b"[::1", b"[g]", b"a]")),
        ]
        for host, taken in table:
            self.assertEqual(taken, self.taken(b"POST / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"), host)

    def test_other_forms(self) -> None:
        """It leaves other forms of targets, other versions and the method of proxies to the grammar."""
        table = [
            (b"OPTIONS * HTTP/1.1", False),
            (b"POST http://a/ HTTP/1.1", False),
            (b"POST / HTTP/1.0", False),
            (b"CONNECT / HTTP/1.1", False),
            (b"CONNECTS / HTTP/1.1", True),
            (b"M" * 32 + b" / HTTP/1.1", True),
            (b"M" * 33 + b" / HTTP/1.1", False),
        ]
        for line, taken in table:
            self.assertEqual(taken, self.taken(line + b"\r\nHost: a\r\n\r\n"), line)

    @given(
        st.sets(st.text("abz-", min_size=1, max_size=4), max_size=12),
        st.lists(st.text("aAbBzZ-", min_size=1, max_size=4), max_size=6),
    )
    def test_collected(self, wanted: set[str], there: list[str]) -> None:
        """The values are collected of the lines that have one of the names, in any case, and of no others."""
        assert compiled is not None
        names = in_order(name.encode() for name in wanted)
        lines = "".join(f"{name}: {number}\r\n" for number, name in enumerate(there))
        block = f"POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n".encode()
        found = compiled.parse_head(
            block, 9, 9999, 99, None, 0, 0, b"POST", names, {}, bytes, lambda *fields: fields[5]
        )
        expected: dict[bytes, list[bytes]] = {}
        for number, name in enumerate(there):
            if name.lower() in wanted:
                expected.setdefault(name.lower().encode(), []).append(b"%d" % number)
        self.assertEqual(expected, found)

    def test_keeps_nothing(self) -> None:
        """Nothing of a head is held once it is gone."""
        peer = Peer("192.0.2.8", 1, False)
        counted = (peer, module._NOTHING, module._NAMES[0], module._NAMES)
        before = [sys.getrefcount(thing) for thing in counted]
        for data in (*USUAL, *HEADS[:-1], USUAL[3][:-2], USUAL[3].replace(b"length", b"length: 1\r\nhost")):
            for _ in range(100):
                self.outcome(self.counting, data, peer, Limits())
        changes = [abs(was - sys.getrefcount(thing)) for was, thing in zip(before, counted, strict=True)]
        # Others in this process may take or leave one; a head that keeps one, or drops one too many, does it 100 times.
        self.assertLess(max(changes), 50, changes)

    def test_wrong_arguments(self) -> None:
        """Arguments of another number or type are an error, and so is what the types raise."""
        assert compiled is not None
        call: Any = compiled.parse_head
        good = [SHORT, 99, 999, 9, PLAIN, 2, 0, b"POST", module._NAMES, {}, bytes, lambda *fields: fields]
        self.assertEqual((b"POST", b"/a", b"b", SHORT, PLAIN, {}, len(SHORT), 1, 2), call(*good))
        self.assertRaises(TypeError, call, *good[:-1])
        for at, wrong in (
            (0, "text"),
            (0, bytearray(SHORT)),
            (1, "1"),
            (7, None),
            (8, [b"a"]),
            (8, ("a",)),
            (11, None),
        ):
            self.assertRaises(TypeError, call, *good[:at], wrong, *good[at + 1 :])


class _PureCase(SynchronousTestCase):
    """The compiled path is not in use."""

    def setUp(self) -> None:
        self.patch(module, "compiled", None)


class PureAcceptedHeadTests(_PureCase, test_head.AcceptedHeadTests):
    """Heads that are well-formed, read by the grammar."""


class PureRefusedHeadTests(_PureCase, test_head.RefusedHeadTests):
    """Heads that are malformed or doubtful, read by the grammar."""


class PureDifferentialTests(_PureCase, test_grammar.DifferentialTests):
    """The grammar and llhttp."""


class PureLazyTests(_PureCase, test_grammar.LazyTests):
    """What is taken apart only when somebody asks, without the compiled path."""


class PureLinearTests(_PureCase, test_grammar.LinearTests):
    """No head costs more than its bytes, without the compiled path."""
