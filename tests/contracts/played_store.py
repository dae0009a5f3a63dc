"""
A store or broker that is played, and what tests ask of it.

It is the test's own: it takes the place of the client library, or of what sends over a socket.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from tests.contracts.fake_time import FakeTime
from tests.contracts.observer_contract import ObserverContract
from webhookrx.errors import Rejected
from webhookrx.message.message import Message
from webhookrx.testing import make_message

#: What becomes of a message: the store has it, refuses it for good, or is to be asked again.
Fate: TypeAlias = Literal["stored", "rejected", "later"]
Outcomes: TypeAlias = Sequence[Exception | None]

LONG_TIME = 3600.0
"""Seconds after which no pause lasts that a store or a backoff has asked for."""


class Row(NamedTuple):
    """
    A row of the table of a store's answers.

    @ivar name: what the documentation of the store calls it.
    @ivar answer: what L{PlayedStore.answer_with} takes.
    """

    name: str
    answer: Any
    fate: Fate


class Record(NamedTuple):
    """A copy of a message in the store: its id there, and its C{MESSAGE}."""

    id: str
    text: str


class PlayedStore(ObserverContract):
    """
    Mix into a C{SynchronousTestCase} that says how to make the observer, and how to play its store.

    Each observer is made on C{self.time}: it is the clock, and the event that C{hurry} sets. The store lets time go by
    with C{self.time.sleep}. C{random} is to return 1: pauses are as long as they may be.

    @cvar rows: each answer of the store that the docs list, and what it means for a message.
    @cvar nonsense: answers that the store never gives, as for C{answer_with}: cut, of another type, for another number
        of messages.
    @cvar once: whether the store keeps a message once that is sent twice under the same id.
    @cvar refuses: whether there is an answer that refuses a message for good.
    @cvar large: what becomes of a message of 10 MiB.
    @cvar has_secret: whether a file may hold a secret for the store.
    """

    rows: Sequence[Row]
    nonsense: Sequence[Any]
    once = True
    refuses = True
    large: Fate = "stored"
    has_secret = True

    # -- to be played ------------------------------------------------------------------------------------------------

    def stored_records(self) -> list[Record]:
        """Return each copy of a message that the store holds, in the order in which they came."""
        raise NotImplementedError

    def answer_with(self, answer: Any) -> None:
        """
        Give this one answer to each request from now on. Only a "stored" one goes with storing the messages.

        @param answer: of a L{Row}, or of C{nonsense}.
        """
        raise NotImplementedError

    def mend(self) -> None:
        """Let the store do as it should from now on, whatever was told before."""
        raise NotImplementedError

    def lose_answer(self) -> None:
        """Store the next batch or request, and lose the answer: the connection breaks, or nothing comes in time."""
        raise NotImplementedError

    def store_half(self) -> None:
        """
        Fail in the middle of the next batch: the beginning of it is stored and the rest isn't, as far as this store
        can do that. Later batches are stored.
        """
        raise NotImplementedError

    def stall(self) -> None:
        """Take requests from now on, store nothing, and answer none."""
        raise NotImplementedError

    def refuse(self, text: str) -> None:
        """Refuse for good each message with this text in it from now on; others are stored."""
        raise NotImplementedError

    def make_secret_observer(self, path: str) -> Any:
        """Make an observer that reads its secret from this file and is not open yet."""
        raise NotImplementedError

    def write_secret(self, path: str, secret: str) -> None:
        """Write the file, in the form that the store's secrets have."""
        with open(path, "w") as file:
            file.write(f"{secret}\n")
        os.chmod(path, 0o600)

    def shown_secret(self) -> str:
        """Return the secret that came with the last request, or with the connection that carried it."""
        raise NotImplementedError

    def quote_secret(self) -> None:
        """
        Fail each request from now on with an error, of the store or of its library, that quotes the secret that was
        shown, as it came and as it was encoded.
        """
        raise NotImplementedError

    # -- for use in tests ----------------------------------------------------------------------------------------------

    def setUp(self) -> None:
        """Make the clock."""
        super().setUp()
        self.time = FakeTime()

    def stored_texts(self) -> list[str]:
        """Return the text of each copy."""
        return [record.text for record in self.stored_records()]

    def message(self, text: str) -> Message:
        """Make a message with an id of its own, see L{id_of}."""
        return make_message(text, {"RCPTID": self.id_of(text)})

    def id_of(self, text: str) -> str:
        """Return the id of the message with this text."""
        digits = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{digits[:12]}-{digits[12:20]}-{int(digits[20:28], 16):010d}"

    def store(self, observer: Any, *texts: str) -> Outcomes | None:
        """Prepare and store a batch of messages with these texts."""
        return cast("Outcomes | None", observer.store([observer.prepare(self.message(text)) for text in texts]))

    def outcomes(self, observer: Any, *texts: str) -> list[Exception | None]:
        """Store a batch, and return what became of each message."""
        try:
            outcomes = self.store(observer, *texts)
        except Exception as error:
            return [error] * len(texts)
        if outcomes is None:
            return [None] * len(texts)
        self.assertEqual(len(texts), len(outcomes))
        return list(outcomes)

    def fates(self, observer: Any, *texts: str) -> list[Fate]:
        """Store a batch, and return the fate of each message."""
        return [fate_of(outcome) for outcome in self.outcomes(observer, *texts)]

    def deliver(self, observer: Any, *texts: str, tries: int = 8) -> list[str]:
        """
        Offer a batch as a spool does, until no message is left.

        @return: the texts that were refused for good.
        """
        left = list(texts)
        refused: list[str] = []
        for _ in range(tries):
            if left:
                fates = self.fates(observer, *left)
                refused += [text for text, fate in zip(left, fates, strict=True) if fate == "rejected"]
                left = [text for text, fate in zip(left, fates, strict=True) if fate == "later"]
                self.time.now += LONG_TIME if left else 0.0
        self.assertEqual([], left, f"not stored after {tries} tries")
        return refused

    def mended(self) -> None:
        """Mend the store, and let every pause end that it has asked for."""
        self.mend()
        self.time.now += LONG_TIME

    def assert_stored(self, *texts: str) -> None:
        """The store has each of these and no other, first copies in order, under their own ids; once if it keeps so."""
        records = self.stored_records()
        self.assertEqual(list(texts), list(dict.fromkeys(record.text for record in records)))
        self.assertEqual({(self.id_of(text), text) for text in texts}, {tuple(record) for record in records})
        if self.once:
            self.assertEqual(len(texts), len(records))


def fate_of(outcome: Exception | None) -> Fate:
    """Return what an entry of C{store} says of its message."""
    if outcome is None:
        return "stored"
    return "rejected" if isinstance(outcome, Rejected) else "later"
