"""
Splitting: a bundle, which is a body with several events, becomes a body for each event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from webhookrx.senders.compiled import CompiledSender
from webhookrx.senders.locator import parse_pointer
from webhookrx.senders.split_definition import Split

MAX_EVENTS: Final = 10_000
"""Events of one body."""

MAX_ENVELOPE: Final = 64 * 1024
"""Bytes of an envelope; a longer one is left out."""


class SplitEvent(msgspec.Struct, frozen=True, gc=False):
    """
    One event of a bundle.

    @ivar body: what the judge gets in place of the body: the sender's own bytes of an object or array, the content of a
        text.
    @ivar is_text: it is neither an object nor an array, and nothing is read in it.
    @ivar envelope: what stands around it, an object as compact JSON; empty when there is nothing, or too much.
    @ivar around: the bytes that make a body with this one event of it, before and behind C{body}; shared by many. For
        one that C{is_text}, C{body} stands there as a string of JSON. None: C{body} is such a body itself.
    """

    body: bytes
    is_text: bool = False
    envelope: bytes = b""
    around: tuple[bytes, bytes] | None = None


class Bundle(msgspec.Struct, frozen=True, gc=False):
    """
    A body taken apart.

    @ivar events: in the order of the body; none if the body says so.
    @ivar left_out: how many of them have lost their envelope, since it is too long.
    """

    events: Sequence[SplitEvent]
    left_out: int = 0


class Splitter:
    """
    Takes bodies apart.

    @param splits: ways to do so; the first that fits a body counts.
    @param body_format: the C{format} of the sender's definition.
    """

    def __init__(self, splits: tuple[Split, ...], body_format: str = "json") -> None:
        self._splits = splits
        self._format = body_format

    def split(self, body: bytes, media_type: str = "") -> Bundle | None:
        """
        Take a body apart, with yield points. Nothing of it is left behind.

        @param body: unpacked.
        @param media_type: that of the request, in lower case.
        @return: None when it does not have the form that a way needs: then it is one message, as without splitting.
        @raise RequestRefused: C{TOO_MANY_EVENTS}.
        """
        return None


def splitter_for(text: str, sender: CompiledSender | None) -> Splitter | None:
    """
    Return what an option C{split} asks for; None for C{no}.

    @param text: C{no}, C{yes} for the sender's own way, C{lines}, C{documents}, or a JSON pointer to an array, or to
        elements with C{*}.
    @raise ValueError: it is something else, or the sender has no way of its own; the text is one sentence.
    """
    if text == "no":
        return None
    if text == "yes":
        if sender is None:
            raise ValueError("split: yes needs a sender; without one write lines, documents, or a JSON pointer.")
        if not sender.definition.splits:
            raise ValueError(f"The sender {sender.id} puts one event into each request, as far as is known.")
        return Splitter(sender.definition.splits, sender.definition.format)
    if text in ("lines", "documents"):
        return Splitter((Split(by=text),))
    if not text.startswith("/"):
        raise ValueError("split is no, yes, lines, documents, or a JSON pointer such as /alerts/*.")
    steps = parse_pointer(text)
    return Splitter((Split(at=text if "*" in steps else text + "/*"),))
