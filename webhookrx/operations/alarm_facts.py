"""
The facts about a receiver of which alarms are made: plain values of its counters and of the receiver at one moment.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from webhookrx.management.alarm_values import (
    NO_MESSAGE_YET,
    Fact,
    Facts,
    certificate_text,
    last_message_text,
    waiting_text,
)
from webhookrx.operations.counters import Counters
from webhookrx.operations.snapshot import ReceiverSnapshot
from webhookrx.quantities import readable_span

REFUSED_OVER: Final = 60.0
"""Seconds over which refusals are taken."""

_GATE: Final = "gate"
_MOST_TEXT: Final = 300


class _Sample(NamedTuple):
    now: float
    refused: Mapping[tuple[str, str], int]
    taken: Mapping[str, int]


class AlarmFacts:
    """
    Makes facts. Ages are measured on the monotonic clock, so that a clock that is set makes nobody silent.

    @param now: monotonic.
    """

    def __init__(self, now: float) -> None:
        self._heard: dict[tuple[str, str | None], tuple[float, float]] = {}
        self._samples: deque[_Sample] = deque([_Sample(now, {}, {})])
        self._began = now

    def facts(
        self, kinds: Collection[str], counters: Counters, snapshot: ReceiverSnapshot, now: float, at: float
    ) -> Facts:
        """
        Return the facts for alarms of these kinds.

        @param at: seconds since the epoch.
        """
        made: dict[str, list[Fact]] = {}
        fields = _fields(snapshot) if not {"silent", "refused"}.isdisjoint(kinds) else {}
        if "silent" in kinds:
            made["silent"] = list(self._silent(counters, fields, now))
        if "refused" in kinds:
            made["refused"] = list(self._refused(counters, fields, now))
        if "gate_closed" in kinds:
            made["gate_closed"] = [_gate(snapshot)]
        if "certificate" in kinds:
            made["certificate"] = [_certificate(file, end - at) for file, end in snapshot.certificates.items()]
        if "spool" in kinds:
            made["spool"] = list(_spools(snapshot, at))
        return made

    def _silent(self, counters: Counters, fields: Mapping[str, Mapping[str, Any]], now: float) -> Iterator[Fact]:
        heard: dict[tuple[str, str | None], tuple[float, float]] = {}
        for source, known in fields.items():
            counts = counters.sources.get(source)
            lasts: dict[str | None, float] = {None: 0.0 if counts is None else counts.last}
            if counts is not None:
                lasts.update((sender, last) for sender, last in counts.last_by_sender.items() if sender)
            for sender, last in lasts.items():
                before = self._heard.get((source, sender))
                since = now if before is None or before[0] != last else before[1]
                heard[source, sender] = last, since
                subject = source if sender is None else f"{source}/{sender}"
                its_own = known if sender is None else {**known, "sender": sender}
                text = last_message_text(now - since) if last else NO_MESSAGE_YET
                yield Fact(subject, its_own, now - since, text)
        self._heard = heard

    def _refused(self, counters: Counters, fields: Mapping[str, Mapping[str, Any]], now: float) -> Iterator[Fact]:
        refused = {(source, word): count for (word, source), count in counters.labelled("refused")}
        taken = {source: counts.messages for source, counts in counters.sources.items()}
        self._samples.append(_Sample(now, refused, taken))
        while len(self._samples) > 2 and now - self._samples[1].now >= REFUSED_OVER:
            self._samples.popleft()
        before = self._samples[0]
        seconds = max(now - before.now, 1e-9)
        # A worker that has ended takes its counts of the last moments along.
        lately = {key: max(0, count - before.refused.get(key, 0)) for key, count in refused.items()}
        requests = Counter({source: max(0, count - before.taken.get(source, 0)) for source, count in taken.items()})
        for (source, _), count in lately.items():
            requests[source] += count
        # What was refused before a source was known is a part of all requests.
        requests[""] = requests.total()
        for (source, word), count in lately.items():
            if source and source not in fields:
                continue
            share = count / requests[source] if requests[source] else 0.0
            text = f"{count:,} requests were refused in the last {readable_span(round(seconds))} ({word})."
            yield Fact(source, {**fields.get(source, {"source": ""}), "reason": word}, count / seconds, text, share)


def _fields(snapshot: ReceiverSnapshot) -> dict[str, dict[str, Any]]:
    """Return what queries test of each source."""
    fields: dict[str, dict[str, Any]] = {name: {"source": name} for name in snapshot.sources}
    for name, rule, _, port, product, vendor, labels in snapshot.connectors:
        if name in fields:
            pairs = (pair.partition("=") for pair in labels.split(",") if pair)
            fields[name].update(
                rule=rule, port=port, product=product, vendor=vendor, label={key: value for key, _, value in pairs}
            )
    return fields


def _certificate(file: str, left: float) -> Fact:
    return Fact(file, {"file": file}, left, certificate_text(left))


def _spools(snapshot: ReceiverSnapshot, at: float) -> Iterator[Fact]:
    for lane in snapshot.lanes:
        backlog = lane.backlog
        if backlog is not None:
            # The clock may have been set back.
            age = 0.0 if backlog.oldest is None else max(0.0, at - backlog.oldest / 1e9)
            yield Fact(lane.spec, {"observer": lane.spec}, age, waiting_text(backlog.messages, age))


def _gate(snapshot: ReceiverSnapshot) -> Fact:
    reasons = (*(each.text for each in snapshot.blocked), *(each.sentence for each in snapshot.closed))
    return Fact(_GATE, {}, float(bool(reasons)), " ".join(reasons)[:_MOST_TEXT] or "The gate is open.")
