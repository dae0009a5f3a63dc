"""
Every sender that signs, to the real program: its samples, signed now, are stored; with another body they are refused.
"""

from __future__ import annotations

import os
import re
import time
from typing import Any

import yaml

from tests.senders.sign_samples import KEYS
from tests.senders.test_samples import DATA
from tests.senders.test_signed_samples import SIGNING, read, request_of
from tests.system.receiver import ANY_PORT, Receiver, ReceiverCase
from webhookrx.commands.sample_signatures import judged_when_signed, verifier_of
from webhookrx.intake.head import Head
from webhookrx.senders.definition import SenderDefinition, SignedWith
from webhookrx.senders.signatures.named_secrets import read_secrets
from webhookrx.senders.signatures.outcome import Verified
from webhookrx.senders.signatures.signing import sign
from webhookrx.senders.signatures.verifier import names_files

#: Their tokens end, and only their issuers can sign others.
ENDING = {"azure-event-grid", "google-pubsub"}

#: What says where a request ends is made anew.
LEFT_OUT = (b"host", b"content-length", b"connection", b"accept-encoding", b"expect")


class Sample:
    """
    A sample of a sender, and how it is signed.

    @ivar name: that of its source, and of its secrets file.
    """

    def __init__(self, entry: SenderDefinition, number: int, signed_with: SignedWith, file: str) -> None:
        self.entry = entry
        self.name = f"{entry.id}-{number}"
        self.file = file
        self.signed_with = signed_with

    def source(self) -> dict[str, Any]:
        """Return its source, as in a configuration."""
        source: dict[str, Any] = {"name": self.name, "source": "webhook", "paths": f"/{self.name}"}
        source |= {"sender": self.entry.id}
        if self.signed_with.secrets:
            source["secrets_file"] = self.name
        if self.signed_with.public_url:
            source["public_url"] = self.signed_with.public_url
        if self.signed_with.settings:
            source["sender_settings"] = {
                name: value if isinstance(value, str) else list(value)
                for name, value in self.signed_with.settings.items()
            }
        return source

    def request(self) -> tuple[Head, bytes]:
        """Return head and body of it, signed now where it can be."""
        head, query, body = request_of(self.file)
        head = Head(head.method, f"/{self.name}".encode(), head.query, head.headers, head.peer)
        now = time.time_ns()
        # A time that stands in what is signed is not that of a sample any more.
        body = re.sub(rb'("webhookTimestamp":)[0-9]+', rb"\g<1>%d" % (now // 1_000_000), body)
        if self.entry.id == "mailgun":
            body = re.sub(rb'("timestamp": ?")[0-9]+"', rb'\g<1>%d"' % (now // 1_000_000_000), body)
        verifier = verifier_of(self.entry, self.signed_with, read)
        if not self.signed_with.secrets or self.entry.id == "adyen":
            return head, body
        reader = read if names_files(self.entry) else None
        secret, *_ = read_secrets("\n".join(self.signed_with.secrets), reader)
        key = KEYS / f"{verifier.ways[0].scheme.scheme.algorithm.partition('-')[0]}.pem"
        private_key = key.read_bytes() if key.exists() else b""
        made = sign(verifier, secret, head, query, body, now, private_key=private_key)
        kept = [line for line in head.headers if line[0] not in made.headers]
        return Head(head.method, head.path, head.query, [*kept, *made.headers.items()], head.peer), made.body


def samples() -> list[Sample]:
    """Return for each sender, and each set of secrets that its samples are signed with, a sample that is signed so."""
    found = []
    for entry in SIGNING:
        if entry.id in ENDING:
            continue
        for number, signed_with in enumerate(entry.signing):
            verifier = verifier_of(entry, signed_with, read)
            signed = (
                file for file in entry.samples if isinstance(judged_when_signed(verifier, *request_of(file)), Verified)
            )
            found.append(Sample(entry, number, signed_with, next(signed)))
    return found


def bytes_of(head: Head, body: bytes) -> bytes:
    """Return a request on the wire."""
    target = head.path + (b"?" + head.query if head.query else b"")
    lines = [head.method + b" " + target + b" HTTP/1.1", b"Host: logs.example"]
    lines += [name + b": " + value for name, value in head.headers if name not in LEFT_OUT]
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body])


class VerifiedSenderTests(ReceiverCase):
    """A source for each sender."""

    def started(self, all_samples: list[Sample]) -> Receiver:
        """Return a receiver with a source for each sample."""
        keys = {str(DATA / name) for sample in all_samples for name in sample.signed_with.keys}
        config = {"port": ANY_PORT, "signing_certs": sorted(keys), "sources": [each.source() for each in all_samples]}
        receiver = self.prepare(config=yaml.safe_dump(config), port=None)
        for sample in all_samples:
            text = "\n".join(sample.signed_with.secrets).replace("@samples/", f"@{DATA}/samples/")
            with open(receiver.path(sample.name), "w") as file:
                file.write(text)
            os.chmod(receiver.path(sample.name), 0o600)
        return receiver.start()

    def test_each(self) -> None:
        """A genuine request is stored with what proves it, and refused with another body where that is signed."""
        all_samples = samples()
        self.assertGreaterEqual(len(all_samples), 80)
        receiver = self.started(all_samples)
        for sample in all_samples:
            head, body = sample.request()
            answer = self.ask(receiver.port, bytes_of(head, body))
            self.assertLess(answer.status, 300, (sample.name, answer.body))
            if verifier_of(sample.entry, sample.signed_with, read).binds_body:
                changed = self.ask(receiver.port, bytes_of(head, body[:-1] + b" " + body[-1:] + b"\n"))
                self.assertEqual(401, changed.status, sample.name)
        messages = {message["SOURCE"]: message for message in receiver.messages()}
        self.assertEqual(set(), {each.name for each in all_samples} - messages.keys())
        for sample in all_samples:
            message = messages[sample.name]
            self.assertEqual(sample.entry.id, message["webhook.sender"])
            self.assertIn(message["webhook.verified"], ("signature", "token"), sample.name)
