"""
Tests for what C{webhookrx try} says beside what the real program does with the same request.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import hmac
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from base64 import b64encode
from contextlib import chdir
from typing import Any

from twisted.trial.unittest import SkipTest

from tests.commands.running import Ran, run_command
from tests.system.receiver import ANY_PORT, PATIENCE, ROOT, Receiver, ReceiverCase, post, wait_until

CONFIG = f"""
port: {ANY_PORT}
source: webhook-json
include_request_headers: yes
sources:
  - name: github
    paths: /github/(?P<HOST>.*)
    prefix: github.
    sender: github
    secrets_file: secrets
    idempotency: 1h
  - {{name: stripe, paths: /stripe, sender: stripe, secrets_file: secrets}}
  - {{name: zoom, paths: /zoom, sender: zoom, secrets_file: secrets}}
  - {{name: slack, paths: /slack, sender: slack, secrets_file: secrets, source: webhook}}
  - {{name: firehose, paths: /firehose, sender: aws-firehose, secrets_file: secrets, split: yes}}
  - {{name: okta, paths: /okta, sender: okta, verify: off}}
  - {{name: note, paths: /note, sender: github, secrets_file: secrets, verify: note}}
  - name: batch
    paths: /batch
    auth_token_file: tokens
    auth_token_in: query:key
    split: /*
    on_parse_error: reject
  - {{name: door, paths: "/door/(?P<key>[^/]+)", auth_token_file: tokens, auth_token_in: "path:key"}}
  - {{name: plain, paths: /plain, on_parse_error: reject}}
  - {{name: far, paths: /far, allow: [192.0.2.0/24]}}
  - {{name: near, paths: /near, allow: [127.0.0.0/8]}}
"""
PUSH = b'{"ref":"main","n":[1,2]}'
FIREHOSE = b'{"requestId":"r-1","timestamp":1,"records":[{"data":"eyJhIjoxfQ=="},{"data":"eyJhIjoyfQ=="}]}'
#: Request line without the version, more headers, body, and the secret that it is signed with; empty for none.
REQUESTS: list[tuple[str, str, bytes, str]] = [
    ("POST /github/web-1", "X-GitHub-Event: push\nX-GitHub-Delivery: d-1\n", PUSH, "main"),
    ("POST /github/web-1", "X-GitHub-Delivery: d-2\n", PUSH, "old"),
    ("POST /github/web-1", "X-GitHub-Delivery: d-3\n", PUSH, ""),
    ("POST /github/web-1", f"X-Hub-Signature-256: sha256={'0' * 64}\n", PUSH, ""),
    ("POST /github/%ff", "", PUSH, "main"),
    ("GET /github/a", "", b"", ""),
    ("POST /stripe?a=1&a=2", "", b'{"id":"evt_1"}', "main"),
    ("POST /stripe", "Stripe-Signature: t=1,v1=00\n", b'{"id":"evt_1"}', ""),
    ("POST /zoom", "", b'{"event":"endpoint.url_validation","payload":{"plainToken":"abc"}}', "main"),
    ("POST /zoom", "", b'{"event":"endpoint.url_validation","payload":{"plainToken":"a:b"}}', "main"),
    ("POST /zoom", "", b'{"event":"meeting.started","payload":{}}', "main"),
    ("POST /slack", "", b'{"type":"url_verification","challenge":"c"}', "main"),
    ("POST /slack", "", b'{"type":"url_verification","challenge":"c"}', ""),
    ("POST /firehose", "X-Amz-Firehose-Access-Key: made-up-1\nX-Amz-Firehose-Request-Id: r-1\n", FIREHOSE, ""),
    ("POST /firehose", "X-Amz-Firehose-Access-Key: wrong\nX-Amz-Firehose-Request-Id: r-1\n", FIREHOSE, ""),
    ("GET /okta", "X-Okta-Verification-Challenge: abc\n", b"", ""),
    ("GET /okta", "", b"", ""),
    ("POST /okta", "", b'{"eventId":"e-1","data":{"events":[]}}', ""),
    ("POST /note", "", PUSH, ""),
    ("POST /batch?key=made-up-token&x=y", "", b'[{"a":1},"two",3]', ""),
    ("POST /batch?key=made-up-token", "", b"[]", ""),
    ("POST /batch?key=made-up-token", "", b"no", ""),
    ("POST /batch?key=other", "", b"[]", ""),
    ("POST /door/made-up-token", "", b"{}", ""),
    ("POST /door/other", "", b"{}", ""),
    ("POST /plain", "Content-Type: application/x-www-form-urlencoded\n", b"a=b&c=d", ""),
    ("POST /plain", "", b"\xff", ""),
    ("POST /plain", "", b'{"a":1.10,"webhook.verified":"signature"}', ""),
    ("PUT /plain", "", b"{}", ""),
    ("POST /none", "", b"{}", ""),
    ("POST /batch?key=other", "", b" " * 70_000, ""),
    ("POST /batch?key=other", "", b" " * 60_000, ""),
    ("POST /near", "Connection: close\n", b"{}", ""),
    ("POST /near", "", b" " * 70_000, ""),
    ("POST /far", "", b"{}", ""),
    ("POST /near", "", b"{}", ""),
]
#: What differs from one request to the next of the same bytes.
_OWN = ("ISODATE", "RCPTID", "SOURCEPORT")
#: Calls of the system that open a socket or change a file.
_CHANGES = re.compile(
    r"\b(?:socket|connect|bind|listen|creat|mkdir|mkdirat|rename\w*|unlink\w*)\(|O_(?:WRONLY|RDWR|CREAT)"
)


class AgreementTests(ReceiverCase):
    """
    A trial and a receiver come to the same.
    """

    def running(self) -> Receiver:
        receiver = self.prepare(config=CONFIG, port=None)
        for name, text in (("secrets", "main = made-up-1\nold = made-up-2\n"), ("tokens", "ci = made-up-token\n")):
            with open(receiver.path(name), "w") as file:
                file.write(text)
            os.chmod(receiver.path(name), 0o600)
        return receiver.start()

    def run_try(self, receiver: Receiver, *arguments: str) -> Ran:
        with chdir(receiver.directory):
            return run_command("try", "-", "--config", "config.yaml", *arguments, stdin=self.request)

    def signed_headers(self, receiver: Receiver, secret: str) -> bytes:
        """Return the headers of the request, signed now."""
        words = shlex.split(self.run_try(receiver, "--sign", secret, "--curl").out)
        words = words[words.index("curl") :]
        headers = [words[index + 1] for index, word in enumerate(words) if word == "-H"]
        return "".join(f"{header}\n" for header in headers if not header.endswith(":")).encode()

    def test_same(self) -> None:
        """The answer is the same byte for byte but for the date, and so are the messages but for what is their own."""
        receiver = self.running()
        seen: set[tuple[int, int]] = set()
        for line, headers, body, secret in REQUESTS:
            begin = f"{line} HTTP/1.1\nHost: receiver\n".encode()
            self.request = begin + headers.encode() + b"\n" + body
            if secret:
                self.request = begin + self.signed_headers(receiver, secret) + b"\n" + body
            ran = self.run_try(receiver, "--json", "--peer", "127.0.0.1")
            self.assertEqual("", ran.err, line)
            tried = json.loads(ran.out)
            head, _, _ = self.request.partition(b"\n\n")
            wire = head.replace(b"\n", b"\r\n") + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            receiver.forget_messages()
            answer = self.raw_answer(receiver, wire)
            self.assertEqual(without_date(answer), without_date(tried["answer"]["bytes"].encode("latin-1")), line)
            self.assertEqual({0: True, 3: False, 1: False}[ran.status], tried["stored"])
            seen.add((ran.status, tried["answer"]["status"]))
            self.assertEqual(
                [own_left_out(each) for each in receiver.messages()],
                [own_left_out(each) for each in tried["messages"]],
                line,
            )

        self.assertEqual({(0, 200), (0, 204), (3, 200), *((1, status) for status in (400, 401, 403, 404, 405))}, seen)

    def raw_answer(self, receiver: Receiver, wire: bytes) -> bytes:
        """Return all bytes of the answer to a request."""
        connection = self.connect(receiver.port)
        connection.send(wire)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += connection.socket.recv(65536)
        head, _, body = answer.partition(b"\r\n\r\n")
        lengths = [line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")]
        wanted = int(lengths[0].partition(b": ")[2]) if lengths else 0
        while len(body) < wanted:
            body += connection.socket.recv(65536)
        connection.socket.close()
        return head + b"\r\n\r\n" + body

    def test_curl(self) -> None:
        """The command that a trial prints sends a request that the receiver takes as signed."""
        if shutil.which("curl") is None:
            raise SkipTest("curl is not installed.")
        receiver = self.running()
        self.request = b"POST /stripe HTTP/1.1\n\n" + b'{"id":"evt_2","odd":"\'\\u00e9\x7f"}\n'
        command = self.run_try(receiver, "--sign", "old", "--curl").out
        # The port of the configuration is any; the receiver's own is known now.
        command = command.replace("http://localhost:0/", f"http://127.0.0.1:{receiver.port}/")
        done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=PATIENCE, check=True)
        self.assertEqual(b'{"status":"received"}', done.stdout)
        (message,) = receiver.messages()
        self.assertEqual(
            ("signature", "old", "evt_2"),
            tuple(message[f"webhook.{name}"] for name in ("verified", "secret", "delivery_id")),
        )


class RecordingTests(ReceiverCase):
    """
    From a recording to its trial.
    """

    def test_recorded(self) -> None:
        """A recorded request is verified as when it came, packed as it was then; so is a signature in Authorization."""
        config = f"""
port: {ANY_PORT}
record: recorded
sources:
  - {{name: a, paths: /a, sender: stripe, secrets_file: a}}
  - {{name: b, paths: /b, sender: ms-teams-outgoing, secrets_file: b}}
"""
        receiver = self.prepare(config=config, port=None)
        key = b"made-up-key-of-teams"
        for name, text in (("a", "main = made-up-1\n"), ("b", f"teams = {b64encode(key).decode()}\n")):
            with open(receiver.path(name), "w") as file:
                file.write(text)
            os.chmod(receiver.path(name), 0o600)
        receiver.start()
        body = b'{"id":"evt_1"}'
        moment = int(time.time())
        code = hmac.new(b"made-up-1", b"%d.%b" % (moment, body), hashlib.sha256).hexdigest()
        packed = gzip.compress(body)
        by_stripe = (f"Stripe-Signature: t={moment},v1={code}", "Content-Encoding: gzip")
        of_teams = b64encode(hmac.new(key, body, hashlib.sha256).digest()).decode()
        for target, wire, headers in (("/a", packed, by_stripe), ("/b", body, (f"Authorization: HMAC {of_teams}",))):
            self.assertEqual(200, self.ask(receiver.port, post(wire, target, headers)).status)
        wait_until(lambda: len(glob.glob(receiver.path("recorded/*.http"))) == 2, "both are recorded")
        names = []
        for path in sorted(glob.glob(receiver.path("recorded/*.http"))):
            with chdir(receiver.directory):
                ran = run_command("try", path, "--config", "config.yaml", "--json")
            tried = json.loads(ran.out)
            self.assertEqual((0, ""), (ran.status, ran.err))
            (message,) = tried["messages"]
            names.append((message["SOURCE"], message["webhook.verified"], message["webhook.secret"]))
        self.assertEqual([("a", "signature", "main"), ("b", "signature", "teams")], names)


def without_date(answer: bytes) -> list[bytes]:
    """Return the lines of an answer, but for its date and moments of now in it."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Date: ")]
    if b'"timestamp":' in body:
        members = json.loads(body)
        del members["timestamp"]
        body = json.dumps(members).encode()
    return [*lines, body]


def own_left_out(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without what is of its own request alone."""
    return {name: value for name, value in message.items() if name not in _OWN}


class TracedCallsTests(ReceiverCase):
    """
    The system calls of a trial.
    """

    def test_nothing_opened(self) -> None:
        """By the system calls of a trial, no socket is made, and nothing but its output is written."""
        strace = shutil.which("strace")
        if strace is None:
            raise SkipTest("strace is not installed.")
        receiver = self.prepare(
            config="{port: 8181, sender: github, secrets_file: secrets, idempotency: 1h}", port=None
        )
        with open(receiver.path("secrets"), "w") as file:
            file.write("main = made-up\n")
        os.chmod(receiver.path("secrets"), 0o600)
        with open(receiver.path("request.http"), "w") as file:
            file.write("POST / HTTP/1.1\nX-GitHub-Delivery: d\n\n{}")
        before = sorted(os.listdir(receiver.directory))
        # What measures coverage writes its own file.
        environment = {name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_START"}
        calls = "socket,connect,bind,listen,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat"
        done = subprocess.run(
            [
                *(strace, "-f", "-qq", "-e", f"trace={calls}", "-o", "trace"),
                *(sys.executable, "-B", "-m", "webhookrx", "try", "request.http", "--config", "config.yaml"),
                *("--sign", "main"),
            ],
            cwd=receiver.directory,
            env={**environment, "PYTHONPATH": ROOT, "STATE_DIRECTORY": receiver.directory},
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode and b"ptrace" in done.stderr:
            raise SkipTest("strace may not trace here.")
        self.assertEqual(0, done.returncode, done.stderr)
        with open(receiver.path("trace")) as file:
            changes = [line for line in file if _CHANGES.search(line) and "/dev/null" not in line]
        self.assertEqual([], changes)
        self.assertEqual([*before, "trace"], sorted(os.listdir(receiver.directory)))
