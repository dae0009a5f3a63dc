"""
Tests for L{webhookrx.transport.handshake}.
"""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st
from OpenSSL import SSL
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from tests.system.certificates import Authority, server_settings, write_ca_file
from tests.transport.in_memory import TLS12, TLS13, client_context, meet, server_end
from webhookrx.transport.handshake import ClientCertificateRefused, describe_failure
from webhookrx.transport.server_context import ServerConnectionCreator


class DescribeFailureTests(SynchronousTestCase):
    """
    From what C{connectionLost} gets to a sentence.
    """

    def test_closed_connections(self) -> None:
        """A connection that was just closed, cleanly or not, has no failure to describe."""
        for error in (
            ConnectionDone(),
            ConnectionLost(),
            ConnectionAborted(),
            SSL.ZeroReturnError(),
            SSL.SysCallError(-1, "Unexpected EOF"),
            SSL.Error([]),
        ):
            self.assertIsNone(describe_failure(Failure(error)), error)

    def test_openssl_errors(self) -> None:
        """OpenSSL's reasons and alerts, of several versions, become words that do not change."""
        for text, words in (
            ("peer did not return a certificate", "peer did not return a certificate"),
            ("no shared cipher", "no shared cipher"),
            ("http request", "plain HTTP on a TLS port"),
            ("https proxy request", "plain HTTP on a TLS port"),
            ("wrong version number", "not TLS, or a wrong version"),
            ("unsupported protocol", "wrong version: TLS 1.2 or 1.3 is needed"),
            ("tlsv1 alert unknown ca", "alert unknown ca"),
            ("sslv3 alert bad certificate", "alert bad certificate"),
            ("ssl/tls alert certificate unknown", "alert certificate unknown"),
            ("tlsv13 alert certificate required", "alert certificate required"),
            ("something new", "something new"),
            ("", "unknown TLS error"),
        ):
            failure = Failure(SSL.Error([("rsa routines", "", "padding"), ("SSL routines", "", text)]))
            self.assertEqual(words, describe_failure(failure))

    def test_refused_client_certificate(self) -> None:
        """The reason of the verification is part of the sentence, as a number where there is no word for it."""
        for code, words in (
            (SSL.X509VerificationCodes.ERR_CERT_HAS_EXPIRED, "certificate verify failed: certificate has expired"),
            (9999, "certificate verify failed: verification error 9999"),
        ):
            self.assertEqual(words, describe_failure(Failure(ClientCertificateRefused(code))))


class WireTests(SynchronousTestCase):
    """
    From what comes over the wire to a sentence.
    """

    def setUp(self) -> None:
        self.directory = self.mktemp()
        os.makedirs(self.directory)
        root = Authority("Root")
        self.ca_file = write_ca_file(self.directory, "ca", root)
        self.creator = ServerConnectionCreator(server_settings(self.directory, root.issue("server")))

    def failure_of(self, data: bytes) -> str | None:
        server = server_end(self.creator)
        server.exchange(data)
        self.assertEqual((0, b""), (server.answerer.handshakes, server.answerer.received))
        return None if server.answerer.lost is None else describe_failure(server.answerer.lost)

    def test_other_protocols(self) -> None:
        """What is not TLS at all is named."""
        for data, words in (
            (b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "plain HTTP on a TLS port"),
            (b"GET /secret HTTP/1.1\r\nHost: x\r\n\r\n", "plain HTTP on a TLS port"),
            (b"CONNECT x:443 HTTP/1.1\r\n\r\n", "plain HTTP on a TLS port"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "not TLS, or a wrong version"),
            (b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "not TLS, or a wrong version"),
        ):
            self.assertEqual(words, self.failure_of(data), data)

    def test_untrusting_client(self) -> None:
        """A client that does not trust our certificate says so by an alert."""
        stranger = write_ca_file(self.directory, "stranger", Authority("Stranger"))
        for version in (TLS12, TLS13):
            meeting = meet(self.creator, client_context(stranger, version))
            assert meeting.server.answerer.lost is not None
            self.assertEqual("alert unknown ca", describe_failure(meeting.server.answerer.lost))

    def test_client_that_goes_away(self) -> None:
        """A client that leaves in the middle of the handshake is just a closed connection."""
        server = server_end(self.creator)
        server.exchange(b"\x16\x03\x01")
        server.protocol.connectionLost(Failure(ConnectionDone()))
        assert server.answerer.lost is not None
        self.assertIsNone(describe_failure(server.answerer.lost))

    @given(st.binary(min_size=1, max_size=64), st.sampled_from([b"", b"\x16\x03\x01\x00\x20", b"\x15\x03\x03\x00\x02"]))
    def test_no_byte_of_the_peer(self, noise: bytes, start: bytes) -> None:
        """Whatever a peer sends, the sentence is one of OpenSSL's or ours: short, printable, the same each time."""
        words = self.failure_of(start + noise)
        self.assertEqual(words, self.failure_of(start + noise))
        if words is not None:
            self.assertRegex(words, r"\A[A-Za-z0-9 .,:/()'-]{1,80}\Z")
