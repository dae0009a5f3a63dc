"""
The types of a rules file, and the names that rules, routers and labels may have.

The reader of the file, its JSON Schema and the tables of the docs come from these types.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from msgspec import Meta

from webhookrx.diagnostics import quoted_short
from webhookrx.errors import ConfigError
from webhookrx.guard.words import GuardWords
from webhookrx.message.escapes import TEXT_ESCAPES
from webhookrx.router.steps.step import Preprocessing, StrictStruct

DEFAULT_PATHS: Final = ("/events", "/events/(?P<HOST>.*)")
"""Specification, table 2.2."""

CONNECTOR_TYPE: Final = "webhook"
"""C{meta.connector.type} of every connector."""

PROTOCOLS: Final = ("HTTPS", "HTTP")

LONGEST_NAME: Final = 253
"""Characters of the name of a router or a connector: those of a DNS name (RFC 1035 section 2.3.4)."""

LONGEST_RULE_NAME: Final = 63
"""Characters of the name of a rule, and of a suffix."""

_LONGEST_KEY: Final = 63
_LONGEST_VALUE: Final = 63
NAME_PATTERN: Final = "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
"""The names of routers, and the keys and values of labels."""

RULE_NAME_PATTERN: Final = f"^[^\ud800-\udfff{re.escape(''.join(TEXT_ESCAPES))}]+$"
"""The names and suffixes of rules: all characters but those that end lines or mislead people. The specification sets
no limit."""

_NAME: Final = re.compile(NAME_PATTERN)
_RULE_NAME: Final = re.compile(RULE_NAME_PATTERN)
_PREFIX: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_ALLOWED: Final = "ASCII letters, digits and . _ -, with a letter or digit at both ends"

# For the JSON Schema; the reader's own checks have better sentences.
_RULE_NAME_SCHEMA: Final = {"minLength": 1, "maxLength": LONGEST_RULE_NAME}
_HOST_NAME_SCHEMA: Final = {"pattern": NAME_PATTERN, "maxLength": LONGEST_NAME}
_PORT_SCHEMA: Final = {"minimum": 1, "maximum": 65535}


class SpecifiedRule(StrictStruct, frozen=True):
    """The fields of a connector rule that the specification has."""

    name: Annotated[str, Meta(description="Its name, unique in the file.", extra_json_schema=_RULE_NAME_SCHEMA)]
    protocol: Annotated[str, Meta(description="`HTTPS` or `HTTP`.", extra_json_schema={"enum": list(PROTOCOLS)})]
    port: Annotated[
        int,
        Meta(description="The TCP port, 1 to 65535, that receives the POST requests.", extra_json_schema=_PORT_SCHEMA),
    ]
    labels: Annotated[
        dict[str, str], Meta(description="Labels of the rule; messages have them in `meta.connector.labels`.")
    ] = {}
    selector: Annotated[
        str, Meta(description="A query on routers; an empty one matches all, `name = my-router` matches one.")
    ] = ""
    suffix: Annotated[
        str, Meta(description="The last part of the connector's name; by default the name of the rule.")
    ] = ""
    description: Annotated[str, Meta(description="Free text.")] = ""
    preprocessing: Annotated[Preprocessing, Meta(description="The steps for each message of its connectors.")] = (
        Preprocessing()
    )
    paths: Annotated[
        tuple[str, ...],
        Meta(
            description="Static paths or regular expressions that the whole path must match.",
            extra_json_schema={"minItems": 1},
        ),
    ] = DEFAULT_PATHS
    include_request_headers: Annotated[
        bool,
        Meta(description='Put the request headers into `log.attributes["webhook.headers"]`, with credentials masked.'),
    ] = False
    health: Annotated[str, Meta(description="A path for health checks of load balancers.")] = ""
    key_file: Annotated[str, Meta(description="HTTPS only: absolute path of the unencrypted private key, in PEM.")] = ""
    cert_file: Annotated[
        str, Meta(description="HTTPS only: absolute path of the certificate or the whole chain, in PEM.")
    ] = ""


def _extension(description: str) -> Meta:
    """Describe a field that the specification does not have."""
    return Meta(description=f"Extension. {description}", extra_json_schema={"x-extension": True})


class Rule(SpecifiedRule, frozen=True):
    """A connector rule: on which routers there is a connector, and what it does."""

    sender: Annotated[
        str, _extension("The one kind of sender that the connector hears, by the id of its definition.")
    ] = ""
    secrets_file: Annotated[
        str | tuple[str, ...],
        _extension(
            "Absolute path of a file with secrets of the sender, one `NAME = VALUE` a line; or a list of paths."
        ),
    ] = ()
    verify: Annotated[
        str, _extension("`required`, `note` or `off`: whether requests must be signed by the sender.")
    ] = ""
    handshake: Annotated[bool | None, _extension("Whether to answer the questions of the sender; by default yes.")] = (
        None
    )
    split: Annotated[
        str,
        _extension(
            "Make each event of a body one message: `yes` (as the sender does it), `lines`, `documents`, or a "
            "JSON pointer."
        ),
    ] = ""
    idempotency: Annotated[
        str, _extension("How long to remember the ids of deliveries, such as `24h`, and store none of them twice.")
    ] = ""
    quota: Annotated[
        dict[str, str],
        _extension(
            "How much may come: `messages`, such as `100/s`, `bytes`, such as `10MiB/s`, `burst`, such as `10s`, and "
            "`per`: `source`, `token` or `address`."
        ),
    ] = {}
    allow: Annotated[
        tuple[str, ...],
        _extension("Networks that requests may come from, and names of lists in the `networks` of the routers."),
    ] = ()
    allow_clients: Annotated[
        tuple[str, ...],
        _extension(
            "Names of client certificates that may send, such as `*.example.net`, or fingerprints `sha256:HEX`; "
            "needs `ca_file`."
        ),
    ] = ()
    ca_file: Annotated[
        str,
        _extension("HTTPS only: absolute path of CA certificates in PEM; clients must show a certificate of theirs."),
    ] = ""
    auth_token_file: Annotated[
        str | tuple[str, ...],
        _extension("Absolute path of a file with one accepted token a line, or a list of paths."),
    ] = ()
    auth_token_in: Annotated[
        str,
        _extension(
            "Where requests show their token: `header:NAME`, `query:NAME`, `path:GROUP` or `basic`; by default "
            "`header:authorization`."
        ),
    ] = ""
    public_url: Annotated[
        str,
        _extension("Scheme, host and port of the connector as its sender knows them, for senders that sign the URL."),
    ] = ""
    sender_settings: Annotated[
        dict[str, str | tuple[str, ...]], _extension("What the definition of the sender leaves to you, by name.")
    ] = {}

    @property
    def guard_words(self) -> GuardWords:
        """The options of the guard of its connectors."""
        token_files = _listed(self.auth_token_file)
        return GuardWords(
            sender=self.sender,
            secrets_file=_listed(self.secrets_file),
            verify=self.verify,
            handshake=self.handshake,
            split=self.split,
            idempotency=self.idempotency,
            quota=tuple(f"{name}={value}" for name, value in self.quota.items()),
            allow=self.allow,
            allow_clients=self.allow_clients,
            auth_token_file=token_files,
            has_tokens=bool(token_files),
            auth_token_in=self.auth_token_in,
            public_url=self.public_url,
            sender_settings={name: _listed(value) for name, value in self.sender_settings.items()},
        )


def _listed(value: str | tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,) if value else ()
    return value


class Host(StrictStruct, frozen=True):
    """A router, for previews: what selectors can ask for."""

    name: Annotated[str, Meta(description="The name of the router.", extra_json_schema=_HOST_NAME_SCHEMA)]
    labels: Annotated[dict[str, str], Meta(description="Its labels: `label.NAME` in selectors.")] = {}
    hostname: Annotated[str, Meta(description="The name of the machine, without a domain.")] = ""
    fqdn: Annotated[str, Meta(description="The name of the machine, with its domain.")] = ""
    ip: Annotated[str | tuple[str, ...], Meta(description="Its address, or a list of addresses.")] = ()
    os: Annotated[str, Meta(description="Its operating system, such as `linux`.")] = ""
    arch: Annotated[str, Meta(description="Its processor, such as `x86_64`.")] = ""
    version: Annotated[str, Meta(description="Its version of webhookrx.")] = ""
    meta: Annotated[
        dict[str, Any], Meta(description="Further values for previews: `meta.NAME`, which routers do not have.")
    ] = {}


class RulesFile(StrictStruct, frozen=True):
    """A whole rules file."""

    connector_rules: Annotated[tuple[Rule, ...], Meta(description="The rules; their order does not matter.")] = ()
    hosts: Annotated[tuple[Host, ...], Meta(description="An inventory of routers, for previews.")] = ()
    version: Annotated[int, Meta(description="The version of this format.", ge=1, le=1)] = 1


def connector_name(router: str, rule: str, suffix: str = "") -> str:
    """
    Return C{<router-name>-<rule-name>-<suffix>}.

    @param suffix: the name of the rule when it is empty.
    """
    return f"{router}-{rule}-{suffix or rule}"


def check_name(name: str) -> None:
    """
    Check the name of a router.

    @raise ConfigError: it can't be used.
    """
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise ConfigError(f"{quoted_short(name)} is not a name; it takes 1 to {LONGEST_NAME} {_ALLOWED}.")


def check_rule_name(name: str) -> None:
    """
    Check the name of a rule, or a suffix.

    @raise ConfigError: it can't be used.
    """
    if not _RULE_NAME.fullmatch(name) or len(name) > LONGEST_RULE_NAME:
        raise ConfigError(
            f"{quoted_short(name)} is not a name; "
            f"it takes 1 to {LONGEST_RULE_NAME} characters without control characters."
        )


def check_label_key(key: str) -> None:
    """
    Check the key of a label: a name, or a DNS name, a slash and a name, as in Kubernetes.

    @raise ConfigError: it can't be used.
    """
    prefix, slash, name = key.rpartition("/")
    if slash and not (_PREFIX.fullmatch(prefix) and len(prefix) <= LONGEST_NAME):
        raise ConfigError(f"The key {quoted_short(key)} of a label has something before its / that is not a DNS name.")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_KEY:
        raise ConfigError(
            f"{quoted_short(key)} is not the key of a label; it takes 1 to {_LONGEST_KEY} {_ALLOWED}; "
            "a DNS name and a / may stand before it."
        )


def check_label_value(value: str) -> None:
    """
    Check the value of a label; it may be empty.

    @raise ConfigError: it can't be used.
    """
    if value and not (_NAME.fullmatch(value) and len(value) <= _LONGEST_VALUE):
        raise ConfigError(
            f"{quoted_short(value)} is not the value of a label; it takes up to {_LONGEST_VALUE} {_ALLOWED}."
        )


def check_label(key: str, value: str) -> None:
    """
    Check a label.

    @raise ConfigError: its key or its value can't be used.
    """
    check_label_key(key)
    check_label_value(value)
