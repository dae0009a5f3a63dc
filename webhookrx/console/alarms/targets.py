"""
The targets of alarms: settings that admins name, whose URLs are shown to nobody.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from webhookrx.config.alarm_items import check_name
from webhookrx.config.alarms import check_target_url
from webhookrx.console.alarms.saved_alarms import load_alarms, used_targets
from webhookrx.console.api.problems import CONFLICT, INVALID, ApiFinding, ApiProblem
from webhookrx.console.store.history import Author, Change, StoreTransaction
from webhookrx.errors import ConfigError
from webhookrx.management.alarm_rules import MOST_TARGETS, AlarmTarget

_PREFIX: Final = "alarm_target:"


@dataclass(frozen=True, slots=True)
class ConsoleTarget:
    """
    A target.

    @ivar built_in: it is told of the alarms for which nobody has written a rule.
    """

    target: AlarmTarget
    built_in: bool = False

    @property
    def shown_url(self) -> str:
        """Its URL without what may be secret."""
        parts = urlsplit(self.target.url)
        return f"{parts.scheme}://{parts.netloc}/***"

    @property
    def entry(self) -> dict[str, Any]:
        """It as the history has it."""
        return {"url": self.shown_url, "built_in": self.built_in}


def checked_target(name: str, url: str, *, built_in: bool) -> ConsoleTarget:
    """
    Return a target.

    @raise ApiProblem: its name or URL can't be used; the URL is not quoted.
    """
    found = []
    for code, key, check, text in (("bad-name", "name", check_name, name), ("bad-value", "url", check_target_url, url)):
        try:
            check(text)
        except ConfigError as error:
            found.append(ApiFinding(code, "error", error.problem, (key,)))
    if found:
        raise ApiProblem(INVALID, "The target is wrong.", found)
    return ConsoleTarget(AlarmTarget(name, url), built_in)


def read_targets(db: sqlite3.Connection) -> dict[str, ConsoleTarget]:
    """Return all targets by name."""
    rows = db.execute("SELECT name, value FROM setting WHERE name GLOB ? ORDER BY name", (f"{_PREFIX}*",))
    targets = {}
    for row, value in rows:
        name, known = row.removeprefix(_PREFIX), msgspec.json.decode(value)
        targets[name] = ConsoleTarget(AlarmTarget(name, known["url"]), known["built_in"])
    return targets


def save_target(transaction: StoreTransaction, author: Author, saved: ConsoleTarget) -> dict[str, ConsoleTarget]:
    """
    Save a target, and return all.

    @raise ApiProblem: there are too many.
    """
    before = read_targets(transaction.db)
    name = saved.target.name
    old = before.get(name)
    if old == saved:
        return before
    if old is None and len(before) >= MOST_TARGETS:
        raise ApiProblem(CONFLICT, f"There are up to {MOST_TARGETS} targets.")
    value = msgspec.json.encode({"url": saved.target.url, "built_in": saved.built_in}).decode()
    transaction.execute("INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)", (_PREFIX + name, value))
    operation = Change("setting", _PREFIX + name, "create", None, saved.entry)
    if old is not None:
        operation = Change("setting", _PREFIX + name, "update", old.entry, saved.entry)
    transaction.revise(author, [operation])
    return read_targets(transaction.db)


def delete_target(transaction: StoreTransaction, author: Author, name: str) -> dict[str, ConsoleTarget] | None:
    """
    Delete a target with what it was not told yet, and return all others; None if there is none of this name.

    @raise ApiProblem: an alarm notifies it.
    """
    old = read_targets(transaction.db).get(name)
    if old is None:
        return None
    user = used_targets(load_alarms(transaction.db)).get(name)
    if user is not None:
        raise ApiProblem(CONFLICT, f"The alarm {user} notifies it.")
    transaction.execute("DELETE FROM setting WHERE name = ?", (_PREFIX + name,))
    transaction.execute("DELETE FROM alarm_post WHERE target = ?", (name,))
    transaction.revise(author, [Change("setting", _PREFIX + name, "delete", old.entry, None)])
    return read_targets(transaction.db)
