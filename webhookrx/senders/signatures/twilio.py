"""
Signatures of Twilio: HMAC of the URL and, behind it, of the sorted fields of a form; for any other body the URL has the
digest of the body in its parameter C{bodySHA256}, which is then signed with it.

U{https://www.twilio.com/docs/usage/webhooks/webhooks-security}. Twilio writes a default port or leaves it out as it
likes, so that both are tried. Some of its services sign a query with its apostrophes escaped, or written anew after
its escapes are undone, which Twilio's library for JavaScript (6.2, C{webhooks.js}) tries behind the URL as it is. The
code is one of SHA-1 with an Auth Token, and of SHA-256 with a shared key (C{twilio.request_validator} of Twilio's own
library, 9.13).
"""

from __future__ import annotations

import binascii
import hmac
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from webhookrx.errors import BAD_SIGNATURE, SIGNATURE_MISSING
from webhookrx.senders.signatures.code_verifiers import CodeOptions
from webhookrx.senders.signatures.key_forms import key_bytes
from webhookrx.senders.signatures.named_secrets import SecretError
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.pieces import hmac_of
from webhookrx.senders.signatures.signed_request import SignedRequest
from webhookrx.senders.signatures.strict_encodings import from_base64

_FORMS: Final = (b"application/x-www-form-urlencoded", b"")
"""Media types of what is read as a form; the last is none at all."""
_DIGEST: Final = "bodySHA256"
_HASHES: Final = {20: "sha1", 32: "sha256"}
"""Bytes of a signature to what it is of. A key makes both, and nobody without it can make either."""
_AS_IT_IS: Final = "!'()*-._~"
"""What is not escaped when a query is written anew, besides letters and digits."""
_PORTS: Final = {"https": "443", "http": "80"}


class TwilioVerifier:
    """
    Checks what Twilio signs.

    @raise SecretError: C{public_url} is missing, without which no signature can be checked.
    """

    def __init__(self, options: CodeOptions) -> None:
        if not options.public_url:
            raise SecretError("This sender signs the URL that it sends to, which public_url must say.")
        if not options.secrets:
            raise SecretError("There is no secret to check requests with.")
        (self._place,) = options.compiled.places
        self._keys = {secret.name: key_bytes(secret, "text") for secret in options.secrets}
        self.names = tuple(self._keys)

    def check(self, request: SignedRequest, now: int) -> Verified | Unverified:
        """See L{CodeVerifier.check}."""
        signatures = [from_base64(value) for value in self._place.values(request)]
        if not signatures or signatures[0] is None or len(signatures[0]) not in _HASHES:
            return Unverified(SIGNATURE_MISSING, SIGNATURE_MISSING.detail)
        behind = _behind_url(request)
        name_of_hash = _HASHES[len(signatures[0])]
        if behind is not None:
            for url in _urls(request.url):
                for name, key in self._keys.items():
                    if hmac.compare_digest(hmac_of(key, name_of_hash, url, behind), signatures[0]):
                        return Verified(name)
        return Unverified(BAD_SIGNATURE, BAD_SIGNATURE.detail)

    def sign(self, name: str, request: SignedRequest, now: int) -> Mapping[bytes, bytes]:
        """See L{CodeVerifier.sign}."""
        behind = _behind_url(request)
        if behind is None:
            raise SecretError("A body that is no form is signed by the parameter bodySHA256, its digest.")
        code = hmac_of(self._keys[name], "sha1", request.url, behind)
        return {self._place.header: binascii.b2a_base64(code, newline=False)}


make = TwilioVerifier


def _behind_url(request: SignedRequest) -> bytes | None:
    """Return what is signed behind the URL; None for a body that no signature of Twilio covers."""
    if _DIGEST in request.query:
        digest = request.parameter(_DIGEST)
        # Where public_url is the whole URL, what a request has behind it is not signed.
        if digest is None or digest not in request.url or not hmac.compare_digest(request.sha256(), digest):
            return None
        return b""
    if not request.body:
        return b""
    media_type = (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
    return request.sorted_fields() if media_type in _FORMS else None


def _urls(url: bytes) -> Iterator[bytes]:
    """Yield what Twilio may have signed for a URL: itself first."""
    yield from _with_ports(url)
    start, mark, query = url.partition(b"?")
    if query:
        for other in dict.fromkeys((query.replace(b"'", b"%27"), _written_anew(query))):
            if other != query:
                yield from _with_ports(start + mark + other)


def _written_anew(query: bytes) -> bytes:
    """Return a query with its fields by name in the order in which they come first, and no more escapes than needed."""
    fields: dict[bytes, list[bytes]] = {}
    for pair in query.replace(b"+", b" ").split(b"&"):
        if pair:
            name, _, value = pair.partition(b"=")
            fields.setdefault(unquote_to_bytes(name), []).append(unquote_to_bytes(value))
    pairs = (
        f"{quote(name, _AS_IT_IS)}={quote(value, _AS_IT_IS)}" for name, values in fields.items() for value in values
    )
    return "&".join(pairs).encode()


def _with_ports(url: bytes) -> Iterator[bytes]:
    """Yield a URL, then the same without its port, or with the default one."""
    yield url
    scheme, _, rest = url.decode("latin-1").partition("://")
    host, slash, target = rest.partition("/")
    name, colon, port = host.rpartition(":")
    if colon and port.isdecimal():
        other = name
    elif scheme in _PORTS:
        other = f"{host}:{_PORTS[scheme]}"
    else:
        return
    yield f"{scheme}://{other}{slash}{target}".encode("latin-1")
