"""
The decision on a request, in two steps: L{admit} when its head is there, L{judge} when its body is.

Plain functions on plain values: no Twisted, no clock, no file.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final, TypeAlias, final

import msgspec

from webhookrx.errors import BAD_PAYLOAD, BAD_TOKEN, METHOD_NOT_ALLOWED, Reason, RequestRefused
from webhookrx.intake.client_address import from_proxy_header
from webhookrx.intake.encodings import check_encoding, unpack
from webhookrx.intake.head import Head
from webhookrx.intake.header_masking import recorded_headers
from webhookrx.intake.json_body import PayloadError, body_text
from webhookrx.intake.pairs import NOTHING, LeftOut, flatten, name_budget, set_pairs
from webhookrx.intake.path_patterns import decode_groups
from webhookrx.intake.provenance import Provenance, set_client, set_provenance
from webhookrx.intake.reply import Reply
from webhookrx.intake.tokens import TokenCheck
from webhookrx.intake.urlencoded import form_members, remembered_query, says_form
from webhookrx.message.macros import isodate
from webhookrx.message.message import Message, Value
from webhookrx.yield_point import PIECE, yield_point

#: In the place of a text that is not kept, until it is known whether the pairs set it.
_NO_TEXT: Final = object()

#: Shared by all admissions without them.
_NO_QUERY: Final[dict[str, str | list[str]]] = {}
_NO_ENCODINGS: Final[list[bytes]] = []

#: Bytes that are encoded at once; what comes of three bytes depends on no other.
_BASE64_PIECE = PIECE - PIECE % 3


class SourceRules:
    """
    How one source decides: its options, made ready once.

    @param auth_tokens: all that are accepted; empty: no token is required.
    @param proxy_header: lower-case name of the one trusted header.
    @param keep_unparsed: whether a body that is not JSON still becomes a message.
    @param keep_text: whether the text of a body that became pairs stays in the message.
    @param body_limit: bytes of a body when unpacked.
    @param unpack_ratio: see L{webhookrx.intake.encodings.unpack}.
    @param masked_headers: more headers that messages never show, see L{recorded_headers}.
    """

    def __init__(
        self,
        name: str,
        *,
        parse_json: bool,
        prefix: str = "",
        auth_tokens: tuple[bytes, ...] = (),
        include_request_headers: bool = False,
        proxy_header: str | None = None,
        keep_unparsed: bool = True,
        keep_text: bool = True,
        body_limit: int,
        unpack_ratio: int,
        masked_headers: frozenset[str] = frozenset(),
    ) -> None:
        self.name = name
        self.tags = f".source.{name}"
        self.parse_json = parse_json
        self.prefix = prefix
        self.tokens = TokenCheck(auth_tokens)
        self.asks_token = bool(auth_tokens)
        self.include_request_headers = include_request_headers
        self.proxy_header = None if proxy_header is None else proxy_header.encode("ascii")
        self.keep_unparsed = keep_unparsed
        self.keep_text = keep_text
        self.body_limit = body_limit
        self.unpack_ratio = unpack_ratio
        self.masked_headers = masked_headers


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """
    What the receiver adds to a message.

    @ivar received: nanoseconds since the epoch, wall clock.
    @ivar id: unique among all messages.
    """

    received: int
    id: str


@final
class Admission(msgspec.Struct, frozen=True, gc=False):
    """
    A head that passed.

    @ivar groups: text of the path groups that took part.
    @ivar query: name to text, or to a list when it is repeated.
    @ivar encodings: values of C{Content-Encoding}, known to be what can be unpacked.
    @ivar provenance: what is known of the sender; None for a source that finds out nothing.
    """

    rules: SourceRules
    groups: dict[str, str]
    query: dict[str, str | list[str]]
    encodings: list[bytes]
    provenance: Provenance | None = None


@final
class Refused(msgspec.Struct, frozen=True):
    """
    A request that does not become a message.

    @ivar source: name of the source that refuses it; empty when no path pattern has matched.
    @ivar allow: the methods that its path takes, for C{method_not_allowed}; empty: POST alone.
    @ivar retry_after: seconds until it may come again; 0 when nothing is known of that.
    @ivar reply: what is said in place of our own words; its status is that of the reason.
    """

    reason: Reason
    detail: str
    source: str = ""
    allow: str = ""
    retry_after: int = 0
    reply: Reply | None = None


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """
    A request that became a message.

    @ivar notes: words for what is worth counting: C{bad_proxy_header}, C{unparsed_payload}.
    @ivar left_out: how many names of the payload were the receiver's own.
    @ivar events: what the steps of a connector have counted: a word and a label each.
    @ivar problem: how a step has failed, in one sentence without a word of the sender's; empty if none has.
    """

    message: Message
    notes: tuple[str, ...] = ()
    left_out: int = 0
    events: tuple[tuple[str, str], ...] = ()
    problem: str = ""


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """A request to a connector whose message a step has dropped; see L{Accepted}."""

    events: tuple[tuple[str, str], ...]
    problem: str


def admit(head: Head, rules: SourceRules, raw_groups: dict[str, bytes]) -> Admission | Refused:
    """
    Decide on a head whose path has matched: method, token, encodings, groups, query, in this order.

    @param raw_groups: captured text, still percent-encoded.
    """
    return admit_by_path(head, rules, admission_of_path(rules, raw_groups))


def admission_of_path(rules: SourceRules, raw_groups: dict[str, bytes]) -> Admission | Refused:
    """Return what becomes of heads that have nothing but their path to decide on. It may be shared by all of them."""
    try:
        groups = decode_groups(raw_groups)
    except RequestRefused as refused:
        return Refused(refused.reason, refused.detail, rules.name)
    return Admission(rules, groups, _NO_QUERY, _NO_ENCODINGS)


def admit_by_path(head: Head, rules: SourceRules, by_path: Admission | Refused) -> Admission | Refused:
    """
    See L{admit}.

    @param by_path: see L{admission_of_path}; it is returned itself if the head has no query and no encodings.
    """
    if head.method != b"POST":
        return Refused(METHOD_NOT_ALLOWED, METHOD_NOT_ALLOWED.detail, rules.name)
    if rules.asks_token and not rules.tokens.accepts(head.values(b"authorization")):
        return Refused(BAD_TOKEN, BAD_TOKEN.detail, rules.name)
    # Most heads have none of what is collected; they are spared the call.
    encodings = head.values(b"content-encoding") if head.prefetched is None or head.prefetched else _NO_ENCODINGS
    if not encodings and not head.query:
        return by_path
    try:
        if encodings:
            check_encoding(encodings)
        if type(by_path) is Refused:
            return by_path
        query = remembered_query(head.query) if head.query else by_path.query
    except RequestRefused as refused:
        return Refused(refused.reason, refused.detail, rules.name)
    return Admission(rules, by_path.groups, query, encodings)


def unpacked(admission: Admission, body: bytes) -> bytes | Refused:
    """
    Undo the encoding of a body.

    @param body: as it came by the wire, all of it.
    """
    if not admission.encodings:
        return body
    rules = admission.rules
    try:
        return unpack(body, admission.encodings, rules.body_limit, rules.unpack_ratio)
    except RequestRefused as refused:
        return Refused(refused.reason, refused.detail, rules.name)


#: The second step. Steps of a connector may drop a message.
Judge: TypeAlias = Callable[[Head, Admission, bytes, Receipt], Accepted | Dropped | Refused]


def judge(head: Head, admission: Admission, body: bytes, receipt: Receipt) -> Accepted | Refused:
    """
    Make a message of an admitted request.

    Values are set in this order and a later one wins: payload, query, path groups, headers, what the receiver saw.

    @param body: as L{unpacked} returned it.
    """
    rules = admission.rules
    text, exact = body_text(body)
    notes: tuple[str, ...] = ()
    left_out = NOTHING
    if not rules.parse_json:
        values = _first_values(text, rules, receipt)
    else:
        try:
            values, left_out = _parsed(head, body, text, rules, receipt)
        except PayloadError as error:
            if not rules.keep_unparsed:
                return Refused(BAD_PAYLOAD, f"{BAD_PAYLOAD.detail} {error}", rules.name)
            values = _first_values(text, rules, receipt)
            values["webhook.parse_error"] = str(error)
            notes = ("unparsed_payload",)
    if not exact:
        values["webhook.body_base64"] = base64_text(body)
    ip, seen_notes = set_seen(values, head, admission, admission.provenance)
    host = values["HOST"]
    if host is None or host == "":
        values["HOST"] = ip
    values["RAWMSG_SIZE"] = len(body)
    values["TAGS"] = rules.tags
    values["RCPTID"] = receipt.id
    return Accepted(Message(values, receipt.received), notes + seen_notes if seen_notes else notes, len(left_out))


def set_seen(
    values: dict[str, Value], head: Head, admission: Admission, provenance: Provenance | None
) -> tuple[str, tuple[str, ...]]:
    """
    Set what comes after a payload: who sent it, query, path groups, headers, addresses.

    @return: the address that the request comes from, and notes; see L{Accepted}.
    """
    rules = admission.rules
    # First, so that it is in front of all that is the same for many requests.
    if provenance is not None:
        set_provenance(values, provenance)
    if admission.query:
        for name, value in admission.query.items():
            values["webhook.query." + name] = value  # type: ignore[assignment]  # dict is invariant
    if admission.groups:
        values.update(admission.groups)
    if rules.include_request_headers:
        values["webhook.headers"] = recorded_headers(head.headers, rules.masked_headers)
    notes: tuple[str, ...] = ()
    peer = head.peer
    ip, port = peer.ip, peer.port
    if rules.proxy_header is not None:
        values["PEERIP"] = ip
        if port is not None:
            values["PEERPORT"] = port
        if given := head.values(rules.proxy_header):
            claimed = from_proxy_header(given)
            if claimed is None:
                notes = ("bad_proxy_header",)
            else:
                ip, port = claimed
    values["SOURCEIP"] = ip
    if port is not None:
        values["SOURCEPORT"] = port
    values["TRANSPORT"] = "https" if peer.secure else "http"
    if peer.client is not None:
        set_client(values, peer.client)
    return ip, notes


def source_ip(head: Head, rules: SourceRules) -> str:
    """Return the address that C{SOURCEIP} shows of a request."""
    if rules.proxy_header is not None:
        claimed = from_proxy_header(head.values(rules.proxy_header))
        if claimed is not None:
            return claimed.ip
    return head.peer.ip


def _parsed(
    head: Head, body: bytes, text: str, rules: SourceRules, receipt: Receipt
) -> tuple[dict[str, Value], LeftOut]:
    """
    Return the first values of a message with the pairs of its body among them, and what was left out.

    @raise PayloadError: it has none.
    """
    raw: Any = text if rules.keep_text else _NO_TEXT
    values = _first_values(raw, rules, receipt)
    try:
        left_out = set_pairs(body, rules.prefix, values)
    except PayloadError:
        members = form_members(body) if says_form(head) else None
        if members is None:
            raise
        values = _first_values(raw, rules, receipt)
        left_out = flatten(members, rules.prefix, values, name_budget(body))
    if values["MESSAGE"] is _NO_TEXT:
        del values["MESSAGE"]
    if left_out and not rules.keep_text:
        values["webhook.left_out"] = dict(left_out)
    return values, left_out


def base64_text(body: bytes) -> str:
    """Return a body in Base64 (RFC 4648 section 4), with a yield point after each piece."""
    if len(body) <= _BASE64_PIECE:
        return b64encode(body).decode("ascii")
    encoded = io.BytesIO()
    for start in range(0, len(body), _BASE64_PIECE):
        encoded.write(b64encode(body[start : start + _BASE64_PIECE]))
        yield_point()
    return encoded.getvalue().decode("ascii")


def _first_values(text: str, rules: SourceRules, receipt: Receipt) -> dict[str, Value]:
    """Return what a payload may replace, and C{ISODATE}, so that it comes first in a line."""
    return {"ISODATE": isodate(receipt.received), "HOST": None, "MESSAGE": text, "SOURCE": rules.name}
