"""
Connections as the operating system has them, under each reactor: plain and with TLS, whole and half closed.
"""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import tempfile

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.system.certificates import Authority, server_settings, write_ca_file
from tests.system.receiver import ANY_PORT, PATIENCE, TWISTD, Connection, Receiver, post, wait_until
from tests.transport.in_memory import TLS12, TLS13, client_context
from tests.transport.stepped import TLSClient

REACTORS = ("epoll", "poll", "select", "asyncio")
BODY = b'{"MESSAGE": "x"}'
#: More than a record, and more than is read in one turn.
MUCH = b'{"MESSAGE": "' + b"x" * 300_000 + b'"}'


class ReactorReceiver(Receiver):
    """A receiver under a reactor of a name."""

    def __init__(self, reactor: str, *, port: str) -> None:
        super().__init__("--source", "webhook-json", port=port)
        first = len(TWISTD)
        self._arguments = (*TWISTD, "--reactor", reactor, *self._arguments[first:])


class TransportCase(SynchronousTestCase):
    """
    Receivers with and without TLS.
    """

    def setUp(self) -> None:
        self.directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, self.directory)
        root = Authority("Root")
        self.ca_file = write_ca_file(self.directory, "ca", root)
        tls = server_settings(self.directory, root.issue("server"))
        self.secure_port = f"ssl:0:interface=127.0.0.1:privateKey={tls.key_file}:certKey={tls.cert_file}"
        self.context = ssl.create_default_context(cafile=self.ca_file)

    def start(self, reactor: str, port: str) -> Receiver:
        """Start a receiver that is gone after the test."""
        receiver = ReactorReceiver(reactor, port=port)
        self.addCleanup(receiver.clean_up)
        return receiver.start()

    def connect(self, receiver: Receiver) -> Connection:
        """Open a plain connection."""
        connection = Connection(receiver.port)
        self.addCleanup(connection.socket.close)
        return connection

    def connect_securely(self, receiver: Receiver, context: ssl.SSLContext | None = None) -> Connection:
        """Open one with TLS."""
        connection = self.connect(receiver)
        connection.socket = (context or self.context).wrap_socket(connection.socket, server_hostname="localhost")
        self.addCleanup(connection.socket.close)
        return connection

    def exchange(self, connection: Connection) -> list[int]:
        """Send small requests and a large one, one after another and then two at once."""
        statuses = []
        for requests in ([post(BODY)], [post(MUCH)], [post(BODY), post(BODY)]):
            connection.send(b"".join(requests))
            for _ in requests:
                answer = connection.answer()
                statuses.append(answer.status if answer is not None else 0)
        return statuses


class ReactorTests(TransportCase):
    """
    The same under each of Twisted's reactors.
    """

    def test_plain(self) -> None:
        """Requests are answered, also the last one of a sender that has ended its side; and it stops in order."""
        for reactor in REACTORS:
            receiver = self.start(reactor, ANY_PORT)
            connection = self.connect(receiver)
            self.assertEqual([200] * 4, self.exchange(connection), reactor)
            connection.send(post(BODY)).half_close()
            self.assertEqual([200], [answer.status for answer in connection.answers()], reactor)
            idle = self.connect(receiver)
            self.assertEqual((0, []), (receiver.stop(), idle.answers()), receiver.log())
            self.assertEqual(5, len(receiver.messages()))
            self.assertNotIn("Traceback", receiver.log())

    def test_tls(self) -> None:
        """So it is with TLS; who is connected at the end is told by C{close_notify}."""
        for reactor in REACTORS:
            receiver = self.start(reactor, self.secure_port)
            connection = self.connect_securely(receiver)
            self.assertEqual([200] * 4, self.exchange(connection), reactor)
            connection.socket.unwrap()  # type: ignore[attr-defined]  # it has TLS
            idle = self.connect_securely(receiver)
            self.assertEqual((0, []), (receiver.stop(), idle.answers()), receiver.log())
            self.assertEqual(4, len(receiver.messages()))
            self.assertNotIn("Traceback", receiver.log())


class TLSTests(TransportCase):
    """
    TLS as clients use and misuse it.
    """

    def test_half_closed(self) -> None:
        """A client that says C{close_notify} right after its request is answered, and told the same."""
        receiver = self.start("epoll", self.secure_port)
        for version in (TLS12, TLS13):
            client = TLSClient(client_context(self.ca_file, version), self.connect(receiver).socket)
            client.socket.setblocking(False)
            client.turn()
            while not client.tls.version():
                client.turn(wait=True)
            client.send(post(BODY))
            client.end()
            while not client.ended and client.error is None:
                client.turn(wait=True)
            self.assertEqual((b"HTTP/1.1 200 OK", None), (client.received[:15], client.error), version)
        self.assertEqual(2, len(receiver.messages()))

    def test_openssl(self) -> None:
        """So is one that does not wait for it, which is what C{openssl s_client} does at the end of its input."""
        openssl = shutil.which("openssl")
        if openssl is None:
            raise SkipTest("openssl is not installed")
        receiver = self.start("epoll", self.secure_port)
        address = f"127.0.0.1:{receiver.port}"
        for version in ("-tls1_2", "-tls1_3"):
            options = ("-connect", address, "-CAfile", self.ca_file, version)
            subprocess.run(
                (openssl, "s_client", *options), input=post(BODY), capture_output=True, timeout=PATIENCE, check=True
            )
        wait_until(lambda: receiver.arrived() == 2, "both messages are there")

    def test_rude_clients(self) -> None:
        """
        Clients that end at any point, and any way, leave nothing behind: no descriptor, no trace in the log, and no
        harm to others.
        """
        receiver = self.start("epoll", self.secure_port)
        steady = self.connect_securely(receiver)
        self.assertEqual([200] * 4, self.exchange(steady))
        before = receiver.open_files()
        for attempt in range(60):
            rude = self.connect(receiver)
            if attempt % 5 == 0:
                rude.send(b"GET / HTTP/1.1\r\n\r\n")
            elif attempt % 5 == 1:
                rude.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            elif attempt % 5 != 2:
                rude.socket = self.context.wrap_socket(rude.socket, server_hostname="localhost")
                rude.send(post(BODY)[: -1 if attempt % 5 == 3 else None])
            if attempt % 2:
                # A reset instead of an end.
                rude.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            rude.socket.close()
            if attempt % 10 == 9:
                self.assertEqual([200] * 4, self.exchange(steady))
        wait_until(lambda: receiver.open_files() <= before, "all of them are gone")
        self.assertNotIn("Traceback", receiver.log())
