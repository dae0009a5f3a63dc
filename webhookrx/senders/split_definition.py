"""
The type of C{split} in a sender's data file: how a body with several events is taken apart.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from webhookrx.senders.data_file import DataFileType

WAYS: Final = ("value", "lines", "documents", "bulk", "frames")
"""What a body consists of."""

SPLIT_DECODINGS: Final = ("base64", "base64+gzip")
"""How an event may be encoded that is text."""


class Split(DataFileType, frozen=True):
    """How a body with several events is taken apart."""

    by: Annotated[
        str,
        Meta(
            description="What the body consists of: `value`, one value as `format` has it, with the events at `at`; "
            "`lines`; `documents`, values of JSON one after another; `bulk`, pairs of lines, an action and its "
            "document; `frames`, each behind the number of its bytes."
        ),
    ] = "value"
    at: Annotated[
        str,
        Meta(
            description="A JSON pointer to the events, with `*` for all elements of an array; what stands around them "
            "goes along as their envelope. For `value` alone."
        ),
    ] = ""
    decode: Annotated[
        str,
        Meta(
            description="How events are encoded that are text: `base64`, or `base64+gzip` where some are packed, too."
        ),
    ] = ""
    inside: Annotated[
        str,
        Meta(description="A JSON pointer, with `*`, to the events inside of what was decoded; others are one event."),
    ] = ""
    carry: Annotated[
        tuple[str, ...],
        Meta(description="Members of a document that hold for those behind it, too, until one has its own."),
    ] = ()
