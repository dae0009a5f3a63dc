"""
What all sources together make of their endpoints: those that share one, those that are in each other's way, and the
patterns that are tried on each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from webhookrx.config.problems import Problems
from webhookrx.config.source_endpoints import PlacedListener
from webhookrx.config.source_settings import PlacedPattern
from webhookrx.diagnostics import quoted
from webhookrx.intake.pattern_checks import NO_SLASH, NOT_LINEAR, check_patterns
from webhookrx.settings import Listener

_HOW_TO_ALLOW = (
    "Write it without look-around, references to groups, atomic groups and very large repetitions, or say "
    "allow_slow_patterns: yes (--allow-slow-patterns)."
)


def share_endpoints(listeners: Sequence[PlacedListener], problems: Problems) -> list[PlacedListener]:
    """
    Return the listeners with equal ones made the same object, so that sources that share an endpoint have an equal
    L{Listener}, however each wrote it. Conflicts are noted.
    """
    kept: list[PlacedListener] = []
    for each in listeners:
        other = next((known for known in kept if known.endpoint.address.overlaps(each.endpoint.address)), None)
        if other is None:
            kept.append(each)
        elif _same_socket(each.listener, other.listener) and each.listener.tls == other.listener.tls:
            if each.source == other.source:
                problems.warn(f"{quoted(each.listener.text)} is there twice.", each.place)
            else:
                kept.append(replace(each, listener=other.listener))
        else:
            problems.error(_conflict(each, other), each.place)
    return kept


def _same_socket(one: Listener, other: Listener) -> bool:
    return (one.inner, one.proxy_protocol) == (other.inner, other.proxy_protocol)


def _conflict(each: PlacedListener, other: PlacedListener) -> str:
    ours, theirs = quoted(each.listener.text), quoted(other.listener.text)
    if each.source == other.source:
        who = f"source {quoted(each.source)} has {theirs} and {ours}"
    else:
        who = f"source {quoted(other.source)} has {theirs}, source {quoted(each.source)} has {ours}"
    if _same_socket(each.listener, other.listener):
        return f"One endpoint has one TLS setting, but here it has two: {who}."
    return f"Two endpoints can't take the same address: {who}."


def check_shared_patterns(
    patterns: Mapping[str, Sequence[PlacedPattern]],
    slow: Collection[str],
    listeners: Sequence[PlacedListener],
    problems: Problems,
) -> None:
    """
    Check the patterns of each endpoint in the order in which they are tried: those of one source after another.

    @param patterns: by the name of the source.
    @param slow: the names of those sources whose patterns need not run on RE2.
    """
    groups: dict[str, tuple[str, ...]] = {}
    for each in listeners:
        groups[each.listener.inner] = (*groups.get(each.listener.inner, ()), each.source)
    # A source whose endpoint is wrong still has its patterns looked at.
    together = {*groups.values(), *((name,) for name in patterns)}
    for names in sorted(together):
        # What is hidden among some of them is hidden among all of them: say it once.
        if any(set(names) < set(others) for others in together):
            continue
        owners = [name for name in names for _ in patterns[name]]
        placed = [pattern for name in names for pattern in patterns[name]]
        checked = check_patterns([pattern.text for pattern in placed])
        for error in checked.errors:
            place = placed[error.index].place
            if error.kind != NOT_LINEAR:
                problems.error(error.text, place)
            elif owners[error.index] in slow:
                problems.warn(error.text, place)
            else:
                problems.error(f"{error.text} {_HOW_TO_ALLOW} [path-not-linear]", place)
        for warning in checked.warnings:
            note = problems.error if warning.kind == NO_SLASH else problems.warn
            note(warning.text, placed[warning.index].place)
