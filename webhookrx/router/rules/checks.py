"""
The checks of a rules file: each rule and host alone, then rules that want one port or one name on a router.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec import structs

from webhookrx.diagnostics import Diagnostic, Path, diagnose, nearest, quoted_short
from webhookrx.errors import ConfigError
from webhookrx.intake.pattern_checks import check_patterns, health_path_problem
from webhookrx.router.rules.guard_checks import check_guard
from webhookrx.router.rules.router import name_clash, port_clash, too_long
from webhookrx.router.rules.rule import (
    LONGEST_NAME,
    PROTOCOLS,
    Host,
    Rule,
    check_label_key,
    check_label_value,
    check_name,
    check_rule_name,
    connector_name,
)
from webhookrx.router.steps.step import Preprocessing
from webhookrx.router.steps.step_compiler import step_problems

LONGEST_PATH: Final = 10_000
MOST_PATHS: Final = 10_000
"""Characters of a path, and paths of a rule."""

MOST_INSTRUCTIONS: Final = 500_000
"""Of RE2, in the paths of a rule together: it takes half a second to compile so many."""

_NOT_LOOKED_AT: Final = ("path-too-long", "paths-too-large")
"""What is wrong with paths of which not all have been compiled, as that would take long."""

_PRIVILEGED: Final = 1024
"""Ports below it need a privilege."""

#: Takes the paths of a rule, and returns what is wrong with them; the path of a diagnostic is the index of one of them.
PathCheck: TypeAlias = Callable[[tuple[str, ...]], tuple[Diagnostic, ...]]


def check_paths(paths: tuple[str, ...], *, allow_slow: bool = False) -> tuple[Diagnostic, ...]:
    """
    Return what is wrong with the paths of a rule, see L{PathCheck}.

    @param allow_slow: the operator takes the risk of patterns that RE2 can't run.
    """
    long = [index for index, path in enumerate(paths) if len(path) > LONGEST_PATH]
    if long or len(paths) > MOST_PATHS:
        sentence = f"A rule has at most {MOST_PATHS:,} paths, of {LONGEST_PATH:,} characters at most."
        return tuple(diagnose("path-too-long", (index,), sentence) for index in long or (MOST_PATHS,))
    return tuple(
        diagnose("path-slow", found.path, found.sentence) if allow_slow and found.code == "path-not-linear" else found
        for found in check_patterns(paths, MOST_INSTRUCTIONS)
    )


def check_host(host: Host, path: Path) -> Iterator[Diagnostic]:
    """Yield what is wrong with the host at a path."""
    yield from _checked("bad-name", (*path, "name"), check_name, host.name)
    yield from _check_labels(host.labels, (*path, "labels"))


def check_rule(rule: Rule, path: Path, check_paths: PathCheck) -> Iterator[Diagnostic]:
    """
    Yield what is wrong with the rule at a path, but for its selector.

    @param check_paths: L{check_paths} with a cache: most rules of a file have the same paths.
    """
    yield from _checked("bad-name", (*path, "name"), check_rule_name, rule.name)
    if rule.suffix:
        yield from _checked("bad-name", (*path, "suffix"), check_rule_name, rule.suffix)
    yield from _check_labels(rule.labels, (*path, "labels"))
    if rule.protocol not in PROTOCOLS:
        near = nearest(rule.protocol, PROTOCOLS)
        sentence = f"{quoted_short(rule.protocol)} is not a protocol; it takes HTTPS or HTTP. {near}".rstrip()
        yield diagnose("bad-protocol", (*path, "protocol"), sentence)
    yield from _check_port(rule.port, (*path, "port"))
    yield from _check_tls(rule, path)
    of_paths = check_paths(rule.paths)
    yield from check_guard(rule, path, with_paths=not any(found.code in _NOT_LOOKED_AT for found in of_paths))
    paths = (*path, "paths")
    if not rule.paths:
        sentence = "The list is empty, so that no request would be taken; leave it out for the default."
        yield diagnose("no-paths", paths, sentence)
    yield from (structs.replace(found, path=(*paths, *found.path)) for found in of_paths)
    problem = health_path_problem(rule.health) if rule.health else None
    if problem is not None:
        yield diagnose("bad-health", (*path, "health"), problem)
    yield from _check_preprocessing(rule.preprocessing, (*path, "preprocessing"))


def _checked(
    code: str, path: Path, check: Callable[..., None], *values: object, of_key: bool = False
) -> Iterator[Diagnostic]:
    try:
        check(*values)
    except ConfigError as error:
        yield diagnose(code, path, error.problem, of_key=of_key)


def _check_labels(labels: dict[str, str], path: Path) -> Iterator[Diagnostic]:
    for key, value in labels.items():
        yield from _checked("label-key", (*path, key), check_label_key, key, of_key=True)
        yield from _checked("label-value", (*path, key), check_label_value, value)


def _check_port(port: int, path: Path) -> Iterator[Diagnostic]:
    if not 1 <= port <= 65535:
        yield diagnose("port-range", path, f"{port} is not a port; it takes a whole number from 1 to 65535.")
    elif port < _PRIVILEGED:
        sentence = f"Port {port} can be opened by root only, or with CAP_NET_BIND_SERVICE; from 1024 on all can."
        yield diagnose("port-privileged", path, sentence)


def _check_tls(rule: Rule, path: Path) -> Iterator[Diagnostic]:
    for member, what, word, file in (
        ("key_file", "private key", "key", rule.key_file),
        ("cert_file", "certificate", "certificate", rule.cert_file),
    ):
        place = (*path, member)
        if rule.protocol == "HTTPS" and not file:
            sentence = f"HTTPS needs a {what}: {member} takes the absolute path of a PEM file on the router."
            yield diagnose(f"https-without-{word}", place, sentence)
        if rule.protocol == "HTTP" and file:
            yield diagnose(f"http-with-{word}", place, f"HTTP takes no {what}; leave {member} out, or write HTTPS.")
        if file and not file.startswith("/"):
            # A text with lines is no path, and may be the key itself.
            shown = "It" if "\n" in file or "-----" in file else quoted_short(file)
            sentence = f"{shown} is not an absolute path; it begins with a slash, such as /etc/webhookrx/key.pem."
            yield diagnose("relative-path", place, sentence)


def _check_preprocessing(preprocessing: Preprocessing, path: Path) -> Iterator[Diagnostic]:
    classified = preprocessing.classify
    if preprocessing.parse and not classified:
        yield diagnose(
            "parse-without-classify", (*path, "parse"), "Parse needs Classify: write classify: yes beside it."
        )
    for number, step in enumerate(preprocessing.steps):
        place = (*path, "steps", number)
        if step.parse and not classified:
            sentence = "Parse needs a Classify before it: classify: yes in preprocessing, or an earlier step."
            yield diagnose("parse-without-classify", (*place, "parse"), sentence)
        classified = classified or bool(step.classify)
        for problem in step_problems(step, number + 1):
            yield structs.replace(problem, path=(*place, *problem.path))


class RuleMatch(NamedTuple):
    """
    A rule, and the hosts of the inventory that it matches.

    @ivar rule_index: that of the rule in the file.
    @ivar hosts: the indices of the hosts.
    """

    rule_index: int
    rule: Rule
    hosts: Sequence[int]


def clashes(matches: Sequence[RuleMatch], hosts: Sequence[Host]) -> Iterator[Diagnostic]:
    """
    Yield rules with the port or the connector name of an earlier rule, on a host of the inventory or on any possible
    router, each beside the first such rule.
    """
    usable = [each for each in matches if 1 <= each.rule.port <= 65535]
    for second, first, host in _meetings(usable, lambda rule: rule.port, hosts):
        where = _where(second, first, host)
        yield diagnose(
            "port-clash",
            ("connector_rules", second.rule_index, "port"),
            port_clash(second.rule, first.rule.name, where),
        )
    named = [each for each in matches if each.rule.name]
    for second, first, host in _meetings(named, _tail, hosts):
        if second.rule.name != first.rule.name:
            name = connector_name(host.name if host else "ROUTER", second.rule.name, second.rule.suffix)
            sentence = name_clash(name, second.rule, first.rule.name)
            yield diagnose("duplicate-connector", ("connector_rules", second.rule_index, "name"), sentence)


def long_names(matches: Sequence[RuleMatch], hosts: Sequence[Host]) -> Iterator[Diagnostic]:
    """Yield rules whose connector name is too long on a host of the inventory."""
    for rule_index, rule, matched in matches:
        names = (connector_name(hosts[index].name, rule.name, rule.suffix) for index in matched)
        name = next((name for name in names if len(name) > LONGEST_NAME), None)
        if name is not None:
            yield diagnose("connector-name-too-long", ("connector_rules", rule_index, "name"), too_long(name))


def _tail(rule: Rule) -> str:
    """Return the connector name without that of the router."""
    return connector_name("", rule.name, rule.suffix)


def _meetings(
    matches: Sequence[RuleMatch], wanted: Callable[[Rule], Hashable], hosts: Sequence[Host]
) -> Iterator[tuple[RuleMatch, RuleMatch, Host | None]]:
    """
    Yield pairs of rules that want the same on one router: the later rule, the earlier one, and a host where they meet;
    None for all routers that both match.
    """
    groups: dict[Hashable, list[RuleMatch]] = {}
    for each in matches:
        groups.setdefault(wanted(each.rule), []).append(each)
    for group in groups.values():
        if len(group) > 1:
            yield from _in_group(group, hosts)


def _in_group(group: Sequence[RuleMatch], hosts: Sequence[Host]) -> Iterator[tuple[RuleMatch, RuleMatch, Host | None]]:
    by_selector: dict[str, RuleMatch] = {}
    by_host: dict[int, RuleMatch] = {}
    for each in group:
        selector = each.rule.selector.strip()
        everywhere = by_selector.get(selector)
        if everywhere is None and not hosts:
            # A rule for all routers meets any other rule.
            everywhere = by_selector.get("") if selector else next(iter(by_selector.values()), None)
        meeting = next((index for index in each.hosts if index in by_host), None)
        if everywhere is not None:
            yield each, everywhere, None
        elif meeting is not None:
            yield each, by_host[meeting], hosts[meeting]
        by_selector.setdefault(selector, each)
        for index in each.hosts:
            by_host.setdefault(index, each)


def _where(second: RuleMatch, first: RuleMatch, host: Host | None) -> str:
    if host is None:
        same = "all routers" if not second.rule.selector.strip() else "the routers that match"
        return same if first.rule.selector.strip() == second.rule.selector.strip() else "the routers that match both"
    others = len(set(second.hosts) & set(first.hosts)) - 1
    return quoted_short(host.name) + (f" and {others} more of the hosts" if others else "")
