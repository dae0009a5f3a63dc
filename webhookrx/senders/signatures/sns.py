"""
Signatures of Amazon SNS, whose messages name the certificate that they are signed with.

U{https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html}: what is signed are those of some
members that are there, in a fixed order, each name and value on a line of its own. A member that is signed in any kind
of message counts in all of them, as in Amazon's C{sns-validator}, so that nobody can add one. A certificate comes from
a host of Amazon's alone, or from a file. Anyone can have Amazon sign messages, for topics of their own: so the topic
must be one of those that the operator names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from webhookrx.errors import BAD_SIGNATURE, SIGNATURE_MISSING
from webhookrx.intake.json_body import json_or_missing
from webhookrx.senders.signatures.code_verifiers import CodeOptions, certificates_of, is_certified
from webhookrx.senders.signatures.named_secrets import SecretError
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.pinned_urls import SNS_CERTIFICATE, SNS_CONFIRMATION
from webhookrx.senders.signatures.repeated_members import REPEATED, is_ambiguous
from webhookrx.senders.signatures.signed_request import Settings, SignedRequest
from webhookrx.senders.signatures.strict_encodings import from_base64
from webhookrx.senders.times import from_rfc3339

_SIGNED: Final = ("Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
_NOTIFICATION: Final = frozenset(_SIGNED) - {"Subject", "SubscribeURL", "Token"}
_QUESTION: Final = frozenset(_SIGNED) - {"Subject"}
_NEEDED: Final = {
    "Notification": _NOTIFICATION,
    "SubscriptionConfirmation": _QUESTION,
    "UnsubscribeConfirmation": _QUESTION,
}
_ALGORITHMS: Final = {"1": "rsa-sha1", "2": "rsa-sha256"}
_NAME: Final = "amazonaws.com"
_NANOSECONDS: Final = 1_000_000_000


class SnsVerifier:
    """
    Checks messages of Amazon SNS.

    @raise SecretError: the setting C{topics} is missing, or no key can ever be there.
    """

    def __init__(self, options: CodeOptions) -> None:
        self._topics = _topics(options.settings)
        self._keys = certificates_of(options)
        self.names = (_NAME,)

    def check(self, request: SignedRequest, now: int) -> Verified | Unverified:
        """See L{CodeVerifier.check}. A message may be as old as Amazon's tries to deliver it."""
        document = request.document
        message = _message(document)
        signature = from_base64(message.get("Signature", "").encode())
        algorithm = _ALGORITHMS.get(message.get("SignatureVersion", ""))
        text = _signed_text(document)
        url = message.get("SigningCertURL", "")
        if not signature or algorithm is None or text is None:
            return Unverified(SIGNATURE_MISSING, SIGNATURE_MISSING.detail)
        if message.get("TopicArn") not in self._topics:
            return Unverified(BAD_SIGNATURE, "The topic is none of those whose messages are taken.")
        if not SNS_CERTIFICATE.fullmatch(url):
            return Unverified(BAD_SIGNATURE, "The certificate is not at a URL of Amazon SNS.")
        if not is_certified(self._keys, url, algorithm, signature, text, now):
            return Unverified(BAD_SIGNATURE, BAD_SIGNATURE.detail)
        if is_ambiguous(request):
            return REPEATED
        signed_at = from_rfc3339(message.get("Timestamp"))
        return Verified(_NAME, "signature", signed_at, None if signed_at is None else (now - signed_at) / _NANOSECONDS)

    def sign(self, name: str, request: SignedRequest, now: int) -> Mapping[bytes, bytes]:
        """See L{CodeVerifier.sign}."""
        raise SecretError("Only Amazon can sign messages of SNS.")


make = SnsVerifier


class WaitingSubscription(NamedTuple):
    """
    A subscription that waits to be confirmed.

    @ivar url: what confirms it; empty when the operator does not want that, or it does anything else.
    """

    topic: str
    message_id: str
    url: str


def waiting_subscription(body: bytes, settings: Settings) -> WaitingSubscription | None:
    """
    Return the subscription that a request asks to confirm; None if it does not.

    @param body: of a verified request.
    """
    if b"SubscriptionConfirmation" not in body:
        return None
    message = _message(json_or_missing(body))
    if message.get("Type") != "SubscriptionConfirmation":
        return None
    return WaitingSubscription(
        message.get("TopicArn", ""), message.get("MessageId", ""), confirmation_url(message, settings)
    )


def confirmation_url(document: Any, settings: Settings) -> str:
    """
    Return the URL that confirms a subscription.

    @param document: the body of a verified request.
    @return: empty when it is no such question, the operator does not want it confirmed, or its URL does anything but
        confirm the subscription of that topic with that token.
    """
    message = _message(document)
    url, topic = message.get("SubscribeURL", ""), message.get("TopicArn", "")
    if settings.get("confirm") is not True or message.get("Type") != "SubscriptionConfirmation":
        return ""
    if topic not in _topics(settings) or not SNS_CONFIRMATION.fullmatch(url):
        return ""
    wanted = [("Action", "ConfirmSubscription"), ("Token", message.get("Token", "")), ("TopicArn", topic)]
    return url if sorted(parse_qsl(url.partition("?")[2], keep_blank_values=True)) == wanted else ""


def _topics(settings: Settings) -> frozenset[str]:
    """@raise SecretError: there are none."""
    topics = settings.get("topics")
    if not topics or not isinstance(topics, tuple):
        raise SecretError("This sender needs the setting 'topics': the ARNs of those whose messages are taken.")
    return frozenset(topics)


def _message(document: Any) -> dict[str, str]:
    """Return the members of a body that are texts."""
    if type(document) is not dict:
        return {}
    return {name: value for name, value in document.items() if type(value) is str}


def _signed_text(document: Any) -> bytes | None:
    """Return what is signed of a message; None where a text is missing, or of a kind that nobody knows."""
    message = _message(document)
    needed = _NEEDED.get(message.get("Type", ""))
    if needed is None or not needed <= message.keys():
        return None
    if any(name not in message and document.get(name) is not None for name in _SIGNED):
        return None
    return "".join(f"{name}\n{message[name]}\n" for name in _SIGNED if name in message).encode()
