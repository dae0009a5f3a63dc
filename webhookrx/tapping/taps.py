"""
All taps of one process: what each is shown of the messages and refusals of the sources that it is about.

Where a tap is on, a source decides by L{Taps.looked_at}. A message is only looked at while there is time for that: the
answer of its sender waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from webhookrx.errors import Reason
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Accepted, Admission, Dropped, Judge, Receipt, Refused
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

AT_ONCE: Final = 0.002
"""Seconds of looking that are waited for once there are none left: to begin costs as much again, in cold caches."""


class LookingTime:
    """
    The time that a process has for looking at messages. What one look takes too long is taken from later ones.

    @param clock: seconds, of this thread's processor time or the like.
    @ivar none_before: when by that clock there may be time again, or there was.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left = LOOKING
        self._then = clock()
        self._begun = 0.0
        self.none_before = self._then

    def begin(self) -> bool:
        """Begin to look, and return True; return False if there is no time for that."""
        now = self._clock()
        if now < self.none_before:
            return False
        self._left = min(LOOKING, self._left + (now - self._then) * LOOKING)
        self._then = now
        self._begun = now
        if self._left > 0:
            return True
        self.none_before = now + (AT_ONCE - self._left) / LOOKING
        return False

    def is_over(self) -> bool:
        """Return whether the look that was begun has taken all the time that there is."""
        return self._clock() - self._begun >= self._left

    def end(self) -> None:
        """The look that was begun is over."""
        self._left -= self._clock() - self._begun


class _TappedSource:
    """
    What the taps of one process have to do with one source.

    @ivar view: what they see of it.
    @ivar taps: those that are about it.
    @ivar of_messages: those of them that are about its messages.
    @ivar passed: messages for which there was no time, and of which C{of_messages} have not been told yet.
    """

    __slots__ = ("of_messages", "passed", "taps", "view")

    def __init__(self, view: SourceView) -> None:
        self.view = view
        self.taps: tuple[Tap, ...] = ()
        self.of_messages: tuple[Tap, ...] = ()
        self.passed = 0


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
        self._sources: dict[str, _TappedSource] = {}
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
        self._catch_up()
        for name in self._sources.keys() - views.keys():
            del self._sources[name]
        for name, view in views.items():
            self._sources.setdefault(name, _TappedSource(view)).view = view
        for tap in self.active:
            tap.keep(views.keys())
        self._settle()

    def is_tapped(self, source: str) -> bool:
        """Tell whether a tap is about the messages of a source."""
        found = self._sources.get(source)
        return found is not None and bool(found.of_messages)

    @property
    def sees_refusals(self) -> bool:
        """Whether a tap is about refused requests."""
        return any(tap.request.point == "refused" for tap in self.active)

    def _catch_up(self) -> None:
        """Tell taps of the messages for which there was no time: those are counted once for all taps of a source."""
        for source in self._sources.values():
            if source.passed:
                count, source.passed = source.passed, 0
                for tap in source.of_messages:
                    tap.pass_by(count)

    def _settle(self) -> None:
        self._catch_up()
        work = [(tap, Work(MOST_JUDGING)) for tap in self.active]
        for source in self._sources.values():
            view = source.view
            source.taps = tuple(tap for tap, left in work if tap.is_about(view.name, view.port, view.labels, left))
            source.of_messages = tuple(tap for tap in source.taps if tap.request.point != "refused")

    # -- what passes ---------------------------------------------------------------------------------------------

    def looked_at(self, name: str, judge: Judge) -> Judge:
        """
        Return a decision that is followed by a look at the message. A look raises nothing, and changes nothing about
        the message.

        @param name: that of a source of L{use}.
        """
        source, clock, looking, message = self._sources[name], self._clock, self._time, self._message

        def judged(head: Head, admission: Admission, body: bytes, receipt: Receipt) -> Accepted | Dropped | Refused:
            verdict = judge(head, admission, body, receipt)
            # Who reports what is refused says so.
            if type(verdict) is not Refused:
                # Asked once for all taps: most messages of a busy receiver end here.
                if clock() < looking.none_before:
                    source.passed += 1
                else:
                    message(source, head, admission, body, receipt, verdict)
            return verdict

        return judged

    def _message(
        self,
        source: _TappedSource,
        head: Head,
        admission: Admission,
        body: bytes,
        receipt: Receipt,
        verdict: Accepted | Dropped,
    ) -> None:
        if not self._time.begin():
            source.passed += 1
            return
        view: _MaskedView | None = None
        for tap in source.of_messages:
            tap.counted.seen += 1
            if self._time.is_over():
                # Each tap may look at another point, which takes time of its own.
                tap.counted.not_looked_at += 1
                continue
            try:
                if view is None:
                    view = _MaskedView(source.view.view(head, admission, body, receipt, verdict), self.masks)
                self._look(tap, source.view.name, view, receipt)
            except Exception:
                tap.counted.not_looked_at += 1
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
                tap.counted.not_looked_at += 1
                return
        tap.counted.matched += 1
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
            if source and (source not in self._sources or tap not in self._sources[source].taps):
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
        tap.counted.seen += 1
        if not self._time.begin():
            tap.counted.not_looked_at += 1
            return
        try:
            shown = self.masks.masked(row)[0]
            query = tap.queries.filter
            if query is not None and not query.matches(shown):
                return
            tap.counted.matched += 1
            if tap.may_show(self._clock()):
                tap.show(head | shown)
        except Exception:
            tap.counted.not_looked_at += 1
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
