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


class Rule(StrictStruct, frozen=True):
    """A connector rule: on which routers there is a connector, and what it does."""

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
