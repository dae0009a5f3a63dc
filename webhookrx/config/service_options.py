"""
The rows of the table of options that are for the service as a whole, or for its command line alone.
"""

from __future__ import annotations

from typing import Final

from webhookrx.config.option import Kind, Option, OptionScope
from webhookrx.quantities import format_duration
from webhookrx.settings import MESSAGE_FILE, Settings

_SETTINGS: Final = Settings(sources=(), observers=())

SERVICE_OPTIONS: Final[tuple[Option, ...]] = (
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
        "console",
        OptionScope.SERVICE,
        Kind.TEXT,
        "the console that this receiver is enrolled at, by its port for routers: the rules come from it, unless the "
        "receiver has sources of its own",
        value="URL",
    ),
    Option(
        "console-dir",
        OptionScope.SERVICE,
        Kind.DIRECTORY,
        "where the identity of this router and the rules of its console are",
        value="DIR",
        default="console in $STATE_DIRECTORY, else it must be given",
    ),
    Option(
        "console-token-file",
        OptionScope.SERVICE,
        Kind.FILE,
        "a file with the token by which the first start enrols this router at its console",
        value="FILE",
    ),
    Option(
        "key-directory",
        OptionScope.SERVICE,
        Kind.DIRECTORY,
        "a directory below which the keys, certificates, secrets and tokens lie that rules of the console may name",
        value="DIR",
        default="/etc/webhookrx/tls",
        repeat=True,
        plural="key_directories",
    ),
    Option(
        "data-directory",
        OptionScope.SERVICE,
        Kind.DIRECTORY,
        "a directory below which the JSON files lie that expressions of rules of the console may name",
        value="DIR",
        repeat=True,
        plural="data_directories",
    ),
    Option(
        "no-console-tap",
        OptionScope.SERVICE,
        Kind.FLAG,
        "let nobody tap messages through the console",
        default="no",
    ),
    Option(
        "senders",
        OptionScope.SERVICE,
        Kind.DIRECTORY,
        "a directory of sender definitions (*.yaml) for Classify and Parse, in addition to the built-in ones",
        value="DIR",
    ),
    Option(
        "network",
        OptionScope.SERVICE,
        Kind.NETWORKS,
        "a list of networks for --allow: its name, and a file with one network per line or a JSON file, with a JSON "
        "pointer to the list in it",
        value="NAME=FILE#POINTER",
        repeat=True,
        plural="networks",
    ),
    Option(
        "signing-certs",
        OptionScope.SERVICE,
        Kind.FILE,
        "a file with keys or certificates with which senders sign",
        value="FILE",
        repeat=True,
    ),
    Option(
        "fetch-keys",
        OptionScope.SERVICE,
        Kind.FLAG,
        "fetch keys of senders from where the definition of the sender says that they are published",
        default="no",
    ),
    Option(
        "control",
        OptionScope.SERVICE,
        Kind.FILE,
        "the control socket, for webhookrx tap and webhookrx status; only its owner and root may use it",
        value="PATH",
        default="control.sock in $RUNTIME_DIRECTORY, else none",
    ),
    Option(
        "state-dir",
        OptionScope.SERVICE,
        Kind.DIRECTORY,
        "where to store the last good connectors, for a restart with unusable rules or files, and ids of deliveries",
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
