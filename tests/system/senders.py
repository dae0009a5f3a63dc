"""
Requests as well-known senders make them, cut to what shows their form: headers, body, and values that must come of it.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"


@dataclass(frozen=True)
class Sample:
    """
    One request.

    @ivar name: who sends it.
    @ivar headers: as sent; C{Content-Length} is added.
    @ivar body: as it goes over the wire.
    @ivar pairs: what C{webhook-json} makes of it: some names and their values.
    @ivar recorded: some of C{webhook.headers}.
    @ivar parses: whether C{webhook-json} can take it apart.
    """

    name: str
    headers: dict[str, str]
    body: bytes
    pairs: dict[str, Any] = field(default_factory=dict)
    recorded: dict[str, list[str]] = field(default_factory=dict)
    parses: bool = True

    @property
    def text(self) -> str:
        """The body as text, unpacked."""
        packed = self.headers.get("Content-Encoding") == "gzip"
        return (gzip.decompress(self.body) if packed else self.body).decode()


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


GITHUB_HEADERS = {
    "User-Agent": "GitHub-Hookshot/044aadd",
    "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    "X-GitHub-Hook-ID": "292430182",
    "X-Hub-Signature-256": "sha256=d57c68ca6f92289e6987922ff26938930f6e66a2d161ef06abdf1859230aa23c",
    "Content-Type": JSON,
    "Accept": "*/*",
}

ALERT = {
    "status": "firing",
    "labels": {"alertname": "DiskFull", "instance": "db-1:9100", "severity": "page"},
    "annotations": {"summary": "db-1 has 3 % left"},
    "startsAt": "2026-01-02T03:04:05.678Z",
    "endsAt": "0001-01-01T00:00:00Z",
    "generatorURL": "http://prometheus:9090/graph?g0.expr=x&g0.tab=1",
    "fingerprint": "c6eadffa33fcdf37",
}

FLUENT_BIT = [
    {"date": 1767323045.678901, "log": "GET /a 200", "stream": "stdout"},
    {"date": 1767323046.0, "log": "naïve – ünïcode", "stream": "stderr"},
]

CLOUD_EVENT = {
    "specversion": "1.0",
    "type": "com.example.order.created",
    "source": "/orders",
    "id": "A234-1234-1234",
    "time": "2026-01-02T03:04:05Z",
    "datacontenttype": JSON,
    "data": {"order": 12345678901234567890, "total": 10.0},
}

SAMPLES = (
    Sample(
        "GitHub push",
        {**GITHUB_HEADERS, "X-GitHub-Event": "push"},
        _json(
            {
                "ref": "refs/heads/main",
                "before": "0" * 40,
                "after": "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
                "repository": {"id": 35129377, "full_name": "octo/hello", "private": False, "owner": {"name": "octo"}},
                "pusher": {"name": "octo", "email": "octo@example.com"},
                "base_ref": None,
                "commits": [{"id": "6113728", "message": "Größe\n\nzwei Zeilen", "added": ["a.txt"]}],
                "forced": False,
            }
        ),
        {
            "ref": "refs/heads/main",
            "repository.id": 35129377,
            "repository.full_name": "octo/hello",
            "repository.private": False,
            "repository.owner.name": "octo",
            "pusher.email": "octo@example.com",
            "base_ref": None,
            "commits": [{"id": "6113728", "message": "Größe\n\nzwei Zeilen", "added": ["a.txt"]}],
        },
        {"X-Github-Event": ["push"], "X-Hub-Signature-256": ["***"]},
    ),
    Sample(
        "GitHub ping",
        {**GITHUB_HEADERS, "X-GitHub-Event": "ping"},
        _json({"zen": "Design for failure.", "hook_id": 292430182, "hook": {"events": ["push", "issues"]}}),
        {"zen": "Design for failure.", "hook_id": 292430182, "hook.events": ["push", "issues"]},
    ),
    Sample(
        "GitHub push as a form",
        {**GITHUB_HEADERS, "X-GitHub-Event": "push", "Content-Type": "application/x-www-form-urlencoded"},
        b"payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%7D",
        {"ref": "refs/heads/main"},
    ),
    Sample(
        "GitLab push",
        {
            "Content-Type": JSON,
            "User-Agent": "GitLab/17.0.0",
            "X-Gitlab-Event": "Push Hook",
            "X-Gitlab-Token": "s3cret-gitlab-token",
            "X-Gitlab-Event-UUID": "13792a34-cac6-4fda-95a8-c58e00a3954e",
        },
        _json(
            {
                "object_kind": "push",
                "project_id": 15,
                "project": {"path_with_namespace": "mike/diaspora", "ci_config_path": None},
                "total_commits_count": 4,
            }
        ),
        {
            "object_kind": "push",
            "project_id": 15,
            "project.path_with_namespace": "mike/diaspora",
            "project.ci_config_path": None,
        },
        {"X-Gitlab-Event": ["Push Hook"], "X-Gitlab-Token": ["***"]},
    ),
    Sample(
        "Alertmanager",
        {"Content-Type": JSON, "User-Agent": "Alertmanager/0.27.0"},
        _json(
            {
                "version": "4",
                "groupKey": '{}:{alertname="DiskFull"}',
                "truncatedAlerts": 0,
                "status": "firing",
                "receiver": "webhookrx",
                "groupLabels": {"alertname": "DiskFull"},
                "commonLabels": ALERT["labels"],
                "alerts": [ALERT],
            }
        )
        + b"\n",
        {
            "version": "4",
            "groupKey": '{}:{alertname="DiskFull"}',
            "truncatedAlerts": 0,
            "groupLabels.alertname": "DiskFull",
            "commonLabels.instance": "db-1:9100",
            "alerts": [ALERT],
        },
    ),
    Sample(
        "Grafana",
        {"Content-Type": JSON, "User-Agent": "Grafana", "Authorization": "Bearer a-grafana-token"},
        _json(
            {
                "receiver": "hook",
                "orgId": 1,
                "alerts": [{"status": "firing", "values": {"B": 44.23943737541908, "C": 1}}],
                "title": "[FIRING:1] High memory (Grafana)",
                "state": "alerting",
            }
        ),
        {
            "orgId": 1,
            "title": "[FIRING:1] High memory (Grafana)",
            "alerts": [{"status": "firing", "values": {"B": 44.23943737541908, "C": 1}}],
        },
        {"Authorization": ["***"]},
    ),
    Sample(
        "PagerDuty v3",
        {
            "Content-Type": JSON,
            "User-Agent": "PagerDuty-Webhook/V3.0",
            "X-PagerDuty-Signature": "v1=4a0a3ae1bb62d19e9e9c2d3e0a35d9b1a6e9d6d6c1c1c1c1c1c1c1c1c1c1c1c1",
            "X-Webhook-Id": "b3f8d8a0-8a3c-4b8e-9c4d-6a1f2e3d4c5b",
        },
        _json(
            {
                "event": {
                    "id": "01CEYM5CU9NX9VHXZ7YN0IUFFX",
                    "event_type": "incident.triggered",
                    "occurred_at": "2026-01-02T03:04:05Z",
                    "client": None,
                    "data": {"number": 42, "assignees": [{"id": "P1"}], "priority": {"summary": "P1"}},
                }
            }
        ),
        {
            "event.event_type": "incident.triggered",
            "event.client": None,
            "event.data.number": 42,
            "event.data.assignees": [{"id": "P1"}],
            "event.data.priority.summary": "P1",
        },
    ),
    Sample(
        "Sentry",
        {
            "Content-Type": JSON,
            "Sentry-Hook-Resource": "issue",
            "Sentry-Hook-Timestamp": "1767323045",
            "Sentry-Hook-Signature": "0" * 64,
            "Request-ID": "d4b3c2a1",
        },
        _json(
            {
                "action": "created",
                "installation": {"uuid": "a8e5d37a-696c-4c54-adb5-b3f28d64c7de"},
                "data": {
                    "issue": {"id": "1170820242", "count": "1", "metadata": {"type": "ReferenceError"}, "tags": []}
                },
                "actor": {"type": "application", "id": "sentry", "name": "Sentry"},
            }
        ),
        {
            "action": "created",
            "installation.uuid": "a8e5d37a-696c-4c54-adb5-b3f28d64c7de",
            "data.issue.metadata.type": "ReferenceError",
            "data.issue.tags": [],
            "actor.id": "sentry",
        },
        {"Sentry-Hook-Resource": ["issue"]},
    ),
    Sample(
        "Slack event",
        {
            "Content-Type": JSON,
            "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
            "X-Slack-Request-Timestamp": "1767323045",
            "X-Slack-Signature": "v0=" + "0" * 64,
        },
        rb'{"token":"ZZZ","team_id":"T1","event":{"type":"message","text":"caf\u00e9 \ud83c\udf89 <\/script>",'
        rb'"ts":"1767323045.000200"},"type":"event_callback","event_time":1767323045,"authed_users":["U1","U2"]}',
        {
            "team_id": "T1",
            "event.text": "café 🎉 </script>",
            "event.ts": "1767323045.000200",
            "event_time": 1767323045,
            "authed_users": ["U1", "U2"],
        },
    ),
    Sample(
        "Slack command",
        {"Content-Type": "application/x-www-form-urlencoded"},
        b"token=ZZZ&command=%2Fweather&text=94070&response_url=https%3A%2F%2Fhooks.slack.com%2F1",
        {"command": "/weather", "text": "94070", "response_url": "https://hooks.slack.com/1"},
    ),
    Sample(
        "Stripe",
        {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
            "Stripe-Signature": "t=1767323045,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd",
        },
        b'{\n  "id": "evt_1NG8Du2eZvKYlo2C",\n  "object": "event",\n  "created": 1767323045,\n  "livemode": false,\n'
        b'  "data": {\n    "object": {\n      "amount": 2000,\n      "currency": "usd",\n      "metadata": {},\n'
        b'      "application_fee": null\n    }\n  },\n  "type": "payment_intent.succeeded"\n}',
        {
            "id": "evt_1NG8Du2eZvKYlo2C",
            "livemode": False,
            "data.object.amount": 2000,
            "data.object.metadata": {},
            "data.object.application_fee": None,
            "type": "payment_intent.succeeded",
        },
    ),
    Sample(
        "Amazon SNS",
        {
            "Content-Type": "text/plain; charset=UTF-8",
            "User-Agent": "Amazon Simple Notification Service Agent",
            "x-amz-sns-message-type": "Notification",
            "x-amz-sns-message-id": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        },
        b'{\n  "Type" : "Notification",\n  "MessageId" : "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",\n'
        b'  "Subject" : "My First Message",\n'
        b'  "Message" : "{\\"AlarmName\\":\\"cpu\\",\\"NewStateValue\\":\\"ALARM\\"}",\n'
        b'  "Timestamp" : "2026-01-02T03:04:05.678Z",\n  "SignatureVersion" : "1"\n}',
        {
            "Type": "Notification",
            "Message": '{"AlarmName":"cpu","NewStateValue":"ALARM"}',
            "SignatureVersion": "1",
        },
        {"X-Amz-Sns-Message-Type": ["Notification"]},
    ),
    Sample(
        "CloudEvents, structured",
        {"Content-Type": "application/cloudevents+json; charset=utf-8"},
        _json(CLOUD_EVENT),
        {"type": "com.example.order.created", "id": "A234-1234-1234", "data.order": 12345678901234567890},
    ),
    Sample(
        "CloudEvents, a batch",
        {"Content-Type": "application/cloudevents-batch+json"},
        _json([CLOUD_EVENT, CLOUD_EVENT]),
        {"1": CLOUD_EVENT, "2": CLOUD_EVENT},
    ),
    Sample(
        "CloudEvents, binary",
        {"Content-Type": JSON, "ce-specversion": "1.0", "ce-type": "com.example.order.created", "ce-id": "A234"},
        _json(CLOUD_EVENT["data"]),
        {"order": 12345678901234567890},
        {"Ce-Type": ["com.example.order.created"], "Ce-Id": ["A234"]},
    ),
    Sample(
        "Fluent Bit",
        {"Content-Type": JSON, "User-Agent": "Fluent-Bit"},
        _json(FLUENT_BIT),
        {"1": FLUENT_BIT[0], "2": FLUENT_BIT[1]},
    ),
    Sample(
        "Fluent Bit, compressed",
        {"Content-Type": JSON, "Content-Encoding": "gzip", "User-Agent": "Fluent-Bit"},
        gzip.compress(_json(FLUENT_BIT), mtime=0),
        {"1": FLUENT_BIT[0], "2": FLUENT_BIT[1]},
    ),
    Sample(
        "Vector, JSON",
        {"Content-Type": JSON, "User-Agent": "Vector/0.40.0 (x86_64-unknown-linux-gnu)"},
        _json([{"host": "web-1", "message": "one", "source_type": "stdin", "timestamp": "2026-01-02T03:04:05.678Z"}]),
        {
            "1": {
                "host": "web-1",
                "message": "one",
                "source_type": "stdin",
                "timestamp": "2026-01-02T03:04:05.678Z",
            }
        },
    ),
    Sample(
        "Vector, a line each",
        {"Content-Type": "application/x-ndjson", "User-Agent": "Vector/0.40.0 (x86_64-unknown-linux-gnu)"},
        b'{"host":"web-1","message":"one"}\n{"host":"web-1","message":"two"}\n',
        parses=False,
    ),
    Sample(
        "Logstash",
        {"Content-Type": JSON, "User-Agent": "Manticore 0.9.1", "Connection": "Keep-Alive", "Accept-Encoding": "gzip"},
        _json(
            {
                "@timestamp": "2026-01-02T03:04:05.678Z",
                "@version": "1",
                "host": {"name": "web-1"},
                "event": {"original": "hello", "sequence": 0},
                "message": "hello",
                "tags": ["_grokparsefailure"],
            }
        ),
        {
            "@timestamp": "2026-01-02T03:04:05.678Z",
            "@version": "1",
            "host.name": "web-1",
            "event.sequence": 0,
            "message": "hello",
            "tags": ["_grokparsefailure"],
        },
    ),
    Sample(
        "the collector's quick start",
        {"Content-Type": "application/x-www-form-urlencoded", "User-Agent": "curl/7.88.1"},
        b"{'MESSAGE':'message-value'}",
        {"MESSAGE": "message-value"},
    ),
    Sample(
        "syslog-like JSON",
        {"Content-Type": JSON},
        _json({"MESSAGE": "disk full", "HOST": "db-1", "PROGRAM": "kernel", "PID": 7, "SOURCEIP": "6.6.6.6"}),
        {"MESSAGE": "disk full", "HOST": "db-1", "PROGRAM": "kernel", "PID": 7, "SOURCEIP": "127.0.0.1"},
    ),
)
