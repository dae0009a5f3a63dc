"""
A message as a store with keys gets it: id, key, time of receipt and value, as one bytes object, whose size the chain
counts.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from webhookrx.config.specs import SpecOptions
from webhookrx.message.encoders import encode_line
from webhookrx.message.identity import message_id, parse_id
from webhookrx.message.message import Message
from webhookrx.message.template import Template
from webhookrx.yield_point import encode_utf_8

#: Time of receipt, and how long id and key are; both follow, then the value.
_HEAD: Final = struct.Struct(">qII")


class KeyedRecord(NamedTuple):
    """
    One message.

    @ivar id: its own id, which is the same at every try: one line, at most L{webhookrx.message.identity.LONGEST_ID}
        bytes in UTF-8; empty when others made the message, without an id.
    @ivar key: what decides about its partition; empty for none.
    @ivar received: nanoseconds since the epoch.
    @ivar value: what is stored; without a line end.
    """

    id: str
    key: bytes
    received: int
    value: bytes


def pack(record: KeyedRecord) -> bytes:
    """Return a record as bytes for L{unpack}."""
    own = record.id.encode()
    return b"".join((_HEAD.pack(record.received, len(own), len(record.key)), own, record.key, record.value))


def unpack(packed: bytes, begin: int = 0) -> KeyedRecord:
    """
    Return the record whose bytes these are.

    @param begin: where they begin; what is before is somebody else's.
    """
    received, id_size, key_size = _HEAD.unpack_from(packed, begin)
    id_begin = begin + _HEAD.size
    key_begin = id_begin + id_size
    value_begin = key_begin + key_size
    return KeyedRecord(
        packed[id_begin:key_begin].decode(), packed[key_begin:value_begin], received, packed[value_begin:]
    )


@dataclass(frozen=True, slots=True)
class KeyedFormat:
    """
    How messages become keyed records.

    @ivar identify: returns the id of a message.
    @ivar key: renders the key; None for none.
    @ivar render_line: renders the value, with a line end, which is left out.
    """

    identify: Callable[[Message], str] = message_id
    key: Template | None = None
    render_line: Callable[[Message], bytes] = encode_line

    @property
    def takes_lines(self) -> bool:
        """Whether the value is the line that a message may have already."""
        return self.render_line is encode_line

    def encode(self, message: Message) -> bytes:
        """Return a message as a packed record: what C{prepare} of the observer returns."""
        key = b"" if self.key is None else encode_utf_8(self.key.render(message))
        return pack(KeyedRecord(self.identify(message), key, message.received, self.render_line(message)[:-1]))


def read_keyed_format(options: SpecOptions, default_key: str | None = None) -> KeyedFormat:
    """
    Read the options C{id}, C{key} and C{template}.

    @param default_key: the template of the key when there is no C{key=}; None when this observer has no keys.
    @raise ConfigError: one of them is no template.
    """
    identify: Callable[[Message], str] = message_id
    default = Template.parse(default_key) if default_key else None
    template = options.read("template", None, Template.parse)
    return KeyedFormat(
        options.read("id", identify, parse_id),
        # An empty one is no key.
        None if options.given.get("key") == "" else options.read("key", default, Template.parse),
        encode_line if template is None else template.render_line,
    )
