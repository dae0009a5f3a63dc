"""
Bundles: what a console gives a router to apply, signed, so that the router can keep and check it without the console.

A bundle travels and lies on disk as an envelope, one JSON object with C{payload}, C{key} and C{signature}. What is
signed is the pre-authentication encoding of DSSE
(U{https://github.com/secure-systems-lab/dsse/blob/master/protocol.md}) of payload and type; the signature is Ed25519
(RFC 8032). There is one way to write each envelope, and any other is refused.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec import Meta

from webhookrx.errors import BundleRefused

FORMAT: Final = 1
"""The version of the payload. A router refuses any other."""

MOST_BYTES: Final = 8 * 1024 * 1024
"""Bytes of an envelope: twice what a rules file may have, so that its base64 fits."""

MOST_KEYS: Final = 8
"""Signing keys, and CA certificates, of a console: the one in use, and those around a change of it."""

_TYPE: Final = b"application/vnd.webhookrx.bundle+json"

_Guid: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]


class BundleRouter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    Which router a bundle makes of its reader: the console decides on name and labels.
    """

    name: Annotated[str, Meta(min_length=1, max_length=253)]
    labels: Annotated[dict[str, str], Meta(max_length=64)] = {}


class RouterBundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """
    All that a router has from its console. A console makes one bundle of one revision, byte for byte.

    @ivar format: L{FORMAT}.
    @ivar guid: the router that it is for.
    @ivar revision: that of the console by which it was made; no later bundle has a lower one.
    @ivar made_at: when that revision was made, nanoseconds since the epoch.
    @ivar rules: the text of a rules file, with the rules that match the router.
    @ivar authorities: the CA certificates to trust for the console, PEM.
    @ivar signing_keys: the public keys of the console, as L{public_text} has them.
    @ivar masks: names of members whose values a tap replaces, besides those that the router masks itself.
    """

    guid: _Guid
    revision: Annotated[int, Meta(ge=1, lt=1 << 53)]
    made_at: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    router: BundleRouter
    rules: Annotated[str, Meta(max_length=4 * 1024 * 1024)]
    authorities: Annotated[tuple[Annotated[str, Meta(max_length=8192)], ...], Meta(min_length=1, max_length=MOST_KEYS)]
    signing_keys: Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(min_length=1, max_length=MOST_KEYS)]
    masks: Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=128)], ...], Meta(max_length=256)] = ()
    format: int = FORMAT


class _Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    payload: bytes
    key: Annotated[str, Meta(max_length=64)]
    signature: Annotated[bytes, Meta(max_length=64)]


_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_decode_envelope: Final = msgspec.json.Decoder(_Envelope).decode
_decode_bundle: Final = msgspec.json.Decoder(RouterBundle).decode


def key_id(key: Ed25519PublicKey) -> str:
    """Return the name of a key: the first 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:32]


def public_text(key: Ed25519PublicKey) -> str:
    """Return a public key as text: the base64 of its 32 bytes."""
    return base64.b64encode(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def public_key(text: str) -> Ed25519PublicKey:
    """
    Return the key that L{public_text} has made a text of.

    @raise ValueError: the text is not one.
    """
    return Ed25519PublicKey.from_public_bytes(base64.b64decode(text, validate=True))


def seal(bundle: RouterBundle, key: Ed25519PrivateKey) -> bytes:
    """Return the envelope of a bundle, signed."""
    payload = _encode(bundle)
    return _encode(_Envelope(payload, key_id(key.public_key()), key.sign(_signed(payload))))


def digest(envelope: bytes) -> str:
    """Return the name of an envelope, by which console and router know whether they speak of the same one."""
    return hashlib.sha256(envelope).hexdigest()


def open_bundle(
    envelope: bytes, keys: Mapping[str, Ed25519PublicKey], guid: str, newest: tuple[int, str] = (0, "")
) -> RouterBundle:
    """
    Return the bundle in an envelope.

    @param keys: the public keys that may have signed it, by L{key_id}.
    @param guid: the router that opens it.
    @param newest: the highest revision that this router has had, and the L{digest} of that envelope.
    @raise BundleRefused: it is no envelope, or its signature fails, or it is of another router, or it is older than the
        newest, or another one of the same revision. The text quotes nothing of it.
    """
    if len(envelope) > MOST_BYTES:
        raise BundleRefused(f"The bundle is larger than {MOST_BYTES:,} bytes.")
    try:
        read = _decode_envelope(envelope)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BundleRefused("The bundle is not an envelope of a console.") from None
    if _encode(read) != envelope:
        raise BundleRefused("The bundle is not written as consoles write it.")
    key = keys.get(read.key)
    if key is None:
        raise BundleRefused("The bundle is signed by a key that this router does not know.")
    try:
        key.verify(read.signature, _signed(read.payload))
    except InvalidSignature:
        raise BundleRefused("The signature of the bundle is wrong.") from None
    try:
        bundle = _decode_bundle(read.payload)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BundleRefused("The bundle is signed, and this version can't read it.") from None
    if bundle.format != FORMAT:
        raise BundleRefused(f"The bundle has format {bundle.format}; this version reads {FORMAT}.")
    if bundle.guid != guid:
        raise BundleRefused("The bundle is for another router.")
    revision, name = newest
    if bundle.revision < revision:
        raise BundleRefused(f"The bundle has revision {bundle.revision}; this router has had {revision}.")
    if bundle.revision == revision and name and digest(envelope) != name:
        raise BundleRefused(f"The bundle of revision {revision} is another one than this router has.")
    return bundle


def _signed(payload: bytes) -> bytes:
    """Return what is signed of a payload: PAE of DSSE."""
    return b"DSSEv1 %d %s %d %s" % (len(_TYPE), _TYPE, len(payload), payload)
