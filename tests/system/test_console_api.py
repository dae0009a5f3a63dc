"""
Tests of the API of a console as its own process: by its description, by garbage, and by more log-ins than it hashes.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import socket
import ssl
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from unittest import SkipTest

from twisted.trial.unittest import SynchronousTestCase

from tests.system.console_process import ConsoleProcess

CHECKS = "not_a_server_error,response_schema_conformance,content_type_conformance"

#: What is wrong about a request in one way or another, for both ports.
DOUBTFUL = (
    b"GET /api/v1/../v1/rules HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /api/v1/rules%2f%2e%2e HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"GET /api/v1/rules HTTP/1.1\r\nHost: {host}\r\nHost: evil\r\n\r\n",
    b"GET http://evil/api/v1/rules HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"POST /api/v1/session HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
    b"POST /api/v1/session HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n",
    b"POST /api/v1/session HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 1800\r\n\r\n"
    + b"[" * 1800,
    b'POST /agent/v1/enrol HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n{"a":1e9}',
    b"GET /agent/v1/sync?have=%00&wait=99999999999999999999 HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"GET /api/v1/session HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer wrxp_" + b"a" * 190 + b"\r\n\r\n",
    b"GET /api/v1/session HTTP/1.1\r\nHost: {host}\r\nCookie: " + b"__Host-wrx=" + b"a" * 43 + b"\r\n\r\n",
    b"DELETE /api/v1/session HTTP/1.1\r\nHost: {host}\r\nX-CSRF-Token: \xff\xfe\r\n\r\n",
)


class ConsoleApiTests(SynchronousTestCase):
    """A console in a process of its own."""

    def setUp(self) -> None:
        """Start it."""
        self.console = ConsoleProcess()
        self.addCleanup(self.console.stop)

    def check_well(self) -> None:
        """Check that it is well, and that nothing has failed in it."""
        self.assertTrue(self.console.is_ready())
        self.assertEqual([], re.findall(r".*(?:#error|#critical|Traceback|Unhandled).*", self.console.log_text()))

    def test_description(self) -> None:
        """Of all calls that its description allows none fails, and answers are of the types that it says."""
        tool = os.path.join(os.path.dirname(sys.executable), "schemathesis")
        if not os.path.exists(tool):
            raise SkipTest("schemathesis is not installed: pip install -e '.[test]'.")
        token = self.console.token(tap=True)
        seconds = "300" if os.environ.get("WEBHOOKRX_LONG") else "30"
        command = [tool, "run", f"http://127.0.0.1:{self.console.port}/api/v1/openapi.json", "--no-color"]
        command += ["-H", f"Authorization: Bearer {token}", "--generation-with-security-parameters", "false"]
        # Log-ins have limits of their own, which calls like these would only meet.
        command += ["--checks", CHECKS, "--exclude-path-regex", "/api/v1/(session$|session/|first-admin)"]
        command += ["-n", "10", "--max-time", seconds, "--seed", "1", "--suppress-health-check", "all"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=600, cwd=self.console.directory
        )
        self.assertEqual(0, done.returncode, "\n".join(line[:300] for line in done.stdout.splitlines())[-20_000:])
        self.assertRegex(done.stdout, r"\d\d\d+ generated")
        self.check_well()

    def test_flood(self) -> None:
        """More log-ins than are hashed are refused, and whoever was known before them is answered meanwhile."""
        token = self.console.token()
        self.assertEqual(200, self.console.call("GET", "/session", authorization=f"Bearer {token}")[0])

        def log_in(number: int) -> int:
            return self.console.call("POST", "/session", {"name": f"n{number}", "password": "wrong password"})[0]

        with ThreadPoolExecutor(40) as pool:
            tries = [pool.submit(log_in, number) for number in range(40)]
            slowest = 0.0
            while not all(each.done() for each in tries):
                begun = time.monotonic()
                self.assertEqual(200, self.console.call("GET", "/session", authorization=f"Bearer {token}")[0])
                slowest = max(slowest, time.monotonic() - begun)
            statuses = [each.result() for each in tries]
        self.assertLessEqual({401}, set(statuses))
        self.assertLessEqual(set(statuses), {401, 429, 503})
        self.assertLessEqual(statuses.count(401), 20)
        self.assertLess(slowest, 10)
        self.check_well()

    def test_garbage(self) -> None:
        """Garbage on both of its ports is refused or closed, never served, and nothing fails."""
        choice = random.Random(1)
        samples = list(DOUBTFUL)
        for _ in range(150):
            sample = bytearray(choice.choice(DOUBTFUL))
            for _ in range(choice.randrange(1, 6)):
                sample[choice.randrange(len(sample))] = choice.randrange(256)
            samples.append(bytes(sample))
        for sample in samples:
            for port, encrypted in ((self.console.port, False), (self.console.routers, True)):
                data = sample.replace(b"{host}", b"127.0.0.1:%d" % port)
                answer = self.exchange(port, data, encrypted=encrypted)
                self.assertNotRegex(answer, rb"\AHTTP/1.1 (2|5)", data)
        self.check_well()

    def exchange(self, port: int, data: bytes, *, encrypted: bool) -> bytes:
        """Return what is answered to some bytes, after which nothing more is sent."""
        with (
            contextlib.suppress(ConnectionError, ssl.SSLError),
            socket.create_connection(("127.0.0.1", port), 30) as plain,
        ):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with context.wrap_socket(plain) if encrypted else plain as sock:
                sock.sendall(data)
                if not encrypted:
                    sock.shutdown(socket.SHUT_WR)
                sock.settimeout(0.3)
                with contextlib.suppress(TimeoutError):
                    return sock.recv(65536)
        return b""
