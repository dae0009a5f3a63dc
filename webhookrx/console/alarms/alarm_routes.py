"""
The routes of alarms.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from webhookrx.console.alarms.alarm_book import ListedAlarm
from webhookrx.console.alarms.documents import AlarmDocument
from webhookrx.console.api.etags import etag_number
from webhookrx.console.api.history import (
    HistoryPage,
    HistoryQuery,
    RollbackRequest,
    author_of,
    history_page,
    rollback_author,
)
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import NOT_FOUND, ApiProblem
from webhookrx.console.api.route import Answer, ApiCall, ApiRoute
from webhookrx.management.alarm_rules import AlarmRule
from webhookrx.management.alarm_values import STANDING, AlarmCount, AlarmRow
from webhookrx.quantities import format_duration

MOST_ROWS: Final = 1_000


class AlarmsQuery(msgspec.Struct, frozen=True):
    """
    Which states are wanted.

    @ivar alarm: of one alarm; empty for all.
    @ivar state: those that are in it; empty for all.
    @ivar count: how many at most.
    @ivar skip: how many of them to leave out first.
    """

    alarm: Annotated[str, Meta(max_length=63)] = ""
    state: Literal["", "firing", "pending", "unknown"] = ""
    count: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 200
    skip: Annotated[int, Meta(ge=0, lt=1 << 31)] = 0


class ShownAlarm(msgspec.Struct, frozen=True):
    """
    An alarm, and how many of what it is about are in which state.

    @ivar lasts: C{for}, such as C{5m}.
    @ivar notify: the names of targets, with commas between.
    @ivar left_out: those that are too many to be known one by one.
    """

    name: str
    kind: str
    when: str
    lasts: str = msgspec.field(name="for")
    notify: str
    pending: int
    firing: int
    unknown: int
    left_out: int


class AlarmsPage(msgspec.Struct, frozen=True):
    """
    The alarms of the console.

    @ivar alarms: all, also those that were written since the last look.
    @ivar states: what is not ok, those that fire first.
    @ivar more: how many states come after these, as far as they are wanted.
    @ivar looked_at: when the console has looked last, seconds since the epoch; 0 if it has not yet.
    """

    alarms: tuple[ShownAlarm, ...]
    states: tuple[AlarmRow, ...]
    more: int
    looked_at: float


async def show_alarms(call: ApiCall) -> AlarmsPage:
    """Return all alarms, and the states that are wanted."""
    alarms, query = call.console.alarms, call.query
    counts = {each.alarm: each for each in alarms.alarms.counts}
    shown = tuple(_shown(rule, counts.get(rule.name, AlarmCount(rule.name, rule.kind))) for rule in alarms.rules)
    wanted = [state for state in STANDING if query.state in ("", state)]
    names = {query.alarm} if query.alarm else None
    standing = chain.from_iterable(alarms.alarms.standing(state, names) for state in wanted)
    rows = tuple(islice(standing, query.skip, query.skip + query.count))
    in_all = sum(getattr(each, state) for each in shown if names is None or each.name in names for state in wanted)
    return AlarmsPage(shown, rows, max(0, in_all - query.skip - len(rows)), alarms.looked_at)


def _shown(rule: AlarmRule, count: AlarmCount) -> ShownAlarm:
    return ShownAlarm(
        rule.name,
        rule.kind,
        rule.when,
        format_duration(rule.seconds),
        rule.notify,
        count.pending,
        count.firing,
        count.unknown,
        count.left_out,
    )


async def show_alarm(call: ApiCall) -> Answer:
    """Return an alarm."""
    listed = call.console.alarms.book.listed(call.path["name"])
    if listed is None:
        raise ApiProblem(NOT_FOUND, "There is no alarm of this name.")
    return _answer(listed)


async def save_alarm(call: ApiCall) -> Answer:
    """Save an alarm."""
    alarms, name, author = call.console.alarms, call.path["name"], author_of(call)
    if call.if_none_match == "*":
        listed = await alarms.book.create(name, call.body, author)
    else:
        listed = await alarms.book.change(name, call.body, author, etag_number(call, "g"))
    alarms.look_soon()
    return _answer(listed)


async def delete_alarm(call: ApiCall) -> None:
    """Delete an alarm."""
    alarms = call.console.alarms
    await alarms.book.delete(call.path["name"], author_of(call), etag_number(call, "g"))
    alarms.look_soon()


async def show_alarm_history(call: ApiCall) -> HistoryPage:
    """Return the changes of an alarm."""
    return await history_page(call, "alarm", "Nobody has written an alarm of this name.")


async def roll_back_alarm(call: ApiCall) -> Answer:
    """Make an alarm what it was."""
    alarms, generation = call.console.alarms, call.body.generation
    author = rollback_author(call, generation)
    listed = await alarms.book.roll_back(call.path["name"], author, generation)
    alarms.look_soon()
    return _answer(listed)


def _answer(listed: ListedAlarm) -> Answer:
    return Answer(listed, etag=f"g{listed.generation}")


ROUTES: Final = (
    ApiRoute(
        "GET",
        "/alarms",
        Permission.VIEW,
        show_alarms,
        "The alarms of the console, and what is not ok.",
        query=AlarmsQuery,
        answer=AlarmsPage,
    ),
    ApiRoute("GET", "/alarms/{name}", Permission.VIEW, show_alarm, "One alarm.", answer=ListedAlarm),
    ApiRoute(
        "PUT",
        "/alarms/{name}",
        Permission.EDIT,
        save_alarm,
        "Make or change an alarm.",
        request=AlarmDocument,
        answer=ListedAlarm,
        creates=True,
    ),
    ApiRoute(
        "DELETE",
        "/alarms/{name}",
        Permission.EDIT,
        delete_alarm,
        "Delete an alarm; a built-in one is then as it was.",
        status=204,
        needs_if_match=True,
    ),
    ApiRoute(
        "GET",
        "/alarms/{name}/history",
        Permission.VIEW,
        show_alarm_history,
        "The changes of an alarm, the newest first.",
        answer=HistoryPage,
        query=HistoryQuery,
    ),
    ApiRoute(
        "POST",
        "/alarms/{name}:rollback",
        Permission.EDIT,
        roll_back_alarm,
        "Make an alarm what it was at a generation.",
        request=RollbackRequest,
        answer=ListedAlarm,
    ),
)
