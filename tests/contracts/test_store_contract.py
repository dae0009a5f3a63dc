"""The contract of stores: an observer that keeps to it passes, and each that lies, loses or tells a secret fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

from twisted.trial.reporter import TestResult
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from tests.contracts.fake_time import FakeTime
from tests.contracts.store_contract import Fate, Record, Row, StoreContract
from webhookrx.errors import ConfigError, Rejected, Unavailable
from webhookrx.interfaces import IStoreObserver
from webhookrx.message.encoders import encode_line
from webhookrx.message.message import Message
from webhookrx.store_counts import StoreCounts

ANSWERS = {"ok": "stored", "bad": "rejected", "busy": "later"}


class PlainStore:
    """Takes messages one by one, unless told otherwise; an answer is a word of C{ANSWERS}."""

    def __init__(self, time: FakeTime) -> None:
        self.time = time
        self.records: list[Record] = []
        self.plays: list[Callable[[str], Any]] = []
        self.play: Callable[[str], Any] | None = None
        self.refused = ""
        self.secret = ""

    def take(self, line: bytes, secret: str) -> Any:
        """Take a message and return the answer."""
        self.secret = secret
        values = json.loads(line)
        play = self.plays.pop(0) if self.plays else self.play
        if play is not None:
            return play(line.decode())
        if self.refused and self.refused in values["MESSAGE"]:
            return "bad"
        record = Record(values["RCPTID"], values["MESSAGE"])
        if record not in self.records:
            self.records.append(record)
        return "ok"


@implementer(IStoreObserver)
class PlainObserver:
    """Brings messages to a L{PlainStore}, each until the answer decides, for ten seconds."""

    spec = "plain:"
    promise = "durable"
    promise_reason = ""
    takes_lines = True
    wants = None

    def __init__(self, store: PlainStore, time: FakeTime, path: str = "") -> None:
        self.counts = StoreCounts()
        self._store = store
        self._time = time
        self._path = path

    def open(self) -> None:
        """Read the secret."""
        self._time.clear()
        self.reopen()

    def prepare(self, message: Message) -> bytes:
        """Make a line."""
        return encode_line(message)

    def store(self, batch: Sequence[bytes]) -> list[Exception | None] | None:
        """Bring each, up to the first for which the store has no time."""
        outcomes: list[Exception | None] = []
        for line in batch:
            outcomes.append(self.bring(line))
            if isinstance(outcomes[-1], Unavailable):
                outcomes += outcomes[-1:] * (len(batch) - len(outcomes))
                break
        return outcomes if any(outcomes) else None

    def bring(self, line: bytes) -> Exception | None:
        """Bring one."""
        give_up_at = self._time() + 10.0
        while True:
            try:
                answer = self._store.take(line, self._secret())
            except ConnectionError as error:
                answer = self.describe(error)
            if (fate := self.read(answer)) != "later":
                return None if fate == "stored" else Rejected("it refuses the message")
            if self._time.is_set() or self._time() > give_up_at:
                return Unavailable(f"it answers {str(answer)[:100]}")
            self._time.wait(0.5)

    def describe(self, error: ConnectionError) -> str:
        """Name an error."""
        return type(error).__name__

    def read(self, answer: Any) -> Fate:
        """Return what an answer means."""
        return cast("Fate", ANSWERS.get(answer, "later")) if isinstance(answer, str) else "later"

    def hurry(self) -> None:
        """Stop waiting."""
        self._time.set()

    def reopen(self) -> None:
        """Read the secret again."""
        if self._path:
            try:
                with open(self._path) as file:
                    secret = file.read().strip()
            except OSError:
                raise ConfigError("its file can't be read") from None
            self._secret = lambda: secret
        else:
            self._secret = str

    def close(self) -> None:
        """Do nothing."""


class PlainTests(StoreContract, SynchronousTestCase):
    """An observer that keeps to the contract."""

    rows = (Row("ok", "ok", "stored"), Row("bad", "bad", "rejected"), Row("busy", "busy", "later"))
    nonsense = ("", None, 7, "okay", ["ok"])
    observer_class: type[PlainObserver] = PlainObserver

    def setUp(self) -> None:
        """Make a store."""
        super().setUp()
        self.played = PlainStore(self.time)

    def make_observer(self) -> PlainObserver:
        """Make one."""
        return self.observer_class(self.played, self.time)

    def make_secret_observer(self, path: str) -> PlainObserver:
        """Make one with a file."""
        return self.observer_class(self.played, self.time, path)

    def break_observer(self) -> None:
        """Refuse connections."""
        self.played.play = self._reset

    def stored_records(self) -> list[Record]:
        """Ask the store."""
        return self.played.records

    def answer_with(self, answer: Any) -> None:
        """Answer so."""
        self.played.play = lambda line: answer

    def mend(self) -> None:
        """Forget all plays."""
        self.played.plays, self.played.play, self.played.refused = [], None, ""

    def lose_answer(self) -> None:
        """Take it, and break."""
        self.played.plays = [self._take_and_reset]

    def store_half(self) -> None:
        """Take three, and break."""
        self.played.plays = [cast("Any", None)] * 3 + [self._reset]

    def stall(self) -> None:
        """Answer nothing for two seconds."""
        self.played.play = self._stall

    def refuse(self, text: str) -> None:
        """Refuse it."""
        self.played.refused = text

    def shown_secret(self) -> str:
        """Ask the store."""
        return self.played.secret

    def quote_secret(self) -> None:
        """Quote it."""
        self.played.play = self._quote

    def _reset(self, line: str) -> None:
        raise ConnectionResetError("reset")

    def _take_and_reset(self, line: str) -> None:
        self.played.take(line.encode(), self.played.secret)
        raise ConnectionResetError("reset")

    def _stall(self, line: str) -> None:
        self.time.sleep(2.0)
        raise ConnectionResetError("nothing came")

    def _quote(self, line: str) -> None:
        raise ConnectionResetError(f"bad password {self.played.secret!r}")


class Believing(PlainObserver):
    """Takes any word for a yes."""

    def read(self, answer: Any) -> Fate:
        """Look for a no only."""
        return "stored" if answer not in ("bad", "busy") else super().read(answer)


class Dropping(PlainObserver):
    """Takes a busy store for one that refuses."""

    def read(self, answer: Any) -> Fate:
        """Give up at once."""
        return "rejected" if answer == "busy" else super().read(answer)


class Silent(PlainObserver):
    """Refuses messages, and does not say why."""

    def bring(self, line: bytes) -> Exception | None:
        """Leave the reason out."""
        outcome = super().bring(line)
        return Rejected() if isinstance(outcome, Rejected) else outcome


class Telling(PlainObserver):
    """Repeats what a library said."""

    def describe(self, error: ConnectionError) -> str:
        """Quote it."""
        return str(error)


class Patient(PlainObserver):
    """Is not told that the receiver stops."""

    def hurry(self) -> None:
        """Do nothing."""


class Forgetful(PlainObserver):
    """Does not read its secret again."""

    def reopen(self) -> None:
        """Read it once."""
        if not hasattr(self, "_secret"):
            super().reopen()


class Renaming(PlainObserver):
    """Gives a message another id each time."""

    count = 0

    def prepare(self, message: Message) -> bytes:
        """Count."""
        Renaming.count += 1
        return encode_line(Message({**message.values, "RCPTID": str(self.count)}, message.received))


class FaultyTests(SynchronousTestCase):
    """What the contract notices."""

    def failing(self, observer: type[PlainObserver]) -> set[str]:
        """Return the tests that this one does not pass."""
        result = TestResult()
        for name in dir(PlainTests):
            if name.startswith("test_"):
                case = PlainTests(name)
                case.observer_class = observer
                case.run(result)
        return {case.id().rpartition(".")[2] for case, _ in [*result.failures, *result.errors]}

    def test_notices(self) -> None:
        """Each kind of fault fails the tests that are about it, and no fault fails none."""
        for observer, tests in (
            (PlainObserver, set()),
            (Believing, {"test_nonsense", "test_away", "test_stalls"}),
            (Dropping, {"test_answers", "test_answer_to_many"}),
            (Silent, {"test_reasons"}),
            (Telling, {"test_secret_in_no_text"}),
            (Patient, {"test_hurry_while_away", "test_hurry_while_stalled"}),
            (Forgetful, {"test_secret", "test_secret_gone"}),
            (Renaming, {"test_own_ids", "test_answer_lost", "test_answer_lost_before_restart"}),
        ):
            with self.subTest(observer.__name__):
                failing = self.failing(cast("type[PlainObserver]", observer))
                self.assertLessEqual(tests, failing)
                if not tests:
                    self.assertEqual(set(), failing)
