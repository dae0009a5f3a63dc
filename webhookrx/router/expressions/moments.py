"""
Moments: nanoseconds since the epoch, and the offset of the zone in which a text gave them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Final, NamedTuple

from webhookrx.message.macros import NANOSECONDS
from webhookrx.router.expressions.mistakes import OperationError

PARSED: Final = "parsed"
ASSUMED: Final = "assumed"
FIXED: Final = "fixed"
GUESSED: Final = "guessed"
"""Where the zone of a moment is from."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(NamedTuple):
    """
    A moment.

    @ivar nanoseconds: since the epoch, as C{log.time_unix_nano} has them.
    @ivar offset: of its zone, in seconds east of UTC.
    @ivar source: where the zone is from, one of the words above.
    """

    nanoseconds: int
    offset: int = 0
    source: str = ASSUMED

    def __str__(self) -> str:
        """Return the seconds since the epoch, with six digits, or nine where six don't do."""
        sign = "-" if self.nanoseconds < 0 else ""
        seconds, rest = divmod(abs(self.nanoseconds), NANOSECONDS)
        return f"{sign}{seconds}.{rest:09}" if rest % 1000 else f"{sign}{seconds}.{rest // 1000:06}"

    def wall_clock(self) -> datetime:
        """
        Return what a clock in its zone shows, to the second.

        @raise OperationError: it is not within the years 1 to 9999.
        """
        try:
            return (_EPOCH + timedelta(seconds=self.nanoseconds // NANOSECONDS)).astimezone(
                timezone(timedelta(seconds=self.offset))
            )
        except (OverflowError, ValueError):
            raise OperationError("The moment is not within the years 1 to 9999.") from None


def seconds_of(wall_clock: datetime) -> int:
    """Return the seconds since the epoch of a clock that has a zone."""
    return (wall_clock - _EPOCH) // timedelta(seconds=1)
