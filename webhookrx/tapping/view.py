"""
What a tap sees of a source, and of one of its messages: as it came, as it was at a probe, and as it is stored.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from webhookrx.intake.head import Head
from webhookrx.intake.header_masking import recorded_headers
from webhookrx.intake.judge import Accepted, Admission, Dropped, Receipt
from webhookrx.router.connector_intake import ConnectorRules, judge_connector
from webhookrx.router.steps.step import Preprocessing, Probe
from webhookrx.router.steps.traced import TracedProcessing
from webhookrx.tapping.masking import MOST_SHOWN

PROBE: Final = "probe:"


class MessageView(Protocol):
    """One message, at each point; what is not asked for is not made."""

    @property
    def dropped(self) -> bool:
        """Whether a step has dropped it."""

    def at(self, point: str) -> Mapping[str, Any] | None:
        """Return the message at a point; for the empty one, as it came out. None where it does not come by."""


class SourceView(Protocol):
    """
    One source.

    @ivar name: unique.
    @ivar port: that of a connector; None for any other source.
    @ivar labels: those of a connector.
    """

    name: str
    port: int | None
    labels: Mapping[str, str]

    def view(
        self, head: Head, admission: Admission, body: bytes, receipt: Receipt, verdict: Accepted | Dropped
    ) -> MessageView:
        """Return what can be seen of a message."""


class RequestSource:
    """
    A source of the collector form. Its input is the request.

    @param mask: returns a head without tokens and secrets; None if there are none.
    @param mask_body: returns a body without secrets, likewise; what it raises is why the body is not shown.
    @param masked_headers: see L{recorded_headers}.
    """

    def __init__(
        self,
        name: str,
        mask: Callable[[Head], Head] | None = None,
        mask_body: Callable[[bytes], bytes] | None = None,
        masked_headers: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.port: int | None = None
        self.labels: Mapping[str, str] = {}
        self._mask = mask
        self._mask_body = mask_body
        self._masked_headers = masked_headers

    def view(
        self, head: Head, admission: Admission, body: bytes, receipt: Receipt, verdict: Accepted | Dropped
    ) -> MessageView:
        """See L{SourceView.view}."""
        return _RequestView(self, head, body, verdict)

    def request(self, head: Head, body: bytes) -> dict[str, Any]:
        """Return a request without tokens, as far as it is shown."""
        shown = head if self._mask is None else self._mask(head)
        if self._mask_body is not None:
            body = self._mask_body(body)
        return {
            "method": shown.method.decode("latin-1"),
            "path": shown.path.decode("latin-1"),
            "query": (shown.query or b"").decode("latin-1"),
            "peer": str(shown.peer),
            "headers": recorded_headers(shown.headers, self._masked_headers),
            "body": body[: MOST_SHOWN + 1].decode("utf-8", "replace"),
        }


class _RequestView:
    def __init__(self, source: RequestSource, head: Head, body: bytes, verdict: Accepted | Dropped) -> None:
        self.dropped = isinstance(verdict, Dropped)
        self._source = source
        self._head = head
        self._body = body
        self._verdict = verdict
        self._input: dict[str, Any] | None = None

    def at(self, point: str) -> Mapping[str, Any] | None:
        """See L{MessageView.at}."""
        if point == "input":
            self._input = self._input or self._source.request(self._head, self._body)
            return self._input
        if point.startswith(PROBE):
            return None
        return _output(self._verdict)


class ConnectorSource:
    """
    A connector. Its input is the message before the first step; for that, and for probes, the steps run once more.

    @param rules: those of the connector.
    @param preprocessing: its steps as they are written.
    @param processing: makes the same steps, traced, when they are needed.
    """

    def __init__(
        self, rules: ConnectorRules, preprocessing: Preprocessing, processing: Callable[[], TracedProcessing]
    ) -> None:
        self.name: str = rules.name
        self.port: int | None = rules.connector["port"]
        self.labels: Mapping[str, str] = rules.connector["labels"]
        self._rules = copy.copy(rules)
        self._make = processing
        self._traced: TracedProcessing | None = None
        first = int(preprocessing.classify) + int(preprocessing.parse)
        self._probes = {
            _probe_name(step.probe): first + index
            for index, step in enumerate(preprocessing.steps)
            if step.probe is not None
        }

    def view(
        self, head: Head, admission: Admission, body: bytes, receipt: Receipt, verdict: Accepted | Dropped
    ) -> MessageView:
        """See L{SourceView.view}."""
        return _ConnectorView(self, head, admission, body, receipt, verdict)

    def trace(self, head: Head, admission: Admission, body: bytes, receipt: Receipt) -> TracedProcessing | None:
        """Run the steps once more, and return what they have left; None for a connector without steps."""
        if self._traced is None:
            self._traced = self._rules.processing = self._make()
        if self._traced.idle:
            return None
        again = Admission(self._rules, admission.groups, admission.query, admission.encodings, admission.provenance)
        judge_connector(head, again, body, receipt)
        return self._traced

    def probe(self, name: str) -> int | None:
        """Return the index of the step that is the probe of this name; None without one."""
        return self._probes.get(name)


class _ConnectorView:
    def __init__(
        self,
        source: ConnectorSource,
        head: Head,
        admission: Admission,
        body: bytes,
        receipt: Receipt,
        verdict: Accepted | Dropped,
    ) -> None:
        self.dropped = isinstance(verdict, Dropped)
        self._source = source
        self._request = head, admission, body, receipt
        self._verdict = verdict
        self._before: dict[str, Any] | None = None
        self._trace: list[dict[str, Any]] | None = None

    def at(self, point: str) -> Mapping[str, Any] | None:
        """See L{MessageView.at}."""
        if point == "input":
            self._run()
            return _output(self._verdict) if self._before is None else self._before
        if point.startswith(PROBE):
            index = self._source.probe(point.removeprefix(PROBE))
            if index is None:
                return None
            self._run()
            return self._trace[index] if self._trace is not None and index < len(self._trace) else None
        if not point and self.dropped:
            return self.at("input")
        return _output(self._verdict)

    def _run(self) -> None:
        if self._trace is None:
            trace = self._source.trace(*self._request)
            self._trace = [] if trace is None else [step.record for step in trace.trace]
            self._before = None if trace is None else trace.before


def _output(verdict: Accepted | Dropped) -> Mapping[str, Any] | None:
    return verdict.message.values if isinstance(verdict, Accepted) else None


def _probe_name(probe: Probe | str) -> str:
    return probe if isinstance(probe, str) else probe.name
