"""
What a relay reads from Redis: a stream, its consumer group, and what an entry of it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from webhookrx.observers.redis.options import ID_FIELD, MESSAGE_FIELD, RedisServers


@dataclass(frozen=True, slots=True)
class RedisSource:
    """
    What a relay reads, and for which consumer group.

    @ivar claim_after: seconds after which an entry that nobody has settled or kept goes to another relay.
    """

    servers: RedisServers
    stream: str
    group: str
    claim_after: float


def read_entry(fields: Sequence[Any]) -> tuple[bytes, str]:
    """
    Return the value and the id of an entry: those that the redis observer writes; of another entry its only value, or
    all of them as JSON.

    @param fields: names and values in turn.
    """
    values = {name: value for name, value in zip(fields[::2], fields[1::2], strict=False) if isinstance(value, bytes)}
    own = values.pop(ID_FIELD.encode(), b"").decode("utf-8", "replace")
    value = values.get(MESSAGE_FIELD.encode())
    if value is None and len(values) == 1:
        (value,) = values.values()
    if value is None:
        texts = {_text(name): _text(each) for name, each in values.items()}
        value = msgspec.json.encode(texts) if texts else b""
    return value, own


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
