"""
What others sign, our check takes; and what we sign, they take: the libraries that senders publish, and OpenSSL.

The libraries look at the clock. They come with the extra C{sdks}; without one its tests are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib import import_module
from typing import Any, ClassVar
from urllib.parse import urlencode

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.signatures.requests import check, head_of, verdict, verifier_of
from webhookrx.intake.urlencoded import parse_query
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.senders.signatures.outcome import Verified
from webhookrx.senders.signatures.scheme import MAC_ALGORITHMS
from webhookrx.senders.signatures.signing import sign
from webhookrx.senders.signatures.verifier import Verifier

HOST = "https://logs.example"
JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
EVENT = '{"id":"evt_1","type":"a.b","object":"event","n":1.10,"text":"Z\\u00fcrich \u2603"}'.encode()
ENTRIES = {entry.id: entry for entry in builtin_definitions()}


def library(name: str) -> Any:
    """Return a module, None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


class Sdk:
    """
    What a library must pass. A class of tests has one as its base, and says which.

    @cvar entry: the id of the sender.
    @cvar module: what signs and verifies.
    @cvar secret: what both sides know, or the public key of one.
    @cvar other: another secret that our check knows, which signs nothing.
    """

    entry: ClassVar[str]
    module: ClassVar[Any]
    secret: ClassVar[str] = "made up, and in use nowhere"
    other: ClassVar[str] = "of nobody"
    private_key: ClassVar[bytes] = b""
    body: ClassVar[bytes] = EVENT
    changed: ClassVar[bytes] = EVENT.replace(b"evt_1", b"evt_2")
    target: ClassVar[str] = "/hooks?a=1"
    media: ClassVar[Mapping[str, str]] = JSON
    takes_time: ClassVar[bool] = True

    def verifier(self) -> Verifier:
        """Return our check."""
        secrets = {"other": self.other, "sdk": self.secret}
        named = [NamedSecret(name, secret.encode()) for name, secret in secrets.items()]
        return Verifier(ENTRIES[self.entry], named, public_url=HOST)

    def is_taken(self, body: bytes, headers: Mapping[str, str], now: float) -> bool:
        """Tell whether our check takes a request for genuine."""
        head = head_of({**self.media, **headers}, url=self.target)
        outcome = self.verifier().begin(head, parse_query(head.query or b"")).finish(body, round(now * 1_000_000_000))
        return isinstance(outcome, Verified) and outcome.secret == "sdk"


class Signs(Sdk):
    """A library that signs."""

    def signed(self, body: bytes, moment: int) -> dict[str, str]:
        """Return the headers by which the library signs a request."""
        raise NotImplementedError

    def test_theirs(self: Any) -> None:
        """What the library signs is genuine, as long as it is as it was signed, and not too old."""
        moment = int(time.time())
        headers = self.signed(self.body, moment)
        self.assertTrue(self.is_taken(self.body, headers, moment))
        self.assertFalse(self.is_taken(self.changed, headers, moment))
        if self.takes_time:
            self.assertFalse(self.is_taken(self.body, headers, moment + 3600))


class Takes(Sdk):
    """A library that verifies."""

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """Tell whether the library takes a request for genuine."""
        raise NotImplementedError

    def test_ours(self: Any) -> None:
        """The library takes what we sign, and nothing else."""
        head = head_of(self.media, url=self.target)
        secret = NamedSecret("sdk", self.secret.encode())
        query = parse_query(head.query or b"")
        made = sign(self.verifier(), secret, head, query, self.body, time.time_ns(), private_key=self.private_key)
        headers = {name.decode(): value.decode() for name, value in made.headers.items()}
        self.assertTrue(self.takes(made.body, {**self.media, **headers}))
        self.assertFalse(self.takes(self.changed, {**self.media, **headers}))


def holds(call: Any, *arguments: Any, **options: Any) -> bool:
    """Tell whether a check of a library that raises for what is not genuine raises nothing."""
    try:
        call(*arguments, **options)
    except Exception:
        return False
    return True


class StripeTests(Signs, Takes, SynchronousTestCase):
    """stripe."""

    entry = "stripe"
    module = library("stripe")
    skip = None if module else "needs the package stripe"
    secret = "whsec_made_up"

    def signed(self, body: bytes, moment: int) -> dict[str, str]:
        """See L{Signs.signed}."""
        header = self.module.WebhookSignature.generate_signature_header(body.decode(), self.secret, moment)
        return {"stripe-signature": header}

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        return holds(self.module.WebhookSignature.verify_header, body, headers["stripe-signature"], self.secret, 300)


class SlackTests(Signs, Takes, SynchronousTestCase):
    """slack-sdk."""

    entry = "slack"
    module = library("slack_sdk.signature")
    skip = None if module else "needs the package slack-sdk"

    def signed(self, body: bytes, moment: int) -> dict[str, str]:
        """See L{Signs.signed}."""
        signature = self.module.SignatureVerifier(self.secret).generate_signature(timestamp=str(moment), body=body)
        return {"x-slack-request-timestamp": str(moment), "x-slack-signature": signature}

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        return bool(self.module.SignatureVerifier(self.secret).is_valid_request(body, headers))


class StandardWebhooksTests(Signs, Takes, SynchronousTestCase):
    """standardwebhooks."""

    entry = "standard-webhooks"
    module = library("standardwebhooks")
    skip = None if module else "needs the package standardwebhooks"
    secret = "whsec_" + b64encode(b"made up, and in use nowhere").decode()
    other = "whsec_" + b64encode(b"of nobody").decode()
    names: ClassVar[str] = "webhook"

    def signed(self, body: bytes, moment: int) -> dict[str, str]:
        """See L{Signs.signed}."""
        signature = self.module.Webhook(self.secret).sign("msg_1", datetime.fromtimestamp(moment, UTC), body.decode())
        return {
            f"{self.names}-id": "msg_1",
            f"{self.names}-timestamp": str(moment),
            f"{self.names}-signature": f"v1,AAAA {signature}",
        }

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        return holds(self.module.Webhook(self.secret).verify, body, dict(headers))


class SvixTests(StandardWebhooksTests):
    """svix."""

    module = library("svix.webhooks")
    skip = None if module else "needs the package svix"
    names = "svix"


class TwilioFormTests(Signs, Takes, SynchronousTestCase):
    """twilio, with a form."""

    entry = "twilio"
    module = library("twilio.request_validator")
    skip = None if module else "needs the package twilio"
    media = FORM
    fields: ClassVar[dict[str, str]] = {"SmsSid": "SM1", "Body": "Zürich & more", "From": "+15005550006", "Media": ""}
    body = urlencode(fields).encode()
    changed = body.replace(b"SM1", b"SM2")
    takes_time = False
    algorithm: ClassVar[str] = "HMAC_SHA1"

    def signed(self, body: bytes, moment: int) -> dict[str, str]:
        """See L{Signs.signed}."""
        validator = self.module.RequestValidator(self.secret)
        return {"x-twilio-signature": validator.compute_signature(HOST + self.target, self.fields, self.algorithm)}

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        fields = parse_query(body)
        validator = self.module.RequestValidator(self.secret)
        return bool(validator.validate(HOST + self.target, fields, headers["x-twilio-signature"]))


class TwilioSharedKeyTests(TwilioFormTests):
    """twilio, with a form and a shared key."""

    algorithm = "HMAC_SHA256"


class TwilioJsonTests(Signs, Takes, SynchronousTestCase):
    """twilio, with JSON."""

    entry = "twilio"
    module = library("twilio.request_validator")
    skip = None if module else "needs the package twilio"
    target = f"/hooks?a=1&bodySHA256={sha256(EVENT).hexdigest()}"
    takes_time = False

    def signed(self, body: bytes, moment: int) -> dict[str, str]:
        """See L{Signs.signed}."""
        validator = self.module.RequestValidator(self.secret)
        return {"x-twilio-signature": validator.compute_signature(HOST + self.target, {})}

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        validator = self.module.RequestValidator(self.secret)
        return bool(validator.validate(HOST + self.target, body.decode(), headers["x-twilio-signature"]))


_ED25519 = ed25519.Ed25519PrivateKey.generate()
_ECDSA = ec.generate_private_key(ec.SECP256R1())


def _public_key(key: ec.EllipticCurvePrivateKey) -> str:
    """Return the public half of a key as SendGrid shows it."""
    return b64encode(key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


class DiscordTests(Signs, Takes, SynchronousTestCase):
    """discord-interactions, which verifies, and PyNaCl, by which it does so."""

    entry = "discord"
    module = library("discord_interactions")
    skip = None if module else "needs the package discord-interactions"
    secret = _ED25519.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    other = "00" * 32
    private_key = _ED25519.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def signed(self, body: bytes, moment: int) -> dict[str, str]:
        """See L{Signs.signed}."""
        seed = _ED25519.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        made = library("nacl.signing").SigningKey(seed).sign(str(moment).encode() + body)
        return {"x-signature-timestamp": str(moment), "x-signature-ed25519": made.signature.hex()}

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        signature, moment = headers["x-signature-ed25519"], headers["x-signature-timestamp"]
        return bool(self.module.verify_key(body, signature, moment, self.secret))


class SendGridTests(Takes, SynchronousTestCase):
    """sendgrid."""

    entry = "sendgrid"
    module = library("sendgrid.helpers.eventwebhook")
    skip = None if module else "needs the package sendgrid"
    secret = _public_key(_ECDSA)
    other = _public_key(ec.generate_private_key(ec.SECP256R1()))
    private_key = _ECDSA.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        name = "x-twilio-email-event-webhook"
        signature, moment = headers[f"{name}-signature"], headers[f"{name}-timestamp"]
        return bool(self.module.EventWebhook(self.secret).verify_signature(body.decode(), signature, moment))


class AdyenTests(Signs, SynchronousTestCase):
    """Adyen, with notifications of which each is signed."""

    entry = "adyen"
    module = library("Adyen.util")
    skip = None if module else "needs the package Adyen"
    secret = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
    other = "00" * 32
    takes_time = False

    def test_theirs(self) -> None:
        """What the library signs is genuine; with one that is changed, none is."""
        notifications: list[dict[str, Any]] = []
        for number in range(3):
            each: dict[str, Any] = {"pspReference": f"{number}", "merchantAccountCode": "a", "merchantReference": "r-ü"}
            each |= {"amount": {"value": 1130, "currency": "EUR"}, "eventCode": "CAPTURE", "success": "true"}
            signature = self.module.generate_notification_sig(each, self.secret).decode()
            notifications.append({"NotificationRequestItem": {**each, "additionalData": {"hmacSignature": signature}}})
        body = msgspec.json.encode({"live": "false", "notificationItems": notifications})
        self.assertTrue(self.is_taken(body, {}, 0))
        notifications[2]["NotificationRequestItem"]["success"] = "false"
        body = msgspec.json.encode({"live": "false", "notificationItems": notifications})
        self.assertFalse(self.is_taken(body, {}, 0))


class AdyenPlatformTests(Signs, Takes, SynchronousTestCase):
    """Adyen, with bodies that are signed as a whole."""

    entry = "adyen-platform"
    module = library("Adyen.util")
    skip = None if module else "needs the package Adyen"
    secret = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
    other = "00" * 32
    takes_time = False

    def signed(self, body: bytes, moment: int) -> dict[str, str]:
        """See L{Signs.signed}."""
        return {"hmacsignature": self.module.generate_payload_sig(body, self.secret).decode()}

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        return bool(self.module.is_valid_hmac_payload(headers["hmacsignature"], self.secret, body))


class LineTests(Takes, SynchronousTestCase):
    """line-bot-sdk."""

    entry = "line"
    module = library("linebot.v3.webhook")
    skip = None if module else "needs the package line-bot-sdk"

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        return bool(self.module.SignatureValidator(self.secret).validate(body.decode(), headers["x-line-signature"]))


class SquareTests(Takes, SynchronousTestCase):
    """squareup."""

    entry = "square"
    module = library("square.utils.webhooks_helper")
    skip = None if module else "needs the package squareup"

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        found = self.module.verify_signature(
            request_body=body.decode(),
            signature_header=headers["x-square-hmacsha256-signature"],
            signature_key=self.secret,
            notification_url=HOST + self.target,
        )
        return bool(found)


class HubSpotTests(Signs, Takes, SynchronousTestCase):
    """hubspot-api-client."""

    entry = "hubspot"
    module = library("hubspot.utils.signature")
    skip = None if module else "needs the package hubspot-api-client"

    def signed(self, body: bytes, moment: int) -> dict[str, str]:
        """See L{Signs.signed}."""
        written = str(moment * 1000)
        made = self.module.Signature.get_signature(
            self.secret, body.decode(), "v3", HOST + self.target, "POST", written
        )
        return {"x-hubspot-request-timestamp": written, "x-hubspot-signature-v3": made}

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        found = self.module.Signature.is_valid(
            headers["x-hubspot-signature-v3"],
            self.secret,
            body.decode(),
            HOST + self.target,
            "POST",
            "v3",
            headers["x-hubspot-request-timestamp"],
        )
        return bool(found)


class BoxTests(Signs, Takes, SynchronousTestCase):
    """boxsdk."""

    entry = "box"
    module = library("box_sdk_gen.managers.webhooks")
    skip = None if module else "needs the package boxsdk"
    said: ClassVar[dict[str, str]] = {"box-signature-version": "1", "box-signature-algorithm": "HmacSHA256"}

    def signed(self, body: bytes, moment: int) -> dict[str, str]:
        """See L{Signs.signed}."""
        headers = {**self.said, "box-delivery-timestamp": datetime.fromtimestamp(moment, UTC).isoformat()}
        made = self.module.compute_webhook_signature(body.decode(), headers, self.secret)
        return {**headers, "box-signature-secondary": made}

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        return bool(self.module.WebhooksManager.validate_message(body.decode(), {**self.said, **headers}, self.secret))


class WorkOSTests(Takes, SynchronousTestCase):
    """workos."""

    entry = "workos"
    module = library("workos.webhooks")
    skip = None if module else "needs the package workos"

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}. It wants a blank behind the comma, as WorkOS writes one."""
        header = headers["workos-signature"].replace(",", ", ")
        check = self.module.Webhooks(None).verify_header
        return holds(check, event_body=body, event_signature=header, secret=self.secret)


class PaddleTests(Takes, SynchronousTestCase):
    """paddle-python-sdk."""

    entry = "paddle"
    module = library("paddle_billing.Notifications")
    skip = None if module else "needs the package paddle-python-sdk"

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""

        class Request:
            """What it takes for a request."""

        request: Any = Request()
        request.body, request.headers = body, {"Paddle-Signature": headers["paddle-signature"]}
        verifier = library("paddle_billing.Notifications.Verifier").Verifier(60)
        return bool(verifier.verify(request, library("paddle_billing.Notifications.Secret").Secret(self.secret)))


class GidgethubTests(Takes, SynchronousTestCase):
    """gidgethub, a library for apps of GitHub."""

    entry = "github"
    module = library("gidgethub.sansio")
    skip = None if module else "needs the package gidgethub"

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        check = self.module.validate_event
        return holds(check, body, signature=headers["x-hub-signature-256"], secret=self.secret)


class AirtableTests(Takes, SynchronousTestCase):
    """pyairtable."""

    entry = "airtable"
    module = library("pyairtable.models.webhook")
    skip = None if module else "needs the package pyairtable"
    secret = b64encode(b"made up, and in use nowhere").decode()
    other = b64encode(b"of nobody").decode()
    body = b'{"base":{"id":"app1"},"webhook":{"id":"ach1"},"timestamp":"2026-03-02T08:15:00.000Z"}'
    changed = body.replace(b"app1", b"app2")

    def takes(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """See L{Takes.takes}."""
        check = self.module.WebhookNotification.from_request
        return holds(check, body.decode(), headers["x-airtable-content-mac"], b64decode(self.secret))


class OpenSslTests(SynchronousTestCase):
    """OpenSSL's command line."""

    openssl: ClassVar[str] = shutil.which("openssl") or ""
    skip = None if openssl else "needs the command openssl"

    def test_codes(self) -> None:
        """The HMAC that is made here of a body is OpenSSL's, for keys of all lengths."""
        for algorithm in MAC_ALGORITHMS:
            for size in (1, 63, 64, 65, 128, 129, 200):
                key = bytes(range(1, size + 1))
                options = [f"-{algorithm[5:]}", "-mac", "HMAC", "-macopt", f"hexkey:{key.hex()}", "-binary"]
                made = subprocess.run([self.openssl, "dgst", *options], input=EVENT, capture_output=True, check=True)
                verifier = verifier_of({"at": "header:s", "algorithm": algorithm}, secrets={"a": key})
                headers = {"s": made.stdout.hex()}
                self.assertEqual("ok:a", verdict(check(verifier, headers, EVENT)), (algorithm, size))
                self.assertEqual("bad_signature", verdict(check(verifier, headers, EVENT + b" ")), (algorithm, size))
