"""
What every observer of a store or broker keeps to, on top of what every observer does; with a store that is played.
"""

from __future__ import annotations

from typing import Any, cast

from zope.interface.verify import verifyObject

from tests.contracts.played_store import Fate, Outcomes, PlayedStore, Record, Row, fate_of
from tests.contracts.secret_contract import SecretContract
from webhookrx.interfaces import LARGEST_BATCH, ILocalObserver, IStoreObserver, Wants
from webhookrx.settings import Limits

__all__ = ["Fate", "Outcomes", "PlayedStore", "Record", "Row", "StoreContract"]

ANSWER_TIME = Limits().answer_time
HURRY_TIME = 3.0
MiB = 1024 * 1024


class StoreContract(SecretContract):
    """Mix into a C{SynchronousTestCase} that plays the store, see L{PlayedStore}."""

    def test_store_interface(self) -> None:
        """It is the observer of a store, for which the reactor never waits."""
        observer = self.make_observer()

        self.assertTrue(verifyObject(IStoreObserver, observer))
        self.assertFalse(ILocalObserver.providedBy(observer))

    def test_promise_reason(self) -> None:
        """A promise that is weaker than durable has a reason, in one line, and none other has."""
        observer: Any = self.make_observer()
        self.assertEqual(observer.promise == "durable", observer.promise_reason == "")
        self.assertNotIn("\n", observer.promise_reason)
        promised = observer.promise
        observer.open()
        self.assertEqual(promised, observer.promise)
        observer.close()

    def test_wants(self) -> None:
        """What it wants of a spool fits into what a batch may take."""
        wants = cast("Wants | None", cast("Any", self.make_observer()).wants)
        if wants is not None:
            self.assertLessEqual(wants.bytes, LARGEST_BATCH)
            self.assertGreater(min(wants.bytes, wants.messages or 1), 0)
            self.assertGreaterEqual(wants.seconds, 0.0)

    def test_own_ids(self) -> None:
        """Each message is stored under its own id."""
        observer = self.opened()

        self.assertIsNone(self.store(observer, "one", "two"))

        self.assert_stored("one", "two")
        observer.close()

    def test_answers(self) -> None:
        """Each answer means what the table says; what is to come later can be stored once the store is mended."""
        self.assertTrue(self.rows)
        self.assertEqual(self.refuses, any(row.fate == "rejected" for row in self.rows))
        for number, row in enumerate(self.rows):
            with self.subTest(row.name):
                observer = self.opened()
                text = f"message {number}"
                self.answer_with(row.answer)
                fates = self.fates(observer, text)
                self.mended()
                if row.fate == "later":
                    self.assertEqual([], self.deliver(observer, text))
                    self.assertIn(text, self.stored_texts())
                observer.close()

                self.assertEqual([row.fate], fates, row.name)

    def test_answer_to_many(self) -> None:
        """No answer to a batch loses or refuses a message that the same answer would not, had it been alone."""
        for number, row in enumerate(self.rows):
            if row.fate == "later":
                with self.subTest(row.name):
                    observer = self.opened()
                    texts = [f"{number} {letter}" for letter in "abcde"]
                    self.answer_with(row.answer)
                    fates = self.fates(observer, *texts)
                    self.mended()
                    self.deliver(observer, *texts)
                    observer.close()

                    self.assertEqual(["later"] * 5, fates, row.name)
                    self.assertLessEqual({*texts}, {*self.stored_texts()})

    def test_nonsense(self) -> None:
        """An answer that makes no sense is never believed: nothing counts as stored or refused, all is sent again."""
        self.assertTrue(self.nonsense)
        for number, answer in enumerate(self.nonsense):
            with self.subTest(repr(answer)[:200]):
                observer = self.opened()
                texts = [f"{number} {letter}" for letter in "abc"]
                self.answer_with(answer)
                fates = self.fates(observer, *texts)
                self.mended()
                self.assertEqual([], self.deliver(observer, *texts))
                observer.close()

                self.assertEqual(["later"] * 3, fates, repr(answer)[:200])
                self.assertLessEqual({*texts}, {*self.stored_texts()})

    def test_refused_alone(self) -> None:
        """Only what is refused for good is rejected; all others of its batch are stored, in order."""
        if not self.refuses:
            self.assertNotIn("rejected", [row.fate for row in self.rows])
            return
        observer = self.opened()
        self.refuse("BAD")

        refused = self.deliver(observer, "a", "b", "BAD 1", "c", "BAD 2", "d", "e")

        self.assertEqual(["BAD 1", "BAD 2"], refused)
        self.assert_stored("a", "b", "c", "d", "e")
        observer.close()

    def test_answer_lost(self) -> None:
        """When the answer is lost after storing, the same is sent again, under the same id."""
        observer = self.opened()
        self.lose_answer()

        self.assertEqual([], self.deliver(observer, "one", "two", "three"))
        self.assertEqual([], self.deliver(observer, "four"))

        self.assert_stored("one", "two", "three", "four")
        observer.close()

    def test_answer_lost_before_restart(self) -> None:
        """When the receiver ends before the second try, the next one sends it under the same id."""
        first = self.opened()
        self.lose_answer()
        self.time.set()
        self.outcomes(first, "one", "two")
        first.close()
        self.time.clear()
        self.mended()
        second = self.opened()

        self.assertEqual([], self.deliver(second, "one", "two"))

        self.assert_stored("one", "two")
        second.close()

    def test_half_stored(self) -> None:
        """When the store fails in the middle of a batch, all of it is stored in the end, first copies in order."""
        observer = self.opened()
        self.store_half()

        self.assertEqual([], self.deliver(observer, *"abcdef"))

        self.assert_stored(*"abcdef")
        observer.close()

    def test_away(self) -> None:
        """While the store is away each try ends in time, and refuses nothing; once it is back all is stored."""
        observer = self.opened()
        self.break_observer()
        for _ in range(3):
            began = self.time.now
            self.assertEqual(["later"] * 2, self.fates(observer, "one", "two"))
            self.assertLess(self.time.now - began, ANSWER_TIME)
        self.mended()

        self.assertEqual([], self.deliver(observer, "one", "two"))

        self.assert_stored("one", "two")
        observer.close()

    def test_stalls(self) -> None:
        """A store that takes everything and never answers is given up in time, and nothing is lost."""
        observer = self.opened()
        self.stall()
        began = self.time.now
        self.assertEqual(["later"] * 2, self.fates(observer, "one", "two"))
        self.assertLess(self.time.now - began, ANSWER_TIME)
        self.mended()

        self.assertEqual([], self.deliver(observer, "one", "two"))

        self.assert_stored("one", "two")
        observer.close()

    def test_opens_without_store(self) -> None:
        """It opens and reopens while the store is away, without waiting for it."""
        observer = self.make_observer()
        began = self.time.now
        self.break_observer_before_open()
        observer.open()
        observer.reopen()
        self.assertEqual(began, self.time.now)
        self.mended()

        self.assertEqual([], self.deliver(observer, "one"))

        self.assert_stored("one")
        observer.close()

    def break_observer_before_open(self) -> None:
        """Let the store be away already when the observer is opened."""
        self.break_observer()

    def test_hurry_while_away(self) -> None:
        """Told to hurry between two tries, it ends within three seconds."""
        self._hurry_after(self.break_observer)

    def test_hurry_while_stalled(self) -> None:
        """Told to hurry while it waits for an answer, it ends within three seconds."""
        self._hurry_after(self.stall)

    def _hurry_after(self, hinder: Any) -> None:
        for seconds in (0.05, 1.0):
            with self.subTest(seconds):
                observer: Any = self.opened()
                hinder()
                told: list[float] = []

                def hurry(observer: Any = observer, told: list[float] = told) -> None:
                    told.append(self.time.now)
                    observer.hurry()

                self.time.at(seconds, hurry)
                self.assertEqual(["later"] * 2, self.fates(observer, "one", "two"))
                self.assertTrue(told, "it gave up before")
                self.assertLessEqual(self.time.now - told[0], HURRY_TIME)
                began = self.time.now
                self.assertEqual(["later"], self.fates(observer, "three"))
                self.assertLessEqual(self.time.now - began, HURRY_TIME)
                observer.close()
                self.mended()

    def test_open_ends_hurry(self) -> None:
        """Opened again after it was told to hurry, it has its time again."""
        observer: Any = self.opened()
        observer.hurry()
        observer.close()
        observer.open()
        self.lose_answer()

        self.assertEqual([], self.deliver(observer, "one"))

        self.assert_stored("one")
        observer.close()

    def test_large_message(self) -> None:
        """A message of 10 MiB is stored or refused for good, never tried for ever; those beside it are stored."""
        observer = self.opened()
        large = "large " + "x" * (10 * MiB)

        refused = self.deliver(observer, "before", large, "after")

        self.assertEqual(self.large, "rejected" if refused else "stored")
        self.assert_stored("before", *([] if refused else [large]), "after")
        observer.close()

    def test_reasons(self) -> None:
        """
        Whatever it refuses for good, it says why, so that each store has dead letters, for every such answer
        (U{https://www.elastic.co/docs/reference/logstash/dead-letter-queues}: some answers of one store).
        """
        for row in self.rows:
            if row.fate == "rejected":
                with self.subTest(row.name):
                    observer = self.opened()
                    self.answer_with(row.answer)
                    outcomes = self.outcomes(observer, "one", "two")
                    self.mended()
                    observer.close()

                    self.assertEqual(["rejected"] * 2, [fate_of(each) for each in outcomes])
                    self.assertEqual([], [each for each in outcomes if not str(each).strip()])

    def test_short_texts(self) -> None:
        """What is said of a failure has at most a few hundred characters, in one line."""
        for row in self.rows:
            if row.fate != "stored":
                observer = self.opened()
                self.answer_with(row.answer)
                for outcome in self.outcomes(observer, "one"):
                    self.assertLess(len(str(outcome)), 500, row.name)
                    self.assertNotIn("\n", str(outcome), row.name)
                self.mended()
                observer.close()
