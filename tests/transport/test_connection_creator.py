"""
Tests for L{webhookrx.transport.connection_creator}.
"""

from __future__ import annotations

import os

from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.system.certificates import (
    A_YEAR_LATER,
    FAR_AWAY,
    Authority,
    key_pem,
    self_signed,
    server_settings,
    write,
    write_ca_file,
)
from tests.transport.in_memory import WORKS, Meeting, client_context, meet
from webhookrx.errors import ConfigError
from webhookrx.transport.connection_creator import ServerConnectionCreator


class ServerConnectionCreatorTests(SynchronousTestCase):
    """
    One creator after another, from the files as they are.
    """

    def setUp(self) -> None:
        self.directory = self.mktemp()
        os.makedirs(self.directory)
        self.root = Authority("Root")
        self.client = client_context(write_ca_file(self.directory, "ca", self.root))
        self.settings = server_settings(self.directory, self.root.issue("first"))
        self.creator = ServerConnectionCreator(self.settings)

    def served_name(self, creator: ServerConnectionCreator) -> str:
        """The name that a client sees."""
        meeting = meet(creator, self.client)
        self.assertEqual(WORKS, meeting.outcome)
        return _common_name(meeting)

    def test_interface(self) -> None:
        """It is what C{wrapServerTLS} asks for."""
        self.assertTrue(verifyObject(IOpenSSLServerConnectionCreator, self.creator))

    def test_renewed(self) -> None:
        """One that is made from a renewed pair serves that one; the one from before serves what it has read."""
        server_settings(self.directory, self.root.issue("second"))
        self.assertEqual("first", self.served_name(self.creator))
        self.assertEqual("second", self.served_name(ServerConnectionCreator(self.settings)))

    def test_open_connections_live_on(self) -> None:
        """A connection from before a renewal goes on as it was."""
        meeting = meet(self.creator, self.client)
        server_settings(self.directory, self.root.issue("second"))
        ServerConnectionCreator(self.settings)

        meeting.client.tls.write(b"again")
        meeting.talk()

        self.assertTrue(meeting.server.answerer.received.endswith(b"again"))
        self.assertIsNone(meeting.server.answerer.lost)

    def test_end(self) -> None:
        """It tells when the first of the certificates that it shows expires; here that is the host's."""
        self.assertEqual(FAR_AWAY.timestamp(), self.creator.ends)
        middle = Authority("Middle", self.root)
        settings = server_settings(self.directory, middle.issue("host", not_after=A_YEAR_LATER))
        self.assertEqual(A_YEAR_LATER.timestamp(), ServerConnectionCreator(settings).ends)

    def test_bad_pair(self) -> None:
        """Without a good pair there is no creator, and the error says which file is to blame."""
        for content, problem in (
            (None, "does not exist"),
            (b"half a fi", "holds no private key in PEM format"),
            (key_pem(self_signed("stranger").key), "does not fit the certificate"),
            (key_pem(self_signed("stranger").key, b"pass phrase"), "is encrypted"),
        ):
            os.remove(self.settings.key_file)
            if content is not None:
                write(self.settings.key_file, content)

            error = self.assertRaises(ConfigError, ServerConnectionCreator, self.settings)

            self.assertIn(self.settings.key_file, str(error))
            self.assertIn(problem, str(error))
            write(self.settings.key_file, b"")


def _common_name(meeting: Meeting) -> str:
    certificate = meeting.client.tls.getpeercert()
    assert certificate is not None
    return dict(pair for (pair,) in certificate["subject"])["commonName"]
