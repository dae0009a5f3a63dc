"""
Signed requests, questions and deliveries that come again: the real program, C{curl}, and signatures of C{openssl}.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from typing import NamedTuple

from twisted.trial.unittest import SkipTest

from tests.system.receiver import ANY_PORT, PATIENCE, Receiver, ReceiverCase, wait_until
from tests.system.workers import ask_admin

SECRET = "It's a Secret to Everybody"  # the one in GitHub's documentation
BODY = b"Hello, World!"
SIGNATURE = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
"""What GitHub's documentation gives for both."""

CONFIG = f"""
port: {ANY_PORT}
admin: unix:admin
state_dir: state
include_request_headers: yes
sources:
  - {{name: github, paths: /github, sender: github, secrets_file: github, idempotency: 1h}}
  - {{name: slack, paths: /slack, sender: slack, secrets_file: slack, source: webhook-json}}
"""


class CurlAnswer(NamedTuple):
    status: int
    body: str


def program(name: str) -> str:
    """Return the path of a program, or skip the test that needs it."""
    path = shutil.which(name)
    if path is None:
        raise SkipTest(f"{name} is not installed.")
    return path


def hmac_of(text: bytes) -> str:
    """Return what openssl makes of a text and the secret."""
    words = [program("openssl"), "dgst", "-sha256", "-hmac", SECRET, "-r"]
    return subprocess.run(words, input=text, capture_output=True, check=True, timeout=PATIENCE).stdout.decode()[:64]


class SignedTests(ReceiverCase):
    """
    A source that hears GitHub alone, and one for Slack.
    """

    def running(self) -> Receiver:
        receiver = self.prepare(config=CONFIG, port=None)
        for name in ("github", "slack"):
            with open(os.open(receiver.path(name), os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(f"# comment\nmain = {SECRET}\n")
        return receiver.start()

    def curl(self, receiver: Receiver, path: str, body: bytes, *options: str) -> CurlAnswer:
        """Post a body, and return the answer."""
        words = [program("curl"), "-sS", "-w", "\n%{http_code}", "--data-binary", "@-", "-H", "Content-Type:", *options]
        words.append(f"http://127.0.0.1:{receiver.port}{path}")
        ran = subprocess.run(words, input=body, capture_output=True, check=True, timeout=PATIENCE)
        text, _, status = ran.stdout.decode().rpartition("\n")
        return CurlAnswer(int(status), text)

    def test_github(self) -> None:
        """A delivery is taken once, in one piece or chunked; a forged one is not, and no secret is shown anywhere."""
        receiver = self.running()
        signed = ("-H", f"X-Hub-Signature-256: sha256={hmac_of(BODY)}")
        self.assertEqual(SIGNATURE, signed[1].partition(": ")[2])
        received, again = '{"status":"received"}', '{"status":"received","duplicate":true}'
        first = ("-H", "X-GitHub-Delivery: d-1")
        self.assertEqual((200, received), self.curl(receiver, "/github", BODY, *signed, *first))
        self.assertEqual((200, again), self.curl(receiver, "/github", BODY, *signed, *first))
        self.assertEqual(401, self.curl(receiver, "/github", BODY + b"!", *signed).status)
        self.assertEqual(401, self.curl(receiver, "/github", BODY).status)
        large = b"x" * 3_000_000
        options = ("-H", f"X-Hub-Signature-256: sha256={hmac_of(large)}", "-H", "Transfer-Encoding: chunked")
        self.assertEqual(200, self.curl(receiver, "/github", large, *options).status)
        for line in (
            'webhookrx_verified_total{kind="secret",secret="main",source="github"} 3.0',
            'webhookrx_duplicates_total{source="github"} 1.0',
            'webhookrx_refusals_total{reason="bad_signature",source="github"} 1.0',
            'webhookrx_refusals_total{reason="signature_missing",source="github"} 1.0',
        ):
            wait_until(lambda line=line: line in ask_admin(receiver, "/metrics").body.decode(), line)
        receiver.stop()
        receiver.start()
        self.assertEqual((200, again), self.curl(receiver, "/github", BODY, *signed, *first))
        receiver.stop()
        messages = receiver.messages()
        self.assertEqual([BODY.decode(), large.decode()], [message["MESSAGE"] for message in messages])
        self.assertEqual(
            ("github", "signature", "main", "d-1", ["***"]),
            (
                *(messages[0][f"webhook.{name}"] for name in ("sender", "verified", "secret", "delivery_id")),
                messages[0]["webhook.headers"]["X-Hub-Signature-256"],
            ),
        )
        self.assertNotIn(SECRET, receiver.log() + json.dumps(messages))

    def test_slack(self) -> None:
        """A signed question is answered and not stored; what was signed too long ago is refused."""
        receiver = self.running()
        question = b'{"type":"url_verification","challenge":"abc"}'
        for age, status in ((0, 200), (400, 401)):
            moment = int(time.time()) - age
            signature = hmac_of(b"v0:%d:%s" % (moment, question))
            options = ("-H", f"X-Slack-Signature: v0={signature}", "-H", f"X-Slack-Request-Timestamp: {moment}")
            answer = self.curl(receiver, "/slack", question, *options)
            self.assertEqual(status, answer.status, answer)
            if status == 200:
                self.assertEqual({"challenge": "abc"}, json.loads(answer.body))
        # The answer is out before the line is.
        wait_until(lambda: "stale_signature (401) for POST /slack" in receiver.log(), "the refusal is logged")
        line = 'webhookrx_handshakes_total{kind="url_verification",source="slack"} 1.0'
        wait_until(lambda: line in ask_admin(receiver, "/metrics").body.decode(), line)
        receiver.stop()
        self.assertEqual([], receiver.messages())
