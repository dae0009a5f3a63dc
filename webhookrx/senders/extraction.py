"""
What a known sender's definition takes from its requests: time, message, severity, host, and a structured body.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from webhookrx.message.escapes import encode_json
from webhookrx.message.message import Value
from webhookrx.query import Query, QueryTooCostly
from webhookrx.regex import RegexTooCostly
from webhookrx.senders.bodies import first_element
from webhookrx.senders.classifier import MAX_NAME
from webhookrx.senders.compiled import CompiledSender
from webhookrx.senders.definition import BINARY
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.locator import LookupContext, element, scalar_text
from webhookrx.senders.plans import Plan
from webhookrx.senders.severities import Known
from webhookrx.senders.text_template import first_text
from webhookrx.senders.unpacking import unpack

_WITH_PORT: Final = re.compile(r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]+)\]|(?P<plain>[^\s:/@\[\]]+)):[0-9]{1,5}")


class Extracted(msgspec.Struct, frozen=True, gc=False):
    """
    What was taken from a request.

    @ivar body: the new C{log.body}, see L{extract}.
    @ivar is_unpacked: C{body} holds all of a body that was not text.
    @ivar time_unix_nano: None when there is none that could be read.
    @ivar severity: C{severity_number} and C{severity_text}.
    @ivar host: at most L{MAX_NAME} characters, without a port.
    @ivar taken: the origin of C{time}, C{message}, C{severity} and C{host}, as far as found: a place as the definition
        writes it, such as C{/event/occurred_at}; C{default_severity} or C{text} for a value of the definition itself.
    """

    body: dict[str, Value]
    is_unpacked: bool
    time_unix_nano: int | None
    severity: Known | None
    message: str | None
    host: str | None
    taken: dict[str, str]


def extract(sender: CompiledSender, evidence: Evidence) -> Extracted:
    """
    Take from a request what its sender's definition says. What can't be read is left out.

    C{body} is

      - for one object, or a form: the object, its decoded parts in their places, and C{message} unless it has a member
        of that name
      - for several events: C{events}, C{message}, and C{rest}, the text behind the events that is not one of them, if
        any
      - for anything else: C{message}, the text; with a message by the definition, that one, and C{text}

    Where there is no message, there is no C{message} in it. The result shares parts with the evidence. Of one event of
    a request with several, C{body} is made of the event alone.

    @raise webhookrx.senders.otlp.OtlpError: the body is protobuf, and can't be read. For others it raises nothing,
        whatever they are.
    """
    unpacked = unpack(sender, evidence)
    scope = unpacked.scope(evidence)
    plan = sender.plans.plan(unpacked.event, unpacked.whole)
    taken: dict[str, str] = {}
    moment = _time(plan, scope, taken) if plan.times else None
    severity = _severity(plan, scope, taken) if plan.severities else None
    if severity is None and sender.default_severity is not None:
        severity, taken["severity"] = sender.default_severity, "default_severity"
    message = _message(plan, scope, taken)
    host = None
    if plan.hosts and (found := first_text(plan.hosts, scope, host_of)) is not None:
        host, taken["host"] = found[0][:MAX_NAME].rstrip(), found[1]
    is_unpacked = type(unpacked.whole) is not str and sender.definition.format in BINARY
    body = _body(unpacked.whole, unpacked.rest, message)
    if evidence.around is not None:
        body = _event_body(unpacked.whole, evidence.around.path, message)
    return Extracted(body, is_unpacked, moment, severity, message, host, taken)


def _message(plan: Plan, scope: LookupContext, taken: dict[str, str]) -> str | None:
    for text, condition in plan.messages:
        if condition is not None and not _holds(condition, scope.event):
            continue
        found = text.render(scope)
        if found is not None:
            message, taken["message"] = found
            return message
    return None


def _time(plan: Plan, scope: LookupContext, taken: dict[str, str]) -> int | None:
    for place, reader, condition in plan.times:
        if condition is not None and not _holds(condition, scope.event):
            continue
        # Of several things that have happened by then, the latest is why it was sent.
        moment = max(place.all(scope, reader), default=None) if place.has_star else place.first(scope, reader)
        if moment is not None:
            taken["time"] = place.text
            return moment
    return None


def _holds(condition: Query, event: Value) -> bool:
    try:
        return type(event) is dict and condition.matches(event)
    except (QueryTooCostly, RegexTooCostly):
        return False


def host_of(value: Any) -> str | None:
    """Return the text of a value that names a host, without a port behind it; None for what yields nothing."""
    text = scalar_text(value)
    if text is None or ":" not in text:
        return text
    found = _WITH_PORT.fullmatch(text)
    return text if found is None else found["bracketed"] or found["plain"]


def _severity(plan: Plan, scope: LookupContext, taken: dict[str, str]) -> Known | None:
    for place, meaning in plan.severities:
        # The first of several is as good as any, but the highest is what there is to know.
        known = max(place.all(scope, meaning), default=None) if place.has_star else place.first(scope, meaning)
        if known is not None:
            taken["severity"] = place.text
            return known
    return None


def _body(whole: Any, rest: str, message: str | None) -> dict[str, Value]:
    if type(whole) is dict:
        if message is None or isinstance(whole.get("message"), str):
            return whole
        # A member of that name that is no text is the sender's, and stays.
        name = "message" if "message" not in whole else "message_text"
        return whole if name in whole else {**whole, name: message}
    if type(whole) is list:
        body: dict[str, Value] = {"events": whole}
        if rest:
            body["rest"] = rest
        if message is not None:
            body["message"] = message
        return body
    if message is None or message == whole:
        return {"message": whole}
    return {"text": whole, "message": message}


def _event_body(whole: Any, path: tuple[str, ...], message: str | None) -> dict[str, Value]:
    """
    Return the body of one event.

    @param path: where it is in the whole.
    """
    event: Any = whole
    for step in path:
        event = event.get(step) if type(event) is dict else element(event, step) if type(event) is list else None
    if type(event) is list and not path:
        event = first_element(event)
    if type(event) is not dict and type(event) is not str:
        event = encode_json(event).decode()
    return _body(event, "", message)
