"""
Problems: what a call of the API can't do, as RFC 9457 has it, with a stable code and what is wrong where.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from webhookrx.diagnostics import Diagnostic
from webhookrx.errors import WebhookrxError

PROBLEM_TYPE: Final = "application/problem+json"


class ProblemKind(NamedTuple):
    """
    A kind of problem.

    @ivar code: stable, such as C{not_found}.
    @ivar title: one sentence for people, the same for all problems of the kind.
    """

    code: str
    status: int
    title: str


BAD_CALL: Final = ProblemKind("bad_call", 400, "The request is not one that this API takes.")
NOT_SIGNED_IN: Final = ProblemKind("not_signed_in", 401, "Sign in, or send a token.")
FORBIDDEN: Final = ProblemKind("forbidden", 403, "You may not do this.")
CROSS_SITE: Final = ProblemKind("cross_site", 403, "The request does not come from a page of this console.")
NOT_FOUND: Final = ProblemKind("not_found", 404, "There is no such thing.")
BAD_METHOD: Final = ProblemKind("bad_method", 405, "This path does not take this method.")
CONFLICT: Final = ProblemKind("conflict", 409, "What is there now does not allow this.")
RELOAD_GATE_CLOSED: Final = ProblemKind(
    "reload_gate_closed", 409, "Files are missing on all of the routers; until they are there, nothing can start."
)
NOTHING_TO_TAP: Final = ProblemKind("nothing_to_tap", 409, "No router takes part in this tap.")
LENGTH_MISSING: Final = ProblemKind("length_missing", 411, "The length of the body is to be told before it.")
STALE: Final = ProblemKind("stale", 412, "It has changed since you read it.")
CALL_TOO_LARGE: Final = ProblemKind("call_too_large", 413, "The body is larger than this call takes.")
BAD_MEDIA_TYPE: Final = ProblemKind("bad_media_type", 415, "This call does not take a body of this type.")
MISDIRECTED: Final = ProblemKind("misdirected", 421, "This console has another address.")
INVALID: Final = ProblemKind("invalid", 422, "What you sent is wrong.")
TOO_MANY_ROUTERS: Final = ProblemKind("too_many_routers", 422, "The query matches more routers than one tap takes.")
IF_MATCH_MISSING: Final = ProblemKind("if_match_missing", 428, "Say with If-Match what you have read.")
TOO_MANY: Final = ProblemKind("too_many", 429, "Too many; try later.")
FAILED_CALL: Final = ProblemKind("failed", 500, "The console failed on this request; its log says where.")
BAD_PROVIDER: Final = ProblemKind("bad_provider", 502, "The provider of single sign-on has not answered as it should.")
BUSY: Final = ProblemKind("busy", 503, "The console has too much to do; try later.")
DISK_FULL: Final = ProblemKind("disk_full", 507, "The console's disk is full; nothing was changed.")

KINDS: Final = (
    BAD_CALL,
    NOT_SIGNED_IN,
    FORBIDDEN,
    CROSS_SITE,
    NOT_FOUND,
    BAD_METHOD,
    CONFLICT,
    RELOAD_GATE_CLOSED,
    NOTHING_TO_TAP,
    LENGTH_MISSING,
    STALE,
    CALL_TOO_LARGE,
    BAD_MEDIA_TYPE,
    MISDIRECTED,
    INVALID,
    TOO_MANY_ROUTERS,
    IF_MATCH_MISSING,
    TOO_MANY,
    FAILED_CALL,
    BAD_PROVIDER,
    BUSY,
    DISK_FULL,
)


class ApiFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    One thing that is wrong, as C{webhookrx rules check} says it.

    @ivar code: of L{webhookrx.diagnostics}.
    @ivar path: keys and indices from the whole document down.
    @ivar line: from 1; 0 when unknown, as C{column}.
    """

    code: str
    severity: str
    sentence: str
    path: tuple[str | int, ...] = ()
    line: int = 0
    column: int = 0


class ApiProblem(WebhookrxError):
    """
    A call can't be done.

    @param detail: a sentence about this one. It holds no secret.
    @param findings: what is wrong.
    @param members: further members of the answer, each of which JSON can hold, such as C{current}.
    @param headers: further headers of the answer, such as C{Retry-After}.
    """

    def __init__(
        self,
        kind: ProblemKind,
        detail: str = "",
        findings: Iterable[ApiFinding] = (),
        *,
        members: Mapping[str, object] | None = None,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        super().__init__(kind.code)
        self.kind = kind
        self.detail = detail
        self.findings = tuple(findings)
        self.members = dict(members or {})
        self.headers = tuple(headers)

    def document(self) -> dict[str, object]:
        """Return it as RFC 9457 section 3 has it. Its type is C{about:blank}: C{code} tells problems apart."""
        kind = self.kind
        document: dict[str, object] = {**self.members, "title": kind.title, "status": kind.status, "code": kind.code}
        if self.detail:
            document["detail"] = self.detail
        if self.findings:
            document["findings"] = self.findings
        return document


def too_many(detail: str, seconds: int) -> ApiProblem:
    """Return the problem of a caller who may come again after so many seconds."""
    return ApiProblem(TOO_MANY, detail, headers=(("Retry-After", str(seconds)),))


def findings_of(diagnostics: Iterable[Diagnostic]) -> tuple[ApiFinding, ...]:
    """Return diagnostics as an answer has them."""
    return tuple(ApiFinding(d.code, d.severity, d.sentence, d.path, d.line, d.column) for d in diagnostics)
