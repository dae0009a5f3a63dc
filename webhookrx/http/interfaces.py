"""
The interfaces inside this room: between a connection, its site, and the resources that take its requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from zope.interface import Attribute, Interface

from webhookrx.http.answers import RECEIVED, FixedAnswer
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Admission, Refused

if TYPE_CHECKING:
    from twisted.web.server import Request

    from webhookrx.errors import NotStored, Reason
    from webhookrx.http.head import RequestHead
    from webhookrx.settings import Limits


class IExchange(Interface):
    """One admitted request, from the end of its head to its answer."""

    head: Head = Attribute("Its head.")
    admission: Admission = Attribute("What was found out at the end of the head.")

    def acknowledged(error: NotStored | None, answer: FixedAnswer = RECEIVED) -> None:
        """
        See L{webhookrx.interfaces.Acknowledge}: answer 200, or say that the message is not safe.

        @param answer: what is said to a sender in place of our own words.
        """

    def is_open() -> bool:
        """Whether an answer could still be sent."""

    def answer(answer: FixedAnswer, *, close: bool = False) -> bool:
        """
        Answer.

        @param close: end the connection with it.
        @return: False, and nothing sent, if the sender is gone or the deadline has answered already.
        """


class IReceiver(Interface):
    """Takes admitted requests."""

    watch: Callable[[bytes], None] | None = Attribute(
        "Called with the bytes of a body that does not come in one read with its head, as they come, but chunks are "
        "put together first. It may raise L{webhookrx.errors.RequestRefused}. None: nobody watches."
    )

    def refusal(head: Head, reason: Reason, detail: str, retry_after: int = 0) -> FixedAnswer:
        """
        Return the answer to a request that is refused now.

        @param retry_after: see L{webhookrx.errors.RequestRefused}.
        """

    def receive(exchange: IExchange, body: bytes) -> None:
        """
        Take a request with its whole body, and answer it now or later.

        @param body: as it came by the wire. It is not counted any more: don't keep it.
        """


#: What the end of a head leads to: a receiver that takes the request once its body is there; an answer that needs no
#: body; a refusal; or None: leave the request to the tree of C{twisted.web} resources.
Verdict: TypeAlias = tuple[IReceiver, Admission] | FixedAnswer | Refused | None


class IEarlyResource(Interface):
    """A resource that judges a request at the end of its head, before a byte of the body is read."""

    wanted: tuple[bytes, ...] = Attribute("Names of headers that it asks for at each request, in lower case.")

    def dispatch(head: Head) -> Verdict:
        """Judge a head."""


class Policy(msgspec.Struct, frozen=True, eq=False):
    """
    What all connections of an endpoint go by. A reload or a drain replaces it as a whole.

    @ivar dispatch: see L{IEarlyResource.dispatch}.
    @ivar names: see L{webhookrx.http.head.parse_head}.
    @ivar closing: each answer is the last on its connection.
    @ivar draining: requests are refused.
    """

    dispatch: Callable[[Head], Verdict]
    limits: Limits
    names: tuple[bytes, ...]
    closing: bool = False
    draining: bool = False


class ISite(Interface):
    """What a connection asks of its endpoint."""

    policy: Policy = Attribute("What it goes by from the next request on.")
    paused: bool = Attribute("The chain pauses all senders.")

    def opened(connection: Any) -> bool:
        """Count a new connection; False if there are too many."""

    def admits_peer(connection: Any) -> bool:
        """Count a connection by its peer, known only now; False, and not counted at all, if that one has too many."""

    def became_idle(connection: Any) -> None:
        """Note that a connection has its answer and waits for its next request."""

    def give_way(connection: Any) -> None:
        """End a connection whose place another one takes."""

    def closed(connection: Any) -> None:
        """Forget a connection."""

    def make_request(connection: Any, head: RequestHead, body: bytes) -> Request:
        """Return a request for the tree of C{twisted.web} resources."""
