"""
What is wrong between rules: one port, or one name, twice on a router.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from webhookrx.diagnostics import Diagnostic, diagnose, quoted_short
from webhookrx.router.rules.naming import LONGEST_NAME, connector_name
from webhookrx.router.rules.router import name_clash, port_clash, too_long
from webhookrx.router.rules.rule import Host, Rule


class Placed(NamedTuple):
    """
    A rule that is looked at beside the others.

    @ivar place: its index in the file.
    @ivar hosts: the indices of the hosts of the inventory that it matches.
    """

    place: int
    rule: Rule
    hosts: Sequence[int]


def clashes(placed: Sequence[Placed], hosts: Sequence[Host]) -> Iterator[Diagnostic]:
    """
    Yield what two rules want that a router has once, on any host of the inventory, or on any router that there may be.
    Each rule is blamed once, beside the first one before it that it meets.
    """
    usable = [each for each in placed if 1 <= each.rule.port <= 65535]
    for second, first, host in _meetings(usable, lambda rule: rule.port, hosts):
        where = _where(second, first, host)
        yield diagnose(
            "port-clash",
            ("connector_rules", second.place, "port"),
            port_clash(second.rule, first.rule.name, where),
        )
    named = [each for each in placed if each.rule.name]
    for second, first, host in _meetings(named, _tail, hosts):
        if second.rule.name != first.rule.name:
            name = connector_name(host.name if host else "ROUTER", second.rule.name, second.rule.suffix)
            sentence = name_clash(name, second.rule, first.rule.name)
            yield diagnose("duplicate-connector", ("connector_rules", second.place, "name"), sentence)


def long_names(placed: Sequence[Placed], hosts: Sequence[Host]) -> Iterator[Diagnostic]:
    """Yield each rule that makes a name that is too long on a host of the inventory."""
    for place, rule, matched in placed:
        names = (connector_name(hosts[index].name, rule.name, rule.suffix) for index in matched)
        name = next((name for name in names if len(name) > LONGEST_NAME), None)
        if name is not None:
            yield diagnose("connector-name-too-long", ("connector_rules", place, "name"), too_long(name))


def _tail(rule: Rule) -> str:
    """Return what a connector's name has behind that of its router."""
    return connector_name("", rule.name, rule.suffix)


def _meetings(
    placed: Sequence[Placed], wanted: Callable[[Rule], Hashable], hosts: Sequence[Host]
) -> Iterator[tuple[Placed, Placed, Host | None]]:
    """
    Yield each rule that wants what an earlier one wants where both are, the earlier one, and a host where they meet.
    """
    groups: dict[Hashable, list[Placed]] = {}
    for each in placed:
        groups.setdefault(wanted(each.rule), []).append(each)
    for group in groups.values():
        if len(group) > 1:
            yield from _in_group(group, hosts)


def _in_group(group: Sequence[Placed], hosts: Sequence[Host]) -> Iterator[tuple[Placed, Placed, Host | None]]:
    by_selector: dict[str, Placed] = {}
    by_host: dict[int, Placed] = {}
    for each in group:
        selector = each.rule.selector.strip()
        everywhere = by_selector.get(selector)
        if everywhere is None and not hosts:
            # One that matches every router is where the other is, wherever that may be.
            everywhere = by_selector.get("") if selector else next(iter(by_selector.values()), None)
        meeting = next((index for index in each.hosts if index in by_host), None)
        if everywhere is not None:
            yield each, everywhere, None
        elif meeting is not None:
            yield each, by_host[meeting], hosts[meeting]
        by_selector.setdefault(selector, each)
        for index in each.hosts:
            by_host.setdefault(index, each)


def _where(second: Placed, first: Placed, host: Host | None) -> str:
    if host is None:
        same = "all routers" if not second.rule.selector.strip() else "the routers that match"
        return same if first.rule.selector.strip() == second.rule.selector.strip() else "the routers that match both"
    others = len(set(second.hosts) & set(first.hosts)) - 1
    return quoted_short(host.name) + (f" and {others} more of the hosts" if others else "")
