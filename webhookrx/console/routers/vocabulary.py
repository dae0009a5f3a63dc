"""
The fields that queries ask for, and the values that the fleet and the rules of a console have in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from webhookrx.console.rules.saved import SavedRule
from webhookrx.query.query_lexer import written_field
from webhookrx.router.rules.router import DEFAULT_LABELS
from webhookrx.router.rules.rule import CONNECTOR_TYPE, PROTOCOLS, Host
from webhookrx.router.rules.selectors import METADATA
from webhookrx.senders.definitions import builtin_names

About: TypeAlias = Literal["routers", "rules", "messages", "connectors", "changes"]

MOST_VALUES: Final = 1000
MOST_FIELDS: Final = 500
_LONGEST: Final = 200
"""Values of a field and fields that are known here, and characters of a value."""

#: Values of each field, as queries write it.
Vocabulary: TypeAlias = "dict[str, tuple[str, ...]]"

_OF_RULES: Final = ("name", "protocol", "port", "selector", "sender", "suffix", "description", "manager", "changed_by")
_OF_MESSAGES: Final = (
    "log.body",
    "log.attributes",
    "log.severity_number",
    "log.severity_text",
    "log.time_unix_nano",
    "meta.host.name",
    "meta.id",
    "meta.connection.src_ip",
    "meta.connection.bytes",
    "meta.connection.token",
    "meta.connection.client.cn",
    "meta.sender.secret",
    "meta.sender.delivery_id",
    "meta.sender.attempt",
    "meta.batch.index",
    "meta.batch.count",
)
_OF_CHANGES: Final = {
    "by": (),
    "via": ("ui", "api", "command"),
    "kind": ("rule", "router", "enrolment", "token", "user", "setting", "alarm"),
    "operation": ("create", "update", "delete"),
    "name": (),
    "note": (),
    "revision": (),
}


class _FieldValues:
    """Collects values by field, each once, in order and within bounds."""

    def __init__(self, fields: Iterable[str] = ()) -> None:
        self._values: dict[str, dict[str, None]] = {field: {} for field in fields}

    def add(self, path: Sequence[str], *values: str) -> None:
        """Add values of a field."""
        field = written_field(tuple(path))
        known = self._values.get(field)
        if known is None:
            if len(self._values) >= MOST_FIELDS:
                return
            known = self._values[field] = {}
        for value in values:
            if value and len(value) <= _LONGEST and len(known) < MOST_VALUES:
                known[value] = None

    def labels(self, path: Sequence[str], labels: Mapping[str, str]) -> None:
        """Add a value of each label."""
        for key, value in labels.items():
            self.add((*path, key), value)

    @property
    def vocabulary(self) -> Vocabulary:
        """All of them, sorted."""
        return {field: tuple(sorted(values)) for field, values in self._values.items()}


def vocabulary_of(about: About, hosts: Sequence[Host], rules: Iterable[SavedRule]) -> Vocabulary:
    """
    Return the fields of queries and their values.

    @param about: what the queries are on.
    @param hosts: the routers of the fleet.
    """
    if about == "changes":
        return dict(_OF_CHANGES)
    if about == "routers":
        return _of_routers(hosts)
    if about == "rules":
        return _of_rules(rules)
    return _of_messages(hosts, rules) if about == "messages" else _of_connectors(hosts, rules)


def _of_routers(hosts: Iterable[Host]) -> Vocabulary:
    values = _FieldValues(("name", *METADATA))
    for host in hosts:
        values.add(("name",), host.name)
        values.labels(("label",), host.labels)
        values.add(("ip",), *((host.ip,) if isinstance(host.ip, str) else host.ip))
        for name in METADATA:
            if name != "ip":
                values.add((name,), getattr(host, name))
    return values.vocabulary


def _of_rules(rules: Iterable[SavedRule]) -> Vocabulary:
    values = _FieldValues(_OF_RULES)
    values.add(("protocol",), *PROTOCOLS)
    for saved in rules:
        rule = saved.rule
        values.labels(("label",), rule.labels)
        for name, value in (("name", rule.name), ("port", str(rule.port)), ("sender", rule.sender)):
            values.add((name,), value)
        values.add(("manager",), saved.manager)
    return values.vocabulary


def _of_messages(hosts: Iterable[Host], rules: Iterable[SavedRule]) -> Vocabulary:
    values = _FieldValues(_OF_MESSAGES)
    values.add(("meta", "connection", "transport"), "http", "https")
    values.add(("meta", "sender", "id"), *builtin_names())
    values.add(("meta", "sender", "verified"), "signature", "token", "client", "no")
    _add_connectors(values, ("meta", "connector"), rules)
    for host in hosts:
        values.add(("meta", "router", "name"), host.name)
        values.labels(("meta", "router", "labels"), host.labels)
    return values.vocabulary


def _of_connectors(hosts: Iterable[Host], rules: Iterable[SavedRule]) -> Vocabulary:
    values = _FieldValues(("connector.name", "rule", "router"))
    for saved in rules:
        values.add(("rule",), saved.name)
    _add_connectors(values, ("connector",), rules)
    for host in hosts:
        values.add(("router",), host.name)
        values.labels(("label",), host.labels)
    return values.vocabulary


def _add_connectors(values: _FieldValues, path: Sequence[str], rules: Iterable[SavedRule]) -> None:
    values.add((*path, "type"), CONNECTOR_TYPE)
    values.add((*path, "name"))
    values.labels((*path, "labels"), DEFAULT_LABELS)
    for saved in rules:
        values.add((*path, "port"), str(saved.rule.port))
        values.labels((*path, "labels"), saved.rule.labels)
