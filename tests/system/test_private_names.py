"""
A receiver that can import no private module of Twisted or pyOpenSSL, as when a release of theirs has moved all of them.
"""

from __future__ import annotations

import re
import socket
import ssl
import sys

from tests.system.certificates import self_signed, server_settings
from tests.system.receiver import ReceiverCase, post

PROGRAM = """
import builtins, sys

real = builtins.__import__

def guarded(name, globals=None, locals=None, fromlist=(), level=0):
    importer = (globals or {}).get("__name__", "")
    if importer.startswith("webhookrx") and name.partition(".")[0] in ("twisted", "OpenSSL", "treq"):
        for each in (name, *(f"{name}.{part}" for part in fromlist or ())):
            if any(part.startswith("_") and not part.startswith("__") for part in each.split(".")):
                print("refused:", importer, "imports", each)
                raise ImportError(each)
    return real(name, globals, locals, fromlist, level)

builtins.__import__ = guarded
from twisted.scripts.twistd import run
sys.argv[0] = "twistd"
run()
"""


class PrivateNamesTests(ReceiverCase):
    """
    Private modules may go: the receiver starts and receives all the same.
    """

    def test_receives(self) -> None:
        """It does so by plain text, by TLS with pyOpenSSL's public methods, and behind a PROXY header."""
        receiver = self.prepare(port=None)
        tls = server_settings(receiver.directory, self_signed("localhost"))
        files = f"privateKey={tls.key_file}:certKey={tls.cert_file}"
        ports = ("tcp:0:interface=127.0.0.1", f"ssl:0:interface=127.0.0.2:{files}")
        receiver._arguments = (
            *(sys.executable, "-c", PROGRAM, "-n", "--pidfile=", "webhookrx", "--observer", "file:messages.jsonl"),
            *(option for port in (*ports, "haproxy:unix:proxied") for option in ("--port", port)),
        )
        receiver.start()
        plain, by_tls = map(int, re.findall(r"Listening on 127\.0\.0\.[12]:(\d+)", receiver.log()))
        self.assertEqual(200, self.ask(plain, post(b"1")).status)
        context = ssl.create_default_context(cafile=tls.cert_file)
        with (
            socket.create_connection(("127.0.0.2", by_tls)) as raw,
            context.wrap_socket(raw, server_hostname="localhost") as secure,
        ):
            secure.sendall(post(b"2"))
            self.assertTrue(secure.recv(65536).startswith(b"HTTP/1.1 200 "))
        header = b"PROXY TCP4 192.0.2.7 192.0.2.1 4321 443\r\n"
        self.assertEqual(200, self.ask(receiver.path("proxied"), header + post(b"3")).status)
        self.assertEqual(0, receiver.stop())
        messages = receiver.messages()
        self.assertEqual(["1", "2", "3"], [each["MESSAGE"] for each in messages])
        self.assertEqual("192.0.2.7", messages[-1]["SOURCEIP"])
        self.assertIn("refused: webhookrx.transport.openssl_calls imports OpenSSL._util", receiver.log())
        self.assertEqual(1, receiver.log().count("refused:"))
