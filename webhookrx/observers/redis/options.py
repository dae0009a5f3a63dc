"""
The spec string of the redis observer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from webhookrx.config.observers import Argument, ObserverSpec, OptionText
from webhookrx.config.specs import SpecOptions
from webhookrx.diagnostics import quoted
from webhookrx.observers.addresses import Addresses, check_plaintext, read_addresses
from webhookrx.observers.batch_limits import USUAL_LIMITS, BatchLimits, read_limits
from webhookrx.observers.client_tls import TLS_OPTIONS, TLS_SECRETS, ClientTLS, make_context_if, read_tls_if
from webhookrx.observers.keyed_record import KeyedFormat, read_keyed_format
from webhookrx.observers.secret_files import read_secret

if TYPE_CHECKING:
    import ssl

PACKAGE: Final = "redis>=8.1"
"""What redis-py is called for pip."""

ID_FIELD: Final = "id"
MESSAGE_FIELD: Final = "message"
"""The fields of an entry."""

_EXAMPLE: Final = "redis:redis://127.0.0.1:6379/0/logs"
_SCHEMES: Final = {"redis": 6379, "rediss": 6379}

CONNECTION_OPTIONS: Final = ("user", "password_file", "sentinel", "allow_plaintext", *TLS_OPTIONS)
"""What says how to connect, for observers and consumers."""
CONNECTION_TEXTS: Final = {
    "user": OptionText("the default user", "the name of a user of ACL"),
    "password_file": OptionText("none", "file with the password, on a line of its own"),
    "sentinel": OptionText(
        "none", "the name of a master: the servers of the URL are sentinels, which know where it is"
    ),
}
"""What the docs say of them."""
FILES: Final = ("password_file", *TLS_OPTIONS)
SECRETS: Final = ("password_file", *TLS_SECRETS)

REDIS_SPEC: Final = ObserverSpec(
    options=(
        "wait",
        "waitaof",
        "maxlen",
        "dedup",
        "dedup_window",
        "template",
        "id",
        "batch",
        "batch_size",
        "timeout",
        "retry_for",
        *CONNECTION_OPTIONS,
    ),
    argument=Argument.URL,
    files=FILES,
    secrets=SECRETS,
    texts={
        "wait": OptionText("none", "how many replicas must have a batch in memory (`WAIT`) before it is stored"),
        "waitaof": OptionText(
            "none", "`1,N` or `0,N`: whether the server itself, and how many replicas, must have synced it (`WAITAOF`)"
        ),
        "maxlen": OptionText("none", "about how many entries the stream keeps: the oldest are dropped, read or not"),
        "dedup": OptionText("`script`", "`script` lets Redis keep the ids and store each once; `off` does not"),
        "dedup_window": OptionText("`15min`", "how long Redis knows an id"),
        "batch": OptionText("`500`", "most messages of one transaction"),
        "batch_size": OptionText("`1MiB`", "most bytes of one transaction; a larger message goes alone"),
        "timeout": OptionText("`10s`", "time limit of the answer to one transaction, and of its confirmation"),
        **CONNECTION_TEXTS,
    },
)

DEFAULT_TIMEOUT: Final = 10.0
DEFAULT_RETRY_FOR: Final = 10.0
SHORTEST_TIMEOUT: Final = 0.1
DEFAULT_DEDUP_WINDOW: Final = 15 * 60.0

_NUMBER: Final = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class RedisServers:
    """
    Where a client connects, and as whom.

    @ivar sentinel: the name of the master that the servers, which are sentinels, know; None if they are Redis.
    @ivar tls: None without.
    @ivar user: None for the default user.
    """

    addresses: Addresses
    database: int
    sentinel: str | None = None
    tls: ClientTLS | None = None
    user: str | None = None
    password_file: str | None = None

    @property
    def sends_secret(self) -> bool:
        """Whether the server sees a secret, which its answers may quote."""
        return self.password_file is not None


@dataclass(frozen=True, slots=True)
class Confirmation:
    """
    What is asked for after each batch.

    @ivar local: whether the server itself must have synced its file, by WAITAOF; None for WAIT.
    @ivar replicas: how many must have the batch: in memory by WAIT, synced by WAITAOF.
    """

    local: int | None
    replicas: int


@dataclass(frozen=True, slots=True)
class RedisTarget:
    """
    Where messages go, and in which form.

    @ivar confirmation: None to believe the reply of XADD.
    @ivar maxlen: about how many entries the stream keeps; None for all.
    @ivar dedup_window: seconds for which the server knows an id; None not to ask it.
    @ivar limits: how large one transaction may be.
    @ivar timeout: seconds for connecting and the answers to one transaction.
    @ivar retry_for: seconds from the beginning of a C{store} in which it begins further tries.
    """

    servers: RedisServers
    stream: str
    format: KeyedFormat
    confirmation: Confirmation | None = None
    maxlen: int | None = None
    dedup_window: float | None = DEFAULT_DEDUP_WINDOW
    limits: BatchLimits = USUAL_LIMITS
    timeout: float = DEFAULT_TIMEOUT
    retry_for: float = DEFAULT_RETRY_FOR


def read_redis(args: Sequence[str], given: Mapping[str, str]) -> RedisTarget:
    """
    Read C{redis:redis://HOST:PORT/DB/STREAM[:key=value…]}, but not the files.

    @raise ConfigError: an argument or option is wrong, or does not go with another.
    """
    options = SpecOptions("redis", given)
    servers, stream = read_servers(args, options)
    has_dedup = options.choice("dedup", ("script", "off"), "script") == "script"
    if "dedup_window" in options and not has_dedup:
        raise options.problem("dedup_window= does not go with dedup=off")
    window = options.duration("dedup_window", DEFAULT_DEDUP_WINDOW, at_least=1.0)
    return RedisTarget(
        servers,
        stream,
        read_keyed_format(options),
        _read_confirmation(options),
        options.count("maxlen", 1) if "maxlen" in options else None,
        window if has_dedup else None,
        limits=read_limits(options),
        timeout=options.duration("timeout", DEFAULT_TIMEOUT, at_least=SHORTEST_TIMEOUT),
        retry_for=options.duration("retry_for", DEFAULT_RETRY_FOR),
    )


def read_servers(args: Sequence[str], options: SpecOptions) -> tuple[RedisServers, str]:
    """
    Read the URL and L{CONNECTION_OPTIONS}, but not the files.

    @return: the servers, and the name of the stream.
    @raise ConfigError: one of them is wrong, or does not go with another.
    """
    given = options.given
    has_sentinel = "sentinel" in options
    addresses = read_addresses(args, options, _SCHEMES, _EXAMPLE, several=has_sentinel)
    database, slash, stream = addresses.path.partition("/")
    if not _NUMBER.fullmatch(database) or not slash or not stream:
        raise options.problem(f"the URL must name a database by its number, and a stream; write for example {_EXAMPLE}")
    if not stream.isprintable() or " " in stream:
        raise options.problem(f"{quoted(stream)} is no name for a stream: it holds blanks or control characters")
    has_tls = addresses.scheme == "rediss"
    tls = read_tls_if(options, is_used=has_tls, goes_with="a rediss:// URL")
    for key in ("user", "password_file", "sentinel"):
        if given.get(key) == "":
            raise options.problem(f"{key}= is empty")
    if "user" in options and "password_file" not in options:
        raise options.problem("user= goes with password_file=")
    check_plaintext(
        options,
        ("password_file",),
        is_encrypted=has_tls,
        # A sentinel of this machine may know a master on another one.
        is_local=addresses.are_local and not has_sentinel,
        remedy="use a rediss:// URL",
    )
    servers = RedisServers(
        addresses,
        int(database),
        given.get("sentinel"),
        tls,
        given.get("user"),
        given.get("password_file"),
    )
    return servers, stream


#: A password and what TLS takes, if any.
RedisAccess: TypeAlias = "tuple[str | None, ssl.SSLContext | None]"


def read_access(servers: RedisServers, options: SpecOptions) -> RedisAccess:
    """
    Read the files: what it takes to connect.

    @raise ConfigError: one of them is missing or wrong; nothing of it is quoted.
    """
    path = servers.password_file
    password = None if path is None else read_secret(path, options, "password_file")
    return password, make_context_if(servers.tls, options)


def _read_confirmation(options: SpecOptions) -> Confirmation | None:
    if "wait" in options and "waitaof" in options:
        raise options.problem("wait= and waitaof= do not go together: waitaof= waits for replicas, too")
    if "wait" in options:
        return Confirmation(None, options.count("wait", 1))
    return options.read("waitaof", None, _waitaof)


def _waitaof(text: str) -> Confirmation:
    local, comma, replicas = text.partition(",")
    if local not in ("0", "1") or not comma or not _NUMBER.fullmatch(replicas) or (local, int(replicas)) == ("0", 0):
        raise ValueError("it takes 1 or 0 for the server itself, and how many replicas, such as 1,0 or 1,2")
    return Confirmation(int(local), int(replicas))
