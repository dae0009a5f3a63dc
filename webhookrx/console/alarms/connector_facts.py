"""
The facts about the connectors of routers, and about sources that routers have of their own, of which alarms are made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from webhookrx.console.counts.console_counts import ConsoleCounts
from webhookrx.console.counts.count_tables import SeriesLabels
from webhookrx.console.routers.registry import EnrolledRouter
from webhookrx.management.agent_protocol import CountsReport, SeriesCounts
from webhookrx.management.alarm_values import NO_MESSAGE_YET, Fact, Facts, certificate_text, last_message_text
from webhookrx.management.rollups import SECOND, CountedPart, counted_since
from webhookrx.quantities import readable_span

CONNECTOR_KINDS: Final = frozenset({"silent", "refused", "certificate"})

REFUSED_OVER: Final = 60.0
"""Seconds over which refusals are taken, as far as routers report so often."""

MOST_IN_PIECE: Final = 100
"""Connectors of one piece."""

Labels = Callable[[EnrolledRouter], Callable[[str], SeriesLabels]]


class ConnectorFacts:
    """
    Makes facts. Ages are measured on the monotonic clock, as in L{webhookrx.console.alarms.fleet_facts.FleetFacts}.

    @param labels: returns what tells the labels of a connector of a router.
    """

    def __init__(self, counts: ConsoleCounts, labels: Labels) -> None:
        self._counts = counts
        self._labels = labels
        self._heard: dict[tuple[str, ...], tuple[float, float]] = {}
        self._heard_before: dict[tuple[str, ...], tuple[float, float]] = {}
        self._samples: dict[str, deque[CountsReport]] = {}
        self._hidden: set[str] = set()
        self._kinds: Collection[str] = ()
        self._now = self._at = 0.0

    def begin(self, kinds: Collection[str], now: float, at: float) -> None:
        """See L{webhookrx.console.alarms.fleet_facts.FleetFacts.begin}."""
        self._kinds, self._now, self._at = CONNECTOR_KINDS.intersection(kinds), now, at
        self._heard_before, self._heard = self._heard, {}
        self._hidden.clear()

    def pieces(self, router: EnrolledRouter, *, is_known: bool) -> Iterator[Facts]:
        """
        Yield the facts about an approved router.

        @param is_known: it is there, and has told this process of the console of itself.
        """
        if not is_known:
            self._hidden.add(router.name)
        newest = self._counts.newest(router.guid)
        if "refused" in self._kinds and newest is not None:
            self._sample(router, newest)
        if not self._kinds or not router.instance:
            return
        labels = self._labels(router)
        if "silent" in self._kinds and router.senders:
            yield {"silent": list(self._senders(router, labels, is_known=is_known))}
        names = {each.name: each.certificate_end for each in router.connectors}
        series = {} if newest is None else {each.name: each for each in newest.series}
        samples: Sequence[CountsReport] = self._samples.get(router.guid, ())
        before = {each.name: each for each in samples[0].series} if samples else {}
        seconds = (samples[-1].until - samples[0].until) / SECOND if samples else 0.0
        remaining = iter({**dict.fromkeys(series, 0), **names}.items())
        while piece := list(islice(remaining, MOST_IN_PIECE)):
            made: dict[str, list[Fact]] = {kind: [] for kind in self._kinds}
            for name, end in piece:
                subject, fields = f"{router.name}/{name}", labels(name).record
                if "silent" in made and name:
                    last = series[name].last if name in series else 0.0
                    age = self._age(router.guid, name, last, newest if is_known else None)
                    made["silent"].append(_silent(subject, fields, age, is_known=is_known))
                if "certificate" in made and end:
                    left = end / SECOND - self._at
                    made["certificate"].append(_certificate(subject, fields, left, is_known=is_known))
                if "refused" in made and is_known and name in series and series[name].refused:
                    made["refused"] += _refusals(subject, fields, name, before, series, seconds)
            yield made

    def is_hidden(self, subject: str) -> bool:
        """Tell whether a connector without a fact is of a router of which nothing is known."""
        router, slash, _ = subject.partition("/")
        return bool(slash) and router in self._hidden

    def end(self, routers: Collection[str]) -> None:
        """See L{webhookrx.console.alarms.fleet_facts.FleetFacts.end}."""
        self._heard_before = {}
        self._samples = {guid: samples for guid, samples in self._samples.items() if guid in routers}

    def _age(self, guid: str, name: str, last: float, newest: CountsReport | None) -> float | None:
        """
        Return for how many seconds a connector has sent no message; None if it never has.

        @param last: when the last message of this process of the router came, by the clock of the router, as is when
            its counts were taken; 0 if none has.
        """
        last = last or self._counts.last_messages(guid).get(name, 0.0)
        return self._since((guid, name), last, None if newest is None else newest.until) if last else None

    def _since(self, key: tuple[str, ...], last: float, until: int | None) -> float:
        """
        Return for how many seconds something is as it is.

        @param until: when that was told, by the clock of the router; None if that is not known now.
        """
        heard = self._heard_before.get(key)
        if until is not None and (heard is None or heard[0] != last):
            heard = last, self._now - max(0.0, until / SECOND - last)
        if heard is None:
            return max(0.0, self._at - last)
        self._heard[key] = heard
        return self._now - heard[1]

    def _senders(
        self, router: EnrolledRouter, labels: Callable[[str], SeriesLabels], *, is_known: bool
    ) -> Iterator[Fact]:
        until = router.told_at if is_known else None
        # Each once: facts of one subject would be added up.
        for (name, sender), last in {(each.name, each.sender): each.last for each in router.senders}.items():
            age = self._since((router.guid, name, sender), last, until) if last else None
            fields = {**labels(name).record, "sender": sender}
            yield _silent(f"{router.name}/{name}/{sender}", fields, age, is_known=is_known)

    def _sample(self, router: EnrolledRouter, newest: CountsReport) -> None:
        samples = self._samples.setdefault(router.guid, deque())
        if samples and samples[-1].begun != newest.begun:
            # Another process, which has counted from nothing.
            samples.clear()
            samples.append(CountsReport(begun=newest.begun, since=newest.begun, until=newest.begun))
        if not samples or samples[-1].until != newest.until:
            samples.append(newest)
        while len(samples) > 2 and newest.until - samples[1].until >= REFUSED_OVER * SECOND:
            samples.popleft()
        if len(samples) < 2:
            self._hidden.add(router.name)


def _silent(subject: str, fields: Mapping[str, Any], age: float | None, *, is_known: bool) -> Fact:
    if age is None:
        return Fact(subject, fields, 0.0 if is_known else None, NO_MESSAGE_YET, is_first=True)
    return Fact(subject, fields, age if is_known else None, last_message_text(age))


def _certificate(subject: str, fields: Mapping[str, Any], left: float, *, is_known: bool) -> Fact:
    return Fact(subject, fields, left if is_known else None, certificate_text(left))


def _requests(counted: Iterable[SeriesCounts | CountedPart]) -> int:
    return sum(each.messages + sum(each.refused.values()) for each in counted)


def _refusals(
    subject: str,
    fields: Mapping[str, Any],
    name: str,
    before: Mapping[str, SeriesCounts],
    now: Mapping[str, SeriesCounts],
    seconds: float,
) -> Iterator[Fact]:
    lately = counted_since(before.get(name), now[name])
    requests = _requests([lately])
    if not name:
        # What was refused before a connector was known is a part of all requests.
        requests = max(requests, _requests(now.values()) - _requests(before.values()))
    for reason in now[name].refused if seconds > 0 else ():
        count = lately.refused.get(reason, 0)
        text = f"{count:,} requests were refused in {readable_span(round(seconds))} ({reason})."
        share = count / requests if requests else 0.0
        yield Fact(subject, {**fields, "reason": reason}, count / seconds, text, share)
