"""
The objects that the s3 observer puts: their names, and messages packed as NDJSON or parquet.
"""

from __future__ import annotations

import hashlib
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec
import zstandard

from webhookrx.message.macros import NANOSECONDS, macro_value, value_text
from webhookrx.message.message import Message
from webhookrx.observers.s3_options import S3Target

_ZSTD_LEVEL: Final = 3
_GZIP_LEVEL: Final = 6
#: Bytes that are packed in one call: beside the messages there is never a second copy of all of them.
_BLOCK: Final = 1024**2
_LONGEST_ID: Final = 80
_DIGEST: Final = 32

#: Called now and then while messages are packed; raises what ends it.
Check: TypeAlias = Callable[[], None]

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.=-]+")


class ObjectRecord(msgspec.Struct, array_like=True, gc=False):
    """
    A message on its way into an object.

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


class PackedObject(NamedTuple):
    """An object as it is put."""

    path: str
    content_type: str
    content: bytes


class ObjectFormat:
    """How messages become objects."""

    def __init__(self, target: S3Target) -> None:
        self._target = target
        if target.format == "parquet":
            from webhookrx.observers.s3_parquet import pack_parquet

            self._pack: Callable[[Iterable[ObjectRecord], Check], bytes] = lambda records, check: pack_parquet(
                records, target.compress, check
            )
            self._ending, self._content_type = ".parquet", "application/vnd.apache.parquet"
        else:
            self._pack = self._pack_lines
            lines = ".txt" if target.has_template else ".ndjson"
            self._ending = lines + {"zstd": ".zst", "gzip": ".gz"}[target.compress]
            self._content_type = f"application/{target.compress}"

    def prepare(self, message: Message) -> bytes:
        """Return a message as bytes for L{make}."""
        target = self._target
        source = host = ""
        if target.format == "parquet":
            source = value_text(macro_value("SOURCE", message))
            host = value_text(macro_value("HOST", message))
        line = target.render_line(message)
        return _encode(ObjectRecord(target.identify(message), message.received, source, host, line))

    def make(self, batch: Sequence[bytes], check: Check) -> PackedObject:
        """
        Make an object of prepared messages.

        Its name depends on nothing but the messages and their order, so that another try puts the same object: the
        first message's time of receipt in UTC and id, and the SHA-256 of all lines before they are packed. Names in
        their order are the order in which messages came.

        @param check: called between pieces of the work.
        """
        digest = hashlib.sha256()

        def records() -> Iterator[ObjectRecord]:
            # One at a time: all of them would be a second copy of the batch.
            for each in batch:
                record = _decode(each)
                digest.update(record.line)
                yield record

        content = self._pack(records(), check)
        return PackedObject(self.path(_decode(batch[0]), digest.hexdigest()), self._content_type, content)

    def path(self, first: ObjectRecord, digest: str) -> str:
        """
        Return the name of an object.

        @param first: its first message.
        @param digest: the SHA-256 of its lines, in hexadecimal.
        """
        seconds, nanoseconds = divmod(first.received, NANOSECONDS)
        moment = time.gmtime(seconds)
        own = _UNSAFE.sub("_", first.id)[:_LONGEST_ID]
        when = f"{time.strftime('%Y%m%dT%H%M%S', moment)}.{nanoseconds // 1000:06d}Z"
        name = time.strftime(self._target.name, moment) if self._target.name else ""
        return f"{self._target.prefix}{name}{when}-{own}-{digest[:_DIGEST]}{self._ending}"

    def _pack_lines(self, records: Iterable[ObjectRecord], check: Check) -> bytes:
        packer: _Packer
        if self._target.compress == "zstd":
            packer = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True).compressobj()
        else:
            # 31 is a gzip header, without a time.
            packer = zlib.compressobj(_GZIP_LEVEL, wbits=31)
        packed = []
        for block in _blocks(records):
            packed.append(packer.compress(block))
            check()
        packed.append(packer.flush())
        return b"".join(packed)


def _blocks(records: Iterable[ObjectRecord]) -> Iterator[bytes]:
    lines: list[bytes] = []
    size = 0
    for record in records:
        lines.append(record.line)
        size += len(record.line)
        if size >= _BLOCK:
            yield b"".join(lines)
            lines, size = [], 0
    yield b"".join(lines)
