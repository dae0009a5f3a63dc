"""
Why a decision of a guard has let a request through, or has not: sentences for an operator, without a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from webhookrx.diagnostics import quoted
from webhookrx.errors import BAD_SIGNATURE, KEY_UNAVAILABLE, SIGNATURE_MISSING, STALE_SIGNATURE
from webhookrx.guard.guard import Guard
from webhookrx.guard.passage import Passage
from webhookrx.intake.head import Head
from webhookrx.intake.header_masking import MASK
from webhookrx.intake.judge import Admission, Refused, source_ip
from webhookrx.intake.provenance import BY_TOKEN
from webhookrx.intake.urlencoded import parse_query
from webhookrx.quantities import counted
from webhookrx.senders.signatures.outcome import Verified
from webhookrx.senders.signatures.verifier import Verifier

MASKED: Final = "the recording does not have it, so it is taken to be right"

_NANOSECONDS: Final = 10**9


def why(decision: str, guard: Guard, passage: Passage) -> str:
    """Return why a decision has let a request through; empty if there was nothing to decide."""
    parts = guard.parts
    if decision == "address" and parts.allow is not None:
        ip = source_ip(passage.head, guard.rules)
        return f"{ip} is in {parts.allow.item_of(ip)}"
    if decision == "client":
        return f"the certificate matches {passage.client}"
    if decision == "method":
        return passage.head.method.decode()
    if decision == "token" and parts.tokens is not None:
        return (
            f"the token {quoted(passage.token)} at {parts.tokens.place}" if passage.token else "a question without one"
        )
    if decision == "secret":
        shows = parts.verifier is not None and parts.verifier.shows_secret and passage.unverified is None
        return "the head shows a secret of this source" if shows else ""
    if decision == "quota":
        return "there is room, if nothing else has come"
    if decision in ("handshake", "question", "signed_question"):
        return "no question" if passage.question is None else f"the question {passage.question.kind}, which is stored"
    if decision == "values":
        return _values(passage)
    if decision == "signature":
        return _signature(guard, passage)
    if decision == "mask":
        return f"what the body shows of it goes on as {MASK}"
    if decision == "delivery":
        return quoted(passage.delivery_id) if passage.delivery_id else "it has no id"
    if decision == "answer":
        return "as the sender wants it" if passage.reply is not None else "the usual one"
    if decision == "split":
        return "one message" if passage.bundle is None else counted(len(passage.bundle.events), "event")
    return ""


def why_not(decision: str, guard: Guard, passage: Passage, refused: Refused) -> str:
    """Return why a decision has refused a request."""
    parts, head = guard.parts, passage.head
    if decision == "address" and parts.allow is not None:
        return f"{source_ip(head, guard.rules)} is in none of {', '.join(parts.allow.items)}"
    if decision == "client":
        client = head.peer.client
        if client is None:
            return "the connection has no verified certificate"
        names = ", ".join(quoted(name) for name in dict.fromkeys((*client.san, client.cn)) if name) or "no name"
        return f"the certificate has {names}, sha256:{client.fingerprint}; none is allowed"
    if decision == "token" and parts.tokens is not None:
        return f"at {parts.tokens.place} is none that is accepted, or it is there twice"
    if decision in ("secret", "signature") and parts.verifier is not None:
        skew = passage.unverified.skew if passage.unverified is not None else None
        late = "" if skew is None else f" It is signed {_apart(skew)}."
        if refused.reason is SIGNATURE_MISSING:
            hint = _header(parts.verifier, head)
        else:
            hint = _line_break(parts.verifier, passage, refused) or _url(parts.verifier, passage, refused)
        return f"{_schemes(parts.verifier)}: {refused.detail}{late}{hint}"
    return refused.detail


def _header(verifier: Verifier, head: Head) -> str:
    """Return what of a header with a signature is wrong; empty for a sender with another place for it."""
    places = [place for way in verifier.ways for place in way.scheme.places]
    if not places or not all(place.only_header for place in places):
        return ""
    most = max(len(head.values(place.only_header)) for place in places)
    if most == 1:
        return " The header is there once: it is not of the form, or lacks something that is signed with it."
    return " The header is there more than once." if most else " The header is not there."


def _line_break(verifier: Verifier, passage: Passage, refused: Refused) -> str:
    """Return a hint if a signature is right but for a line break, which editors put at the end of a file."""
    body = passage.body
    if refused.reason is not BAD_SIGNATURE or not body.endswith(b"\n"):
        return ""
    body = body[:-2] if body.endswith(b"\r\n") else body[:-1]
    query = parse_query(passage.head.query or b"")
    outcome = verifier.begin(passage.head, query).finish(body, 0)
    if isinstance(outcome, Verified) or outcome.reason is STALE_SIGNATURE:
        return " It is right for the body without the line break at its end."
    return ""


def _url(verifier: Verifier, passage: Passage, refused: Refused) -> str:
    """Return with which URL a signature is not right, and with which of some near ones it would be."""
    if refused.reason is not BAD_SIGNATURE or not verifier.signs_url:
        return ""
    mine = verifier.public_url
    query = parse_query(passage.head.query or b"")
    for url in _near_urls(mine, passage.head):
        outcome = verifier.at(url).begin(passage.head, query).finish(passage.body, 0)
        if isinstance(outcome, Verified) or outcome.reason is STALE_SIGNATURE:
            return f" It is right for the public_url {quoted(url)}, which is {quoted(mine)} here."
    return f" This sender signs the URL, too: public_url is {quoted(mine)}."


def _near_urls(url: str, head: Head) -> Iterator[str]:
    """Yield what an operator may have meant by C{public_url}: the other scheme, another port, the host of a request."""
    _, _, rest = url.partition("://")
    own = rest.partition("/")[0]
    shown = [value.decode("latin-1") for value in head.values(b"host")]
    hosts = dict.fromkeys(each for host in (own, *shown) for each in (host, re.sub(r":\d+\Z", "", host)))
    for host in hosts:
        yield from (near for scheme in ("https", "http") if (near := f"{scheme}://{host}") != url)


def lack_of_recording(decision: str, guard: Guard, head: Head, refused: Refused) -> str:
    """Return what a recording lacks to judge a signature; empty if it lacks nothing, or for another decision."""
    verifier = guard.parts.verifier
    if decision != "signature" or verifier is None:
        return ""
    if refused.reason is KEY_UNAVAILABLE:
        return "the key that it must be checked with is not in signing_certs, and nothing is fetched here"
    if refused.reason is not BAD_SIGNATURE:
        return ""
    if verifier.takes_wire:
        return "this sender signs the body before its Content-Encoding is undone, and a recording has it undone"
    places = {place for way in verifier.ways for place in way.scheme.text.places}
    if not places.isdisjoint(("url", "target")) and MASK.encode() in head.path + (head.query or b""):
        return "this sender signs the URL, in which the recording masks something"
    return ""


def is_masked(decision: str, guard: Guard, passage: Passage) -> bool:
    """Tell whether a recording has C{***} where a token, or a secret that is sent itself, would be."""
    head, groups = passage.head, passage.by_path
    tokens, verifier = guard.parts.tokens, guard.parts.verifier
    if decision == "token" and tokens is not None:
        place = tokens.place
        if place.kind == "path":
            return isinstance(groups, Admission) and groups.groups.get(place.name) == MASK
        if place.kind == "query":
            return place.shown(head, {}) == MASK.encode()
        return _is_masked_header(head, b"authorization" if place.kind == "basic" else place.name.encode())
    if verifier is None or not verifier.shows_secret:
        return False
    query = parse_query(head.query or b"")
    request = verifier.request(head, query)
    request.body = passage.body
    for way in verifier.ways:
        for shown in way.scheme.places:
            name = shown.text.partition(":")[2]
            if shown.in_body:
                if set(shown.values(request)) == {MASK.encode()}:
                    return True
            elif _is_masked_header(head, shown.only_header) or (not shown.header and query.get(name) == MASK):
                return True
    return False


def _is_masked_header(head: Head, name: bytes) -> bool:
    return bool(name) and head.values(name) == [MASK.encode()]


def _values(passage: Passage) -> str:
    admission = passage.admission
    assert admission is not None, "its head was admitted"
    parts = [f"{name}={value}" for name, value in admission.groups.items()]
    if admission.query:
        parts.append(counted(len(admission.query), "query parameter"))
    return ", ".join(parts) or "no captured text, no query"


def _schemes(verifier: Verifier) -> str:
    """Return the schemes that count, by their algorithms and places."""
    texts = []
    for way in verifier.ways:
        scheme = way.scheme.scheme
        places = ", ".join(place.text for place in way.scheme.places)
        texts.append(f"{scheme.code or scheme.algorithm}{f' at {places}' if places else ''}")
    return " or ".join(texts)


def _signature(guard: Guard, passage: Passage) -> str:
    verified, verifier = passage.verified, guard.parts.verifier
    if verifier is None:
        return ""
    if verified is None:
        assert passage.unverified is not None, "it was judged"
        return f"{_schemes(verifier)}: not verified, which is noted: {passage.unverified.detail}"
    how = "shows" if verified.kind == BY_TOKEN else "signed with"
    text = f"{_schemes(verifier)}: {how} the secret {quoted(verified.secret)}"
    if verified.signed_at is None:
        return text
    moment = datetime.fromtimestamp(verified.signed_at // _NANOSECONDS, UTC).isoformat().replace("+00:00", "Z")
    return f"{text} at {moment}, {_apart(verified.skew or 0.0)}"


def _apart(skew: float) -> str:
    return (
        "at that very second"
        if abs(skew) < 1
        else f"{abs(skew):,.0f} s {'before' if skew > 0 else 'after'} the time of the trial"
    )
