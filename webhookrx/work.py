"""
The budget of work for a message, in units of about two nanoseconds at worst: counted, not timed, so that a busy machine
does what an idle one does.
"""

from __future__ import annotations

from typing import Final

from webhookrx.errors import WebhookrxError

MOST_FOR_MESSAGE: Final = 6_000_000
"""Units for all steps of one message."""

MOST_FOR_STEP: Final = 4_000_000
"""Units for one of them."""

PER_INSTRUCTION: Final = 4
"""Units that a regular expression may take for each of its instructions and each byte of a text."""


class TooMuchWork(WebhookrxError):
    """The budget of work is exceeded; the text quotes nothing of the message."""


class Work:
    """
    The work left for one message.

    @ivar left: units.
    """

    __slots__ = ("left",)

    def __init__(self, left: int = MOST_FOR_MESSAGE) -> None:
        self.left = left

    def spend(self, units: int) -> None:
        """
        Count work before it is done.

        @raise TooMuchWork: there is less left; then nothing is counted.
        """
        if units > self.left:
            raise TooMuchWork("All steps together have too much to do with this message.")
        self.left -= units
