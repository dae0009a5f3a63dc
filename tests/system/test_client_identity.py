"""
Tests for what messages say of verified client certificates: certificates of C{trustme}, clients C{curl} and
C{openssl s_client}, and the real program.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import ssl
import subprocess
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.system.receiver import PATIENCE, Receiver, wait_until

try:
    import trustme
except ImportError:
    trustme = None  # type: ignore[assignment]

REQUEST = b"POST /in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"


def tool(name: str) -> str:
    """Return the path of a command, or skip the test that needs it."""
    path = shutil.which(name)
    if path is None:
        raise SkipTest(f"{name} is not installed.")
    return path


class ClientIdentityTests(SynchronousTestCase):
    def setUp(self) -> None:
        """Start a receiver that verifies certificates."""
        if trustme is None:
            raise SkipTest("trustme is not installed.")
        self.authority = trustme.CA(organization_name="Shippers CA")
        self.receiver = Receiver(
            "--tls-key-file=key.pem", "--tls-cert-file=cert.pem", "--tls-peer-verify", "--tls-ca-file=ca.pem"
        )
        self.addCleanup(self.receiver.clean_up)
        server = self.authority.issue_cert("localhost")
        self.ca_file = self.receiver.path("ca.pem")
        self.authority.cert_pem.write_to_path(self.ca_file)
        server.private_key_pem.write_to_path(self.receiver.path("key.pem"))
        os.chmod(self.receiver.path("key.pem"), 0o600)
        server.cert_chain_pems[0].write_to_path(self.receiver.path("cert.pem"))
        self.receiver.start()

    def issue(self, *names: str, common_name: str | None = None) -> tuple[str, str]:
        """Return the paths of a certificate with its key, and its SHA-256."""
        issued = self.authority.issue_cert(*names, common_name=common_name)
        path = self.receiver.path("client.pem")
        issued.private_key_and_cert_chain_pem.write_to_path(path)
        der = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes()).public_bytes(Encoding.DER)
        return path, hashlib.sha256(der).hexdigest()

    def message(self) -> dict[str, Any]:
        """Return the one message that has come since the last call."""
        wait_until(self.receiver.arrived, "a message")
        (message,) = self.receiver.messages()
        self.receiver.forget_messages()
        return {name: value for name, value in message.items() if name.startswith("webhook.client.")}

    def run_tool(self, *arguments: str, feed: bytes = b"") -> bytes:
        done = subprocess.run(arguments, input=feed, capture_output=True, timeout=PATIENCE, check=False)
        return done.stdout

    def test_curl(self) -> None:
        """A message has the names, the issuer and the fingerprint of the certificate, with either version of TLS."""
        path, fingerprint = self.issue("relay.shippers.example", "ops@shippers.example", common_name="relay-7")
        for version in ("1.2", "1.3"):
            resolve = f"localhost:{self.receiver.port}:127.0.0.1"
            answer = self.run_tool(
                *(
                    tool("curl"),
                    "-sS",
                    "--noproxy",
                    "*",
                    "--tls-max",
                    version,
                    "--cacert",
                    self.ca_file,
                    "--cert",
                    path,
                ),
                *("--resolve", resolve, "-d", "x", f"https://localhost:{self.receiver.port}/in"),
            )
            self.assertEqual(b'{"status":"received"}', answer)
            found = self.message()
            self.assertIn("Shippers CA", found.pop("webhook.client.issuer"))
            self.assertEqual(
                {
                    "webhook.client.cn": "relay-7",
                    "webhook.client.san": ["relay.shippers.example", "ops@shippers.example"],
                    "webhook.client.fingerprint": fingerprint,
                },
                found,
            )

    def test_openssl(self) -> None:
        """C{openssl s_client} shows its certificate; the fingerprint is the one that C{openssl x509} prints."""
        path, fingerprint = self.issue("192.0.2.7")
        answer = self.run_tool(
            *(tool("openssl"), "s_client", "-connect", f"127.0.0.1:{self.receiver.port}", "-CAfile", self.ca_file),
            *("-cert", path, "-key", path, "-quiet", "-ign_eof"),
            feed=REQUEST,
        )
        self.assertIn(b"HTTP/1.1 200 OK", answer)
        found = self.message()
        self.assertEqual(["192.0.2.7"], found["webhook.client.san"])
        self.assertEqual("", found["webhook.client.cn"])
        printed = self.run_tool(tool("openssl"), "x509", "-in", path, "-noout", "-fingerprint", "-sha256")
        self.assertEqual(
            found["webhook.client.fingerprint"], printed.decode().strip().partition("=")[2].replace(":", "").lower()
        )
        self.assertEqual(fingerprint, found["webhook.client.fingerprint"])

    def test_no_certificate(self) -> None:
        """Nobody comes in without a certificate."""
        answer = self.run_tool(
            *(tool("openssl"), "s_client", "-connect", f"127.0.0.1:{self.receiver.port}", "-CAfile", self.ca_file),
            *("-quiet", "-ign_eof"),
            feed=REQUEST,
        )
        self.assertEqual((b"", []), (answer, self.receiver.messages()))


class ProxiedTests(SynchronousTestCase):
    """Behind a proxy that passes TLS on, where TLS is Twisted's own."""

    def test_proxied(self) -> None:
        """A message has the address of the PROXY header and the names of the certificate."""
        if trustme is None:
            raise SkipTest("trustme is not installed.")
        authority = trustme.CA(organization_name="Shippers CA")
        options = "privateKey=key.pem:certKey=cert.pem:peerVerify=yes:caFile=ca.pem"
        receiver = Receiver(port=f"haproxy:ssl:0:interface=127.0.0.1:{options}")
        self.addCleanup(receiver.clean_up)
        server = authority.issue_cert("localhost")
        authority.cert_pem.write_to_path(receiver.path("ca.pem"))
        server.private_key_pem.write_to_path(receiver.path("key.pem"))
        os.chmod(receiver.path("key.pem"), 0o600)
        server.cert_chain_pems[0].write_to_path(receiver.path("cert.pem"))
        receiver.start()
        context = ssl.create_default_context(cafile=receiver.path("ca.pem"))
        authority.issue_cert("a.shippers.example", common_name="relay-8").configure_cert(context)
        with socket.create_connection(("127.0.0.1", receiver.port), PATIENCE) as plain:
            plain.sendall(b"PROXY TCP4 192.0.2.7 192.0.2.1 4321 443\r\n")
            with context.wrap_socket(plain, server_hostname="localhost") as tls:
                tls.sendall(REQUEST)
                self.assertIn(b"HTTP/1.1 200 OK", tls.recv(4096))
        (message,) = receiver.messages()
        self.assertEqual(
            ("192.0.2.7", "relay-8", ["a.shippers.example"]),
            (message["SOURCEIP"], message["webhook.client.cn"], message["webhook.client.san"]),
        )
