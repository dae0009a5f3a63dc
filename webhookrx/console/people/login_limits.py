"""
Limits on log-ins: on tries of one name from one address, and of one address; a name alone only gets slower.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from webhookrx.console.api.problems import TOO_MANY, ApiProblem, too_many
from webhookrx.console.store.history import StoreTransaction

WINDOW: Final = 15 * 60
PER_NAME_AND_ADDRESS: Final = 5
PER_ADDRESS: Final = 20
MOST_ROWS: Final = 10_000
FREE_PER_NAME: Final = 5
LONGEST_DELAY: Final = 2.0

_WHY: Final = "Too many log-ins have failed."
_MOST_ADDRESSES: Final = 10_000


class TooManyTries(ApiProblem):
    """
    Too many tries have failed.

    @ivar seconds: after which another may be made.
    @ivar of_address: no name is tried from this address until then.
    """

    def __init__(self, seconds: int, *, of_address: bool) -> None:
        super().__init__(TOO_MANY, _WHY, headers=(("Retry-After", str(seconds)),))
        self.seconds = seconds
        self.of_address = of_address


class RefusedAddresses:
    """
    Remembers from which addresses nothing is tried, so that who goes on all the same takes nobody's place.

    @param seconds: monotonic.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._until: OrderedDict[str, float] = OrderedDict()

    def check(self, address: str) -> None:
        """
        @raise ApiProblem: nothing is tried from an address.
        """
        left = self._until.get(address, 0.0) - self._seconds()
        if left > 0:
            raise too_many(_WHY, int(left) + 1)

    def note(self, address: str, refused: TooManyTries) -> None:
        """Remember what was refused, if it is for a whole address."""
        if refused.of_address:
            self._until.pop(address, None)
            self._until[address] = self._seconds() + refused.seconds
            if len(self._until) > _MOST_ADDRESSES:
                self._until.popitem(last=False)


def begin_try(tx: StoreTransaction, name: str, address: str) -> tuple[int, float]:
    """
    Count a try as failed before it is judged, so that tries at the same time count, too.

    @return: the id for L{try_succeeded}, and the seconds to wait before it is judged.
    @raise TooManyTries: there were too many.
    """
    since = tx.now - WINDOW
    tx.execute("DELETE FROM failed_login WHERE at <= ? OR at > ?", (since, tx.now + WINDOW))
    of_both, of_address, of_name, oldest = tx.execute(
        "SELECT coalesce(sum(name = ?1 AND address = ?2), 0), coalesce(sum(address = ?2), 0),"
        " coalesce(sum(name = ?1), 0), min(CASE WHEN address = ?2 THEN at END) FROM failed_login",
        (name, address),
    ).fetchone()
    if of_both >= PER_NAME_AND_ADDRESS or of_address >= PER_ADDRESS:
        raise TooManyTries(max(1, int(oldest - since) + 1), of_address=of_address >= PER_ADDRESS)
    cursor = tx.execute("INSERT INTO failed_login (name, address, at) VALUES (?, ?, ?)", (name, address, tx.now))
    number = cursor.lastrowid or 0
    tx.execute("DELETE FROM failed_login WHERE id <= ?", (number - MOST_ROWS,))
    return number, min(LONGEST_DELAY, 0.2 * max(0, of_name - FREE_PER_NAME))


def try_succeeded(tx: StoreTransaction, name: str, address: str) -> None:
    """Forget the tries of a name from the address from which it has now succeeded."""
    tx.execute("DELETE FROM failed_login WHERE name = ? AND address = ?", (name, address))
