"""
The documents of alarms: as people write them, judged, and as they are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from webhookrx.config.alarm_items import AlarmWords, read_alarm
from webhookrx.config.option_reader import Origin, Problems, RawAlarm, RawValue
from webhookrx.console.api.problems import INVALID, ApiProblem, findings_of
from webhookrx.console.counts.connector_queries import CONNECTOR_FIELDS
from webhookrx.diagnostics import Diagnostic, diagnose
from webhookrx.management.agent_protocol import REPORT_INTERVAL
from webhookrx.management.alarm_rules import BUILT_IN_KINDS, DEFAULT_SECONDS, AlarmRule
from webhookrx.quantities import format_duration
from webhookrx.query import QueryError, line_and_column, parse
from webhookrx.router.rules.selectors import METADATA, PLAIN_FIELDS

_OF_ROUTERS: Final = (*PLAIN_FIELDS, "label.KEY", "host_name", *(f"meta.{name}" for name in METADATA))

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(BUILT_IN_KINDS, _OF_ROUTERS),
    "silent": ("sender", *CONNECTOR_FIELDS),
    "refused": ("reason", *CONNECTOR_FIELDS),
    "certificate": CONNECTOR_FIELDS,
    "spool": (*_OF_ROUTERS, "observer"),
}
"""The fields that the query of an alarm of each kind may test: those of selectors, or those of analytics."""

_WORDS: Final = AlarmWords(
    FIELDS,
    shortest={
        "router_away": 2.0 * REPORT_INTERVAL,
        "silent": 4.0 * REPORT_INTERVAL,
        "spool": 4.0 * REPORT_INTERVAL,
    },
    targets="/alarm-targets",
)

_CODES: Final = {"name": "bad-name", "kind": "alarm-kind", "when": "alarm-query", "notify": "alarm-target"}

_Text = Annotated[str, Meta(max_length=64)]


class AlarmDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """
    An alarm as people write it.

    @ivar name: in a call that changes one, it may be left out.
    @ivar when: a query on what it is about; empty for all.
    @ivar lasts: C{for}: how old or how lasting is too much, or how near an end; empty for the default of the kind.
    @ivar above: C{refused}: a part of all requests such as C{5%}, or a rate such as C{10/m}.
    @ivar expect_within: C{silent}: how long the first message may take; empty for as long as C{for}.
    @ivar notify: the name of a target; empty: none is told.
    """

    name: _Text = ""
    kind: _Text = ""
    when: Annotated[str, Meta(max_length=8192)] = ""
    lasts: _Text = msgspec.field(name="for", default="")
    above: _Text = ""
    expect_within: _Text = ""
    notify: _Text = ""

    @property
    def texts(self) -> dict[str, str]:
        """What it says, by key."""
        known: dict[str, str] = msgspec.to_builtins(self)
        return known


def judged(document: AlarmDocument, name: str, targets: Collection[str]) -> AlarmRule:
    """
    Return the rule that a document says.

    @param name: of the alarm.
    @param targets: the names of targets.
    @raise ApiProblem: it says none.
    """
    texts = {"name": name} | document.texts
    problems = Problems()
    raw = RawAlarm(Origin(), {key: RawValue(text, Origin((key,))) for key, text in texts.items()})
    rule = read_alarm(raw, _WORDS, targets, problems)
    found = [_located(each, texts) for each in problems.errors]
    if texts["name"] != name:
        found.append(diagnose("bad-name", ("name",), "It is another name than that of the path."))
    if name in BUILT_IN_KINDS and rule is not None and rule.kind != name:
        found.append(diagnose("alarm-kind", ("kind",), f"The alarm {name} is built in, and of kind {name}."))
    if rule is None or found:
        raise ApiProblem(INVALID, "The alarm is wrong.", findings_of(found))
    return rule


def built_in_document(kind: str) -> AlarmDocument:
    """Return a built-in alarm as people would write it."""
    seconds = DEFAULT_SECONDS[kind]
    return AlarmDocument(kind, kind, lasts=format_duration(seconds) if seconds else "")


def _located(found: Diagnostic, texts: Mapping[str, str]) -> Diagnostic:
    """Return a mistake with its code, and with its place in a query."""
    key = str(found.path[0]) if found.path else ""
    code = _CODES.get(key, "bad-value" if key in texts else "missing-key")
    line = column = 0
    if code == "alarm-query":
        try:
            parse(texts["when"])
        except QueryError as error:
            line, column = line_and_column(texts["when"], error.column)
    return diagnose(code, found.path, found.sentence, line, column)
