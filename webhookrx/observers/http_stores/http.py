"""
C{http:URL}: posts messages to another HTTP server, whose status alone decides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from webhookrx.config.observers import Argument, ObserverSpec
from webhookrx.config.specs import SpecOptions
from webhookrx.message.encoders import encode_line
from webhookrx.message.identity import is_unique
from webhookrx.message.template import Template
from webhookrx.observers.batch_limits import BatchLimits, read_limits
from webhookrx.observers.client_tls import TLS_OPTIONS, TLS_SECRETS
from webhookrx.observers.http_stores.exchange import HTTPAnswer, StoreRequest
from webhookrx.observers.http_stores.observer import HTTPObserver, connect
from webhookrx.observers.http_stores.options import (
    FIELD_VALUE,
    SECRET_FILES,
    HTTPTarget,
    read_auth_scheme,
    read_target,
    secret_fields,
)
from webhookrx.observers.http_stores.store import Finding, HTTPStore, Verdict

HTTP_SPEC = ObserverSpec(
    options=(
        "format",
        "template",
        "batch",
        "batch_size",
        "gzip",
        "method",
        "content_type",
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
)

FORMATS = ("ndjson", "json", "each", "lines")

_METHODS = ("POST", "PUT")
_CONTENT_TYPES = {
    "ndjson": "application/x-ndjson",
    "json": "application/json",
    "each": "application/json",
    "lines": "text/plain; charset=utf-8",
}

#: Statuses about the messages themselves: malformed, too large, unprocessable.
_REFUSALS = frozenset({400, 413, 422})

#: What an operator can check.
_HINTS = {
    401: "look at token_file= and headers_file=",
    403: "look at token_file=, headers_file= and cert_file=",
    404: "look at the URL",
    405: "look at the URL and method=",
    406: "look at headers_file=",
    410: "look at the URL",
    411: "something between the two ends needs a length where one was sent",
    415: "look at format=, content_type= and gzip=",
}
REDIRECTION_HINT = "redirections are not followed; write the URL that they lead to"


@dataclass(frozen=True, kw_only=True)
class PlainHTTP(HTTPStore):
    """
    A server of which nothing is known but HTTP.

    @ivar format: one of L{FORMATS}.
    @ivar distinct: no two messages make the same line.
    """

    format: str = "ndjson"
    distinct: bool = True
    content_type: str = field(default=_CONTENT_TYPES["ndjson"])

    def make(self, lines: Sequence[bytes]) -> StoreRequest:
        """
        Join lines, each with its line end, to a body; for C{each}, a single one.

        The key names the messages. Without it goes what may be equal for different messages: a server would drop the
        second as a duplicate.
        """
        content = self._join(lines)
        key = ((b"Idempotency-Key", f'"{hashlib.sha256(content).hexdigest()}"'.encode()),) if self.distinct else ()
        return StoreRequest(self.pack(content), key)

    def read(self, answer: HTTPAnswer, count: int) -> Finding:
        """Tell it by the status alone."""
        if answer.is_success:
            return Finding(Verdict.STORED)
        hint = REDIRECTION_HINT if 300 <= answer.status < 400 else _HINTS.get(answer.status, "")
        verdict = Verdict.REFUSED if answer.status in _REFUSALS else Verdict.LATER
        return Finding(verdict, hint, answer.beginning)

    def _join(self, lines: Sequence[bytes]) -> bytes:
        if self.format == "json":
            return b"[" + b",".join(line[:-1] for line in lines) + b"]"
        if self.format == "each":
            return lines[0][:-1]
        return b"".join(lines)


def read_http(args: Sequence[str], given: Mapping[str, str]) -> tuple[HTTPTarget, PlainHTTP]:
    """
    Read C{http:URL[:key=value…]}, but not the files.

    @raise ConfigError: an argument or option is wrong, or does not go with another.
    """
    options = SpecOptions("http", given)
    scheme = read_auth_scheme(options)
    target = read_target(
        options,
        args,
        example="https://logs.example.com/in",
        secrets=secret_fields(given, scheme),
        method=options.choice("method", _METHODS, "POST"),
    )
    return target, _read_store(options)


def _read_store(options: SpecOptions) -> PlainHTTP:
    template = options.given.get("template")
    name = options.choice("format", FORMATS, "ndjson" if template is None else "each")
    if template is None and name == "lines":
        raise options.problem("format=lines needs template=TEXT")
    if template is not None and name not in ("each", "lines"):
        raise options.problem(f"template= goes with format=each or format=lines, not with format={name}")
    if name == "each":
        for key in ("batch", "batch_size"):
            if key in options:
                raise options.problem(f"{key}= does not go with format=each, which sends one message a request")
    lines = options.read("template", None, Template.parse)
    return PlainHTTP(
        format=name,
        limits=BatchLimits(1) if name == "each" else read_limits(options),
        gzip=options.flag("gzip", False),
        # Two messages of the same text would have one key, and a server would drop the second as a duplicate.
        distinct=template is None or is_unique(template),
        render=encode_line if lines is None else lines.render_line,
        content_type=options.read("content_type", _CONTENT_TYPES[name if template is None else "lines"], _media_type),
    )


def _media_type(text: str) -> str:
    if not text.isascii() or not FIELD_VALUE.fullmatch(text.encode()):
        raise ValueError("it takes a media type, such as application/json")
    return text


def build_http(spec: str, args: Sequence[str], options: Mapping[str, str], ack: str) -> HTTPObserver:
    """
    Make the observer of C{http:URL[:key=value…]}.

    @raise ConfigError: an argument, an option or a file is wrong.
    """
    target, store = read_http(args, options)
    observer = HTTPObserver(spec, target, store, connect)
    observer.check()
    return observer
