"""
All taps of one process: what each is shown of the messages and refusals of the sources that it is about.

Where a tap is on, the decision of a source is followed by L{Taps.message}. A message is only looked at while there is
time for that: the answer of its sender waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from webhookrx.errors import Reason
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Accepted, Admission, Dropped, Receipt, Refused
from webhookrx.tapping.masking import Masks
from webhookrx.tapping.tap import Tap
from webhookrx.tapping.tap_request import MOST_JUDGING
from webhookrx.work import TooMuchWork, Work

if TYPE_CHECKING:
    from webhookrx.tapping.view import MessageView, SourceView

MOST_TAPS: Final = 16
"""Taps at one time."""

LOOKING: Final = 0.010
"""Seconds of each second that a process spends on looking at messages."""


class LookingTime:
    """
    The time that a process has for looking at messages. What one look takes too long is taken from later ones.

    @param clock: seconds, of this thread's processor time or the like.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left = LOOKING
        self._then = clock()
        self._begun = 0.0
        self._again = self._then

    def begin(self) -> bool:
        """Begin to look, and return True; return False if there is no time for that."""
        now = self._clock()
        if now < self._again:
            return False
        self._left = min(LOOKING, self._left + (now - self._then) * LOOKING)
        self._then = now
        self._begun = now
        if self._left > 0:
            return True
        self._again = now - self._left / LOOKING
        return False

    def is_over(self) -> bool:
        """Return whether the look that was begun has taken all the time that there is."""
        return self._clock() - self._begun >= self._left

    def end(self) -> None:
        """The look that was begun is over."""
        self._left -= self._clock() - self._begun


class Taps:
    """
    The taps of one process.

    @param clock: seconds on the monotonic clock.
    @ivar active: those that run; empty when nobody taps.
    @ivar masks: what masks all that they show.
    @ivar problem: called once with a traceback when a look has failed, which no sender sees.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
        masks: Masks | None = None,
    ) -> None:
        self.active: tuple[Tap, ...] = ()
        self.problem: Callable[[], object] = _nothing
        self._clock = clock
        self._wall_clock = wall_clock
        self.masks = Masks() if masks is None else masks
        self._time = LookingTime(clock)
        self._views: Mapping[str, SourceView] = {}
        self._taps_of: dict[str, tuple[Tap, ...]] = {}
        self._taps_of_messages: dict[str, tuple[Tap, ...]] = {}
        self._passed: dict[str, int] = {}
        """Messages of each source for which there was no time; their taps have not been told of them yet."""
        self._has_failed = False

    # -- which there are -----------------------------------------------------------------------------------------

    def add(self, tap: Tap) -> None:
        """Have a tap run."""
        tap.catch_up = self._catch_up
        self.active = (*self.active, tap)
        self._settle()

    def remove(self, tap: Tap) -> None:
        """Have a tap run no more, if it does."""
        self.active = tuple(each for each in self.active if each is not tap)
        self._settle()

    def use(self, views: Mapping[str, SourceView]) -> None:
        """
        Use other sources.

        @param views: what taps see of each source, by its name.
        """
        self._views = views
        for tap in self.active:
            tap.keep(views.keys())
        self._settle()

    def is_tapped(self, source: str) -> bool:
        """Tell whether a tap is about the messages of a source."""
        return bool(self._taps_of_messages.get(source))

    @property
    def sees_refusals(self) -> bool:
        """Whether a tap is about refused requests."""
        return any(tap.request.point == "refused" for tap in self.active)

    def _catch_up(self) -> None:
        """Tell taps of the messages for which there was no time: those are counted once for all taps of a source."""
        for source, count in self._passed.items():
            if count:
                self._passed[source] = 0
                for tap in self._taps_of_messages[source]:
                    tap.pass_by(count)

    def _settle(self) -> None:
        self._catch_up()
        work = [(tap, Work(MOST_JUDGING)) for tap in self.active]
        self._taps_of = {
            name: tuple(tap for tap, left in work if tap.is_about(view.name, view.port, view.labels, left))
            for name, view in self._views.items()
        }
        self._taps_of_messages = {
            name: tuple(tap for tap in taps if tap.request.point != "refused") for name, taps in self._taps_of.items()
        }
        self._passed = dict.fromkeys(self._views, 0)

    # -- what passes ---------------------------------------------------------------------------------------------

    def message(
        self,
        source: str,
        head: Head,
        admission: Admission,
        body: bytes,
        receipt: Receipt,
        verdict: Accepted | Dropped | Refused,
    ) -> None:
        """Show a message to those who want to see it. Nothing is raised, and nothing about the message changes."""
        if isinstance(verdict, Refused):
            return  # who reports it says so
        # Asked once for all taps: most messages of a busy receiver end here.
        if not self._time.begin():
            if source in self._passed:
                self._passed[source] += 1
            return
        view: _MaskedView | None = None
        for tap in self._taps_of_messages.get(source, ()):
            tap.counts.seen += 1
            if self._time.is_over():
                # Each tap may look at another point, which takes time of its own.
                tap.counts.not_looked_at += 1
                continue
            try:
                if view is None:
                    shown = self._views[source].view(head, admission, body, receipt, verdict)
                    view = _MaskedView(shown, self.masks)
                self._look(tap, source, view, receipt)
            except Exception:
                tap.counts.not_looked_at += 1
                self._failed()
        self._time.end()

    def _look(self, tap: Tap, source: str, view: _MaskedView, receipt: Receipt) -> None:
        point = tap.request.point
        judged, _ = view.at(point)
        if judged is None:
            return
        # The filter sees what is shown: else it could be asked for a secret, letter by letter.
        query = tap.queries.filter
        if query is not None:
            try:
                if not query.matches(judged):
                    return
            except TooMuchWork:
                tap.counts.not_looked_at += 1
                return
        tap.counts.matched += 1
        if not tap.may_show(self._clock()):
            return
        row: dict[str, Any] = {"row": "message", "id": receipt.id, "at": receipt.received, "source": source}
        has_cut = False
        for name in (point,) if point else ("input", "output"):
            row[name], cut = view.at(name)
            has_cut = has_cut or cut
        tap.show(row | ({"dropped": True} if view.dropped else {}) | ({"cut": True} if has_cut else {}))

    def refused(self, reason: Reason, detail: str, peer: str, method: str, path: str, source: str) -> None:
        """
        Show a refused request.

        @param path: with tokens masked.
        @param source: empty when it is not known yet.
        """
        for tap in self.active:
            if tap.request.point != "refused" or not (source or _is_about_all(tap)):
                continue
            if source and tap not in self._taps_of.get(source, ()):
                continue
            row = {"reason": reason.word, "status": reason.status, "detail": detail, "peer": peer}
            row |= {"method": method[:64], "path": path[:2048], "source": source}
            self._note(tap, row, {"row": "refused", "at": self._wall_clock()})

    def line(self, level: str, namespace: str, text: str) -> None:
        """Show a line of the service's own log."""
        for tap in self.active:
            if tap.request.point == "service":
                row = {"level": level, "namespace": namespace, "text": text[:4096]}
                self._note(tap, row, {"row": "service", "at": self._wall_clock()})

    def _note(self, tap: Tap, row: dict[str, Any], head: dict[str, Any]) -> None:
        tap.counts.seen += 1
        if not self._time.begin():
            tap.counts.not_looked_at += 1
            return
        try:
            shown = self.masks.masked(row)[0]
            query = tap.queries.filter
            if query is not None and not query.matches(shown):
                return
            tap.counts.matched += 1
            if tap.may_show(self._clock()):
                tap.show(head | shown)
        except Exception:
            tap.counts.not_looked_at += 1
            self._failed()
        finally:
            self._time.end()

    def _failed(self) -> None:
        if not self._has_failed:
            self._has_failed = True
            self.problem()


class _MaskedView:
    """
    What all taps see of one message, masked once for each point.

    @ivar dropped: see L{MessageView.dropped}.
    """

    def __init__(self, view: MessageView, masks: Masks) -> None:
        self.dropped = view.dropped
        self._view = view
        self._masks = masks
        self._points: dict[str, tuple[dict[str, Any] | None, bool]] = {}

    def at(self, point: str) -> tuple[dict[str, Any] | None, bool]:
        """Return the message at a point without secrets, None where it does not come by; and whether it was cut."""
        found = self._points.get(point)
        if found is None:
            value = self._view.at(point)
            found = self._points[point] = (None, False) if value is None else self._masks.masked(value)
        return found


def _is_about_all(tap: Tap) -> bool:
    return not tap.request.source and tap.queries.connectors is None


def _nothing() -> None:
    """Do nothing."""
