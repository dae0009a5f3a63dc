"""
Tests for L{webhookrx.intake.client_address}.
"""

from __future__ import annotations

import ipaddress
import time

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.client_address import ClientAddress, from_proxy_header, normal_ip

V6 = "2001:db8::1"

ONE_LINE: list[tuple[bytes, tuple[str, int | None]]] = [
    (b"203.0.113.7", ("203.0.113.7", None)),
    (b"  203.0.113.7\t", ("203.0.113.7", None)),
    (b"203.0.113.7:1234", ("203.0.113.7", 1234)),
    (b"203.0.113.7:0", ("203.0.113.7", 0)),
    (b"203.0.113.7:65535", ("203.0.113.7", 65535)),
    (b"2001:db8::1", (V6, None)),
    (b"2001:DB8:0:0::0001", (V6, None)),
    (b"[2001:db8::1]", (V6, None)),
    (b"[2001:db8::1]:99", (V6, 99)),
    (b"::1", ("::1", None)),
    (b"::", ("::", None)),
    (b"::ffff:1.2.3.4", ("1.2.3.4", None)),
    (b"::FFFF:0102:0304", ("1.2.3.4", None)),
    (b"[::ffff:1.2.3.4]:80", ("1.2.3.4", 80)),
    (b"1.1.1.1, 2.2.2.2", ("2.2.2.2", None)),
    (b"1.1.1.1,2.2.2.2:5", ("2.2.2.2", 5)),
    (b"unknown, 2.2.2.2", ("2.2.2.2", None)),
    (b"1.1.1.1, 2.2.2.2,", ("2.2.2.2", None)),
    (b"1.1.1.1, 2.2.2.2, , ,\t,", ("2.2.2.2", None)),
    (b", 2.2.2.2", ("2.2.2.2", None)),
    (b"\xff\xfe, 2.2.2.2", ("2.2.2.2", None)),
    (b"for=192.0.2.43", ("192.0.2.43", None)),
    (b"For=192.0.2.43;Proto=https;By=203.0.113.60", ("192.0.2.43", None)),
    (b"proto=http; for=192.0.2.43 ;by=_x", ("192.0.2.43", None)),
    (b';for=192.0.2.43;;proto="https";', ("192.0.2.43", None)),
    (b'for="192.0.2.43:47011"', ("192.0.2.43", 47011)),
    (b'FOR="[2001:db8:cafe::17]:4711"', ("2001:db8:cafe::17", 4711)),
    (b'for="[2001:db8:cafe::17]"', ("2001:db8:cafe::17", None)),
    (b'for="2001:db8:cafe::17"', ("2001:db8:cafe::17", None)),
    (b"for=[2001:db8::1]:80", (V6, 80)),
    (b'for="1\\.2.3\\.4"', ("1.2.3.4", None)),
    (b'for="::ffff:1.2.3.4"', ("1.2.3.4", None)),
    (b'for=1.1.1.1, for="[2001:db8::1]:7";host="a, b;for=6.6.6.6"', (V6, 7)),
    (b'for=1.1.1.1;host="x, y", for=2.2.2.2', ("2.2.2.2", None)),
    (b'for=2.2.2.2;host="a\\", for=6.6.6.6;x=\\"y"', ("2.2.2.2", None)),
    # What a client left open must not swallow what the proxy added.
    (b'", 2.2.2.2', ("2.2.2.2", None)),
    (b'for=6.6.6.6;x=", for="[2001:db8::1]:7"', (V6, 7)),
    (b'for="6.6.6.6;x=\\, for=2.2.2.2', ("2.2.2.2", None)),
]

NOT_AN_ADDRESS = [
    b"",
    b" ",
    b",",
    b", ,",
    b"unknown",
    b"1.1.1.1, unknown",
    b"_hidden",
    b"localhost",
    b"example.com:80",
    b"10.1",
    b"10",
    b"167772161",
    b"0x0a.0.0.1",
    b"1.2.3",
    b"1.2.3.4.5",
    b"1.2.3.256",
    b"01.2.3.4",
    b"1.2.3.04",
    b"1.2.3.4/24",
    b"1.2.3.4 5",
    b"1.2.3.4:",
    b"1.2.3.4:65536",
    b"1.2.3.4:123456",
    b"1.2.3.4:-1",
    b"1.2.3.4:+1",
    b"1.2.3.4: 1",
    b"1.2.3.4:http",
    b"1.2.3.4:_port",
    "1.2.3.4:١".encode(),
    "１.2.3.4".encode(),
    b"1.2.3.4\xff",
    b"1.2.3.4\x00",
    b"fe80::1%eth0",
    b"[fe80::1%eth0]:80",
    b"fe80::1%25eth0",
    b"[1.2.3.4]",
    b"[1.2.3.4]:80",
    b"[2001:db8::1",
    b"2001:db8::1]",
    b"[2001:db8::1]80",
    b"[2001:db8::1]:",
    b"[2001:db8::1]:x",
    b"[[2001:db8::1]]",
    b"[]",
    b"[]:80",
    b"2001:db8::1::2",
    b"1:2:3:4:5:6:7:8:9",
    b":::",
    b"12345::1",
    b'"1.2.3.4"',
    b"for=",
    b"for=unknown",
    b'for="_gazonk"',
    b"proto=https",
    b"for=1.2.3.4;for=5.6.7.8",
    b"for =1.2.3.4",
    b"for= 1.2.3.4",
    b"for=1.2.3.4 5.6.7.8",
    b'for="1.2.3.4',
    b'for=1.2.3.4"',
    b'for="1.2.3.4"x',
    b"for=1.2.3.4;proto",
    b"for=1.2.3.4=5",
    b'for="1.2.3.4:_port"',
    b"x-for=1.2.3.4",
    b"fo\xc3\xb6=1.2.3.4",
    b"for=1.2.3.4\\",
    b",a" * 20 + b"\\",
    b"a" * 20000,
    b"," * 20000,
    b'"' * 20001,
    b'",' * 10000 + b'"',
    b"[" * 5000,
]


class FromProxyHeaderTests(SynchronousTestCase):
    def test_addresses(self) -> None:
        """Each form of an address is read and brought into its normal form."""
        for line, expected in ONE_LINE:
            self.assertEqual((line, ClientAddress(*expected)), (line, from_proxy_header([line])))

    def test_not_an_address(self) -> None:
        """Text that is no address gives nothing at all, whatever is right about a part of it."""
        for line in NOT_AN_ADDRESS:
            self.assertEqual((line[:60], None), (line[:60], from_proxy_header([line])))

    def test_no_header(self) -> None:
        """Without the header there is nothing."""
        self.assertIsNone(from_proxy_header([]))

    def test_last_line(self) -> None:
        """Of several lines the last one counts, even when an earlier one is better."""
        self.assertEqual(ClientAddress("2.2.2.2", None), from_proxy_header([b"1.1.1.1", b"2.2.2.2"]))
        self.assertEqual(ClientAddress("3.3.3.3", None), from_proxy_header([b"1.1.1.1, 2.2.2.2", b"3.3.3.3"]))
        self.assertEqual(ClientAddress("5.5.5.5", 7), from_proxy_header([b"3.3.3.3", b"1.1.1.1, 5.5.5.5:7"]))
        self.assertIsNone(from_proxy_header([b"1.1.1.1", b"unknown"]))
        self.assertIsNone(from_proxy_header([b"1.1.1.1", b""]))

    def test_long_line(self) -> None:
        """A line too long to be remembered is read all the same."""
        line = b"10.0.0.1, " * 200 + b"192.0.2.1:80"

        self.assertEqual(ClientAddress("192.0.2.1", 80), from_proxy_header([line]))

    def test_linear(self) -> None:
        """A line costs as much as its bytes, whatever it is made of."""
        for make in (
            lambda size: b"for=192.0.2.1;" + b" " * size + b"x",
            lambda size: b"a=b;" + b" \t" * size + b"x=",
            lambda size: b"a=b" + b"; " * size + b"x",
            lambda size: b"a=b" + b" " * size + b"x",
            lambda size: b'a="' + b'\\"' * size,
            lambda size: b'"a,' * size,
            lambda size: b"1:" * size,
        ):
            small, large = (self.cost(make(size)) for size in (1_500, 15_000))
            self.assertLess(large, 40 * small + 0.002, make(10))

    def cost(self, line: bytes) -> float:
        """Return the seconds that a line takes at best."""
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            from_proxy_header([line])
            best = min(best, time.process_time() - began)
        return best

    @given(st.lists(st.binary(max_size=60) | st.from_regex(r'[0-9a-f:.,"\[\]=;\\ for%]{0,60}').map(str.encode)))
    def test_never_raises(self, values: list[bytes]) -> None:
        """Whatever comes, the answer is nothing or an address in its normal form with a port in range."""
        found = from_proxy_header(values)

        if found is not None:
            address = ipaddress.ip_address(found.ip)
            self.assertEqual(str(address), found.ip)
            self.assertIsNone(getattr(address, "ipv4_mapped", None))
            self.assertTrue(found.port is None or 0 <= found.port <= 65535)

    @given(st.ip_addresses(), st.none() | st.integers(0, 65535), st.binary(max_size=30), st.booleans())
    def test_proxy_has_the_last_word(
        self, address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int | None, sent: bytes, forwarded: bool
    ) -> None:
        """Whatever a client sent before it, the element that the proxy added is what counts."""
        host = f"[{address}]" if address.version == 6 else str(address)
        node = host if port is None else f"{host}:{port}"
        element = f'for="{node}";proto=https' if forwarded else node
        mapped = getattr(address, "ipv4_mapped", None)

        found = from_proxy_header([sent + b", " + element.encode("ascii")])

        self.assertEqual(ClientAddress(str(mapped or address), port), found)


class NormalIpTests(SynchronousTestCase):
    def test_addresses(self) -> None:
        """An address comes out in its normal form; a zone of a peer stays."""
        table = [
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
            ("2001:DB8:0::1", V6),
            ("::ffff:1.2.3.4", "1.2.3.4"),
            ("fe80::1%eth0", "fe80::1%eth0"),
            ("fe80::1%2", "fe80::1%2"),
        ]
        for text, expected in table:
            self.assertEqual((text, expected), (text, normal_ip(text)))

    def test_not_an_address(self) -> None:
        """Anything else is no address."""
        for text in ("", " ", "x", "10.1", "01.2.3.4", "1.2.3.4 ", "[::1]", "1.2.3.4:5", "fe80::1%", "fe80::1%a b"):
            self.assertEqual((text, None), (text, normal_ip(text)))
        for text in ("fe80::1%a\nb", "fe80::1%é", "1.2.3.4%eth0", "fe80::1%" + "x" * 80, "/run/webhookrx.sock"):
            self.assertEqual((text, None), (text, normal_ip(text)))

    @given(st.text(max_size=30))
    def test_never_raises(self, text: str) -> None:
        """No text raises, and a normal form is its own normal form."""
        found = normal_ip(text)

        if found is not None:
            self.assertEqual(found, normal_ip(found))
