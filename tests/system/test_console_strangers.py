"""
Tests of what strangers do at the port for routers of a console as its own process.
"""

from __future__ import annotations

import os
import socket
import ssl
import urllib.request

from twisted.trial.unittest import SynchronousTestCase

from tests.system.console_process import ConsoleProcess
from tests.system.receiver import wait_until

ENROL = b"POST /agent/v1/enrol HTTP/1.1\r\nHost: x\r\nContent-Length: %s\r\n\r\n"
SILENT = 200


class StrangerTests(SynchronousTestCase):
    """Who has no certificate."""

    def setUp(self) -> None:
        """Start a console."""
        self.console = ConsoleProcess()
        self.addCleanup(self.console.stop)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE

    def connect(self) -> ssl.SSLSocket:
        """Return a connection, which ends with the test."""
        connection = self.context.wrap_socket(socket.create_connection(("127.0.0.1", self.console.routers), 60))
        self.addCleanup(connection.close)
        return connection

    def status(self, data: bytes) -> bytes:
        """Return the status of the answer to some bytes."""
        connection = self.connect()
        connection.sendall(data)
        return connection.recv(4096).split(b" ")[1]

    def test_requests(self) -> None:
        """Only a small enrolment is read, and nothing but routers gets anything else."""
        self.assertEqual(b"403", self.status(b"GET /agent/v1/sync?wait=55 HTTP/1.1\r\nHost: x\r\n\r\n"))
        self.assertEqual(b"413", self.status(ENROL % b"0000000000008000000"))
        self.assertEqual(b"400", self.status(ENROL % b"60000" + b"[" * 60_000))
        self.assertTrue(self.console.is_ready())

    def test_silence(self) -> None:
        """Connections on which nothing is asked are closed, and others are answered meanwhile."""
        files = f"/proc/{self.console.process.pid}/fd"
        before = len(os.listdir(files))
        for _ in range(SILENT):
            self.connect()
        self.assertEqual(b"403", self.status(b"GET /agent/v1/sync HTTP/1.1\r\nHost: x\r\n\r\n"))
        with urllib.request.urlopen(f"http://127.0.0.1:{self.console.admin}/readyz", timeout=60) as answer:
            self.assertEqual(200, answer.status)
        wait_until(lambda: len(os.listdir(files)) <= before + 5, "all of them are closed", 90)
