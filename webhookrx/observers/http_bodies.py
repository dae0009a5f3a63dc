"""
Messages as the bodies of requests: which go together, how they are joined, and the key that names them.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from webhookrx.settings import MiB

FORMATS = ("ndjson", "json", "each", "lines")

_GZIP_LEVEL = 6


class Body(NamedTuple):
    """
    What goes out in one request.

    @ivar content: its bytes, packed if asked for.
    @ivar key: names its messages; None when two bodies that are equal may hold different messages.
    """

    content: bytes
    key: str | None


@dataclass(frozen=True, slots=True)
class BodyFormat:
    """
    How bodies are made of lines.

    @ivar name: one of L{FORMATS}.
    @ivar messages: most messages in one body.
    @ivar size: most bytes in one body before packing; a message that is larger goes alone.
    @ivar gzip: whether bodies are packed.
    @ivar distinct: no two messages make the same line.
    """

    name: str = "ndjson"
    messages: int = 500
    size: int = MiB
    gzip: bool = False
    distinct: bool = True

    def cut(self, lines: Sequence[bytes]) -> Iterator[tuple[int, int]]:
        """
        Yield where each request begins and ends. It depends on the lines from there on only, so that what is tried
        again in a later batch is cut as before and keeps its key.
        """
        begin = size = 0
        for place, line in enumerate(lines):
            if place - begin >= self.messages or (place > begin and size + len(line) > self.size):
                yield begin, place
                begin, size = place, 0
            size += len(line)
        if begin < len(lines):
            yield begin, len(lines)

    def make(self, lines: Sequence[bytes]) -> Body:
        """
        Join lines, each with its line end, to a body. With C{each} there is one.

        The key is the same for the same messages in the same order, whenever and by whichever process it is made.
        """
        content = self._join(lines)
        key = hashlib.sha256(content).hexdigest() if self.distinct else None
        if self.gzip:
            # No time in it: a body that is sent again is the same to the last byte.
            content = gzip.compress(content, _GZIP_LEVEL, mtime=0)
        return Body(content, key)

    def _join(self, lines: Sequence[bytes]) -> bytes:
        if self.name == "json":
            return b"[" + b",".join(line[:-1] for line in lines) + b"]"
        if self.name == "each":
            return lines[0][:-1]
        return b"".join(lines)
