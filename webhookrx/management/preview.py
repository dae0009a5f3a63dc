"""
Preview of a rule that is not saved: the routers that it matches and why others do not, clashes, what would change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, Protocol

from msgspec import Struct, structs

from webhookrx.diagnostics import Diagnostic, diagnose, in_order, quoted_short
from webhookrx.query import DecidingTerm, Fleet, Query, QueryError, explain, parse
from webhookrx.router.rules.router import Connector, Router, connector_of, name_clash, port_clash, too_long
from webhookrx.router.rules.rule import LONGEST_NAME, Rule, connector_name

SHOWN: Final = 10
"""Routers that do not match which are explained, unless all are asked for."""

MOST_LISTED: Final = 2_000
"""Members of each list of a preview of a rule; the counts beside the lists have all."""


class SelectorPreview(NamedTuple):
    """
    What a selector comes to.

    @ivar rule: the rule that it is of; None for one that was given.
    @ivar matching: the names of the routers that match.
    @ivar missing: those that do not, with the terms that decided, as many as were requested.
    @ivar hosts: how many there are.
    """

    rule: str | None
    selector: str
    matching: list[str]
    missing: list[tuple[str, tuple[DecidingTerm, ...]]]
    hosts: int


def selector_previews(
    queries: Sequence[tuple[str | None, Query]], routers: Sequence[Router], shown: int | None
) -> Iterator[SelectorPreview]:
    """
    Yield what each selector comes to.

    @param queries: the name of a rule and its selector.
    @param shown: how many routers that do not match are looked into; None for all.
    """
    records = [router.record for router in routers]
    fleet = Fleet(records)
    for rule, query in queries:
        matching = fleet.matching(query)
        others = set(range(len(routers))).difference(matching)
        missing = [
            (routers[index].name, explain(query, records[index]).deciding) for index in islice(sorted(others), shown)
        ]
        yield SelectorPreview(rule, query.text, [routers[index].name for index in matching], missing, len(routers))


class RouterState(Struct, frozen=True):
    """
    What a preview knows of a router.

    @ivar online: it can be asked for the states of files.
    @ivar gate: the paths for which its reload gate is closed; empty while it is open.
    @ivar sources: the ports of the sources of its own configuration, with the name of each.
    @ivar taken: other ports that something listens on, with what it is; not those of connectors.
    """

    router: Router
    online: bool = True
    gate: tuple[str, ...] = ()
    sources: Mapping[int, str] = {}
    taken: Mapping[int, str] = {}


class MatchingRouter(Struct, frozen=True):
    """A router that gets a connector of the rule."""

    router: str
    connector: str
    port: int


class OtherRouter(Struct, frozen=True):
    """A router that gets none, with the terms that decided."""

    router: str
    terms: tuple[DecidingTerm, ...]


class RouterClash(Struct, frozen=True):
    """
    Something on a router that a connector can't be beside.

    @ivar kind: C{rule}, C{source} or C{port}: what it clashes with.
    @ivar other: its name.
    """

    router: str
    kind: str
    other: str
    sentence: str


class ConnectorChange(Struct, frozen=True):
    """
    What saving would do to a connector.

    @ivar operation: C{added}, C{removed} or C{changed}.
    @ivar connector: its name afterwards; of a removed one, before.
    @ivar fields: those that would change.
    @ivar closes: its connections would be closed, as the port is not the same, or not there, afterwards.
    """

    router: str
    connector: str
    operation: str
    fields: tuple[str, ...] = ()
    closes: bool = False


class RouterGate(Struct, frozen=True):
    """
    A reload gate that is closed, or would be.

    @ivar closed: it is closed already, whatever this rule does.
    @ivar paths: the files for which it is, or would be.
    """

    router: str
    closed: bool
    paths: tuple[str, ...]


class RulePreview(Struct, frozen=True, kw_only=True):
    """
    What saving a rule would do.

    @ivar findings: what is wrong with it, with places in its text.
    @ivar routers: how many there are.
    @ivar matching: the routers that match, at most L{MOST_LISTED}; C{matched} counts all.
    @ivar why_not: the first L{SHOWN} that do not.
    @ivar clashes: at most L{MOST_LISTED}; C{clashing} counts all.
    @ivar changes: at most L{MOST_LISTED}; C{added}, C{removed} and C{changed} count all.
    @ivar paths: the files that its connectors need.
    @ivar ask: the routers to be asked for the states of these: they match, and are online.
    @ivar gates: the matching routers whose gate is closed now.
    """

    findings: tuple[Diagnostic, ...]
    routers: int
    matched: int = 0
    matching: tuple[MatchingRouter, ...] = ()
    why_not: tuple[OtherRouter, ...] = ()
    clashing: int = 0
    clashes: tuple[RouterClash, ...] = ()
    added: int = 0
    removed: int = 0
    changed: int = 0
    changes: tuple[ConnectorChange, ...] = ()
    paths: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    gates: tuple[RouterGate, ...] = ()


class RuleReading(Protocol):
    """
    A rule that was read, such as L{webhookrx.router.rules.rules_file.RulesReading}.
    """

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """What is wrong with it."""

    @property
    def rules(self) -> Sequence[Rule]:
        """It alone; none when it can't be read."""

    def in_rule(self, rule: str, found: Diagnostic) -> Diagnostic:
        """Return what is wrong with it, with its place in the text."""


class RuleSurroundings:
    """
    The rules and routers beside which rules are previewed. Rules are matched when they are first needed, and once.

    Only one thread at a time may use it.

    @param rules: those that are saved; of two with one name the last counts.
    @param routers: in the order in which previews list them.
    """

    def __init__(self, rules: Iterable[Rule], routers: Sequence[RouterState]) -> None:
        self.routers = routers
        self.rules = {rule.name: rule for rule in rules}
        self.records = [state.router.record for state in routers]
        self._fleet = Fleet(self.records)
        self._matching: dict[str, list[int]] = {}
        self._by_port: dict[int, list[Rule]] = {}
        self._by_tail: dict[str, list[Rule]] = {}
        for rule in self.rules.values():
            self._by_port.setdefault(rule.port, []).append(rule)
            self._by_tail.setdefault(_tail(rule), []).append(rule)

    def matching(self, rule: Rule) -> list[int]:
        """Return the indices of the routers that a saved rule matches; none if its selector is no query."""
        found = self._matching.get(rule.selector)
        if found is None:
            try:
                found = self.found(parse(rule.selector))
            except QueryError:
                found = []
            self._matching[rule.selector] = found
        return found

    def found(self, query: Query) -> list[int]:
        """Return the indices of the routers that match a query, which is not remembered."""
        return self._fleet.matching(query)

    def rivals(self, rule: Rule, replaces: Rule | None) -> Iterator[tuple[Rule, bool]]:
        """Yield each other rule that wants the port of a rule (True) or the name of its connectors (False)."""
        for rivals, of_port in ((self._by_port.get(rule.port, ()), True), (self._by_tail.get(_tail(rule), ()), False)):
            for other in rivals:
                if other is not replaces and (of_port or other.name != rule.name):
                    yield other, of_port


def preview_rule(around: RuleSurroundings, reading: RuleReading, replaces: str = "") -> RulePreview:
    """
    Return what saving a rule would do, but for the files that it names: see L{file_states}.

    @param reading: of a file with that rule alone. With an error in it the rest is told as far as the rule can be read.
    @param replaces: the name of the saved rule whose place it takes; empty for a new one.
    @raise KeyError: there is no such rule.
    """
    old = around.rules[replaces] if replaces else None
    findings = list(reading.diagnostics)
    if len(reading.rules) != 1:
        return RulePreview(findings=tuple(findings), routers=len(around.routers))
    rule = reading.rules[0]
    if rule.name in around.rules and rule.name != replaces:
        sentence = f"There is a rule {quoted_short(rule.name)} already; each needs a name of its own."
        findings.append(reading.in_rule(rule.name, diagnose("duplicate-name", ("name",), sentence)))
    try:
        query = parse(rule.selector)
    except QueryError:
        return RulePreview(findings=tuple(in_order(findings)), routers=len(around.routers))
    matching = around.found(query)
    if around.routers and not matching:
        sentence = f"It matches none of the {len(around.routers):,} routers."
        findings.append(reading.in_rule(rule.name, diagnose("selector-matches-none", ("selector",), sentence)))
    findings += (reading.in_rule(rule.name, found) for found in _long_name(around, rule, matching))
    clashing, clashes = _clashes(around, rule, old, matching)
    changes = list(_changes(around, old, rule, matching))
    states = [around.routers[index] for index in matching]
    operations = [change.operation for change in changes]
    return RulePreview(
        findings=tuple(in_order(findings)),
        routers=len(around.routers),
        matched=len(matching),
        matching=tuple(
            MatchingRouter(state.router.name, connector_name(state.router.name, rule.name, rule.suffix), rule.port)
            for state in states[:MOST_LISTED]
        ),
        why_not=tuple(_why_not(around, query, matching)),
        clashing=clashing,
        clashes=tuple(clashes),
        added=operations.count("added"),
        removed=operations.count("removed"),
        changed=operations.count("changed"),
        changes=tuple(changes[:MOST_LISTED]),
        paths=paths_of(rule),
        ask=tuple(state.router.name for state in states if state.online)[:MOST_LISTED],
        gates=tuple(RouterGate(state.router.name, True, state.gate) for state in states if state.gate)[:MOST_LISTED],
    )


def paths_of(rule: Rule) -> tuple[str, ...]:
    """Return the files that a connector of a rule needs before its router can apply it, each once."""
    words = rule.guard_words
    paths = (rule.key_file, rule.cert_file, rule.ca_file, *words.secrets_file, *words.auth_token_file)
    return tuple(dict.fromkeys(filter(None, paths)))


def _tail(rule: Rule) -> str:
    return connector_name("", rule.name, rule.suffix)


def _why_not(around: RuleSurroundings, query: Query, matching: Sequence[int]) -> Iterator[OtherRouter]:
    matched = set(matching)
    others = (index for index in range(len(around.routers)) if index not in matched)
    for index in islice(others, SHOWN):
        yield OtherRouter(around.routers[index].router.name, explain(query, around.records[index]).deciding)


def _long_name(around: RuleSurroundings, rule: Rule, matching: Sequence[int]) -> Iterator[Diagnostic]:
    longest = max((around.routers[index].router.name for index in matching), key=len, default="")
    name = connector_name(longest, rule.name, rule.suffix)
    if longest and len(name) > LONGEST_NAME:
        yield diagnose("connector-name-too-long", ("name",), too_long(name))


def _clashes(
    around: RuleSurroundings, rule: Rule, replaces: Rule | None, matching: Sequence[int]
) -> tuple[int, list[RouterClash]]:
    """Return how many there are, and the first: every rule may clash on every router, and sentences take time."""
    matched = set(matching)
    count = 0
    listed: list[RouterClash] = []
    for other, of_port in around.rivals(rule, replaces):
        common = matched.intersection(around.matching(other))
        count += len(common)
        for index in sorted(common)[: MOST_LISTED - len(listed)]:
            listed.append(_clash_with_rule(around.routers[index].router.name, rule, other, of_port))
    for state in (around.routers[index] for index in matching):
        clash = _clash_with_port(state, rule.port)
        if clash is not None:
            count += 1
            if len(listed) < MOST_LISTED:
                listed.append(clash)
    return count, listed


def _clash_with_rule(router: str, rule: Rule, other: Rule, of_port: bool) -> RouterClash:
    if of_port:
        sentence = port_clash(rule, other.name, quoted_short(router))
    else:
        sentence = name_clash(connector_name(router, rule.name, rule.suffix), rule, other.name)
    return RouterClash(router, "rule", other.name, sentence)


def _clash_with_port(state: RouterState, port: int) -> RouterClash | None:
    router = state.router.name
    source, taker = state.sources.get(port), state.taken.get(port)
    if source is not None:
        sentence = f"Port {port} on {quoted_short(router)} has the source {quoted_short(source)} already."
        return RouterClash(router, "source", source, sentence)
    if taker is not None:
        sentence = f"On port {port} of {quoted_short(router)} {quoted_short(taker)} listens already."
        return RouterClash(router, "port", taker, sentence)
    return None


def _changes(
    around: RuleSurroundings, old: Rule | None, rule: Rule, matching: Sequence[int]
) -> Iterator[ConnectorChange]:
    before = set() if old is None else set(around.matching(old))
    after = set(matching)
    fields = () if old is None else _changed_fields(connector_of("", old), connector_of("", rule))
    moves = not {"port", "protocol"}.isdisjoint(fields)
    for index in sorted(before | after):
        router = around.routers[index].router.name
        if index not in after:
            assert old is not None
            yield ConnectorChange(router, connector_name(router, old.name, old.suffix), "removed", closes=True)
            continue
        name = connector_name(router, rule.name, rule.suffix)
        if index not in before:
            yield ConnectorChange(router, name, "added")
        elif fields:
            yield ConnectorChange(router, name, "changed", fields, moves)


def _changed_fields(old: Connector, new: Connector) -> tuple[str, ...]:
    return tuple(name for name in structs.asdict(new) if getattr(old, name) != getattr(new, name))
