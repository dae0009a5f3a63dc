"""
Undoes C{Content-Encoding}, never past the limit: unpacked bytes are counted while they are unpacked.
"""

from __future__ import annotations

import io
import secrets
import threading
import zlib
from collections.abc import Callable, Sequence
from typing import Final

import brotli  # type: ignore[import-untyped]
import zstandard

from webhookrx.errors import BAD_COMPRESSION, BODY_TOO_LARGE, UNPACK_RATIO, UNSUPPORTED_ENCODING, RequestRefused
from webhookrx.yield_point import yield_point

_FED: Final = 4 * 1024
"""Bytes given to zlib or brotli at once. They copy what they did not use, so a small bite keeps the work linear."""
_FED_TO_ZSTD: Final = 512
"""Bytes given to zstd at once. It gives back all of it, and a block of a few bytes may hold 128 KiB."""
_TAKEN: Final = 64 * 1024
"""Bytes that they may give back at once; brotli goes over it by at most as much again."""
_MAX_ZSTD_WINDOW: Final = 8 * 1024 * 1024
"""The most memory that a zstd frame may ask of a receiver (RFC 9659)."""

ALWAYS_UNPACKED: Final = 128 * 1024
"""Bytes that a body may unpack to however small it is on the wire: short texts that repeat compress best."""

# The wbits argument of zlib: a window of 32 KiB, and which wrapper stands around the stream.
_GZIP: Final = 31
_ZLIB: Final = 15
_RAW_DEFLATE: Final = -15


def check_encoding(content_encoding: Sequence[bytes]) -> tuple[str, ...]:
    """
    Say which codings a body is said to have, before it is read.

    @param content_encoding: the values of all C{Content-Encoding} lines.
    @return: of C{"gzip"}, C{"deflate"}, C{"zstd"} and C{"br"}, in the order of the header; empty when there is nothing
        to undo.
    @raise RequestRefused: C{UNSUPPORTED_ENCODING}: a coding that is not known, or more than two, or two with C{br}.
    """
    if not content_encoding:
        return ()
    # As nearly every sender writes it.
    coding = _CODINGS.get(content_encoding[0])
    if coding is not None and len(content_encoding) == 1:
        return (coding,)
    names = (name.strip(b" \t").lower() for value in content_encoding for name in value.split(b","))
    named = [name for name in names if name not in (b"", b"identity")]
    if len(named) > 2:
        raise RequestRefused(UNSUPPORTED_ENCODING, "Content-Encoding may name at most two codings.")
    codings = tuple(_CODINGS[name] for name in named if name in _CODINGS)
    if len(codings) < len(named):
        raise RequestRefused(UNSUPPORTED_ENCODING)
    if len(codings) == 2 and "br" in codings:
        raise RequestRefused(
            UNSUPPORTED_ENCODING, "Content-Encoding may name br only alone, since no body shows that it was applied."
        )
    return codings


def unpack(body: bytes, content_encoding: Sequence[bytes], limit: int, ratio: int) -> bytes:
    """
    Undo the codings of a body, with a yield point after each piece. An empty body stays empty, whatever its coding.

    Of two codings each is undone where the body begins as it does, in whatever order; else it was not applied. Some
    GELF libraries say C{gzip,deflate} of what has one of them.

    A body may consist of several gzip members (RFC 1952 section 2.2) or zstd frames (RFC 8878 section 3.1), one after
    the other. C{deflate} is the zlib format (RFC 9110 section 8.4.1.2), and also the bare stream that many send.

    @param content_encoding: the values of all C{Content-Encoding} lines.
    @param limit: bytes that may come out. Little more than that is held at any time, twice that with two codings, and
        8 MiB of zstd window or 16 MiB of brotli window at most.
    @param ratio: how many times its size on the wire a body may unpack to, beyond L{ALWAYS_UNPACKED}.
    @raise RequestRefused: C{UNSUPPORTED_ENCODING} as L{check_encoding} does; C{BAD_COMPRESSION} when the body is
        corrupt, cut short, or goes on after its end; C{BODY_TOO_LARGE} when more than C{limit} bytes come out;
        C{UNPACK_RATIO} when more come out than C{ratio} allows.
    """
    codings = check_encoding(content_encoding)
    if not body:
        return body
    by_ratio = max(ALWAYS_UNPACKED, ratio * len(body))
    if len(codings) == 1:
        return _undo(codings[0], body, limit, by_ratio)
    # The last that is named was applied last (RFC 9110 section 8.4).
    left = list(reversed(codings))
    while (coding := next((each for each in left if _BEGINS[each](body)), None)) is not None:
        body = _undo(coding, body, limit, by_ratio)
        left.remove(coding)
    if len(body) > limit:
        raise RequestRefused(BODY_TOO_LARGE)
    return body


def _undo(coding: str, body: bytes, limit: int, by_ratio: int) -> bytes:
    """@raise RequestRefused: as L{unpack} does."""
    unpacked = _UnpackedBody(limit, by_ratio)
    try:
        complete = _UNPACKERS[coding](body, unpacked)
    except (zlib.error, brotli.error, zstandard.ZstdError):
        raise RequestRefused(BAD_COMPRESSION) from None
    if not complete:
        raise RequestRefused(BAD_COMPRESSION, "The compressed body is cut short.")
    return unpacked.all()


class _UnpackedBody:
    """
    What has come out so far. C{BytesIO} grows in place and hands its bytes out without a copy, so that no more than
    one copy of the body is ever held.
    """

    __slots__ = ("_buffer", "_by_ratio", "_room")

    def __init__(self, limit: int, by_ratio: int) -> None:
        self._buffer = io.BytesIO()
        self._by_ratio = by_ratio < limit
        self._room = min(limit, by_ratio)

    def write(self, piece: bytes) -> None:
        """
        Take what has come out.

        @raise RequestRefused: it is more than may come out.
        """
        self.note(piece)
        self.check()

    def note(self, piece: bytes) -> None:
        """Take what has come out, or let it go if it is more than may."""
        self._room -= len(piece)
        if self._room >= 0:
            self._buffer.write(piece)
        yield_point()

    def check(self) -> None:
        """
        @raise RequestRefused: more has come out than may.
        """
        if self._room < 0:
            if self._by_ratio:
                raise RequestRefused(UNPACK_RATIO)
            raise RequestRefused(BODY_TOO_LARGE, "The body unpacks to more than this receiver accepts.")

    def all(self) -> bytes:
        return self._buffer.getvalue()


def _unpack_zlib(body: bytes, wbits: int, unpacked: _UnpackedBody, *, several: bool) -> bool:
    """
    Inflate one stream, or several one after the other.

    @return: whether the last one came to its end.
    """
    inflater = zlib.decompressobj(wbits)
    for start in range(0, len(body), _FED):
        fed = body[start : start + _FED]
        while True:
            if inflater.eof:
                if not several:
                    raise RequestRefused(BAD_COMPRESSION, "The compressed body goes on after its end.")
                yield_point()  # streams may be empty
                inflater = zlib.decompressobj(wbits)
            piece = inflater.decompress(fed, _TAKEN)
            unpacked.write(piece)
            fed = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            # A full piece may have left more inside, even when all input is used up.
            if not fed and (inflater.eof or len(piece) < _TAKEN):
                break
    return inflater.eof


def _unpack_gzip(body: bytes, unpacked: _UnpackedBody) -> bool:
    return _unpack_zlib(body, _GZIP, unpacked, several=True)


def _unpack_deflate(body: bytes, unpacked: _UnpackedBody) -> bool:
    # A zlib header read as a bare stream would be a stored block with its padding bits set, which no compressor writes:
    # so the two can be told apart.
    return _unpack_zlib(body, _ZLIB if _begins_zlib(body) else _RAW_DEFLATE, unpacked, several=False)


def _unpack_brotli(body: bytes, unpacked: _UnpackedBody) -> bool:
    decoder = brotli.Decompressor()
    for start in range(0, len(body), _FED):
        piece = decoder.process(body[start : start + _FED], output_buffer_limit=_TAKEN)
        unpacked.write(piece)
        # A full piece may have left more inside, even when all input is used up.
        while len(piece) >= _TAKEN or not decoder.can_accept_more_data():
            piece = decoder.process(b"", output_buffer_limit=_TAKEN)
            unpacked.write(piece)
    return bool(decoder.is_finished())


class _Zstd(threading.local):
    """One decoder a thread: making one costs more than unpacking a small body, and two threads must not share it."""

    def __init__(self) -> None:
        self.decoder = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW)


class _UntilSeal:
    """
    Passes on what comes out of the body, and keeps apart what comes out after it. It never raises: what the decoder
    holds then would not be freed.
    """

    __slots__ = ("_unpacked", "after")

    def __init__(self, unpacked: _UnpackedBody) -> None:
        self.after: bytes | None = None
        self._unpacked = unpacked

    def body_ends(self) -> None:
        self.after = b""

    def write(self, piece: bytes) -> int:
        if self.after is None:
            self._unpacked.note(piece)
        else:
            self.after += piece
        return len(piece)


_zstd: Final = _Zstd()
_SEAL: Final = secrets.token_bytes(16)
_SEAL_FRAME: Final = zstandard.ZstdCompressor(write_checksum=True).compress(_SEAL)


def _unpack_zstd(body: bytes, unpacked: _UnpackedBody) -> bool:
    """
    The streaming decoder goes from frame to frame by itself but does not tell whether the last one was whole. So a
    frame of our own goes in last: it comes out as it was exactly when the body ended where a frame ends. Its content
    is random, so that no body can be made to look like it.
    """
    sink = _UntilSeal(unpacked)
    writer = _zstd.decoder.stream_writer(sink, closefd=False)  # type: ignore[arg-type]
    for start in range(0, len(body), _FED_TO_ZSTD):
        writer.write(body[start : start + _FED_TO_ZSTD])
        unpacked.check()
        yield_point()  # frames may be empty
    sink.body_ends()
    try:
        # In two parts: given a whole frame at once after a header that was cut short, libzstd forgets the header.
        writer.write(_SEAL_FRAME[:1])
        writer.write(_SEAL_FRAME[1:])
    except zstandard.ZstdError:
        return False
    return sink.after == _SEAL


_CODINGS: Final = {
    b"gzip": "gzip",
    b"x-gzip": "gzip",
    b"deflate": "deflate",
    b"zstd": "zstd",
    b"br": "br",
}


def _begins_zlib(body: bytes) -> bool:
    """Tell whether a body has the header of zlib (RFC 1950 section 2.2)."""
    return len(body) >= 2 and body[0] & 0x0F == 8 and body[0] >> 4 <= 7 and (body[0] << 8 | body[1]) % 31 == 0


def _begins_zstd(body: bytes) -> bool:
    """Tell whether a body begins with a frame of zstd, one to be skipped included (RFC 8878 section 3.1)."""
    return body.startswith(b"\x28\xb5\x2f\xfd") or (body[1:4] == b"\x2a\x4d\x18" and body[0] >> 4 == 5)


#: Of codings that can be one of two.
_BEGINS: Final[dict[str, Callable[[bytes], bool]]] = {
    "gzip": lambda body: body.startswith(b"\x1f\x8b\x08"),
    "deflate": _begins_zlib,
    "zstd": _begins_zstd,
}
_UNPACKERS: Final[dict[str, Callable[[bytes, _UnpackedBody], bool]]] = {
    "gzip": _unpack_gzip,
    "deflate": _unpack_deflate,
    "zstd": _unpack_zstd,
    "br": _unpack_brotli,
}
