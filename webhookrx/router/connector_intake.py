"""
The decision on a request to a connector: a message with C{log} and C{meta}, put through the steps of the connector.

As in L{webhookrx.intake.judge}: plain functions on plain values.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any, Final

from webhookrx.intake.head import Head
from webhookrx.intake.header_masking import cloud_event_headers, recorded_headers
from webhookrx.intake.json_body import body_text, decode_exactly, json_or_missing
from webhookrx.intake.judge import Accepted, Admission, Dropped, Receipt, SourceRules, base64_text
from webhookrx.intake.line_judge import NOT_MADE, LineMessage
from webhookrx.intake.provenance import batch_members, client_members, sender_members
from webhookrx.message.escapes import encode_json
from webhookrx.message.fields import MISSING
from webhookrx.message.message import Message, Value
from webhookrx.router.rules.rule import CONNECTOR_TYPE
from webhookrx.router.steps.processing import Processing
from webhookrx.router.steps.sender_steps import BODY_BASE64
from webhookrx.senders.evidence import Evidence, evidence_of_event
from webhookrx.speedups import compiled
from webhookrx.yield_point import LONG_CALL, run_unlocked

#: What may stand before an object or an array of JSON: white space, a byte order mark.
_BLANKS: Final = b" \t\r\n\xef\xbb\xbf"
_BEFORE_BODY: Final = b'{"log":{"body":'

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
        masked_headers: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(
            name,
            parse_json=True,
            include_request_headers=include_request_headers,
            body_limit=body_limit,
            unpack_ratio=unpack_ratio,
            masked_headers=masked_headers,
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


class ConnectorLine(LineMessage, gc=False):
    """A message of a connector without steps whose line was made first."""

    def text_of(self, macro: str) -> str | None:
        """See L{Message.text_of}."""
        request = self.request
        if request is None:
            return Message.text_of(self, macro)
        head, admission, _, receipt = request
        if macro == "RCPTID":
            return receipt.id
        if macro == "HOST":
            return admission.groups.get("HOST") or head.peer.ip
        if macro == "SOURCE":
            return admission.groups.get("SOURCE", admission.rules.name)
        return Message.text_of(self, macro)


def judge_connector(head: Head, admission: Admission, body: bytes, receipt: Receipt) -> Accepted | Dropped:
    """
    Make a message of an admitted request, and run the steps of its connector.

    A body that is a JSON object becomes C{log.body} as that object, any other as text.

    @param admission: its rules are L{ConnectorRules}.
    @param body: as L{webhookrx.intake.judge.unpacked} returned it.
    """
    return _judged(head, admission, body, receipt, _decoded(admission, body, _compact(body)))


def judge_connector_for_lines(head: Head, admission: Admission, body: bytes, receipt: Receipt) -> Accepted | Dropped:
    """
    Do what L{judge_connector} does for messages that are wanted as lines. An object that no step changes goes into the
    line as text; without any steps, it is decoded only if something asks for the values.
    """
    compact = _compact(body) if admission.rules.parse_json else None
    if compact is None or not compact.startswith(b"{"):
        return _judged(head, admission, body, receipt, _decoded(admission, body, compact))
    processing: Processing = admission.rules.processing  # type: ignore[attr-defined]  # as above
    if processing.idle:
        line = _line(_record(head, admission, receipt, None, len(body), _attributes(head, admission)), compact)
        request = head, admission, body, receipt
        return Accepted(ConnectorLine(NOT_MADE, receipt.received, line, judge_connector, request))
    decoded = decode_exactly(compact)
    verdict = _judged(head, admission, body, receipt, decoded)
    if isinstance(verdict, Accepted) and processing.keeps_body:
        record = verdict.message.values
        text = _as_text(record["log"]["body"], decoded, compact)  # type: ignore[index,call-overload]
        if text is not None:
            verdict.message.line = _line(record, text)
    return verdict


def _judged(head: Head, admission: Admission, body: bytes, receipt: Receipt, decoded: Any) -> Accepted | Dropped:
    """
    Do what L{judge_connector} does.

    @param decoded: the body, as L{_decoded} returned it.
    """
    attributes = _attributes(head, admission)
    is_object = type(decoded) is dict
    text = ""
    if not is_object:
        text, exact = body_text(body)
        if not exact:
            attributes[BODY_BASE64] = base64_text(body)
    record = _record(head, admission, receipt, decoded if is_object else text, len(body), attributes)
    message = Message(record, receipt.received)
    notes = () if is_object else ("text_body",)
    processing: Processing = admission.rules.processing  # type: ignore[attr-defined]  # those of its own source
    if processing.idle:
        return Accepted(message, notes)
    around = None if admission.provenance is None else admission.provenance.around
    if around is not None and processing.classifies:
        evidence = evidence_of_event(head, admission.query, body, not admission.rules.parse_json, around)
    else:
        evidence = Evidence(head, admission.query, body, None if is_object else text, decoded)
    host_is_set = bool(admission.groups.get("HOST"))
    outcome = processing.run(record, evidence, host_is_set, admission.provenance)
    if outcome.kept:
        return Accepted(message, notes, 0, outcome.events, outcome.problem)
    return Dropped(outcome.events, outcome.problem)


def _record(
    head: Head, admission: Admission, receipt: Receipt, content: Value, size: int, attributes: dict[str, Any]
) -> dict[str, Any]:
    """
    Return a message before any step.

    @param content: C{log.body}, which stands first in it.
    @param size: bytes of the body.
    """
    rules: ConnectorRules = admission.rules  # type: ignore[assignment]  # those of its own source
    connector, router = rules.fixed()
    record: dict[str, Any] = {
        "log": {
            "body": content,
            "attributes": attributes,
            "observed_time_unix_nano": receipt.received,
            "time_unix_nano": 0,
            "severity_number": 0,
            "severity_text": "",
        },
        "meta": {
            "connector": connector,
            "connection": _connection(head, size),
            "router": router,
            "host": {"name": admission.groups.get("HOST") or head.peer.ip},
            "id": receipt.id,
        },
    }
    provenance = admission.provenance
    if provenance is not None:
        meta = record["meta"]
        meta["sender"] = sender_members(provenance)
        if provenance.token:
            meta["connection"]["token"] = provenance.token
        if provenance.batch is not None:
            meta["batch"] = batch_members(provenance.batch)
    return record


def _line(record: dict[str, Any], text: bytes) -> bytes:
    """
    Return the line of a record, but with a text of JSON for C{log.body}.

    @param text: compact and without misleading characters.
    """
    log = record["log"]
    body, log["body"] = log["body"], None
    around = encode_json(record)
    log["body"] = body
    if not around.startswith(_BEFORE_BODY + b"null"):  # something stands before the body
        return encode_json(record) + b"\n"
    return b"".join((_BEFORE_BODY, text, around[len(_BEFORE_BODY) + len(b"null") :], b"\n"))


def _as_text(body: Value, decoded: dict[str, Any], compact: bytes) -> bytes | None:
    """
    Return C{log.body} as compact JSON, if it is what was sent, or that and one member more; None otherwise.

    @param decoded: what was sent; nothing has changed it, nor what is in it.
    @param compact: the same as compact JSON.
    """
    if body is decoded:
        return compact
    if type(body) is not dict or len(body) != len(decoded) + 1:
        return None
    # What Parse puts members into is a copy with the same ones.
    if not (all(map(is_, body, decoded)) and all(map(is_, body.values(), decoded.values()))):
        return None
    name = next(reversed(body))
    return b"".join((compact[:-1], b"," if decoded else b"", encode_json({name: body[name]})[1:]))


def _attributes(head: Head, admission: Admission) -> dict[str, Any]:
    """
    Return the attributes from query, path and headers, but for the group C{HOST}, which sets C{meta.host.name}.
    """
    attributes: dict[str, Any] = {}
    if admission.query:
        for name, value in admission.query.items():
            attributes["webhook.query." + name] = value
    if admission.groups:
        for name, captured in admission.groups.items():
            if name != "HOST":
                attributes["webhook.path." + name] = captured
    if found := cloud_event_headers(head):
        attributes.update(found)
    if admission.rules.include_request_headers:
        attributes["webhook.headers"] = recorded_headers(head.headers, admission.rules.masked_headers)
    return attributes


def _connection(head: Head, size: int) -> dict[str, Any]:
    peer = head.peer
    transport = "https" if peer.secure else "http"
    if peer.client is not None:
        port = {} if peer.port is None else {"src_port": peer.port}
        client = client_members(peer.client)
        return {"src_ip": peer.ip, **port, "transport": transport, "bytes": size, "client": client}
    if peer.port is None:
        return {"src_ip": peer.ip, "transport": transport, "bytes": size}
    return {"src_ip": peer.ip, "src_port": peer.port, "transport": transport, "bytes": size}


def _compact(body: bytes) -> bytes | None:
    """Return the object or array in a body as compact JSON without misleading characters; None if that is not known."""
    if compiled is None or not body.startswith(_BRACKETS):
        return None
    if len(body) <= LONG_CALL:
        return compiled.compact_object(body)
    return run_unlocked(len(body), compiled.compact_object, body)


def _decoded(admission: Admission, body: bytes, compact: bytes | None) -> Any:
    """
    Return the object or array in a body of JSON; L{MISSING} for any other body, and where none is read in it.

    @param compact: what L{_compact} returned.
    """
    if not admission.rules.parse_json:
        return MISSING
    if compact is not None:
        # It is within all limits of parse_strict_json, which takes longer to look at each by itself.
        return decode_exactly(compact)
    if not body.startswith(_BRACKETS) and not body.lstrip(_BLANKS).startswith(_BRACKETS):
        return MISSING
    return json_or_missing(body)
