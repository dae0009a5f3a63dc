"""
The budget of work for a message, in units of about two nanoseconds at worst: counted, not timed, so that a busy machine
does what an idle one does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from webhookrx.errors import WebhookrxError

MOST_FOR_MESSAGE: Final = 6_000_000
"""Units for all steps of one message."""

MOST_FOR_STEP: Final = 4_000_000
"""Units for one of them."""

PER_INSTRUCTION: Final = 4
"""Units that a regular expression may take for each of its instructions and each byte of a text."""


MEMBER: Final = 120
"""Units of a member of an object or an element of an array."""

_WRITTEN: Final = 3
"""Units of a character that is written as JSON, of which one may become six."""

_TEXTS: Final = (str, msgspec.Raw)


class TooMuchWork(WebhookrxError):
    """The budget of work is exceeded; the text quotes nothing of the message."""


class Work(msgspec.Struct, gc=False):
    """
    The work left for one message.

    @ivar left: units.
    """

    left: int = MOST_FOR_MESSAGE

    def spend(self, units: int) -> None:
        """
        Count work before it is done.

        @raise TooMuchWork: there is less left; then nothing is counted.
        """
        if units > self.left:
            raise TooMuchWork("All steps together have too much to do with this message.")
        self.left -= units


def spend_json(value: Any, spend: Callable[[int], object]) -> None:
    """
    Count the work of writing a value as JSON, before it is done.

    @param spend: takes units of work, and raises when there are too few left.
    """
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping):
            spend(MEMBER * (1 + len(each)) + _WRITTEN * sum(map(len, each)))
            pending.extend(each.values())
        elif isinstance(each, (list, tuple)):
            spend(MEMBER * (1 + len(each)))
            pending.extend(each)
        elif isinstance(each, _TEXTS):
            spend(_WRITTEN * len(each))
