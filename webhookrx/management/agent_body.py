"""
What all bodies of the protocol between routers and consoles have in common: their base, the bounds of their members,
and how they are read and written.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

MOST_REQUEST_BYTES: Final = 64 * 1024
"""Of a body of C{enrol} and C{renew}, of their answers, and of a problem."""

Count: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 53)]
MessageId: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-zA-Z_-]{1,64}\Z")]
ShortName: TypeAlias = Annotated[str, Meta(max_length=253)]
Sentence: TypeAlias = Annotated[str, Meta(max_length=2_000)]


class AgentBody(msgspec.Struct, frozen=True, kw_only=True):
    """
    Members that a reader does not know are left out: either end may be the newer one.

    @cvar most_bytes: bytes that a body of the type may have.
    """

    most_bytes: ClassVar[int] = MOST_REQUEST_BYTES


class BaseCommand(AgentBody, frozen=True, tag_field="command"):
    """
    @ivar id: by which a L{webhookrx.management.agent_protocol.CommandAnswer} names it. A router does what has one id
        once.
    """

    id: MessageId


_T = TypeVar("_T", bound=AgentBody)


def read_body(body: bytes, kind: type[_T]) -> _T:
    """
    Return what a body says.

    @param kind: a type of the protocol that is a body.
    @raise ValueError: it is outside the bounds. The message may name a member, and quotes no value.
    """
    if len(body) > kind.most_bytes:
        raise ValueError(f"The body is larger than {kind.most_bytes:,} bytes.")
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        # "… - at `$.facts.ip[0]`": the message of an enumeration or tag quotes the value that it did not expect.
        place = str(error).rpartition(" - at ")[2].strip("`") if " - at " in str(error) else "$"
        raise ValueError(f"The body is not as it should be at {place}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError("The body is not JSON.") from None


write_body: Final = msgspec.json.Encoder(order="deterministic").encode
"""Writes any of these types as a body."""
