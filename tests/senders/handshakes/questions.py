"""
Questions for tests, and what becomes of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tests.senders.requests import known_of
from webhookrx.intake.head import Head, HeaderLines, Peer
from webhookrx.intake.judge import Refused
from webhookrx.intake.urlencoded import parse_query
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.handshakes import HandshakeAnswer, Handshakes
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.senders.signatures.outcome import Unverified
from webhookrx.senders.signatures.verifier import Verifier

#: Seconds since the epoch at which all requests of tests come.
NOW = 1_772_439_300

DEFINITIONS = {definition.id: definition for definition in builtin_definitions()}


def any_number(now: float) -> int:
    """Have any number of questions answered."""
    return 0


def secrets_of(**values: str) -> list[NamedSecret]:
    """Return secrets by name; C{verify_token} stands for C{verify-token}."""
    return [NamedSecret(name.replace("_", "-"), value.encode()) for name, value in values.items()]


def head_of(method: str, target: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Head:
    """Return the head of a request with a body of that size."""
    path, _, query = target.partition("?")
    lines = {"Host": "hooks.example.com", **(headers or {})}
    if body:
        lines["Content-Length"] = str(len(body))
    written = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    block = f"{method} {target} HTTP/1.1\r\n{written}\r\n".encode()
    peer = Peer("192.0.2.1", 4711, True)
    return Head(method.encode(), path.encode(), query.encode(), HeaderLines(block), peer)


def ask(
    definition: SenderDefinition,
    method: str,
    target: str,
    headers: Mapping[str, str] | None = None,
    body: Any = b"",
    *,
    secrets: Sequence[NamedSecret] = (),
    verify: bool = True,
    **given: Any,
) -> HandshakeAnswer | Refused | None:
    """
    Return what becomes of a request at L{NOW}: an answer, a refusal, or None for what is judged as a message.

    @param body: what is no bytes is sent as JSON.
    @param verify: it must be signed, if there is a secret for that.
    @param given: for L{Handshakes}.
    """
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    asked = Handshakes(definition, secrets, source="hooks", take=any_number, **given)
    head = head_of(method, target, headers, raw)
    query = parse_query(head.query) if head.query else {}
    ending = asked.by_head(head, query, 0.0)
    if ending is not None:
        return ending
    evidence = known_of(head, query, raw)
    ending = asked.before_signature(evidence, 0.0)
    if ending is not None:
        return ending
    name = None
    if verify and definition.schemes and secrets:
        outcome = Verifier(definition, secrets).begin(head, query).finish(raw, NOW * 1_000_000_000)
        if isinstance(outcome, Unverified):
            return Refused(outcome.reason, outcome.detail, "hooks")
        name = outcome.secret
    return asked.after_signature(evidence, name, 0.0)
