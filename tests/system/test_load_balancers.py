"""
The files of docs/how-to/load-balancers.md, in the servers that they are for.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Sequence

from tests import documents
from tests.system.certificates import Authority, certificates_pem
from tests.system.receiver import PATIENCE, Receiver, ReceiverCase, post, wait_until
from tests.system.routers import free_ports
from tests.system.test_shell_samples import tool

PAGE = documents.read("docs/how-to/load-balancers.md")
SENDER = "127.0.0.2"


def blocks(language: str) -> list[str]:
    """Return the blocks of the page in a language."""
    return [block.text for block in documents.blocks(PAGE) if block.language == language]


class LoadBalancerCase(ReceiverCase):
    """
    Runs a receiver and a server in front of it, both by the page.
    """

    def setUp(self) -> None:
        # Servers become other users, who have to get there.
        self.directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, self.directory)
        os.chmod(self.directory, 0o755)
        self.authority = Authority("Test CA")
        key, chain = self.authority.issue("server").write(self.directory, "server")
        self.front, self.back = free_ports(2)
        with open(self.path("both.pem"), "w") as both:
            for name in (chain, key):
                with open(name) as part:
                    both.write(part.read())
        self.names = {
            "/etc/webhookrx/key.pem": key,
            "/etc/webhookrx/chain.pem": chain,
            "/etc/webhookrx/token": self.write("token", "secret\n"),
            "/etc/haproxy/logs.example.pem": self.path("both.pem"),
            "tcp:8181:": f"tcp:{self.back}:",
            "ssl:8443:": f"ssl:{self.back}:",
            "127.0.0.1:8181": f"127.0.0.1:{self.back}",
            "127.0.0.1:8443": f"127.0.0.1:{self.back}",
            "listen 443 ": f"listen 127.0.0.1:{self.front} ",
            "bind :443": f"bind 127.0.0.1:{self.front}",
            "inter 2s": "inter 200ms",
            "health_interval 5s": "health_interval 200ms",
        }

    def path(self, name: str) -> str:
        """Return the path of a file in the common directory."""
        return os.path.join(self.directory, name)

    def write(self, name: str, text: str) -> str:
        """Write a file there."""
        with open(self.path(name), "w") as file:
            file.write(text)
        os.chmod(file.name, 0o600)
        return file.name

    def here(self, text: str) -> str:
        """Return a block of the page with the addresses and paths of this test."""
        for there, here in self.names.items():
            text = text.replace(there, here)
        return text

    def receive(self, number: int = 0, *options: str) -> Receiver:
        """Start the receiver that the page shows as the first, or a later one."""
        return self.start(*options, config=self.here(blocks("yaml")[number]), port=None)

    def serve(self, *command: str) -> None:
        """Start the server, and wait until it listens."""
        process = subprocess.Popen(
            command,
            cwd=self.directory,
            env={**os.environ, "HOME": self.directory, "XDG_DATA_HOME": self.directory},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.terminate)

        def listens() -> bool:
            self.assertIs(None, process.poll(), "it has ended")
            with socket.socket() as trial:
                return trial.connect_ex(("127.0.0.1", self.front)) == 0

        wait_until(listens, f"{command[0]} listens")

    def send(self, body: bytes, headers: Sequence[str] = (), *, secure: bool = True) -> tuple[int, bytes]:
        """
        Post through the server, from another address than its own.

        @return: status and body; 0 and nothing when there is nobody whom bytes could be passed on to.
        """
        try:
            return self._send(body, headers, secure)
        except OSError:
            return 0, b""

    def _send(self, body: bytes, headers: Sequence[str], secure: bool) -> tuple[int, bytes]:
        with socket.create_connection(("127.0.0.1", self.front), PATIENCE, (SENDER, 0)) as plain:
            context = ssl.create_default_context(cadata=certificates_pem(self.authority.certificate).decode())
            wire = context.wrap_socket(plain, server_hostname="localhost") if secure else plain
            token = "Authorization: Bearer secret"
            wire.sendall(post(body, headers=("Connection: close", token, *headers)))
            answer = b"".join(iter(lambda: wire.recv(65536), b""))
            wire.close()
        head, _, rest = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), rest

    def check_messages(self, receiver: Receiver, *, secure: bool = True) -> None:
        """A message gets through, as that of its sender whatever that claims."""
        forged = ("X-Forwarded-For: 203.0.113.9",)
        wait_until(lambda: self.send(b"hello", forged, secure=secure)[0] == 200, "a message gets through")
        message = receiver.messages()[-1]
        self.assertEqual(("hello", SENDER), (message["MESSAGE"], message["SOURCEIP"]), receiver.log())
        self.assertNotIn("Refused", receiver.log())

    def check_health(self, number: int = 0, *, secure: bool = True, ours: bytes = b"not_stored") -> None:
        """
        A receiver that can't store messages is found out, and gets no more.

        @param ours: what stands in its own refusals.
        """
        receiver = self.receive(number, "--observer", "file:/dev/full")
        wait_until(lambda: ours in self.send(b"lost", secure=secure)[1], "the receiver refuses")

        def is_out() -> bool:
            status, body = self.send(b"lost", secure=secure)
            return status in (0, 503) and ours not in body

        wait_until(is_out, "it is taken out of service")
        self.assertNotIn("healthz", receiver.log())


class NginxTests(LoadBalancerCase):
    """nginx."""

    def test_messages(self) -> None:
        """Messages get through with the address of their sender; the largest that the receiver takes, too."""
        nginx = tool("nginx")
        (server,) = blocks("nginx")
        text = (
            f"daemon off; worker_processes 1; pid {self.path('pid')}; error_log {self.path('error')};\n"
            f"events {{}}\nhttp {{ access_log off; client_body_temp_path {self.path('bodies')};\n"
            f"proxy_temp_path {self.path('p')}; fastcgi_temp_path {self.path('f')};\n"
            f"uwsgi_temp_path {self.path('u')}; scgi_temp_path {self.path('s')};\n{self.here(server)}}}\n"
        )
        receiver = self.receive()
        self.serve(nginx, "-c", self.write("nginx.conf", text), "-e", self.path("error"))
        self.check_messages(receiver)
        self.assertEqual(200, self.send(b"x" * 10 * 2**20)[0])
        refused = self.send(b"x" * (10 * 2**20 + 1))
        self.assertIn(refused[0], (413, 0))  # nginx reads no more than it must
        self.assertNotIn("body_too_large", receiver.log())


class HAProxyTests(LoadBalancerCase):
    """HAProxy."""

    def serve_block(self, number: int) -> None:
        """Start it by a block of the page, for a receiver that is there or is to come."""
        haproxy = tool("haproxy")
        self.serve(haproxy, "-db", "-f", self.write("haproxy.cfg", self.here(blocks("haproxy")[number])))

    def test_messages(self) -> None:
        """Messages get through with the address of their sender; what is too large is refused by the receiver."""
        self.serve_block(0)
        receiver = self.receive()
        self.check_messages(receiver)
        status, body = self.send(b"x" * (10 * 2**20 + 1))
        self.assertEqual((413, "body_too_large"), (status, json.loads(body)["reason"]))

    def test_health(self) -> None:
        """A receiver that is not ready is taken out of service."""
        self.serve_block(0)
        self.check_health()

    def test_proxy_protocol(self) -> None:
        """By the PROXY protocol messages get through with the address of their sender, by TLS of the receiver's."""
        self.serve_block(1)
        receiver = self.receive(1)
        self.check_messages(receiver)
        self.assertEqual("https", receiver.messages()[-1]["TRANSPORT"])

    def test_health_by_the_proxy_protocol(self) -> None:
        """There, too, a receiver that is not ready is taken out of service."""
        self.serve_block(1)
        self.check_health(1)


class CaddyTests(LoadBalancerCase):
    """Caddy, without the certificate that it would get for a real name."""

    def serve_block(self) -> None:
        """Start it by the block of the page."""
        caddy = tool("caddy")
        (site,) = blocks("caddyfile")
        text = re.sub("^logs.example ", f"http://:{self.front} ", self.here(site))
        file = self.write("Caddyfile", f"{{\n\tadmin off\n\tauto_https off\n}}\n{text}")
        self.serve(caddy, "run", "--adapter", "caddyfile", "--config", file)

    def test_messages(self) -> None:
        """Messages get through with the address of their sender."""
        receiver = self.receive()
        self.serve_block()
        self.check_messages(receiver, secure=False)

    def test_health(self) -> None:
        """A receiver that is not ready is taken out of service."""
        self.serve_block()
        self.check_health(secure=False)
