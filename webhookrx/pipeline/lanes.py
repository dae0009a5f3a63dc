"""
The lanes of a chain, one for each observer: opened, ticked, exchanged and closed together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from webhookrx.errors import ConfigError
from webhookrx.pipeline.lane import NO_ANSWER, Lane, LaneLife
from webhookrx.promises import weaknesses

if TYPE_CHECKING:
    from webhookrx.interfaces import IMessageObserver, LaneStatus

_log = Logger()


class Lanes:
    """
    The lanes to a changing set of observers.

    @param observers: at least one, each once; not open yet.
    @param make_lane: makes the lane of an observer from it and a number that no other lane has had.
    @param answer_time: seconds that a C{store} may run, and that each step of an exchange may take.
    @param monotonic: seconds on a clock that nobody sets.
    @ivar current: the lanes that get messages, in the order of the observers.
    """

    def __init__(
        self,
        observers: Sequence[IMessageObserver],
        make_lane: Callable[[IMessageObserver, int], Lane],
        answer_time: float,
        monotonic: Callable[[], float],
    ) -> None:
        self.answer_time = answer_time
        self._make_lane = make_lane
        self._monotonic = monotonic
        self._made = 0
        self.current = [self._make(observer) for observer in check_observers(observers)]
        self._living: list[Lane] = []  # all that are not closed, also those that leave and have something left to store
        self._awaited: list[Lane] = []
        self._await_until = 0.0
        self._at_rest: Deferred[None] | None = None
        self._stopped: Callable[[], None] | None = None

    def start(self) -> None:
        """
        Open the observers and start their threads.

        @raise ConfigError: an observer can't be opened; those before it are closed again.
        """
        for number, lane in enumerate(self.current):
            try:
                lane.open()
            except ConfigError:
                for other in self.current[:number]:
                    other.close()
                raise
        for lane in self.current:
            lane.start()
        self._living += self.current

    def reopen(self) -> None:
        """Let all observers close and open anew by name, each between two of its batches."""
        for lane in self.current:
            lane.reopen()

    def tick(self, now: float) -> None:
        """Give up on observers that don't answer, and try again to open those that could not be."""
        for lane in list(self._living):
            lane.tick(now, self.answer_time)
        self.proceed()

    async def exchange(self, observers: Sequence[IMessageObserver]) -> None:
        """
        Have lanes to exactly these observers. One that is there already keeps its lane, as it is.

        Submit nothing until this is done, which may be at once. Observers that leave first store what was submitted to
        them and are closed, so that a new observer can open the same file, under the same lock. The exchange does not
        wait for a stalled one, nor for any longer than C{answer_time}: that one is closed when its C{store} is back.

        @param observers: at least one, each once.
        @raise ConfigError: a new observer can't be opened. All new ones are closed, and the old ones stay.
        """
        # By identity: an observer may be equal to another one, or have no hash.
        known = {id(lane.observer): lane for lane in self.current}
        lanes = [known.get(id(observer)) or self._make(observer) for observer in check_observers(observers)]
        leaving = [lane for lane in self.current if lane not in lanes]
        await self._close(leaving)
        try:
            await self._open([lane for lane in lanes if lane not in self.current])
        except ConfigError:
            await self._take_back(leaving)
            raise
        self.current = lanes

    def stop(self, stopped: Callable[[], None]) -> None:
        """Store what was submitted, close the observers, and then call C{stopped}. No exchange is under way."""
        self._stopped = stopped
        for lane in list(self._living):
            lane.stop()
        self.proceed()

    def proceed(self) -> None:
        """Go on with an exchange or a stop that waits for lanes, if it can; called when one has come to rest."""
        self._living = [lane for lane in self._living if lane.life is not LaneLife.CLOSED]
        if self._at_rest is not None and (not self._restless() or self._monotonic() >= self._await_until):
            at_rest, self._at_rest = self._at_rest, None
            at_rest.callback(None)
        if self._stopped is not None and not self._living:
            stopped, self._stopped = self._stopped, None
            stopped()

    def give_up(self) -> None:
        """Fail all messages that observers have not stored by now."""
        for lane in list(self._living):
            lane.give_up()

    def statuses(self, now: float) -> list[LaneStatus]:
        """Return the status of each observer."""
        return [lane.status(now) for lane in self.current]

    def weaker_than(self, ack: str) -> list[str]:
        """Return a warning for each observer that promises less than C{ack}, the C{--ack} level, or than its spool."""
        return [sentence for lane in self.current for sentence in weaknesses(lane.observer, ack)]

    def _make(self, observer: IMessageObserver) -> Lane:
        self._made += 1
        return self._make_lane(observer, self._made - 1)

    async def _close(self, lanes: list[Lane]) -> None:
        awaited = [lane for lane in lanes if not lane.is_stalled]
        for lane in lanes:
            lane.stop()
        await self._rest_of(awaited)
        for lane in lanes:
            if lane.life is not LaneLife.CLOSED:
                _log.error("No longer waiting for observer {spec}", spec=lane.observer.spec)
                lane.give_up()

    async def _open(self, lanes: list[Lane]) -> None:
        """
        Open all of them, or none.

        @raise ConfigError: why none.
        """
        self._living += lanes
        for lane in lanes:
            lane.begin()
        late = await self._rest_of(lanes)
        failed = [lane for lane in lanes if lane.life is not LaneLife.OPEN]
        if failed:
            for lane in lanes:
                lane.stop()
            await self._rest_of([lane for lane in lanes if lane not in late])
            first = failed[0]
            raise first.problem or ConfigError(f"observer {first.observer.spec} can't be opened: {NO_ANSWER}")

    async def _take_back(self, lanes: list[Lane]) -> None:
        """Undo the stop of lanes that were to leave."""
        closed = [lane for lane in lanes if lane.life is LaneLife.CLOSED]
        self._living += closed
        for lane in lanes:
            lane.stay()
        # The others have had their time already.
        for lane in await self._rest_of(closed):
            lane.give_up()

    async def _rest_of(self, lanes: list[Lane]) -> list[Lane]:
        """Wait until all of these have come to rest, C{answer_time} at most; return those that have not."""
        self._awaited = lanes
        self._await_until = self._monotonic() + self.answer_time
        if self._restless():
            self._at_rest = Deferred()
            await self._at_rest
        return self._restless()

    def _restless(self) -> list[Lane]:
        return [lane for lane in self._awaited if not lane.life.is_at_rest]


def check_observers(observers: Sequence[IMessageObserver]) -> list[IMessageObserver]:
    """
    Return the observers.

    @raise ValueError: there is none, or one of them twice.
    """
    if not observers:
        raise ValueError("a chain needs an observer")
    if len({id(observer) for observer in observers}) < len(observers):
        raise ValueError("an observer can be in a chain only once")
    return list(observers)
