"""
One admitted request: the small object that a message needs instead of a whole C{twisted.web} request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zope.interface import implementer

from webhookrx.http.answers import Answer
from webhookrx.http.interfaces import IExchange
from webhookrx.intake import Admission
from webhookrx.request.received import Head

if TYPE_CHECKING:
    from webhookrx.http.channel import HTTPChannel


@implementer(IExchange)
class Exchange:
    """
    A request on a L{webhookrx.http.channel.HTTPChannel}.
    """

    __slots__ = ("admission", "channel", "head")

    def __init__(self, channel: HTTPChannel, head: Head, admission: Admission) -> None:
        self.channel = channel
        self.head = head
        self.admission = admission

    @property
    def source(self) -> str:
        """The name of the source that has admitted it."""
        return self.admission.rules.name

    def answer(self, answer: Answer) -> bool:
        """See L{IExchange.answer}."""
        return self.channel.answer(self, answer)
