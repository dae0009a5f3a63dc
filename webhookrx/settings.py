"""
What webhookrx runs with: frozen values, and the only home of defaults.

Sizes are bytes, times are seconds on the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from webhookrx.router.steps.step import Preprocessing
from webhookrx.senders.definition import SenderDefinition

#: What is known of a file without reading it; the number of an error for one that is not there.
Signature: TypeAlias = tuple[int, ...]

KiB = 1024
MiB = 1024 * KiB

PLAIN_PORT = 80
"""TCP port of a source that names no endpoint and has no key."""
TLS_PORT = 443
"""TCP port of a source that names no endpoint and has a key."""
BACKLOG = 4096
"""Connections that the kernel may hold until we accept them; it cuts this to C{net.core.somaxconn}."""
PROMPT_BODY = 10 * MiB
"""Bytes of a body that holds up other senders for at most 50 ms, as C{benchmarks/hostile_bodies.py} measures it."""
MESSAGE_FILE = "messages.jsonl"
"""What the observer writes when none is named: in C{$STATE_DIRECTORY} under systemd, else the working directory."""


def largest_body(queue: int) -> int:
    """
    Return how many bytes of the queue large bodies that are still arriving may take together.

    The rest is there for small ones and for messages: senders who begin large bodies and do not end them must not keep
    everybody out.
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
    """From the first byte of a request, or from the connection, to the end of its headers; TLS handshakes too."""
    body_time: float = 60.0
    """From the end of the headers to the end of the body."""
    answer_time: float = 30.0
    """For the observers to make a message safe, and for a sender to take its answer."""
    idle_time: float = 75.0
    """Between two requests on one connection."""
    pause_time: float = 2.0
    """For which reading from senders may be off because too much waits; then they are refused."""
    recorded_requests: int = 1_000
    """Files with recorded requests that there may be."""
    recorded_bytes: int = 64 * MiB
    """Bytes of them together."""


FileContents: TypeAlias = Mapping[str, tuple[bytes, int]]
"""What was in files, and their mode bits, by their absolute paths."""


@dataclass(frozen=True, slots=True)
class TLS:
    """Key, certificate and client-certificate policy of an endpoint; paths are absolute."""

    key_file: str
    cert_file: str
    extra_chain_file: str | None = None
    peer_verify: bool = False
    ca_file: str | None = None
    ca_dir: str | None = None
    system_store: bool = False


@dataclass(frozen=True, slots=True)
class Listener:
    """
    One endpoint to listen on.

    @ivar text: as the user wrote it, for people.
    @ivar inner: an endpoint string for C{serverFromString} that holds neither TLS nor the PROXY protocol.
    @ivar proxy_protocol: a PROXY header comes before everything else, TLS included.
    """

    text: str
    inner: str
    proxy_protocol: bool = False
    tls: TLS | None = None


@dataclass(frozen=True, slots=True)
class ConnectorSettings:
    """
    What makes a source one of the router form: a connector, from a connector rule.
    """

    rule: str
    """The name of the rule."""
    port: int
    """Where it receives data."""
    labels: Mapping[str, str]
    """C{product}, C{vendor}, and those of the rule."""
    preprocessing: Preprocessing


@dataclass(frozen=True, slots=True)
class Source:
    """One configured receiver."""

    name: str = "default"
    source: str = "webhook"
    """C{"webhook"}, C{"webhook-json"} or C{"connector"}."""
    paths: tuple[str, ...] = ("/.*",)
    prefix: str = ""
    auth_tokens: tuple[bytes, ...] = field(default=(), repr=False)
    """All tokens that are accepted, from options and files; none means that no token is asked for."""
    include_request_headers: bool = False
    proxy_header: str | None = None
    """Lower-case name of the one trusted header."""
    on_parse_error: str = "keep"
    """C{"keep"} or C{"reject"}; C{webhook-json} only."""
    keep_message: str = "yes"
    """C{"yes"} or C{"unparsed"}; C{webhook-json} only."""
    health: str = ""
    """Path at which load balancers ask whether the service is ready; none when it is empty."""
    listeners: tuple[Listener, ...] = ()
    connector: ConnectorSettings | None = None
    """Of the router form; None for the collector form."""


@dataclass(frozen=True, slots=True)
class Observer:
    """
    A parsed observer spec string: C{name:arg:key=value}.

    @ivar inner: the observer that this one stands in front of, from its option C{observer=}.
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


ALONE = Group()
"""A process without others."""


@dataclass(frozen=True, slots=True)
class RouterSettings:
    """
    This router, whose connectors come from a rules file.

    A rule on it whose key or certificate can't be used closes its reload gate: its connectors stay as they are until
    the files are there.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    watched: Mapping[str, Signature] = field(default_factory=dict, compare=False)
    """Absolute paths of files and directories, each with its signature from just before it was read; when one of them
    changes, the settings are read anew."""
    blocked: tuple[str, ...] = ()
    """Why the gate is closed: one sentence for each file. None of them: it is open."""
    senders: tuple[SenderDefinition, ...] = ()
    """Kinds of senders that the operator knows, besides those that come with webhookrx."""
    tls_files: FileContents = field(default_factory=dict, repr=False, compare=False)
    """What was in the files of its L{TLS} when they were checked, keys included; as it runs when the gate is closed."""
    closed: tuple[str, ...] = ()
    """Connectors that could not begin because of their files, and why: one sentence for each."""
    not_taken: str = ""
    """Why the rules file is not in use, but the last good set of connectors: what is wrong first. Empty: it is."""
    good: bytes = field(default=b"", repr=False, compare=False)
    """What to keep of this set for the next start, see L{webhookrx.config.rule_files}; empty for one that is not good,
    and where nothing is kept."""
    json_files: Mapping[str, bytes] = field(default_factory=dict)
    """What the JSON files hold that expressions of its rules name, by their absolute paths."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything, validated."""

    sources: tuple[Source, ...]
    observers: tuple[Observer, ...]
    ack: str = "durable"
    """C{"durable"}, C{"written"} or C{"queued"}."""
    limits: Limits = field(default_factory=Limits)
    drain_timeout: float = 30.0
    """Seconds that finishing what is under way may take once the receiver is told to stop."""
    admin: Listener | None = None
    """Where health and metrics are asked for; None: nowhere."""
    workers: int = 1
    """Processes that receive; from 2 on one more watches over them."""
    router: RouterSettings | None = None
    """The router form; None without a rules file."""
    warnings: tuple[str, ...] = ()
    """What is allowed but probably not meant; logged at start, printed by C{--check}."""
    state_dir: str | None = None
    """The absolute path of the directory for what a restart needs; None: nothing is kept."""
    record: str | None = None
    """The absolute path of the directory in which requests are recorded; None: they are not."""
    tls_files: FileContents = field(default_factory=dict, repr=False, compare=False)
    """What was in the files of all L{TLS} when they were checked, keys included; for connectors the router has it."""

    @property
    def watched(self) -> Mapping[str, Signature]:
        """Files whose change is reason for a reload, see L{RouterSettings}; none without a router."""
        return self.router.watched if self.router is not None else {}

    @property
    def blocked(self) -> tuple[str, ...]:
        """Why the connectors stay as they are, see L{RouterSettings}; empty while nothing blocks them."""
        return self.router.blocked if self.router is not None else ()

    @property
    def closed(self) -> tuple[str, ...]:
        """Which connectors could not begin, see L{RouterSettings}."""
        return self.router.closed if self.router is not None else ()

    @property
    def not_taken(self) -> str:
        """Why the rules file is not in use, see L{RouterSettings}."""
        return self.router.not_taken if self.router is not None else ""
