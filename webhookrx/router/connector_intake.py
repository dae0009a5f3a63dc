"""
The decision on a request to a connector: a message with C{log} and C{meta}, put through the steps of the connector.

As in L{webhookrx.intake.judge}: plain functions on plain values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhookrx.intake.head import Head
from webhookrx.intake.header_masking import cloud_event_headers, recorded_headers
from webhookrx.intake.json_body import body_text, decode_exactly, json_or_missing
from webhookrx.intake.judge import Accepted, Admission, Dropped, Receipt, SourceRules, base64_text
from webhookrx.message.fields import MISSING
from webhookrx.message.message import Message
from webhookrx.router.rules.rule import CONNECTOR_TYPE
from webhookrx.router.steps.processing import Processing
from webhookrx.router.steps.sender_steps import BODY_BASE64
from webhookrx.senders.evidence import Evidence
from webhookrx.speedups import compiled

#: What may stand before an object or an array of JSON: white space, a byte order mark.
_BLANKS: Final = b" \t\r\n\xef\xbb\xbf"
_BRACKETS: Final = (b"{", b"[")


class ConnectorRules(SourceRules):
    """
    The rules of one connector.

    @param name: of the connector.
    @param labels: C{product}, C{vendor}, and those of its rule.
    """

    def __init__(
        self,
        name: str,
        *,
        port: int,
        labels: Mapping[str, str],
        router: str,
        router_labels: Mapping[str, str],
        processing: Processing,
        include_request_headers: bool = False,
        body_limit: int,
        unpack_ratio: int,
    ) -> None:
        super().__init__(
            name,
            parse_json=True,
            include_request_headers=include_request_headers,
            body_limit=body_limit,
            unpack_ratio=unpack_ratio,
        )
        self.processing = processing
        self.connector: dict[str, Any] = {"type": CONNECTOR_TYPE, "name": name, "port": port, "labels": dict(labels)}
        self.router: dict[str, Any] = {"name": router, "labels": dict(router_labels)}

    def fixed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return C{meta.connector} and C{meta.router}, which no message changes for others."""
        if not self.processing.changes_fixed:
            return self.connector, self.router
        connector, router = self.connector, self.router
        return {**connector, "labels": {**connector["labels"]}}, {**router, "labels": {**router["labels"]}}


def judge_connector(head: Head, admission: Admission, body: bytes, receipt: Receipt) -> Accepted | Dropped:
    """
    Make a message of an admitted request, and run the steps of its connector.

    A body that is a JSON object becomes C{log.body} as that object, any other as text.

    @param admission: its rules are L{ConnectorRules}.
    @param body: as L{webhookrx.intake.judge.unpacked} returned it.
    """
    rules: ConnectorRules = admission.rules  # type: ignore[assignment]  # those of its own source
    decoded = _decoded(body)
    attributes = _attributes(head, admission)
    is_object = type(decoded) is dict
    text = ""
    if not is_object:
        text, exact = body_text(body)
        if not exact:
            attributes[BODY_BASE64] = base64_text(body)
    host = admission.groups.get("HOST", "")
    connector, router = rules.fixed()
    record: dict[str, Any] = {
        "log": {
            "body": decoded if is_object else text,
            "attributes": attributes,
            "observed_time_unix_nano": receipt.received,
            "time_unix_nano": 0,
            "severity_number": 0,
            "severity_text": "",
        },
        "meta": {
            "connector": connector,
            "connection": _connection(head, len(body)),
            "router": router,
            "host": {"name": host or head.peer.ip},
            "id": receipt.id,
        },
    }
    message = Message(record, receipt.received)
    notes = () if is_object else ("text_body",)
    processing = rules.processing
    if processing.idle:
        return Accepted(message, notes)
    evidence = Evidence(head, admission.query, body, None if is_object else text, decoded)
    outcome = processing.run(record, evidence, host_is_set=bool(host))
    if outcome.kept:
        return Accepted(message, notes, events=outcome.events, problem=outcome.problem)
    return Dropped(outcome.events, outcome.problem)


def _attributes(head: Head, admission: Admission) -> dict[str, Any]:
    """
    Return the attributes from query, path and headers, but for the group C{HOST}, which sets C{meta.host.name}.
    """
    attributes: dict[str, Any] = {}
    for name, value in admission.query.items():
        attributes["webhook.query." + name] = value
    for name, captured in admission.groups.items():
        if name != "HOST":
            attributes["webhook.path." + name] = captured
    if found := cloud_event_headers(head):
        attributes.update(found)
    if admission.rules.include_request_headers:
        attributes["webhook.headers"] = recorded_headers(head.headers)
    return attributes


def _connection(head: Head, size: int) -> dict[str, Any]:
    peer = head.peer
    transport = "https" if peer.secure else "http"
    if peer.port is None:
        return {"src_ip": peer.ip, "transport": transport, "bytes": size}
    return {"src_ip": peer.ip, "src_port": peer.port, "transport": transport, "bytes": size}


def _decoded(body: bytes) -> Any:
    """Return the object or array in a body of JSON; L{MISSING} for any other body."""
    if not body.startswith(_BRACKETS) and not body.lstrip(_BLANKS).startswith(_BRACKETS):
        return MISSING
    # What has a compact text is within all limits of parse_strict_json, which takes longer to look at each by itself.
    compact = None if compiled is None else compiled.compact_object(body)
    return json_or_missing(body) if compact is None else decode_exactly(compact)
