"""
The protocol between a router and its console: each request and answer as a type, with bounds on everything.

The router asks, by HTTPS with its client certificate, and the console answers; nothing listens on the router. All
bodies are JSON. Whoever reads one passes it to L{webhookrx.management.agent_body.read_body}, which refuses what is
outside the bounds.

    - C{POST /agent/v1/enrol}: L{EnrolRequest}, answered with L{EnrolAnswer}; the only one without a certificate
    - C{POST /agent/v1/renew}: L{RenewRequest}, answered with L{IssuedCertificate}
    - C{GET /agent/v1/sync?have=DIGEST&wait=SECONDS}: answered with L{SyncAnswer}, or 204 when nothing is new
    - C{POST /agent/v1/report}: L{RouterReport}, answered with 204, or 409 C{send_all}
    - C{POST /agent/v1/taps/ID}: see L{webhookrx.management.tap_protocol}; answered with 204, or 404 when it is to end

A refusal is a problem of RFC 9457, of which a router reads L{AgentProblem}.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta, Raw

from webhookrx.management.agent_body import AgentBody, BaseCommand, Count, MessageId, Sentence, ShortName
from webhookrx.management.bundle import MOST_BYTES, MOST_KEYS
from webhookrx.management.tap_protocol import TapCommand, UntapCommand

ENROL: Final = b"/agent/v1/enrol"
RENEW: Final = b"/agent/v1/renew"
SYNC: Final = b"/agent/v1/sync"
REPORT: Final = b"/agent/v1/report"

LONGEST_WAIT: Final = 55
"""Seconds for which a console may hold a sync."""

REPORT_INTERVAL: Final = 15
"""Seconds between two reports; one after an apply comes at once."""

MOST_CONNECTORS: Final = 5_000
"""Connectors, and series of counts, in a report."""

MOST_SPOOLS: Final = 64
"""Spools in a report."""

MOST_SENDERS: Final = 200
"""Senders in a report, those of all connectors together."""

LONGEST_SPEC: Final = 1_024
"""Characters of the spec of an observer."""

MOST_COMMANDS: Final = 64
"""Commands in one answer, and answers to commands in one report. A console keeps others for the next answer."""

MOST_FILES: Final = 256
"""Files that one command may ask about."""

MOST_REPORT_BYTES: Final = 8 * 1024 * 1024
MOST_SYNC_BYTES: Final = MOST_BYTES + 1024 * 1024

# Codes of problems: the router waits for a person's consent, and goes on asking; its certificate is not known, or it is
# disabled; the console does not have the report that this one builds upon.
ENROL_PENDING: Final = "pending"
DISABLED: Final = "disabled"
SEND_ALL: Final = "send_all"

BUCKETS: Final = 16
"""Of the histogram of times to an answer, see L{webhookrx.store_counts.Histogram}."""

_Moment: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
_Digest: TypeAlias = Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?\Z")]
_Guid: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")]
_Word: TypeAlias = Annotated[str, Meta(max_length=64)]
_Path: TypeAlias = Annotated[str, Meta(max_length=4_096)]
_PEM: TypeAlias = Annotated[str, Meta(max_length=8_192)]
_Labels: TypeAlias = Annotated[
    dict[Annotated[str, Meta(max_length=128)], Annotated[str, Meta(max_length=1_024)]], Meta(max_length=64)
]

ApplyStatus: TypeAlias = Literal["NONE", "APPLYING", "APPLIED", "FAILED", "BLOCKED"]
"""What became of the newest bundle: there is none yet, or it is being applied, is in use, was refused, or waits for a
key, certificate or JSON file."""

FileState: TypeAlias = Literal[
    "present", "missing", "unreadable", "not_pem", "does_not_fit", "chain_order", "expired", "not_allowed"
]
"""Of a file that was asked for; C{not_allowed}: it is outside the key directories, so nobody has looked at it."""


class RouterFacts(AgentBody, frozen=True):
    """
    What a router tells of its machine. The console's selectors see it, but for the last four.

    @ivar form: C{router} takes bundles; C{source} only reports, and is tapped.
    @ivar endpoints: addresses that sources of its own configuration take, as endpoint strings.
    @ivar labels: those of C{--router-label}; labels of the console win.
    @ivar admin: host and port at which other machines reach its admin endpoint; empty if they can't.
    """

    hostname: ShortName = ""
    fqdn: ShortName = ""
    ip: Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(max_length=64)] = ()
    os: _Word = ""
    arch: _Word = ""
    version: _Word = ""
    form: Literal["router", "source"] = "router"
    endpoints: Annotated[tuple[Annotated[str, Meta(max_length=1_024)], ...], Meta(max_length=256)] = ()
    labels: _Labels = {}
    admin: Annotated[str, Meta(max_length=260)] = ""


class EnrolRequest(AgentBody, frozen=True):
    """
    @ivar token: see L{webhookrx.management.enrolment_token}.
    @ivar csr: a PKCS #10 request, PEM; the console takes its public key and nothing else.
    @ivar name: what the router would like to be called.
    """

    token: Annotated[str, Meta(max_length=256)]
    csr: _PEM
    name: Annotated[str, Meta(min_length=1, max_length=253)]
    facts: RouterFacts

    def __repr__(self) -> str:
        return f"<EnrolRequest of {self.name!r}>"


class IssuedCertificate(AgentBody, frozen=True):
    """
    @ivar certificate: the router's, PEM.
    @ivar authorities: the CA certificates to trust for the console from now on, PEM.
    """

    certificate: _PEM
    authorities: Annotated[tuple[_PEM, ...], Meta(min_length=1, max_length=MOST_KEYS)]


class EnrolAnswer(IssuedCertificate, frozen=True):
    """
    @ivar guid: who the router is from now on.
    @ivar name: what it is called. With C{pending}, one that is taken already is another router's, and a person decides.
    @ivar signing_keys: the public keys of the console, see L{webhookrx.management.bundle.public_text}.
    """

    guid: _Guid
    name: Annotated[str, Meta(min_length=1, max_length=253)]
    state: Literal["pending", "approved"]
    signing_keys: Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(min_length=1, max_length=MOST_KEYS)]


class RenewRequest(AgentBody, frozen=True):
    """C{csr} is as in L{EnrolRequest}, of a new key."""

    csr: _PEM


class CheckFilesCommand(BaseCommand, frozen=True, tag="check_files"):
    """
    Tell the state of files, of those below the key directories alone.

    @ivar paths: absolute paths.
    @ivar key: of a pair, the key that the first of C{paths} has to fit; empty for none.
    """

    paths: Annotated[tuple[_Path, ...], Meta(min_length=1, max_length=MOST_FILES)]
    key: _Path = ""


class ReloadCommand(BaseCommand, frozen=True, tag="reload"):
    """Read configuration, keys and certificates again, as at SIGHUP."""


class RenewCommand(BaseCommand, frozen=True, tag="renew"):
    """Get a new certificate now, such as for a new CA."""


AgentCommand: TypeAlias = TapCommand | UntapCommand | CheckFilesCommand | ReloadCommand | RenewCommand


class SyncAnswer(AgentBody, frozen=True, omit_defaults=True):
    """
    @ivar bundle: the envelope, byte for byte as the console has signed it; empty when the router has it.
    """

    most_bytes: ClassVar[int] = MOST_SYNC_BYTES

    bundle: Raw = Raw(b"")
    commands: Annotated[tuple[AgentCommand, ...], Meta(max_length=MOST_COMMANDS)] = ()


class CommandAnswer(AgentBody, frozen=True, omit_defaults=True):
    """
    What became of a command.

    @ivar problem: why it was not done; empty when it was.
    @ivar code: of the problem, such as C{reload_gate_closed}.
    @ivar paths: files that the problem is about.
    @ivar files: the states that were asked for, by path.
    """

    id: MessageId
    problem: Sentence = ""
    code: _Word = ""
    paths: Annotated[tuple[_Path, ...], Meta(max_length=MOST_FILES)] = ()
    files: Annotated[dict[_Path, FileState], Meta(max_length=MOST_FILES)] = {}


class AppliedState(AgentBody, frozen=True):
    """
    @ivar status: of the newest bundle that was received.
    @ivar revision: of the bundle in use; 0 without one. C{digest} is the name of its envelope.
    @ivar newest: the highest revision that was ever accepted.
    @ivar error: why the newest bundle is not in use.
    """

    status: ApplyStatus = "NONE"
    revision: Count = 0
    digest: _Digest = ""
    newest: Count = 0
    error: Sentence = ""


class GateState(AgentBody, frozen=True):
    """
    The reload gate.

    @ivar reasons: why it is closed; empty when it is open.
    @ivar paths: the files that are missing or can't be used.
    """

    reasons: Annotated[tuple[Sentence, ...], Meta(max_length=MOST_FILES)] = ()
    paths: Annotated[tuple[_Path, ...], Meta(max_length=MOST_FILES)] = ()


class ConnectorState(AgentBody, frozen=True, gc=False):
    """
    @ivar state: C{closed} with a C{reason} when it has no port open.
    @ivar certificate_end: when the certificate ends, nanoseconds since the epoch; 0 without one.
    """

    name: ShortName
    rule: ShortName
    port: Annotated[int, Meta(ge=0, le=65_535)]
    state: Literal["open", "closed"] = "open"
    reason: Sentence = ""
    certificate_end: _Moment = 0


class SpoolState(AgentBody, frozen=True, omit_defaults=True, gc=False):
    """
    What waits in the spool of an observer.

    @ivar name: the spec of the observer, fit for a log line.
    @ivar oldest: when the oldest message that waits came, nanoseconds since the epoch; 0 when none waits. It is no age,
        so that a report has it only when it is another message.
    """

    name: Annotated[str, Meta(max_length=LONGEST_SPEC)]
    messages: Count = 0
    bytes: Count = 0
    oldest: _Moment = 0


class SeriesCounts(AgentBody, frozen=True, array_like=True, gc=False):
    """
    What one connector, or source, has counted since the start of the process.

    @ivar name: empty for what was refused before it was known which one a request is for.
    @ivar last: when the last message came, seconds since the epoch; 0 before the first.
    @ivar answers: answers by the bucket of their time; C{answer_seconds} is the sum of times.
    @ivar refused: requests refused, by reason.
    @ivar dropped: messages that a step has dropped; their senders got 200.
    @ivar text_bodies: messages whose body was no JSON object.
    """

    name: ShortName
    messages: Count = 0
    bytes: Count = 0
    last: float = 0.0
    answers: Annotated[tuple[Count, ...], Meta(max_length=BUCKETS)] = ()
    answer_seconds: float = 0.0
    refused: Annotated[dict[_Word, Count], Meta(max_length=64)] = {}
    dropped: Count = 0
    text_bodies: Count = 0


class HeardSender(AgentBody, frozen=True, array_like=True, gc=False):
    """
    A sender that one connector, or source, has heard since the start of the process, or the only one that it hears.

    @ivar sender: its id.
    @ivar last: when its last message came, seconds since the epoch; 0 before the first.
    """

    name: ShortName
    sender: ShortName
    last: Annotated[float, Meta(ge=0)] = 0.0


class CountsReport(AgentBody, frozen=True):
    """
    Counts at one moment, all of them since the start of the process.

    @ivar begun: when the process started; another value says that counts began anew.
    @ivar since: when the counts of the report before this were taken; C{until}, those of this one.
    """

    begun: _Moment
    since: _Moment
    until: _Moment
    series: Annotated[tuple[SeriesCounts, ...], Meta(max_length=MOST_CONNECTORS)] = ()


class RouterReport(AgentBody, frozen=True, omit_defaults=True):
    """
    The state of a router. The first report after each connection has all of it; members that are None in a later one
    are as in the one before.

    @ivar number: counts reports of a process from 1. A number that the console has had is the same report again.
    @ivar base: the number of the report that this one builds upon; 0 for one that has everything.
    @ivar begun: when the process started, nanoseconds since the epoch.
    @ivar instance: random for each process, so that one certificate in two processes is seen.
    @ivar health: C{ready}, C{degraded} or C{not_ready}, with C{health_reasons}.
    @ivar spools: routers before 26.11.11 never tell them, nor C{senders}.
    """

    most_bytes: ClassVar[int] = MOST_REPORT_BYTES

    number: Annotated[int, Meta(ge=1, lt=1 << 53)]
    begun: _Moment
    instance: MessageId
    base: Count = 0
    applied: AppliedState | None = None
    connectors: Annotated[tuple[ConnectorState, ...], Meta(max_length=MOST_CONNECTORS)] | None = None
    gate: GateState | None = None
    facts: RouterFacts | None = None
    health: Literal["ready", "degraded", "not_ready"] | None = None
    health_reasons: Annotated[tuple[Sentence, ...], Meta(max_length=64)] | None = None
    spools: Annotated[tuple[SpoolState, ...], Meta(max_length=MOST_SPOOLS)] | None = None
    senders: Annotated[tuple[HeardSender, ...], Meta(max_length=MOST_SENDERS)] | None = None
    counts: CountsReport | None = None
    answers: Annotated[tuple[CommandAnswer, ...], Meta(max_length=MOST_COMMANDS)] = ()


class AgentProblem(AgentBody, frozen=True):
    """The part of a problem (RFC 9457) that a router reads."""

    code: _Word = ""
    detail: Sentence = ""
