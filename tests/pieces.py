"""A stream cut into pieces, as reads from a network cut it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable


def pieces(stream: bytes, cuts: Iterable[int]) -> list[bytes]:
    """
    Return a stream in pieces, none of them empty.

    @param cuts: offsets to cut at, in any order; what lies outside of the stream cuts nothing.
    """
    edges = sorted({0, len(stream), *(cut for cut in cuts if 0 < cut < len(stream))})
    return [stream[start:stop] for start, stop in itertools.pairwise(edges)]


def pieces_of(size: int, stream: bytes) -> list[bytes]:
    """Return a stream in pieces of one size; the last may be shorter."""
    return pieces(stream, range(0, len(stream), size))
