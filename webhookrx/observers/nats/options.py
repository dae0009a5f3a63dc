"""
The spec string of the nats observer, the subjects of its messages, and the files that hold its secrets.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from webhookrx.config.files import read_file
from webhookrx.config.observers import Argument, ObserverSpec, OptionText
from webhookrx.config.specs import SpecOptions
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.message.message import Message
from webhookrx.message.template import Template
from webhookrx.observers.addresses import Addresses, check_plaintext, read_addresses
from webhookrx.observers.batch_limits import BatchLimits, read_limits
from webhookrx.observers.client_tls import TLS_OPTIONS, TLS_SECRETS, ClientTLS, make_context_if, read_tls_if
from webhookrx.observers.keyed_record import KeyedFormat, KeyedRecord, pack, read_keyed_format
from webhookrx.observers.packages import package_for
from webhookrx.observers.secret_files import read_secret

if TYPE_CHECKING:
    import ssl

PACKAGE: Final = "nats-py>=2.16"
"""What nats-py is called for pip."""

_EXAMPLE: Final = "nats:nats://127.0.0.1:4222/logs.${SOURCE}"
#: The port of each scheme.
_SCHEMES: Final = {"nats": 4222, "tls": 4222}

SECRET_FILES: Final = ("password_file", "creds_file", "nkey_file")
CONNECTION_OPTIONS: Final = ("user", *SECRET_FILES, "allow_plaintext", *TLS_OPTIONS)
"""What says how to connect, for observers and consumers."""
CONNECTION_TEXTS: Final = {
    "creds_file": OptionText(
        "none", "file with a JWT and the seed of its key, as `nsc` writes it; needs the package `nkeys`"
    ),
    "nkey_file": OptionText("none", "file with the seed of a key, `SU…`; needs the package `nkeys`"),
    "password_file": OptionText("none", "file with the password of `user`, on a line of its own"),
}
"""What the docs say of them."""
CONNECTION_FILES: Final = (*SECRET_FILES, *TLS_OPTIONS)
CONNECTION_SECRETS: Final = (*SECRET_FILES, *TLS_SECRETS)

NATS_SPEC: Final = ObserverSpec(
    options=("stream", "synced", "template", "id", "batch", "batch_size", "timeout", "retry_for", *CONNECTION_OPTIONS),
    argument=Argument.URL,
    files=CONNECTION_FILES,
    secrets=CONNECTION_SECRETS,
    texts={
        "stream": OptionText(
            "any", "the stream that must take the messages: an answer of another one counts for nothing"
        ),
        "synced": OptionText(
            "`no`", "`yes` if `sync_interval` of all servers is `always`: the promise is then `durable`"
        ),
        "batch": OptionText("`256`", "most messages that wait for their PubAck at a time"),
        "batch_size": OptionText("`1MiB`", "most bytes of them; a larger message goes alone"),
        "timeout": OptionText("`10s`", "time limit of connecting and of all PubAcks of a batch"),
        **CONNECTION_TEXTS,
    },
)

_LIMITS: Final = BatchLimits(messages=256)
DEFAULT_TIMEOUT: Final = 10.0
DEFAULT_RETRY_FOR: Final = 10.0
SHORTEST_TIMEOUT: Final = 0.1

#: Subjects have no length of their own, but the line of a command has 4,096 bytes (max_control_line), and a longer one
#: ends the connection.
LONGEST_TOKEN: Final = 128
MOST_TOKENS: Final = 16

#: All but what U{https://docs.nats.io/nats-concepts/subjects} recommends. C{.}, C{*} and C{>} have a meaning, and white
#: space ends a subject.
_NOT_SAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
#: A dot that separates tokens: not one in braces, such as that of ${log.body.host}.
_TOKEN: Final = re.compile(r"(?:\$\{[^{}]*\}|[^.])*")
_STREAM_NAME: Final = re.compile(r"[!-~]+")
_JWT: Final = re.compile(rb"-----BEGIN NATS USER JWT-----\s+([A-Za-z0-9_.-]+)\s")
_SEED: Final = re.compile(rb"-----BEGIN USER NKEY SEED-----\s+([A-Z2-7]+)\s")


@dataclass(frozen=True, slots=True)
class NatsServers:
    """
    Where a client connects, and as whom.

    @ivar tls: None without.
    @ivar password_file: goes with C{user}.
    @ivar creds_file: a JWT and the seed of its key, as C{nsc} writes them.
    @ivar nkey_file: the seed of a key.
    """

    addresses: Addresses
    tls: ClientTLS | None = None
    user: str | None = None
    password_file: str | None = None
    creds_file: str | None = None
    nkey_file: str | None = None

    @property
    def sends_secret(self) -> bool:
        """Whether the server sees a secret, which its answers may quote. A seed only signs, and stays here."""
        return self.password_file is not None


@dataclass(frozen=True, slots=True)
class NatsSecrets:
    """
    What the files of secrets hold; C{repr} shows nothing of it.

    @ivar payload_limit: bytes that the user may send at once, as the JWT says; None without a limit.
    """

    password: str | None = field(default=None, repr=False)
    jwt: str | None = field(default=None, repr=False)
    seed: str | None = field(default=None, repr=False)
    payload_limit: int | None = None


@dataclass(frozen=True, slots=True)
class NatsTarget:
    """
    Where messages go, and in which form.

    @ivar stream: what each PubAck must name; None for any.
    @ivar limits: how much waits for its PubAck at a time.
    @ivar timeout: seconds for connecting and for all of a batch, together.
    @ivar retry_for: seconds from the beginning of a C{store} in which it begins further tries.
    """

    servers: NatsServers
    subject: Callable[[Message], str]
    format: KeyedFormat
    stream: str | None = None
    is_synced: bool = False
    limits: BatchLimits = _LIMITS
    timeout: float = DEFAULT_TIMEOUT
    retry_for: float = DEFAULT_RETRY_FOR

    def encode(self, message: Message) -> bytes:
        """Return a message as a packed record whose key is the subject."""
        form = self.format
        subject = self.subject(message).encode()
        return pack(KeyedRecord(form.identify(message), subject, message.received, form.render_line(message)[:-1]))


def read_nats(args: Sequence[str], given: Mapping[str, str]) -> NatsTarget:
    """
    Read C{nats:nats://HOST:PORT,…/SUBJECT[:key=value…]}, but not the files.

    @raise ConfigError: an argument or option is wrong, or does not go with another.
    """
    options = SpecOptions("nats", given)
    servers = read_servers(args, options, _EXAMPLE)
    return NatsTarget(
        servers,
        _read_subject(servers.addresses.path, options),
        read_keyed_format(options),
        options.read("stream", None, stream_name),
        options.flag("synced", False),
        limits=read_limits(options, _LIMITS),
        timeout=options.duration("timeout", DEFAULT_TIMEOUT, at_least=SHORTEST_TIMEOUT),
        retry_for=options.duration("retry_for", DEFAULT_RETRY_FOR),
    )


def read_servers(args: Sequence[str], options: SpecOptions, example: str) -> NatsServers:
    """
    Read the URL and L{CONNECTION_OPTIONS}, but not the files.

    @raise ConfigError: one of them is wrong, or does not go with another.
    """
    addresses = read_addresses(args, options, _SCHEMES, example)
    given = options.given
    has_tls = addresses.scheme == "tls"
    tls = read_tls_if(options, is_used=has_tls, goes_with="a tls:// URL")
    if ("user" in options) != ("password_file" in options):
        raise options.problem("user= and password_file= go together")
    ways = [key for key in SECRET_FILES if key in options]
    if len(ways) > 1:
        raise options.problem(f"{ways[0]}= and {ways[1]}= are two ways to log in; give one of them")
    for key in ("user", *ways):
        if given.get(key) == "":
            raise options.problem(f"{key}= is empty")
    check_plaintext(
        options, ("password_file",), is_encrypted=has_tls, is_local=addresses.are_local, remedy="use a tls:// URL"
    )
    return NatsServers(
        addresses,
        tls,
        **{key: given.get(key) for key in ("user", *SECRET_FILES)},
    )


#: The secrets, and what TLS takes, if any.
NatsAccess: TypeAlias = "tuple[NatsSecrets, ssl.SSLContext | None]"


def read_access(servers: NatsServers, options: SpecOptions) -> NatsAccess:
    """
    Read the files: what it takes to connect.

    @raise ConfigError: one of them is missing or wrong; nothing of it is quoted.
    """
    return _read_secrets(servers, options), make_context_if(servers.tls, options)


def _read_secrets(servers: NatsServers, options: SpecOptions) -> NatsSecrets:
    if servers.password_file is not None:
        return NatsSecrets(password=read_secret(servers.password_file, options, "password_file"))
    if servers.nkey_file is not None:
        seed = read_secret(servers.nkey_file, options, "nkey_file")
        return NatsSecrets(seed=_checked_seed(seed, servers.nkey_file, options, "nkey_file"))
    if servers.creds_file is not None:
        return _read_creds(servers.creds_file, options)
    return NatsSecrets()


def _read_creds(path: str, options: SpecOptions) -> NatsSecrets:
    """Read them here: nats-py reads such a file for ever if it holds no JWT."""
    try:
        content, _ = read_file(path)
    except ConfigError as error:
        raise options.problem(f"creds_file: {error.problem}") from None
    jwt, seed = _JWT.search(content), _SEED.search(content)
    if jwt is None or seed is None:
        missing = "JWT" if jwt is None else "seed"
        raise options.problem(f"creds_file: {quoted(path)} holds no {missing} of a user, as nsc writes it.")
    checked = _checked_seed(seed[1].decode(), path, options, "creds_file")
    return NatsSecrets(jwt=jwt[1].decode(), seed=checked, payload_limit=payload_limit(jwt[1]))


def payload_limit(jwt: bytes) -> int | None:
    """
    Return the limit on payloads that a JWT of a user has; None if it has none. The server ends a connection for a
    larger message, and tells the limit to nobody.
    """
    claims = jwt.split(b".")[1:2]
    try:
        decoded = msgspec.json.decode(urlsafe_b64decode(claims[0] + b"=="))
        limit = decoded["nats"]["payload"]
    except (IndexError, KeyError, TypeError, ValueError, msgspec.MsgspecError):
        return None
    return limit if type(limit) is int and limit > 0 else None


def _checked_seed(seed: str, path: str, options: SpecOptions, option: str) -> str:
    with package_for(options.observer, "nkeys>=0.2", f"{option}="):
        import nkeys  # type: ignore[import-untyped]
    try:
        nkeys.from_seed(bytearray(seed.encode())).wipe()
    except Exception:
        raise options.problem(f"{option}: {quoted(path)} does not hold the seed of a key, SU….") from None
    return seed


def stream_name(text: str) -> str:
    """
    Check the name of a stream or consumer.

    @raise ValueError: it is none.
    """
    if not _STREAM_NAME.fullmatch(text) or any(char in ".*>/\\" for char in text):
        raise ValueError("it takes a name without blanks, dots, slashes, * and >, such as LOGS")
    return text


def _read_subject(text: str, options: SpecOptions) -> Callable[[Message], str]:
    if not text:
        raise options.problem(f"the URL names no subject; write for example {_EXAMPLE}")
    tokens = [found[0] for found in _TOKEN.finditer(text) if found.start() == 0 or text[found.start() - 1] == "."]
    if len(tokens) > MOST_TOKENS:
        raise options.problem(f"subject {quoted(text)} has more than {MOST_TOKENS} tokens")
    try:
        return subject_of([_read_token(token) for token in tokens])
    except ValueError as error:
        raise options.problem(f"subject {quoted(text)}: {error}") from None


def _read_token(text: str) -> Template | str:
    if "$(" in text:
        raise ValueError("functions such as $(format-json) can't be in a subject")
    template = Template.parse(text)
    if template.has_macros:
        return template
    plain = text.replace("$$", "$")
    if not plain or _NOT_SAFE.search(plain) or len(plain) > LONGEST_TOKEN:
        raise ValueError(
            f"{quoted(text)} between two dots is no token; it takes letters, digits, - and _, up to {LONGEST_TOKEN}"
        )
    return plain


def subject_of(tokens: Sequence[Template | str]) -> Callable[[Message], str]:
    """
    Return what makes the subject of a message.

    A value never adds a token, whatever its sender wrote: all but letters, digits, C{-} and C{_} comes out as C{_}, an
    empty value as C{_}, and a long one is cut.
    """
    if all(isinstance(token, str) for token in tokens):
        subject = ".".join(map(str, tokens))
        return lambda _: subject
    return lambda message: ".".join(
        token if isinstance(token, str) else safe_token(token.render(message)) for token in tokens
    )


def safe_token(text: str) -> str:
    """Return a text as one token of a subject."""
    return _NOT_SAFE.sub("_", text[:LONGEST_TOKEN]) or "_"
