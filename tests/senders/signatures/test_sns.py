"""Tests for L{webhookrx.senders.signatures.sns}."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.signatures.keys import private_key, public_text
from tests.senders.signatures.published_keys import NOW, KeyTable, certificate
from tests.senders.signatures.requests import check, head_of, verdict, verifier_of
from tests.senders.signatures.test_pinned_urls import HOSTILE
from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError
from webhookrx.senders.signatures.outcome import Verified
from webhookrx.senders.signatures.public_keys import is_signed_by
from webhookrx.senders.signatures.signing import sign
from webhookrx.senders.signatures.sns import confirmation_url
from webhookrx.senders.signatures.verifier import Verifier

_TOPIC = "arn:aws:sns:us-east-1:123456789012:ours"
_URL = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem"
_CERTIFICATE = certificate(private_key("rsa"))
_NOW = NOW.timestamp()
_NOTIFICATION = {
    "Type": "Notification",
    "MessageId": "1",
    "TopicArn": _TOPIC,
    "Subject": "S\u00fc\u00df",
    "Message": "one\ntwo \u2603",
    "Timestamp": "2026-11-23T11:59:30.000Z",
    "SignatureVersion": "2",
    "SigningCertURL": _URL,
    "UnsubscribeURL": "https://sns.us-east-1.amazonaws.com/?Action=Unsubscribe",
}
_CONFIRM = f"https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn={_TOPIC}&Token=2336412f37"
_QUESTION = {
    "Type": "SubscriptionConfirmation",
    "MessageId": "2",
    "Token": "2336412f37",
    "TopicArn": _TOPIC,
    "Message": "You have chosen to subscribe.",
    "SubscribeURL": _CONFIRM,
    "Timestamp": "2026-11-23T11:59:30.000Z",
    "SignatureVersion": "1",
    "SigningCertURL": _URL,
}


def _verifier(keys: KeyTable | None = None, **settings: Any) -> Verifier:
    return verifier_of(
        {"code": "sns"},
        secrets={},
        settings={"topics": (_TOPIC,), **settings},
        keys=KeyTable({_URL: _CERTIFICATE}) if keys is None else keys,
    )


def _signed(message: dict[str, Any], number: int = 0) -> bytes:
    """Return a message as Amazon signs it: by the documentation, and not by the code that is tested."""
    names = ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
    if message["Type"] != "Notification":
        names = ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
    text = "".join(f"{name}\n{message[name]}\n" for name in names if name in message)
    digest = hashes.SHA1() if message["SignatureVersion"] == "1" else hashes.SHA256()  # as Amazon does
    signature = private_key("rsa", number).sign(text.encode(), PKCS1v15(), digest)
    return msgspec.json.encode(message | {"Signature": base64.b64encode(signature).decode()})


def _verdict(verifier: Verifier, body: bytes) -> str:
    return verdict(check(verifier, {}, body, now=_NOW))


class SnsTests(SynchronousTestCase):
    """Messages of Amazon SNS."""

    def test_name_twice(self) -> None:
        """A genuine message can't have another text under the name of its own before it."""
        genuine = _signed(_NOTIFICATION)
        self.assertEqual("ok:amazonaws.com", _verdict(_verifier(), genuine))
        self.assertEqual("bad_signature", _verdict(_verifier(), b'{"Message":"forged",' + genuine[1:]))

    def test_genuine(self) -> None:
        """Messages of both versions and all kinds verify, with a subject or without."""
        without = {name: value for name, value in _NOTIFICATION.items() if name != "Subject"}
        result = check(_verifier(), {}, _signed(_NOTIFICATION), now=_NOW)
        self.assertEqual(Verified("amazonaws.com", "signature", round(_NOW - 30) * 10**9, 30.0), result)
        for message in (
            without,
            _NOTIFICATION | {"SignatureVersion": "1"},
            _QUESTION,
            _QUESTION | {"Type": "UnsubscribeConfirmation"},
        ):
            self.assertEqual("ok:amazonaws.com", _verdict(_verifier(), _signed(message)))

    def test_added(self) -> None:
        """A member that is signed elsewhere can't be added to a genuine message, as a text or as anything else."""
        for message, name in (
            (_NOTIFICATION, "SubscribeURL"),
            (_NOTIFICATION, "Token"),
            ({**_NOTIFICATION, "Subject": None}, "Subject"),
            (_QUESTION, "Subject"),
        ):
            genuine = {each: value for each, value in message.items() if value is not None}
            body = msgspec.json.decode(_signed(genuine))
            self.assertEqual("ok:amazonaws.com", _verdict(_verifier(), msgspec.json.encode(body | {name: None})))
            for value, reason in (("added", "bad_signature"), (1, "signature_missing"), ([], "signature_missing")):
                added = msgspec.json.encode(body | {name: value})
                self.assertEqual(reason, _verdict(_verifier(), added), (message["Type"], name, value))

    def test_file(self) -> None:
        """A certificate, or a public key, in a file does without any request to Amazon."""
        other = certificate(private_key("rsa", 1))
        for data in (_CERTIFICATE, public_text("rsa", "pem").encode(), other + _CERTIFICATE):
            keys = KeyTable(files=[other, data], are_fetched=False)
            self.assertEqual("ok:amazonaws.com", _verdict(_verifier(keys), _signed(_NOTIFICATION)))
            self.assertEqual([], keys.asked)
        keys = KeyTable(files=[other], are_fetched=False)
        self.assertEqual("bad_signature", _verdict(_verifier(keys), _signed(_NOTIFICATION)))

    def test_no_sha1(self) -> None:
        """Where the system has no SHA-1, nothing that is signed with it is genuine."""

        class Key:
            def verify(self, *_: Any) -> None:
                raise UnsupportedAlgorithm("SHA-1")

        self.assertFalse(is_signed_by(Key(), "rsa-sha1", b"x", b"y"))

    def test_unavailable(self) -> None:
        """As long as a certificate is not there, the sender is asked to try again."""
        self.assertEqual("key_unavailable", _verdict(_verifier(KeyTable()), _signed(_NOTIFICATION)))

    def test_forged(self) -> None:
        """A change of anything signed, another key, another topic or an expired certificate is refused."""
        for name in ("Message", "MessageId", "Subject", "Timestamp", "Type"):
            body = msgspec.json.decode(_signed(_NOTIFICATION))
            body[name] = "SubscriptionConfirmation" if name == "Type" else body[name] + "x"
            expected = "signature_missing" if name == "Type" else "bad_signature"
            self.assertEqual(expected, _verdict(_verifier(), msgspec.json.encode(body)), name)
        self.assertEqual("bad_signature", _verdict(_verifier(), _signed(_NOTIFICATION, 1)))
        other = _signed(_NOTIFICATION | {"TopicArn": f"{_TOPIC}x"})
        keys = KeyTable({_URL: _CERTIFICATE})
        self.assertEqual(("bad_signature", []), (_verdict(_verifier(keys), other), keys.asked))
        expired = KeyTable({_URL: certificate(private_key("rsa"), days=-1)})
        self.assertEqual("bad_signature", _verdict(_verifier(expired), _signed(_NOTIFICATION)))
        chain = KeyTable({_URL: certificate(private_key("rsa", 1)) + _CERTIFICATE})
        self.assertEqual("bad_signature", _verdict(_verifier(chain), _signed(_NOTIFICATION)))

    def test_missing(self) -> None:
        """A message without a signature, such as a raw one, or of an unknown kind or version, has none."""
        body = msgspec.json.decode(_signed(_NOTIFICATION))
        for change in (
            {"Signature": ""},
            {"Signature": "x"},
            {"Signature": 7},
            {"SignatureVersion": "3"},
            {"SignatureVersion": 1},
            {"Type": "Other"},
            {"Message": None},
        ):
            self.assertEqual("signature_missing", _verdict(_verifier(), msgspec.json.encode(body | change)), change)
        for raw in (b"", b"[]", b'"x"', b"plain text", b"{}"):
            self.assertEqual("signature_missing", _verdict(_verifier(), raw))

    def test_hosts(self) -> None:
        """A certificate that is anywhere but at Amazon is not even asked for."""
        keys = KeyTable()
        for url in HOSTILE:
            body = _signed(_NOTIFICATION | {"SigningCertURL": url})
            self.assertEqual("bad_signature", _verdict(_verifier(keys), body), url)
        self.assertEqual([], keys.asked)

    def test_settings(self) -> None:
        """Without topics, or keys from anywhere, nothing can be checked."""
        for settings, keys, words in (
            ({}, KeyTable(), "'topics'"),
            ({"topics": "x"}, KeyTable(), "'topics'"),
            ({"topics": ("x",)}, None, "signing_certs"),
            ({"topics": ("x",)}, KeyTable(are_fetched=False), "signing_certs"),
        ):
            error = self.assertRaises(
                SecretError, verifier_of, {"code": "sns"}, secrets={}, settings=settings, keys=keys
            )
            self.assertIn(words, str(error))

    def test_not_signed_here(self) -> None:
        """Nobody but Amazon can sign for it."""
        secret = NamedSecret("amazonaws.com", b"")
        self.assertRaises(SecretError, sign, _verifier(), secret, head_of(), {}, b"{}", 0)


class ConfirmationTests(SynchronousTestCase):
    """The URL by which a subscription is confirmed."""

    def test_wanted(self) -> None:
        """It is that of the message, if the operator wants it and it does nothing else."""
        settings = {"topics": (_TOPIC,), "confirm": True}
        self.assertEqual(_CONFIRM, confirmation_url(_QUESTION, settings))
        encoded = _CONFIRM.replace(":sns:", "%3Asns%3A")
        self.assertEqual(encoded, confirmation_url(_QUESTION | {"SubscribeURL": encoded}, settings))
        for change in ({"confirm": False}, {"confirm": "yes"}, {"topics": ("other",)}):
            self.assertEqual("", confirmation_url(_QUESTION, settings | change))
        self.assertEqual("", confirmation_url(_QUESTION, {"topics": (_TOPIC,)}))
        for document in (
            [],
            None,
            _QUESTION | {"Type": "Notification"},
            _QUESTION | {"Type": "UnsubscribeConfirmation"},
        ):
            self.assertEqual("", confirmation_url(document, settings))

    def test_hostile(self) -> None:
        """Another host, action, topic or token, or anything besides, is never asked for."""
        settings = {"topics": (_TOPIC,), "confirm": True}
        for url in (
            *HOSTILE,
            _CONFIRM.replace(".com/", ".com.evil.example/"),
            _CONFIRM.replace("https:", "http:"),
            _CONFIRM.replace(".com/", ".com:444/"),
            _CONFIRM.replace("https://", "https://a@"),
            _CONFIRM.replace("ConfirmSubscription", "DeleteTopic"),
            _CONFIRM.replace("ConfirmSubscription", "Unsubscribe"),
            _CONFIRM.replace(_TOPIC, f"{_TOPIC}x"),
            _CONFIRM.replace("Token=2336412f37", "Token=2"),
            _CONFIRM + "&Token=2336412f37",
            _CONFIRM + "&AuthenticateOnUnsubscribe=true",
            _CONFIRM + "#x",
            _CONFIRM.replace("/?", "/path?"),
            _URL,
        ):
            self.assertEqual("", confirmation_url(_QUESTION | {"SubscribeURL": url}, settings), url)
