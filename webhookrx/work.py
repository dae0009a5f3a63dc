"""
Work that is counted, in units that take about two nanoseconds each at worst: what a message costs is bounded by what
is done to it, and not by a clock, so that a busy machine skips nothing.
"""

from __future__ import annotations

from typing import Final

from webhookrx.errors import WebhookrxError

MOST_FOR_MESSAGE: Final = 6_000_000
"""Units for all steps that one message comes to."""

MOST_FOR_STEP: Final = 4_000_000
"""Units for one of them."""

PER_INSTRUCTION: Final = 4
"""Units that a regular expression may take for each of its instructions and each byte of a text."""


class TooMuchWork(WebhookrxError):
    """A bound of work is reached; the text quotes nothing of the message."""


class Work:
    """
    What is left of the work that may be done for one message.

    @ivar left: units.
    """

    __slots__ = ("left",)

    def __init__(self, left: int = MOST_FOR_MESSAGE) -> None:
        self.left = left

    def spend(self, units: int) -> None:
        """
        Count what is to be done.

        @raise TooMuchWork: there is not so much left; what is then not done is not counted.
        """
        if units > self.left:
            raise TooMuchWork("All steps together have too much to do with this message.")
        self.left -= units
