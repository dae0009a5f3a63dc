"""
Tests for L{webhookrx.operations.metrics}, L{webhookrx.operations.metric} and L{webhookrx.operations.exposition}.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest, parser
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.registry import Collector
from twisted.trial.unittest import SynchronousTestCase

from tests import documents
from tests.operations.snapshots import EMPTY, make_snapshot
from webhookrx.errors import BAD_TOKEN, NO_MATCHING_PATH, NO_ROOM, NOT_STORED, REASONS, TARGET_TOO_LONG
from webhookrx.interfaces import LaneStatus
from webhookrx.operations.counters import Counters
from webhookrx.operations.exposition import PIECE, exposition
from webhookrx.operations.health import ALONE, WorkerState
from webhookrx.operations.metric import REASONS_OF_SOURCE, REASONS_WITHOUT_SOURCE, Build, View
from webhookrx.operations.metrics import METRICS
from webhookrx.operations.oplog import LineLimit
from webhookrx.operations.snapshot import Level, Phase
from webhookrx.operations.traffic_log import TrafficLog
from webhookrx.router.gate import GateReason
from webhookrx.store_counts import BOUNDS, StoreCounts

OVERLOAD = ("unread_age_seconds", "overloaded", "dropped_unread_connections_total")

PLAIN = b"text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = b"application/openmetrics-text; version=1.0.0; charset=utf-8"
#: Suffixes that say what unit a number has, and those that the text adds.
NO_BASE_UNITS = re.compile(r"_(milliseconds|ms|minutes|hours|kilobytes|kb|mb|mib|percent|count|sum|bucket)(_|$)")
BUILD = Build(python="3.11.7", twisted="26.10.0", version="26.11.0", path="compiled")


class MetricsTestCase(SynchronousTestCase):
    """Has counters and snapshot, and what is said of them."""

    def setUp(self) -> None:
        """Begin with nothing counted."""
        self.counters = Counters()
        self.snapshot = make_snapshot()
        self.traffic = TrafficLog(self.counters, LineLimit(lambda: 0.0, lines=0), str)
        self.workers: tuple[WorkerState, ...] = (ALONE,)

    def exposition(self, accept: bytes) -> tuple[bytes, Iterator[bytes]]:
        """Return type and text as they are now."""
        counters = self.counters.copy()
        view = View(counters, self.snapshot, BUILD, 1_500_000_000.0, 900_000_000.0, self.workers)
        return exposition(METRICS, view, accept)

    def text(self, accept: bytes = b"") -> str:
        """Return the whole text."""
        return b"".join(self.exposition(accept)[1]).decode()

    def values(self) -> dict[str, float]:
        """Return every sample: its name, its labels in the order of their names, and its value."""
        samples = [sample for family in parser.text_string_to_metric_families(self.text()) for sample in family.samples]
        found = {_shown(sample.name.removeprefix("webhookrx_"), sample.labels): sample.value for sample in samples}
        self.assertEqual(len(samples), len(found), "a sample is there twice")
        return found

    def value(self, name: str, **labels: str) -> float:
        """Return one sample."""
        return self.values()[_shown(name, labels)]


def _shown(name: str, labels: dict[str, str]) -> str:
    return name + "".join(f" {label}={labels[label]}" for label in sorted(labels))


class TableTests(MetricsTestCase):
    """What is declared is what is there."""

    def test_complete(self) -> None:
        """The text holds every line of the table, in its order, with its kind and its help, and nothing else."""
        text = self.text()
        kinds = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
        helps = re.findall(r"^# HELP (\S+) (.+)$", text, re.MULTILINE)
        kind_in_text = {"info": "gauge"}
        self.assertEqual([(metric.name, kind_in_text.get(metric.kind, metric.kind)) for metric in METRICS], kinds)
        self.assertEqual([(metric.name, metric.help) for metric in METRICS], helps)

    def test_names(self) -> None:
        """Names have the prefix and base units; counters and they alone end in _total; helps are sentences."""
        self.assertEqual(len(METRICS), len({metric.name for metric in METRICS}))
        for metric in METRICS:
            self.assertRegex(metric.name, r"\Awebhookrx_[a-z]+(_[a-z]+)*\Z")
            self.assertEqual(metric.kind == "counter", metric.name.endswith("_total"), metric.name)
            self.assertEqual(metric.kind == "info", metric.name.endswith("_info"), metric.name)
            self.assertNotRegex(metric.name, NO_BASE_UNITS)
            # Nothing in it that one of the formats would have to escape.
            self.assertRegex(metric.help, r"\A[A-Z0-9][^\"\\\n]*\.\Z")
            if metric.kind == "histogram":
                self.assertTrue(metric.name.endswith("_seconds"), metric.name)
            for label in metric.labels:
                self.assertRegex(label, r"\A[a-z]+\Z")
                self.assertNotIn(label, ("le", "job", "instance"))

    def test_labels(self) -> None:
        """Every sample of a metric has exactly its labels."""
        labels = {metric.name: set(metric.labels) for metric in METRICS}
        families = list(parser.text_string_to_metric_families(self.text()))
        for family in families:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            for sample in family.samples:
                self.assertEqual(labels[name], set(sample.labels) - {"le"}, sample)

    def test_from_the_start(self) -> None:
        """Every source, reason and observer is there with 0 before anything has happened, so that rates are right."""
        values = self.values()
        counted = [name for name in values if re.search("_total|_bucket|_count", name)]
        self.assertEqual({0.0}, {values[name] for name in counted})
        for source, reasons in (
            ("", REASONS_WITHOUT_SOURCE), ("github", REASONS_OF_SOURCE), ("gitlab", REASONS_OF_SOURCE),
        ):  # fmt: skip
            for reason in REASONS:
                there = reason.word in reasons
                self.assertEqual(there, f"refusals_total reason={reason.word} source={source}" in values, reason)
                if there:
                    self.assertIn(f"requests_total source={source} status={reason.status}", values)
        self.assertIn("requests_total source=github status=200", values)
        self.assertNotIn("requests_total source=github status=404", values)
        self.assertIn("observer_store_seconds_count observer=file:/x", values)

    def test_reasons(self) -> None:
        """Each reason is one of a source, or one that comes before any source is known, or both."""
        self.assertEqual({reason.word for reason in REASONS}, REASONS_OF_SOURCE | REASONS_WITHOUT_SOURCE)
        self.assertEqual({"bad_request", "timeout", "internal_error"}, REASONS_OF_SOURCE & REASONS_WITHOUT_SOURCE)

    def test_impossible(self) -> None:
        """A count is shown also where it should not be possible."""
        self.traffic.refused(TARGET_TOO_LONG, "No.", "192.0.2.7", b"", b"", "github")
        self.traffic.refused(BAD_TOKEN, "No.", "192.0.2.7", b"", b"")
        self.assertEqual(1, self.value("refusals_total", source="github", reason="target_too_long"))
        self.assertEqual(1, self.value("requests_total", source="github", status="414"))
        self.assertEqual(1, self.value("requests_total", source="", status="403"))

    def test_no_more_later(self) -> None:
        """Whatever happens, no series is added: labels come from the settings."""
        before = set(self.values())
        for source, reasons in (("", REASONS_WITHOUT_SOURCE), ("github", REASONS_OF_SOURCE)):
            for reason in (reason for reason in REASONS if reason.word in reasons):
                self.traffic.refused(reason, "No.", "192.0.2.7", b"CANARY", b"/CANARY", source)
        self.traffic.accepted("github", ("unparsed_payload", "bad_proxy_header"), 3, 10)
        self.traffic.answered("github", 99.0)
        self.traffic.store_done("file:/x", 1, 10, 1.0)
        self.traffic.observer_failed("file:/x", "CANARY", 1)
        self.counters.add("reloads", "ok")
        self.assertEqual(before, set(self.values()))


class ValueTests(MetricsTestCase):
    """What the numbers say."""

    def test_requests(self) -> None:
        """Answers are counted by source and status, refusals by source and reason."""
        for seconds in (0.002, 4.0):
            self.traffic.accepted("github", (), 0, 100)
            self.traffic.answered("github", seconds)
        for reason, source in (
            (NO_MATCHING_PATH, ""), (BAD_TOKEN, "github"), (NO_ROOM, "github"), (NOT_STORED, "github"),
            (NO_ROOM, "gitlab"),
        ):  # fmt: skip
            self.traffic.refused(reason, "No.", "192.0.2.7", b"POST", b"/in", source)
        self.assertEqual(2, self.value("requests_total", source="github", status="200"))
        self.assertEqual(2, self.value("requests_total", source="github", status="503"))
        self.assertEqual(1, self.value("requests_total", source="github", status="403"))
        self.assertEqual(1, self.value("requests_total", source="", status="404"))
        self.assertEqual(1, self.value("refusals_total", source="gitlab", reason="no_room"))
        self.assertEqual(0, self.value("requests_total", source="gitlab", status="200"))
        self.assertEqual(2, self.value("messages_total", source="github"))
        self.assertEqual(200, self.value("message_bytes_total", source="github"))

    def test_histogram(self) -> None:
        """Buckets hold all that is not longer; the last holds everything."""
        for seconds in (0.0005, 2.5, 3.0, 60.0):
            self.traffic.answered("github", seconds)
        buckets = [self.value("answer_seconds_bucket", source="github", le=str(end)) for end in BOUNDS]
        expected = [1 if end < 3 else 3 for end in BOUNDS]
        self.assertEqual(expected, buckets)
        self.assertEqual(4, self.value("answer_seconds_bucket", source="github", le="+Inf"))
        self.assertEqual(4, self.value("answer_seconds_count", source="github"))
        self.assertEqual(65.5005, self.value("answer_seconds_sum", source="github"))

    def test_odd_messages(self) -> None:
        """What was odd about messages has its own counts."""
        self.traffic.accepted("github", ("unparsed_payload", "bad_proxy_header"), 3, 10)
        self.assertEqual(1, self.value("unparsed_payloads_total", source="github"))
        self.assertEqual(1, self.value("bad_proxy_headers_total", source="github"))
        self.assertEqual(3, self.value("left_out_names_total", source="github"))

    def test_observers(self) -> None:
        """What observers did, failed to do, and have yet to do."""
        self.snapshot = make_snapshot(
            lanes=[LaneStatus("file:/x", 7, 700, stalled=True, failed_ago=99.0), LaneStatus("stdout")]
        )
        self.traffic.store_done("file:/x", 5, 500, 0.25)
        self.traffic.observer_failed("file:/x", "disk full", 2)
        own = StoreCounts()
        own.refused(3)
        own.known(4)
        own.confirmed(0.5)
        self.traffic.store_counted("file:/x", own.take())
        for name, well, ill in (
            ("messages_total", 0, 5), ("bytes_total", 0, 500), ("store_seconds_count", 0, 1),
            ("store_seconds_sum", 0, 0.25), ("failed_messages_total", 0, 2), ("waiting_messages", 0, 7),
            ("waiting_bytes", 0, 700), ("stalled", 0, 1), ("failing", 0, 1),
            ("refused_messages_total", 0, 3), ("known_messages_total", 0, 4), ("confirm_seconds_count", 0, 1),
            ("confirm_seconds_sum", 0, 0.5),
        ):  # fmt: skip
            self.assertEqual(well, self.value(f"observer_{name}", observer="stdout"), name)
            self.assertEqual(ill, self.value(f"observer_{name}", observer="file:/x"), name)

    def test_spool(self) -> None:
        """What a spool keeps; an observer that keeps nothing has no such numbers."""
        oldest = 1_499_999_970 * 10**9
        backlog = EMPTY._replace(messages=3, bytes=30, oldest=oldest, dead=2, dropped=1, away="gone", full=True)
        self.snapshot = make_snapshot(lanes=[LaneStatus("file:/x"), LaneStatus("spool:/y", backlog=backlog)])
        for name, value in (
            ("messages", 3), ("bytes", 30), ("oldest_age_seconds", 30), ("dead_messages", 2),
            ("dropped_messages_total", 1), ("away", 1), ("full", 1),
        ):  # fmt: skip
            self.assertEqual(value, self.value(f"spool_{name}", observer="spool:/y"))
        self.assertEqual([], [name for name in self.values() if "spool_" in name and "file:/x" in name])

    def test_oldest_age(self) -> None:
        """Without messages, or with a clock that was set back, the age is 0."""
        for oldest in (None, 2_000_000_000 * 10**9):
            self.snapshot = make_snapshot(lanes=[LaneStatus("spool:/y", backlog=EMPTY._replace(oldest=oldest))])
            self.assertEqual(0, self.value("spool_oldest_age_seconds", observer="spool:/y"))

    def test_state(self) -> None:
        """What the receiver is like at this moment."""
        self.snapshot = make_snapshot(
            queue_bytes=Level(1, 2), queue_messages=Level(3, 4), connections=Level(5, 6), requests=7, paused=True,
            endpoints={"tcp:1": True, "tcp:2": False}, reload_succeeded=False,
        )  # fmt: skip
        self.counters.add("reloads", "failed")
        for name, value in (
            ("queue_bytes", 1), ("queue_max_bytes", 2), ("queue_messages", 3), ("queue_max_messages", 4),
            ("connections", 5), ("max_connections", 6), ("requests_in_flight", 7), ("reading_paused", 1),
            ("ready", 0), ("degraded", 0), ("last_reload_successful", 0), ("settings_loaded_timestamp_seconds", 1e9),
            ("start_timestamp_seconds", 9e8),
        ):  # fmt: skip
            self.assertEqual(value, self.value(name), name)
        self.assertEqual(1, self.value("endpoint_listening", endpoint="tcp:1"))
        self.assertEqual(0, self.value("endpoint_listening", endpoint="tcp:2"))
        self.assertEqual((1, 0), tuple(self.value("reloads_total", result=result) for result in ("failed", "ok")))
        self.assertEqual(2e9, self.value("certificate_expiry_timestamp_seconds", file="/etc/cert.pem"))
        self.assertEqual(1, self.value("build_info", **BUILD._asdict()))

    def test_health(self) -> None:
        """Ready and degraded are as /readyz says."""
        away = [LaneStatus("spool:/y", backlog=EMPTY._replace(away="gone"))]
        for snapshot, ready, degraded in (
            (make_snapshot(), 1, 0),
            (make_snapshot(lanes=away), 1, 1),
            (make_snapshot(phase=Phase.DRAINING, lanes=away), 0, 0),
        ):  # fmt: skip
            self.snapshot = snapshot
            self.assertEqual((ready, degraded), (self.value("ready"), self.value("degraded")))


class RouterTests(MetricsTestCase):
    """What there is of a router."""

    def test_connectors(self) -> None:
        """Each connector is there with what its rule says of it, until it goes."""
        labels = ("edge-1-a-b", "a", "webhook", "8181", "webhook", "acme", "team=x,vendor=acme")
        names = ("source", "rule", "type", "port", "product", "vendor", "labels")
        self.assertEqual([], [name for name in self.values() if name.startswith("connector")])
        self.snapshot = make_snapshot(connectors=(labels,))
        self.assertEqual(1, self.value("connector", **dict(zip(names, labels, strict=True))))

    def test_overload(self) -> None:
        """How old what is unread has become, and what was done about it, are numbers."""
        self.assertEqual([0, 0, 0], [self.value(name) for name in OVERLOAD])
        self.snapshot = make_snapshot(unread_age=2.5, overloaded=True)
        self.counters.add("dropped_unread", amount=7)
        self.counters.add("refused", "overloaded", "", amount=3)
        self.assertEqual([2.5, 1, 7], [self.value(name) for name in OVERLOAD])
        self.assertEqual(1, self.value("degraded"))
        self.assertEqual(3, self.value("refusals_total", source="", reason="overloaded"))

    def test_blocked(self) -> None:
        """Whether the router is blocked is a number, also where there is no router."""
        self.assertEqual(0, self.value("router_blocked"))
        self.snapshot = make_snapshot(blocked=(GateReason("why"),))
        self.assertEqual((1, 1), (self.value("router_blocked"), self.value("degraded")))

    def test_text_bodies(self) -> None:
        """Bodies that became text are counted by source, from 0."""
        self.traffic.accepted("github", ("text_body",), 0, 1)
        self.assertEqual([1, 0], [self.value("text_bodies_total", source=name) for name in ("github", "gitlab")])

    def test_steps(self) -> None:
        """What steps may count is there with 0, and rises with what they count; of sources that are gone it is not."""
        marks = (("classified", ""), ("probe", "p"), ("dropped", "s"), ("step_error", "s"))
        for source in ("github", "gone"):
            self.traffic.expects(source, marks)
        before = self.values()
        shown = (
            ("classified_messages_total", "sender", ""),
            ("probe_messages_total", "probe", "p"),
            ("dropped_messages_total", "step", "s"),
            ("step_errors_total", "step", "s"),
        )
        for name, label, value in shown:
            self.assertEqual(0, self.value(name, source="github", **{label: value}))
        for problem in ("", "Step 's' failed."):
            self.traffic.processed("github", marks, problem)
        for name, label, value in shown:
            self.assertEqual(2, self.value(name, source="github", **{label: value}))
        self.assertEqual(set(before), set(self.values()))
        self.assertEqual([], [name for name in before if "gone" in name])
        self.traffic.processed("github", [("classified", "grafana")], "")
        self.assertEqual(1, self.value("classified_messages_total", source="github", sender="grafana"))
        self.traffic.expects("github", marks)
        self.assertEqual(2, self.value("probe_messages_total", source="github", probe="p"))


class GuardTests(MetricsTestCase):
    """What there is of guarded sources."""

    def test_secrets(self) -> None:
        """What each secret and token has proved, and when it last did, is there from the start; of others it is not."""
        for source in ("github", "gone"):
            self.traffic.guards(source, ["old", "new"], ["new"], [], says_when=False)
        self.assertEqual(0, self.value("verified_total", source="github", kind="secret", secret="old"))
        self.traffic.verified("github", "new")
        self.traffic.verified("github", "new")
        self.assertEqual(2, self.value("verified_total", source="github", kind="secret", secret="new"))
        last = "secret_last_used_timestamp_seconds"
        self.assertEqual(0, self.value(last, source="github", kind="secret", secret="old"))
        self.assertGreater(self.value(last, source="github", kind="secret", secret="new"), 1.7e9)
        self.traffic.guards("github", ["new"], [], [], says_when=False)
        self.assertEqual(2, self.value("verified_total", source="github", kind="secret", secret="new"))
        self.assertEqual(0, self.value("verified_total", source="github", kind="token", secret="new"))
        self.traffic.token_shown("github", "new")
        self.assertEqual(1, self.value("verified_total", source="github", kind="token", secret="new"))
        self.assertGreater(self.value(last, source="github", kind="token", secret="new"), 1.7e9)
        self.assertEqual(2, self.value("verified_total", source="github", kind="secret", secret="new"))
        self.assertEqual([], [name for name in self.values() if "gone" in name])

    def test_skew(self) -> None:
        """How far signed moments were away is a histogram, past and future alike, where senders say them."""
        self.traffic.guards("github", [], [], [], says_when=False)
        self.assertEqual([], [name for name in self.values() if name.startswith("signature_skew")])
        self.traffic.guards("github", [], [], [], says_when=True)
        for seconds in (-3.0, 250.0, 4000.0):
            self.traffic.skewed("github", seconds)
        for bound, count in (("1.0", 0), ("5.0", 1), ("300.0", 2), ("3600.0", 2), ("+Inf", 3)):
            self.assertEqual(count, self.value("signature_skew_seconds_bucket", source="github", le=bound), bound)
        self.assertEqual(4253.0, self.value("signature_skew_seconds_sum", source="github"))
        self.traffic.skewed("gitlab", 1.0)
        self.assertEqual(1, self.value("signature_skew_seconds_count", source="gitlab"))

    def test_questions(self) -> None:
        """Questions that were answered are counted by their kind, and deliveries that came again."""
        self.traffic.guards("github", [], [], ["ping"], says_when=False)
        self.assertEqual(0, self.value("handshakes_total", source="github", kind="ping"))
        self.traffic.asked("github", "ping")
        self.assertEqual(1, self.value("handshakes_total", source="github", kind="ping"))
        self.assertEqual(0, self.value("duplicates_total", source="github"))
        self.traffic.duplicate("github")
        self.assertEqual(1, self.value("duplicates_total", source="github"))
        self.assertEqual(2, self.value("requests_total", source="github", status="200"))


class TextTests(MetricsTestCase):
    """Which format for which C{Accept}."""

    def test_types(self) -> None:
        """Who asks for OpenMetrics gets it, in the version that we speak; everybody else gets the older text."""
        for accept, content_type in (
            (b"", PLAIN),
            (b"*/*", PLAIN),
            (b"text/html", PLAIN),
            (b"application/openmetrics-text", OPENMETRICS),
            (b"Application/OpenMetrics-Text; version=nonsense", OPENMETRICS),
            (b"\xff\xfe,,;", PLAIN),
            (b"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1", OPENMETRICS),
            (b"text/plain;version=0.0.4;q=0.5, application/openmetrics-text;q=0.1", PLAIN),
        ):
            found, pieces = self.exposition(accept)
            self.assertEqual(content_type, found, accept)
            self.assertEqual(content_type == OPENMETRICS, list(pieces)[-1].endswith(b"# EOF\n"))

    def test_parsed(self) -> None:
        """Both texts can be read by the parsers of their formats, whatever stands in the settings."""
        self.snapshot = make_snapshot(
            sources=('a"b\\c\nd',), lanes=[LaneStatus('file:/"\\\n', backlog=EMPTY)], endpoints={'unix:"\\\n': True}
        )
        self.traffic.answered('a"b\\c\nd', 0.1)
        parsers: list[tuple[bytes, Any]] = [
            (b"", parser.text_string_to_metric_families),
            (b"application/openmetrics-text; version=1.0.0", openmetrics_parser.text_string_to_metric_families),
        ]
        for accept, parse in parsers:
            families = {family.name: family for family in parse(self.text(accept))}
            self.assertEqual(len(METRICS), len(families))
            sample = families["webhookrx_messages"].samples[0]
            self.assertEqual('a"b\\c\nd', sample.labels["source"])

    def test_as_by_others(self) -> None:
        """Both texts say what C{prometheus_client} would say of the same samples."""
        self.traffic.answered("github", 1e9)
        self.traffic.accepted("github", (), 0, 10**17)
        cases: list[tuple[bytes, Any, Any]] = [
            (b"text/plain", parser.text_string_to_metric_families, generate_latest),
            (
                b"application/openmetrics-text",
                openmetrics_parser.text_string_to_metric_families,
                openmetrics.generate_latest,
            ),
        ]
        for accept, parse, write in cases:
            families = list(parse(self.text(accept)))
            registry = CollectorRegistry()
            registry.register(_Fixed(families))
            self.assertEqual(families, list(parse(write(registry).decode())), accept)

    def test_pieces(self) -> None:
        """Many sources make many pieces, of one moment: what is counted between them is in none."""
        self.snapshot = make_snapshot(sources=[f"source-{number}" for number in range(100)])
        _, expected = self.exposition(b"")
        whole = b"".join(expected)
        _, pieces = self.exposition(b"")
        found = []
        for piece in pieces:
            found.append(piece)
            self.assertLessEqual(piece.count(b"\n"), 2 * PIECE)
            for source in self.snapshot.sources:
                self.traffic.accepted(source, ("unparsed_payload",), 1, 10)
                self.traffic.answered(source, 0.25)
                self.traffic.refused(BAD_TOKEN, "No.", "192.0.2.7", b"", b"", source)
            self.traffic.store_done("file:/x", 1, 10, 1.0)
        self.assertGreater(len(found), 10)
        self.assertEqual(whole, b"".join(found))

    def test_workers(self) -> None:
        """Each worker is there; a process without others is the one that there is."""
        self.assertEqual((1, 1), (self.value("workers"), self.value("worker_up", worker="0")))
        self.workers = (WorkerState(0, True, connections=7), WorkerState(1, False), WorkerState(2, True, stuck=True))
        self.counters.add("worker_restarts", amount=4)
        self.assertEqual((3, 4), (self.value("workers"), self.value("worker_restarts_total")))
        self.assertEqual([1, 0, 0], [self.value("worker_up", worker=str(number)) for number in range(3)])
        self.assertEqual([7, 0, 0], [self.value("worker_connections", worker=str(number)) for number in range(3)])
        self.assertEqual((1, 1), (self.value("ready"), self.value("degraded")))

    def test_no_text(self) -> None:
        """A name that is not UTF-8, as that of a file may be, is replaced; everything else is shown."""
        self.snapshot = make_snapshot(certificates={"/etc/\udcff.pem": 2e9})
        self.assertEqual(2e9, self.value("certificate_expiry_timestamp_seconds", file="/etc/?.pem"))


class _Fixed(Collector):
    """Gives what it was given."""

    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> list[Family]:
        """Return all of it."""
        return self._families


class PageTests(SynchronousTestCase):
    """What docs/reference/metrics.md says."""

    def test_alerts(self) -> None:
        """Every metric that it names is declared, with labels of its own."""
        text = documents.read("docs/reference/metrics.md")
        labels = {metric.name: set(metric.labels) for metric in METRICS}
        labels |= {f"{metric.name}_bucket": {*metric.labels, "le"} for metric in METRICS if metric.kind == "histogram"}
        alerts = next(block.text for block in documents.blocks(text) if block.text.startswith("groups:"))
        used = re.findall(r"(webhookrx_\w+)(?:\{(\w+)=)?", alerts)
        self.assertGreater(len(used), 8)
        for name, label in used:
            self.assertLessEqual({label} - {""}, labels[name], name)

    def test_reasons(self) -> None:
        """Every reason that an alert names is one."""
        reasons = set(re.findall(r'reason="(\w+)"', documents.read("docs/reference/metrics.md")))
        self.assertLessEqual(reasons, {reason.word for reason in REASONS})
        self.assertTrue(reasons)
