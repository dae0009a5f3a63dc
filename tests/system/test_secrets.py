"""
Secrets that come and go while their sender sends: the real program, alone and as workers.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os

from tests import LONG
from tests.system.hanging_up import hang_up
from tests.system.load import Load, missing
from tests.system.receiver import ANY_PORT, Receiver, ReceiverCase, post, wait_until
from tests.system.workers import ask_admin, serves, workers

CONFIG = f"""
port: {ANY_PORT}
admin: unix:admin
paths: /in
sender: github
secrets_file: secrets
"""


class Sender:
    """
    Signs as GitHub does.

    @ivar secret: the one in use.
    """

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def request(self, body: bytes) -> bytes:
        """Return a request with this body."""
        signature = hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        return post(body, headers=("X-GitHub-Event: push", f"X-Hub-Signature-256: sha256={signature}"))


class RotationTests(ReceiverCase):
    """
    A secret is added, its sender takes it, and the old one is removed.
    """

    def prepared(self, more: str = "") -> Receiver:
        """Return a receiver that is yet to be started, and knows the first secret."""
        receiver = self.prepare(config=CONFIG + more, port=None)
        self.write(receiver, "number-0")
        return receiver

    def write(self, receiver: Receiver, *secrets: str) -> None:
        """Put these secrets into its file in one step; each is its own name."""
        with open(receiver.path("secrets.new"), "w") as file:
            file.writelines(f"{secret} = {secret}\n" for secret in secrets)
        os.chmod(receiver.path("secrets.new"), 0o600)
        os.rename(receiver.path("secrets.new"), receiver.path("secrets"))

    def rotate(self, receiver: Receiver, times: int) -> None:
        """Rotate under load: no genuine request fails, no connection ends, and each message says by which secret."""
        sender = Sender("number-0")
        load = Load(receiver.port, request=sender.request).start()
        for number in range(1, times + 1):
            old, new = f"number-{number - 1}", f"number-{number}"
            self.write(receiver, old, new)
            self.assertIn("Reloaded: ", hang_up(receiver))
            sender.secret = new
            # What is under way with the old one has its answer when each connection has had two more.
            self.goes_on(load)
            self.write(receiver, new)
            self.assertIn("Reloaded: ", hang_up(receiver))
            forged = self.ask(receiver.port, Sender(old).request(b"too late"))
            self.assertEqual(401, forged.status)
        acknowledged = load.stop()
        receiver.stop()
        self.assertEqual(([], []), (load.refused, load.broken))
        messages = receiver.messages()
        self.assertEqual([], missing(acknowledged, messages))
        self.assertEqual(len(acknowledged), len(messages))
        self.assertEqual(
            {f"number-{number}" for number in range(times + 1)}, {each["webhook.secret"] for each in messages}
        )
        self.assertEqual({"signature"}, {each["webhook.verified"] for each in messages})
        self.assertNotIn("Traceback", receiver.log())

    def goes_on(self, load: Load) -> None:
        """Wait for two more answers on each connection, or for a refusal."""
        before = [len(texts) for texts in load.acknowledged]
        wait_until(
            lambda: (
                load.refused or all(len(texts) > was + 1 for texts, was in zip(load.acknowledged, before, strict=True))
            ),
            "every connection goes on",
        )

    def test_one_process(self) -> None:
        """Neither the port nor the observers notice."""
        receiver = self.prepared().start()
        port = receiver.port
        self.rotate(receiver, 20 if LONG else 4)
        self.assertNotIn(f"Port {port} Closed", receiver.log().partition("Stopping")[0])

    def test_workers(self) -> None:
        """It is so with several processes, too, which stay the same."""
        receiver = self.prepared("workers: 2\n").start()
        first = workers(receiver)
        sender = Sender("number-0")
        connections = [self.connect(receiver.port) for _ in range(8)]
        for connection in connections:
            answer = connection.send(sender.request(b"x")).answer()
            self.assertEqual(200, answer and answer.status)
        self.assertTrue(all(any(serves(pid, each) for pid in first) for each in connections))
        self.write(receiver, "number-0", "other")
        hang_up(receiver)
        self.assertEqual(first, workers(receiver))
        for connection in connections:
            answer = connection.send(Sender("other").request(b"x")).answer()
            self.assertEqual(200, answer and answer.status)
        self.write(receiver, "number-0")
        hang_up(receiver)
        receiver.forget_messages()
        self.rotate(receiver, 3)

    def test_without_a_signal(self) -> None:
        """The file is watched: a new secret counts soon after it was written."""
        receiver = self.prepared().start()
        self.write(receiver, "other")
        wait_until(lambda: "Reloaded: " in receiver.log(), "the change is seen")
        for secret, status in (("number-0", 401), ("other", 200)):
            self.assertEqual(status, self.ask(receiver.port, Sender(secret).request(b"x")).status)

    def test_networks(self) -> None:
        """A list of networks that changes counts soon after it was written; one that is broken changes nothing."""
        receiver = self.prepared("networks: {office: networks}\nallow: [office]\n")
        genuine = Sender("number-0").request(b"x")

        def allow(content: str) -> None:
            with open(receiver.path("networks.new"), "w") as file:
                file.write(f"{content}\n")
            os.rename(receiver.path("networks.new"), receiver.path("networks"))

        allow("127.0.0.0/8")
        receiver.start()
        self.assertEqual(200, self.ask(receiver.port, genuine).status)
        allow("192.0.2.0/24")
        wait_until(lambda: "Reloaded: " in receiver.log(), "the change is seen")
        self.assertEqual(403, self.ask(receiver.port, genuine).status)
        allow("no network")
        wait_until(lambda: "Reload failed" in receiver.log(), "the mistake is seen")
        self.assertIn("is no network, such as 192.0.2.0/24", receiver.log())
        self.assertEqual(403, self.ask(receiver.port, genuine).status)

    def test_unreadable(self) -> None:
        """A file that has gone leaves the old secrets in use; the log and the health say so until it is back."""
        receiver = self.prepared().start()
        genuine = Sender("number-0").request(b"x")
        os.rename(receiver.path("secrets"), receiver.path("gone"))
        told = hang_up(receiver)
        self.assertRegex(
            told, r"Reload failed, the old settings stay: config\.yaml:6: secrets_file: There is no such file"
        )
        self.assertEqual(200, self.ask(receiver.port, genuine).status)
        health = json.loads(ask_admin(receiver, "/readyz").body)
        reason = "The last reload failed: the settings and secrets from before are in use."
        self.assertEqual({"status": "degraded", "reasons": [reason]}, health)
        self.write(receiver, "other")
        hang_up(receiver)
        self.assertEqual(401, self.ask(receiver.port, genuine).status)
        self.assertEqual({"status": "ready", "reasons": []}, json.loads(ask_admin(receiver, "/readyz").body))

    def test_start(self) -> None:
        """Without a usable file nothing starts, and the line that is wrong is named without what is in it."""
        receiver = self.prepare(config=CONFIG, port=None)
        for content, told in (
            (None, "secrets_file: There is no such file"),
            ("# none yet\n", "There is no secret in it"),
            ("one = c4nary\none = c4nary2\n", "line 2: There are two secrets with the name"),
        ):
            if content is not None:
                with open(receiver.path("secrets"), "w") as file:
                    file.write(content)
            receiver.spawn()
            self.assertNotEqual(0, receiver.wait())
            self.assertIn(told, receiver.log())
        self.assertNotIn("c4nary", receiver.log())
