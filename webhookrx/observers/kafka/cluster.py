"""
A Kafka cluster in a spec string, and the properties by which librdkafka connects to it, for observers and relays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhookrx.config.files import read_file
from webhookrx.config.observers import OptionText
from webhookrx.config.specs import SpecOptions
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.observers.addresses import check_plaintext, is_loopback, read_addresses
from webhookrx.observers.client_tls import TLS_OPTIONS, TLS_SECRETS, ClientTLS, read_tls_if
from webhookrx.observers.secret_files import read_secret

PACKAGE: Final = "confluent-kafka>=2.16"
_EXAMPLE: Final = "kafka:kafka://b1.example.com:9092,b2.example.com:9092/logs"

CLUSTER_OPTIONS: Final = (
    "tls",
    "user",
    "password_file",
    "sasl",
    "librdkafka_file",
    "allow_plaintext",
    *TLS_OPTIONS,
)
CLUSTER_FILES: Final = ("password_file", "librdkafka_file", *TLS_OPTIONS)
CLUSTER_SECRETS: Final = ("password_file", "librdkafka_file", *TLS_SECRETS)

CLUSTER_TEXTS: Final = {
    "tls": OptionText("`yes`, `no` to this machine", "`no` connects without TLS"),
    "user": OptionText("none", "the name of a user, for SASL; goes with `password_file`"),
    "sasl": OptionText("`plain`", "how password and user are shown: `plain`, `scram-256` or `scram-512`"),
    "librdkafka_file": OptionText(
        "none", "file with further properties of librdkafka, `NAME=VALUE`, one a line; OAUTHBEARER is set up there"
    ),
}

MECHANISMS: Final = {"plain": "PLAIN", "scram-256": "SCRAM-SHA-256", "scram-512": "SCRAM-SHA-512"}

#: What Kafka takes (org.apache.kafka.common.internals.Topic).
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")

#: A line of librdkafka_file, as librdkafka and Java write properties.
_PROPERTY: Final = re.compile(r"(?P<name>[a-z][a-z0-9._]*)[ \t]*=[ \t]*(?P<value>.*)")

#: The properties that librdkafka_file may set: none of them decides what is safe, how long to wait, whom to trust, or
#: which code runs. What a later librdkafka adds is not among them until somebody has looked at it.
_TUNING: Final = (
    "batch.num.messages",
    "batch.size",
    "broker.address.family",
    "broker.address.ttl",
    "client.dns.lookup",
    "client.id",
    "client.rack",
    "compression.level",
    "connections.max.idle.ms",
    "fetch.error.backoff.ms",
    "fetch.min.bytes",
    "fetch.wait.max.ms",
    "linger.ms",
    "metadata.max.age.ms",
    "receive.message.max.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "socket.keepalive.enable",
    "socket.nagle.disable",
    "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
    "sticky.partitioning.linger.ms",
    "topic.metadata.refresh.fast.interval.ms",
    "topic.metadata.refresh.interval.ms",
    "topic.metadata.refresh.sparse",
)
_OAUTHBEARER: Final = (
    "assertion.algorithm",
    "assertion.claim.aud",
    "assertion.claim.exp.seconds",
    "assertion.claim.iss",
    "assertion.claim.jti.include",
    "assertion.claim.nbf.seconds",
    "assertion.claim.sub",
    "assertion.file",
    "assertion.jwt.template.file",
    "assertion.private.key.file",
    "assertion.private.key.passphrase",
    "client.credentials.client.id",
    "client.credentials.client.secret",
    "client.id",
    "client.secret",
    "extensions",
    "grant.type",
    "method",
    "scope",
    "sub.claim.name",
    "token.endpoint.url",
)
_MECHANISM_NAMES: Final = ("sasl.mechanism", "sasl.mechanisms")
ALLOWED: Final = frozenset(
    {*_TUNING, *_MECHANISM_NAMES, "https.ca.location", *(f"sasl.oauthbearer.{name}" for name in _OAUTHBEARER)}
)
_LINGER: Final = re.compile(r"[0-9]{1,3}")
_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"

Properties = dict[str, Any]


class SilentLog:
    """Takes the lines of librdkafka's own log, of which there should be none."""

    def log(self, *_: object) -> None:
        """Write nothing: an error that matters comes by C{error_cb}."""


@dataclass(frozen=True, slots=True)
class KafkaCluster:
    """
    Where a cluster is, and how to show it who we are.

    @ivar servers: C{HOST:PORT,HOST:PORT}.
    @ivar is_local: nothing for it leaves this machine.
    @ivar tls: None for none.
    @ivar allow_plaintext: secrets may go unencrypted to another machine.
    @ivar problem: makes an error that names the observer or broker.
    """

    servers: str
    is_local: bool
    tls: ClientTLS | None
    user: str | None
    password_file: str | None
    mechanism: str
    librdkafka_file: str | None
    allow_plaintext: bool
    options: SpecOptions

    @property
    def has_secret(self) -> bool:
        """Whether a secret is shown to it, so that no text of its own may be quoted."""
        return self.password_file is not None or self.librdkafka_file is not None

    def properties(self) -> Properties:
        """
        Read the files, and return what librdkafka connects by.

        Its own log is silent: it may repeat a line a hundred times a second, and what an operator needs comes by
        C{error_cb}. It sends no metrics of the client to the cluster (KIP-714).

        @raise ConfigError: a file is missing or wrong. Nothing of it is quoted.
        """
        own: Properties = {
            "bootstrap.servers": self.servers,
            "log_level": 0,
            "log.connection.close": False,
            "enable.metrics.push": False,
            "client.id": "webhookrx",
            # A broker that is back is used soon, not after the ten seconds of the default.
            "reconnect.backoff.max.ms": 2000,
        }
        if self.librdkafka_file is not None:
            own |= self._read_file(self.librdkafka_file)
        has_sasl = self.user is not None or any(name.startswith("sasl.") for name in own)
        if self.user is not None and self.password_file is not None:
            own["sasl.mechanism"] = self.mechanism
            own["sasl.username"] = self.user
            own["sasl.password"] = read_secret(self.password_file, self.options, "password_file")
        if self.tls is not None:
            own |= self._read_tls(self.tls)
        own["security.protocol"] = f"{'sasl_' if has_sasl else ''}{'plaintext' if self.tls is None else 'ssl'}"
        return own

    def _read_tls(self, tls: ClientTLS) -> Properties:
        try:
            tls.check()
        except ConfigError as error:
            raise self.options.problem(error.problem) from None
        files = {
            # Without ca_file librdkafka looks for the system's store in the usual places.
            "ssl.ca.location": tls.ca_file or "probe",
            "ssl.certificate.location": tls.cert_file,
            "ssl.key.location": tls.key_file,
        }
        checks = {"enable.ssl.certificate.verification": True, "ssl.endpoint.identification.algorithm": "https"}
        return {**checks, **{name: path for name, path in files.items() if path is not None}}

    def _read_file(self, path: str) -> Properties:
        properties = read_properties(path, self.options)
        has_secret = any(name.startswith("sasl.") for name in properties)
        if has_secret and self.user is not None:
            raise self.options.problem("librdkafka_file: it sets sasl properties, and user= is given, too")
        if has_secret and self.tls is None and not (self.is_local or self.allow_plaintext):
            raise self.options.problem(
                "librdkafka_file: its sasl properties would be shown to the network, which is not encrypted; use "
                "tls=yes, or write allow_plaintext=yes when something between speaks TLS"
            )
        return properties


def read_cluster(args: Sequence[str], options: SpecOptions) -> tuple[KafkaCluster, str]:
    """
    Read the cluster of a spec string, and its topic, but not the files.

    @raise ConfigError: an argument or option is wrong, or does not go with another.
    """
    addresses = read_addresses(args, options, {"kafka": 9092}, _EXAMPLE)
    if not _TOPIC.fullmatch(addresses.path):
        raise options.problem(
            f"{quoted(addresses.path)} is no topic, which has up to 249 ASCII letters, digits, dots, underscores and "
            f"hyphens; write for example {_EXAMPLE}"
        )
    has_tls = options.flag("tls", not addresses.are_local)
    tls = read_tls_if(options, is_used=has_tls, goes_with="tls=yes")
    if ("user" in options) != ("password_file" in options):
        raise options.problem("user= and password_file= go together")
    if "sasl" in options and "user" not in options:
        raise options.problem("sasl= goes with user= and password_file=")
    check_plaintext(
        options, ("password_file",), is_encrypted=has_tls, is_local=addresses.are_local, remedy="use tls=yes"
    )
    cluster = KafkaCluster(
        servers=str(addresses),
        is_local=addresses.are_local,
        tls=tls,
        user=options.given.get("user"),
        password_file=options.given.get("password_file"),
        mechanism=MECHANISMS[options.choice("sasl", tuple(MECHANISMS), "plain")],
        librdkafka_file=options.given.get("librdkafka_file"),
        allow_plaintext=options.flag("allow_plaintext", False),
        options=options,
    )
    return cluster, addresses.path


def read_properties(path: str, options: SpecOptions) -> Properties:
    """
    Read the file of librdkafka_file: C{NAME=VALUE}, one a line, and lines that begin with C{#}.

    @raise ConfigError: it can't be read, or a line is malformed or sets what it may not. Values are not quoted.
    """

    def problem(text: str) -> ConfigError:
        return options.problem(f"librdkafka_file: {text}")

    try:
        content, _ = read_file(path)
        lines = content.decode("utf-8-sig").split("\n")
    except ConfigError as error:
        raise problem(error.problem) from None
    except UnicodeDecodeError:
        raise problem(f"{quoted(path)} is not UTF-8.") from None
    properties: Properties = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if line and not line.startswith("#"):
            name, value = _property(line, f"{quoted(path)}, line {number}", problem)
            if name in properties:
                raise problem(f"{quoted(path)}, line {number} sets {name} again.")
            properties[name] = value
    return properties


def _property(line: str, where: str, problem: Callable[[str], ConfigError]) -> tuple[str, str]:
    found = _PROPERTY.fullmatch(line)
    if found is None:
        raise problem(f"{where} is not NAME=VALUE.")
    name, value = found["name"], found["value"]
    if name not in ALLOWED:
        raise problem(f"{where} sets {name}, which it may not; it may set {', '.join(sorted(ALLOWED))}.")
    if name in _MECHANISM_NAMES and value != "OAUTHBEARER":
        raise problem(f"{where}: {name} may be OAUTHBEARER only; for others there are sasl=, user= and password_file=.")
    if name == "linger.ms" and not _LINGER.fullmatch(value):
        raise problem(f"{where}: linger.ms takes 0 to 999.")
    if name == _ENDPOINT and not (value.startswith("https://") or is_loopback(_host(value))):
        raise problem(f"{where}: {name} does not begin with https://, so that its secret would be shown.")
    return name, value


def _host(url: str) -> str:
    """Return the host of an C{http} URL; nothing, if it is another one."""
    found = re.match(r"http://(?:\[([0-9a-fA-F:.]+)\]|([^/:?#@\[\]\\]+))(?:[:/?#]|$)(?!.*@)", url)
    return (found[1] or found[2]) if found else ""
