"""
SIGHUP with a configuration that has changed: the real program, under load and under mistakes.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
from datetime import UTC, datetime, timedelta

from tests import LONG
from tests.system.certificates import Authority, certificates_pem
from tests.system.hanging_up import hang_up, reload
from tests.system.load import Load, missing
from tests.system.receiver import ANY_PORT, PATIENCE, Receiver, ReceiverCase, post, wait_until

PORT = f"port: {ANY_PORT}\n"

#: Settings that a sender without a token, who posts to /in, does not notice.
VARIANTS = (
    "paths: [/in, /other]\n",
    "paths: ['/(?P<PLACE>.*)']\nack: written\n",
    "observers: ['file:messages.jsonl', 'file:second.jsonl']\n",
    "observers: ['file:second.jsonl', 'file:messages.jsonl']\nlimits: {body: 1MiB, idle_time: 60s}\n",
    "observers: ['file:messages.jsonl:mode=0600']\nack: queued\n",
    "proxy_header: forwarded\ninclude_request_headers: yes\ndrain_timeout: 20s\n",
    "source: webhook-json\nprefix: p.\n",
)


class LoadTests(ReceiverCase):
    """
    Reloads under load.
    """

    def test_changes(self) -> None:
        """Whatever changes, no request fails, no message is lost, and no connection ends."""
        receiver = self.start(config=PORT, port=None)
        load = Load(receiver.port).start()
        for number in range(100 if LONG else len(VARIANTS)):
            self.assertIn("Reloaded: ", reload(receiver, PORT + VARIANTS[number % len(VARIANTS)]))
        before = [len(texts) for texts in load.acknowledged]
        wait_until(
            lambda: all(len(texts) > was for texts, was in zip(load.acknowledged, before, strict=True)),
            "every connection goes on",
        )
        acknowledged = load.stop()
        receiver.stop()
        self.assertEqual(([], []), (load.refused, load.broken))
        messages = receiver.messages()
        self.assertEqual([], missing(acknowledged, messages))
        self.assertEqual(len(acknowledged), len(messages))
        self.assertNotIn("Traceback", receiver.log())

    def test_bad_ones(self) -> None:
        """Settings that can't be used cost nothing either."""
        receiver = self.start(config=PORT, port=None)
        load = Load(receiver.port).start()
        for number in range(50 if LONG else 5):
            bad = "ack: nonsense\n" if number % 2 else "observers: ['file:messages.jsonl', 'file:/nowhere/x']\n"
            self.assertIn("Reload failed, the old settings stay", reload(receiver, PORT + bad))
        acknowledged = load.stop()
        receiver.stop()
        self.assertEqual(([], []), (load.refused, load.broken))
        self.assertEqual([], missing(acknowledged, receiver.messages()))

    def test_signals_in_a_row(self) -> None:
        """Signals that come faster than they can be dealt with are dealt with together, the last file counting."""
        receiver = self.start(config=PORT, port=None)
        load = Load(receiver.port).start()
        with open(receiver.path("config.yaml"), "a") as file:
            file.write("paths: [/in, /last]\n")
        for _ in range(100):
            receiver.signal(signal.SIGHUP)
        wait_until(lambda: "at /in, /last" in receiver.log(), "the last file counts")
        hang_up(receiver)
        acknowledged = load.stop()
        receiver.stop()
        self.assertEqual(([], []), (load.refused, load.broken))
        self.assertEqual([], missing(acknowledged, receiver.messages()))


class ChangeTests(ReceiverCase):
    """
    What a reload changes, one by one, on connections that stay.
    """

    def start_with(self, config: str) -> Receiver:
        """Start a receiver with a configuration."""
        return self.start(config=config, port=None)

    def test_token(self) -> None:
        """A token is rotated on one connection: both for a while, then the new one alone."""
        receiver = self.prepare("--auth-token-file", "token", "--allow-plaintext-token")
        write_token(receiver, "old")
        receiver.start()
        connection = self.connect(receiver.port)
        for tokens, statuses in (("old", (200, 403)), ("old\nnew", (200, 200)), ("new", (403, 200))):
            write_token(receiver, tokens)
            hang_up(receiver)
            for token, status in zip(("old", "new"), statuses, strict=True):
                answer = connection.send(post(b"x", headers=[f"Authorization: Bearer {token}"])).answer()
                self.assertEqual(status, answer and answer.status, (tokens, token))
        self.assertEqual(4, len(receiver.messages()))

    def test_under_way(self) -> None:
        """A request that was let in by the old settings is finished by them."""
        receiver = self.start_with(f"{PORT}sources: [{{name: old, paths: [/old]}}]\n")
        connection = self.connect(receiver.port)
        request = post(b"under way", "/old")
        connection.send(request[:-3])
        self.assertEqual(404, self.ask(receiver.port, post(b"x", "/new")).status)
        reload(receiver, f"{PORT}sources: [{{name: new, paths: [/new]}}]\n")
        answer = connection.send(request[-3:]).answer()
        self.assertEqual(200, answer and answer.status)
        self.assertEqual(["old"], [message["SOURCE"] for message in receiver.messages()])
        for target, status in (("/old", 404), ("/new", 200)):
            answer = connection.send(post(b"x", target)).answer()
            self.assertEqual(status, answer and answer.status)

    def test_observers(self) -> None:
        """An observer that is new gets what comes from then on, one that goes gets no more."""
        receiver = self.start_with(f"{PORT}observers: ['file:a', 'file:b']\n")
        connection = self.connect(receiver.port)
        self.assertIsNotNone(connection.send(post(b"1")).answer())
        reload(receiver, f"{PORT}observers: ['file:b', 'file:c']\n")
        self.assertIsNotNone(connection.send(post(b"2")).answer())
        stored = [[message["MESSAGE"] for message in receiver.messages(name)] for name in "abc"]
        self.assertEqual([["1"], ["1", "2"], ["2"]], stored)

    def test_endpoints(self) -> None:
        """Endpoints come and go; connections of one that goes end, those of others don't notice."""
        receiver = self.start_with(f"port: ['{ANY_PORT}', 'unix:one']\n")
        stays, goes = self.connect(receiver.port), self.connect(receiver.path("one"))
        for connection in (stays, goes):
            self.assertIsNotNone(connection.send(post(b"x")).answer())
        reload(receiver, f"port: ['{ANY_PORT}', 'unix:two']\n")
        self.assertEqual([], goes.answers())
        self.assertFalse(os.path.exists(receiver.path("one")))
        for answer in (stays.send(post(b"x")).answer(), self.ask(receiver.path("two"), post(b"x"))):
            self.assertEqual(200, answer and answer.status)

    def test_tls_on_the_same_port(self) -> None:
        """A port goes over to TLS and back without being closed."""
        authority = Authority("Test CA")
        receiver = self.prepare(config=PORT, port=None)
        for path, name in zip(
            authority.issue("server").write(receiver.directory, "x"), ("key.pem", "cert.pem"), strict=True
        ):
            shutil.copy(path, receiver.path(name))
        receiver.start()
        plain = self.connect(receiver.port)
        self.assertIsNotNone(plain.send(post(b"x")).answer())
        secure = "port: ssl:0:interface=127.0.0.1:privateKey=key.pem:certKey=cert.pem\n"
        self.assertIn(f"127.0.0.1:{receiver.port} (TLS with ", reload(receiver, secure))
        self.assertEqual([], plain.answers())
        context = ssl.create_default_context(cadata=certificates_pem(authority.certificate).decode())
        below = socket.create_connection(("127.0.0.1", receiver.port), PATIENCE)
        with context.wrap_socket(below, server_hostname="localhost") as above:
            above.sendall(post(b"y"))
            self.assertEqual(b"HTTP/1.1 200 OK", above.recv(65536)[:15])
            reload(receiver, PORT)
            self.assertEqual(200, self.ask(receiver.port, post(b"z")).status)
        self.assertEqual(["x", "y", "z"], [message["MESSAGE"] for message in receiver.messages()])

    def test_renewed_certificate(self) -> None:
        """The line about a reload names a certificate that was renewed, with its end."""
        authority = Authority("Test CA")
        secure = "port: ssl:0:interface=127.0.0.1:privateKey=key.pem:certKey=cert.pem\n"
        receiver = self.prepare(config=secure, port=None)
        now = datetime.now(UTC)
        for days in (30, 60):
            identity = authority.issue("server", not_after=now + timedelta(days=days))
            pair = identity.write(receiver.directory, "x")
            for path, name in zip(pair, ("key.pem", "cert.pem"), strict=True):
                shutil.copy(path, receiver.path(name))
            if days == 30:
                receiver.start()
                self.assertNotIn("renewed certificates", reload(receiver, secure))
        reload(receiver, secure)
        until = f"{now + timedelta(days=60):%Y-%m-%d %H:%M UTC}"
        self.assertIn(f"; renewed certificates: {receiver.path('cert.pem')} until {until}", receiver.log())

    def test_limits(self) -> None:
        """Limits change for the next request on a connection."""
        receiver = self.start_with(PORT)
        connection = self.connect(receiver.port)
        self.assertIsNotNone(connection.send(post(b"x" * 2000)).answer())
        reload(receiver, f"{PORT}limits: {{body: 1000}}\n")
        answer = connection.send(post(b"x" * 2000)).answer()
        self.assertEqual("body_too_large", answer and answer.reason)


class MistakeTests(ReceiverCase):
    """
    Settings that can't be used.
    """

    def test_mistakes(self) -> None:
        """Each is said by a line that tells what and where; all goes on as it was, on the same connection too."""
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        taken_port = f"tcp:{taken.getsockname()[1]}:interface=127.0.0.1"
        receiver = self.start(config=PORT, port=None)
        os.mkdir(receiver.path("directory"))
        os.mkfifo(receiver.path("fifo"))
        connection = self.connect(receiver.port)
        cases = {
            "paths: [": "config.yaml:3",
            "- a": "config.yaml:2",
            "pahts: [/x]": 'config.yaml:2: There is no key "pahts"',
            "ack: nonsense": 'config.yaml:2: ack: "nonsense" is not one of',
            "paths: ['(']": "config.yaml:2: paths",
            "source: nothing": "config.yaml:2: source",
            "limits: {body: 1GiB}": "limits",
            "drain_timeout: soon": "drain_timeout",
            "auth_token_file: missing": "missing.* does not exist",
            "observers: ['nonsense:x']": "There is no observer",
            "observers: ['file:directory']": "directory",
            "observers: ['file:/nowhere/x']": "/nowhere",
            # This is found only when it is opened: nobody reads from it.
            "observers: ['file:messages.jsonl', 'file:fifo']": "fifo",
            "tls_key_file: k": "tls-cert-file is missing",
            "tls_key_file: k\ntls_cert_file: c": "/k.* does not exist",
            f"port: ['{ANY_PORT}', 'unix:new', '{taken_port}']": f"in use: can't listen on {taken_port}",
            f"port: ['{ANY_PORT}', 'unix:new']\nobservers: ['file:fifo']": "fifo",
            f"admin: {taken_port}\nport: ['{ANY_PORT}', 'unix:new']": f"in use: can't listen on {taken_port}",
            f"port: ['{ANY_PORT}', 'systemd:domain=INET:index=9']": "systemd did not pass",
        }
        for number, (text, problem) in enumerate(cases.items(), 1):
            config = text + "\n" if "port:" in text else f"{PORT}{text}\n"
            log = reload(receiver, config)
            self.assertRegex(log, f"Reload failed, the old settings stay: .*{problem}", text)
            self.assertNotIn("Reloaded: ", log)
            answer = connection.send(post(b"x")).answer()
            self.assertEqual(200, answer and answer.status, text)
            self.assertEqual(number, len(receiver.messages()), text)
            self.assertFalse(os.path.exists(receiver.path("new")), text)
        os.remove(receiver.path("config.yaml"))
        self.assertIn("does not exist", hang_up(receiver))
        self.assertIn("Reloaded: ", reload(receiver, f"{PORT}paths: [/in]\n"))
        self.assertNotIn("Traceback", receiver.log())
        self.assertEqual(0, receiver.stop())

    def test_files_are_opened_anew_all_the_same(self) -> None:
        """Where files were rotated, a mistake in the settings does not keep the new ones from being opened."""
        receiver = self.start(config=PORT, port=None)
        self.ask(receiver.port, post(b"1"))
        os.rename(receiver.path("messages.jsonl"), receiver.path("old"))
        reload(receiver, "nonsense\n")
        self.ask(receiver.port, post(b"2"))
        self.assertEqual(["1"], [message["MESSAGE"] for message in receiver.messages("old")])
        self.assertEqual(["2"], [message["MESSAGE"] for message in receiver.messages()])

    def test_stdout(self) -> None:
        """Messages can't be sent to standard output by a reload."""
        receiver = self.start(config=PORT, port=None)
        self.assertIn("restart for it", reload(receiver, f"{PORT}observers: [stdout]\n"))


def write_token(receiver: Receiver, tokens: str) -> None:
    """Put a file of tokens in the place of another."""
    with open(receiver.path("token.new"), "w") as file:
        file.write(f"{tokens}\n")
    os.chmod(receiver.path("token.new"), 0o600)
    os.rename(receiver.path("token.new"), receiver.path("token"))
