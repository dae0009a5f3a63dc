"""
Classify and Parse: the steps that find the sender of a message, and its time, text, severity and host.

Both use C{log.body} as it is at their turn, so that steps before them may unpack it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from webhookrx.intake.json_body import json_or_missing
from webhookrx.intake.provenance import NOT_VERIFIED
from webhookrx.message.fields import set_field
from webhookrx.router.steps.context import CLASSIFIED, UNKNOWN_SENDER, StepContext, StepEvent
from webhookrx.senders.classifier import LOW, Classifier, Match, delivery_id
from webhookrx.senders.evidence import Evidence, evidence_of_event
from webhookrx.senders.extraction import extract

BODY_BASE64: Final = "webhook.body_base64"
"""The member of C{log.attributes} for a body that is not UTF-8."""

_HOST_NAME: Final = ("meta", "host", "name")

_encode: Final = msgspec.json.Encoder().encode


def classify(context: StepContext) -> StepEvent | None:
    """
    Set C{meta.vendor}, C{product}, C{service} and C{classify} when the sender is known, and C{meta.sender.delivery_id}
    where the request has the id of a delivery; C{classify} alone when only a definition of last resort matches. Such an
    definition never replaces a sender that an earlier step has found. A sender that the request has proved is not
    searched for.
    """
    return _classify(context, True)


def classify_known(context: StepContext) -> StepEvent | None:
    """Classify without definitions of last resort."""
    return _classify(context, False)


def _classify(context: StepContext, last_resort: bool) -> StepEvent | None:
    classifier = context.classifier
    assert classifier is not None, "a connector that classifies has a classifier"
    earlier = context.match
    known_before = earlier is not None and earlier.confidence != LOW
    match = _proved(classifier, context)
    if match is None:
        match = classifier.classify(_evidence(context), last_resort and not known_before)
    if match is None:
        return UNKNOWN_SENDER
    sender, meta = match.sender, context.record["meta"]
    if match.confidence != LOW:
        meta["vendor"] = sender.vendor
        meta["product"] = sender.product
        meta["service"] = match.service
        if delivery := delivery_id(sender, context.evidence):
            seen = meta.get("sender")
            if type(seen) is dict and "verified" in seen:  # the receiver knows who it was, and maybe this as well
                seen.setdefault("delivery_id", delivery)
            else:
                meta["sender"] = {"delivery_id": delivery}
    meta["classify"] = {"rule": sender.id, "confidence": match.confidence, "why": match.why}
    context.match = match
    return CLASSIFIED, sender.id


def _proved(classifier: Classifier, context: StepContext) -> Match | None:
    """Return the sender that the receiver has found out before; None if it has not, or if nothing proves it."""
    provenance = context.provenance
    if provenance is None or not provenance.sender or provenance.verified == NOT_VERIFIED:
        return None
    return classifier.proved(provenance.sender, _evidence(context), provenance.verified)


def parse(context: StepContext) -> StepEvent | None:
    """
    Set C{log.time_unix_nano}, C{severity_number}, C{severity_text} and C{body} as the definition of a known sender
    says, and C{meta.host.name} unless the path has set it.
    """
    match = context.match
    if match is None:
        return None
    found = extract(match.sender, _evidence(context))
    record = context.record
    log = record["log"]
    if found.host is not None and not context.host_is_set:
        # The only one of these that can fail, so that a failure leaves the message as it was.
        _set_host(record, found.host)
    log["body"] = found.body
    if found.is_unpacked:
        # The same once more, which no step that removes something from the body would reach.
        log["attributes"].pop(BODY_BASE64, None)
    context.stale = True
    if found.time_unix_nano is not None:
        log["time_unix_nano"] = found.time_unix_nano
    if found.severity is not None:
        log["severity_number"], log["severity_text"] = found.severity
    return None


def _set_host(record: dict[str, Any], name: str) -> None:
    meta = record.get("meta")
    host = meta.get("host") if type(meta) is dict else None
    if type(host) is dict and "name" in host:
        host["name"] = name
    else:  # a step has changed it
        set_field(record, _HOST_NAME, name)


def _evidence(context: StepContext) -> Evidence:
    """Return the request with the body as steps have changed it."""
    if context.stale:
        context.evidence = _renewed(context.evidence, context.record["log"].get("body"))
        context.stale = False
    return context.evidence


def _renewed(evidence: Evidence, content: Any) -> Evidence:
    if evidence.around is not None:
        raw = content.encode("utf-8", "replace") if isinstance(content, str) else _encode(content)
        is_text = type(content) not in (dict, list)
        return evidence_of_event(evidence.head, evidence.query, raw, is_text, evidence.around)
    if isinstance(content, str):
        if content is evidence.text:
            return evidence
        raw = content.encode("utf-8", "replace")
        return Evidence(evidence.head, evidence.query, raw, content, json_or_missing(raw))
    raw = _encode(content)
    return Evidence(evidence.head, evidence.query, raw, raw.decode(), content)
