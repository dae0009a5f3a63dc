"""
A rules file: read, and everything in it checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Final

import msgspec

from webhookrx.diagnostics import Diagnostic, Path, Position, diagnose, has_errors, in_order, quoted_short
from webhookrx.router.rules.checks import PathCheck, RuleMatch, check_host, check_paths, check_rule, clashes, long_names
from webhookrx.router.rules.rule import Host, Rule, RulesFile
from webhookrx.router.rules.selectors import SelectorFields, Selectors
from webhookrx.typed_yaml import Reading, read_typed

MOST_PAIRS: Final = 2_000_000
"""The product of rules and hosts up to which they are compared."""

# A key of a step, but not one inside of a known kind of step.
_STEP: Final = re.compile(r"(?:connector_rules\[\d+\]\.)?preprocessing\.steps\[\d+\](?!\.(?:set|regex|probe)[.\[])(.+)")

# Other names of the keys of steps.
_STEP_MEANT: Final = {
    key: meant
    for meant, keys in {
        "select": "select_messages filter query",
        "set": "set_field set_fields",
        "unset": "unset_field unset_fields delete remove",
        "regex": "regexp parse_regex regexp_parser",
        "expression": "filterx filterx_expression script statements",
        "condition": "if when",
        "label": "name title",
    }.items()
    for key in keys.split()
}


class RulesReading:
    """
    A rules file, read and checked.

    @ivar rules: the rules that can be read, in the order of the file; with errors in it they are for display only.
    @ivar indices: the index in the file of each of them.
    @ivar hosts: the inventory.
    @ivar diagnostics: all mistakes, in the order of the file.
    """

    def __init__(self, file: str, reading: Reading[RulesFile]) -> None:
        self.file = file
        self.diagnostics: list[Diagnostic] = []
        self._reading = reading
        rules = () if reading.partial is None else reading.partial.connector_rules
        hosts = () if reading.partial is None else reading.partial.hosts
        self.indices = tuple(i for i in range(len(rules)) if reading.is_whole(("connector_rules", i)))
        self.rules = tuple(rules[index] for index in self.indices)
        self.hosts: tuple[Host, ...] = tuple(host for i, host in enumerate(hosts) if reading.is_whole(("hosts", i)))

    @property
    def valid(self) -> bool:
        """Whether there is no error."""
        return not has_errors(self.diagnostics)

    def position(self, rule: str, *member: str | int) -> Position:
        """
        Return the position of a rule, or of a member of it.

        @param rule: its name.
        @raise KeyError: there is no such rule.
        """
        return self._reading.position(self._path(rule, member))

    def in_rule(self, rule: str, found: Diagnostic) -> Diagnostic:
        """
        Return what only a router can find wrong with a rule, with its place in the file.

        @param rule: its name.
        @param found: its path begins at the rule.
        @raise KeyError: there is no such rule.
        """
        return self.located([msgspec.structs.replace(found, path=self._path(rule, found.path))])[0]

    def located(self, found: Iterable[Diagnostic]) -> list[Diagnostic]:
        """See L{Reading.located}."""
        return self._reading.located(found)

    def _path(self, name: str, member: Sequence[str | int]) -> Path:
        for index, rule in zip(self.indices, self.rules, strict=True):
            if rule.name == name:
                return ("connector_rules", index, *member)
        raise KeyError(name)


def read_rules(data: bytes, file: str, *, allow_slow_patterns: bool = False) -> RulesReading:
    """
    Read a rules file and check everything in it.

    @param file: its name, for what is wrong.
    @param allow_slow_patterns: paths that RE2 can't run are a warning and no error.
    """
    reading = read_typed(data, file, RulesFile)
    rules = RulesReading(file, reading)
    found = list(map(_step_of_its_own, reading.diagnostics))
    if reading.partial is not None:
        mistakes = _Checks(reading, reading.partial, allow_slow_patterns).mistakes()
        found += rules.located(mistake for mistake in mistakes if reading.is_sound(mistake.path))
    rules.diagnostics = in_order(found)
    return rules


def _step_of_its_own(found: Diagnostic) -> Diagnostic:
    step = _STEP.fullmatch(found.field) if found.code == "unknown-key" else None
    if step is None:
        return found
    meant = _STEP_MEANT.get(step[1].removeprefix("."))
    what, _, _ = found.sentence.partition(" here. ")
    sentence = f'{what} here. Did you mean "{meant}"?' if meant else found.sentence
    return msgspec.structs.replace(found, code="unknown-step", sentence=sentence)


def read_rule(data: bytes, file: str, *, allow_slow_patterns: bool = False) -> Reading[Rule]:
    """
    Read one rule, the keys and values of a rule without a file around it, and check everything in it.

    @return: its paths begin at the rule, such as C{port}.
    """
    reading = read_typed(data, file, Rule)
    reading.diagnostics = list(map(_step_of_its_own, reading.diagnostics))
    rule = reading.partial
    if rule is not None:
        mistakes = list(_mistakes_of(rule, (), reading, partial(check_paths, allow_slow=allow_slow_patterns)))
        mistakes += Selectors([rule.selector]).mistakes(rule.selector, ("selector",), SelectorFields(()))
        found = reading.located(mistake for mistake in mistakes if reading.is_sound(mistake.path))
        reading.diagnostics = in_order((*reading.diagnostics, *found))
        if has_errors(found):
            reading.value = None
    return reading


def _mistakes_of(rule: Rule, path: Path, reading: Reading[Any], check_paths: PathCheck) -> Iterator[Diagnostic]:
    for mistake in check_rule(rule, path, check_paths):
        if _counts(mistake, path, reading):
            yield mistake


def _counts(mistake: Diagnostic, path: Path, reading: Reading[Any]) -> bool:
    """Tell whether a mistake is not the consequence of one that the reader has found already."""
    preprocessing = (*path, "preprocessing")
    if mistake.code == "parse-without-classify":
        beside = mistake.path == (*preprocessing, "parse")
        return reading.is_whole((*preprocessing, "classify") if beside else preprocessing)
    return mistake.code != "step-kind" or reading.is_whole(mistake.path)


class _Checks:
    """All checks of one file, on what can be read of it."""

    def __init__(self, reading: Reading[RulesFile], file: RulesFile, allow_slow_patterns: bool) -> None:
        self._reading = reading
        self._allow_slow_patterns = allow_slow_patterns
        self._rules = file.connector_rules
        self._hosts = file.hosts
        self._inventory = [host for i, host in enumerate(file.hosts) if reading.is_whole(("hosts", i))]

    def mistakes(self) -> Iterator[Diagnostic]:
        yield from self._alone()
        yield from self._repeated_names("connector_rules", self._rules, "rules")
        yield from self._repeated_names("hosts", self._hosts, "hosts")
        yield from self._together()

    def _alone(self) -> Iterator[Diagnostic]:
        remembered = cache(partial(check_paths, allow_slow=self._allow_slow_patterns))
        for index, rule in enumerate(self._rules):
            yield from _mistakes_of(rule, ("connector_rules", index), self._reading, remembered)
        for index, host in enumerate(self._hosts):
            yield from check_host(host, ("hosts", index))

    def _repeated_names(self, key: str, named: Sequence[Rule | Host], what: str) -> Iterator[Diagnostic]:
        first: dict[str, int] = {}
        for index, each in enumerate(named):
            path = (key, index, "name")
            if self._reading.is_sound(path) and first.setdefault(each.name, index) != index:
                line = self._reading.position((key, first[each.name], "name")).line
                sentence = (
                    f"Two {what} have the name {quoted_short(each.name)}, the first in line {line}; each needs its own."
                )
                yield diagnose("duplicate-name", path, sentence)

    def _together(self) -> Iterator[Diagnostic]:
        usable = [
            index for index in range(len(self._rules)) if self._reading.is_sound(("connector_rules", index, "selector"))
        ]
        texts = [self._rules[index].selector for index in usable]
        if len(texts) * len(self._inventory) > MOST_PAIRS:
            sentence = f"{len(self._inventory):,} hosts and {len(texts):,} rules are too many to compare them all."
            yield diagnose("inventory-too-large", ("hosts",), sentence)
            self._inventory = []
        selectors, fields = Selectors(texts), SelectorFields(self._inventory)
        matched = selectors.matched(texts, self._inventory)
        matches = []
        for index, text, hosts in zip(usable, texts, matched, strict=True):
            path = ("connector_rules", index, "selector")
            yield from selectors.mistakes(text, path, fields)
            if text in selectors.queries:
                matches.append(RuleMatch(index, self._rules[index], hosts))
                if self._inventory and not hosts:
                    sentence = f"It matches none of the {len(self._inventory)} hosts of this file."
                    yield diagnose("selector-matches-none", path, sentence)
        yield from clashes(matches, self._inventory)
        yield from long_names(matches, self._inventory)
