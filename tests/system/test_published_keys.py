"""
Senders that sign with keys of their own, whose public ones are in files; the real program.
"""

from __future__ import annotations

from tests.senders.test_samples import DATA
from tests.system.receiver import ANY_PORT, PATIENCE, ReceiverCase, post, wait_until
from webhookrx.senders.http_file import read_http_file

_TOPIC = "arn:aws:sns:eu-central-1:111122223333:ops-alerts"
CONFIG = f"""
port: {ANY_PORT}
source: webhook-json
signing_certs: [{DATA}/samples/aws-sns.pem, {DATA}/samples/paypal.pem]
sources:
  - {{name: sns, paths: /sns, sender: aws-sns, sender_settings: {{topics: ["{_TOPIC}"]}}}}
  - {{name: other, paths: /other, sender: aws-sns, sender_settings: {{topics: ["{_TOPIC}x"]}}}}
  - {{name: paypal, paths: /paypal, sender: paypal, sender_settings: {{webhook_id: 1JE4291016473214C}}}}
"""


def sample(name: str, target: str) -> bytes:
    """Return the request of a sample, sent to another path."""
    head, _, body = read_http_file((DATA / "samples" / f"{name}.http").read_bytes())
    left_out = (b"host", b"content-length", b"connection")
    lines = [f"{key.decode()}: {value.decode()}" for key, value in head.headers if key not in left_out]
    return post(body, target, lines)


class PublishedKeyTests(ReceiverCase):
    """Keys that a sender publishes."""

    def test_files(self) -> None:
        """What a key in a file has signed is taken, and the message says whose it was; nothing else is."""
        receiver = self.prepare(config=CONFIG, port=None).start()
        for name, target, status, reason in (
            ("aws-sns-notification", "/sns", 200, ""),
            ("aws-sns-subscription-confirmation", "/sns", 200, ""),
            ("paypal-capture", "/paypal", 200, ""),
            ("aws-sns-notification", "/other", 401, "bad_signature"),
            ("aws-sns-raw", "/sns", 401, "signature_missing"),
            ("aws-sns-notification", "/paypal", 401, "signature_missing"),
        ):
            answer = self.ask(receiver.port, sample(name, target))
            self.assertEqual((status, reason), (answer.status, answer.reason if reason else ""), (name, target))
        said = [
            (each["webhook.sender"], each["webhook.verified"], each["webhook.secret"]) for each in receiver.messages()
        ]
        sns = ("aws-sns", "signature", "amazonaws.com")
        self.assertEqual([sns, sns, ("paypal", "signature", "paypal.com")], said)
        command = f"aws sns confirm-subscription --topic-arn {_TOPIC} --token"
        wait_until(
            lambda: command in receiver.log(), "the log has the command that confirms the subscription", PATIENCE
        )
