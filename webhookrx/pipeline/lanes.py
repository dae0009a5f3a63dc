"""
The lanes of a chain, one for each observer: opened, looked after, exchanged and closed together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from twisted.logger import Logger

from webhookrx.errors import ConfigError
from webhookrx.interfaces import IMessageObserver
from webhookrx.pipeline.group_commit import Lane, LaneState

_log = Logger()

_STRENGTHS = {"queued": 0, "written": 1, "durable": 2}

#: Told that observers were exchanged; or why not, and then the old ones go on.
Exchanged = Callable[[ConfigError | None], None]


class Lanes:
    """
    The lanes to a changing set of observers.

    @param observers: at least one, each once; not open yet.
    @param make_lane: makes the lane of an observer from it and a number that no other lane has had.
    @param patience: seconds that a C{store} may run, and that an exchange waits for it.
    @ivar current: lanes that messages are for, in the order of the observers.
    """

    def __init__(
        self,
        observers: Sequence[IMessageObserver],
        make_lane: Callable[[IMessageObserver, int], Lane],
        patience: float,
    ) -> None:
        self.patience = patience
        self._make_lane = make_lane
        self._made = 0
        self.current = [self._make(observer) for observer in check_observers(observers)]
        self._open: list[Lane] = []  # also those that only have something left to store
        self._leaving: list[Lane] = []
        self._wanted: Sequence[IMessageObserver] = ()
        self._exchanged: Exchanged | None = None
        self._leave_until = 0.0
        self._stopped: Callable[[], None] | None = None

    def start(self) -> None:
        """
        Open the observers and start their workers.

        @raise ConfigError: an observer can't be opened; those before it are closed again.
        """
        self._begin(self.current)

    def reopen(self) -> None:
        """Let all observers close and open anew by name, each between two of its batches."""
        for lane in self.current:
            lane.reopen()

    def look(self, now: float) -> None:
        """Give up on observers that don't answer; called now and then."""
        for lane in list(self._open):
            lane.look(now, self.patience)
        if self._exchanged is not None and now >= self._leave_until:
            for lane in self._staying_away():
                _log.error("Observer {spec} is not waited for any longer", spec=lane.observer.spec)
                lane.give_up()
            self._exchange()

    def exchange(self, observers: Sequence[IMessageObserver], now: float, exchanged: Exchanged) -> None:
        """
        Have lanes to exactly these observers. One that is there already keeps its lane, as it is.

        Nothing may be submitted until C{exchanged} is called, which may be at once. The others first store what was
        submitted to them and are closed, so that a new observer can open the same file, under the same lock.
        One that takes longer than C{patience} is left to itself: it is closed when it is done.

        @param observers: at least one, each once.
        """
        self._wanted = check_observers(observers)
        staying = {id(observer) for observer in observers}
        self._leaving = [lane for lane in self.current if id(lane.observer) not in staying]
        self._leave_until = now + self.patience
        self._exchanged = exchanged
        for lane in self._leaving:
            lane.hurry()
            lane.stop(partial(self._closed, lane))
        self._proceed()

    def stop(self, stopped: Callable[[], None]) -> None:
        """Store what was submitted, close the observers, and then call C{stopped}. No exchange is under way."""
        self._stopped = stopped
        for lane in list(self._open):
            lane.hurry()
            lane.stop(partial(self._closed, lane))
        self._proceed()

    def states(self, now: float) -> list[LaneState]:
        """Tell how each observer is doing."""
        return [lane.state(now) for lane in self.current]

    def weaker_than(self, ack: str) -> list[str]:
        """Return a warning for each observer whose word means less than C{ack}, the C{--ack} level, says."""
        return [
            f"--ack {ack} is more than observer {observer.spec} can promise: "
            f"its word means {observer.promise!r}, so a 200 means no more than that"
            for observer in (lane.observer for lane in self.current)
            if _STRENGTHS.get(observer.promise, 0) < _STRENGTHS[ack]
        ]

    def _make(self, observer: IMessageObserver) -> Lane:
        self._made += 1
        return self._make_lane(observer, self._made - 1)

    def _begin(self, lanes: list[Lane]) -> None:
        """Open and start them all, or none."""
        opened: list[Lane] = []
        for lane in lanes:
            try:
                lane.open()
            except ConfigError:
                for other in opened:
                    other.close()
                raise
            opened.append(lane)
        for lane in lanes:
            lane.start()
        self._open += lanes

    def _closed(self, lane: Lane) -> None:
        self._open.remove(lane)
        self._proceed()

    def _staying_away(self) -> list[Lane]:
        """Return lanes that should have closed and have not."""
        return [lane for lane in self._leaving if lane in self._open]

    def _proceed(self) -> None:
        """Go on with what waits for lanes to close, if it has waited long enough."""
        if self._exchanged is not None and not self._staying_away():
            self._exchange()
        if self._stopped is not None and not self._open:
            stopped, self._stopped = self._stopped, None
            stopped()

    def _exchange(self) -> None:
        """The old lanes are out of the way: open the new ones, or go back."""
        # By identity: an observer may be equal to another one, or have no hash.
        known = {id(lane.observer): lane for lane in self.current}
        added = {id(observer): self._make(observer) for observer in self._wanted if id(observer) not in known}
        problem: ConfigError | None = None
        try:
            self._begin(list(added.values()))
        except ConfigError as error:
            problem = error
            self._go_back()
        else:
            lanes = known | added
            self.current = [lanes[id(observer)] for observer in self._wanted]
        exchanged, self._exchanged, self._leaving, self._wanted = self._exchanged, None, [], ()
        assert exchanged is not None
        exchanged(problem)

    def _go_back(self) -> None:
        """Let the lanes that were to go stay."""
        for lane in self._leaving:
            if lane in self._open:
                lane.stay()
            else:
                lane.start_again()
                self._open.append(lane)


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
