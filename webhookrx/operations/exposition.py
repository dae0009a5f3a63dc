"""
The text of all metrics, by C{prometheus_client}, in pieces: with many sources, all of it at once would block the
reactor for a noticeable time.

Import this module only where metrics are served: nothing else needs that package, and it is not small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from webhookrx.operations.counters import SKEW_BOUNDS, Skews
from webhookrx.operations.metric import Metric, Sample, V
from webhookrx.store_counts import BOUNDS, Histogram

_ENDS = (*map(floatToGoString, BOUNDS), "+Inf")
_SKEW_ENDS = (*map(floatToGoString, SKEW_BOUNDS), "+Inf")
_EOF = b"# EOF\n"

#: Lines of one piece, which take some milliseconds.
PIECE = 250

#: Makes the text of a piece.
_Write = Callable[[Collector], bytes]


def exposition(metrics: Sequence[Metric[V]], view: V, accept: bytes) -> tuple[bytes, Iterator[bytes]]:
    """
    Return the type and the text of all metrics: OpenMetrics 1.0, or Prometheus' older text. Its pieces are made when
    they are asked for.

    @param view: what the metrics are read from; nothing changes it any more.
    @param accept: the value of the C{Accept} header, empty when there is none (RFC 9110 §12.5.1). Of the two formats,
        the one that it names first; the older one when it names neither. No part of it is in the result.
    """
    if _asks_for_openmetrics(accept):
        return openmetrics.CONTENT_TYPE_LATEST.encode("ascii"), _openmetrics(metrics, view)
    return CONTENT_TYPE_PLAIN_0_0_4.encode("ascii"), _pieces(metrics, view, generate_latest)


class _OneFamily(Collector):
    """A registry of one family."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> Iterator[Family]:
        yield self._family


def _asks_for_openmetrics(accept: bytes) -> bool:
    for media_type in accept.split(b","):
        name = media_type.partition(b";")[0].strip().lower()
        if name == b"application/openmetrics-text":
            return True
        if name == b"text/plain":
            break
    return False


def _openmetrics(metrics: Sequence[Metric[V]], view: V) -> Iterator[bytes]:
    for piece in _pieces(metrics, view, openmetrics.generate_latest):
        yield piece.removesuffix(_EOF)
    yield _EOF


def _pieces(metrics: Sequence[Metric[V]], view: V, write: _Write) -> Iterator[bytes]:
    for metric in metrics:
        lines = len(_ENDS) + 2 if metric.kind == "histogram" else 1
        samples = iter(metric.read(view))
        text = write(_OneFamily(_family(metric, list(islice(samples, PIECE // lines)))))
        yield text
        while more := list(islice(samples, PIECE // lines)):
            yield _without_head(write(_OneFamily(_family(metric, more))))


def _without_head(text: bytes) -> bytes:
    """Leave out help and type, which are in the first piece of a family."""
    return b"".join(line for line in text.splitlines(keepends=True) if not line.startswith((b"# HELP", b"# TYPE")))


def _family(metric: Metric[V], samples: Sequence[Sample]) -> Family:
    labels = metric.labels
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=labels)
        for values, times in samples:
            assert isinstance(times, (Histogram, Skews))
            ends = _ENDS if isinstance(times, Histogram) else _SKEW_ENDS
            histogram.add_metric(_texts(values), list(zip(ends, accumulate(times.counts), strict=True)), times.sum)
        return histogram
    if metric.kind == "info":
        info = InfoMetricFamily(metric.name.removesuffix("_info"), metric.help)
        for values, _ in samples:
            info.add_metric((), dict(zip(labels, _texts(values), strict=True)))
        return info
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(metric.name, metric.help, labels=labels)
    for values, value in samples:
        assert not isinstance(value, (Histogram, Skews))
        family.add_metric(_texts(values), value)
    return family


def _texts(values: Sequence[str]) -> list[str]:
    # The name of a file need not be UTF-8.
    return [value.encode("utf-8", "replace").decode() for value in values]
