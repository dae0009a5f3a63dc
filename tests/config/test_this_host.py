"""Tests for L{webhookrx.config.this_host}."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config import this_host as module
from webhookrx.config.this_host import this_host
from webhookrx.version import installed_version


class ThisHostTests(SynchronousTestCase):
    """What a machine says of itself."""

    def _named(self, name: str, hosts: str = "") -> tuple[str, str]:
        path = Path(self.mktemp())
        path.write_text(hosts)
        real = os.uname()
        self.patch(module.os, "uname", lambda: os.uname_result((real[0], name, *real[2:])))
        facts = this_host(str(path))
        return facts.hostname, facts.fqdn

    def test_names(self) -> None:
        """The name is the kernel's; the domain is its, or that of /etc/hosts, and no name server is asked."""
        for name, hosts, expected in [
            ("edge-1.example.com", "", ("edge-1", "edge-1.example.com")),
            ("edge-1", "", ("edge-1", "")),
            ("edge-1", "127.0.1.1 edge-1.example.com edge-1\n", ("edge-1", "edge-1.example.com")),
            ("edge-1", "# 127.0.1.1 edge-1.example.com edge-1\n127.0.0.1\n\n", ("edge-1", "")),
            ("edge-1", "127.0.1.1 edge-11.example.com edge-1\n", ("edge-1", "")),
            ("edge-1", "192.0.2.9 edge-1.elsewhere.example other\n", ("edge-1", "")),
            ("edge-1", "127.0.0.1 localhost\n::1 x edge-1 edge-1.example.com\n", ("edge-1", "edge-1.example.com")),
        ]:
            with self.subTest(name=name, hosts=hosts):
                self.assertEqual(expected, self._named(name, hosts))

    def test_addresses(self) -> None:
        """Addresses are those that others may reach it by, each once."""
        addresses = this_host().ip
        self.assertEqual(len(set(addresses)), len(addresses))
        for address in map(ip_address, addresses):
            self.assertFalse(address.is_loopback or address.is_link_local)

    def test_ipv4(self) -> None:
        """IPv4 addresses are asked for by the name of each interface; one that has none is left out."""
        addresses = {"lo": "127.0.0.1", "eth0": "192.0.2.1", "eth1": "0.0.0.0", "a-very-long-nam": "192.0.2.2"}

        def ioctl(handle: object, request: int, interface: bytes) -> bytes:
            name = interface.rstrip(b"\0").decode()
            if name not in addresses:
                raise OSError(99, "Cannot assign requested address")
            return b"\0" * 20 + ip_address(addresses[name]).packed + b"\0" * 232

        self.patch(module.fcntl, "ioctl", ioctl)
        self.patch(module.socket, "if_nameindex", lambda: list(enumerate((*addresses, "bare"), 1)))
        self.assertEqual(["192.0.2.1", "192.0.2.2"], list(module._ipv4()))

    def test_ipv6(self) -> None:
        """IPv6 addresses are read from the kernel's table; what is no address there is left out."""
        lines = [
            "fd000000000000000000000000000002 02 40 00 80 eth0\n",
            "00000000000000000000000000000001 01 80 10 80 lo\n",
            "fe800000000000000000000000000001 02 40 20 80 eth0\n",
            "00000000000000000000000000000000 01 80 10 80 any\n",
            "nonsense\n",
        ]
        self.assertEqual(["fd00::2"], list(module._ipv6(lines)))

    def test_rest(self) -> None:
        """The rest is what Python says, and our version; a file that is not there is no error."""
        facts = this_host(self.mktemp())
        self.assertEqual((os.uname().machine, installed_version()), (facts.arch, facts.version))
        self.assertEqual("linux", facts.os)
