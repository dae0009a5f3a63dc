"""
Tests for L{webhookrx.transport.key_exchange_groups}.
"""

from __future__ import annotations

import os
from types import SimpleNamespace

from OpenSSL import SSL
from twisted.trial.unittest import SynchronousTestCase

from tests.system.certificates import Authority, server_settings, write_ca_file
from tests.transport.in_memory import TLS13, WORKS, client_context, meet
from webhookrx.transport import key_exchange_groups
from webhookrx.transport.connection_creator import ServerConnectionCreator
from webhookrx.transport.handshake import describe_failure
from webhookrx.transport.key_exchange_groups import limit_groups


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
        self.patch(key_exchange_groups, "lib", fake)

        limit_groups(SSL.Context(SSL.TLS_SERVER_METHOD))

        self.assertEqual(([b"X25519MLKEM768:X25519:P-256:P-384", b"X25519:P-256:P-384"], [True]), (tried, cleared))

    def test_no_list_is_taken(self) -> None:
        """Where OpenSSL takes no list at all its own groups stay."""
        fake = SimpleNamespace(SSL_CTX_set1_curves_list=lambda context, groups: 0, ERR_clear_error=lambda: None)
        self.patch(key_exchange_groups, "lib", fake)
        limit_groups(SSL.Context(SSL.TLS_SERVER_METHOD))

    def test_no_such_call(self) -> None:
        """A binding without the call leaves OpenSSL's groups as they are."""
        self.patch(key_exchange_groups, "lib", SimpleNamespace())
        limit_groups(SSL.Context(SSL.TLS_SERVER_METHOD))
