"""
Tests for the data files of C{webhookrx/senders/data} with kinds of events that no sample has.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import yaml
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import evidence_of
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.definition import SEVERITIES
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.extraction import extract

CLASSIFIER = Classifier(builtin_definitions())

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DOCUMENTED = Path(__file__).with_name("event_types.yaml")

OCTO = {"login": "octo", "id": 1, "node_id": "U_1", "type": "User"}
REPOSITORY = {"full_name": "acme/rockets", "node_id": "R_1", "pushed_at": "2026-01-01T00:00:00Z"}
PROJECT = {"id": 15, "path_with_namespace": "acme/rockets"}


def github(event: str, **body: Any) -> tuple[dict[str, str], Any]:
    """Return headers and body of an event of GitHub."""
    return {"X-GitHub-Event": event}, {**body, "repository": REPOSITORY, "sender": OCTO}


def sns(message: Any, **more: str) -> tuple[dict[str, str], Any]:
    """Return headers and body of a notification of SNS."""
    text = message if isinstance(message, str) else msgspec.json.encode(message).decode()
    body = {"Type": "Notification", "MessageId": "1", "TopicArn": "arn:aws:sns:eu-central-1:1:t", "Message": text}
    return {"X-Amz-Sns-Message-Type": "Notification"}, {**body, "Timestamp": "2026-10-25T03:04:05Z", **more}


def eventbridge(kind: str, **detail: Any) -> tuple[dict[str, str], Any]:
    """Return headers and body of an event of EventBridge."""
    return {}, {"detail-type": kind, "source": "aws.x", "time": "2026-10-25T03:04:05Z", "detail": detail}


def alerts(*severities: str, **more: Any) -> dict[str, Any]:
    """Return a group of alerts of Prometheus."""
    found = [
        {
            "status": "firing",
            "labels": {"alertname": "Disk", "severity": severity},
            "annotations": {},
            "startsAt": "2026-11-03T05:06:07Z",
        }
        for severity in severities
    ]
    return {"receiver": "r", "status": "firing", "groupLabels": {}, "commonLabels": {}, "alerts": found, **more}


CASES: tuple[tuple[tuple[dict[str, str], Any], str, str, str, bool], ...] = (
    # A request; entry, severity and message; whether the sender says when.
    (
        github("pull_request_review", action="submitted", review={"state": "changes_requested", "submitted_at":
               "2026-05-05T00:01:00Z"}, pull_request={"number": 3, "title": "T"}),
        "github", "info", "pull_request_review submitted: acme/rockets changes_requested #3 T (octo)", True,
    ),
    (
        github("workflow_dispatch", ref="refs/heads/main", workflow=".github/workflows/a.yml", inputs={}),
        "github", "info", "workflow_dispatch: acme/rockets refs/heads/main .github/workflows/a.yml (octo)", False,
    ),
    (
        ({"X-Gitlab-Event": "Resource Access Token Hook"}, {"project": PROJECT,
         "object_kind": "access_token", "event_name": "expiring_access_token",
         "object_attributes": {"name": "t", "created_at": "2025-01-21T12:02:15Z"}}),
        "gitlab", "warn", "Resource Access Token Hook expiring_access_token: acme/rockets t", False,
    ),
    (
        ({}, {"eventKey": "mirror:repo_synchronized", "date": "2026-10-22T10:31:00+0200", "repository": {"slug": "r"}}),
        "bitbucket", "info", "r", True,
    ),
    (
        ({}, {"webhookEvent": "user_deleted", "timestamp": 1792739564071, "user": {"displayName": "Olga"}}),
        "jira", "notice", "user_deleted (Olga)", True,
    ),
    (
        ({}, {"eventType": "group.user_membership.add", "published": "2026-10-24T05:11:09.441Z", "severity": "INFO",
              "displayMessage": "Add user to group", "actor": {"alternateId": "admin"},
              "outcome": {"result": "SUCCESS"},
              "target": [{"displayName": "Olga"}, {"displayName": "Admins"}]}),
        "okta", "info", "group.user_membership.add Add user to group: Olga, Admins: SUCCESS (admin)", True,
    ),
    (
        ({}, [{"log_id": "9", "data": {"type": "limit_mu", "date": "2026-10-25T03:04:05Z", "ip": "203.0.113.1",
                                       "log_id": "9"}}]),
        "auth0", "error", "limit_mu, 203.0.113.1", True,
    ),
    (
        sns({"Event": "autoscaling:EC2_INSTANCE_LAUNCH_ERROR", "Description": "No room"}, Subject="Auto Scaling"),
        "aws-sns", "error", "Auto Scaling, No room", True,
    ),
    (
        sns({"eventType": "Bounce", "mail": {"destination": ["a@example.com"]}}),
        "aws-sns", "warn", "Bounce a@example.com", True,
    ),
    (
        eventbridge("Batch Job State Change", jobName="j", status="FAILED", statusReason="Container exited"),
        "aws-eventbridge", "error", "Batch Job State Change j, FAILED, Container exited", True,
    ),
    (
        eventbridge("AWS API Call via CloudTrail", eventName="PutUser", eventSource="iam.amazonaws.com",
                    errorCode="AccessDenied", userIdentity={"arn": "arn:u"}),
        "aws-cloudtrail", "warn", "PutUser iam.amazonaws.com: AccessDenied (arn:u)", True,
    ),
    (
        ({}, [{"id": "1", "subject": "/s", "eventType": "Microsoft.EventGrid.SubscriptionDeletedEvent", "data": {},
               "dataVersion": "1", "eventTime": "2026-10-29T04:05:06Z"}]),
        "azure-event-grid", "notice", "Microsoft.EventGrid.SubscriptionDeletedEvent /s", True,
    ),
    (
        ({}, {"schemaId": "azureMonitorCommonAlertSchema", "data": {
            "essentials": {"alertRule": "health", "severity": "Sev1", "monitorCondition": "Fired",
                           "firedDateTime": "2026-10-29T04:05:06Z"},
            "alertContext": {"properties": {"title": "Storage"}}}}),
        "azure-monitor", "error", "health Fired, Storage", True,
    ),
    (
        ({"X-Slack-Signature": "v0=0"}, {"type": "event_callback", "event_time": 1793350000,
                                         "event": {"type": "tokens_revoked", "tokens": {}}}),
        "slack", "warn", "tokens_revoked", True,
    ),
    (
        ({"Stripe-Signature": "t=1"}, {"type": "customer.subscription.updated", "created": 1793435998,
                                       "data": {"object": {"id": "sub_1", "status": "past_due"}}}),
        "stripe", "warn", "customer.subscription.updated: sub_1, past_due", True,
    ),
    (
        ({"X-PagerDuty-Signature": "v1=0"}, {"event": {
            "event_type": "incident.escalated", "occurred_at": "2026-11-02T03:00:00Z",
            "data": {"number": 2, "title": "Down", "priority": {"summary": "SEV-2"}}}}),
        "pagerduty", "error", "incident.escalated #2 Down", True,
    ),
    (({}, alerts("warning", "critical", "info")), "alertmanager", "critical", "firing 3: Disk 3", True),
    (
        ({}, alerts("warning", "critical", orgId=1, groupKey="k", title="[FIRING:2]")),
        "grafana", "critical", "firing 2: [FIRING:2]", True,
    ),
    (
        ({"X-Zm-Signature": "v0=0"}, {"event": "zoomroom.alert", "event_ts": 1772439300412, "payload": {
            "account_id": "a", "object": {"room_name": "Blue", "issue": "No microphone"}}}),
        "zoom", "warn", "zoomroom.alert: Blue: No microphone", True,
    ),
    (
        ({"Sentry-Hook-Resource": "installation", "Sentry-Hook-Timestamp": "1772439301"}, {
            "action": "deleted", "data": {"installation": {"app": {"slug": "acme"}}}}),
        "sentry", "notice", "installation deleted: acme", True,
    ),
    (
        ({}, {"alert_id": "1", "alert_transition": "Re-No Data", "title": "Disk", "date": "1772439300000"}),
        "datadog", "warn", "Disk", True,
    ),
    (
        ({"Cf-Webhook-Auth": "x"}, {"text": "Tunnel", "ts": 1793435998, "alert_type": "tunnel_health_event",
                                    "data": {"new_status": "TUNNEL_STATUS_TYPE_DOWN"}}),
        "cloudflare-notifications", "error", "Tunnel", True,
    ),
)  # fmt: skip


def taken_from(case: dict[str, Any]) -> dict[str, Any]:
    """Return what is found in a documented request, in the words of the file; nothing when nobody is known."""
    body = case["body"]
    evidence = evidence_of(body.encode() if isinstance(body, str) else body, case.get("headers"))
    match = CLASSIFIER.classify(evidence)
    if match is None:
        return {}
    found = extract(match.sender, evidence)
    moment = found.time_unix_nano
    return {
        "entry": match.sender.id,
        "service": match.service,
        "time": None if moment is None else (EPOCH + timedelta(microseconds=moment // 1000)).isoformat(),
        "severity": found.severity and found.severity[1],
        "message": found.message,
        "host": found.host,
    }


class EventTypeTests(SynchronousTestCase):
    """Events of known senders."""

    def test_table(self) -> None:
        """Sender, severity and message are as they should be, and a time is taken where there is one of the event."""
        for (headers, body), entry, severity, message, has_time in CASES:
            evidence = evidence_of(body, headers)
            match = CLASSIFIER.classify(evidence)
            assert match is not None, message
            found = extract(match.sender, evidence)
            self.assertEqual(
                (match.sender.id, found.severity, found.message, found.time_unix_nano is not None),
                (entry, SEVERITIES[severity], message, has_time),
            )

    def test_documented(self) -> None:
        """Requests as senders document them are told, and time, severity, message and host are those of the event."""
        for case in yaml.safe_load(DOCUMENTED.read_bytes()):
            wanted = {name: case[name] for name in ("entry", "service", "time", "severity", "message", "host")}
            self.assertEqual(taken_from(case), wanted, case["what"])
