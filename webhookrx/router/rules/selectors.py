"""
Router selectors: queries on routers, their mistakes, the hosts of an inventory that they match, and why they match.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from webhookrx.diagnostics import Diagnostic, Path, diagnose, nearest, quoted_short
from webhookrx.message.fields import MISSING, get_field, split_path
from webhookrx.query import ANY, Explanation, Fleet, Query, QueryError, explain, line_and_column, parse
from webhookrx.router.rules.router import router_of
from webhookrx.router.rules.rule import Host

METADATA: Final = ("hostname", "fqdn", "ip", "os", "arch", "version")
"""The fields that a router has of its machine."""

PLAIN_FIELDS: Final = ("name", *METADATA)
"""The fields of every router, besides C{label.NAME}."""

_OF_ALL_ROUTERS: Final = frozenset((*PLAIN_FIELDS, *(f"meta.{name}" for name in METADATA)))

_MOST_FIELDS: Final = 500
"""Different fields that are checked, and labels that are compared with one: a file may have very many."""

_ALSO_KNOWN: Final = re.compile(r"label\..+|host_name|host_label_.+", re.DOTALL)

# Other names of these fields: in messages, in analytics, and guesses.
_MEANT: Final = tuple(
    (re.compile(pattern), meant)
    for pattern, meant in (
        (r"(?:meta\.)?(?:router|host)\.labels?\.(.+)", r"label.\1"),
        (r"(?:labels|tags?)\.(.+)", r"label.\1"),
        (r"label_(.+)", r"label.\1"),
        (r"(?:meta\.)?(?:router|host)\.name|router_name|router|host", "name"),
        (r"(?:metadata|router_meta)\.(.+)", r"\1"),
        (r"host\.(.+)", r"\1"),
        (r"(?:host_?)?(?:ips?|ip_address(?:es)?|address(?:es)?)", "ip"),
        (r"architecture", "arch"),
        (r"operating_system|platform", "os"),
    )
)


class Selectors:
    """
    The selectors of some rules, each parsed once.

    @ivar queries: the query of each selector; a selector that is not a query is missing.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.queries: dict[str, Query] = {}
        self._errors: dict[str, QueryError] = {}
        for text in dict.fromkeys(texts):
            try:
                self.queries[text] = parse(text)
            except QueryError as error:
                self._errors[text] = error

    def matched(self, texts: Sequence[str], hosts: Sequence[Host]) -> list[list[int]]:
        """Return for each selector the indices of the hosts that it matches; none for one that is not a query."""
        fleet = Fleet([router_of(host).record for host in hosts])
        by_text = {text: fleet.matching(query) for text, query in self.queries.items()}
        return [by_text.get(text, []) for text in texts]

    def mistakes(self, text: str, path: Path, fields: SelectorFields) -> Iterator[Diagnostic]:
        """Yield what is wrong with the selector at a path."""
        error = self._errors.get(text)
        if error is not None:
            yield diagnose("selector-syntax", path, error.problem, *line_and_column(text, error.column))
            return
        for field, column in {use.field: use.column for use in reversed(self.queries[text].fields)}.items():
            problem = fields.problem(field)
            if problem:
                yield diagnose("selector-unknown-field", path, problem, *line_and_column(text, column))


class SelectorFields:
    """
    The fields that selectors can ask for.

    @param hosts: an inventory; without one labels are unknown.
    """

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._records = [router_of(host).record for host in hosts]
        self._problems: dict[str, str] = {}

    def problem(self, field: str) -> str:
        """Return why a field is probably not meant, with a suggestion; empty for a field that is."""
        if field not in self._problems:
            if len(self._problems) >= _MOST_FIELDS:
                return ""
            self._problems[field] = self._problem(field)
        return self._problems[field]

    def _problem(self, field: str) -> str:
        if field in _OF_ALL_ROUTERS:
            return ""
        if self._is_somewhere(field):
            if not field.startswith("meta."):
                return ""
            return (
                f"Only hosts of the inventory have the field {quoted_short(field)}, no router itself; give it a label."
            )
        meant = next((found.expand(to) for pattern, to in _MEANT if (found := pattern.fullmatch(field))), "")
        well_formed = _ALSO_KNOWN.fullmatch(field) is not None
        if well_formed and not meant and not self._records:
            return ""
        near = f"Did you mean {quoted_short(meant)}?" if meant else nearest(field, self._names())
        if well_formed and self._records:
            return f"No host of this file has the field {quoted_short(field)}. {near}".rstrip()
        fields = f"{', '.join(PLAIN_FIELDS)} and label.NAME"
        return f"A router has no field {quoted_short(field)}. {near or f'Known are {fields}.'}"

    def _is_somewhere(self, field: str) -> bool:
        path = split_path(field)
        return any(get_field(record, path) is not MISSING for record in self._records)

    def _names(self) -> list[str]:
        labels = {f"label.{key}" for record in self._records for key in record.get("label", {})}
        return [*PLAIN_FIELDS, *sorted(labels)[:_MOST_FIELDS]]


def explain_selector(selector: Query, record: Mapping[str, Any], unknown: Collection[str]) -> Explanation:
    """
    Return whether a selector matches a router, and why.

    @param record: the known fields of the router: L{webhookrx.router.rules.router.Router.record}.
    @param unknown: the unknown fields among L{METADATA}. A field that is neither known nor unknown is missing.
    """

    def unknown_fields(field: str) -> tuple[str, ...]:
        if field == ANY:
            return tuple(each for each in METADATA if each in unknown)
        name = field.removeprefix("meta.").partition(".")[0]
        return (name,) if name in unknown else ()

    return explain(selector, record, unknown_fields)
