"""
The types of processing steps, as a rules file has them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

KEEP: Final = "keep"
DROP: Final = "drop"
TAG: Final = "tag"
ON_ERROR: Final = (KEEP, DROP, TAG)
"""What happens to a message on which a step fails: it goes on, it is dropped, or it goes on with a note."""


class StrictStruct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a rules file: a key that it does not have is an error."""


class SetField(StrictStruct, frozen=True):
    """Set a field to a value."""

    field: Annotated[str, Meta(description="The field, such as `meta.team` or `log.body.user`.")]
    value: Annotated[Any, Meta(description="Its value: text, number, true or false, null, list or object.")]


class Regex(StrictStruct, frozen=True):
    """Match a regular expression against a field, and set a field for each named group."""

    pattern: Annotated[str, Meta(description="A regular expression for RE2, which matches anywhere.")]
    field: Annotated[str, Meta(description="The field that is searched.")] = "log.body"
    into: Annotated[str, Meta(description="The object that gets a member for each named group.")] = "log.attributes"
    ignore_case: Annotated[bool, Meta(description="Ignore case.")] = False


class Probe(StrictStruct, frozen=True):
    """Count messages that come here."""

    name: Annotated[str, Meta(description="The name of the counter.")]


class Step(StrictStruct, frozen=True):
    """One processing step: exactly one of the kinds below, and when it is done."""

    select: Annotated[str | None, Meta(description="Select Messages: a query; other messages are dropped.")] = None
    set: Annotated[
        SetField | tuple[SetField, ...] | None,
        Meta(description="Set Field: a field and its value, or a list of these."),
    ] = None
    unset: Annotated[str | tuple[str, ...] | None, Meta(description="Unset Field: a field, or a list of fields.")] = (
        None
    )
    regex: Annotated[Regex | None, Meta(description="Regex: named groups become fields.")] = None
    probe: Annotated[Probe | str | None, Meta(description="Probe: a counter with a name.")] = None
    classify: Annotated[bool | None, Meta(description="Classify: `yes`.")] = None
    classify_fallback: Annotated[
        bool | None,
        Meta(description="With `classify`: JSON of unknown senders becomes `generic-json`; as in `preprocessing`."),
    ] = None
    parse: Annotated[bool | None, Meta(description="Parse: `yes`; needs a Classify before it.")] = None
    expression: Annotated[str | None, Meta(description="Statements of the expression language.")] = None
    condition: Annotated[str | None, Meta(description="A query; messages that it does not match skip the step.")] = None
    on_error: Annotated[
        str | None,
        Meta(
            description="What happens to a message on which the step fails: `keep`, `drop` or `tag`.",
            extra_json_schema={"enum": list(ON_ERROR)},
        ),
    ] = None
    label: Annotated[str | None, Meta(description="The name of the step in counters and log lines.")] = None


KINDS: Final = ("select", "set", "unset", "regex", "probe", "classify", "parse", "expression")


class Preprocessing(StrictStruct, frozen=True):
    """What is done to each message of a connector, in this order: classify, parse, steps."""

    classify: Annotated[bool, Meta(description="Recognise the sender of the message.")] = False
    classify_fallback: Annotated[
        bool,
        Meta(description="JSON of unknown senders becomes `generic-json`; for `classify` steps too."),
    ] = True
    parse: Annotated[bool, Meta(description="Extract time, message, severity and host; needs `classify`.")] = False
    steps: Annotated[tuple[Step, ...], Meta(description="Processing steps, in order.")] = ()

    @property
    def classifies(self) -> bool:
        """Whether it finds out who sent a message, by itself or in one of its steps."""
        return self.classify or any(step.classify for step in self.steps)
