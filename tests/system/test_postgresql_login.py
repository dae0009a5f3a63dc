"""What the postgresql observer shows of its password to a server that asks for it in clear; the server is played."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading

from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.secret_contract import SECRET
from tests.specs import parse_observer
from webhookrx.errors import Unavailable
from webhookrx.interfaces import IWaitingObserver
from webhookrx.observers import registry
from webhookrx.testing import make_message

_SSL_REQUEST = struct.pack(">ii", 8, 80877103)
_CLEARTEXT = b"R" + struct.pack(">ii", 8, 3)


class AskingServer:
    """
    Speaks no TLS, asks for the password in clear, and refuses it with a text that quotes it.

    @ivar heard: all that clients have sent.
    """

    def __init__(self) -> None:
        self.heard = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def stop(self) -> None:
        """Listen no more."""
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(10)
                    self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        if self._hear(connection) == _SSL_REQUEST:
            connection.sendall(b"N")
            if not self._hear(connection):
                return
        connection.sendall(_CLEARTEXT)
        text = b"SFATAL\0C28P01\0Mnot " + self._hear(connection).strip(b"\0") + b"\0\0"
        connection.sendall(b"E" + struct.pack(">i", len(text) + 4) + text)

    def _hear(self, connection: socket.socket) -> bytes:
        piece = connection.recv(4096)
        self.heard += piece
        return piece


class LoginTests(SynchronousTestCase):
    """A server that asks for the password in clear."""

    def setUp(self) -> None:
        """Start the server, and write the password."""
        self.server = AskingServer()
        self.addCleanup(self.server.stop)
        self.password_file = os.path.abspath(self.mktemp())
        with open(self.password_file, "w") as file:
            file.write(f"{SECRET}\n")
        os.chmod(self.password_file, 0o600)

    def problem(self, options: str) -> str:
        """Return why a message is not stored."""
        spec = f"postgresql:postgresql://127.0.0.1:{self.server.port}/logs/webhooks:password_file={self.password_file}"
        observer = registry.build(parse_observer(f"{spec}:retry_for=1s{options}"), "queued")
        observer.open()
        self.addCleanup(observer.close)
        assert IWaitingObserver.providedBy(observer)
        return str(self.assertRaises(Unavailable, observer.store, [observer.prepare(make_message())]))

    def test_encrypted(self) -> None:
        """With tls=yes a server without TLS hears nothing but that TLS is asked for."""
        problem = self.problem(":tls=yes")

        self.assertIn("server does not support SSL", problem)
        self.assertEqual(b"", self.server.heard.replace(_SSL_REQUEST, b""))

    def test_to_this_machine(self) -> None:
        """Without TLS, which goes to this machine only, it is shown as asked for; the server's words are not quoted."""
        problem = self.problem("")

        self.assertIn(SECRET.encode(), self.server.heard)
        self.assertNotIn(SECRET, problem)
        self.assertIn("look at user=, password_file=", problem)
