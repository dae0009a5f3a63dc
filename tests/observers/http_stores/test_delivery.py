"""The delivery of a batch to a store that judges message by message, asks for patience, or says too much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.fake_time import FakeTime
from tests.observers.http_stores.played_http_store import answer, broken, cut
from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers.batch_limits import BatchLimits
from webhookrx.observers.http_stores.delivery import Delivery
from webhookrx.observers.http_stores.exchange import HTTPAnswer, NoAnswer, StoreRequest
from webhookrx.observers.http_stores.store import Finding, HTTPStore, Question, Reading, Verdict
from webhookrx.observers.retrying import Retries
from webhookrx.store_counts import StoreCounts

WORDS = {"ok": Verdict.STORED, "known": Verdict.KNOWN, "bad": Verdict.REFUSED, "busy": Verdict.LATER}

ASK = StoreRequest(b"safe?")


@dataclass(frozen=True, kw_only=True)
class WordStore(HTTPStore):
    """Its answer is a word a message, a word for all, or a number: which one is bad, or 99 for a receipt."""

    def make(self, lines: Sequence[bytes]) -> StoreRequest:
        """Join lines."""
        return StoreRequest(b"".join(lines))

    def read(self, answer: HTTPAnswer, count: int) -> Reading:
        """Read words."""
        words = answer.json()
        if words == 99:
            return Question(ASK, self.confirm, 1.0)
        if isinstance(words, int):
            return Finding(Verdict.REFUSED, "number", suspect=words)
        if isinstance(words, str):
            return Finding(WORDS[words], "all", words)
        return [
            Finding(WORDS.get(word, Verdict.LATER), "item 7", "its words", pause=60.0 if word == "patience" else None)
            for word in words
        ]

    def confirm(self, answer: HTTPAnswer) -> Finding | Question:
        """Read yes, no, or not yet."""
        word = answer.json()
        return Question(ASK, self.confirm, 1.0) if word == "not yet" else Finding(WORDS[word], "asked", word)


class DeliveryCase(SynchronousTestCase):
    """
    Delivers letters.

    @ivar plays: answers to the next requests; afterwards all are stored.
    @ivar sent: the letters of each request.
    """

    def setUp(self) -> None:
        """Make a clock."""
        self.time = FakeTime()
        self.plays: list[object] = []
        self.sent: list[str] = []
        self.serve: Callable[[str], object] = lambda letters: "ok"
        self.counts = StoreCounts()
        self.retries: Retries | None = None
        self.quotes = True

    def post(self, request: StoreRequest) -> HTTPAnswer:
        """Play."""
        letters = request.content.decode()
        self.sent.append(letters)
        self.time.sleep(0.125)
        play = self.plays.pop(0) if self.plays else self.serve(letters)
        if isinstance(play, NoAnswer):
            raise play
        return play if isinstance(play, HTTPAnswer) else answer(200, play)

    def deliver(self, letters: str, *, retry_for: float = 10.0, batch: int = 500) -> str:
        """Deliver, and return what became of each: C{+} stored, C{x} refused, C{?} later."""
        store = WordStore(limits=BatchLimits(batch))
        retries = self.retries = self.retries or Retries(retry_for, self.time, lambda: 1.0, self.time)
        self.delivery = Delivery(
            store,
            [letter.encode() for letter in letters],
            retries,
            self.post,
            self.counts,
            self.time,
            lambda: 0.0,
            quotes=self.quotes,
        )
        self.delivery.run()
        return "".join(
            {type(None): "+", Rejected: "x", Unavailable: "?"}[type(each)] for each in self.delivery.outcomes
        )

    def texts(self) -> list[str]:
        """Return why messages are not stored."""
        return [str(each) for each in self.delivery.outcomes if each is not None]


class ItemTests(DeliveryCase):
    """An answer for each message."""

    def test_settled(self) -> None:
        """What is stored, known or refused is settled with one request: nothing is divided."""
        self.plays = [["ok", "bad", "known", "ok"]]

        self.assertEqual("+x++", self.deliver("abcd"))

        self.assertEqual(["abcd"], self.sent)
        self.assertEqual(["it answers item 7: its words"], self.texts())
        self.assertEqual(1, self.counts.take().known)

    def test_rest(self) -> None:
        """Only those that are to come later are sent again, after a pause, and under the same limits of time."""
        self.plays = [["ok", "busy", "bad", "busy"], ["busy", "ok"]]

        self.assertEqual("++x+", self.deliver("abcd"))

        self.assertEqual(["abcd", "bd", "b"], self.sent)
        self.assertEqual([0.25, 0.5], self.time.waits)

    def test_rest_stays(self) -> None:
        """When the time is over, what is settled stays so; the rest, and what follows, is to come later."""
        self.plays = [["ok", "busy", "bad"]]
        self.serve = lambda letters: ["busy"] * len(letters)

        self.assertEqual("+?x??", self.deliver("abcde", batch=3, retry_for=1.0))

        self.assertEqual(["abc", "b", "b"], self.sent)

    def test_retry_after(self) -> None:
        """A pause that the server asks for holds for the rest, too."""
        self.plays = [answer(503, ["ok", "busy"], retry_after="3")]

        self.assertEqual("++", self.deliver("ab"))

        self.assertEqual([3.0], self.time.waits)

    def test_long_pause(self) -> None:
        """Where an early try does harm, the store asks for a pause itself; later batches keep to it, too."""
        self.plays = [["ok", "patience"]]

        self.assertEqual("+?", self.deliver("ab"))

        left = [each.retry_after for each in self.delivery.outcomes if isinstance(each, Unavailable)]
        self.assertEqual([60.0], left)
        self.time.now += 55.0
        self.assertEqual("++", self.deliver("bc"))
        self.assertEqual([5.0], self.time.waits)

    def test_other_number(self) -> None:
        """An answer for fewer or more messages than were sent settles none of them."""
        for words in (["ok"], ["ok"] * 3, []):
            self.setUp()
            self.plays = [words]

            self.assertEqual("++", self.deliver("ab"))

            self.assertEqual(["ab", "ab"], self.sent)

    def test_nothing_quoted(self) -> None:
        """After a secret was sent, the words of the server are not quoted, but its code is."""
        self.quotes = False
        self.plays = [["bad"]]

        self.assertEqual("x", self.deliver("a"))

        self.assertEqual(["it answers item 7"], self.texts())


class CutTests(DeliveryCase):
    """An answer of which only the beginning is kept."""

    def test_halved(self) -> None:
        """It is never believed: the request is halved until its answers are short enough."""
        self.serve = lambda letters: cut(answer(200, "ok")) if len(letters) > 2 else "ok"

        self.assertEqual("+" * 8, self.deliver("abcdefgh"))

        self.assertEqual(["abcdefgh", "abcd", "ab", "cd", "efgh", "ef", "gh"], self.sent)
        self.assertEqual([], self.time.waits)

    def test_one(self) -> None:
        """With one message it is neither stored nor refused."""
        self.serve = lambda letters: cut(answer(400, "bad"))

        error = self.assertRaises(Unavailable, self.deliver, "a")

        self.assertIn("longer than", str(error))

    def test_broken(self) -> None:
        """One that breaks off decides nothing, and is asked for again as it was."""
        self.plays = [broken(answer(400)), answer(200, b"{")]

        self.assertEqual("++", self.deliver("ab"))

        self.assertEqual(["ab"] * 3, self.sent)


class SuspectTests(DeliveryCase):
    """A request that is refused as a whole, with the place of the message that is bad."""

    def test_alone(self) -> None:
        """That one is sent alone, between those before and those after it, and refused only if it is refused so."""
        self.serve = lambda letters: letters.index("X") if "X" in letters else "ok"

        self.assertEqual("++x+x", self.deliver("abXdX"))

        self.assertEqual(["abXdX", "ab", "X", "dX", "d", "X"], self.sent)

    def test_wrong_number(self) -> None:
        """A number that is wrong costs requests, but no message."""
        for blamed in (0, 1, 4, 5, -1):
            self.setUp()
            self.serve = lambda letters, blamed=blamed: blamed if "X" in letters else "ok"  # type: ignore[misc]

            self.assertEqual("++x++", self.deliver("abXde"))


class ConfirmTests(DeliveryCase):
    """A store that has taken messages, and is asked whether they are safe."""

    def test_confirmed(self) -> None:
        """It is asked, with pauses, until it says yes; nothing is sent twice."""
        self.plays = [99, "not yet", NoAnswer("reset"), "not yet", "ok"]

        self.assertEqual("++", self.deliver("ab"))

        self.assertEqual(["ab", *["safe?"] * 4], self.sent)
        taken = self.counts.take()
        self.assertEqual((1, True), (taken.confirms.count, taken.confirms.sum > 2.0))

    def test_no_time(self) -> None:
        """Without any time to retry it is asked once."""
        self.plays = [99, "ok"]

        self.assertEqual("+", self.deliver("a", retry_for=0.0))

    def test_not_in_time(self) -> None:
        """What is not confirmed in time is not safe, and neither is what follows."""
        self.plays = [99]
        self.serve = lambda letters: "not yet"

        error = self.assertRaises(Unavailable, self.deliver, "abcd", batch=2)

        self.assertIn("not confirmed in time", str(error))
        self.assertEqual(["ab"], [each for each in self.sent if each != "safe?"])
        self.assertLess(self.time.now - 1000.0, 10.5)

    def test_no(self) -> None:
        """As long as the answer is no, it is asked again; it may be refused, too."""
        self.plays = [99, "busy", "ok", 99, "bad", 99, "bad", 99, "ok"]

        self.assertEqual("++x+", self.deliver("abcd", batch=2))

    def test_stopping(self) -> None:
        """Once the receiver stops, it asks once more."""
        self.plays = [99]
        self.serve = lambda letters: "not yet"
        self.time.at(2.5, self.time.set)

        self.assertRaises(Unavailable, self.deliver, "ab")

        self.assertEqual(3, self.sent.count("safe?"))
        self.assertLess(self.time.now - 1000.0, 4.0)
