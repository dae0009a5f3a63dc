"""Tests for L{benchmarks.cases}."""

from __future__ import annotations

import json
import os

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from benchmarks.__main__ import main
from benchmarks.cases import all_cases
from benchmarks.comparisons import Bound, Ratio
from benchmarks.runs import Asking
from benchmarks.tools import ROOT
from benchmarks.traffic import KINDS, prepare

#: What the project promises: case, at least, go for.
PROMISED = {
    ("vs-nginx", 0.54, 0.67),
    ("vs-uvicorn", 2.2, 2.7),
    ("vs-tornado", 14, 17),
    ("body8k", 1.0, 1.2),
    ("body8k", 1.3, 1.6),
    ("body1", 1.0, 1 / 0.9),
    ("body1", 7, 6),
    ("tls", 0.55, 0.65),
    ("tls", 0.7, 0.82),
    ("tls-new", 0.5, 0.65),
    ("plain512", 0.85, 0.95),
    ("durable64", 0.64, 0.75),
    ("durable512", 0.85, 0.95),
    ("workers2", 1.9, 1.98),
    ("workers2", 36, 32),
    ("patterns1000", 0.8, 0.95),
    ("everything", 0.7, 0.8),
    ("signatures", 0.8, 0.85),
    ("router", 0.6, 0.75),
    ("router", 0.6, 0.7),
    ("router", 0.5, 0.6),
    ("router", 512, 0),
    ("pure", 1.0, 1 / 0.9),
    ("stores", 0.8, 0.95),
    ("kafka", 40_000, 40_000),
    ("steps", 20, 6),
    ("steps", 10, 5),
    ("steps", 100, 50),
    ("syscalls", 2.25, 2.1),
    ("latency", 2.0, 1.6),
    ("memory", 60, 55),
    ("memory", 4, 1.5),
    ("memory", 30, 18),
    ("memory", 512, 0),
}


class CaseTests(SynchronousTestCase):
    """The data."""

    def test_goals(self) -> None:
        """Every figure that is promised is looked at, and no goal is another one."""
        found = {
            (case.name, comparison.goal.enough, comparison.goal.best)
            for case in all_cases()
            for comparison in case.comparisons
            if comparison.goal is not None
        }
        self.assertEqual(PROMISED, found)

    def test_names(self) -> None:
        """No two cases and no two runs have one name."""
        names = [case.name for case in all_cases()]
        self.assertEqual(len(set(names)), len(names))
        runs = {run for case in all_cases() for comparison in case.comparisons for run in comparison.runs}
        self.assertEqual(len(runs), len({run.name for run in runs}))

    def test_servers(self) -> None:
        """No two servers have one name, so that what is said of one is not said of another."""
        runs = {run for case in all_cases() for comparison in case.comparisons for run in comparison.runs}
        servers = {run.server for run in runs if isinstance(run, Asking)}
        self.assertEqual(len(servers), len({server.name for server in servers}))

    def test_ours_first(self) -> None:
        """A ratio is webhookrx over something, never the other way round."""
        for case in all_cases():
            for comparison in case.comparisons:
                self.assertIsInstance(comparison, (Ratio, Bound))
                if isinstance(comparison, Ratio):
                    self.assertTrue(comparison.ours.name.startswith("webhookrx"), case.name)

    def test_peers_do_less(self) -> None:
        """Whatever is compared with a peer says what the peer does not do."""
        for case in all_cases():
            for comparison in case.comparisons:
                other = comparison.other if isinstance(comparison, Ratio) else comparison.run
                if isinstance(other, Asking) and not other.server.is_webhookrx:
                    self.assertIn(other.server.less or "nothing is said", comparison.remark, case.name)

    def test_page(self) -> None:
        """The page on performance names every case."""
        page = os.path.join(ROOT, "docs", "explanation", "performance-measurements.md")
        if not os.path.exists(page):
            raise SkipTest("docs/explanation/performance-measurements.md is not there")
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual([], [case.name for case in all_cases() if f"`{case.name}`" not in text])

    def test_unknown(self) -> None:
        """A case that is not there is an error that says which are."""
        error = self.assertRaises(SystemExit, main, ["--case", "nonesuch"])
        self.assertIn("'nonesuch'", str(error))
        self.assertIn("vs-uvicorn", str(error))


class TrafficTests(SynchronousTestCase):
    """What is sent."""

    def test_varied(self) -> None:
        """No body, id or signature comes twice, or caches would look good."""
        for kind in KINDS:
            traffic = prepare(kind)
            self.assertEqual(len(traffic.requests), len(traffic.bodies))
            if kind == "recorded":
                continue
            for name in (b"X-GitHub-Delivery: ", b"X-Hub-Signature-256: "):
                values = {request.partition(name)[2].partition(b"\r\n")[0] for request in traffic.requests}
                self.assertEqual(len(traffic.requests), len(values))

    def test_recorded(self) -> None:
        """Recorded requests are of many senders, have queries or none, and bodies of objects, escaped or not."""
        requests = prepare("recorded").requests
        bodies = [request.partition(b"\r\n\r\n")[2] for request in requests]
        for body in bodies:
            self.assertIsInstance(json.loads(body), dict)
        self.assertGreater(len({len(body) for body in bodies}), 200)
        self.assertGreater(len({request.count(b"\r\n") for request in requests}), 10)
        for has in (b"\\u", "ö".encode(), b"\n"):
            self.assertTrue(0 < sum(has in body for body in bodies) < len(bodies), has)
        self.assertEqual(len(requests) // 2, sum(b"?" in request.partition(b" HTTP")[0] for request in requests))

    def test_sizes(self) -> None:
        """Plain bodies have 311 bytes, large ones 8 KiB; heads have fourteen headers and what a case adds."""
        for kind, size, headers in (
            ("plain", 311, 14),
            ("nested8k", 8192, 14),
            ("flat8k", 8192, 14),
            ("forwarded", 311, 16),
        ):
            for request in prepare(kind).requests:
                head, _, body = request.partition(b"\r\n\r\n")
                self.assertEqual(size, len(body))
                self.assertEqual(headers, head.count(b"\r\n"))

    def test_same(self) -> None:
        """They are the same in every run."""
        requests = prepare("plain").requests
        prepare.cache_clear()
        self.assertEqual(requests, prepare("plain").requests)

    def test_file(self) -> None:
        """In the file each request stands behind its length."""
        directory = self.mktemp()
        os.mkdir(directory)
        traffic = prepare("plain")
        with open(traffic.write(directory), "rb") as file:
            for request in traffic.requests:
                self.assertEqual(request, file.read(int(file.readline())))
            self.assertEqual(b"", file.read())
