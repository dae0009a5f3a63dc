"""
Who may send: tokens at all places, networks and clients; the real program, and C{curl}.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import subprocess
from base64 import b64encode

from twisted.trial.unittest import SkipTest

from tests import documents
from tests.system.certificates import CLIENT, Authority, server_settings, write_ca_file
from tests.system.receiver import ANY_PORT, PATIENCE, Receiver, ReceiverCase, post, wait_until

TOKEN = "t0ken-of-nobody-else"
PLACES = f"""
port: {ANY_PORT}
source: webhook-json
include_request_headers: yes
record: recorded
sources:
  - {{name: query, paths: /query, auth_token_file: tokens, auth_token_in: "query:ID"}}
  - {{name: header, paths: /header, auth_token_file: tokens, auth_token_in: "header:X-Door"}}
  - {{name: path, paths: "/path/(?P<door>[^/]+)/(?P<HOST>.*)", auth_token_file: tokens, auth_token_in: "path:door"}}
  - {{name: basic, paths: /basic, auth_token_file: passwords, auth_token_in: basic}}
  - {{name: digest, paths: /digest, auth_token_file: digests}}
"""
NETWORKS = f"""
port: {ANY_PORT}
networks: {{ours: {{file: ours.json, at: /hooks}}}}
sources:
  - {{name: a, paths: /in, allow: [ours, 127.0.0.9]}}
  - {{name: b, paths: /proxied, allow: [192.0.2.0/24, "2001:db8::/32"], proxy_header: x-forwarded-for}}
"""


def curl() -> str:
    """Return the path of curl, or skip the test that needs it."""
    path = shutil.which("curl")
    if path is None:
        raise SkipTest("curl is not installed.")
    return path


class TokenPlaceTests(ReceiverCase):
    """
    Tokens in places where logs and messages could show them.
    """

    def running(self) -> Receiver:
        receiver = self.prepare(config=PLACES, port=None)
        digest = "sha256:" + hashlib.sha256(TOKEN.encode()).hexdigest()
        for name, text in (
            ("tokens", f"old = other-{TOKEN}\nci = {TOKEN}\n"),
            ("passwords", f"door = user:{TOKEN}:2 3\n"),
            ("digests", f"hashed = {digest}\n"),
        ):
            with open(receiver.path(name), "w") as file:
                file.write(text)
            os.chmod(receiver.path(name), 0o600)
        return receiver.start()

    def test_places(self) -> None:
        """A token counts at its place, the message has its name; neither message, log nor recording has the token."""
        receiver = self.running()
        credentials = b64encode(f"user:{TOKEN}:2 3".encode()).decode()
        good = {
            "query": post(b"{}", f"/query?a=b&ID={TOKEN}"),
            "header": post(b"{}", "/header", (f"X-Door: {TOKEN}",)),
            "path": post(b"{}", f"/path/{TOKEN}/web-1"),
            "basic": post(b"{}", "/basic", (f"Authorization: Basic {credentials}",)),
            "digest": post(b"{}", "/digest", (f"Authorization: Bearer {TOKEN}",)),
        }
        for name, request in good.items():
            self.assertEqual(200, self.ask(receiver.port, request).status, name)
        bad = (
            post(b"{}", f"/query?a=b&id={TOKEN}"),
            post(b"{}", f"/query?ID={TOKEN}&ID={TOKEN}"),
            post(b"{}", "/query", (f"Authorization: Bearer {TOKEN}",)),
            post(b"{}", "/header", (f"X-Door: {TOKEN}", f"X-Door: {TOKEN}")),
            post(b"{}", f"/path/{TOKEN}x/web-1"),
            post(b"{}", "/basic", (f"Authorization: Bearer {credentials}",)),
            post(b"{}", "/digest", ("Authorization: Bearer wrong",)),
        )
        for request in bad:
            answer = self.ask(receiver.port, request)
            self.assertEqual((403, "bad_token"), (answer.status, answer.reason), request)
        for request in (post(b"{}", f"/path/{TOKEN}"), post(b"x" * 20, f"/pth/{TOKEN}/a")):
            self.assertEqual(404, self.ask(receiver.port, request).status)
        wait_until(lambda: len(glob.glob(receiver.path("recorded/*.http"))) == len(good), "all are recorded")
        messages = {message["SOURCE"]: message for message in receiver.messages()}
        self.assertEqual(set(good), set(messages))
        names = {"basic": "door", "digest": "hashed"}
        for source, message in messages.items():
            self.assertEqual(
                ("token", names.get(source, "ci")), (message["webhook.verified"], message["webhook.token"])
            )
        self.assertEqual("b", messages["query"]["webhook.query.a"])
        self.assertEqual("web-1", messages["path"]["HOST"])
        self.assertNotIn("webhook.query.ID", messages["query"])
        self.assertNotIn("door", messages["path"])
        for path in (receiver.path("messages.jsonl"), receiver.path("log"), *glob.glob(receiver.path("recorded/*"))):
            with open(path) as file:
                text = file.read()
            for secret in (TOKEN, credentials):
                self.assertNotIn(secret, text, path)
        self.assertIn("/path/***/web-1", receiver.log())

    def test_curl(self) -> None:
        """curl's own Basic authentication is understood, with colons and blanks in the password."""
        receiver = self.running()
        url = f"http://127.0.0.1:{receiver.port}/basic"
        for password, answer in ((f"{TOKEN}:2 3", b'{"status":"received"}'), (TOKEN, b'"reason":"bad_token"')):
            done = subprocess.run(
                [curl(), "-sS", "--noproxy", "*", "-u", f"user:{password}", "-d", "{}", url],
                capture_output=True,
                timeout=PATIENCE,
                check=True,
            )
            self.assertIn(answer, done.stdout)


class NetworkTests(ReceiverCase):
    """
    Networks from which requests are taken.
    """

    def write(self, receiver: Receiver, text: str) -> None:
        """Replace the list of networks in one step."""
        with open(receiver.path("ours.new"), "w") as file:
            file.write(text)
        os.rename(receiver.path("ours.new"), receiver.path("ours.json"))

    def status(self, receiver: Receiver, source: str) -> int:
        return self.ask(receiver.port, post(b"x"), source=source).status

    def test_list(self) -> None:
        """A list is read again when its file changes; a broken one changes nothing, and the log says so."""
        receiver = self.prepare(config=NETWORKS, port=None)
        self.write(receiver, json.dumps({"hooks": ["127.0.0.2/32"]}))
        receiver.start()
        self.assertEqual([200, 403, 200], [self.status(receiver, f"127.0.0.{number}") for number in (2, 3, 9)])
        self.write(receiver, json.dumps({"hooks": ["127.0.0.3/32"]}))
        wait_until(lambda: self.status(receiver, "127.0.0.3") == 200, "the new list counts")
        self.assertEqual(403, self.status(receiver, "127.0.0.2"))
        before = len(receiver.log())
        self.write(receiver, '{"hooks": [')
        wait_until(lambda: "ours.json" in receiver.log()[before:], "the broken list is told")
        self.assertEqual([403, 200], [self.status(receiver, f"127.0.0.{number}") for number in (2, 3)])
        self.write(receiver, json.dumps({"hooks": ["127.0.0.2/31"]}))
        wait_until(lambda: self.status(receiver, "127.0.0.2") == 200, "the mended list counts")
        self.assertEqual(200, self.status(receiver, "127.0.0.3"))

    def test_proxy_header(self) -> None:
        """The address that counts is the one that messages show."""
        receiver = self.prepare(config=NETWORKS, port=None)
        self.write(receiver, json.dumps({"hooks": ["127.0.0.2/32"]}))
        receiver.start()
        for header, status in (
            ("X-Forwarded-For: 192.0.2.7", 200),
            ("X-Forwarded-For: 192.0.2.7, 192.0.3.7", 403),
            ("X-Forwarded-For: 192.0.3.7, [2001:db8::1]:80", 200),
            ("X-Forwarded-For: nonsense", 403),
            ("X-Other: 192.0.2.7", 403),
        ):
            answer = self.ask(receiver.port, post(b"x", "/proxied", (header,)))
            self.assertEqual(status, answer.status, header)
            self.assertEqual(None if status == 200 else "address_not_allowed", answer.reason)
        self.assertEqual(["192.0.2.7", "2001:db8::1"], [each["SOURCEIP"] for each in receiver.messages()])

    def test_proxy_protocol(self) -> None:
        """Behind the PROXY protocol it is the address in its header."""
        receiver = self.start("--allow=192.0.2.0/24", port=f"haproxy:{ANY_PORT}")
        for address, status in (("192.0.2.7", 200), ("192.0.3.7", 403)):
            header = f"PROXY TCP4 {address} 192.0.2.1 4321 80\r\n".encode()
            self.assertEqual(status, self.ask(receiver.port, header + post(b"x")).status)


class ClientTests(ReceiverCase):
    """
    Clients that are known by their certificates.
    """

    def test_clients(self) -> None:
        """Of clients with a good certificate, those that a pattern matches may send."""
        receiver = self.prepare(
            *("--tls-key-file=server-key.pem", "--tls-cert-file=server-cert.pem", "--tls-peer-verify"),
            *("--tls-ca-file=ca.pem", "--allow-client=*.shippers.example"),
        )
        authority = Authority("Our CA")
        server_settings(receiver.directory, authority.issue("server"))
        os.chmod(receiver.path("server-key.pem"), 0o600)
        ca_file = write_ca_file(receiver.directory, "ca", authority)
        receiver.start()
        url = f"https://localhost:{receiver.port}/"
        for name, answer in (
            ("a.shippers.example", b'{"status":"received"}'),
            ("shippers.example", b'"reason":"client_not_allowed"'),
            ("a.b.shippers.example", b'"reason":"client_not_allowed"'),
        ):
            key, certificate = authority.issue(name, (CLIENT,), names=()).write(receiver.directory, "client")
            done = subprocess.run(
                [
                    *(curl(), "-sS", "--noproxy", "*", "--cacert", ca_file, "--key", key, "--cert", certificate),
                    *("--resolve", f"localhost:{receiver.port}:127.0.0.1", "-d", "x", url),
                ],
                capture_output=True,
                timeout=PATIENCE,
                check=True,
            )
            self.assertIn(answer, done.stdout, name)
        (message,) = receiver.messages()
        self.assertEqual(("client", "a.shippers.example"), (message["webhook.verified"], message["webhook.client.cn"]))

    def test_page(self) -> None:
        """The client that the page on who may send makes with openssl may send."""
        if shutil.which("openssl") is None:
            raise SkipTest("openssl is not installed.")
        (commands,) = [
            block.text
            for block in documents.blocks(documents.read("docs/how-to/who-may-send.md"))
            if block.language == "sh" and "openssl req" in block.text
        ]
        receiver = self.prepare(
            *("--tls-key-file=server-key.pem", "--tls-cert-file=server-cert.pem", "--tls-peer-verify"),
            *("--tls-ca-file=ca.pem", "--allow-client=*.shippers.example"),
        )
        authority = Authority("Our CA")
        server_settings(receiver.directory, authority.issue("server"))
        os.chmod(receiver.path("server-key.pem"), 0o600)
        ca_file = write_ca_file(receiver.directory, "servers", authority)
        subprocess.run(
            ["sh", "-ec", commands], cwd=receiver.directory, capture_output=True, timeout=PATIENCE, check=True
        )
        receiver.start()
        done = subprocess.run(
            [
                *(curl(), "-sS", "--noproxy", "*", "--cacert", ca_file, "--key", receiver.path("client-key.pem")),
                *("--cert", receiver.path("client.pem"), "--resolve", f"localhost:{receiver.port}:127.0.0.1"),
                *("-d", "x", f"https://localhost:{receiver.port}/"),
            ],
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )
        self.assertEqual(b'{"status":"received"}', done.stdout)
        (message,) = receiver.messages()
        self.assertEqual(["relay.shippers.example"], message["webhook.client.san"])
        self.assertEqual("CN=Shippers CA", message["webhook.client.issuer"])
