"""
Entries that a request nearly hits, and what it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from webhookrx.query import explain
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.conditions import Conditions
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.locator import first_value

_FAILING: Final = 2
"""Conditions that may fail for each that holds."""


class NearMiss(NamedTuple):
    """
    An entry that does not match.

    @ivar failed: of the way to tell it that lacks least, the conditions that do not hold, in words; they may quote the
        request.
    """

    entry: str
    failed: list[str]


def near_misses(classifier: Classifier, evidence: Evidence, most: int = 3) -> list[NearMiss]:
    """
    Return the entries of which something holds that tells a sender, and not much more than that fails; those that lack
    least first.
    """
    found = []
    for rank, way in enumerate(classifier.ways):
        when = way.conditions
        telling = [*_headers(when, evidence), *_parameters(when, evidence), *_body(when, evidence)]
        held = telling.count(None)
        near = len(telling) <= (1 + _FAILING) * held
        failed = [words for words in (*telling, *_surroundings(when, evidence)) if words is not None]
        if failed and near:
            found.append((len(failed), -held, rank, NearMiss(way.entry.id, failed)))
    nearest: dict[str, NearMiss] = {}
    for *_, miss in sorted(found):
        nearest.setdefault(miss.entry, miss)
    return list(nearest.values())[:most]


# Each of these yields None for a condition that holds, else why it does not.


def _headers(when: Conditions, evidence: Evidence) -> Iterator[str | None]:
    there = set(evidence.header_names())
    for name, pattern in when.headers:
        text = name.decode()
        if name not in there:
            yield f"no header {text}"
        elif pattern is not None and not pattern.search(evidence.header(name) or ""):
            yield f"header {text} does not contain {pattern.pattern}"
        else:
            yield None
    if when.any_header:
        names = ", ".join(name.decode() for name in sorted(when.any_header))
        yield f"none of the headers {names}" if there.isdisjoint(when.any_header) else None


def _parameters(when: Conditions, evidence: Evidence) -> Iterator[str | None]:
    for name, pattern in when.parameters:
        value = first_value(evidence.query, name)
        if value is None:
            yield f"no query parameter {name}"
        elif pattern is not None and not pattern.search(value):
            yield f"query parameter {name} does not contain {pattern.pattern}"
        else:
            yield None


def _body(when: Conditions, evidence: Evidence) -> Iterator[str | None]:
    members = evidence.object or {}
    for name in sorted(when.body_keys):
        yield None if name in members else f"no body key {name}"
    if when.query is not None:
        explanation = explain(when.query, members)
        yield None if explanation.matched else ", ".join(map(str, explanation.deciding))


def _surroundings(when: Conditions, evidence: Evidence) -> Iterator[str | None]:
    """What many senders have in common, so that it tells none."""
    if when.content_type:
        yield None if evidence.media_type == when.content_type else f"content type is not {when.content_type}"
    if when.path is not None:
        found = when.path.search(evidence.head.path.decode("latin-1"))
        yield None if found else f"path does not contain {when.path.pattern}"
