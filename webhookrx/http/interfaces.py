"""
The seams between the wire and what stands behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zope.interface import Attribute, Interface

if TYPE_CHECKING:
    from webhookrx.errors import NotStored
    from webhookrx.http.answers import Answer
    from webhookrx.intake.head import Head
    from webhookrx.intake.judge import Admission, Refused


class IExchange(Interface):
    """
    One request under way, from its admission to its answer. It is the acknowledgement of its own message.
    """

    head: Head = Attribute("What was said before the body.")
    admission: Admission = Attribute("What was found out at the end of the head.")
    began: float = Attribute("When it was there in full: seconds on the monotonic clock.")

    def __call__(error: NotStored | None) -> None:
        """See L{webhookrx.interfaces.Acknowledge}: it is told to L{IReceiver.acknowledged}."""

    def is_open() -> bool:
        """Whether an answer would still be heard."""

    def answer(answer: Answer, *, close: bool = False) -> bool:
        """
        Answer.

        @param close: end the connection with it.
        @return: False when nothing was said, since the sender is gone or was answered already, at the deadline.
        """


class IReceiver(Interface):
    """Takes a request that was admitted."""

    def receive(exchange: IExchange, body: bytes) -> None:
        """
        Take a request with its whole body, and answer it now or later.

        @param body: as it came by the wire. From here on nobody else counts it: don't keep it.
        """

    def acknowledged(exchange: IExchange, error: NotStored | None) -> None:
        """All observers have the message of that exchange safe, or C{error} says why not."""


class IEarlyResource(Interface):
    """A resource that judges a request at the end of its head, before a byte of the body is read."""

    def dispatch(head: Head) -> tuple[IReceiver, Admission] | Answer | Refused | None:
        """
        Judge a head.

        @return: who takes the request once its body is there, an answer that needs no body, a refusal, or None: not
            ours, so traverse the tree of resources by segments as C{twisted.web} does.
        """
