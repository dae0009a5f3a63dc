"""
Tests for L{webhookrx.transport.openssl_calls}.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from unittest import mock

from OpenSSL import SSL
from twisted.trial.unittest import SynchronousTestCase

from tests.system.certificates import Authority, server_settings, write_ca_file
from tests.transport.in_memory import TLS13, WORKS, client_context, meet
from webhookrx.transport import openssl_calls
from webhookrx.transport.handshake import describe_failure
from webhookrx.transport.openssl_calls import RECORD, find_calls, limit_groups
from webhookrx.transport.server_context import ServerConnectionCreator


class Scripted:
    """
    A connection of which it is known beforehand what its methods do.
    """

    _ssl = None

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def recv(self, size: int) -> bytes:
        return b"by method %d" % size

    def send(self, data: bytes) -> int:
        self.sent.append(data)
        return 7


class CallsTests(SynchronousTestCase):
    """
    Private names where they are, methods where they are not.
    """

    def test_direct(self) -> None:
        """
        The private names of the installed pyOpenSSL are as expected. If not, only this test fails, and TLS is slower;
        see what has become of C{lib.SSL_read}, C{lib.SSL_write} and C{Connection._ssl}.
        """
        with mock.patch.object(openssl_calls._util, "lib") as lib, mock.patch.object(SSL, "Connection"):
            receive, send = find_calls()
        lib.SSL_read.side_effect = lambda tls, room, size: 5
        lib.SSL_write.side_effect = lambda tls, data, size: size
        tls = Scripted()
        self.assertEqual((bytes(5), 3), (receive(tls), send(tls, b"abc")))  # type: ignore[arg-type]
        self.assertNotIn(SSL.Connection.send, find_calls(), "pyOpenSSL has changed under us")

    def test_no_success(self) -> None:
        """What a failure means is pyOpenSSL's to say; nothing of what was read before is taken for data."""
        with mock.patch.object(openssl_calls._util, "lib") as lib, mock.patch.object(SSL, "Connection") as connection:
            receive, send = find_calls()
        lib.SSL_read.return_value = lib.SSL_write.return_value = -1
        tls = Scripted()
        fail = connection._raise_ssl_error
        self.assertEqual((b"", 0), (receive(tls), send(tls, b"abc")))  # type: ignore[arg-type]
        self.assertEqual([mock.call(tls, None, -1)] * 2, fail.call_args_list)
        fail.side_effect = SSL.WantReadError
        self.assertRaises(SSL.WantReadError, receive, tls)
        self.assertRaises(SSL.WantReadError, send, tls, b"abc")

    def test_much(self) -> None:
        """What is more than a record goes to the method, which takes care of sizes."""
        with mock.patch.object(openssl_calls._util, "lib") as lib, mock.patch.object(SSL, "Connection"):
            _, send = find_calls()
        tls = Scripted()
        self.assertEqual(7, send(tls, bytes(RECORD + 1)))  # type: ignore[arg-type]
        lib.SSL_write.assert_not_called()

    def test_gone(self) -> None:
        """Where one of the names is gone the methods serve."""
        for gone in (
            mock.patch.object(openssl_calls, "_util", None),
            mock.patch.object(openssl_calls._util, "lib", object()),
            mock.patch.object(SSL, "Connection", _Bare),
        ):
            with gone:
                receive, send = find_calls()
            self.assertEqual(b"by method %d" % RECORD, receive(Scripted()))  # type: ignore[arg-type]
            self.assertEqual("send", send.__name__)


class _Bare(Scripted):
    """A connection without its private name."""

    _raise_ssl_error = None

    def __init__(self, context: object) -> None:
        super().__init__()

    def __getattribute__(self, name: str) -> object:
        if name == "_ssl":
            raise AttributeError(name)
        return super().__getattribute__(name)


class LimitGroupsTests(SynchronousTestCase):
    """
    Clients that know one group.
    """

    def setUp(self) -> None:
        directory = self.mktemp()
        os.makedirs(directory)
        root = Authority("Root")
        self.ca_file = write_ca_file(directory, "ca", root)
        self.creator = ServerConnectionCreator(server_settings(directory, root.issue("server")))

    def test_groups(self) -> None:
        """The usual groups serve; the expensive ones are refused, with a reason."""
        for group, served in (
            ("X25519", True),
            ("prime256v1", True),
            ("secp384r1", True),
            ("secp521r1", False),
            ("X448", False),
        ):
            # In TLS 1.2 the list is also one of curves for certificates, which is not what is asked here.
            context = client_context(self.ca_file, TLS13)
            context.set_ecdh_curve(group)

            meeting = meet(self.creator, context)

            self.assertEqual(served, meeting.outcome == WORKS, group)
            if not served:
                assert meeting.server.answerer.lost is not None
                self.assertEqual("no shared key exchange group", describe_failure(meeting.server.answerer.lost))

    def test_older_openssl(self) -> None:
        """An OpenSSL without the post-quantum hybrid gets the list without it, and no error is left behind."""
        tried: list[bytes] = []
        cleared: list[bool] = []

        def set_groups(context: object, groups: bytes) -> int:
            tried.append(groups)
            return int(b"MLKEM" not in groups)

        fake = SimpleNamespace(SSL_CTX_set1_curves_list=set_groups, ERR_clear_error=lambda: cleared.append(True))
        self.patch(openssl_calls, "_util", SimpleNamespace(lib=fake))

        limit_groups(SSL.Context(SSL.TLS_SERVER_METHOD))

        self.assertEqual(([b"X25519MLKEM768:X25519:P-256:P-384", b"X25519:P-256:P-384"], [True]), (tried, cleared))

    def test_no_list_is_taken(self) -> None:
        """Where OpenSSL takes no list at all its own groups stay."""
        fake = SimpleNamespace(SSL_CTX_set1_curves_list=lambda context, groups: 0, ERR_clear_error=lambda: None)
        self.patch(openssl_calls, "_util", SimpleNamespace(lib=fake))
        limit_groups(SSL.Context(SSL.TLS_SERVER_METHOD))

    def test_no_such_call(self) -> None:
        """A binding without the call leaves OpenSSL's groups as they are."""
        for binding in (None, SimpleNamespace(), SimpleNamespace(lib=SimpleNamespace())):
            self.patch(openssl_calls, "_util", binding)
            limit_groups(SSL.Context(SSL.TLS_SERVER_METHOD))
