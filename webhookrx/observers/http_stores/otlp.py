"""
C{otlp:URL}: exports log records to a collector of OpenTelemetry by OTLP over HTTP.

Where the standard says that a client must not retry, it means that the client drops the data; then the messages are
refused for good here, and kept with the reason (U{https://opentelemetry.io/docs/specs/otlp/#otlphttp-response}).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from struct import Struct
from typing import Final

from webhookrx.config.observers import Argument, ObserverSpec, OptionText
from webhookrx.config.specs import SpecOptions
from webhookrx.message.identity import MakeID, message_id, parse_id
from webhookrx.message.message import Message
from webhookrx.observers.batch_limits import BatchLimits, read_limits
from webhookrx.observers.client_tls import TLS_OPTIONS, TLS_SECRETS
from webhookrx.observers.http_stores.exchange import HTTPAnswer, StoreRequest, UnreadableAnswer
from webhookrx.observers.http_stores.http import REDIRECTION_HINT
from webhookrx.observers.http_stores.observer import HTTPObserver, connect
from webhookrx.observers.http_stores.options import (
    SECRET_FILES,
    HTTPTarget,
    path_behind,
    read_auth_scheme,
    read_target,
    secret_fields,
)
from webhookrx.observers.http_stores.otlp_json import OTLP_JSON
from webhookrx.observers.http_stores.otlp_records import OTLPEncoding, log_record
from webhookrx.observers.http_stores.store import Finding, HTTPStore, Reading, Verdict
from webhookrx.observers.packages import package_for
from webhookrx.observers.template_pairs import TemplatePairs, parse_pairs
from webhookrx.settings import MiB

OTLP_SPEC = ObserverSpec(
    options=(
        "encoding",
        "resource",
        "next",
        "id",
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
        "encoding": OptionText("`json`", "or `protobuf`, which needs `pip install 'opentelemetry-proto>=1.45'`"),
        "resource": OptionText(
            "`service.name=webhookrx`",
            "`NAME=TEMPLATE,…`: attributes of the resource, by [templates](messages.md#templates)",
        ),
        "next": OptionText("`queued`", "what the server's word is worth: `durable` or `written` if you vouch for it"),
        "id": OptionText("the message's id", "template of the attribute `log.record.uid`"),
        "batch": OptionText("`100`", "most records in one request, 100 at most"),
        "batch_size": OptionText("`1MiB`", "most bytes of one request, before compression; a larger record goes alone"),
        "auth_scheme": OptionText("`Bearer`", "the word before the token"),
    },
)

_PATH: Final = "/v1/logs"
DEFAULT_RESOURCE: Final = "service.name=webhookrx"
MOST_RECORDS: Final = 100
"""
In a request. A server that rejects some of them does not say which, so all of them become dead letters
(U{https://github.com/open-telemetry/opentelemetry-proto/issues/404},
U{https://github.com/open-telemetry/opentelemetry-proto/issues/470}).
"""
_LIMITS: Final = BatchLimits(MOST_RECORDS, MiB)

_KEEP: Final = 256 * 1024
"""A partial success may say something of each record; were it cut, records that were taken would be sent again."""

_NAME: Final = re.compile(r"[A-Za-z0-9_./-]+")
_NAMES: Final = "letters, digits and _ . / -"
_ENCODINGS: Final = ("json", "protobuf")
_PROMISES: Final = ("queued", "written", "durable")
_PACKAGE: Final = "opentelemetry-proto>=1.45"
_REASON: Final = "it is the word of the next hop only; next=durable if that one has a persistent queue"

#: The length of the resource in front of a record.
_LENGTH: Final = Struct(">I")

_HINTS: Final = {
    401: "look at token_file= and headers_file=",
    403: "look at token_file= and headers_file=",
    404: f"look at the URL; {_PATH} is added to it",
    405: "look at the URL",
    413: "larger than the server takes; look at batch_size=",
    415: "look at encoding= and gzip=",
}


@dataclass(frozen=True, kw_only=True)
class OTLPStore(HTTPStore):
    """
    A collector of OpenTelemetry, or another receiver of OTLP over HTTP.

    @ivar path: where requests go.
    """

    limits: BatchLimits = _LIMITS
    keep: int = _KEEP
    promise: str = "queued"
    promise_reason: str = _REASON
    path: str = _PATH
    encoding: OTLPEncoding = field(default=OTLP_JSON, repr=False)

    def make(self, lines: Sequence[bytes]) -> StoreRequest:
        """Join the records of each resource, in their order."""
        records: dict[bytes, list[bytes]] = {}
        for line in lines:
            begin = _LENGTH.size + _LENGTH.unpack_from(line)[0]
            records.setdefault(line[_LENGTH.size : begin], []).append(line[begin:])
        return StoreRequest(self.pack(self.encoding.request(records)), path=self.path)

    def read(self, answer: HTTPAnswer, count: int) -> Reading:
        """
        Tell it by the status, and a 200 by its C{partial_success}. A 204 can't hold one; Loki answers so
        (U{https://github.com/grafana/loki/issues/15761}). A 400 that begins like HTML is not of OTLP.
        """
        status = answer.status
        if status in (200, 204):
            return self._read_success(answer, count)
        words = answer.body if status == 400 else answer.beginning
        is_page = words.lstrip()[:1] == b"<"
        verdict = Verdict.REFUSED if status == 413 or (status == 400 and not is_page) else Verdict.LATER
        return Finding(verdict, REDIRECTION_HINT if 300 <= status < 400 else _HINTS.get(status, ""), words)

    def _read_success(self, answer: HTTPAnswer, count: int) -> Reading:
        """
        Judge each record, if some are rejected: divided and sent again, those that were taken would come twice, which
        the standard forbids.
        """
        try:
            partial_success = self.encoding.read(answer.body)
        except ValueError as error:
            raise UnreadableAnswer(f"{answer.describe()}, but {error}") from None
        rejected = partial_success.rejected
        if not 0 <= rejected <= count:
            raise UnreadableAnswer(f"{answer.describe()}, but rejects {rejected} of {count} records")
        if not rejected:
            return Finding(Verdict.STORED)
        code = f"{answer.status} with a partial success: {rejected} of {count} records rejected, not told which"
        return [Finding(Verdict.REFUSED, code, partial_success.message)] * count


def _render(message: Message, *, encoding: OTLPEncoding, resource: TemplatePairs, make_id: MakeID) -> bytes:
    """Return the resource of a message behind its length, and its record."""
    described = encoding.resource({name: template.render(message) for name, template in resource})
    return encoding.record(log_record(message, make_id), _LENGTH.pack(len(described)) + described)


def _read_encoding(options: SpecOptions) -> OTLPEncoding:
    if options.choice("encoding", _ENCODINGS, "json") == "json":
        return OTLP_JSON
    with package_for("otlp", _PACKAGE, "encoding=protobuf"):
        from webhookrx.observers.http_stores.otlp_protobuf import OTLP_PROTOBUF
    return OTLP_PROTOBUF


def _read_id(options: SpecOptions) -> MakeID:
    own: MakeID = message_id
    return options.read("id", own, parse_id)


def _read_limits(options: SpecOptions) -> BatchLimits:
    limits = read_limits(options, _LIMITS)
    if limits.messages > MOST_RECORDS:
        raise options.problem(
            f"batch={limits.messages} is too many; at most {MOST_RECORDS}, since a server that rejects some records of "
            "a request does not say which, and all of them become dead letters"
        )
    return limits


def read_otlp(args: Sequence[str], given: Mapping[str, str]) -> tuple[HTTPTarget, OTLPStore]:
    """
    Read C{otlp:URL[:key=value…]}, but not the files.

    @raise ConfigError: an argument or option is wrong, or a package is missing.
    """
    options = SpecOptions("otlp", given)
    secrets = secret_fields(given, read_auth_scheme(options))
    target = read_target(options, args, example="https://collector.example.com:4318", secrets=secrets)
    encoding = _read_encoding(options)
    promise = options.choice("next", _PROMISES, "queued")
    pairs = partial(parse_pairs, name_pattern=_NAME, names=_NAMES)
    store = OTLPStore(
        render=partial(
            _render,
            encoding=encoding,
            resource=options.read("resource", pairs(DEFAULT_RESOURCE), pairs),
            make_id=_read_id(options),
        ),
        limits=_read_limits(options),
        gzip=options.flag("gzip", False),
        promise=promise,
        promise_reason="" if promise == "durable" else _REASON,
        content_type=encoding.content_type,
        path=path_behind(target.url, _PATH),
        encoding=encoding,
    )
    return target, store


def build_otlp(spec: str, args: Sequence[str], given: Mapping[str, str], ack: str) -> HTTPObserver:
    """
    Make the observer.

    @raise ConfigError: an argument, an option or a file is wrong, or a package is missing.
    """
    observer = HTTPObserver(spec, *read_otlp(args, given), connect)
    observer.check()
    return observer
