"""
The rulebook: all rules of a console in memory, and every way to change them, each one transaction that is judged first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn

import msgspec

from webhookrx.console.api.problems import CONFLICT, INVALID, NOT_FOUND, STALE, ApiFinding, ApiProblem, findings_of
from webhookrx.console.api.table import fits_path
from webhookrx.console.rules.saved import (
    KnownRules,
    SavedRules,
    UnsavedRule,
    entries_at,
    load_rules,
    past_entry,
    save_rules,
    unsaved_rule,
)
from webhookrx.console.store.history import Author, StoreTransaction
from webhookrx.console.store.interface import ConsoleStore
from webhookrx.diagnostics import Diagnostic, diagnose, in_order, quoted_short
from webhookrx.management.rule_changes import (
    PUSH,
    UI,
    ManagedRule,
    PushOutcome,
    PushPlan,
    RuleUpdate,
    field_changes,
    plan_push,
    three_way,
)
from webhookrx.management.rule_documents import document_of, texts_as_written
from webhookrx.router.rules.checks import RuleMatch, clashes, long_names
from webhookrx.router.rules.rule import Host, Rule, connector_name
from webhookrx.router.rules.rules_file import RulesReading, read_rule, read_rules
from webhookrx.router.rules.selectors import Selectors

FILE: Final = "rules.yaml"
"""What a file is called in what is wrong with it."""

Routers = Callable[[], Sequence[Host]]


class PushRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A push of a whole file, see L{plan_push}. C{dry_run}: do all of it and undo it."""

    manager: str
    prune: bool = False
    take_over: bool = False
    dry_run: bool = False
    note: str = ""


class RollbackPlan(msgspec.Struct, frozen=True):
    """
    What rolling all rules back to a revision would do, by the names of rules.

    @ivar revision: of the rules now.
    @ivar updates: those that differ in their text or manager alone have no changes of fields.
    @ivar findings: why it can't be done.
    """

    revision: int
    creates: tuple[str, ...]
    updates: tuple[RuleUpdate, ...]
    deletes: tuple[str, ...]
    findings: tuple[ApiFinding, ...]


class _DryRun(Exception):
    """Undoes the transaction of a dry run."""


class Rulebook:
    """
    The rules of a console. What it returns is on disk.

    @param routers: the routers that are known, as selectors see them; called in the store's thread, on plain values.
    @ivar saved: all rules, as they were after the newest change.
    @ivar changed: called in the reactor with C{saved} after each change.
    """

    def __init__(self, store: ConsoleStore, routers: Routers = tuple) -> None:
        self._store = store
        self._routers = routers
        self._known: KnownRules = {}
        """For the writing thread alone."""
        self.saved = SavedRules(0, {})
        self.changed: list[Callable[[SavedRules], object]] = []

    async def start(self) -> None:
        """Read all rules."""
        self._publish(await self._store.write(lambda transaction: load_rules(transaction.db, self._known)))

    def tick(self) -> None:
        """Do nothing: there are no deadlines."""

    async def stop(self) -> None:
        """Do nothing: nothing is open."""

    async def save(
        self, text: str, author: Author, *, name: str | None, generation: int | None, as_written: bool
    ) -> tuple[SavedRules, str]:
        """
        Save one rule.

        @param text: the rule in YAML, of which JSON is a part.
        @param name: the rule that it replaces; None for a new one.
        @param generation: of the rule that was read; None for a new one.
        @param as_written: keep the text, comments and all.
        @return: all rules, and the name of this one.
        @raise ApiProblem: it is wrong, clashes, or was changed in the meantime.
        """

        def write(transaction: StoreTransaction) -> tuple[SavedRules, str]:
            reading = read_rule(text.encode(), "")
            rule = reading.value
            if rule is None:
                raise ApiProblem(INVALID, "The rule is wrong.", findings_of(reading.diagnostics))
            if not fits_path(rule.name):
                raise ApiProblem(INVALID, "The rule is wrong.", findings_of([_no_path(rule)]))
            before = load_rules(transaction.db, self._known)
            document = document_of(rule)
            if name is not None:
                there = before.rules.get(name)
                if there is None:
                    raise ApiProblem(NOT_FOUND, f'There is no rule "{name}".')
                if there.generation != generation:
                    _stale(transaction.db, before, name, generation, document)
            if rule.name != name and rule.name in before.rules:
                raise ApiProblem(CONFLICT, f'There is a rule "{rule.name}" already.')
            new = UnsavedRule(rule, document, text if as_written else None, UI)
            deleted = [name] if name is not None and name != rule.name else []
            found = [_alone(each) for each in self._clashes(before, [rule], deleted)]
            if found:
                raise ApiProblem(CONFLICT, "It clashes with what is there.", findings_of(found))
            return self._commit(transaction, before, [new], deleted, author, ""), rule.name

        after, saved = await self._store.write(write)
        self._publish(after)
        return after, saved

    async def delete(self, name: str, author: Author, generation: int) -> None:
        """
        Delete a rule.

        @raise ApiProblem: there is none, or it was changed in the meantime.
        """

        def write(transaction: StoreTransaction) -> SavedRules:
            before = load_rules(transaction.db, self._known)
            there = before.rules.get(name)
            if there is None:
                raise ApiProblem(NOT_FOUND, f'There is no rule "{name}".')
            if there.generation != generation:
                _stale(transaction.db, before, name, generation, None)
            return self._commit(transaction, before, [], [name], author, "")

        self._publish(await self._store.write(write))

    async def push(self, data: bytes, request: PushRequest, by: str, revision: int) -> PushOutcome:
        """
        Make the rules what a file says, all of them or none.

        @param revision: of the rules that were read.
        @raise ApiProblem: the file is wrong, rules clash, are of others, or were changed in the meantime.
        """
        # Reading a file of many rules takes long, and the thread that reads is where nothing waits that changes things.
        reading, texts = await self._store.read(lambda _: _read_file(data))
        manager = PUSH + request.manager
        outcomes: list[PushOutcome] = []

        def write(transaction: StoreTransaction) -> SavedRules:
            before = load_rules(transaction.db, self._known)
            if before.revision != revision:
                raise ApiProblem(STALE, f"The rules are at revision {before.revision}, and you have read {revision}.")
            wanted = {rule.name: document_of(rule) for rule in reading.rules}
            current = {name: ManagedRule(saved.document, saved.manager) for name, saved in before.rules.items()}
            plan = plan_push(current, wanted, manager, prune=request.prune, take_over=request.take_over)
            if plan.refused:
                detail = "The file would change rules of other managers."
                raise ApiProblem(CONFLICT, detail, members={"refused": plan.refused})
            touched = {*plan.creates, *(update.name for update in plan.updates)}
            # A rule of this manager whose text alone is another is changed, too: its comments are.
            unsaved = [
                UnsavedRule(rule, wanted[rule.name], text, manager)
                for rule, text in zip(reading.rules, texts, strict=True)
                if rule.name in touched or before.rules[rule.name].manager == manager
            ]
            found = self._clashes(before, [new.rule for new in unsaved], plan.deletes)
            if found:
                names = [new.rule.name for new in unsaved]
                placed = [reading.in_rule(names[int(each.path[1])], _alone(each)) for each in found]
                raise ApiProblem(CONFLICT, "Rules of the file clash with what is there.", findings_of(in_order(placed)))
            author = Author(by, manager)
            after = self._commit(transaction, before, unsaved, plan.deletes, author, request.note)
            if request.dry_run:
                outcomes.append(_outcome(before.revision, plan, reading.diagnostics, dry_run=True))
                raise _DryRun
            outcomes.append(_outcome(after.revision, plan, reading.diagnostics, dry_run=False))
            return after

        with suppress(_DryRun):
            self._publish(await self._store.write(write))
        return outcomes[-1]

    async def plan_roll_back(self, revision: int) -> RollbackPlan:
        """
        Return what L{roll_back} would change.

        @raise ApiProblem: there was no such revision.
        """
        now = self.saved

        def read(db: sqlite3.Connection) -> RollbackPlan:
            try:
                past = _all_at(db, revision)
            except LookupError:
                raise ApiProblem(NOT_FOUND, "There was no such generation or revision.") from None
            unsaved = {name: unsaved_rule(entry) for name, entry in past.items() if entry is not None}
            deletes = [name for name, entry in past.items() if entry is None and name in now.rules]
            updates = [
                RuleUpdate(name, field_changes(now.rules[name].document, entry["rule"]))
                for name, entry in past.items()
                if entry is not None and name in now.rules and entry != now.rules[name].entry
            ]
            found = self._clashes(now, [new.rule for new in unsaved.values()], deletes)
            return RollbackPlan(
                now.revision,
                tuple(sorted(unsaved.keys() - now.rules.keys())),
                tuple(sorted(updates, key=lambda update: update.name)),
                tuple(sorted(deletes)),
                tuple(findings_of(map(_alone, found))),
            )

        return await self._store.read(read)

    async def roll_back(
        self,
        author: Author,
        *,
        name: str = "",
        generation: int = 0,
        revision: int = 0,
        read_at: int | None = None,
    ) -> SavedRules:
        """
        Make a rule what it was at a generation, or all rules what they were at a revision, as a new revision.

        @param name: the rule; empty for all.
        @param read_at: the revision of the rules that were read, or the generation of the rule, also of one that was
            deleted; None for whatever is there.
        @raise ApiProblem: there was nothing like that, it clashes with what is there now, or that was changed in the
            meantime.
        """

        def write(transaction: StoreTransaction) -> SavedRules:
            before = load_rules(transaction.db, self._known)
            if read_at is not None and not name and before.revision != read_at:
                raise ApiProblem(STALE, f"The rules are at revision {before.revision}, and you have read {read_at}.")
            if read_at is not None and name:
                _check_generation(transaction.db, name, read_at)
            try:
                past = (
                    {name: past_entry(transaction.db, name, generation)} if name else _all_at(transaction.db, revision)
                )
            except LookupError:
                raise ApiProblem(NOT_FOUND, "There was no such generation or revision.") from None
            unsaved = [unsaved_rule(entry) for entry in past.values() if entry is not None]
            deleted = [each for each, entry in past.items() if entry is None and each in before.rules]
            found = [_alone(each) for each in self._clashes(before, [new.rule for new in unsaved], deleted)]
            if found:
                raise ApiProblem(CONFLICT, "What was there clashes with what is there now.", findings_of(found))
            return self._commit(transaction, before, unsaved, deleted, author, "")

        after = await self._store.write(write)
        self._publish(after)
        return after

    def _commit(
        self,
        transaction: StoreTransaction,
        before: SavedRules,
        unsaved: Sequence[UnsavedRule],
        deleted: Iterable[str],
        author: Author,
        note: str,
    ) -> SavedRules:
        changes = save_rules(transaction, before, unsaved, deleted, author.by)
        if not changes:
            return before
        transaction.revise(author, changes, note)
        # What is undone later must not stay known: a generation would be two rules.
        return load_rules(transaction.db, dict(self._known))

    def _publish(self, saved: SavedRules) -> None:
        if saved.revision < self.saved.revision:
            return
        is_new = saved.revision != self.saved.revision
        self.saved = saved
        for tell in self.changed if is_new else ():
            tell(saved)

    def _clashes(self, before: SavedRules, rules: Sequence[Rule], deleted: Iterable[str]) -> list[Diagnostic]:
        """
        Return what rules can't be beside: each other and those that stay, on routers that are known, or on any.

        @return: paths begin with C{("connector_rules", N)}, where N counts C{rules}.
        """
        gone = {*deleted, *(rule.name for rule in rules)}
        ports, tails = {rule.port for rule in rules}, {connector_name("", rule.name, rule.suffix) for rule in rules}
        beside = [
            saved.rule
            for saved in before.rules.values()
            if saved.name not in gone
            and (saved.rule.port in ports or connector_name("", saved.rule.name, saved.rule.suffix) in tails)
        ]
        routers = self._routers()
        both = [*beside, *rules]
        texts = [rule.selector for rule in both]
        matched = Selectors(texts).matched(texts, routers) if routers else [[] for _ in both]
        first = len(beside)
        matches = [
            RuleMatch(index - first, rule, hosts) for index, (rule, hosts) in enumerate(zip(both, matched, strict=True))
        ]
        found = [*clashes(matches, routers), *long_names(matches[first:], routers)]
        return [each for each in found if int(each.path[1]) >= 0]


def _read_file(data: bytes) -> tuple[RulesReading, list[str]]:
    reading = read_rules(data, FILE)
    if not reading.valid:
        raise ApiProblem(INVALID, "The file is wrong.", findings_of(reading.diagnostics))
    unfit = [reading.in_rule(rule.name, _no_path(rule)) for rule in reading.rules if not fits_path(rule.name)]
    if unfit:
        raise ApiProblem(INVALID, "The file is wrong.", findings_of(in_order((*reading.diagnostics, *unfit))))
    if reading.hosts:
        sentence = "A console knows its routers: the hosts of this file were used to check it, and are not kept."
        found = reading.located([diagnose("hosts-not-kept", ("hosts",), sentence)])
        reading.diagnostics = in_order((*reading.diagnostics, *found))
    return reading, texts_as_written(data, reading)


def _outcome(revision: int, plan: PushPlan, found: Sequence[Diagnostic], *, dry_run: bool) -> PushOutcome:
    return PushOutcome(revision, plan, tuple(msgspec.to_builtins(each) for each in findings_of(found)), dry_run)


def _all_at(db: sqlite3.Connection, revision: int) -> dict[str, dict[str, Any] | None]:
    (known,) = db.execute("SELECT count(*) FROM revision WHERE number = ?", (revision,)).fetchone()
    if not known:
        raise LookupError(revision)
    return entries_at(db, revision)


def _check_generation(db: sqlite3.Connection, name: str, read: int) -> None:
    """
    Check that a rule, which may be deleted, is as it was read.

    @raise ApiProblem: it is not.
    """
    row = db.execute("SELECT generation FROM rule WHERE name = ?", (name,)).fetchone()
    if row is not None and row[0] != read:
        raise ApiProblem(STALE, f'"{name}" is at generation {row[0]} now, and you have read {read}.')


def _stale(
    db: sqlite3.Connection, now: SavedRules, name: str, generation: int | None, yours: dict[str, object] | None
) -> NoReturn:
    """Refuse to change a rule that somebody else has changed, and say how."""
    current = now.rules[name]
    members: dict[str, object] = {"current": current.listed}
    try:
        base = past_entry(db, name, generation or 0)
    except LookupError:
        base = None
    if base is not None:
        members["three_way"] = three_way(base["rule"], current.document, yours)
    raise ApiProblem(STALE, f'"{name}" is at generation {current.generation} now.', members=members)


def _no_path(rule: Rule) -> Diagnostic:
    sentence = (
        f"{quoted_short(rule.name)} can't be the name of a rule in a console, where it is a part of a URL: it takes no "
        "/ and no \\, printable characters alone, and is neither . nor .."
    )
    return diagnose("bad-name", ("name",), sentence)


def _alone(found: Diagnostic) -> Diagnostic:
    """Return what is wrong with a rule of a list as what is wrong with the rule."""
    return msgspec.structs.replace(found, path=found.path[2:])
