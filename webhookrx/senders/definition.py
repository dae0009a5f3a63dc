"""
The types of a sender's data file: how its requests are recognised, and where in them time, message and severity are.

The I{object} of a request is what conditions look at: the body when that is one JSON object; its first object when it
holds several (an array, lines of JSON, JSON documents one after another); the fields of a form; the first frame.

The I{event} is the same, except that with C{events} it is the first object of the array that C{events} points to.

A I{place} is text that says where to look:

  - C{/a/0/b}: a JSON pointer (RFC 6901) into the event, and when that yields nothing, into the whole body; C{*} stands
    for every element of an array; the first that yields something counts, of severities the highest, of times the
    latest
  - a step C{[key=host.name]}, in places only: like C{*}, but only for elements that have a member C{key} with that text
  - C{same:/a/*/b}: what all elements have there, if it is the same for all of them and none lacks it
  - C{tally:/a/*/b}: each text there with how often it is there, such as C{firing 2, resolved 1}, up to ten; for one
    element, its text. This and the one before yield nothing when there are more elements than C{*} stands for
  - C{header:NAME}: the first value of a request header
  - C{query:NAME}: the first value of a query parameter
  - C{path}: the path of the request

Text, numbers and C{true}/C{false} yield something; blank text, C{null}, arrays and objects do not. White space around
a text is taken off.

A I{text} is a place, or plain text with places in braces: C{{header:x-github-event}.{/action} {/repository/full_name}}.
A piece that yields nothing is left out, with the white space and punctuation before it. A text with places yields
something when one of them does. C{{{} and C{}}} stand for braces.

The fields of a form are text, or arrays of text where a name is repeated. A frame of logplex has the members
C{priority}, C{facility} (numbers), C{severity} (a severity name), C{timestamp}, C{hostname}, C{app_name}, C{procid},
C{msgid} and C{message}, as far as they are not C{-}.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from msgspec import Meta

from webhookrx.senders.answer_definition import Behaviour, SenderAnswer
from webhookrx.senders.data_file import DataFileType, When
from webhookrx.senders.handshake_definition import HARMLESS, Handshake
from webhookrx.senders.signatures.scheme import MAC_ALGORITHMS, SignatureScheme
from webhookrx.senders.split_definition import Split

BODY_FORMATS: Final = ("json", "ndjson", "json-stream", "form", "logplex", "msgpack", "otlp", "text")
BINARY: Final = ("msgpack", "otlp")
"""Formats of bodies that need not be text."""
TIME_FORMATS: Final = ("rfc3339", "unix", "unix-ms", "unix-us", "unix-ns", "rfc2822", "auto")
DECODINGS: Final = ("json", "base64", "base64+json", "base64+gzip+json")
SETTING_KINDS: Final = ("text", "list", "flag")
SEVERITIES: Final = {
    "trace": (1, "TRACE"),
    "debug": (5, "DEBUG"),
    "info": (9, "INFO"),
    "notice": (10, "INFO2"),
    "warn": (13, "WARN"),
    "error": (17, "ERROR"),
    "critical": (21, "FATAL"),
    "alert": (22, "FATAL2"),
    "emergency": (24, "FATAL4"),
}
"""Name in data files to C{severity_number} and the short name of the OpenTelemetry log data model."""

_PLACES: Final = re.compile(r"\{[^{}]*\}")


class Decode(DataFileType, frozen=True):
    """A text inside the body that holds something structured, to be put in its place."""

    at: Annotated[str, Meta(description="A JSON pointer into the body, with `*` for all elements.")]
    what: Annotated[
        str,
        Meta(description="`json`, `base64` (text), `base64+json`, or `base64+gzip+json` where some are packed, too."),
    ] = "json"


class Time(DataFileType, frozen=True):
    """Where a time is."""

    at: Annotated[str, Meta(description="A locator.")]
    format: Annotated[str, Meta(description="One of `" + "`, `".join(TIME_FORMATS) + "`.")] = "auto"
    condition: Annotated[str, Meta(description="A query on the event; the locator counts only if it matches.")] = ""


class MessageRule(DataFileType, frozen=True):
    """A message for some kinds of events."""

    text: Annotated[str, Meta(description="A text template.")]
    condition: Annotated[str, Meta(description="A query on the event; the text counts only if it matches.")]


class Severity(DataFileType, frozen=True):
    """Where a severity is, and what its words mean."""

    at: Annotated[str, Meta(description="A locator.")]
    map: Annotated[
        dict[str, str],
        Meta(
            description="Value, or glob such as `f*`, to a severity name; case is ignored; first match wins. "
            "Other values are read as the usual words: `error`, `warning`, `crit`, …."
        ),
    ] = {}


class Setting(DataFileType, frozen=True):
    """Something of a sender's account that its requests are checked with, and that is no secret."""

    meaning: Annotated[str, Meta(description="One line for people: what to enter, and where the sender shows it.")]
    kind: Annotated[
        str, Meta(description="What it is: one of `" + "`, `".join(SETTING_KINDS) + "`; a list has at least one text.")
    ] = "text"
    needed: Annotated[bool, Meta(description="Whether a source of this sender must give it.")] = False


class SignedWith(DataFileType, frozen=True):
    """What the samples are signed with: secrets that are public, since they are in the file, and in use nowhere."""

    secrets: Annotated[tuple[str, ...], Meta(description="Lines of a secrets file.")] = ()
    public_url: Annotated[str, Meta(description="The `public_url` of a source that takes them.")] = ""
    keys: Annotated[
        tuple[str, ...], Meta(description="Files of its `signing_certs`, relative to this one, for built-in verifiers.")
    ] = ()
    settings: Annotated[
        dict[str, str | tuple[str, ...]], Meta(description="Its `sender_settings`, by name; a flag is `yes` or `no`.")
    ] = {}


class SenderDefinition(DataFileType, frozen=True):
    """One kind of sender."""

    id: Annotated[str, Meta(description="Its name, unique among all definitions: `vendor-product`.")]
    vendor: Annotated[str, Meta(description="Becomes `meta.vendor`; empty for a definition of last resort.")]
    product: Annotated[str, Meta(description="Becomes `meta.product`; empty for a definition of last resort.")]
    when: Annotated[
        When | tuple[When, ...],
        Meta(description="How its requests are recognised; of several alternatives, one is enough."),
    ]
    last_resort: Annotated[
        bool,
        Meta(
            description="It matches JSON that no other one does, and leaves `meta.vendor`, `meta.product` and "
            "`meta.service` as they are. Its `when` may be `[]`."
        ),
    ] = False
    service: Annotated[
        str | tuple[str, ...],
        Meta(description="Becomes `meta.service`: a text template; of several, the first with a value."),
    ] = ""
    delivery: Annotated[
        tuple[str, ...],
        Meta(
            description="Locators; the first value is the id that the sender gives to a delivery, the "
            "same for each attempt: `meta.sender.delivery_id`. Nothing is decoded for it."
        ),
    ] = ()
    attempt: Annotated[
        str,
        Meta(description="A locator: which attempt this is, as the sender counts; `meta.sender.attempt`."),
    ] = ""
    settings: Annotated[
        dict[str, Setting], Meta(description="What a source of this sender may give in `sender_settings`, by name.")
    ] = {}
    setup: Annotated[
        tuple[str, ...],
        Meta(description="What people do at the sender, so that it sends: one or two sentences."),
    ] = ()
    verify: Annotated[
        SignatureScheme | tuple[SignatureScheme, ...],
        Meta(
            description="How the sender proves that a request is its own; of several ways, the secrets of a source "
            "decide which count."
        ),
    ] = ()
    handshake: Annotated[
        tuple[Handshake, ...],
        Meta(
            description="Questions of the sender, such as whether an address is ours, and their answers; the first "
            "whose `when` holds counts. Nothing is stored."
        ),
    ] = ()
    answer: Annotated[
        SenderAnswer | tuple[SenderAnswer, ...],
        Meta(
            description='What a stored message is answered with in place of `{"status":"received"}`; of several, the '
            "first whose `when` holds."
        ),
    ] = ()
    behaviour: Annotated[
        Behaviour | None, Meta(description="How long the sender waits, and what it does after a refusal.")
    ] = None
    description: Annotated[str, Meta(description="One line for people.")] = ""
    source: Annotated[str, Meta(description="Where the facts come from: the address of a public page.")] = ""
    priority: Annotated[int, Meta(description="Of several definitions that match, the highest wins.")] = 0
    format: Annotated[str, Meta(description="The format of the body: one of `" + "`, `".join(BODY_FORMATS) + "`.")] = (
        "json"
    )
    decode: Annotated[tuple[Decode, ...], Meta(description="Texts in the body to decode.")] = ()
    events: Annotated[str, Meta(description="A JSON pointer to the array of events in the body.")] = ""
    split: Annotated[
        Split | tuple[Split, ...],
        Meta(
            description="How a body with several events is taken apart where a source has `split: yes`; of several "
            "ways, the first that fits."
        ),
    ] = ()
    time: Annotated[tuple[Time, ...], Meta(description="Where the time is; the first readable one counts.")] = ()
    message: Annotated[
        tuple[str | MessageRule, ...],
        Meta(description="Text templates, or mappings as below; the first with a value counts."),
    ] = ()
    severity: Annotated[
        tuple[Severity, ...], Meta(description="Where the severity is; the first known one counts.")
    ] = ()
    default_severity: Annotated[str, Meta(description="The severity if none of the above finds one.")] = ""
    host: Annotated[
        tuple[str, ...], Meta(description="Text templates for the host, unless a path group has set it.")
    ] = ()
    recorded_from: Annotated[
        str,
        Meta(
            description="The programs that samples were recorded from; empty if all samples follow the documentation."
        ),
    ] = ""
    samples: Annotated[
        tuple[str, ...],
        Meta(description="Files with recorded requests, relative to this one; each must match this definition."),
    ] = ()
    signed_with: Annotated[
        SignedWith | tuple[SignedWith, ...],
        Meta(description="What the samples with signatures are signed with, when they were made."),
    ] = ()

    @property
    def alternatives(self) -> tuple[When, ...]:
        """C{when} as a tuple, in the order of the file."""
        return self.when if isinstance(self.when, tuple) else (self.when,)

    @property
    def signing(self) -> tuple[SignedWith, ...]:
        """C{signed_with} as a tuple, in the order of the file."""
        return self.signed_with if isinstance(self.signed_with, tuple) else (self.signed_with,)

    @property
    def splits(self) -> tuple[Split, ...]:
        """C{split} as a tuple, in the order of the file."""
        return self.split if isinstance(self.split, tuple) else (self.split,)

    @property
    def schemes(self) -> tuple[SignatureScheme, ...]:
        """C{verify} as a tuple, in the order of the file."""
        return self.verify if isinstance(self.verify, tuple) else (self.verify,)

    @property
    def answers(self) -> tuple[SenderAnswer, ...]:
        """C{answer} as a tuple, in the order of the file."""
        return self.answer if isinstance(self.answer, tuple) else (self.answer,)

    @property
    def proves(self) -> bool:
        """Whether some question is answered with what a secret makes of a text of the sender."""
        return any(handshake.proof is not None for handshake in self.handshake)

    @property
    def proof_scheme(self) -> SignatureScheme | None:
        """The scheme by whose HMAC questions are answered; None without one."""
        return next((scheme for scheme in self.schemes if scheme.algorithm in MAC_ALGORITHMS and not scheme.code), None)

    def objects_only(self, scheme: SignatureScheme) -> bool:
        """
        Tell whether a scheme of this definition verifies only bodies that are JSON objects: else the answer to a
        question could be the signature of a body, since both are made by one secret.
        """
        plain = _PLACES.sub("", scheme.signed)
        return self.proves and scheme.algorithm in MAC_ALGORITHMS and HARMLESS.issuperset(plain)
