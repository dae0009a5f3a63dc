"""
Verifiers and signed requests for tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tests.senders.requests import entry_of
from webhookrx.intake.head import Head, HeaderLines, Peer
from webhookrx.intake.urlencoded import parse_query
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.scheme import SignatureScheme
from webhookrx.senders.signatures.verification import Verification
from webhookrx.senders.signatures.verifier import Verifier

#: One line of a head, or the value of one header.
Headers = Mapping[str, str | bytes] | Sequence[tuple[str, str | bytes]]

SECOND = 1_000_000_000


def scheme_of(**members: Any) -> SignatureScheme:
    """Return a scheme with some members of its data file."""
    return msgspec.convert(members, SignatureScheme)


def verifier_of(*schemes: Mapping[str, Any], secrets: Mapping[str, str | bytes], **more: Any) -> Verifier:
    """Return what checks the requests of a source by schemes."""
    verify = tuple(scheme_of(**scheme) for scheme in schemes)
    return Verifier(
        entry_of(verify=verify[0] if len(verify) == 1 else verify, settings=more.pop("has_settings", {})),
        [NamedSecret(name, text.encode() if isinstance(text, str) else text) for name, text in secrets.items()],
        **more,
    )


def head_of(headers: Headers = (), *, url: str = "/", method: str = "POST") -> Head:
    """Return a head; a value that is no bytes is sent as UTF-8."""
    target = urlsplit(url)
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    lines = b"".join(
        name.encode() + b": " + (value.encode() if isinstance(value, str) else value) + b"\r\n" for name, value in pairs
    )
    block = f"{method} {url} HTTP/1.1\r\n".encode() + lines + b"\r\n"
    path, query = target.path.encode() or b"/", target.query.encode() or None
    return Head(method.encode(), path, query, HeaderLines(block), Peer("192.0.2.1", 4711, True))


def begin(verifier: Verifier, headers: Headers = (), *, url: str = "/", method: str = "POST") -> Verification:
    """Begin the check of a request."""
    head = head_of(headers, url=url, method=method)
    return verifier.begin(head, parse_query(head.query or b""))


def check(
    verifier: Verifier,
    headers: Headers = (),
    body: bytes = b"",
    *,
    url: str = "/",
    method: str = "POST",
    now: float = 0,
    wire: bytes | None = None,
) -> Verified | Unverified:
    """
    Judge a request whose body comes as a whole.

    @param now: seconds.
    """
    return begin(verifier, headers, url=url, method=method).finish(body, round(now * SECOND), wire)


def verdict(result: Verified | Unverified) -> str:
    """Return a result in short: C{ok:NAME}, or the word of the reason."""
    return f"ok:{result.secret}" if isinstance(result, Verified) else result.reason.word
