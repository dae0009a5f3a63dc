"""
What a rules file holds, as types. The reader of the file, its JSON Schema and the tables
of the docs come from them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from webhookrx.router.rules.naming import LONGEST_NAME, LONGEST_RULE_NAME, NAME_PATTERN

DEFAULT_PATHS: Final = ("/events", "/events/(?P<HOST>.*)")
"""Specification, table 2.2."""

CONNECTOR_TYPE: Final = "webhook"
"""C{meta.connector.type} of every connector."""

PROTOCOLS: Final = ("HTTPS", "HTTP")

KEEP: Final = "keep"
DROP: Final = "drop"
TAG: Final = "tag"
ON_ERROR: Final = (KEEP, DROP, TAG)
"""What happens to a message on which a step fails: it goes on, it is dropped, or it goes on with a note."""

# For the JSON Schema; the reader's own checks have better sentences.
_RULE_NAME: Final = {"minLength": 1, "maxLength": LONGEST_RULE_NAME}
_HOST_NAME: Final = {"pattern": NAME_PATTERN, "maxLength": LONGEST_NAME}
_PORT: Final = {"minimum": 1, "maximum": 65535}


class _Base(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All types of the file: nothing in it is ignored."""


class SetField(_Base, frozen=True):
    """Set a field to a value."""

    field: Annotated[str, Meta(description="The field, such as `meta.team` or `log.body.user`.")]
    value: Annotated[Any, Meta(description="Its value: text, number, true or false, null, list or object.")]


class Regex(_Base, frozen=True):
    """Match a regular expression against a field, and set a field for each named group."""

    pattern: Annotated[str, Meta(description="A regular expression that RE2 can run, looked for anywhere.")]
    field: Annotated[str, Meta(description="The field that it is matched against.")] = "log.body"
    into: Annotated[str, Meta(description="The object that gets a member for each named group.")] = "log.attributes"
    ignore_case: Annotated[bool, Meta(description="Capitals and small letters are the same.")] = False


class Probe(_Base, frozen=True):
    """Count messages that come here."""

    name: Annotated[str, Meta(description="The name of the counter.")]


class Step(_Base, frozen=True):
    """One processing step: exactly one of the kinds below, and when it is done."""

    select: Annotated[str | None, Meta(description="Select Messages: a query; other messages are dropped.")] = None
    set: Annotated[
        SetField | tuple[SetField, ...] | None, Meta(description="Set Field: a field and its value, or a list of them.")
    ] = None
    unset: Annotated[str | tuple[str, ...] | None, Meta(description="Unset Field: a field, or a list of them.")] = None
    regex: Annotated[Regex | None, Meta(description="Regex: named groups become fields.")] = None
    probe: Annotated[Probe | str | None, Meta(description="Probe: a counter with a name.")] = None
    classify: Annotated[bool | None, Meta(description="Classify: `yes`.")] = None
    classify_fallback: Annotated[
        bool | None,
        Meta(description="Beside `classify`: JSON of unknown senders is `generic-json`; as in `preprocessing`."),
    ] = None
    parse: Annotated[bool | None, Meta(description="Parse: `yes`; it needs a Classify before it.")] = None
    expression: Annotated[str | None, Meta(description="Statements of the expression language.")] = None
    condition: Annotated[str | None, Meta(description="A query; messages that it does not match skip the step.")] = None
    on_error: Annotated[
        str | None,
        Meta(
            description="What happens to a message on which the step fails: `keep`, `drop` or `tag`.",
            extra_json_schema={"enum": list(ON_ERROR)},
        ),
    ] = None
    label: Annotated[str | None, Meta(description="What people call the step; counters and log lines show it.")] = None


KINDS: Final = ("select", "set", "unset", "regex", "probe", "classify", "parse", "expression")


class Preprocessing(_Base, frozen=True):
    """What is done to each message of a connector, in this order: classify, parse, steps."""

    classify: Annotated[bool, Meta(description="Find out who sent the message.")] = False
    classify_fallback: Annotated[
        bool,
        Meta(description="JSON of unknown senders is `generic-json`; for `classify` steps, too."),
    ] = True
    parse: Annotated[bool, Meta(description="Take time, message and severity from it; needs `classify`.")] = False
    steps: Annotated[tuple[Step, ...], Meta(description="Processing steps, in order.")] = ()

    @property
    def classifies(self) -> bool:
        """Whether it finds out who sent a message, by itself or in one of its steps."""
        return self.classify or any(step.classify for step in self.steps)


class Rule(_Base, frozen=True):
    """A connector rule: on which routers there is a connector, and what it does."""

    name: Annotated[str, Meta(description="Its name, unique in the file.", extra_json_schema=_RULE_NAME)]
    protocol: Annotated[str, Meta(description="`HTTPS` or `HTTP`.", extra_json_schema={"enum": list(PROTOCOLS)})]
    port: Annotated[
        int, Meta(description="The TCP port, 1 to 65535, that receives the POST requests.", extra_json_schema=_PORT)
    ]
    labels: Annotated[
        dict[str, str], Meta(description="Labels of the rule; messages have them in `meta.connector.labels`.")
    ] = {}
    selector: Annotated[
        str, Meta(description="A query on routers; empty matches all of them, `name = my-router` one.")
    ] = ""
    suffix: Annotated[
        str, Meta(description="The last part of the connector's name; the name of the rule when empty.")
    ] = ""
    description: Annotated[str, Meta(description="Free text.")] = ""
    preprocessing: Annotated[Preprocessing, Meta(description="What is done to each message of its connectors.")] = (
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
        Meta(description='Put the request headers into `log.attributes["webhook.headers"]`, credentials masked.'),
    ] = False
    health: Annotated[
        str, Meta(description="A path at which load balancers ask, without a message, whether the service is ready.")
    ] = ""
    key_file: Annotated[str, Meta(description="HTTPS only: absolute path of the unencrypted private key, in PEM.")] = ""
    cert_file: Annotated[
        str, Meta(description="HTTPS only: absolute path of the certificate or the whole chain, in PEM.")
    ] = ""


class Host(_Base, frozen=True):
    """A router, for previews: what selectors can ask for."""

    name: Annotated[str, Meta(description="The name of the router.", extra_json_schema=_HOST_NAME)]
    labels: Annotated[dict[str, str], Meta(description="Its labels: `label.NAME` in selectors.")] = {}
    hostname: Annotated[str, Meta(description="The name of the machine, without a domain.")] = ""
    fqdn: Annotated[str, Meta(description="Its name with its domain.")] = ""
    ip: Annotated[str | tuple[str, ...], Meta(description="Its address, or a list of them.")] = ()
    os: Annotated[str, Meta(description="Its operating system, such as `linux`.")] = ""
    arch: Annotated[str, Meta(description="Its processor, such as `x86_64`.")] = ""
    version: Annotated[str, Meta(description="The version of webhookrx there.")] = ""
    meta: Annotated[
        dict[str, Any], Meta(description="More of it, for previews: `meta.NAME`, which routers do not have.")
    ] = {}


class RulesFile(_Base, frozen=True):
    """A whole rules file."""

    connector_rules: Annotated[tuple[Rule, ...], Meta(description="The rules; their order does not matter.")] = ()
    hosts: Annotated[tuple[Host, ...], Meta(description="An inventory of routers, for previews.")] = ()
    version: Annotated[int, Meta(description="The version of this format.", ge=1, le=1)] = 1
