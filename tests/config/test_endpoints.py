"""
Tests for L{webhookrx.config.endpoints}.
"""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.endpoints import serverFromString
from twisted.internet.testing import MemoryReactor
from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import LOOPBACK, errors_of, start
from webhookrx.config.endpoints import Address, default_endpoint, parse_endpoint
from webhookrx.errors import ConfigError
from webhookrx.settings import Listener

#: What is written, and the normal form of what is listened on.
GOOD = {
    "8181": "tcp:8181:backlog=4096",
    "0": "tcp:0:backlog=4096",
    "65535": "tcp:65535:backlog=4096",
    "tcp:8181": "tcp:8181:backlog=4096",
    "tcp:port=8181": "tcp:8181:backlog=4096",
    "tcp:8181:127.0.0.1": "tcp:8181:interface=127.0.0.1:backlog=4096",
    "tcp:8181:interface=localhost": "tcp:8181:interface=127.0.0.1:backlog=4096",
    "tcp:8181:interface=127.0.0.1:backlog=7": "tcp:8181:interface=127.0.0.1:backlog=7",
    "tcp:8181:interface=": "tcp:8181:backlog=4096",
    r"tcp:8181:interface=\:\:1": r"tcp:8181:interface=\:\:1:backlog=4096",
    r"tcp:8181:interface=0\:0\:0\:0\:0\:0\:0\:1": r"tcp:8181:interface=\:\:1:backlog=4096",
    "tcp6:8181": r"tcp:8181:interface=\:\::backlog=4096",
    r"tcp6:8181:9:interface=\:\:1": r"tcp:8181:interface=\:\:1:backlog=9",
    "unix:/run/x.sock": "unix:/run/x.sock:mode=666:backlog=4096:lockfile=0",
    "unix:address=/run/x.sock:mode=0660:lockfile=0:backlog=3": "unix:/run/x.sock:mode=0660:backlog=3:lockfile=0",
    r"unix:/run/a\:b": r"unix:/run/a\:b:mode=666:backlog=4096:lockfile=0",
    "unix:@name": "unix:@name:mode=666:backlog=4096:lockfile=0",
    "systemd:domain=INET:index=0": "systemd:domain=INET:index=0",
    "systemd:INET6:name=web": "systemd:domain=INET6:name=web",
    "ssl:443:privateKey=/k": "tcp:443:backlog=4096",
    "ssl:443:interface=127.0.0.1:backlog=5:privateKey=/k": "tcp:443:interface=127.0.0.1:backlog=5",
    r"ssl:endpoint=unix\:/run/x.sock:privateKey=/k": "unix:/run/x.sock:mode=666:backlog=4096:lockfile=0",
    r"ssl:endpoint=systemd\:domain=INET\:index=0": "systemd:domain=INET:index=0",
    "haproxy:8181": "tcp:8181:backlog=4096",
    "haproxy:tcp:8181:interface=127.0.0.1": "tcp:8181:interface=127.0.0.1:backlog=4096",
    "haproxy:ssl:443": "tcp:443:backlog=4096",
}

#: What is written, and a piece of the error.
BAD = {
    "": "empty",
    "-5": '"-5" is not a port',
    "70000": '"70000" is not a port',
    "tcp:70000": "from 1 to 65535",
    "tcp:": "needs a port",
    "tcp:http": '"http" is not a port',
    "tcp:+80": "is not a port",
    "tcp:٣": "is not a port",
    "tcp:8181:interfaces=127.0.0.1": 'Did you mean "interface"?',
    "tcp:8181:interface=eth0": "takes an IP address",
    "tcp:8181:interface=::1": r"tcp:8181:interface=\:\:1",
    "tcp:8181:interface=::1:backlog=5": r"interface=\:\:1",
    "tcp:8181:interface=fe80::1:backlog=5": r"interface=fe80\:\:1",
    "tcp:8181:interface=[::1]": r"interface=\:\:1",
    "[::]:8181": r"interface=\:\:",
    "::1": r"interface=\:\:1",
    "tcp:8181:backlog=0": "backlog= takes a whole number from 1",
    "tcp:8181:backlog=many": 'not "many"',
    "tcp:8181:127.0.0.1:5:6": "too many parts",
    "tcp:8181:port=8182": "port twice",
    "tcp6:8181:interface=127.0.0.1": "needs an IPv6 address",
    "1:2:3": "starts with a port",
    "8181:interface=127.0.0.1": 'it is "tcp:8181:interface=127.0.0.1"',
    "127.0.0.1:8181": "write tcp:8181:interface=127.0.0.1",
    "localhost:8181": "write tcp:8181:interface=localhost",
    "tpc:8181": 'Did you mean "tcp"?',
    "TCP:8181": 'Did you mean "tcp"?',
    "tls:443": 'Did you mean "ssl"?',
    "http": 'Did you mean "tcp"?',
    "carrier-pigeon:1": "Known are haproxy, ssl, systemd, tcp, tcp6, unix.",
    "unix:": "needs the path",
    "unix:/no/such/directory/x": '"/no/such/directory" does not exist',
    "unix:/run/x:mode=9": "three octal digits",
    "unix:/run/x:lockfile=no": "lockfile= takes 0 or 1",
    "unix:/run/" + "x" * 200: "at most 107 bytes",
    "systemd:index=0": "needs domain=",
    "systemd:domain=AF_INET:index=0": "needs domain=",
    "systemd:domain=INET": "either index= or name=",
    "systemd:domain=INET:index=0:name=x": "either index= or name=",
    "systemd:domain=INET:index=-1": "index= takes a whole number from 0",
    "systemd:domain=INET:name=": "empty name=",
    "ssl:443:privatekey=/k": 'Did you mean "privateKey"?',
    "ssl:443:sslmethod=TLSv1_METHOD": "unknown key sslmethod=",
    "ssl:443:privateKey=": "empty privateKey=",
    "ssl:443:peerVerify=perhaps": "peerVerify= takes yes or no",
    "ssl:443:systemStore=1": "systemStore= takes yes or no",
    r"ssl:443:endpoint=tcp\:443": "both endpoint= and port",
    r"ssl:endpoint=ssl\:443": "TLS into TLS",
    r"ssl:endpoint=tcp\:99999": '"99999" is not a port',
    "haproxy:": "empty",
    "haproxy:haproxy:tcp:1": "haproxy: twice",
    "tcp:80\\": "backslash",
    "tcp:80\n": "is not a port",
}


class ParseEndpointTests(SynchronousTestCase):
    """
    Tests for L{parse_endpoint}.
    """

    def test_normal_form(self) -> None:
        """Every good string has one normal form, with neither TLS nor PROXY, and keeps the text of its user."""
        for text, inner in GOOD.items():
            endpoint = parse_endpoint(text)
            self.assertEqual((inner, text), (endpoint.socket, endpoint.text))

    def test_twisted_takes_the_normal_form(self) -> None:
        """Twisted makes an endpoint of every normal form but C{systemd:}, which needs the socket at once."""
        for inner in set(GOOD.values()):
            if not inner.startswith("systemd:"):
                serverFromString(MemoryReactor(), inner)

    def test_normal_form_is_stable(self) -> None:
        """Reading a normal form gives itself."""
        for inner in set(GOOD.values()):
            self.assertEqual(inner, parse_endpoint(inner).socket)

    def test_errors(self) -> None:
        """Every bad string is an error that says what is allowed."""
        for text, fragment in BAD.items():
            error = self.assertRaises(ConfigError, parse_endpoint, text)
            self.assertIn(fragment, error.problem, text)
            self.assertNotIn("\n", error.problem)

    def test_relative_socket(self) -> None:
        """The path of a UNIX socket is made absolute."""
        endpoint = parse_endpoint("unix:x.sock")
        self.assertEqual(Address("unix", os.path.abspath("x.sock"), 0), endpoint.address)

    def test_tls_keys(self) -> None:
        """The keys of an ssl: string come out by the field of the settings, with absolute paths."""
        endpoint = parse_endpoint(
            "ssl:443:privateKey=k.pem:certKey=/c.pem:extraCertChain=/x.pem:peerVerify=ON:caFile=/a.pem:caDir=/d:"
            "systemStore=no"
        )
        expected = {
            "key_file": os.path.abspath("k.pem"),
            "cert_file": "/c.pem",
            "extra_chain_file": "/x.pem",
            "peer_verify": "yes",
            "ca_file": "/a.pem",
            "ca_dir": "/d",
            "system_store": "no",
        }
        self.assertEqual(expected, endpoint.tls)

    def test_positional_tls_keys(self) -> None:
        """As with Twisted, key and certificate may follow the port without their names."""
        self.assertEqual({"key_file": "/k", "cert_file": "/c"}, parse_endpoint("ssl:443:/k:/c").tls)

    def test_layers(self) -> None:
        """TLS is said by ssl: alone, a PROXY header by haproxy: alone, and both go together in either order."""
        cases = {
            "tcp:1": (False, False),
            "ssl:1": (False, True),
            "haproxy:tcp:1": (True, False),
            "haproxy:ssl:1": (True, True),
            r"ssl:endpoint=haproxy\:tcp\:1": (True, True),
        }
        for text, expected in cases.items():
            endpoint = parse_endpoint(text)
            self.assertEqual(expected, (endpoint.proxy_protocol, endpoint.tls is not None), text)

    def test_local(self) -> None:
        """Loopback addresses and UNIX sockets are local; all addresses, and sockets that come bound, are not."""
        cases = {
            "tcp:1:interface=127.0.0.1": True,
            "tcp:1:interface=127.1.2.3": True,
            "tcp:1:interface=localhost": True,
            r"tcp:1:interface=\:\:1": True,
            "unix:/run/x": True,
            "systemd:domain=UNIX:index=0": True,
            "haproxy:tcp:1:interface=127.0.0.1": True,
            "1": False,
            "tcp6:1": False,
            "tcp:1:interface=10.0.0.1": False,
            "tcp:1:interface=0.0.0.0": False,
            "systemd:domain=INET:index=0": False,
        }
        for text, local in cases.items():
            self.assertIs(local, parse_endpoint(text).local, text)

    def test_default(self) -> None:
        """The endpoint of a source that names none is TCP on all addresses."""
        endpoint = default_endpoint(443)
        self.assertEqual(("tcp:443", "tcp:443:backlog=4096"), (endpoint.text, endpoint.socket))

    @given(st.text(alphabet=st.sampled_from(":=\\[]/.@ tcpunixslhaproxy0123456789=é\n\x00"), max_size=40))
    def test_any_text(self, text: str) -> None:
        """Any text is understood, or is a configuration error of one line."""
        try:
            parse_endpoint(text)
        except ConfigError as error:
            self.assertNotIn("\n", error.problem)


class AddressTests(SynchronousTestCase):
    """
    Tests for L{Address}.
    """

    def test_overlaps(self) -> None:
        """Two addresses overlap when the kernel gives both to one listener only, whichever comes first."""
        cases = [
            ("tcp:80", "80", True),
            ("tcp:80", "tcp:81", False),
            ("tcp:80", "tcp:80:interface=127.0.0.1", True),
            ("tcp:80", "tcp6:80", True),
            ("tcp6:80", "tcp:80:interface=127.0.0.1", True),
            ("tcp:80", r"tcp:80:interface=\:\:1", False),
            ("tcp:80:interface=127.0.0.1", "tcp:80:interface=127.0.0.2", False),
            ("tcp:0", "tcp:0", True),
            ("tcp:0", "tcp:0:interface=127.0.0.1", False),
            ("unix:/run/x", "unix:/run/x:mode=600", True),
            ("unix:/run/x", "unix:/run/y", False),
            ("tcp:80", "unix:/run/x", False),
            ("systemd:INET:index=0", "systemd:INET6:index=0", True),
            ("systemd:INET:index=0", "systemd:INET:index=1", False),
        ]
        for one, other, expected in cases:
            first, second = parse_endpoint(one).address, parse_endpoint(other).address
            self.assertEqual((expected, expected), (first.overlaps(second), second.overlaps(first)), (one, other))


class AdminTests(SynchronousTestCase):
    """
    Tests for L{webhookrx.config.endpoints.admin_listener}.
    """

    def admin(self, text: str) -> Listener:
        """Return where the option puts the endpoint."""
        listener = start(port=LOOPBACK, admin=text).settings.admin
        assert listener is not None
        return listener

    def test_off(self) -> None:
        """Nobody gets it who did not ask for it."""
        self.assertIsNone(start(port=LOOPBACK).settings.admin)

    def test_loopback(self) -> None:
        """Where no address is said it is that of this machine alone."""
        for text in ("9090", "tcp:9090"):
            self.assertEqual(r"tcp:9090:interface=127.0.0.1:backlog=4096", self.admin(text).socket)
            self.assertEqual((), start(port=LOOPBACK, admin=text).settings.warnings)

    def test_elsewhere(self) -> None:
        """Another address is taken, with a warning that everybody may read there."""
        settings = start(port=LOOPBACK, admin="tcp:9090:interface=192.0.2.1").settings
        self.assertIn("it requires no token", settings.warnings[0])
        self.assertIn("unix:", self.admin("unix:admin.sock").socket)

    def test_any_port(self) -> None:
        """Port 0 is any free one, so it is never taken by the senders' endpoint."""
        self.assertIn("tcp:0:", self.admin(LOOPBACK).socket)

    def test_errors(self) -> None:
        """TLS, the PROXY protocol, a taken address, and what is no endpoint are errors."""
        cases = {
            "ssl:9090:privateKey=k": "plain HTTP",
            "haproxy:tcp:9090": "plain HTTP",
            "8181": "takes the same address",
            "nine": "nine",
            "": "",
        }
        for text, problem in cases.items():
            (error,) = errors_of(port="8181", admin=text)
            self.assertEqual("--admin", error.field)
            self.assertIn(problem, error.sentence, text)


class DrainTimeoutTests(SynchronousTestCase):
    """
    Tests for C{--drain-timeout}.
    """

    def test_values(self) -> None:
        """It takes a time, and is 30 seconds without one."""
        self.assertEqual(30.0, start(port=LOOPBACK).settings.drain_timeout)
        self.assertEqual(90.0, start(port=LOOPBACK, drain_timeout="90s").settings.drain_timeout)

    def test_errors(self) -> None:
        """What is no time, or none to do anything in, is an error."""
        for text in ("soon", "0", "-1s"):
            (error,) = errors_of(port=LOOPBACK, drain_timeout=text)
            self.assertEqual("--drain-timeout", error.field)
            self.assertIn(repr(text).strip("'"), error.sentence)
