"""
C{loki:URL}: pushes JSON lines to Loki, in streams by labels.

Loki takes what is good in a request and answers 400 for what is not, without saying which that was
(U{https://github.com/vectordotdev/vector/issues/3057}, U{https://github.com/vectordotdev/vector/issues/20706}). So a
request that it refuses is divided until the refused entry is alone. Sending the others again does no harm: entries of
equal labels, time and line are one (U{https://github.com/grafana/loki/issues/8943}), and each line holds the id of its
message.

The time of an entry is that of receipt: a sender that could choose it could have entries refused, or make Loki refuse
those of others as too old.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from webhookrx.config.observers import Argument, ObserverSpec, OptionText
from webhookrx.config.specs import SpecOptions
from webhookrx.message.encoders import encode_line
from webhookrx.message.escapes import encode
from webhookrx.message.message import Message
from webhookrx.message.template import Template
from webhookrx.observers.batch_limits import read_limits
from webhookrx.observers.client_tls import TLS_OPTIONS, TLS_SECRETS
from webhookrx.observers.http_stores.exchange import Header, HTTPAnswer, StoreRequest
from webhookrx.observers.http_stores.http import REDIRECTION_HINT
from webhookrx.observers.http_stores.json_texts import json_pieces
from webhookrx.observers.http_stores.observer import HTTPObserver, connect
from webhookrx.observers.http_stores.options import (
    FIELD_VALUE,
    SECRET_FILES,
    HTTPTarget,
    path_behind,
    read_auth_scheme,
    read_target,
    secret_fields,
)
from webhookrx.observers.http_stores.store import Finding, HTTPStore, Verdict
from webhookrx.observers.template_pairs import TemplatePairs, parse_pairs
from webhookrx.observers.writers import RenderLine

LOKI_SPEC = ObserverSpec(
    options=(
        "labels",
        "metadata",
        "tenant",
        "template",
        "batch",
        "batch_size",
        "gzip",
        "auth_scheme",
        "allow_plaintext",
        "timeout",
        "retry_for",
        *SECRET_FILES,
        *TLS_OPTIONS,
    ),
    argument=Argument.URL,
    files=(*SECRET_FILES, *TLS_OPTIONS),
    secrets=(*SECRET_FILES, *TLS_SECRETS),
    texts={
        "labels": OptionText(
            "`source=${SOURCE},host=${HOST}`",
            "`NAME=TEMPLATE,…`: at most 15 labels, by [templates](messages.md#templates)",
        ),
        "metadata": OptionText(
            "`id=${RCPTID}`", "structured metadata, in the same form; nothing behind `=` sends none"
        ),
        "tenant": OptionText("none", "sent as `X-Scope-OrgID`"),
        "template": OptionText("none", "template of the line, instead of the JSON object"),
        "batch": OptionText("`500`", "most entries in one request"),
        "batch_size": OptionText("`1MiB`", "most bytes of one request, before compression; a larger entry goes alone"),
        "auth_scheme": OptionText("`Bearer`", "the word before the token"),
    },
)

_PATH: Final = "/loki/api/v1/push"
DEFAULT_LABELS: Final = "source=${SOURCE},host=${HOST}"
DEFAULT_METADATA: Final = "id=${RCPTID}"
MOST_LABELS: Final = 15
"""What Loki takes unless told otherwise (C{max_label_names_per_series})."""
LONGEST_VALUE: Final = 2048
"""Bytes of a value that Loki takes unless told otherwise (C{max_label_value_length}); what is longer is cut."""

_KEEP: Final = 256 * 1024
"""An error quotes all labels of a stream, with escapes."""

_NAME: Final = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_NAMES: Final = "letters, digits and underscores, and begins with neither a digit nor two underscores"
_NOTHING: Final = "unknown"
"""The value of the first label where all are empty: Loki takes no stream without labels."""

#: Words of a 400 that is not about the message: what it says is the same for all, and a person can mend it.
_CONFIGURATION: Final = (
    (b"structured metadata, but this feature is disallowed", "metadata= without a value sends none"),
    (b"label names; limit", "more labels than max_label_names_per_series; look at labels="),
    (b"missing required labels", "look at labels="),
    (b"ingestion blocked", "blocked by block_ingestion_until or a policy"),
    (b"timestamp too new", "the clocks of both ends differ"),
)
_HINTS: Final = {
    401: "look at token_file=, headers_file= and tenant=",
    403: "look at token_file=, headers_file= and tenant=",
    404: f"look at the URL; {_PATH} is added to it",
    405: "look at the URL",
    413: "larger than something between takes; look at batch_size=",
    415: "look at gzip=",
    429: "a limit of Loki, such as ingestion_rate_mb or the number of streams",
}


@dataclass(frozen=True, kw_only=True)
class LokiStore(HTTPStore):
    """
    Loki from 2.0 on.

    @ivar path: where pushes go.
    @ivar tenant: sent as C{X-Scope-OrgID}; empty for none.
    """

    keep: int = _KEEP
    promise: str = "written"
    promise_reason: str = "it answers before its write-ahead log is on disk"
    path: str = _PATH
    tenant: str = ""

    def make(self, lines: Sequence[bytes]) -> StoreRequest:
        """Join entries to one stream for each set of labels; within a stream they keep their order."""
        streams: dict[bytes, list[bytes]] = {}
        for line in lines:
            labels, _, entry = line.partition(b"\n")
            streams.setdefault(labels, []).append(entry)
        made = (b'{"stream":%b,"values":[%b]}' % (labels, b",".join(entries)) for labels, entries in streams.items())
        return StoreRequest(self.pack(b'{"streams":[%b]}' % b",".join(made)), path=self.path)

    def fields(self) -> list[Header]:
        """Return those of every store, and the tenant."""
        tenant = [(b"X-Scope-OrgID", self.tenant.encode("ascii"))] if self.tenant else []
        return [*super().fields(), *tenant]

    def read(self, answer: HTTPAnswer, count: int) -> Finding:
        """
        Tell it by the status, of which only 204 is success: Loki answers 260 for what it drops while ingestion is
        blocked (C{block_ingestion_status_code}). A 400 tells by its words whether the message or the configuration is
        wrong; one that begins like HTML is not Loki's.
        """
        status, words = answer.status, answer.beginning
        if status == 204:
            return Finding(Verdict.STORED)
        if answer.is_success:
            return Finding(Verdict.LATER, "Loki answers 204 for what it takes", words)
        if status == 400:
            words = answer.body
            hint = next((hint for text, hint in _CONFIGURATION if text in words), None)
            if hint is not None or words.lstrip()[:1] == b"<":
                return Finding(Verdict.LATER, hint or "look at the URL", words)
        verdict = Verdict.REFUSED if status in (400, 413) else Verdict.LATER
        return Finding(verdict, REDIRECTION_HINT if 300 <= status < 400 else _HINTS.get(status, ""), words)


def _render(message: Message, *, labels: TemplatePairs, metadata: TemplatePairs, line: RenderLine) -> bytes:
    """Return the labels as JSON, a line end, and the entry as JSON."""
    made = _values(message, labels) or {labels[0][0]: _NOTHING}
    more = _values(message, metadata)
    end = b",%b]" % encode(more) if more else b"]"
    return b"".join((encode(made), b'\n["%d",' % message.received, *json_pieces(line(message)[:-1]), end))


def _values(message: Message, pairs: TemplatePairs) -> dict[str, str]:
    """Return what templates make of a message, without those that make nothing."""
    made = ((name, _cut(template.render(message))) for name, template in pairs)
    return {name: value for name, value in made if value}


def _cut(value: str) -> str:
    if len(value) * 4 <= LONGEST_VALUE:
        return value
    return value[:LONGEST_VALUE].encode("utf-8", "replace")[:LONGEST_VALUE].decode("utf-8", "ignore")


def _read_labels(text: str) -> TemplatePairs:
    labels = parse_pairs(text, _NAME, _NAMES)
    if not labels:
        raise ValueError("it takes at least one label, such as source=${SOURCE}")
    if len(labels) > MOST_LABELS:
        raise ValueError(f"{len(labels)} labels are more than the {MOST_LABELS} that Loki takes")
    return labels


def _read_tenant(text: str) -> str:
    if not text.isascii() or not FIELD_VALUE.fullmatch(text.encode()):
        raise ValueError("it takes the name of a tenant, in printable ASCII")
    return text


def read_loki(args: Sequence[str], given: Mapping[str, str]) -> tuple[HTTPTarget, LokiStore]:
    """
    Read C{loki:URL[:key=value…]}, but not the files.

    @raise ConfigError: an argument or option is wrong.
    """
    options = SpecOptions("loki", given)
    secrets = secret_fields(given, read_auth_scheme(options))
    target = read_target(options, args, example="https://loki.example.com:3100", secrets=secrets)
    template = options.read("template", None, Template.parse)
    store = LokiStore(
        render=partial(
            _render,
            labels=options.read("labels", _read_labels(DEFAULT_LABELS), _read_labels),
            metadata=options.read(
                "metadata",
                parse_pairs(DEFAULT_METADATA, _NAME, _NAMES),
                partial(parse_pairs, name_pattern=_NAME, names=_NAMES),
            ),
            line=encode_line if template is None else template.render_line,
        ),
        takes_lines=template is None,
        limits=read_limits(options),
        gzip=options.flag("gzip", False),
        path=path_behind(target.url, _PATH),
        tenant=options.read("tenant", "", _read_tenant),
    )
    return target, store


def build_loki(spec: str, args: Sequence[str], given: Mapping[str, str], ack: str) -> HTTPObserver:
    """
    Make the observer.

    @raise ConfigError: an argument, an option or a file is wrong.
    """
    observer = HTTPObserver(spec, *read_loki(args, given), connect)
    observer.check()
    return observer
