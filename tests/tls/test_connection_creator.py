"""
Tests for L{webhookrx.tls.connection_creator}.
"""

from __future__ import annotations

import os

from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.system.certificates import Authority, key_pem, self_signed, server_settings, write, write_ca_file
from tests.tls.in_memory import WORKS, Meeting, client_context, meet
from webhookrx.config.settings import TLS
from webhookrx.errors import ConfigError
from webhookrx.tls.connection_creator import ServerConnectionCreator


class ServerConnectionCreatorTests(SynchronousTestCase):
    """
    New certificates while the port stays open.
    """

    def setUp(self) -> None:
        self.directory = self.mktemp()
        os.makedirs(self.directory)
        self.root = Authority("Root")
        self.client = client_context(write_ca_file(self.directory, "ca", self.root))
        self.settings = server_settings(self.directory, self.root.issue("first"))
        self.creator = ServerConnectionCreator(self.settings)

    def served_name(self) -> str:
        meeting = meet(self.creator, self.client)
        self.assertEqual(WORKS, meeting.outcome)
        return _common_name(meeting)

    def test_interface(self) -> None:
        """It is what C{wrapServerTLS} asks for."""
        self.assertTrue(verifyObject(IOpenSSLServerConnectionCreator, self.creator))

    def test_bad_files_at_the_start(self) -> None:
        """Without a good pair there is no creator."""
        self.assertRaises(ConfigError, ServerConnectionCreator, TLS("/nonexistent", self.settings.cert_file))

    def test_reload(self) -> None:
        """A renewed pair is served to new connections after a reload, not before, and again after the next."""
        for name in ("second", "third"):
            before = self.served_name()
            server_settings(self.directory, self.root.issue(name))
            self.assertEqual(before, self.served_name())

            self.creator.reload()

            self.assertEqual(name, self.served_name())

    def test_open_connections_live_on(self) -> None:
        """A connection from before a reload goes on as it was."""
        meeting = meet(self.creator, self.client)
        server_settings(self.directory, self.root.issue("second"))
        self.creator.reload()

        meeting.client.tls.write(b"again")
        meeting.talk()

        self.assertTrue(meeting.server.answerer.received.endswith(b"again"))
        self.assertIsNone(meeting.server.answerer.lost)

    def test_bad_pair_keeps_the_old_one(self) -> None:
        """A reload that can't work says which file is to blame, and changes nothing for new connections."""
        with open(self.settings.key_file, "rb") as file:
            good = file.read()
        for content, problem in (
            (None, "does not exist"),
            (b"half a fi", "holds no private key in PEM format"),
            (key_pem(self_signed("stranger").key), "does not fit the certificate"),
            (key_pem(self_signed("stranger").key, b"pass phrase"), "is encrypted"),
        ):
            os.remove(self.settings.key_file)
            if content is not None:
                write(self.settings.key_file, content)

            error = self.assertRaises(ConfigError, self.creator.reload)

            self.assertIn(self.settings.key_file, str(error))
            self.assertIn(problem, str(error))
            self.assertEqual("first", self.served_name())
            write(self.settings.key_file, good)

    def test_recovers(self) -> None:
        """After a failed reload the next one takes the mended files."""
        write(self.settings.cert_file, b"")
        self.assertRaises(ConfigError, self.creator.reload)
        server_settings(self.directory, self.root.issue("mended"))

        self.creator.reload()

        self.assertEqual("mended", self.served_name())


def _common_name(meeting: Meeting) -> str:
    certificate = meeting.client.tls.getpeercert()
    assert certificate is not None
    return dict(pair for (pair,) in certificate["subject"])["commonName"]
