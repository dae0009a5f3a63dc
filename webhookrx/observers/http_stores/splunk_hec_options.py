"""
The spec string of C{splunk-hec:}, and messages as events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from webhookrx.config.observers import Argument, ObserverSpec, OptionText
from webhookrx.config.specs import SpecOptions
from webhookrx.interfaces import LARGEST_BATCH, Wants
from webhookrx.message.encoders import encode_object
from webhookrx.message.escapes import encode_json
from webhookrx.message.identity import message_id, parse_id
from webhookrx.message.macros import NANOSECONDS
from webhookrx.message.message import Message
from webhookrx.message.record import said_or_received
from webhookrx.message.template import Template
from webhookrx.observers.batch_limits import read_limits
from webhookrx.observers.client_tls import TLS_OPTIONS, TLS_SECRETS
from webhookrx.observers.http_stores.json_texts import json_text
from webhookrx.observers.http_stores.observer import HTTPObserver, connect
from webhookrx.observers.http_stores.options import (
    DEFAULT_RETRY_FOR,
    SECRET_FILES,
    HTTPTarget,
    path_behind,
    read_target,
    secret_fields,
)
from webhookrx.observers.http_stores.splunk_hec import ACKS, EVENTS, LIMITS, AckChannel, SplunkHEC

_TOKENS: Final = "that of the token"

SPLUNK_HEC_SPEC = ObserverSpec(
    options=(
        "ack",
        "index",
        "sourcetype",
        "source",
        "host",
        "template",
        "id",
        "batch",
        "batch_size",
        "gzip",
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
        "ack": OptionText("`none`", "`indexer` asks after each request whether its events are indexed"),
        "index": OptionText(_TOKENS, "[template](messages.md#templates) of the index"),
        "sourcetype": OptionText("`_json`", "template of the source type"),
        "source": OptionText(_TOKENS, "template of the source"),
        "host": OptionText("`${HOST}`", "template of the host"),
        "template": OptionText("none", "template of the text of an event, instead of the JSON object"),
        "id": OptionText("the message's id", "template of the indexed field `webhookrx_id`"),
        "batch": OptionText("`5000`", "most events in one request"),
        "batch_size": OptionText("`5MiB`", "most bytes of one request, before compression"),
        "retry_for": OptionText(
            "`10s`; `15s` with `ack=indexer`", "how long a batch is retried, and how long it is asked for"
        ),
        "token_file": OptionText("needed", "file with the token of the collector"),
    },
)

_ACK_LEVELS: Final = ("none", "indexer")
_REASON: Final = "it answers before the events enter its pipeline; ack=indexer where the token has it"

ACK_RETRY_FOR: Final = 15.0
"""The default of C{retry_for} with C{ack=indexer}, in seconds: what a sender without a spool in front can wait."""
SHORTEST_ACK_RETRY_FOR: Final = 5.0
"""The least of it: what is not acknowledged in time is sent again, and indexed twice."""

#: Returns the text of a field for a message; empty to leave it out.
_MakeText = Callable[[Message], str]


def render_event(
    message: Message, *, texts: Sequence[tuple[str, _MakeText]], template: Template | None, make_id: _MakeText
) -> bytes:
    """
    Return a message as an event, on a line: C{time} is what the message says, or that of receipt; C{event} its JSON
    object, or the text of a template; C{webhookrx_id} among C{fields} its id.

    @param texts: further metadata by name.
    """
    seconds, rest = divmod(said_or_received(message), NANOSECONDS)
    head = b'{"time":%d.%06d' % (seconds, rest // 1000)
    metadata: dict[str, Any] = {name: text for name, make in texts if (text := make(message))}
    own_id = make_id(message)
    if own_id:
        metadata["fields"] = {"webhookrx_id": own_id}
    event = encode_object(message) if template is None else json_text(template.render_line(message)[:-1].decode())
    return b'%b,%b"event":%b}\n' % (head, encode_json(metadata)[1:-1] + b"," if metadata else b"", event)


def read_splunk_hec(args: Sequence[str], given: Mapping[str, str]) -> tuple[HTTPTarget, SplunkHEC]:
    """
    Read C{splunk-hec:URL[:key=value…]}, but not the files.

    @raise ConfigError: an argument or option is wrong, or does not go with another.
    """
    options = SpecOptions("splunk-hec", given)
    has_acks = options.choice("ack", _ACK_LEVELS, "none") == "indexer"
    target = read_target(
        options,
        args,
        example="https://splunk.example.com:8088",
        secrets=secret_fields(given, "Splunk"),
        retry_for=ACK_RETRY_FOR if has_acks else DEFAULT_RETRY_FOR,
        retry_at_least=SHORTEST_ACK_RETRY_FOR if has_acks else 0.0,
    )
    if not target.secrets:
        raise options.problem("needs token_file=, a file with the token of the collector")
    if "?" in target.url:
        raise options.problem("the URL has a query, which the collector does not take")
    texts = [
        (name, options.read(name, Template.parse(default), Template.parse).render)
        for name, default in (("host", "${HOST}"), ("source", ""), ("sourcetype", "_json"), ("index", ""))
    ]
    limits = read_limits(options, LIMITS)
    own_id: _MakeText = message_id
    template = options.read("template", None, Template.parse)
    return target, SplunkHEC(
        render=partial(
            render_event,
            texts=tuple(texts),
            template=template,
            make_id=options.read("id", own_id, parse_id),
        ),
        takes_lines=template is None,
        limits=limits,
        gzip=options.flag("gzip", False),
        promise="durable" if has_acks else "queued",
        promise_reason="" if has_acks else _REASON,
        wants=Wants(limits.messages, min(limits.size, LARGEST_BATCH)),
        path=path_behind(target.url, EVENTS),
        ack_path=path_behind(target.url, EVENTS).removesuffix(EVENTS) + ACKS,
        channel=AckChannel() if has_acks else None,
    )


def build_splunk_hec(spec: str, args: Sequence[str], options: Mapping[str, str], ack: str) -> HTTPObserver:
    """
    Make the observer of C{splunk-hec:URL[:key=value…]}.

    @raise ConfigError: an argument, an option or a file is wrong.
    """
    observer = HTTPObserver(spec, *read_splunk_hec(args, options), connect)
    observer.check()
    return observer
