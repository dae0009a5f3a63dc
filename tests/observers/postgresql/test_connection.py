"""How the postgresql observer connects, without connecting."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from psycopg import pq
from psycopg.conninfo import conninfo_to_dict
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import ConfigError
from webhookrx.observers import sockets
from webhookrx.observers.postgresql import connection
from webhookrx.observers.postgresql.answers import ConnectionFailed
from webhookrx.observers.postgresql.options import read_postgresql


def parameters(url: str, password: str | None = None, **options: str) -> dict[str, Any]:
    """Return the connection string of a spec string, for one address, as libpq reads it."""
    target = read_postgresql([url], options)
    place = connection._Place(target.addresses.servers[0], "192.0.2.7")
    return dict(conninfo_to_dict(connection._parameters(place, target, password).decode()))


class ParameterTests(SynchronousTestCase):
    """What libpq is told."""

    def test_away(self) -> None:
        """To another machine: certificate and name are checked, of TLS 1.2 or later, at the address that was found."""
        found = parameters("postgresql://db.example.com/logs/t", "it's a \\ secret", ca_file="/ca", user="me")

        self.assertEqual(("db.example.com", "192.0.2.7"), (found["host"], found["hostaddr"]))
        self.assertEqual(("logs", "me", "it's a \\ secret"), (found["dbname"], found["user"], found["password"]))
        self.assertEqual(
            ("verify-full", "/ca", "TLSv1.2", "disable", "disable"),
            tuple(
                found[name]
                for name in ("sslmode", "sslrootcert", "ssl_min_protocol_version", "sslcertmode", "gssencmode")
            ),
        )
        self.assertNotIn("require_auth", found)

    def test_here(self) -> None:
        """To this machine there is no TLS; without a password none is shown, wherever libpq would find one."""
        found = parameters("postgresql://localhost/logs/t", timeout="4s")

        self.assertEqual(("disable", "none"), (found["sslmode"], found["require_auth"]))
        self.assertNotIn("password", found)
        self.assertEqual(
            ["1", "4", "4", "3", "4000"],
            [
                str(found[name])
                for name in (
                    "keepalives",
                    "keepalives_idle",
                    "keepalives_interval",
                    "keepalives_count",
                    "tcp_user_timeout",
                )
            ],
        )

    def test_certificate(self) -> None:
        """A client's certificate is shown only where it is configured."""
        found = parameters("postgresql://h/logs/t", ca_file="/ca", cert_file="/cert", key_file="/key")

        self.assertEqual(("allow", "/cert", "/key"), (found["sslcertmode"], found["sslcert"], found["sslkey"]))

    def test_system_authorities(self) -> None:
        """Without ca_file= the system's authorities are read from a file, wherever the distribution has it."""
        path = os.path.abspath(self.mktemp())
        with open(path, "w"):
            pass
        self.patch(ssl, "get_default_verify_paths", lambda: SimpleNamespace(cafile=None))
        self.patch(connection, "_BUNDLES", ("/nosuch", path))
        self.assertEqual(path, parameters("postgresql://h/logs/t")["sslrootcert"])
        self.patch(connection, "_BUNDLES", ("/nosuch",))

        error = self.assertRaises(ConfigError, connection.system_authorities)

        self.assertIn("ca_file= is needed", str(error))

    def test_old_library(self) -> None:
        """A libpq that can't be told these things is a mistake, with what installs a newer one."""
        connection.check_libpq()
        self.patch(pq, "version", lambda: 150004)

        error = self.assertRaises(ConfigError, connection.check_libpq)

        self.assertIn("needs libpq 17 or newer", str(error))
        self.assertIn("pip install 'psycopg[binary]>=3.3'", str(error))


class ReasonTests(SynchronousTestCase):
    """Why there is no connection."""

    def why(self, message: bytes, *, used_password: bool = False) -> str:
        """Return what is said of an error of libpq."""
        made: Any = SimpleNamespace(error_message=message, used_password=used_password)
        return connection._why(made)

    def test_reasons(self) -> None:
        """It is one short line; once the password was shown, without a word of the server."""
        self.assertEqual(r"a b\u001b c", self.why(b"a\n\tb\x1b c\n"))
        self.assertGreaterEqual(201, len(self.why(b"x" * 1000)))
        self.assertEqual("there is no connection", self.why(b""))
        self.assertNotIn("hunter2", self.why(b"password hunter2 is wrong", used_password=True))
        self.assertIn("it wants a password", self.why(b'authentication method requirement "none" failed'))


class LookUpTests(SynchronousTestCase):
    """Names of servers."""

    def look_up(self, found: Any, steps: Iterator[float]) -> list[str]:
        """Look up a name."""

        def getaddrinfo(*_: object, **__: object) -> Any:
            if isinstance(found, Exception):
                raise found
            return found

        self.patch(sys.modules["socket"], "getaddrinfo", getaddrinfo)
        server = read_postgresql(["postgresql://db:1/a/b"], {}).addresses.servers[0]
        return [place.address for place in connection._look_up(server, steps)]

    def test_addresses(self) -> None:
        """Each address comes once, in the order of the resolver."""
        found = [(2, 1, 6, "", (address, 1)) for address in ("192.0.2.1", "192.0.2.2", "192.0.2.1")]

        self.assertEqual(["192.0.2.1", "192.0.2.2"], self.look_up(found, iter([5.0] * 9)))

    def test_none(self) -> None:
        """A name without an address is no connection."""
        for found, said in (
            (OSError(-2, "Name or service not known"), "db:1: Name or service not known"),
            (UnicodeError(), "db:1: it is no host name"),
            ([], "db:1: its name leads to no address"),
        ):
            error = self.assertRaises(ConnectionFailed, self.look_up, found, iter([5.0] * 9))
            self.assertEqual(said, str(error))

    def test_late(self) -> None:
        """A resolver that does not answer is not waited for."""
        server = read_postgresql(["postgresql://db:1/a/b"], {}).addresses.servers[0]
        self.patch(sockets, "Thread", lambda **_: SimpleNamespace(start=lambda: None))

        error = self.assertRaises(ConnectionFailed, connection._look_up, server, iter([0.0]))

        self.assertEqual("db:1: no answer about its name came in time", str(error))
