"""
The objects that the s3 observer puts: their names, and messages packed as NDJSON or parquet.
"""

from __future__ import annotations

import hashlib
import re
import struct
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec
import zstandard

from webhookrx.message.macros import NANOSECONDS, macro_value, value_text
from webhookrx.message.message import Message
from webhookrx.observers.s3.options import S3Target

_ZSTD_LEVEL: Final = 3
_GZIP_LEVEL: Final = 6
#: Messages whose lines are packed in one call, some 2 MiB: there is no second copy of all of a batch.
_BLOCK: Final = 4096
_LONGEST_ID: Final = 80
_DIGEST: Final = 32

#: Called now and then while messages are packed; raises what ends it.
Check: TypeAlias = Callable[[], None]

_ENDINGS: Final = {"zstd": ".zst", "gzip": ".gz"}
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.=-]+")


#: A message on its way into NDJSON: its time of receipt, how long its id is, the id, and the line with its end.
_HEAD: Final = struct.Struct(">qH")


def _pack_line(own: str, received: int, line: bytes) -> bytes:
    raw = own.encode()
    return _HEAD.pack(received, len(raw)) + raw + line


def _lines(items: Sequence[bytes]) -> bytes:
    # What _HEAD unpacks, without a call for each.
    return b"".join([item[10 + (item[8] << 8 | item[9]) :] for item in items])


def _first_line(item: bytes) -> tuple[str, int]:
    received, size = _HEAD.unpack_from(item)
    return item[_HEAD.size : _HEAD.size + size].decode(), received


class ObjectRecord(msgspec.Struct, array_like=True, gc=False):
    """
    A message on its way into parquet.

    @ivar received: nanoseconds since the epoch.
    @ivar line: with its line end.
    """

    id: str
    received: int
    source: str
    host: str
    line: bytes


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(ObjectRecord).decode


class _Packer(Protocol):
    """What C{zlib} and C{zstandard} have in common."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class Digest(Protocol):
    """What C{hashlib} has."""

    def update(self, data: bytes, /) -> None: ...


class PackedObject(NamedTuple):
    """An object as it is put."""

    path: str
    content_type: str
    content: bytes


class ObjectFormat(ABC):
    """How messages become objects. Use L{object_format}."""

    ending: str
    content_type: str

    def __init__(self, target: S3Target) -> None:
        self._target = target

    @abstractmethod
    def prepare(self, message: Message) -> bytes:
        """Return a message as bytes for L{make}."""

    @abstractmethod
    def pack(self, batch: Sequence[bytes], digest: Digest, check: Check) -> bytes:
        """
        Return what an object of prepared messages holds.

        @param digest: gets all lines, with their ends, before they are packed.
        @param check: called between pieces of the work.
        """

    @abstractmethod
    def first(self, item: bytes) -> tuple[str, int]:
        """Return the id of a prepared message, and its time of receipt in nanoseconds since the epoch."""

    def make(self, batch: Sequence[bytes], check: Check) -> PackedObject:
        """
        Make an object of prepared messages.

        Its name depends on nothing but the messages and their order, so that another try puts the same object: the
        first message's time of receipt in UTC and id, and the SHA-256 of all lines before they are packed. Names in
        their order are the order in which messages came.

        @param check: called between pieces of the work; what it raises ends it.
        """
        digest = hashlib.sha256()
        content = self.pack(batch, digest, check)
        return PackedObject(self._path(*self.first(batch[0]), digest.hexdigest()), self.content_type, content)

    def _path(self, own: str, received: int, digest: str) -> str:
        seconds, nanoseconds = divmod(received, NANOSECONDS)
        moment = time.gmtime(seconds)
        own = _UNSAFE.sub("_", own)[:_LONGEST_ID]
        when = f"{time.strftime('%Y%m%dT%H%M%S', moment)}.{nanoseconds // 1000:06d}Z"
        name = time.strftime(self._target.name, moment) if self._target.name else ""
        return f"{self._target.prefix}{name}{when}-{own}-{digest[:_DIGEST]}{self.ending}"


class LineFormat(ObjectFormat):
    """A line a message, packed as a whole."""

    def __init__(self, target: S3Target) -> None:
        super().__init__(target)
        self.ending = (".txt" if target.has_template else ".ndjson") + _ENDINGS[target.compress]
        self.content_type = f"application/{target.compress}"

    def prepare(self, message: Message) -> bytes:
        """Return a message as bytes for L{make}."""
        return _pack_line(self._target.identify(message), message.received, self._target.render_line(message))

    def pack(self, batch: Sequence[bytes], digest: Digest, check: Check) -> bytes:
        """Return the lines, packed."""
        packer: _Packer
        if self._target.compress == "zstd":
            packer = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True).compressobj()
        else:
            # 31 is a gzip header, without a time.
            packer = zlib.compressobj(_GZIP_LEVEL, wbits=31)
        packed = []
        for begin in range(0, len(batch), _BLOCK):
            block = _lines(batch[begin : begin + _BLOCK])
            digest.update(block)
            packed.append(packer.compress(block))
            check()
        packed.append(packer.flush())
        return b"".join(packed)

    def first(self, item: bytes) -> tuple[str, int]:
        """Return id and time of receipt."""
        return _first_line(item)


class ParquetFormat(ObjectFormat):
    """A row a message."""

    ending = ".parquet"
    content_type = "application/vnd.apache.parquet"

    def prepare(self, message: Message) -> bytes:
        """Return a message as bytes for L{make}."""
        source, host = (value_text(macro_value(name, message)) for name in ("SOURCE", "HOST"))
        target = self._target
        return _encode(
            ObjectRecord(target.identify(message), message.received, source, host, target.render_line(message))
        )

    def pack(self, batch: Sequence[bytes], digest: Digest, check: Check) -> bytes:
        """Return a file of parquet."""
        from webhookrx.observers.s3.parquet import pack_parquet

        def records() -> Iterator[ObjectRecord]:
            # One at a time: all of them would be a second copy of the batch.
            for item in batch:
                record = _decode(item)
                digest.update(record.line)
                yield record

        return pack_parquet(records(), self._target.compress, check)

    def first(self, item: bytes) -> tuple[str, int]:
        """Return id and time of receipt."""
        record = _decode(item)
        return record.id, record.received


def object_format(target: S3Target) -> ObjectFormat:
    """
    Return how messages become objects.

    @raise ImportError: it takes a package that is not installed.
    """
    if target.format == "ndjson":
        return LineFormat(target)
    import webhookrx.observers.s3.parquet  # noqa: F401

    return ParquetFormat(target)
