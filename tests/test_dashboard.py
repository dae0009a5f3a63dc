"""Tests for C{etc/grafana-dashboard.json}, and for what docs/reference/metrics.md has Prometheus do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml
from twisted.trial.unittest import SynchronousTestCase

from tests import documents
from webhookrx.operations.metrics import METRICS

#: Labels that Prometheus puts to every series of a target.
_OF_TARGETS = {"job", "instance"}
_SERIES = re.compile(r"\b(webhookrx_\w+)\s*(?:\{([^}]*)\})?")
_BY = re.compile(r"\b(?:by|without) \(([^)]*)\)")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")


def series() -> dict[str, set[str]]:
    """Return each series that the receiver can expose, with its labels."""
    found: dict[str, set[str]] = {}
    for metric in METRICS:
        labels = set(metric.labels)
        if metric.kind == "histogram":
            found |= {f"{metric.name}_bucket": {*labels, "le"}, f"{metric.name}_sum": labels}
            found[f"{metric.name}_count"] = labels
        else:
            found[metric.name] = labels
    return found


class DashboardTests(SynchronousTestCase):
    """What Grafana is given."""

    def setUp(self) -> None:
        self.dashboard: dict[str, Any] = json.loads(documents.read("etc/grafana-dashboard.json"))

    def expressions(self) -> Iterator[str]:
        """Yield every expression in it: of panels, and of variables."""
        for panel in self.dashboard["panels"]:
            yield from (target["expr"] for target in panel.get("targets", ()))
        for variable in self.dashboard["templating"]["list"]:
            if variable["type"] == "query":
                yield variable["query"]["query"]

    def test_metrics(self) -> None:
        """Each series that it asks for is exposed, with the labels by which it is asked for and added up."""
        known = series()
        asked = 0
        for expression in self.expressions():
            names = _SERIES.findall(expression)
            self.assertTrue(names, expression)
            labels = set(_OF_TARGETS)
            for name, selector in names:
                self.assertIn(name, known, expression)
                self.assertLessEqual(set(_LABEL.findall(selector)), known[name] | _OF_TARGETS, expression)
                labels |= known[name]
                asked += 1
            for group in _BY.findall(expression):
                self.assertLessEqual({label.strip() for label in group.split(",")}, labels, expression)
        self.assertGreater(asked, 20)

    def test_legends(self) -> None:
        """A legend names only labels that are left after adding up."""
        for panel in self.dashboard["panels"]:
            for target in panel.get("targets", ()):
                left = {label.strip() for group in _BY.findall(target["expr"]) for label in group.split(",")}
                self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])), left, panel["title"])

    def test_counters(self) -> None:
        """A counter is asked for how fast it grows, and nothing else is."""
        for expression in self.expressions():
            for function, name in re.findall(r"(?:(rate|increase)\()?(webhookrx_\w+)", expression):
                counts = name.endswith(("_total", "_bucket", "_sum", "_count"))
                self.assertEqual(counts, bool(function), expression)

    def test_shape(self) -> None:
        """Numbers of panels are unique, none is in another's place, and all ask the source that is chosen."""
        panels = self.dashboard["panels"]
        self.assertEqual(len(panels), len({panel["id"] for panel in panels}))
        taken: set[tuple[int, int]] = set()
        for panel in panels:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            self.assertEqual(set(), cells & taken, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24)
            taken |= cells
            if panel["type"] != "row":
                self.assertEqual("${datasource}", panel["datasource"]["uid"])
                self.assertTrue(panel["targets"] and panel["description"], panel["title"])
                self.assertTrue(all(target["datasource"] == panel["datasource"] for target in panel["targets"]))
        variables = {each["name"] for each in self.dashboard["templating"]["list"]}
        used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(panels)))
        self.assertEqual(variables, used)


class ScrapeTests(SynchronousTestCase):
    """What Prometheus is given."""

    def test_scrape(self) -> None:
        """The page's snippet asks the admin endpoint that the page has, at the path of its metrics."""
        page = documents.read("docs/reference/metrics.md")
        (text,) = [block.text for block in documents.blocks(page) if "scrape_configs:" in block.text]
        (job,) = yaml.safe_load(text)["scrape_configs"]
        self.assertEqual("/metrics", job.get("metrics_path", "/metrics"))
        ((target,),) = [config["targets"] for config in job["static_configs"]]
        self.assertEqual("127.0.0.1:9090", target)
        self.assertIn("port 9090 of the loopback address", documents.read("docs/reference/configuration.md"))
