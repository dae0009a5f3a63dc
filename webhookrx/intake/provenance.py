"""
Where a message comes from: what the receiver found out about its sender, and how messages say it.

Nothing of it is ever from a payload: its names are among L{webhookrx.message.macros.RESERVED}.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Protocol

import msgspec

from webhookrx.intake.json_body import decode_exactly
from webhookrx.message.escapes import encode_json
from webhookrx.message.macros import NANOSECONDS
from webhookrx.message.message import Value

BY_SIGNATURE: Final = "signature"
BY_TOKEN: Final = "token"  # noqa: S105  # the word
BY_CLIENT: Final = "client"
NOT_VERIFIED: Final = "no"
"""Each of these is what C{webhook.verified} may say: how the sender was proved, if it was."""

MAX_TEXT: Final = 255
"""Characters of a delivery id and of the number of an attempt; what is longer is cut off."""

_EPOCH: Final = datetime(1970, 1, 1)  # all moments here are in UTC


class ClientIdentity(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """
    Whom a verified client certificate names.

    @ivar cn: the common name of its subject; empty without one.
    @ivar san: its subject alternative names, in the order of the certificate.
    @ivar issuer: the distinguished name of its issuer (RFC 4514).
    @ivar fingerprint: its SHA-256, in lower-case hex.
    """

    cn: str
    san: tuple[str, ...]
    issuer: str
    fingerprint: str


class IAroundEvent(Protocol):
    """
    What stood around an event of a body with several.

    @ivar path: steps that lead to the event in what L{whole} returns.
    """

    @property
    def path(self) -> tuple[str, ...]: ...

    def whole(self, event: bytes, is_text: bool) -> bytes:
        """Return a body like the sender's that holds one event; C{is_text}: the event is no object or array."""
        ...


class BatchPlace(msgspec.Struct, frozen=True, gc=False):
    """
    The place of a message among those of one request.

    @ivar index: from 1.
    @ivar count: how many messages the request became.
    @ivar envelope: what stood around them, as one object of JSON in UTF-8; empty if that was nothing, or too large.
    @ivar around: the same for whoever has to see the event in its place; None: it stood alone.
    """

    index: int
    count: int
    envelope: bytes = b""
    around: IAroundEvent | None = None


class Provenance(msgspec.Struct, frozen=True, gc=False):
    """
    What is known of the sender of a message.

    @ivar sender: the id of the sender definition that its source is for; empty without one.
    @ivar verified: L{BY_SIGNATURE}, L{BY_TOKEN}, L{BY_CLIENT} or L{NOT_VERIFIED}.
    @ivar secret: the name of the secret that has verified it, never the secret.
    @ivar token: the name of the token that it showed, never the token.
    @ivar delivery_id: the id that the sender gives to a delivery, at most L{MAX_TEXT} characters.
    @ivar attempt: which attempt at it this is, as the sender says, likewise.
    @ivar signed_at: the signed moment, nanoseconds since the epoch; None if none is signed.
    @ivar batch: its place in a bundle; None if it was in none.
    """

    sender: str = ""
    verified: str = NOT_VERIFIED
    secret: str = ""
    token: str = ""
    delivery_id: str = ""
    attempt: str = ""
    signed_at: int | None = None
    batch: BatchPlace | None = None

    @property
    def around(self) -> IAroundEvent | None:
        """See L{BatchPlace}."""
        return None if self.batch is None else self.batch.around


def set_provenance(values: dict[str, Value], provenance: Provenance) -> None:
    """Set the pairs of a message of the source form that say where it comes from."""
    if provenance.sender:
        values["webhook.sender"] = provenance.sender
    values["webhook.verified"] = provenance.verified
    if provenance.secret:
        values["webhook.secret"] = provenance.secret
    if provenance.token:
        values["webhook.token"] = provenance.token
    if provenance.delivery_id:
        values["webhook.delivery_id"] = provenance.delivery_id
    if provenance.attempt:
        values["webhook.attempt"] = provenance.attempt
    if provenance.signed_at is not None:
        values["webhook.signed_at"] = moment(provenance.signed_at)
    batch = provenance.batch
    if batch is not None:
        values["webhook.batch.index"] = batch.index
        values["webhook.batch.count"] = batch.count
        if batch.envelope:
            values["webhook.batch.envelope"] = batch.envelope.decode()


def set_client(values: dict[str, Value], client: ClientIdentity) -> None:
    """Set the pairs of a message of the source form that say which client certificate its connection has shown."""
    for name, value in client_members(client).items():
        values["webhook.client." + name] = value


def client_members(client: ClientIdentity) -> dict[str, Any]:
    """Return C{meta.connection.client} of a client."""
    return {"cn": client.cn, "san": list(client.san), "issuer": client.issuer, "fingerprint": client.fingerprint}


def sender_members(provenance: Provenance) -> dict[str, Any]:
    """Return C{meta.sender} of a message of the router form."""
    members: dict[str, Any] = {}
    if provenance.sender:
        members["id"] = provenance.sender
    members["verified"] = provenance.verified
    if provenance.secret:
        members["secret"] = provenance.secret
    if provenance.delivery_id:
        members["delivery_id"] = provenance.delivery_id
    if provenance.attempt:
        members["attempt"] = provenance.attempt
    if provenance.signed_at is not None:
        members["signed_at"] = moment(provenance.signed_at)
    return members


def batch_members(batch: BatchPlace) -> dict[str, Any]:
    """Return C{meta.batch} of a message of the router form."""
    members: dict[str, Any] = {"index": batch.index, "count": batch.count}
    if batch.envelope:
        members["envelope"] = decode_exactly(batch.envelope)
    return members


def moment(nanoseconds: int) -> str:
    """
    Return a signed moment as RFC 3339 text in UTC, as precise as it is, such as C{2026-11-20T11:05:07Z}.

    @param nanoseconds: since the epoch, of a year from 1 to 9999.
    """
    seconds, fraction = divmod(nanoseconds, NANOSECONDS)
    text = _of_second(seconds)
    return f"{text}.{fraction:09d}".rstrip("0") + "Z" if fraction else text + "Z"


@lru_cache(maxsize=64)
def _of_second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def line_part(provenance: Provenance) -> bytes:
    """Return the pairs of L{set_provenance} as they stand in a line of JSON, a comma in front of each."""
    delivery = provenance.delivery_id
    if provenance.attempt or provenance.signed_at is not None or provenance.batch is not None:
        values: dict[str, Value] = {}
        set_provenance(values, provenance)
        return b"," + encode_json(values)[1:-1]
    fixed = _fixed_part(provenance.sender, provenance.verified, provenance.secret, provenance.token)
    if not delivery:
        return fixed
    return fixed + b',"webhook.delivery_id":' + encode_json(delivery)


# All four are names of the operator, so there are few.
@lru_cache(maxsize=1024)
def _fixed_part(sender: str, verified: str, secret: str, token: str) -> bytes:
    values: dict[str, Value] = {}
    set_provenance(values, Provenance(sender, verified, secret, token))
    return b"," + encode_json(values)[1:-1]
