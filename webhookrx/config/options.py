"""
The table of options, from which the command line, the YAML file, C{--check} and the docs are made.

L{webhookrx.settings} has the defaults.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.quantities import format_duration, read_flag
from webhookrx.settings import MESSAGE_FILE, PLAIN_PORT, TLS_PORT, Settings, Source
from webhookrx.text import table

_SOURCE = Source()
_SETTINGS = Settings(sources=(), observers=())


class Kind(Enum):
    """What an option takes."""

    FLAG = "yes or no"
    TEXT = "text"
    FILE = "file name"
    DIRECTORY = "directory name"
    LIMITS = "names and values"
    LABELS = "labels and values"
    TIME = "a time such as 30s"


class OptionScope(Enum):
    """
    Whether an option is for a source, which may have it anywhere in a YAML file; for the service, at its top level; or
    for the command line alone.
    """

    SOURCE = "source"
    SERVICE = "service"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Option:
    """
    An option.

    @ivar name: that on the command line, with C{-}.
    @ivar help: one line, no full stop.
    @ivar value: the word for its value in help texts; empty for a flag.
    @ivar default: in words.
    @ivar choices: the allowed values; empty: all that fit the kind.
    @ivar repeat: it may be given several times, or as a YAML list.
    @ivar plural: another YAML key of the same meaning.
    @ivar secret: its value is never shown.
    """

    name: str
    scope: OptionScope
    kind: Kind
    help: str
    value: str = ""
    default: str = "none"
    choices: tuple[str, ...] = ()
    short: str = ""
    repeat: bool = False
    plural: str = ""
    secret: bool = False

    @property
    def is_spec(self) -> bool:
        """Whether its value is an endpoint or observer string."""
        return self.name in ("port", "admin", "observer")

    @property
    def yaml_keys(self) -> tuple[str, ...]:
        """Its keys in a YAML file, with C{_}; the first is the usual one."""
        if self.scope is OptionScope.COMMAND:
            return ()
        key = self.name.replace("-", "_")
        return (self.plural, key) if self.plural else (key,)


OPTIONS: tuple[Option, ...] = (
    Option(
        "port",
        OptionScope.SOURCE,
        Kind.TEXT,
        "where to listen: a port number, or a tcp:, tcp6:, ssl:, unix:, systemd: or haproxy: endpoint string",
        value="ENDPOINT",
        default=f"{PLAIN_PORT}, or {TLS_PORT} with a key",
        short="p",
        repeat=True,
    ),
    Option(
        "source",
        OptionScope.SOURCE,
        Kind.TEXT,
        "the variant: webhook keeps the body unchanged, webhook-json parses it",
        value="VARIANT",
        default=_SOURCE.variant,
        choices=("webhook", "webhook-json"),
    ),
    Option(
        "paths",
        OptionScope.SOURCE,
        Kind.TEXT,
        "a static path or a regular expression that the whole path must match, or a JSON list of them",
        value="PATTERN",
        default=" ".join(_SOURCE.paths),
        repeat=True,
    ),
    Option(
        "health",
        OptionScope.SOURCE,
        Kind.TEXT,
        "a path for health checks: GET, HEAD and OPTIONS get 200 if the service is ready, else 503, without a token",
        value="PATH",
    ),
    Option(
        "allow-slow-patterns",
        OptionScope.SOURCE,
        Kind.FLAG,
        "accept path patterns that RE2 can't run, in connector rules too; a hostile path may then block the receiver",
        default="no",
    ),
    Option(
        "prefix",
        OptionScope.SOURCE,
        Kind.TEXT,
        "text before the name of each parsed name-value pair (webhook-json only)",
        value="TEXT",
        default="empty",
    ),
    Option(
        "on-parse-error",
        OptionScope.SOURCE,
        Kind.TEXT,
        "what to do with a body that is neither JSON nor a form: keep it as MESSAGE, or reject it with 400 "
        "(webhook-json only)",
        value="ACTION",
        default=_SOURCE.on_parse_error,
        choices=("keep", "reject"),
    ),
    Option(
        "keep-message",
        OptionScope.SOURCE,
        Kind.TEXT,
        "which messages have the body as MESSAGE: all, or only those that could not be parsed (webhook-json only)",
        value="WHEN",
        default=_SOURCE.keep_message,
        choices=("yes", "unparsed"),
    ),
    Option(
        "auth-token",
        OptionScope.SOURCE,
        Kind.TEXT,
        "a token that requests must carry; each of several is accepted. Other users of this machine can read it in the "
        "process list, so prefer --auth-token-file",
        value="TOKEN",
        repeat=True,
        secret=True,
    ),
    Option(
        "auth-token-file",
        OptionScope.SOURCE,
        Kind.FILE,
        "a file with one accepted token per line; # starts a comment",
        value="FILE",
        repeat=True,
    ),
    Option(
        "include-request-headers",
        OptionScope.SOURCE,
        Kind.FLAG,
        "put the request headers into webhook.headers, credentials masked",
        default="no",
    ),
    Option(
        "proxy-header",
        OptionScope.SOURCE,
        Kind.TEXT,
        "the one request header that is trusted for the client address; yes means x-forwarded-for",
        value="NAME",
    ),
    Option(
        "tls-key-file",
        OptionScope.SOURCE,
        Kind.FILE,
        "unencrypted private key in PEM; with it every endpoint of the source speaks TLS",
        value="FILE",
    ),
    Option(
        "tls-cert-file",
        OptionScope.SOURCE,
        Kind.FILE,
        "certificate in PEM, or the whole chain with the host certificate first",
        value="FILE",
    ),
    Option(
        "tls-peer-verify",
        OptionScope.SOURCE,
        Kind.FLAG,
        "refuse clients without a valid certificate; needs --tls-ca-file, --tls-ca-dir or --tls-use-system-cert-store",
        default="no",
    ),
    Option(
        "tls-ca-file",
        OptionScope.SOURCE,
        Kind.FILE,
        "trusted CA certificates in PEM",
        value="FILE",
    ),
    Option(
        "tls-ca-dir",
        OptionScope.SOURCE,
        Kind.DIRECTORY,
        "directory of trusted CA certificates with hashed names (openssl rehash)",
        value="DIR",
    ),
    Option(
        "tls-use-system-cert-store",
        OptionScope.SOURCE,
        Kind.FLAG,
        "trust the certificate store of the system",
        default="no",
    ),
    Option(
        "allow-plaintext-token",
        OptionScope.SERVICE,
        Kind.FLAG,
        "accept tokens on plain HTTP, because a proxy in front speaks TLS",
        default="no",
    ),
    Option(
        "observer",
        OptionScope.SERVICE,
        Kind.TEXT,
        "where messages go: file:PATH, stdout, spool:DIR:observer=SPEC, http:URL, syslog:tcp:HOST:PORT, "
        "observer:DOTTED.NAME, or the name of a plugin",
        value="SPEC",
        default=f"file:{MESSAGE_FILE} in $STATE_DIRECTORY, else the working directory",
        short="o",
        repeat=True,
        plural="observers",
    ),
    Option(
        "ack",
        OptionScope.SERVICE,
        Kind.TEXT,
        "what a 200 means: the message survives a power cut, is with the operating system, or is in memory",
        value="LEVEL",
        default=_SETTINGS.ack,
        choices=("durable", "written", "queued"),
    ),
    Option(
        "limit",
        OptionScope.SERVICE,
        Kind.LIMITS,
        "a limit for senders, such as body=10MiB or header_time=10s",
        value="NAME=VALUE",
        default="see the table of limits",
        repeat=True,
        plural="limits",
    ),
    Option(
        "drain-timeout",
        OptionScope.SERVICE,
        Kind.TIME,
        "time to finish requests in progress after SIGTERM",
        value="TIME",
        default=format_duration(_SETTINGS.drain_timeout),
    ),
    Option(
        "admin",
        OptionScope.SERVICE,
        Kind.TEXT,
        "the endpoint for health and metrics: a port number of the loopback address, or a tcp:, tcp6:, unix: or "
        "systemd: endpoint string",
        value="ENDPOINT",
    ),
    Option(
        "workers",
        OptionScope.SERVICE,
        Kind.TEXT,
        "number of processes that receive, all on the same endpoints; auto means one for each usable CPU",
        value="NUMBER",
        default=str(_SETTINGS.workers),
    ),
    Option(
        "rules",
        OptionScope.SERVICE,
        Kind.FILE,
        "a YAML file of connector rules: run the connectors that it has for this router",
        value="FILE",
    ),
    Option(
        "router-name",
        OptionScope.SERVICE,
        Kind.TEXT,
        "the name of this router, for the selectors of rules and the names of connectors",
        value="NAME",
        default="the host name",
    ),
    Option(
        "router-label",
        OptionScope.SERVICE,
        Kind.LABELS,
        "a label of this router, for selectors; messages have it in meta.router.labels",
        value="KEY=VALUE",
        repeat=True,
        plural="router_labels",
    ),
    Option(
        "senders",
        OptionScope.SERVICE,
        Kind.DIRECTORY,
        "a directory of sender definitions (*.yaml) for Classify and Parse, in addition to the built-in ones",
        value="DIR",
    ),
    Option(
        "state-dir",
        OptionScope.SERVICE,
        Kind.DIRECTORY,
        "where to store the last good connectors, for a restart with unusable rules or certificates",
        value="DIR",
        default="$STATE_DIRECTORY, else none",
    ),
    Option(
        "record",
        OptionScope.SERVICE,
        Kind.DIRECTORY,
        "write requests into this directory as they came, credentials masked, for webhookrx classify and webhookrx try",
        value="DIR",
    ),
    Option(
        "config",
        OptionScope.COMMAND,
        Kind.FILE,
        "a YAML file with the same options, spelled with _ or -; the command line wins over it",
        value="FILE",
    ),
    Option(
        "check",
        OptionScope.COMMAND,
        Kind.FLAG,
        "validate everything, print what would run and where each setting came from, and exit with 0 or 1",
        default="no",
    ),
)

BY_NAME: dict[str, Option] = {option.name: option for option in OPTIONS}

BY_YAML_KEY: dict[str, Option] = {key: option for option in OPTIONS for key in option.yaml_keys}


def parse_flag(text: str) -> bool:
    """
    Return the value of a flag; quotes around it in YAML make no difference.

    @raise ConfigError: it is another word.
    """
    value = read_flag(text)
    if value is None:
        raise ConfigError(f"{quoted(text)} is neither yes nor no (on, off, true and false mean the same).")
    return value


def shown_name(word: str) -> str:
    """
    Return as much of an unknown option or key as is safe to show. Without its C{=} or C{:}, as in
    C{--auth-tokenSECRET} or C{auth_token SECRET}, a secret stands behind the name.
    """
    name = re.match(r"[\w.-]*", word)
    shown = name[0] if name else ""
    folded = shown.replace("_", "-")
    for option in OPTIONS:
        if option.secret and folded.startswith(option.name):
            shown = shown[: len(option.name)]
    return shown if shown == word else f"{shown}…"


def option_table() -> str:
    """Return the options as a Markdown table, in the order of C{--help}."""
    rows = (
        (
            f"`{f'-{option.short}, ' if option.short else ''}{f'--{option.name} {option.value}'.rstrip()}`",
            ", ".join(f"`{key}`" for key in option.yaml_keys),
            "yes" if option.repeat else "",
            option.default,
            option.help + (f": {', '.join(f'`{choice}`' for choice in option.choices)}" if option.choices else ""),
        )
        for option in OPTIONS
    )
    return table(("option", "YAML key", "repeat", "default", "meaning"), rows)
