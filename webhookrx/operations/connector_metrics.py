"""
The metrics of the router form: a part of the table in L{webhookrx.operations.metrics}.
"""

from __future__ import annotations

from webhookrx.operations.metric import Metric, count_by_source, counts_of_steps, one

CONNECTOR_METRICS: tuple[Metric, ...] = (
    Metric(
        "webhookrx_text_bodies_total",
        "counter",
        ("source",),
        "Messages of connectors whose body was no JSON object, and so became text.",
        count_by_source("text_body"),
    ),
    Metric(
        "webhookrx_classified_messages_total",
        "counter",
        ("source", "sender"),
        "Messages whose sender Classify has found out, by the id of its entry; it is empty where none fits.",
        counts_of_steps("classified"),
    ),
    Metric(
        "webhookrx_probe_messages_total",
        "counter",
        ("source", "probe"),
        "Messages that have come to a Probe step.",
        counts_of_steps("probe"),
    ),
    Metric(
        "webhookrx_dropped_messages_total",
        "counter",
        ("source", "step"),
        "Messages that a step has dropped, as its connector rule says. Their senders got 200.",
        counts_of_steps("dropped"),
    ),
    Metric(
        "webhookrx_step_errors_total",
        "counter",
        ("source", "step"),
        "Messages on which a step has failed, or was not begun. Its `on_error` says what became of them.",
        counts_of_steps("step_error"),
    ),
    Metric(
        "webhookrx_connector",
        "gauge",
        ("source", "rule", "type", "port", "product", "vendor", "labels"),
        "1 for each connector of this router, with what its rule says of it.",
        lambda view: [(labels, 1) for labels in view.facts.connectors],
    ),
    Metric(
        "webhookrx_router_blocked",
        "gauge",
        (),
        "1 while keys or certificates that connector rules name can't be used, and so the connectors stay as they are.",
        one(lambda view: bool(view.facts.blocked)),
    ),
)
