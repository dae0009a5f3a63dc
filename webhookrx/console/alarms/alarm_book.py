"""
The alarm book: all alarms of a console in memory, and every way to change them, each one transaction that is judged
first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import msgspec

from webhookrx.console.alarms.documents import AlarmDocument, built_in_document, judged
from webhookrx.console.alarms.saved_alarms import SavedAlarm, load_alarms, past_alarm, save_alarm
from webhookrx.console.alarms.targets import read_targets
from webhookrx.console.api.problems import CONFLICT, NOT_FOUND, STALE, ApiProblem
from webhookrx.console.store.history import Author, StoreTransaction
from webhookrx.console.store.interface import ConsoleStore
from webhookrx.management.alarm_rules import BUILT_IN_KINDS, DEFAULT_SECONDS, MOST_RULES, AlarmRule

_BUILT_IN: Final = {kind: AlarmRule(kind, kind, DEFAULT_SECONDS[kind]) for kind in BUILT_IN_KINDS}

_Saved: TypeAlias = Mapping[str, SavedAlarm]


class ListedAlarm(msgspec.Struct, frozen=True):
    """
    An alarm as the API shows it.

    @ivar generation: 0 for a built-in alarm that nobody has ever changed.
    @ivar built_in: it is there without anybody having written it.
    @ivar alarm: the document.
    """

    name: str
    generation: int
    built_in: bool
    alarm: AlarmDocument


class AlarmBook:
    """
    The alarms of a console. What it returns is on disk.

    @ivar rules: those in use, the built-in ones first.
    @ivar unusable: the names of those that were saved and can't be used.
    """

    def __init__(self, store: ConsoleStore) -> None:
        self._store = store
        self._saved: _Saved = {}
        self.rules: tuple[AlarmRule, ...] = tuple(_BUILT_IN.values())
        self.unusable: tuple[str, ...] = ()

    async def start(self) -> None:
        """Read all alarms."""
        self._use(await self._store.read(load_alarms))

    def listed(self, name: str) -> ListedAlarm | None:
        """Return an alarm; None if there is none of this name."""
        return _listed(self._saved, name)

    async def create(self, name: str, document: AlarmDocument, author: Author) -> ListedAlarm:
        """
        Save a new alarm.

        @raise ApiProblem: it is wrong, or there is one of this name, or there are too many.
        """

        def write(transaction: StoreTransaction, saved: _Saved) -> None:
            there = _listed(saved, name)
            if there is not None:
                raise ApiProblem(STALE, f"There is an alarm {name} already.", members={"current": there})
            _save(transaction, saved, name, document, author)

        return _there(await self._write(write), name)

    async def change(self, name: str, document: AlarmDocument, author: Author, generation: int) -> ListedAlarm:
        """
        Save another text of an alarm.

        @raise ApiProblem: it is wrong, there is none of this name, or it was changed in the meantime.
        """

        def write(transaction: StoreTransaction, saved: _Saved) -> None:
            _check(saved, name, generation)
            _save(transaction, saved, name, document, author)

        return _there(await self._write(write), name)

    async def delete(self, name: str, author: Author, generation: int) -> None:
        """
        Delete an alarm; a built-in one is then as it was before somebody has written it.

        @raise ApiProblem: nobody has written it, or it was changed in the meantime.
        """

        def write(transaction: StoreTransaction, saved: _Saved) -> None:
            if _check(saved, name, generation).built_in:
                raise ApiProblem(NOT_FOUND, f"Nobody has written the alarm {name}: it is built in.")
            save_alarm(transaction, author, saved.get(name), name, None)

        await self._write(write)

    async def roll_back(self, name: str, author: Author, generation: int) -> ListedAlarm:
        """
        Make an alarm what it was at a generation.

        @raise ApiProblem: there was no such generation, or what was then is wrong now.
        """

        def write(transaction: StoreTransaction, saved: _Saved) -> None:
            try:
                past = past_alarm(transaction.db, name, generation)
            except LookupError:
                raise ApiProblem(NOT_FOUND, "There was no such generation.") from None
            if past is None:
                raise ApiProblem(CONFLICT, "It was deleted at that generation.")
            _save(transaction, saved, name, past, author)

        return _there(await self._write(write), name)

    async def _write(self, work: Callable[[StoreTransaction, _Saved], None]) -> _Saved:
        def write(transaction: StoreTransaction) -> _Saved:
            work(transaction, load_alarms(transaction.db))
            return load_alarms(transaction.db)

        saved = await self._store.write(write)
        self._use(saved)
        return saved

    def _use(self, saved: _Saved) -> None:
        rules, unusable = dict(_BUILT_IN), []
        for name, each in saved.items():
            if each.document is not None:
                try:
                    rules[name] = judged(each.document, name, (each.document.notify,))
                except ApiProblem:
                    unusable.append(name)
        self._saved, self.rules, self.unusable = saved, tuple(rules.values()), tuple(unusable)


def _listed(saved: _Saved, name: str) -> ListedAlarm | None:
    known = saved.get(name)
    generation = 0 if known is None else known.generation
    if known is not None and known.document is not None:
        return ListedAlarm(name, generation, False, known.document)
    return ListedAlarm(name, generation, True, built_in_document(name)) if name in _BUILT_IN else None


def _there(saved: _Saved, name: str) -> ListedAlarm:
    listed = _listed(saved, name)
    assert listed is not None, "it was saved just now"
    return listed


def _check(saved: _Saved, name: str, generation: int) -> ListedAlarm:
    """Return an alarm that somebody has read at a generation."""
    there = _listed(saved, name)
    if there is None:
        raise ApiProblem(NOT_FOUND, f"There is no alarm {name}.")
    if there.generation != generation:
        raise ApiProblem(STALE, f"{name} is at generation {there.generation} now.", members={"current": there})
    return there


def _save(transaction: StoreTransaction, saved: _Saved, name: str, document: AlarmDocument, author: Author) -> None:
    judged(document, name, read_targets(transaction.db))
    before = saved.get(name)
    written = sum(each.document is not None for each in saved.values())
    if (before is None or before.document is None) and written >= MOST_RULES:
        raise ApiProblem(CONFLICT, f"There are up to {MOST_RULES} alarms.")
    save_alarm(transaction, author, before, name, msgspec.structs.replace(document, name=name))
