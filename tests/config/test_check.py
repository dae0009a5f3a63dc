"""
Tests for L{webhookrx.config.check}.
"""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import LOOPBACK, start, write_text
from tests.system.certificates import Authority, write_ca_file
from webhookrx.config.check import check_report, error_report
from webhookrx.config.problems import ConfigProblems

AUTHORITY = Authority("root")
SERVER = AUTHORITY.issue("server")


class CheckReportTests(SynchronousTestCase):
    """
    Tests for L{check_report} and L{error_report}.
    """

    def test_report(self) -> None:
        """It shows each setting with its origin, the endpoints as they will be, and the warnings, secrets masked."""
        directory = self.mktemp()
        path = write_text(directory, "x.yaml", f"sources:\n - name: a\n   port: {LOOPBACK}\n   auth_token: c4nary\n")
        lines = check_report(start(config=path, ack="queued")).splitlines()
        self.assertEqual("service", lines[0])
        words = [line.split() for line in lines]
        self.assertIn(["ack", "queued", "(--ack,", "command", "line)"], words)
        self.assertIn(["limit", "body", "10MiB", "(default)"], words)
        self.assertIn("source a", lines)
        self.assertIn(["port", LOOPBACK, f"({path}:3)"], words)
        self.assertIn(["auth-token", "***", f"({path}:4)"], words)
        self.assertIn(f"  listens on {LOOPBACK}:backlog=4096, plain HTTP", lines)
        self.assertTrue(lines[-2].startswith(f"warning: {path}:3: sources[0].port: Tokens come"), lines[-2])
        self.assertEqual("The configuration is good.", lines[-1])
        self.assertNotIn("c4nary", "\n".join(lines))

    def test_tls(self) -> None:
        """The line of an endpoint says what its TLS asks of clients."""
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        key, cert = SERVER.write(directory, "server")
        ca = write_ca_file(directory, "ca", AUTHORITY)
        report = check_report(
            start(
                port=[
                    "ssl:443",
                    f"haproxy:ssl:444:peerVerify=yes:caFile={ca}:systemStore=yes:extraCertChain={ca}",
                ],
                tls_key_file=key,
                tls_cert_file=cert,
            )
        )
        self.assertIn(
            f"listens on tcp:443:backlog=4096, TLS with key {key}, certificate {cert}; "
            "no client certificate is asked for",
            report,
        )
        self.assertIn(
            f"listens on tcp:444:backlog=4096, behind a PROXY header, TLS with key {key}, certificate {cert}, "
            f"chain {ca}; clients need a certificate that {ca} or the system's store vouches for",
            report,
        )

    def test_delay(self) -> None:
        """It says up to which size bodies hold up nobody for long."""
        for body, line in (
            ("1MiB", "No body of up to 1MiB holds up other senders for more than 50 ms."),
            ("10MiB", "No body of up to 10MiB holds up other senders for more than 50 ms."),
            ("25MiB", "No body of up to 10MiB holds up other senders for more than 50 ms; larger ones may."),
        ):
            self.assertIn(line, check_report(start(port=LOOPBACK, limit=[f"body={body}"])).splitlines())

    def test_errors(self) -> None:
        """All errors are shown, one line each."""
        problems = self.assertRaises(ConfigProblems, start, port="abc", ack="disk")
        lines = error_report(str(problems)).splitlines()
        self.assertEqual(3, len(lines))
        self.assertTrue(lines[0].startswith('error: command line: --ack: "disk" is not one of'), lines[0])
        self.assertTrue(lines[1].startswith('error: command line: --port: "abc" is of no known kind'), lines[1])
        self.assertEqual("The configuration can't be used.", lines[2])
