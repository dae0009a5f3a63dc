"""
Tests for L{webhookrx.intake.networks}.
"""

from __future__ import annotations

import json
from ipaddress import ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.networks import MOST_NETWORKS, AllowList, parse_network, read_networks

#: Text, and the network that it is.
NETWORKS = {
    "192.0.2.0/24": "192.0.2.0/24",
    "192.0.2.7": "192.0.2.7/32",
    "0.0.0.0/0": "0.0.0.0/0",
    "2001:db8::/32": "2001:db8::/32",
    "2001:DB8::1": "2001:db8::1/128",
    "::/0": "::/0",
    "::ffff:192.0.2.0/120": "192.0.2.0/24",
    "::ffff:192.0.2.7": "192.0.2.7/32",
    "192.0.2.0/255.255.255.0": "192.0.2.0/24",
}


class ParseNetworkTests(SynchronousTestCase):
    def test_networks(self) -> None:
        """An address is a network of one, and IPv4 in IPv6 is IPv4."""
        for text, network in NETWORKS.items():
            self.assertEqual(ip_network(network), parse_network(text))

    def test_host_bits(self) -> None:
        """An address within a network is refused with the network that may be meant."""
        with self.assertRaisesRegex(ValueError, r"the network is 192\.0\.2\.0/24"):
            parse_network("192.0.2.7/24")

    def test_nothing(self) -> None:
        """Anything else is refused, and the sentence says what is allowed."""
        for text in ("", "github", "192.0.2", "192.0.2.0/33", "192.0.2.0/24 ", "2001:db8::/129", "fe80::1%eth0/64/1"):
            with self.assertRaisesRegex(ValueError, "is no network, such as"):
                parse_network(text)


class ReadNetworksTests(SynchronousTestCase):
    def test_lines(self) -> None:
        """A file of lines has one network a line, with comments."""
        data = "\ufeff# ours\r\n192.0.2.0/24\r\n\n  2001:db8::/32 # the other\n".encode()

        self.assertEqual((ip_network("192.0.2.0/24"), ip_network("2001:db8::/32")), read_networks(data))

    def test_pointer(self) -> None:
        """A pointer leads to an array of texts, to one text, and by C{*} through all elements of an array."""
        data = json.dumps(
            {"hooks": ["192.0.2.0/24", "::1"], "a/b": {"c~d": "192.0.2.1"}, "p": [{"ip": "192.0.2.2"}, {"v6": "::2"}]}
        ).encode()
        cases = {
            "/hooks": ["192.0.2.0/24", "::1"],
            "/hooks/1": ["::1"],
            "/a~1b/c~0d": ["192.0.2.1"],
            "/p/*/ip": ["192.0.2.2"],
        }
        for at, texts in cases.items():
            self.assertEqual(tuple(map(ip_network, texts)), read_networks(data, at))
        self.assertEqual((ip_network("::3"),), read_networks(b'\xef\xbb\xbf{"a":"::3"}', "/a"))

    def test_array(self) -> None:
        """Without a pointer a file that begins with a bracket is one array."""
        self.assertEqual((ip_network("::3"),), read_networks(b' ["::3"]'))

    def test_broken(self) -> None:
        """A file with anything but networks is refused as a whole."""
        cases = [
            (b"", "", "no network"),
            (b"# nothing\n", "", "no network"),
            (b"\xff\n", "", "not UTF-8"),
            (b"192.0.2.0/24\nnonsense\n", "", "Line 2: .*no network"),
            (b"[]", "", "no network"),
            (b"[", "", "not JSON"),
            (b"[" * 100_000, "", "not JSON|nested too deeply"),
            (b"{}", "/hooks", "no network at"),
            (b'{"hooks":[]}', "/hooks", "no network at"),
            (b'{"hooks":[1]}', "/hooks", "is no text"),
            (b'{"hooks":null}', "/hooks", "is no text"),
            (b'{"hooks":["::1","x"]}', "/hooks", "Network 2 at .*no network"),
            (b'{"hooks":["::1"]}', "hooks", "no JSON pointer"),
            (b"::1\n" * (MOST_NETWORKS + 1), "", "at most 100,000"),
        ]
        for data, at, problem in cases:
            with self.assertRaisesRegex(ValueError, problem):
                read_networks(data, at)


class AllowListTests(SynchronousTestCase):
    def test_edges(self) -> None:
        """The first and the last address of a network are in it, their neighbours are not."""
        allowed = AllowList({"a": [ip_network("192.0.2.64/26")], "b": [ip_network("2001:db8::/126")]})
        cases = {
            "192.0.2.63": False,
            "192.0.2.64": True,
            "192.0.2.127": True,
            "192.0.2.128": False,
            "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff": False,
            "2001:db8::": True,
            "2001:db8::3": True,
            "2001:db8::4": False,
        }
        for ip, expected in cases.items():
            self.assertEqual(expected, allowed.allows(ip), ip)

    def test_all(self) -> None:
        """A network of all addresses of a version holds the last one, and none of the other version."""
        self.assertTrue(AllowList({"a": [ip_network("0.0.0.0/0")]}).allows("255.255.255.255"))
        self.assertFalse(AllowList({"a": [ip_network("0.0.0.0/0")]}).allows("::1"))
        self.assertTrue(AllowList({"a": [ip_network("::/0")]}).allows("ff" * 2 + ":ffff" * 7))
        self.assertFalse(AllowList({"a": [ip_network("::/0")]}).allows("0.0.0.1"))

    def test_none(self) -> None:
        """A list without networks takes nobody, and what is no address is in no network."""
        self.assertFalse(AllowList({}).allows("127.0.0.1"))
        everywhere = AllowList({"a": [ip_network("0.0.0.0/0"), ip_network("::/0")]})
        for ip in ("", "unix", "1.2.3", "192.0.2.1 ", "::g", "192.0.2.1\0", "é", "\ud800"):
            self.assertFalse(everywhere.allows(ip), ip)

    def test_zone(self) -> None:
        """The zone of a link-local address does not count."""
        self.assertTrue(AllowList({"a": [ip_network("fe80::/10")]}).allows("fe80::1%eth0"))

    def test_mapped(self) -> None:
        """IPv4 in IPv6 is IPv4."""
        self.assertTrue(AllowList({"a": [ip_network("192.0.2.0/24")]}).allows("::ffff:192.0.2.7"))

    def test_item(self) -> None:
        """It says which item of the list holds an address, the first if there are several."""
        allowed = AllowList({"github": [ip_network("192.0.2.0/24")], "192.0.0.0/8": [ip_network("192.0.0.0/8")]})

        self.assertEqual("github", allowed.item_of("192.0.2.1"))
        self.assertEqual("192.0.0.0/8", allowed.item_of("192.0.3.1"))
        self.assertIsNone(allowed.item_of("198.51.100.1"))
        both = AllowList({"v4": [ip_network("0.0.0.0/0")], "v6": [ip_network("::/0")]})
        self.assertEqual(("v4", "v6"), (both.item_of("192.0.2.1"), both.item_of("2001:db8::1")))
        self.assertEqual(("v4", "v6"), both.items)

    def test_nested(self) -> None:
        """A network within another changes nothing, wherever they are, and neighbours are one."""
        networks = ["10.0.0.0/8", "172.16.0.0/12", "172.16.5.0/24", "172.31.255.0/24", "192.0.2.0/25", "192.0.2.128/25"]
        allowed = AllowList({"a": list(map(ip_network, networks))})
        for ip in ("10.1.2.3", "172.16.5.1", "172.16.6.1", "172.31.255.255", "192.0.2.127", "192.0.2.128"):
            self.assertTrue(allowed.allows(ip), ip)
        for ip in ("11.0.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.255", "192.0.3.0"):
            self.assertFalse(allowed.allows(ip), ip)

    def test_bounded(self) -> None:
        """What is remembered of addresses is bounded."""
        allowed = AllowList({"a": [ip_network("10.0.0.0/8")]})
        for number in range(3000):
            self.assertTrue(allowed.allows(f"10.0.{number // 256}.{number % 256}"))
        self.assertLessEqual(len(allowed._known), 1024)

    @given(
        st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 32)), max_size=20),
        st.integers(0, 2**32 - 1),
        st.integers(0, 19),
    )
    def test_as_one_by_one(self, networks: list[tuple[int, int]], number: int, near: int) -> None:
        """It decides as a look into one network after the other does, however they overlap."""
        made = [ip_network((number >> (32 - bits) << (32 - bits), bits)) for number, bits in networks]
        allowed = AllowList({"a": made})
        numbers = [number]
        if near < len(made):
            numbers += [int(made[near][0]) - 1, int(made[near][0]), int(made[near][-1]), int(made[near][-1]) + 1]
        for each in numbers:
            if 0 <= each < 2**32:
                address = ip_address(each)
                self.assertEqual(any(address in network for network in made), allowed.allows(str(address)))
