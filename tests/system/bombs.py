"""
Small bodies that unpack to large ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]
import zstandard

MiB = 1024 * 1024
_PIECE = bytes(MiB)


def _gzip(size: int) -> bytes:
    return _zlib(size, 31)


def _deflate(size: int) -> bytes:
    return _zlib(size, 15)


def _zlib(size: int, wbits: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    return b"".join([*(packer.compress(_PIECE) for _ in range(size // MiB)), packer.flush()])


def _zstd(size: int) -> bytes:
    packer = zstandard.ZstdCompressor().compressobj()
    return b"".join([*(packer.compress(_PIECE) for _ in range(size // MiB)), packer.flush()])


def _brotli(size: int) -> bytes:
    # The largest window is what costs a receiver most.
    packer = brotli.Compressor(quality=3, lgwin=24)
    return b"".join([*(packer.process(_PIECE) for _ in range(size // MiB)), packer.finish()])


#: Content coding to a function that makes so many bytes of zeros small; whole mebibytes only.
BOMBS: dict[str, Callable[[int], bytes]] = {"gzip": _gzip, "deflate": _deflate, "zstd": _zstd, "br": _brotli}
