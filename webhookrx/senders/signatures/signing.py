"""
Signs a request as its sender would: for a dry run, for samples and for tests.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from webhookrx.intake.head import Head
from webhookrx.senders.locator import element, parse_pointer
from webhookrx.senders.signatures.algorithms import SecretItself
from webhookrx.senders.signatures.compiled_scheme import CompiledScheme
from webhookrx.senders.signatures.key_forms import key_bytes
from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError
from webhookrx.senders.signatures.places import SignaturePlace
from webhookrx.senders.signatures.scheme import DIGEST_ALGORITHMS, MAC_ALGORITHMS, PUBLIC_KEY_ALGORITHMS
from webhookrx.senders.signatures.signed_request import SignedRequest
from webhookrx.senders.signatures.signed_text import part_at
from webhookrx.senders.signatures.strict_encodings import ENCODERS
from webhookrx.senders.signatures.verification import CodeWay, Way
from webhookrx.senders.signatures.verifier import Verifier

_SECOND: Final = 1_000_000_000


class Signed(msgspec.Struct, frozen=True):
    """
    What makes a request one of its sender's.

    @ivar headers: name in lower case to the one value that the header must have.
    @ivar parameters: the same for parameters of the query.
    @ivar body: unpacked; another one than before where the signature is in it.
    """

    headers: dict[bytes, bytes]
    parameters: dict[str, bytes]
    body: bytes


def sign(
    verifier: Verifier,
    secret: NamedSecret,
    head: Head,
    query: Mapping[str, str | list[str]],
    body: bytes,
    now: int,
    *,
    private_key: bytes = b"",
) -> Signed:
    """
    Sign a request by the first scheme that a secret is a key of. What the scheme signs besides and the request lacks,
    such as an id, is made up; a time in a header becomes C{now}, one in the body is left as it is.

    @param secret: one of those that the verifier has.
    @param now: nanoseconds since the epoch.
    @param private_key: in PEM, where the secret is a public one.
    @raise SecretError: it can't be signed so.
    """
    way = next((way for way in verifier.ways if secret.name in way.keys.names), None)
    if way is None:
        raise SecretError(f"The secret {secret.name!r} does not count for any signature of this sender.")
    request = verifier.request(head, query)
    request.body = request.wire = body
    if isinstance(way, CodeWay):
        return Signed(dict(way.keys.sign(secret.name, request, now)), {}, body)
    return _Signing(way, secret, request, now, private_key).result()


class _Signing:
    """Signs one request by one scheme."""

    def __init__(self, way: Way, secret: NamedSecret, request: SignedRequest, now: int, private_key: bytes) -> None:
        self._scheme: CompiledScheme = way.scheme
        self._secret = secret
        self._request = request
        self._now = now
        self._private_key = private_key
        self._headers: dict[bytes, bytes] = {}
        self._parameters: dict[str, bytes] = {}
        self._is_equal = isinstance(way.keys, SecretItself)

    def result(self) -> Signed:
        """@raise SecretError: it can't be signed."""
        compiled, scheme = self._scheme, self._scheme.scheme
        value = self._secret.value
        if not self._is_equal:
            self._fill_in()
            self._request.head = _with_headers(self._request.head, self._headers)
            value = self._signature()
        written = compiled.prefix + ENCODERS[scheme.encoding or ("text" if self._is_equal else "hex")](value)
        if compiled.separator and compiled.signature_name:
            items = [(name, text or b"") for name, text in self._request.items.items()]
            items.append((compiled.signature_name, written))
            written = compiled.separator.join(compiled.name_separator.join(item) for item in items)
        self._put(compiled.places[0], written)
        return Signed(self._headers, self._parameters, self._request.body)

    def _put(self, place: SignaturePlace, text: bytes) -> None:
        if place.in_body:
            self._set_member(place.text, text.decode())
        elif place.header:
            self._headers[place.header + (b"" if place.only_header else b"1")] = text
        else:
            self._parameters[place.text.removeprefix("query:")] = text

    def _fill_in(self) -> None:
        """Add what is signed beside the body, and is not there."""
        time, text = self._scheme.scheme.time, self._scheme.text
        moment = _written(self._now, time.format) if time else b""
        made_up = b"made-up-%d" % self._now
        for place in dict.fromkeys((*text.places, *([time.at] if time else []))):
            kind, _, name = place.partition(":")
            is_time = time is not None and place.lower() == time.at.lower()
            value = moment if is_time else made_up
            if kind == "header" and (is_time or self._request.header(name.lower().encode()) is None):
                self._headers[name.lower().encode()] = value
            elif kind == "item":
                self._request.items = {**self._request.items, name.encode(): value}
            elif place.startswith("/") and part_at(place)(self._request) is None:
                self._set_member(place, int(value) if is_time and "body" in text.places else value.decode())

    def _signature(self) -> bytes:
        scheme, request = self._scheme.scheme, self._request
        key = b""
        if scheme.algorithm not in PUBLIC_KEY_ALGORITHMS:
            key = request.secret = key_bytes(self._secret, scheme.key)
        text = self._scheme.text.whole(request)
        if text is None:
            raise SecretError("The request lacks a part of what this sender signs.")
        if scheme.algorithm in MAC_ALGORITHMS:
            return hmac.digest(key, text, scheme.algorithm.removeprefix("hmac-"))
        if scheme.algorithm in DIGEST_ALGORITHMS:
            return hashlib.new(scheme.algorithm, text).digest()
        if not self._private_key:
            raise SecretError(f"The secret {self._secret.name!r} is a public key; only the sender has the private one.")
        return _signature_by(self._private_key, scheme.algorithm, text)

    def _set_member(self, place: str, value: Any) -> None:
        """Put a value into the body."""
        document = self._request.document if self._request.body else {}
        if not _set(document, parse_pointer(place), value):
            raise SecretError(f"The body is not JSON that has room for {place}.")
        body = msgspec.json.encode(document)
        head = self._request.head
        self._request = SignedRequest(
            head, self._request.query, self._request.public_url, self._request.settings, self._request.items
        )
        self._request.body = self._request.wire = body


def _set(value: Any, steps: tuple[str, ...], new: Any) -> bool:
    """Put a value where a pointer leads to; return whether there is such a place."""
    step, *rest = steps
    if type(value) is list:
        chosen = value if step == "*" else [element(value, step)]
        return bool(rest) and all(_set(each, tuple(rest), new) for each in chosen)
    if type(value) is not dict:
        return False
    if rest:
        return _set(value.setdefault(step, {}), tuple(rest), new)
    value[step] = new
    return True


def _written(moment: int, form: str) -> bytes:
    """Return a moment as a sender writes it."""
    if form == "unix":
        return b"%d" % (moment // _SECOND)
    if form == "unix-ms":
        return b"%d" % (moment // 1_000_000)
    return datetime.fromtimestamp(moment // _SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ").encode()


def _signature_by(private_key: bytes, algorithm: str, text: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key: Any = load_pem_private_key(private_key, None)
    kind, _, digest = algorithm.partition("-")
    if kind == "ed25519":
        signature = key.sign(text)
    else:
        made = getattr(hashes, digest.upper())()
        signature = key.sign(text, ECDSA(made)) if kind == "ecdsa" else key.sign(text, PKCS1v15(), made)
    return bytes(signature)


def _with_headers(head: Head, headers: Mapping[bytes, bytes]) -> Head:
    """Return a head with some headers in place of those of the same names."""
    kept = [(name, value) for name, value in head.headers if name not in headers]
    return Head(head.method, head.path, head.query, [*kept, *headers.items()], head.peer)
