"""
One admitted request: the small object that a message needs instead of a whole C{twisted.web} request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from zope.interface import implementer

from webhookrx.errors import NotStored
from webhookrx.http.answers import Answer
from webhookrx.http.interfaces import IExchange, IReceiver
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Admission

if TYPE_CHECKING:
    from webhookrx.http.protocol import HTTPProtocol


@implementer(IExchange)
class Exchange(msgspec.Struct, eq=False):
    """
    A request on a L{webhookrx.http.protocol.HTTPProtocol}.

    @ivar receiver: who takes it, and is told of its acknowledgement.
    """

    channel: HTTPProtocol
    head: Head
    receiver: IReceiver
    admission: Admission
    began: float = 0.0

    @property
    def source(self) -> str:
        """The name of the source that has admitted it."""
        return self.admission.rules.name

    def __call__(self, error: NotStored | None) -> None:
        """See L{IExchange.__call__}."""
        self.receiver.acknowledged(self, error)

    def is_open(self) -> bool:
        """See L{IExchange.is_open}."""
        return self.channel.serves(self)

    def answer(self, answer: Answer, *, close: bool = False) -> bool:
        """See L{IExchange.answer}."""
        return self.channel.answer(self, answer, close)
