"""
Routers and enrolments in the store: what is read at the start, and each change as one transaction.
"""

from __future__ import annotations

import hmac
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from webhookrx.console.routers.authority import Authority, RouterCertificate
from webhookrx.console.routers.bundle_plan import Planned
from webhookrx.console.routers.registry import EnrolledRouter, RouterState
from webhookrx.console.store.audit import CERTIFICATE, note
from webhookrx.console.store.history import Author, Change, Kind, StoreTransaction, newest_revision
from webhookrx.errors import WebhookrxError
from webhookrx.management.agent_protocol import AppliedState, GateState, RouterFacts
from webhookrx.management.enrolment_token import REFUSAL, EnrolmentToken

MOST_ENROLMENTS: Final = 1_000
"""Enrolments that can be used."""

_MOST_USED: Final = 10_000
"""Enrolments that are used up, and kept until their end."""

ADOPTION: Final[tuple[Kind, str]] = ("setting", "revision")
"""Of which kind, and of what, the change is in the history that adopts routers."""

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class EnrolmentRefused(WebhookrxError):
    """
    An enrolment can't be done.

    @ivar code: the code of the problem.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Enrolment(msgspec.Struct, frozen=True):
    """
    What a token lets a router do. The token itself is nowhere.

    @ivar approve: C{auto}, or C{manual}: a person consents.
    @ivar expires_at: seconds since the epoch.
    @ivar labels: what the router gets from the console.
    """

    id: str
    approve: Literal["auto", "manual"]
    uses_left: int
    expires_at: float
    labels: dict[str, str]
    made_by: str
    made_at: float


class HandedOut(NamedTuple):
    """The bundle that a router has last been given: see the columns C{bundle_…}."""

    revision: int
    made_at: int
    content: str


def read_routers(db: sqlite3.Connection) -> tuple[list[EnrolledRouter], dict[str, HandedOut]]:
    """Return all routers, and by guid what each has last been given."""
    routers: dict[str, EnrolledRouter] = {}
    handed: dict[str, HandedOut] = {}
    rows = db.execute(
        "SELECT guid, name, state, labels, facts, enrolled_at, coalesce(seen_at, 0), applied_revision, applied_hash,"
        " status, error, gate, bundle_revision, bundle_made_at, bundle_content FROM router"
    )
    for guid, name, state, labels, facts, enrolled, seen, revision, digest, status, error, gate, *bundle in rows:
        routers[guid] = EnrolledRouter(
            guid=guid,
            name=name,
            state=state,
            labels=msgspec.json.decode(labels),
            enrolled_at=enrolled,
            facts=msgspec.json.decode(facts, type=RouterFacts),
            applied=AppliedState(
                status=status or "NONE", revision=revision, digest=digest, newest=revision, error=error
            ),
            gate=msgspec.json.decode(gate, type=GateState),
            seen_at=seen,
        )
        handed[guid] = HandedOut(*bundle)
    for fingerprint, guid, ends in db.execute("SELECT fingerprint, guid, ends_at FROM certificate"):
        routers[guid].certificates[fingerprint] = ends
    return list(routers.values()), handed


def read_revisions(db: sqlite3.Connection) -> tuple[int, int]:
    """Return the newest revision, and the one up to which routers have been adopted; 0 for none."""
    (adopted,) = db.execute(
        "SELECT coalesce(max(revision), 0) FROM change WHERE kind = ? AND name = ?", ADOPTION
    ).fetchone()
    return newest_revision(db), int(adopted)


def read_enrolments(db: sqlite3.Connection, now: float) -> list[Enrolment]:
    """Return the enrolments that can be used, the newest first."""
    rows = db.execute(
        "SELECT id, approve, uses_left, expires_at, labels, made_by, made_at FROM enrolment"
        " WHERE uses_left > 0 AND expires_at > ? ORDER BY made_at DESC",
        (now,),
    )
    return [
        Enrolment(id, approve, uses, expires, msgspec.json.decode(labels), by, at)
        for id, approve, uses, expires, labels, by, at in rows
    ]


def add_enrolment(transaction: StoreTransaction, author: Author, enrolment: Enrolment, token: EnrolmentToken) -> None:
    """
    Keep a new enrolment; old ones that can't be used any more go. One that was used up stays until its end: the router
    may ask again, see L{enrol_again}.

    @raise EnrolmentRefused: there are too many.
    """
    transaction.execute(
        "DELETE FROM enrolment WHERE expires_at <= ? OR (uses_left = 0 AND id NOT IN"
        " (SELECT id FROM enrolment WHERE uses_left = 0 ORDER BY made_at DESC LIMIT ?))",
        (transaction.now, _MOST_USED),
    )
    (count,) = transaction.execute("SELECT count(*) FROM enrolment WHERE uses_left > 0").fetchone()
    if count >= MOST_ENROLMENTS:
        raise EnrolmentRefused("too_many", f"There are {MOST_ENROLMENTS:,} enrolments that can be used; delete some.")
    transaction.execute(
        "INSERT INTO enrolment (id, secret_hash, approve, uses_left, expires_at, labels, made_by, made_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            enrolment.id,
            bytes.fromhex(token.secret_digest),
            enrolment.approve,
            enrolment.uses_left,
            enrolment.expires_at,
            _text(enrolment.labels),
            enrolment.made_by,
            enrolment.made_at,
        ),
    )
    transaction.revise(author, [Change("enrolment", enrolment.id, "create", after=enrolment)])


def delete_enrolment(transaction: StoreTransaction, author: Author, id: str) -> bool:
    """Delete an enrolment; return False if there is none."""
    gone: bool = transaction.execute("DELETE FROM enrolment WHERE id = ?", (id,)).rowcount > 0
    if gone:
        transaction.revise(author, [Change("enrolment", id, "delete", before={"id": id})])
    return gone


def enrol(
    transaction: StoreTransaction,
    token: EnrolmentToken,
    router: EnrolledRouter,
    authority: Authority,
    request: str,
    now: Any,
) -> RouterCertificate:
    """
    Use a token for a new router, whose state and labels are set here.

    @param request: its certificate request.
    @param now: the time, with its zone.
    @raise EnrolmentRefused: the token does not count, for whatever reason.
    @raise webhookrx.console.routers.authority.BadCertificateRequest: then the token is not used.
    """
    approve, uses_left, labels = _token_row(transaction, token)
    if uses_left < 1:
        raise EnrolmentRefused(REFUSAL, "The enrolment token is wrong, used or expired.")
    transaction.execute("UPDATE enrolment SET uses_left = uses_left - 1 WHERE id = ?", (token.id,))
    taken = transaction.execute("SELECT 1 FROM router WHERE name = ? AND state != 'pending'", (router.name,)).fetchone()
    router.state = "approved" if approve == "auto" and taken is None else "pending"
    router.labels = msgspec.json.decode(labels, type=dict[str, str])
    certificate = authority.issue(request, router.guid, now)
    router.certificates[certificate.fingerprint] = certificate.ends
    transaction.execute(
        "INSERT INTO router (guid, name, state, labels, facts, enrolled_at, enrolment) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            router.guid,
            router.name,
            router.state,
            _text(router.labels),
            _text(router.facts),
            router.enrolled_at,
            token.id,
        ),
    )
    add_certificate(transaction, router.guid, certificate)
    author = Author(f"enrolment {token.id}", "api")
    transaction.revise(author, [Change("router", router.name, "create", after=shown(router))])
    return certificate


def enrol_again(
    transaction: StoreTransaction,
    token: EnrolmentToken,
    router: EnrolledRouter,
    authority: Authority,
    request: str,
    now: Any,
) -> RouterCertificate:
    """
    Certify the key of a router again, which has not had the answer to its enrolment. No certificate before counts.

    @param router: the one of this key and token.
    @raise EnrolmentRefused: the token does not count any more, but for its uses; or the router is disabled, or has
        been in touch with the certificate that it has.
    """
    _token_row(transaction, token)
    if router.state == "disabled" or router.seen_at > router.enrolled_at:
        raise EnrolmentRefused(REFUSAL, "The enrolment token is wrong, used or expired.")
    certificate = authority.issue(request, router.guid, now)
    add_certificate(transaction, router.guid, certificate, tuple(router.certificates))
    return certificate


def _token_row(transaction: StoreTransaction, token: EnrolmentToken) -> tuple[str, int, str]:
    """Return how a token approves, how many uses it has left, and its labels."""
    row = transaction.execute(
        "SELECT secret_hash, approve, uses_left, expires_at, labels FROM enrolment WHERE id = ?", (token.id,)
    ).fetchone()
    kept = bytes(32) if row is None else row[0]
    proved = hmac.compare_digest(kept, bytes.fromhex(token.secret_digest))
    if row is None or not proved or row[3] <= transaction.now:
        raise EnrolmentRefused(REFUSAL, "The enrolment token is wrong, used or expired.")
    return row[1], row[2], row[4]


def add_certificate(
    transaction: StoreTransaction, guid: str, certificate: RouterCertificate, replaced: Iterable[str] = ()
) -> None:
    """
    Let a new certificate of a router count.

    @param replaced: fingerprints that count no more.
    """
    drop_certificates(transaction, replaced)
    transaction.execute(
        "INSERT INTO certificate (fingerprint, guid, issued_at, ends_at) VALUES (?, ?, ?, ?)",
        (certificate.fingerprint, guid, transaction.now, certificate.ends),
    )
    details = {"fingerprint": certificate.fingerprint, "ends_at": certificate.ends}
    note(transaction, f"router {guid}", "agent", "", CERTIFICATE, guid, details)


def drop_certificates(transaction: StoreTransaction, fingerprints: Iterable[str]) -> None:
    """Let certificates count no more."""
    transaction.db.executemany("DELETE FROM certificate WHERE fingerprint = ?", [(each,) for each in fingerprints])


def change_router(
    transaction: StoreTransaction,
    author: Author,
    router: EnrolledRouter,
    name: str,
    state: RouterState,
    labels: Mapping[str, str],
) -> int:
    """
    Change what the console says of a router, and return the revision.

    @raise EnrolmentRefused: another router has the name.
    """
    before = shown(router)
    try:
        transaction.execute(
            "UPDATE router SET name = ?, state = ?, labels = ? WHERE guid = ?",
            (name, state, _text(labels), router.guid),
        )
    except sqlite3.IntegrityError:
        raise EnrolmentRefused("name_taken", "Another router has this name; give it another one.") from None
    after = {**before, "name": name, "state": state, "labels": dict(labels)}
    return transaction.revise(author, [Change("router", name, "update", before, after)])


def delete_router(transaction: StoreTransaction, author: Author, router: EnrolledRouter) -> int:
    """Forget a router and its certificates, and return the revision."""
    transaction.execute("DELETE FROM certificate WHERE guid = ?", (router.guid,))
    transaction.execute("DELETE FROM router WHERE guid = ?", (router.guid,))
    return transaction.revise(author, [Change("router", router.name, "delete", before=shown(router))])


def keep_told(transaction: StoreTransaction, rows: Iterable[tuple[Any, ...]]) -> None:
    """Keep what routers have told, as L{told_row} makes it."""
    transaction.db.executemany(
        "UPDATE router SET facts = ?, seen_at = ?, applied_revision = ?, applied_hash = ?, status = ?, error = ?,"
        " gate = ? WHERE guid = ?",
        rows,
    )


def told_row(router: EnrolledRouter, highest: int) -> tuple[Any, ...]:
    """
    Return what a router has told, for L{keep_told}.

    The highest revision that it has had is kept as what it has applied: C{webhookrx console adopt} goes above it.

    @param highest: that of the console at most; a router that claims to have had a higher one is not believed.
    """
    applied = router.applied
    return (
        _text(router.facts),
        router.seen_at,
        applied.newest if applied.newest <= highest else 0,
        applied.digest,
        applied.status,
        applied.error,
        _text(router.gate),
        router.guid,
    )


def hand_out(transaction: StoreTransaction, changed: Iterable[tuple[Planned, int]]) -> tuple[dict[str, HandedOut], int]:
    """
    Note new bundles before any of them is given away. If a router has had this revision already, another is made: no
    two bundles of a router have one revision.

    @param changed: each with the highest revision that its router has had.
    @return: what they are given, by guid, and the newest revision.
    """
    planned = list(changed)
    revision = newest_revision(transaction.db)
    made_at = int(transaction.now * 1e9)
    if any(highest >= revision for _, highest in planned):
        names = [each.name for each, highest in planned if highest >= revision]
        change = Change("router", names[0], "update", after={"bundle": "made anew", "routers": len(names)})
        revision = transaction.revise(Author("console", "console"), [change], "Routers have other fields or labels.")
    handed = {each.guid: HandedOut(revision, made_at, each.content) for each, _ in planned}
    transaction.db.executemany(
        "UPDATE router SET bundle_revision = ?, bundle_made_at = ?, bundle_content = ? WHERE guid = ?",
        [(*handed[guid], guid) for guid in handed],
    )
    return handed, revision


def shown(router: EnrolledRouter) -> dict[str, Any]:
    """Return a router as the history has it."""
    return {"guid": router.guid, "name": router.name, "state": router.state, "labels": dict(router.labels)}


def _text(value: object) -> str:
    return _encode(value).decode()
