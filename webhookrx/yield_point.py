"""
Yield points: where long work on one request lets the others go first.

Whatever takes time in proportion to the size of a body works on pieces of L{PIECE}, and calls L{yield_point} between
them. In a thread whose work is done in time slices (see L{webhookrx.http.time_slices}) the call returns once the work
has its next slice. In any other thread it returns at once. A call of the compiled path that takes longer goes through
L{run_unlocked}.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import Final, ParamSpec, Protocol, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

PIECE: Final = 64 * 1024
"""Bytes or characters to work on between two yield points: well under a millisecond, even at 10 ns for each."""


LONG_CALL: Final = 1024 * 1024
"""Bytes of a body from which on a call of the compiled path takes longer than some milliseconds."""


class Aside(Protocol):
    """Lets others go first while a call works."""

    def __call__(self, call: Callable[[], _Result]) -> _Result: ...


class _PauseOfThread(threading.local):
    pause: Callable[[], None] | None = None
    aside: Aside | None = None


_thread: Final = _PauseOfThread()


def yield_point() -> None:
    """Let others go first if this work has used up its time slice."""
    pause = _thread.pause
    if pause is not None:
        pause()


def pause_by(pause: Callable[[], None], aside: Aside | None = None) -> None:
    """From now on, have L{yield_point} call C{pause} in this thread, and L{run_unlocked} C{aside}."""
    _thread.pause = pause
    _thread.aside = aside


def run_unlocked(
    size: int, function: Callable[_Arguments, _Result], *args: _Arguments.args, **options: _Arguments.kwargs
) -> _Result:
    """
    Return what a function returns that gives up the interpreter's lock while it works. In time slices, others go on
    meanwhile if it takes long.

    @param size: bytes that it works on.
    """
    yield_point()
    aside = _thread.aside
    if aside is None or size <= LONG_CALL:
        return function(*args, **options)
    return aside(lambda: function(*args, **options))


def map_pieces(function: Callable[[str], str], text: str) -> str:
    """
    Return C{function} of a text, applied to one piece after the other.

    @param function: looks at single characters only, so that it does not matter where the text is cut.
    """
    if len(text) <= PIECE:
        return function(text)
    pieces = []
    for start in range(0, len(text), PIECE):
        pieces.append(function(text[start : start + PIECE]))
        yield_point()
    return "".join(pieces)


def encode_utf_8(*texts: str, errors: str = "backslashreplace") -> bytes:
    """
    Return texts as one in UTF-8, encoded one piece after the other.

    @param errors: what becomes of lone surrogates; as a rule they become escapes.
    """
    if len(texts) == 1 and len(texts[0]) <= PIECE:  # the usual case, in a third of the time
        return texts[0].encode("utf-8", errors)
    if sum(map(len, texts)) <= PIECE:
        return "".join(texts).encode("utf-8", errors)
    # It grows in place, so that no copy of all of it is made at the end.
    encoded = io.BytesIO()
    for text in texts:
        for start in range(0, len(text), PIECE):
            encoded.write(text[start : start + PIECE].encode("utf-8", errors))
            yield_point()
    return encoded.getvalue()


def count_byte(text: bytes, byte: bytes) -> int:
    """Return how often one byte is there. Some calls in a row take longer than one piece may."""
    yield_point()
    # A search leaps to it, which counting does not.
    return text.count(byte) if byte in text else 0


def count_up_to(most: int, text: bytes, *which: bytes) -> int:
    """Return how many bytes of a text are one of some, or any number beyond C{most} if more are."""
    found = 0
    for start in range(0, len(text), PIECE):
        piece = text[start : start + PIECE]
        for byte in which:
            # replace() leaps from one to the next, and leaves off.
            found += len(piece) - len(piece.replace(byte, b"", most + 1))
        if found > most:
            break
        yield_point()
    return found
