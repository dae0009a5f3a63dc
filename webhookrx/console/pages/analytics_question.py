"""
The question that the page Analytics asks: what its form has, all of which is in its URL, and what that is for the API.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import msgspec

from webhookrx.console.pages.charts import seconds
from webhookrx.console.pages.form import Form
from webhookrx.console.pages.rendering import number, query_string, size, when
from webhookrx.message.fields import split_path
from webhookrx.query import QueryError, parse
from webhookrx.query.query_lexer import written, written_field
from webhookrx.query.query_tree import Or

MEASURES: Final = (
    ("messages", "Messages"),
    ("bytes", "Bytes"),
    ("answers", "Answers"),
    ("refused", "Refused requests"),
    ("dropped", "Dropped messages"),
    ("text_bodies", "Text bodies"),
    ("p50", "Time to answer, p50"),
    ("p99", "Time to answer, p99"),
    ("last_message", "Last message"),
)

OTHER: Final = "other"
"""In place of a label that is among L{LABELS}: the one of the field C{label}."""

LABELS: Final = (
    ("connector.labels.product", "product"),
    ("connector.labels.vendor", "vendor"),
    ("connector.name", "connector name"),
    ("connector.port", "port"),
    ("connector.type", "connector type"),
    ("rule", "rule"),
    ("router", "router"),
    ("reason", "reason for refusals"),
    ("status", "class of statuses"),
    ("", "nothing: one sum"),
    (OTHER, "another label"),
)

CUSTOM: Final = "custom"
SPANS: Final = (
    ("1h", "1 hour"), ("6h", "6 hours"), ("24h", "24 hours"), ("3d", "3 days"), ("30d", "30 days"),
    ("today", "today, in UTC"), ("yesterday", "yesterday, in UTC"),
)  # fmt: skip
_SECONDS: Final = {"1h": 3600, "6h": 6 * 3600, "24h": 86_400, "3d": 3 * 86_400, "30d": 30 * 86_400}
STEPS: Final = (
    ("", "the finest"), ("1m", "1 minute"), ("10m", "10 minutes"), ("1h", "1 hour"), ("1d", "1 day")
)  # fmt: skip

_DEFAULTS: Final = {"measure": "messages", "last": "6h"}
_NO_FIELDS: Final = ("reason", "status")
_LONGEST_NARROWED: Final = 400
"""Characters of a query: each row of a table has a link with it."""


class AnalyticsQuestion(msgspec.Struct, frozen=True):
    """
    What is asked.

    @ivar by: one of L{LABELS}.
    @ivar label: the label, with L{OTHER}.
    @ivar last: one of L{SPANS}, or L{CUSTOM}: from C{begin} to C{end}.
    @ivar begin: as a field C{datetime-local} has it, in UTC; empty for none.
    """

    query: str
    by: str
    label: str
    measure: str
    last: str
    begin: str
    end: str
    step: str

    @classmethod
    def of(cls, form: Form) -> AnalyticsQuestion:
        """Return the question of a URL; a label that the form has not in its choice is another one."""
        by, label = form.text("by", LABELS[0][0]), form.text("label")
        if by not in dict(LABELS):
            by, label = OTHER, by
        last = form.text("last") or (CUSTOM if form.text("from") or form.text("to") else _DEFAULTS["last"])
        return cls(
            form.text("query"),
            by,
            label,
            form.text("measure") or _DEFAULTS["measure"],
            last,
            form.text("from"),
            form.text("to"),
            form.text("step"),
        )

    @property
    def field(self) -> str:
        """The label whose values are told apart; empty for none."""
        return self.label if self.by == OTHER else self.by

    @property
    def errors(self) -> dict[str, list[str]]:
        """What is wrong with the time, by field; all else is judged by the API."""
        found: dict[str, list[str]] = {}
        if self.last not in dict(SPANS) and self.last != CUSTOM:
            found["last"] = ["Choose one of these times."]
        if self.last == CUSTOM:
            for name, text in (("from", self.begin), ("to", self.end)):
                if text and _moment(text) is None:
                    found[name] = ["This is no date with a time, such as 2026-11-24T09:00."]
            if not self.begin:
                found["from"] = ["Say when the time begins."]
            begin, end = _moment(self.begin), _moment(self.end)
            if begin is not None and end is not None and begin >= end:
                found["to"] = ["The time ends before it begins."]
        if self.by == OTHER and not self.label:
            found["label"] = ["Name a label, such as label.site."]
        return found

    def span(self, now: float) -> tuple[int, int]:
        """Return the time, from and to, in seconds since the epoch; C{to} is not included."""
        whole = int(now) + 1
        if self.last == CUSTOM:
            begin, end = _moment(self.begin) or 0, _moment(self.end)
            return begin, whole if end is None else end
        midnight = int(now) // 86_400 * 86_400
        if self.last == "today":
            return midnight, whole
        if self.last == "yesterday":
            return midnight - 86_400, midnight
        return whole - _SECONDS[self.last], whole

    @property
    def goes_on(self) -> bool:
        """Whether its time ends now, so that its numbers are others each minute."""
        return self.last != "yesterday" and not (self.last == CUSTOM and self.end)

    def for_api(self, now: float, **others: str) -> dict[str, object]:
        """
        Return the query of a call of C{/analytics} or C{/analytics/top}.

        @param others: fields that are not as in the form.
        """
        begin, end = self.span(now)
        asked = {"query": self.query, "by": self.field, "measure": self.measure, "step": self.step, **others}
        return {**asked, "from": begin, "to": end}

    def url(self, **others: str) -> str:
        """Return the path of the page with this question, but for C{others}; see L{for_api}."""
        by = others.pop("by", self.by)
        fields = {"query": self.query, "measure": self.measure, "last": self.last, "step": self.step}
        if self.last == CUSTOM:
            fields |= {"from": self.begin, "to": self.end}
        if self.by == OTHER:
            fields["label"] = self.label
        fields |= others
        rest = query_string(**{name: text for name, text in fields.items() if text != _DEFAULTS.get(name)})
        # One sum is an empty choice, which is not what a URL without it has.
        return f"/analytics?by={by}{rest.replace('?', '&', 1)}"

    def narrowed(self, field: str, value: str) -> str:
        """Return the path of the page for one value of a label alone; empty where no query has that."""
        if not value or not field or field in _NO_FIELDS or len(self.query) > _LONGEST_NARROWED:
            return ""
        before = _and_before(self.query)
        try:
            term = f"{written_field(split_path(field))} = {written(value)}"
        except ValueError:
            return ""
        return "" if before is None else self.url(query=before + term)


@lru_cache(maxsize=16)
def _and_before(query: str) -> str | None:
    """Return what stands before another term of a query; None for none. Each row of a table has the same query."""
    try:
        tree = parse(query).tree
    except QueryError:
        return None
    return f"({query}) AND " if isinstance(tree, Or) else f"{query} AND " if query else ""


def unit_of(measure: str) -> str:
    """Return what a measure is in: C{count}, C{bytes}, C{seconds} or C{moment}."""
    units = {"bytes": "bytes", "p50": "seconds", "p99": "seconds", "last_message": "moment"}
    return units.get(measure, "count")


def shown(value: float | None, unit: str) -> str:
    """Return an amount with its unit."""
    match unit:
        case "bytes":
            return size(value)
        case "seconds":
            return "–" if value is None else seconds(value)
        case "moment":
            return when(value)
    return number(value)


def _moment(text: str) -> int | None:
    try:
        at = datetime.fromisoformat(text)
        return max(0, int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()))
    except (ValueError, OverflowError):
        return None
