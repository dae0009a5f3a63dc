"""
Signatures of Contentful: HMAC-SHA256 of method, path, the headers that C{x-contentful-signed-headers} names, and body.

U{https://www.contentful.com/developers/docs/webhooks/request-verification/}. Contentful's library escapes the query
twice, and takes a request for stale after 30 seconds.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from webhookrx.errors import BAD_SIGNATURE, SIGNATURE_MISSING, STALE_SIGNATURE
from webhookrx.senders.signatures.code_verifiers import CodeOptions
from webhookrx.senders.signatures.key_forms import key_bytes
from webhookrx.senders.signatures.named_secrets import SecretError
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.pieces import feed
from webhookrx.senders.signatures.signed_request import SignedRequest
from webhookrx.senders.signatures.strict_encodings import from_hex

MAX_HEADERS: Final = 64
"""Headers that may be signed."""

_NAMES: Final = b"x-contentful-signed-headers"
_MOMENT: Final = b"x-contentful-timestamp"
_TOLERANCE: Final = 30 * 1_000_000_000
_MILLISECOND: Final = 1_000_000
_MOST_DIGITS: Final = 16
_IN_QUERY: Final = "!'()*-._~"
_IN_PATH: Final = ";,/?:@&=+$-_.!~*'()#"


class ContentfulVerifier:
    """
    Checks what Contentful signs.

    @raise SecretError: there is no secret.
    """

    def __init__(self, options: CodeOptions) -> None:
        if not options.secrets:
            raise SecretError("There is no secret to check requests with.")
        (self._place,) = options.compiled.places
        self._keys = {secret.name: key_bytes(secret, "text") for secret in options.secrets}
        self.names = tuple(self._keys)

    def check(self, request: SignedRequest, now: int) -> Verified | Unverified:
        """See L{CodeVerifier.check}."""
        signatures = [from_hex(value) for value in self._place.values(request)]
        if not signatures or not signatures[0]:
            return Unverified(SIGNATURE_MISSING, SIGNATURE_MISSING.detail)
        names = _signed_names(request.header(_NAMES) or b"")
        before = _before_body(request, names)
        if before is None or _MOMENT not in names:
            return Unverified(BAD_SIGNATURE, "A header that this sender signs is missing or repeated.")
        found = next((name for name, code in self._codes(before, request.body) if _equal(code, signatures[0])), None)
        if found is None:
            return Unverified(BAD_SIGNATURE, BAD_SIGNATURE.detail)
        written = request.header(_MOMENT) or b""
        if not written.isdigit() or len(written) > _MOST_DIGITS:
            return Unverified(STALE_SIGNATURE, "The signature is genuine, but its time can't be read.")
        signed_at = int(written) * _MILLISECOND
        skew = (now - signed_at) / 1_000_000_000
        if abs(now - signed_at) > _TOLERANCE:
            return Unverified(STALE_SIGNATURE, STALE_SIGNATURE.detail, skew)
        return Verified(found, "signature", signed_at, skew)

    def sign(self, name: str, request: SignedRequest, now: int) -> Mapping[bytes, bytes]:
        """See L{CodeVerifier.sign}."""
        names = sorted({_NAMES, _MOMENT, *_signed_names(request.header(_NAMES) or b"")})
        made = {_NAMES: b",".join(names), _MOMENT: b"%d" % (now // _MILLISECOND)}
        before = _before_body(request, names, made)
        if before is None:
            raise SecretError("A header that is to be signed is missing or repeated.")
        code = next(code for each, code in self._codes(before, request.body) if each == name)
        return made | {self._place.header: code.hex().encode()}

    def _codes(self, before: bytes, body: bytes) -> list[tuple[str, bytes]]:
        """Return what each key makes of a request."""
        contexts = [(name, hmac.new(key, before, "sha256")) for name, key in self._keys.items()]
        feed([context for _, context in contexts], body)
        return [(name, context.digest()) for name, context in contexts]


make = ContentfulVerifier
_equal: Final = hmac.compare_digest


def _signed_names(listed: bytes) -> list[bytes]:
    """Return the names of a list, sorted; none when there are too many."""
    names = [name.strip().lower() for name in listed.split(b",", MAX_HEADERS)]
    return sorted({name for name in names if name}) if len(names) <= MAX_HEADERS else []


def _before_body(request: SignedRequest, names: list[bytes], made: Mapping[bytes, bytes] = {}) -> bytes | None:
    """
    Return what is signed before the body; None when a header is missing or there twice.

    @param made: values of headers that the request does not have yet.
    """
    lines = []
    for name in names:
        value = made[name] if name in made else request.header(name)
        if value is None:
            return None
        lines.append(name + b":" + value.strip())
    target = request.target
    if request.public_url:
        target = b"/" + request.url.partition(b"://")[2].partition(b"/")[2]
    return b"\n".join((request.head.method, _escaped(target), b";".join(lines), b""))


def _escaped(target: bytes) -> bytes:
    """Return a target as Contentful's library escapes it."""
    path, _, rest = target.partition(b"?")
    query = rest.partition(b"?")[0]
    text = path.decode("latin-1") + ("?" + quote(query, safe=_IN_QUERY) if query else "")
    return quote(text.encode("latin-1"), safe=_IN_PATH).encode("ascii")
