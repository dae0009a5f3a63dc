"""
The shape of an HTTP store: what one store differs in from another, as a frozen value.

L{webhookrx.observers.http_stores.observer.HTTPObserver} keeps connection, retries, division of batches, C{Retry-After},
secrets and the end for all of them. A store says what a request is made of, and what an answer means.
"""

from __future__ import annotations

import gzip
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from webhookrx.interfaces import Wants
from webhookrx.message.encoders import encode_line
from webhookrx.observers.batch_limits import USUAL_LIMITS, BatchLimits
from webhookrx.observers.http_stores.exchange import Header, HTTPAnswer, StoreRequest
from webhookrx.observers.writers import RenderLine

KEPT = 4096
"""Bytes of the body of an answer that are kept where the status alone decides: enough for an excerpt."""

_GZIP_LEVEL = 6


class Verdict(Enum):
    """What an answer means for messages."""

    STORED = "stored"
    """The store has them."""
    KNOWN = "known"
    """The store had them already, from an earlier try."""
    REFUSED = "refused"
    """At least one of them is refused for good, for what is wrong with itself: nothing else is ever refused."""
    LATER = "later"
    """The store, or a person, may remove the cause: they are tried again after a pause."""


@dataclass(frozen=True, slots=True)
class Finding:
    """
    What an answer says of one message, or of all messages of its request.

    @ivar code: the store's code and what an operator can check, shown even after a secret was sent: never a text of
        the server, but a number, or a word that this program knows.
    @ivar words: the server's own words; quoted only if no secret was sent, and only their beginning.
    @ivar suspect: where a whole request is refused, the place of the message that the server blames. It is sent alone,
        and refused only if it is refused so: that number may be wrong, and those before and after it are not judged.
    @ivar pause: with L{Verdict.LATER}, seconds before anything is sent again, where an early try does harm.
    """

    verdict: Verdict
    code: str = ""
    words: bytes | str = b""
    suspect: int | None = None
    pause: float | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """
    A further request, whose answer decides about the messages: the store has only taken them so far.

    It is asked until its answer has decided, or the time to retry is over; then the messages are not safe.

    @ivar confirm: reads the answer, which may lead to another question. With L{Verdict.LATER}, or where it raises what
        L{HTTPStore.read} raises, the same is asked again.
    @ivar pause: seconds before it is asked.
    """

    request: StoreRequest
    confirm: Callable[[HTTPAnswer], Finding | Question]
    pause: float = 0.0


#: One finding for all messages of a request, one a message in their order, or what to ask next.
Reading: TypeAlias = Finding | Sequence[Finding] | Question


@dataclass(frozen=True, kw_only=True)
class HTTPStore(ABC):
    """
    One store with its options. A subclass adds its own options as fields.

    @ivar render: what a message is in a request, as bytes; called once a message.
    @ivar takes_lines: see L{webhookrx.interfaces.IStoreObserver.takes_lines}.
    @ivar promise: how safe a message is after L{Verdict.STORED}: C{"durable"}, C{"written"} or C{"queued"}.
    @ivar promise_reason: why that is weaker than durable, for the start line; empty when it is durable.
    @ivar wants: the batches that a spool is to offer; None for those of today.
    @ivar keep: bytes of an answer that are kept for L{read}.
    @ivar answer_fields: names of header fields of an answer, in lower case, that L{read} looks at.
    @ivar content_type: the media type of bodies.
    """

    render: RenderLine = field(default=encode_line, repr=False)
    takes_lines: bool = False
    limits: BatchLimits = USUAL_LIMITS
    gzip: bool = False
    promise: str = "durable"
    promise_reason: str = ""
    wants: Wants | None = None
    keep: int = KEPT
    answer_fields: tuple[str, ...] = ()
    content_type: str = "application/json"

    @abstractmethod
    def make(self, lines: Sequence[bytes]) -> StoreRequest:
        """
        Make one request of rendered messages. It depends on nothing but these and their order, so that the same
        messages make the same request.
        """

    @abstractmethod
    def read(self, answer: HTTPAnswer, count: int) -> Reading:
        """
        Tell what an answer means. What is not known to be stored or refused is L{Verdict.LATER}.

        With one finding for all, L{Verdict.REFUSED} divides the request until the refused message is alone.

        @param count: how many messages its request had.
        @raise CutAnswer: its body decides and was not kept whole; the request is divided and sent again.
        @raise UnreadableAnswer: its body decides, and is not what this store answers; the request is sent again.
        """

    def fields(self) -> list[Header]:
        """Return the header fields of every request."""
        fields = [(b"Content-Type", self.content_type.encode())]
        if self.gzip:
            fields.append((b"Content-Encoding", b"gzip"))
        return fields

    def pack(self, content: bytes) -> bytes:
        """Pack a body, if this is wanted. It is the same each time, to the last byte: it holds no time."""
        return gzip.compress(content, _GZIP_LEVEL, mtime=0) if self.gzip else content
