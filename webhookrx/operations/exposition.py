"""
The table of metrics as text, by C{prometheus_client}.

Nothing else imports that package, and it is not small: import this module only when somebody will ask for metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate

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

from webhookrx.operations.counters import BOUNDS, Histogram
from webhookrx.operations.metric import Metric, View
from webhookrx.operations.metrics import METRICS

_ENDS = (*map(floatToGoString, BOUNDS), "+Inf")


class Exposition(Collector):
    """
    Metrics for whoever asks.

    @param view: gives all that they are read from.
    """

    def __init__(self, view: Callable[[], View]) -> None:
        self._view = view

    def collect(self) -> Iterator[Family]:
        """Yield every line of the table with its values of this moment."""
        view = self._view()
        for metric in METRICS:
            yield _family(metric, view)

    def text(self, accept: bytes) -> tuple[bytes, bytes]:
        """
        Return the type and the text of all metrics: OpenMetrics 1.0, or Prometheus' older text.

        @param accept: the value of the C{Accept} header, empty when there is none (RFC 9110 §12.5.1). Of the two,
            the one that it names first; the older one when it names neither. No part of it is in the result.
        """
        for media_type in accept.split(b","):
            name = media_type.partition(b";")[0].strip().lower()
            if name == b"application/openmetrics-text":
                return openmetrics.CONTENT_TYPE_LATEST.encode("ascii"), openmetrics.generate_latest(self)
            if name == b"text/plain":
                break
        return CONTENT_TYPE_PLAIN_0_0_4.encode("ascii"), generate_latest(self)


def _family(metric: Metric, view: View) -> Family:
    labels = metric.labels
    samples = metric.read(view)
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=labels)
        for values, times in samples:
            assert isinstance(times, Histogram)
            histogram.add_metric(values, list(zip(_ENDS, accumulate(times.counts), strict=True)), times.sum)
        return histogram
    if metric.kind == "info":
        info = InfoMetricFamily(metric.name.removesuffix("_info"), metric.help)
        for values, _ in samples:
            info.add_metric((), dict(zip(labels, values, strict=True)))
        return info
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(metric.name, metric.help, labels=labels)
    for values, value in samples:
        assert not isinstance(value, Histogram)
        family.add_metric(values, value)
    return family
