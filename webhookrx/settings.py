"""
The settings of webhookrx: frozen values, and the only home of defaults.

Sizes are bytes, times are seconds on the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from webhookrx.guard.quota import SourceQuota
from webhookrx.intake.token_places import AUTHORIZATION, TokenPlace
from webhookrx.intake.tokens import NamedToken
from webhookrx.management.alarm_rules import AlarmSettings
from webhookrx.router.gate import ClosedConnector, GateReason
from webhookrx.router.steps.step import Preprocessing
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.signatures.named_secrets import NamedSecret

#: The state of a file as stat(2) has it; the number of an error for a missing file.
Signature: TypeAlias = tuple[int, ...]

KiB = 1024
MiB = 1024 * KiB

PLAIN_PORT = 80
"""TCP port of a source that names no endpoint and has no key."""
TLS_PORT = 443
"""TCP port of a source that names no endpoint and has a key."""
BACKLOG = 4096
"""Connections that the kernel queues until we accept them; C{net.core.somaxconn} may lower it."""
PROMPT_BODY = 10 * MiB
"""Bytes of a body that delays other senders by at most 50 ms, as C{benchmarks/hostile_bodies.py} measures it."""
MESSAGE_FILE = "messages.jsonl"
"""The file of the default observer: in C{$STATE_DIRECTORY} under systemd, else in the working directory."""


def largest_body(queue: int) -> int:
    """
    Return the bytes of the queue that large bodies that are still arriving may take together.

    The rest is for small ones and for messages: senders that begin large bodies and never end them must not block all
    others.
    """
    return queue // 2


@dataclass(frozen=True, slots=True)
class Limits:
    """
    What one sender, and all of them together, may take. Each has its reason code; see C{docs/reference/limits.md}.
    """

    body: int = 10 * MiB
    """Bytes of one body, on the wire and unpacked."""
    unpack_ratio: int = 100
    """How many times its size on the wire a body may unpack to; 128 KiB are always allowed."""
    header_block: int = 16 * KiB
    """Bytes of request line and headers together, with their line ends."""
    headers: int = 100
    """Header lines in one request."""
    target: int = 8 * KiB
    """Bytes of the request target, path and query."""
    connections: int = 10_000
    """Open connections on all endpoints together."""
    connections_per_peer: int = 1_000
    """Open connections from one IPv4 address or IPv6 network of 64 bits; a UNIX socket's peers have none."""
    queue: int = 64 * MiB
    """Bytes from the first of a body to the last acknowledgement."""
    queue_messages: int = 100_000
    """Messages that wait for an acknowledgement."""
    header_time: float = 10.0
    """From the first byte of a request, or the connection, to the end of its headers; TLS handshakes, too."""
    body_time: float = 60.0
    """From the end of the headers to the end of the body."""
    answer_time: float = 30.0
    """For the observers to make a message safe, and for a sender to take its answer."""
    idle_time: float = 75.0
    """Between two requests on one connection."""
    pause_time: float = 2.0
    """For which reading from senders pauses when the queue is nearly full; then they are refused."""
    recorded_requests: int = 1_000
    """Files with recorded requests in the directory."""
    recorded_bytes: int = 64 * MiB
    """Bytes of them together."""


FileContents: TypeAlias = Mapping[str, tuple[bytes, int]]
"""Contents and mode bits of files by their absolute paths."""


@dataclass(frozen=True, slots=True)
class TLS:
    """
    Key, certificate and client-certificate policy of an endpoint; paths are absolute.

    @ivar asks_clients: ask for a client certificate and serve clients without one, too; the resources decide by it.
    """

    key_file: str
    cert_file: str
    extra_chain_file: str | None = None
    peer_verify: bool = False
    ca_file: str | None = None
    ca_dir: str | None = None
    system_store: bool = False
    asks_clients: bool = False


@dataclass(frozen=True, slots=True)
class Listener:
    """
    One endpoint to listen on.

    @ivar text: as the user wrote it, for people.
    @ivar socket: an endpoint string for C{serverFromString}, with neither TLS nor the PROXY protocol.
    @ivar proxy_protocol: a PROXY header comes before everything else, TLS included.
    """

    text: str
    socket: str
    proxy_protocol: bool = False
    tls: TLS | None = None


@dataclass(frozen=True, slots=True)
class ConnectorSettings:
    """
    The part of a source that only the router form has: a connector, made by a connector rule.
    """

    rule: str
    """The name of the rule."""
    port: int
    """The TCP port."""
    labels: Mapping[str, str]
    """C{product}, C{vendor}, and those of the rule."""
    preprocessing: Preprocessing


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """
    Who may send to a source, and what its sender asks for: the options that a plain source has none of.
    """

    sender: SenderDefinition | None = None
    """The one kind of sender that the source hears; None: any."""
    secrets: tuple[NamedSecret, ...] = field(default=(), repr=False)
    """Its secrets, public keys and verify tokens, in the order of their files."""
    secrets_files: tuple[str, ...] = ()
    """Where they are."""
    verify: str = "off"
    """C{"required"}, C{"note"} or C{"off"}."""
    handshake: bool = False
    """Whether questions of the sender are answered."""
    split: str = "no"
    """C{"no"}, C{"yes"} for the sender's own way, C{"lines"}, C{"documents"}, or a JSON pointer."""
    idempotency: float | None = None
    """Seconds for which the ids of deliveries are remembered; None: they are not."""
    quota: SourceQuota | None = None
    """How much may come; None: as much as there is room for."""
    allow: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The networks from which requests may come, by what was written: a network, or the name of a list; empty: all."""
    allow_clients: tuple[str, ...] = ()
    """Patterns of the names of client certificates, and their fingerprints; empty: all."""
    tokens: tuple[NamedToken, ...] = field(default=(), repr=False)
    """All accepted tokens; without one no token is needed."""
    token_files: tuple[str, ...] = ()
    """Where those of a connector are."""
    token_place: TokenPlace = AUTHORIZATION
    """Where a request shows its token."""
    public_url: str = ""
    """Scheme, host and port by which the sender knows the source, or a whole URL; empty: not known."""
    sender_settings: Mapping[str, str | bool | tuple[str, ...]] = field(default_factory=dict)
    """What the definition of the sender leaves to the operator, by name."""


@dataclass(frozen=True, slots=True)
class Source:
    """One configured receiver."""

    name: str = "default"
    variant: str = "webhook"
    """C{"webhook"}, C{"webhook-json"} or C{"connector"}."""
    paths: tuple[str, ...] = ("/.*",)
    prefix: str = ""
    auth_tokens: tuple[bytes, ...] = field(default=(), repr=False)
    """All accepted tokens, from options and files; without one no token is needed. With a guard, it has them."""
    include_request_headers: bool = False
    proxy_header: str | None = None
    """Lower-case name of the one trusted header."""
    on_parse_error: str = "keep"
    """C{"keep"} or C{"reject"}; C{webhook-json} only."""
    keep_message: str = "yes"
    """C{"yes"} or C{"unparsed"}; C{webhook-json} only."""
    health: str = ""
    """Path of the health check for load balancers; empty: none."""
    listeners: tuple[Listener, ...] = ()
    connector: ConnectorSettings | None = None
    """None for a source of the collector form."""
    guard: GuardSettings | None = None
    """None for a plain source, which has none of these options."""


@dataclass(frozen=True, slots=True)
class Observer:
    """
    A parsed observer spec string: C{name:arg:key=value}.

    @ivar inner: the observer behind a spool, from its option C{observer=}.
    """

    text: str
    name: str
    args: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    inner: Observer | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """
    Which of how many workers a process is: they share the endpoints, and each runs a whole receiver.

    @ivar number: from 0; it stays the same when a worker is started again.
    @ivar size: how many there are; 1 for a process that has no others beside it.
    @ivar lock_fd: descriptor of a file that all of them inherit, for record locks (fcntl(2)); None for a process
        without others.
    """

    number: int = 0
    size: int = 1
    lock_fd: int | None = None
    state_files: tuple[int, ...] = ()
    """Descriptors of L{webhookrx.service.shared_state.make_state_files}; none for a process without others."""


ALONE = Group()
"""A process without others."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """
    The console of this receiver, and what it may do here.
    """

    url: str
    """C{https://HOST:PORT}, its port for routers."""
    directory: str
    """The absolute path of the directory of identity and bundles."""
    token_file: str | None = None
    """The absolute path of the file of the token by which the first start enrols; None: it does not."""
    key_directories: tuple[str, ...] = ("/etc/webhookrx/tls",)
    """The directories below which files of rules lie."""
    data_directories: tuple[str, ...] = ()
    """The directories below which JSON files of expressions lie."""
    tap: bool = True
    """Whether people may tap messages through the console."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of C{--router-label}, over which those of the console win."""
    name: str = ""
    """What the router asks to be called when it enrols (C{--router-name}); empty for the name of its host."""


@dataclass(frozen=True, slots=True)
class BundleInUse:
    """The bundle of a console that the connectors in use come from; C{digest} is the name of its envelope."""

    revision: int
    digest: str
    masks: tuple[str, ...] = ()
    """Names of members that a tap masks, besides those that it masks by itself."""


@dataclass(frozen=True, slots=True)
class RouterSettings:
    """
    This router, whose connectors come from a rules file or the bundle of a console.

    A key, certificate or JSON file of its rules that can't be used blocks it on a reload: its connectors stay as they
    are until the file can be used.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    watched: Mapping[str, Signature] = field(default_factory=dict, compare=False)
    """Signatures of files and directories, from just before they were read, by absolute path; a change of one is a
    reload."""
    blocked: tuple[GateReason, ...] = ()
    """Why the router is blocked; empty: it is not."""
    senders: tuple[SenderDefinition, ...] = ()
    """Sender definitions of the operator, besides those of the package."""
    tls_files: FileContents = field(default_factory=dict, repr=False, compare=False)
    """Contents of the files of its L{TLS} when they were checked, with keys; those in use while it is blocked."""
    closed: tuple[ClosedConnector, ...] = ()
    """Connectors that could not start because of their files."""
    not_taken: str = ""
    """The first mistake in the rules file, while the last good set of connectors is in use instead; else empty."""
    good: bytes = field(default=b"", repr=False, compare=False)
    """This set for the next start, see L{webhookrx.config.rule_files.SavedSet}; empty for a set that is not good, and
    without a state directory."""
    json_files: Mapping[str, bytes] = field(default_factory=dict)
    """Contents of the JSON files that expressions of its rules name, by absolute path."""
    bundle: BundleInUse | None = None
    """With a console, where its connectors come from; None: it has had no bundle that can be used."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, validated."""

    sources: tuple[Source, ...]
    observers: tuple[Observer, ...]
    ack: str = "durable"
    """C{"durable"}, C{"written"} or C{"queued"}."""
    limits: Limits = field(default_factory=Limits)
    drain_timeout: float = 30.0
    """Seconds that requests and messages have to finish after SIGTERM."""
    admin: Listener | None = None
    """The endpoint of health and metrics; None: none."""
    control: str | None = None
    """The absolute path of the control socket; None: none."""
    workers: int = 1
    """Processes that receive; from 2 on they have a parent process."""
    router: RouterSettings | None = None
    """The router form; None without rules of a file or console."""
    console: AgentSettings | None = None
    """The console that this receiver reports to; None: none. Workers have none of it."""
    warnings: tuple[str, ...] = ()
    """What is allowed but probably not meant: logged at start, printed by C{--check}."""
    state_dir: str | None = None
    """The absolute path of the directory of the last good set; None: it is not kept."""
    record: str | None = None
    """The absolute path of the directory of recorded requests; None: they are not recorded."""
    watched_files: Mapping[str, Signature] = field(default_factory=dict, compare=False)
    """Signatures of files of secrets, tokens and networks, see L{RouterSettings.watched}."""
    signing_certs: tuple[bytes, ...] = field(default=(), repr=False)
    """The contents of files with public keys and certificates of senders."""
    alarms: AlarmSettings = field(default_factory=AlarmSettings)
    """Of what somebody is told, and who; workers have none."""
    fetch_keys: bool = False
    """Whether keys of senders are fetched from where each sender publishes them."""
    tls_files: FileContents = field(default_factory=dict, repr=False, compare=False)
    """Contents of the files of all L{TLS} when they were checked, with keys; but for those of connectors."""

    @property
    def watched(self) -> Mapping[str, Signature]:
        """Files whose change is a reload, see L{RouterSettings}."""
        return {**self.watched_files, **(self.router.watched if self.router is not None else {})}

    @property
    def blocked(self) -> tuple[GateReason, ...]:
        """Why the router is blocked, see L{RouterSettings}."""
        return self.router.blocked if self.router is not None else ()

    @property
    def gate_paths(self) -> tuple[str, ...]:
        """The files for which the router is blocked, each once."""
        return tuple(dict.fromkeys(each.path for each in self.blocked if each.path))

    @property
    def closed(self) -> tuple[ClosedConnector, ...]:
        """Connectors that could not start, see L{RouterSettings}."""
        return self.router.closed if self.router is not None else ()

    @property
    def not_taken(self) -> str:
        """Why the rules file is not in use, see L{RouterSettings}."""
        return self.router.not_taken if self.router is not None else ""
