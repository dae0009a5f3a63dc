"""
The delivery of one batch to an HTTP store: what is sent again, what is divided, what is given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from webhookrx.backoff import Backoff, Random, parse_retry_after
from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.http_stores.exchange import CutAnswer, NoAnswer, UnreadableAnswer, excerpt
from webhookrx.observers.http_stores.store import Finding, Question, Verdict

if TYPE_CHECKING:
    from threading import Event

    from webhookrx.observers.http_stores.exchange import HTTPAnswer, StoreRequest
    from webhookrx.observers.http_stores.store import HTTPStore

FIRST_PAUSE = 0.25
"""The bound of the first pause between two tries, in seconds."""
LONGEST_PAUSE = 10.0
"""The largest bound of a pause, in seconds."""


class RetryPauses:
    """
    The pauses between tries, and the C{Retry-After} of a server, which holds for later batches, too.

    @param clock: seconds on the monotonic clock.
    @param wall_clock: seconds since the epoch.
    @param stopping: set when the receiver stops; pauses wait on it.
    """

    def __init__(
        self, clock: Callable[[], float], wall_clock: Callable[[], float], random: Random, stopping: Event
    ) -> None:
        self.clock = clock
        self.random = random
        self.stopping = stopping
        self._wall_clock = wall_clock
        self._not_before = clock()

    def forget(self) -> None:
        """Forget a C{Retry-After}."""
        self._not_before = self.clock()

    def note(self, answer: HTTPAnswer) -> None:
        """Note the end of a C{Retry-After}."""
        seconds = parse_retry_after(answer.retry_after, self._wall_clock())
        if seconds is not None:
            self._not_before = self.clock() + seconds

    def left(self) -> float:
        """Return the seconds that are left of a C{Retry-After}."""
        return max(self._not_before - self.clock(), 0.0)


class _RequestTries:
    """
    The tries of one request.

    @ivar problem: what went wrong last.
    """

    def __init__(self, pauses: RetryPauses, give_up_at: float) -> None:
        self.problem = "it asked for a pause (Retry-After)"
        self._pauses = pauses
        self._give_up_at = give_up_at
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, pauses.random)
        self._pause: float | None = pauses.left() or None

    def begin(self) -> None:
        """
        Wait until the next try may begin.

        @raise Unavailable: the time is over.
        """
        if self._pause is not None:
            if self._pauses.clock() + self._pause > self._give_up_at:
                raise self.given_up()
            self._pauses.stopping.wait(self._pause)
        self._pause = None

    def failed(self, problem: str) -> None:
        """
        Note why a try has failed.

        @raise Unavailable: there is no further one, since the receiver stops.
        """
        self.problem = problem
        # Checked after the request, which may have run for long before the receiver had to stop.
        if self._pauses.stopping.is_set():
            raise self.given_up()
        self._pause = self._backoff.failed(self._pauses.left())

    def pause_for(self, seconds: float) -> None:
        """Wait so long before the next try, without a failure."""
        self._pause = seconds or None

    def given_up(self) -> Unavailable:
        """Return the error."""
        return Unavailable(self.problem, retry_after=self._pauses.left() or None)


class Delivery:
    """
    Delivers lines in order, up to the first request that fails.

    @param post: makes a request; raises L{NoAnswer}, or L{Unavailable} where none can be made.
    @param quotes: whether what the server says may be quoted: no secret was sent.
    @ivar outcomes: for each line None once it is stored, or why it is not.
    @ivar known: how many the store had already.
    """

    def __init__(
        self,
        store: HTTPStore,
        lines: Sequence[bytes],
        pauses: RetryPauses,
        give_up_at: float,
        post: Callable[[StoreRequest], HTTPAnswer],
        *,
        quotes: bool,
    ) -> None:
        self.outcomes: list[Exception | None] = [None] * len(lines)
        self.known = 0
        self._store = store
        self._lines = lines
        self._pauses = pauses
        self._give_up_at = give_up_at
        self._post = post
        self._quotes = quotes
        self._waiting: deque[Sequence[int]] = deque(range(*ends) for ends in store.limits.cut(lines))

    def run(self) -> None:
        """
        Deliver all that can be delivered in time.

        @raise Unavailable: no line is stored or refused.
        """
        while self._waiting:
            try:
                self._deliver()
            except Unavailable as problem:
                places = [place for each in self._waiting for place in each]
                if len(places) == len(self.outcomes):
                    raise
                for place in places:
                    self.outcomes[place] = problem
                return

    def _deliver(self) -> None:
        """
        Deliver the first of the requests that wait, until an answer decides about each of its messages.

        @raise Unavailable: none did; what is undecided still waits.
        """
        places = self._waiting[0]
        tries = _RequestTries(self._pauses, self._give_up_at)
        while True:
            tries.begin()
            try:
                findings = self._ask(places, tries)
            except CutAnswer as error:
                if len(places) > 1:
                    self._divide()
                    return
                tries.failed(str(error))
                continue
            except (NoAnswer, UnreadableAnswer) as error:
                tries.failed(str(error))
                continue
            if findings is None:
                self._divide()
                return
            self._settle(places, findings, tries)
            places = self._waiting[0]
            if not places:
                self._waiting.popleft()
                return

    def _divide(self) -> None:
        places = self._waiting.popleft()
        middle = len(places) // 2
        self._waiting.extendleft((places[middle:], places[:middle]))

    def _ask(self, places: Sequence[int], tries: _RequestTries) -> Sequence[Finding] | None:
        """
        Make a request, and return what was found of each message; None if the request is to be divided.

        @raise CutAnswer: its answer is too long.
        @raise UnreadableAnswer: it can't be read.
        @raise NoAnswer: it did not come.
        @raise Unavailable: an answer was to be confirmed, and was not in time.
        """
        answer = self._post(self._store.make([self._lines[place] for place in places]))
        reading = self._store.read(answer, len(places))
        if isinstance(reading, Question):
            answer, reading = self._confirm(reading, tries)
        findings = [reading] if isinstance(reading, Finding) else reading
        if any(finding.verdict is Verdict.LATER for finding in findings):
            self._pauses.note(answer)
        if isinstance(reading, Finding):
            if reading.verdict is Verdict.REFUSED and len(places) > 1:
                return None
            text = answer.describe(reading.code, reading.words if self._quotes else b"")
            return [replace(reading, code=text)] * len(places)
        if len(reading) != len(places):
            raise UnreadableAnswer(f"it answers for {len(reading)} messages of {len(places)}")
        return [replace(finding, code=self._describe(finding)) for finding in reading]

    def _confirm(self, question: Question, tries: _RequestTries) -> tuple[HTTPAnswer, Finding]:
        """
        Ask until the store has confirmed that it has the messages, or says that it hasn't.

        @raise Unavailable: it did neither in time.
        """
        tries.problem = "it has not confirmed in time that it stored the messages"
        tries.pause_for(question.pause)
        while True:
            tries.begin()
            try:
                answer = self._post(question.request)
                reading = question.confirm(answer)
            except (NoAnswer, CutAnswer, UnreadableAnswer) as error:
                tries.failed(str(error))
                continue
            if isinstance(reading, Finding):
                return answer, reading
            if self._pauses.stopping.is_set():
                raise tries.given_up()
            question = reading
            tries.pause_for(question.pause)

    def _describe(self, finding: Finding) -> str:
        text = f"it answers {finding.code}"
        quoted = excerpt(finding.words) if self._quotes and finding.words else ""
        return f"{text}: {quoted}" if quoted else text

    def _settle(self, places: Sequence[int], findings: Sequence[Finding], tries: _RequestTries) -> None:
        """
        Note what is decided; the rest still waits.

        @raise Unavailable: there is no further try.
        """
        rest: list[int] = []
        problem = ""
        for place, finding in zip(places, findings, strict=True):
            if finding.verdict is Verdict.REFUSED:
                self.outcomes[place] = Rejected(finding.code)
            elif finding.verdict in (Verdict.LATER, Verdict.AGAIN):
                rest.append(place)
                if finding.verdict is Verdict.LATER:
                    problem = problem or finding.code
            elif finding.verdict is Verdict.KNOWN:
                self.known += 1
        self._waiting[0] = rest
        if len(rest) == len(places):
            problem = problem or "it judges none of the messages"
        if problem:
            tries.failed(problem)
