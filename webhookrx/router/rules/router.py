"""
A router, and the connectors that rules give to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webhookrx.diagnostics import Diagnostic, diagnose, quoted_short
from webhookrx.guard.words import GuardWords
from webhookrx.query import QueryError, QueryTooCostly, parse
from webhookrx.regex import RegexTooCostly
from webhookrx.router.rules.rule import LONGEST_NAME, Host, Rule, connector_name
from webhookrx.router.steps.step import Preprocessing

if TYPE_CHECKING:
    from webhookrx.router.rules.rules_file import RulesReading

DEFAULT_LABELS: Final = {"product": "webhook", "vendor": "generic"}
"""Labels of a connector whose rule does not say otherwise."""


class Router(msgspec.Struct, frozen=True):
    """
    A router as selectors see it. Unknown fields are empty.

    @ivar ip: its addresses.
    @ivar meta: more metadata, by name.
    """

    name: str
    labels: Mapping[str, str] = {}
    hostname: str = ""
    fqdn: str = ""
    ip: tuple[str, ...] = ()
    os: str = ""
    arch: str = ""
    version: str = ""
    meta: Mapping[str, Any] = {}

    @property
    def record(self) -> dict[str, Any]:
        """
        The fields that selectors ask for, without empty ones.

        C{host_name} and C{host_label_KEY} are C{name} and C{label.KEY} as other pages of the product write them in
        queries on hosts; C{meta} repeats the metadata that have fields of their own.
        """
        facts = {
            "hostname": self.hostname,
            "fqdn": self.fqdn,
            "ip": list(self.ip),
            "os": self.os,
            "arch": self.arch,
            "version": self.version,
        }
        known = {name: value for name, value in facts.items() if value}
        record: dict[str, Any] = {"name": self.name, "host_name": self.name, **known}
        record |= {f"host_label_{key}": value for key, value in self.labels.items()}
        if self.labels:
            record["label"] = dict(self.labels)
        if self.meta or known:
            record["meta"] = {**known, **self.meta}
        return record


class Connector(msgspec.Struct, frozen=True):
    """
    What a rule gives to a router that it matches: a port where it receives data.

    @ivar name: unique on its router.
    @ivar rule: the name of the rule.
    @ivar labels: those of the rule, besides L{DEFAULT_LABELS}.
    @ivar guard: who may send to it, and what its sender asks for.
    """

    name: str
    rule: str
    port: int
    protocol: str
    paths: tuple[str, ...]
    key_file: str
    cert_file: str
    labels: Mapping[str, str]
    preprocessing: Preprocessing
    health: str
    include_request_headers: bool = False
    ca_file: str = ""
    guard: GuardWords = GuardWords()


def router_of(host: Host) -> Router:
    """Return a host of an inventory as a router."""
    ip = (host.ip,) if isinstance(host.ip, str) else host.ip
    return Router(
        name=host.name,
        labels=host.labels,
        hostname=host.hostname,
        fqdn=host.fqdn,
        ip=tuple(filter(None, ip)),
        os=host.os,
        arch=host.arch,
        version=host.version,
        meta=host.meta,
    )


def connector_of(router_name: str, rule: Rule) -> Connector:
    """Return the connector that a rule gives to a router that it matches."""
    return Connector(
        name=connector_name(router_name, rule.name, rule.suffix),
        rule=rule.name,
        port=rule.port,
        protocol=rule.protocol,
        paths=rule.paths,
        key_file=rule.key_file,
        cert_file=rule.cert_file,
        labels=DEFAULT_LABELS | rule.labels,
        preprocessing=rule.preprocessing,
        include_request_headers=rule.include_request_headers,
        health=rule.health,
        ca_file=rule.ca_file,
        guard=rule.guard_words,
    )


def connectors_of(router: Router, reading: RulesReading) -> tuple[list[Connector], list[Diagnostic]]:
    """
    Return the connectors of a router by name, and what is wrong with them on this router: two with one port or one
    name, a name that is too long, or a selector that takes too much work. Of two that clash the first in the file is
    returned.
    """
    connectors: list[Connector] = []
    mistakes: list[Diagnostic] = []
    ports: dict[int, str] = {}
    names: dict[str, str] = {}
    record = router.record
    for index, rule in zip(reading.indices, reading.rules, strict=True):
        path = ("connector_rules", index)
        try:
            if not _matches(rule.selector, record):
                continue
        except (QueryTooCostly, RegexTooCostly):
            sentence = f"Matching it with the metadata of {quoted_short(router.name)} takes too much work."
            mistakes.append(diagnose("selector-too-costly", (*path, "selector"), sentence))
            continue
        connector = connector_of(router.name, rule)
        found = []
        if connector.port in ports:
            sentence = port_clash(rule, ports[connector.port], quoted_short(router.name))
            found.append(diagnose("port-clash", (*path, "port"), sentence))
        if connector.name in names:
            sentence = name_clash(connector.name, rule, names[connector.name])
            found.append(diagnose("duplicate-connector", (*path, "name"), sentence))
        if len(connector.name) > LONGEST_NAME:
            found.append(diagnose("connector-name-too-long", (*path, "name"), too_long(connector.name)))
        mistakes += found
        if not found:
            connectors.append(connector)
            ports[connector.port] = names[connector.name] = rule.name
    return sorted(connectors, key=lambda connector: connector.name), reading.located(mistakes)


def port_clash(rule: Rule, other: str, where: str) -> str:
    """Return the sentence on two rules with one port."""
    rules = f"{quoted_short(other)} and {quoted_short(rule.name)}"
    return f"Port {rule.port} is wanted by the rules {rules}, both on {where}; a router has a port once."


def name_clash(name: str, rule: Rule, other: str) -> str:
    """Return the sentence on two rules with one connector name."""
    rules = f"{quoted_short(other)} and {quoted_short(rule.name)}"
    return f"The rules {rules} both make a connector {quoted_short(name)}; change a suffix."


def too_long(name: str) -> str:
    """Return the sentence on the name of a connector that is too long."""
    return f"The connector {quoted_short(name)} has {len(name)} characters in its name; it takes up to {LONGEST_NAME}."


def _matches(selector: str, record: Mapping[str, Any]) -> bool:
    try:
        return parse(selector).matches(record)
    except QueryError:
        return False
