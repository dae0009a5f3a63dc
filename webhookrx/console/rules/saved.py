"""
Rules in the store of a console: read, and written with their history in one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from webhookrx.console.store.history import Change, StoreTransaction
from webhookrx.management.rule_changes import ListedRule
from webhookrx.management.rule_documents import Document, decode_document, document_yaml, encode_document
from webhookrx.router.rules.rule import Rule

_decode_rule: Final = msgspec.json.Decoder(Rule, float_hook=lambda text: msgspec.Raw(text.encode())).decode


class SavedRule(msgspec.Struct, frozen=True):
    """
    A rule of a console.

    @ivar generation: how often it was changed; it only grows, also when a rule of this name is made again.
    @ivar yaml: the text as somebody has written it; None when it was saved as a document.
    @ivar manager: see L{webhookrx.management.rule_changes.ManagedRule}.
    """

    name: str
    generation: int
    rule: Rule
    document: Document
    yaml: str | None
    manager: str

    @property
    def text(self) -> str:
        """It as YAML."""
        return document_yaml(self.document) if self.yaml is None else self.yaml

    @property
    def listed(self) -> ListedRule:
        """It as the API shows it."""
        return ListedRule(self.name, self.generation, self.manager, self.document, self.yaml is not None)

    @property
    def entry(self) -> dict[str, Any]:
        """It as the history keeps it."""
        entry: dict[str, Any] = {"manager": self.manager, "rule": self.document}
        return entry if self.yaml is None else entry | {"yaml": self.yaml}


class UnsavedRule(msgspec.Struct, frozen=True):
    """A rule that is to be saved, see L{SavedRule}."""

    rule: Rule
    document: Document
    yaml: str | None
    manager: str


class SavedRules(msgspec.Struct, frozen=True):
    """
    All rules at one moment.

    @ivar revision: the newest that has changed a rule.
    """

    revision: int
    rules: Mapping[str, SavedRule]


#: Rules that are parsed already, by name and generation.
KnownRules = dict[tuple[str, int], SavedRule]


def load_rules(db: sqlite3.Connection, known: KnownRules) -> SavedRules:
    """
    Return all rules, by name.

    @param known: gets those that are read, and loses those that are no more.
    """
    (revision,) = db.execute("SELECT coalesce(max(revision), 0) FROM change WHERE kind = 'rule'").fetchone()
    rules = {}
    for name, generation, manager in db.execute(
        "SELECT name, generation, manager FROM rule WHERE NOT deleted ORDER BY name"
    ).fetchall():
        saved = known.get((name, generation))
        if saved is None:
            doc, yaml = db.execute("SELECT doc, yaml FROM rule WHERE name = ?", (name,)).fetchone()
            saved = SavedRule(name, generation, _decode_rule(doc), decode_document(doc), yaml, manager)
        rules[name] = saved
    known.clear()
    known.update(((saved.name, saved.generation), saved) for saved in rules.values())
    return SavedRules(revision, rules)


def save_rules(
    transaction: StoreTransaction,
    before: SavedRules,
    unsaved: Sequence[UnsavedRule],
    deleted: Iterable[str],
    by: str,
) -> list[Change]:
    """
    Write rules, and return the changes for the history; what is the same as before is none.

    @param before: all rules as the transaction finds them.
    @param deleted: names of rules to delete, none of which is among C{unsaved}.
    """
    changes = []
    for name in deleted:
        there = before.rules[name]
        transaction.execute(
            "UPDATE rule SET deleted = 1, generation = ?, changed_at = ?, changed_by = ? WHERE name = ?",
            (there.generation + 1, transaction.now, by, name),
        )
        changes.append(Change("rule", name, "delete", there.entry, None, there.generation + 1))
    for new in unsaved:
        old = before.rules.get(new.rule.name)
        if old is not None and (old.document, old.yaml, old.manager) == (new.document, new.yaml, new.manager):
            continue
        row = transaction.execute("SELECT generation FROM rule WHERE name = ?", (new.rule.name,)).fetchone()
        saved = SavedRule(
            new.rule.name,
            1 if row is None else int(row[0]) + 1,
            new.rule,
            new.document,
            new.yaml,
            new.manager,
        )
        transaction.execute(
            "INSERT INTO rule (name, generation, doc, yaml, manager, deleted, changed_at, changed_by)"
            " VALUES (?, ?, ?, ?, ?, 0, ?, ?) ON CONFLICT (name) DO UPDATE SET generation = excluded.generation,"
            " doc = excluded.doc, yaml = excluded.yaml, manager = excluded.manager, deleted = 0,"
            " changed_at = excluded.changed_at, changed_by = excluded.changed_by",
            (
                saved.name,
                saved.generation,
                encode_document(saved.document).decode(),
                saved.yaml,
                saved.manager,
                transaction.now,
                by,
            ),
        )
        if old is None:
            changes.append(Change("rule", saved.name, "create", None, saved.entry, saved.generation))
        else:
            changes.append(Change("rule", saved.name, "update", old.entry, saved.entry, saved.generation))
    return changes


def past_entry(db: sqlite3.Connection, name: str, generation: int) -> dict[str, Any] | None:
    """
    Return what a rule was at a generation, see L{SavedRule.entry}.

    @return: None for one that was deleted then.
    @raise LookupError: there was no such generation.
    """
    row = db.execute(
        "SELECT after FROM change WHERE kind = 'rule' AND name = ? AND generation = ?", (name, generation)
    ).fetchone()
    if row is None:
        raise LookupError(name)
    return None if row[0] is None else decode_document(row[0])


def entries_at(db: sqlite3.Connection, revision: int) -> dict[str, dict[str, Any] | None]:
    """
    Return for each rule that was changed after a revision what it was then; None for one that was not there.
    """
    rows = db.execute(
        "SELECT name, before FROM change WHERE kind = 'rule' AND revision > ? ORDER BY id DESC", (revision,)
    )
    # The oldest change comes last, and its "before" is what was there.
    return {name: None if before is None else decode_document(before) for name, before in rows}


def unsaved_rule(entry: Mapping[str, Any]) -> UnsavedRule:
    """Return what the history keeps of a rule, to be saved again."""
    document: Document = entry["rule"]
    return UnsavedRule(_decode_rule(encode_document(document)), document, entry.get("yaml"), entry["manager"])
