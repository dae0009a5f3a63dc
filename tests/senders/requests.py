"""
Requests and entries for tests, made of little.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from webhookrx.intake.head import Head, HeaderLines, Peer
from webhookrx.intake.json_body import PayloadError, body_text, parse_strict_json
from webhookrx.message.fields import MISSING
from webhookrx.senders.compiled import CompiledSender, compile_sender
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.locator import LookupContext


def evidence_of(
    body: Any = b"",
    headers: Mapping[str, str] | None = None,
    *,
    path: bytes = b"/events",
    query: Mapping[str, str | list[str]] | None = None,
) -> Evidence:
    """Return the evidence of a request; a body that is no bytes is sent as JSON."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    block = b"POST " + path + b" HTTP/1.1\r\n" + lines.encode() + b"\r\n"
    head = Head(b"POST", path, b"", HeaderLines(block), Peer("192.0.2.1", 4711, False))
    return known_of(head, query or {}, raw)


def known_of(head: Head, query: Mapping[str, str | list[str]], body: bytes) -> Evidence:
    """Return the evidence of a request that came as head and body."""
    decoded: Any = MISSING
    with suppress(PayloadError):
        decoded = parse_strict_json(body)
    return Evidence(head, query, body, body_text(body)[0], decoded)


def scope_of(body: Any = b"", headers: Mapping[str, str] | None = None, **more: Any) -> LookupContext:
    """Return where places of a request are looked up, when its body is one JSON document."""
    evidence = evidence_of(body, headers, **more)
    decoded: Any = None if evidence.decoded is MISSING else evidence.decoded
    return LookupContext(evidence, decoded, decoded)


def entry_of(**members: Any) -> SenderDefinition:
    """Return a definition with some members of its data file; what must be there is filled in."""
    filled = {"id": "acme", "vendor": "acme", "product": "anvil", "when": {"body_keys": ["a"]}} | members
    return msgspec.convert(filled, SenderDefinition)


def compiled(**members: Any) -> CompiledSender:
    """Return the same, made ready."""
    return compile_sender(entry_of(**members))
