"""
TLS over real sockets, spoken with C{curl}, C{openssl s_client} and Python's own C{ssl}.
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure
from twisted.trial.unittest import SkipTest, TestCase

from tests.system.certificates import CLIENT, Authority, self_signed, server_settings, write_ca_file
from tests.system.responder import ResponderFactory
from webhookrx.settings import TLS, Listener
from webhookrx.transport.endpoints import build_endpoint, socket_endpoint
from webhookrx.transport.listener_service import ListenerService
from webhookrx.transport.server_context import ServerConnectionCreator
from webhookrx.transport.swappable_endpoint import SwappableEndpoint

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = "tests.system.endpoint_program"
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLOSING_REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
SECONDS = 20

PROXY_V1 = b"PROXY TCP4 192.0.2.7 192.0.2.1 4321 443\r\n"
PROXY_V2 = (
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11"
    + struct.pack("!H", 12)
    + socket.inet_aton("192.0.2.8")
    + socket.inet_aton("192.0.2.1")
    + struct.pack("!HH", 4321, 443)
)


def tool(name: str) -> str:
    """Return the path of a command, or skip the test that needs it."""
    path = shutil.which(name)
    if path is None:
        raise SkipTest(f"{name} is not installed")
    return path


class _SystemCase(TestCase):
    timeout = 2 * SECONDS

    def setUp(self) -> None:
        # A short path: the name of a UNIX socket has room for about a hundred bytes.
        self.directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.root = Authority("Root")
        self.ca_file = write_ca_file(self.directory, "ca", self.root)
        self.settings = server_settings(self.directory, Authority("Intermediate", self.root).issue("server"))
        self.responders = ResponderFactory()
        self.addCleanup(self.responders.all_closed)

    def listen(
        self, inner: str = "tcp:0:interface=127.0.0.1", *, tls: TLS | None = None, proxy_protocol: bool = False
    ) -> ListenerService:
        tls = tls or self.settings
        listener = Listener(inner, inner, proxy_protocol, tls)
        self.endpoint = SwappableEndpoint(socket_endpoint(reactor, listener))
        endpoint = build_endpoint(reactor, listener, ServerConnectionCreator(tls), inner=self.endpoint)
        service = ListenerService(endpoint, self.responders, inner)
        service.startService()
        self.addCleanup(service.stopService)
        return service

    def run_tool(self, *arguments: str, feed: bytes = b"") -> Deferred[subprocess.CompletedProcess[bytes]]:
        return deferToThread(subprocess.run, arguments, input=feed, capture_output=True, timeout=SECONDS)

    def curl(self, service: ListenerService, *arguments: str) -> Deferred[subprocess.CompletedProcess[bytes]]:
        url = f"https://localhost:{service.address.port}/"
        resolve = f"localhost:{service.address.port}:127.0.0.1"
        options = ("-sS", "--noproxy", "*", "--max-time", str(SECONDS), "--cacert", self.ca_file, "--resolve", resolve)
        return self.run_tool(tool("curl"), *options, *arguments, url)


class CurlTests(_SystemCase):
    """
    A usual client.
    """

    async def test_versions(self) -> None:
        """curl is served by TLS 1.2 and 1.3 with the chain complete, and by nothing older."""
        service = self.listen()
        for arguments in (["--tlsv1.2", "--tls-max", "1.2"], ["--tlsv1.3"], ["--http2"]):
            done = await self.curl(service, *arguments)
            self.assertEqual((0, b"127.0.0.1"), (done.returncode, done.stdout), (arguments, done.stderr))
        old = await self.curl(service, "--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT:@SECLEVEL=0")
        self.assertNotEqual(0, old.returncode)
        self.assertEqual((3, ["wrong version: TLS 1.2 or 1.3 is needed"]), self._counts())

    async def test_client_certificates(self) -> None:
        """Where certificates are verified a good one passes; a bad one and none are refused, and the reason is told."""
        service = self.listen(
            tls=TLS(self.settings.key_file, self.settings.cert_file, peer_verify=True, ca_file=self.ca_file)
        )
        good = self.root.issue("good", (CLIENT,)).write(self.directory, "good")
        bad = self_signed("bad").write(self.directory, "bad")
        for version in ("1.2", "1.3"):
            for pair, served in ((good, True), (bad, False), (None, False)):
                certificate = ["--key", pair[0], "--cert", pair[1]] if pair else []
                done = await self.curl(service, "--tls-max", version, *certificate)
                self.assertEqual(served, done.returncode == 0, (version, pair, done.stderr))
                self.assertEqual(b"127.0.0.1" if served else b"", done.stdout)
        refusals = ["certificate verify failed: self-signed certificate", "peer did not return a certificate"]
        self.assertEqual((2, 2 * refusals), self._counts())

    async def test_plain_http(self) -> None:
        """Plain HTTP on a TLS port is no request; the log names it, and its sender is told."""
        service = self.listen()
        url = f"http://127.0.0.1:{service.address.port}/"
        curl = (tool("curl"), "-sS", "--noproxy", "*", "--max-time", str(SECONDS), "-w", "%{http_code}", url)
        for arguments in ((), ("-d", "hello")):
            done = await self.run_tool(*curl, *arguments)
            self.assertEqual((0, b""), (done.returncode, done.stderr))
            self.assertIn(b"A plain HTTP request came to an HTTPS port", done.stdout)
            self.assertEqual(b"400", done.stdout[-3:])
        self.assertEqual((0, 2 * ["plain HTTP on a TLS port"]), self._counts())

    async def test_reload(self) -> None:
        """A new certificate reaches the next connection, while the port stays open."""
        service = self.listen()
        other = Authority("Other Root")
        server_settings(self.directory, other.issue("renewed"))

        listener = Listener("x", "x", tls=self.settings)
        creator = ServerConnectionCreator(self.settings)
        service.use(build_endpoint(reactor, listener, creator, inner=self.endpoint), self.responders)

        self.assertNotEqual(0, (await self.curl(service)).returncode)
        done = await self.curl(service, "--cacert", write_ca_file(self.directory, "other", other))
        self.assertEqual((0, b"127.0.0.1"), (done.returncode, done.stdout), done.stderr)

    async def test_unix_socket(self) -> None:
        """TLS runs over a UNIX socket."""
        path = os.path.join(self.directory, "socket")
        self.listen(f"unix:{path}")
        arguments = ("-sS", "--max-time", str(SECONDS), "--cacert", self.ca_file, "--unix-socket", path)
        done = await self.run_tool(tool("curl"), *arguments, "https://localhost/")
        self.assertEqual((0, b"nobody"), (done.returncode, done.stdout), done.stderr)

    def _counts(self) -> tuple[int, list[str | None]]:
        return self.responders.handshakes, self.responders.failures


class OpenSSLTests(_SystemCase):
    """
    A client that shows the protocol.
    """

    def s_client(
        self, service: ListenerService, *arguments: str, feed: bytes = b""
    ) -> Deferred[subprocess.CompletedProcess[bytes]]:
        connect = f"127.0.0.1:{service.address.port}"
        options = ("-connect", connect, "-CAfile", self.ca_file, "-servername", "localhost")
        return self.run_tool(tool("openssl"), "s_client", *options, *arguments, feed=feed)

    async def test_session(self) -> None:
        """The chain verifies, nothing is compressed, and renegotiation is secure where it exists at all."""
        service = self.listen()
        for version in ("-tls1_2", "-tls1_3"):
            done = await self.s_client(service, version, "-verify_return_error")
            self.assertIn(b"Verify return code: 0 (ok)", done.stdout)
            self.assertIn(b"Compression: NONE", done.stdout)
        self.assertEqual(2, self.responders.handshakes)

    async def test_no_renegotiation(self) -> None:
        """A client that asks for a new handshake, which C{R} does, is told that there is none."""
        done = await self.s_client(self.listen(), "-tls1_2", feed=b"R\n")
        self.assertIn(b"no renegotiation", done.stderr)
        self.assertEqual(1, self.responders.handshakes)

    async def test_resumption(self) -> None:
        """A session comes back by its ticket where no certificate is asked for, and never where one is."""
        good = self.root.issue("good", (CLIENT,)).write(self.directory, "good")
        strict = TLS(self.settings.key_file, self.settings.cert_file, peer_verify=True, ca_file=self.ca_file)
        session = os.path.join(self.directory, "session")
        for tls, resumed in ((self.settings, b"Reused, TLSv1."), (strict, b"New, TLSv1.")):
            service = self.listen(tls=tls)
            for version in ("-tls1_2", "-tls1_3"):
                options = (version, "-key", good[0], "-cert", good[1], "-ign_eof")
                await self.s_client(service, *options, "-sess_out", session, feed=CLOSING_REQUEST)
                self.assertTrue(tls is strict or os.path.exists(session), version)
                if os.path.exists(session):
                    done = await self.s_client(service, *options, "-sess_in", session, feed=CLOSING_REQUEST)
                    self.assertIn(resumed, done.stdout, (version, done.stderr))
                    os.remove(session)


class ProxyTests(_SystemCase):
    """
    Behind a proxy that passes TLS on and says whom for.
    """

    async def test_proxied_address(self) -> None:
        """Either version of the PROXY header, before TLS, gives the peer's address."""
        service = self.listen(proxy_protocol=True)
        address = (socket.AF_INET, ("127.0.0.1", service.address.port))
        for header, peer in ((PROXY_V1, b"192.0.2.7"), (PROXY_V2, b"192.0.2.8")):
            self.assertIn(peer, await deferToThread(_ask, *address, header, self.ca_file))

    async def test_unix_socket(self) -> None:
        """A proxy on the same machine may use a UNIX socket."""
        path = os.path.join(self.directory, "socket")
        self.listen(f"unix:{path}", proxy_protocol=True)
        self.assertIn(b"192.0.2.7", await deferToThread(_ask, socket.AF_UNIX, path, PROXY_V1, self.ca_file))

    async def test_missing_header(self) -> None:
        """TLS without the header it should follow is not served."""
        service = self.listen(proxy_protocol=True)
        with self.assertRaises(OSError):
            await deferToThread(_ask, socket.AF_INET, ("127.0.0.1", service.address.port), b"", self.ca_file)
        self.assertEqual(0, self.responders.handshakes)


class SocketActivationTests(_SystemCase):
    """
    A socket that the service manager has opened.
    """

    async def test_inherited_socket(self) -> None:
        """TLS is served on a socket that was passed as systemd passes it, by number or by name."""
        pair = (self.settings.key_file, self.settings.cert_file)
        for inner in ("systemd:domain=INET:index=0", "systemd:domain=INET:name=web"):
            listening = socket.create_server(("127.0.0.1", 0))
            self.addCleanup(listening.close)
            program = _Program()
            reactor.spawnProcess(
                program,
                "/bin/sh",
                # systemd names the process that may take the sockets; exec keeps its number.
                ["sh", "-c", 'export LISTEN_PID=$$; exec "$@"', "sh", sys.executable, "-m", PROGRAM, inner, *pair],
                {**os.environ, "PYTHONPATH": ROOT, "LISTEN_FDS": "1", "LISTEN_FDNAMES": "web"},
                path=ROOT,
                childFDs={0: "w", 1: "r", 2: 2, 3: listening.fileno()},
            )
            self.addCleanup(program.stop)
            await program.ready

            answer = await deferToThread(_ask, socket.AF_INET, listening.getsockname(), b"", self.ca_file)

            self.assertTrue(answer.endswith(b"127.0.0.1"), answer)


class _Program(ProcessProtocol):
    """
    A child that says that it is ready.

    @ivar ready: fires when it has.
    """

    def __init__(self) -> None:
        self.ready: Deferred[None] = Deferred()
        self._ended: Deferred[None] = Deferred()

    def outReceived(self, data: bytes) -> None:
        if not self.ready.called:
            self.ready.callback(None)

    def processEnded(self, reason: Failure) -> None:
        if not self.ready.called:
            self.ready.errback(reason)
        self._ended.callback(None)

    def stop(self) -> Deferred[None]:
        """End it; return a Deferred that fires when it is gone."""
        if not self._ended.called:
            self.transport.signalProcess("TERM")
        return self._ended


def _ask(family: socket.AddressFamily, address: object, header: bytes, ca_file: str) -> bytes:
    """Connect, send a PROXY header, start TLS, send a request and return the answer."""
    with socket.socket(family, socket.SOCK_STREAM) as plain:
        plain.settimeout(SECONDS)
        plain.connect(address)
        plain.sendall(header)
        with ssl.create_default_context(cafile=ca_file).wrap_socket(plain, server_hostname="localhost") as secure:
            secure.sendall(REQUEST)
            return secure.recv(4096)
