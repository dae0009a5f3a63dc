"""The addresses of servers in spec strings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.observers.addresses import (
    Addresses,
    Server,
    check_plaintext,
    is_loopback,
    parse_server,
    read_addresses,
    refuse_password,
)

SCHEMES = {"nats": 4222, "tls": 4443}
EXAMPLE = "nats:nats://HOST:4222/SUBJECT"


def read(*args: str, several: bool = True) -> Addresses:
    """Read the arguments of a spec string."""
    return read_addresses(args, SpecOptions("nats", {}), SCHEMES, EXAMPLE, several=several)


class ReadAddressesTests(SynchronousTestCase):
    """Texts to servers."""

    def test_servers(self) -> None:
        """There are one or more servers, each with its port or that of the scheme."""
        table = {
            "nats://h1": ("nats", (Server("h1", 4222),), ""),
            "nats://h1/": ("nats", (Server("h1", 4222),), ""),
            "tls://h1/logs": ("tls", (Server("h1", 4443),), "logs"),
            "nats://h1:1,h2:2/logs": ("nats", (Server("h1", 1), Server("h2", 2)), "logs"),
            "nats://h1,h1:9/a": ("nats", (Server("h1", 4222), Server("h1", 9)), "a"),
            "nats://[::1]:9,192.0.2.1/a": ("nats", (Server("::1", 9), Server("192.0.2.1", 4222)), "a"),
            "nats://a_b.example-1.com./x": ("nats", (Server("a_b.example-1.com.", 4222),), "x"),
            "nats://h/logs.${SOURCE}.${HOST:-none}/%Y.%m": (
                "nats",
                (Server("h", 4222),),
                "logs.${SOURCE}.${HOST:-none}/%Y.%m",
            ),
        }
        for url, (scheme, servers, path) in table.items():
            with self.subTest(url):
                self.assertEqual(Addresses(scheme, servers, path), read(url))

    def test_text(self) -> None:
        """As text they are what libraries take: HOST:PORT, with commas between."""
        self.assertEqual("h1:1,[2001:db8::1]:4222", str(read("nats://h1:1,[2001:db8::1]/x")))

    def test_mistakes(self) -> None:
        """Each mistake is a sentence that shows what is right."""
        table = {
            (): "takes one URL, such as nats:nats",
            ("",): "takes one URL",
            ("nats://h", "more"): "takes one URL",
            ("h1:4222/logs",): "does not begin with nats:// or tls://",
            ("http://h1/logs",): "does not begin with nats:// or tls://",
            ("nats://",): '"" is not HOST or HOST:PORT',
            ("nats://h1,/x",): '"" is not HOST or HOST:PORT',
            ("nats://h 1/x",): '"h 1" is not HOST or HOST:PORT',
            ("nats://-h/x",): '"-h" is not HOST',
            ("nats://häuser/x",): "is not HOST",
            ("nats://::1/x",): "is not HOST",
            ("nats://[1:2]/x",): "is not an IPv6 address in brackets",
            ("nats://h:0/x",): "no port from 1 to 65535",
            ("nats://h:65536/x",): "no port from 1 to 65535",
            ("nats://h:٣/x",): "is not HOST",
            ("nats://h:/x",): "is not HOST",
            ("nats://h:1,h:1/x",): "names h:1 twice",
            ("nats://h/x?timeout=5",): "options come after it",
            ("nats://h?x",): "options come after it",
            ("nats://h#x",): "options come after it",
        }
        for args, sentence in table.items():
            with self.subTest(args):
                error = self.assertRaises(ConfigError, read, *args)
                self.assertIn(sentence, str(error))
                self.assertIn("observer 'nats'", str(error))

    def test_one_server(self) -> None:
        """A store with one server takes no more."""
        error = self.assertRaises(ConfigError, read, "nats://h1,h2/x", several=False)

        self.assertIn("more than one server", str(error))

    def test_password(self) -> None:
        """A password in the URL is refused, wherever its own signs let it end, and nothing of it is quoted."""
        for url in (
            "nats://user:tiger@h/x",
            "nats://tiger@h/x",
            "nats://user:ti/ger@h/x",
            "nats://user:tiger/@h/x",
            "nats://user:ti,ger/@h/x",
            "nats://h1,user:tiger@h2/x",
            "user:tiger@h/x",
            "nats://user:tiger?@h/x",
            "nats://user:1/tiger@h/x",
            "nats://user/tiger@h/x",
            "nats://user,2/tiger/@h/x",
        ):
            with self.subTest(url):
                text = str(self.assertRaises(ConfigError, read, url))
                for part in ("tiger", "'ti", "ger'"):
                    self.assertNotIn(part, text)

    def test_password_sentence(self) -> None:
        """The sentence says where the password belongs."""
        error = self.assertRaises(ConfigError, read, "nats://user:tiger@h/x")

        self.assertIn("no user or password in the URL", str(error))
        self.assertIn("user= and password_file=", str(error))

    def test_at_sign_behind(self) -> None:
        """What is behind the host may hold an at sign in general, but not behind several servers."""
        refuse_password("https://h/a@b?c=@", SpecOptions("x", {}))

        self.assertIn("holds an @", str(self.assertRaises(ConfigError, read, "nats://h/a@b")))

    def test_local(self) -> None:
        """Addresses are local when all of them are."""
        self.assertTrue(read("nats://localhost,127.0.0.2:1,[::1]/x").are_local)
        self.assertFalse(read("nats://localhost,h2/x").are_local)


class LoopbackTests(SynchronousTestCase):
    """Which names and addresses stay on this machine."""

    def test_table(self) -> None:
        """Only addresses that are loopback by standard, and localhost with all below it."""
        for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost", "a.localhost"):
            self.assertTrue(is_loopback(host), host)
        for host in ("192.0.2.1", "10.0.0.1", "::", "0.0.0.0", "localhost.example.com", "mylocalhost", "h"):
            self.assertFalse(is_loopback(host), host)


class CheckPlaintextTests(SynchronousTestCase):
    """No secret goes unencrypted to another machine."""

    def check(self, *, is_encrypted: bool = False, is_local: bool = False, **given: str) -> None:
        """Check options with a password."""
        check_plaintext(
            SpecOptions("redis", given),
            ("user", "password_file"),
            is_encrypted=is_encrypted,
            is_local=is_local,
            remedy="use rediss://",
        )

    def test_refused(self) -> None:
        """The sentence names the option and the remedy."""
        error = self.assertRaises(ConfigError, self.check, password_file="/p", allow_plaintext="no")

        self.assertIn("observer 'redis': password_file= would show its secret to the network", str(error))
        self.assertIn("use rediss://", str(error))
        self.assertIn("allow_plaintext=yes", str(error))

    def test_allowed(self) -> None:
        """Encrypted, on this machine, meant, or without a secret it is fine."""
        self.check(password_file="/p", is_encrypted=True)
        self.check(password_file="/p", is_local=True)
        self.check(password_file="/p", allow_plaintext="yes")
        self.check(timeout="5s")

    def test_flag_checked(self) -> None:
        """The flag is read even where it changes nothing."""
        error = self.assertRaises(ConfigError, self.check, allow_plaintext="perhaps", is_encrypted=True)

        self.assertIn('allow_plaintext="perhaps"', str(error))


class ServerTests(SynchronousTestCase):
    """One server as text."""

    @given(
        st.one_of(st.ip_addresses().map(str), st.from_regex(r"[a-z0-9_]([a-z0-9._-]{0,20}[a-z0-9_])?", fullmatch=True)),
        st.integers(1, 65535),
    )
    def test_round_trip(self, host: str, port: int) -> None:
        """What a server says of itself is read as the same server."""
        server = Server(host, port)

        self.assertEqual(server, parse_server(str(server), 1))
