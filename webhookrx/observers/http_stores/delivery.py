"""
The delivery of one batch to an HTTP store: what is sent again, what is divided, what is given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from webhookrx.backoff import parse_retry_after
from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.excerpts import excerpt_of
from webhookrx.observers.http_stores.exchange import CutAnswer, NoAnswer, UnreadableAnswer
from webhookrx.observers.http_stores.store import Finding, Question, Verdict

if TYPE_CHECKING:
    from webhookrx.observers.http_stores.exchange import HTTPAnswer, StoreRequest
    from webhookrx.observers.http_stores.store import HTTPStore, Reading
    from webhookrx.observers.retrying import Retries
    from webhookrx.store_counts import StoreCounts


class Delivery:
    """
    Delivers lines in order, up to the first request that fails.

    @param post: makes a request; raises L{NoAnswer}, or L{Unavailable} where none can be made.
    @param clock: seconds on the monotonic clock.
    @param wall_clock: seconds since the epoch.
    @param quotes: whether what the server says may be quoted: no secret was sent.
    @ivar outcomes: for each line None once it is stored, or why it is not.
    """

    def __init__(
        self,
        store: HTTPStore,
        lines: Sequence[bytes],
        retries: Retries,
        post: Callable[[StoreRequest], HTTPAnswer],
        counts: StoreCounts,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        *,
        quotes: bool,
    ) -> None:
        self.outcomes: list[Exception | None] = [None] * len(lines)
        self._store = store
        self._lines = lines
        self._retries = retries
        self._post = post
        self._counts = counts
        self._clock = clock
        self._wall_clock = wall_clock
        self._quotes = quotes
        self._give_up_at = retries.begin()
        # Places of lines, by request. The first of them loses those that are settled.
        self._waiting: deque[Sequence[int]] = deque(
            range(*ends) for ends in store.limits.cut([len(line) for line in lines])
        )

    def run(self) -> None:
        """
        Deliver all that can be delivered in time.

        @raise Unavailable: no line is stored or refused.
        """
        try:
            while self._waiting:
                question = self._retries.call(self._send, self._give_up_at)
                if question is not None:
                    self._confirm(question)
        except Unavailable as problem:
            places = [place for each in self._waiting for place in each]
            if len(places) == len(self.outcomes):
                raise
            for place in places:
                self.outcomes[place] = problem

    def _send(self) -> Question | None:
        """
        Make the first of the requests that wait, and do what its answer says.

        @return: what is to be asked before these messages are settled.
        @raise Unavailable: some of its messages still wait, and are to be tried again after a pause.
        """
        places = self._waiting[0]
        try:
            answer = self._post(self._store.make([self._lines[place] for place in places]))
            reading = self._store.read(answer, len(places))
        except CutAnswer as error:
            if len(places) == 1:
                raise Unavailable(str(error)) from None
            self._divide()
            return None
        except (NoAnswer, UnreadableAnswer) as error:
            raise Unavailable(str(error)) from None
        if isinstance(reading, Question):
            return reading
        self._settle(answer, reading)
        return None

    def _confirm(self, question: Question) -> None:
        """
        Ask, at least once, until the store has said that it has the messages of the first request that waits.

        @raise Unavailable: it has not said so in time. They are not sent again before the next C{store}: asking is
            what takes the time.
        """
        began = self._clock()
        asked: Question | None = question
        while asked is not None:
            if asked is not question and self._clock() + asked.pause > self._give_up_at:
                raise Unavailable("it has not confirmed in time that the messages are safe")
            self._retries.stopping.wait(asked.pause)
            was_stopping = self._retries.stopping.is_set()
            asked = self._retries.call(partial(self._ask, asked), self._give_up_at)
            if asked is not None and was_stopping:
                raise Unavailable("it has not confirmed that the messages are safe, and the receiver stops")
        self._counts.confirmed(self._clock() - began)

    def _ask(self, question: Question) -> Question | None:
        """
        @return: what is to be asked next; None when the messages are settled.
        @raise Unavailable: the answer does not decide.
        """
        try:
            answer = self._post(question.request)
            reading = question.confirm(answer)
        except (NoAnswer, CutAnswer, UnreadableAnswer) as error:
            raise Unavailable(str(error)) from None
        if isinstance(reading, Question):
            return reading
        self._settle(answer, reading)
        return None

    def _settle(self, answer: HTTPAnswer, reading: Finding | Sequence[Finding]) -> None:
        """
        Do what an answer says of the first request that waits.

        @raise Unavailable: some of its messages are to be tried again after a pause.
        """
        places = self._waiting[0]
        if isinstance(reading, Finding):
            if reading.verdict is Verdict.STORED:
                self._waiting.popleft()
                return
            if reading.verdict is Verdict.REFUSED and len(places) > 1:
                self._divide(reading.suspect)
                return
            findings: Sequence[Finding] = [reading] * len(places)
        elif len(reading) == len(places):
            findings = reading
        else:
            raise Unavailable(f"it answers for {len(reading)} messages of {len(places)}")
        rest: list[int] = []
        later: Finding | None = None
        known = 0
        for place, finding in zip(places, findings, strict=True):
            if finding.verdict is Verdict.REFUSED:
                self.outcomes[place] = Rejected(self._text(answer, reading, finding))
            elif finding.verdict is Verdict.LATER:
                rest.append(place)
                later = later or finding
            elif finding.verdict is Verdict.KNOWN:
                known += 1
        self._counts.known(known)
        if later is None:
            self._waiting.popleft()
            return
        self._waiting[0] = rest
        pause = parse_retry_after(answer.retry_after, self._wall_clock())
        if pause is None:
            pause = later.pause
        raise Unavailable(self._text(answer, reading, later), retry_after=pause)

    def _divide(self, suspect: int | None = None) -> None:
        """Divide the first request that waits: in the middle, or so that one of its messages is alone."""
        places = self._waiting.popleft()
        if suspect is None or not 0 <= suspect < len(places):
            ends = [0, len(places) // 2, len(places)]
        else:
            ends = [0, suspect, suspect + 1, len(places)]
        parts = [places[begin:end] for begin, end in pairwise(ends) if begin < end]
        self._waiting.extendleft(reversed(parts))

    def _text(self, answer: HTTPAnswer, reading: Reading, finding: Finding) -> str:
        """Return one line on a message that is not stored."""
        words = finding.words if self._quotes else b""
        if reading is finding:
            return answer.describe(finding.code, words)
        quoted = excerpt_of(words)
        return f"it answers {finding.code}: {quoted}" if quoted else f"it answers {finding.code}"
