"""
Reply: an answer to one request as a decision makes it, plain values that can't break the line they are written in.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"

#: RFC 9110 section 5.5 without what it only tolerates: bytes beyond ASCII, and tabs.
_HEADER_VALUE: Final = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")

#: Headers of the answer that are the receiver's own: they say where it ends, or what becomes of the connection.
OWN_HEADERS: Final = frozenset(
    (
        "connection",
        "content-length",
        "content-type",
        "date",
        "keep-alive",
        "server",
        "strict-transport-security",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-content-type-options",
    )
)


def is_header_value(text: str) -> bool:
    """Tell whether a text can be the value of a header, with the same bytes on the other side: printable ASCII."""
    return _HEADER_VALUE.fullmatch(text) is not None


class Reply(msgspec.Struct, frozen=True, gc=False):
    """
    An answer to one request, apart from what depends on the connection.

    @ivar body: empty with status 204.
    @ivar content_type: empty for a body without one.
    @ivar headers: additional ones, name and value.
    @raise ValueError: a header, or the content type, can't be written as it is.
    """

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        # The last guard against answers that are split in two: whoever made this may have forgotten to look.
        for _, value in (("", self.content_type), *self.headers):
            if not is_header_value(value):
                raise ValueError("A header of an answer holds what can't be in one.")
