"""
The spec string of the C{http} observer, read without opening a connection.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from webhookrx.errors import ConfigError
from webhookrx.message.json_lines import encode_line
from webhookrx.observers.client_tls import ClientTLS
from webhookrx.observers.http_bodies import FORMATS, BodyFormat
from webhookrx.observers.http_headers import FIELD_VALUE, TOKEN
from webhookrx.observers.lines import RenderLine, render_line_for
from webhookrx.quantities import parse_duration, parse_size

HTTP_OPTIONS = (
    "format",
    "template",
    "batch",
    "batch_size",
    "gzip",
    "method",
    "content_type",
    "token_file",
    "auth_scheme",
    "headers_file",
    "ca_file",
    "cert_file",
    "key_file",
    "allow_plaintext",
    "timeout",
    "retry_for",
)

DEFAULT_TIMEOUT = 10.0
DEFAULT_RETRY_FOR = 10.0
DEFAULT_AUTH_SCHEME = "Bearer"

_TLS_OPTIONS = ("ca_file", "cert_file", "key_file")
_DEFAULT_BODIES = BodyFormat()
_CONTENT_TYPES = {
    "ndjson": "application/x-ndjson",
    "json": "application/json",
    "each": "application/json",
    "lines": "text/plain; charset=utf-8",
}

#: RFC 3986, section 2: what may stand in a URI. Others must be percent-encoded, so that what is sent is what was read.
_URI = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+")
_COUNT = re.compile(r"[1-9][0-9]{0,8}")
#: What makes the text of each message another one than that of the rest.
_UNIQUE = re.compile(r"\$(?:RCPTID\b|\{RCPTID[:}]|\(\s*format-json\s*\))", re.ASCII)

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True)
class Target:
    """
    What the observer runs with.

    @ivar url: where to; absolute, without user, password and fragment.
    @ivar host: the host of the URL, an IPv6 address without its brackets.
    @ivar tls: None for C{http}.
    @ivar bodies: how requests are made of messages.
    @ivar render_line: makes a line of a message.
    @ivar timeout: seconds for one request, from connecting to the end of its answer.
    @ivar retry_for: seconds for which one C{store} begins further tries.
    """

    url: str
    host: str
    tls: ClientTLS | None
    bodies: BodyFormat = _DEFAULT_BODIES
    render_line: RenderLine = field(default=encode_line, repr=False)
    content_type: str = _CONTENT_TYPES["ndjson"]
    method: str = "POST"
    token_file: str | None = None
    auth_scheme: str = DEFAULT_AUTH_SCHEME
    headers_file: str | None = None
    timeout: float = DEFAULT_TIMEOUT
    retry_for: float = DEFAULT_RETRY_FOR


def read_target(args: Sequence[str], options: Mapping[str, str]) -> Target:
    """
    Read C{http:URL[:key=value…]}.

    @param args: the URL.
    @raise ConfigError: an argument or option is wrong, or does not go with another.
    """
    if len(args) != 1 or not args[0]:
        raise _problem("takes one URL, such as http:https://logs.example.com/in")
    url = args[0]
    scheme, host = _read_url(url)
    _check_secrets(scheme, host, options)
    bodies, render_line, content_type = _read_bodies(options)
    return Target(
        url=url,
        host=host,
        tls=_read_tls(scheme, options),
        bodies=bodies,
        render_line=render_line,
        content_type=content_type,
        method=_choice(options, "method", ("POST", "PUT")),
        token_file=options.get("token_file"),
        auth_scheme=_read_auth_scheme(options),
        headers_file=options.get("headers_file"),
        timeout=_quantity(options, "timeout", parse_duration, DEFAULT_TIMEOUT, at_least=0.001),
        retry_for=_quantity(options, "retry_for", parse_duration, DEFAULT_RETRY_FOR, at_least=0.0),
    )


def _read_url(url: str) -> tuple[str, str]:
    """Return scheme and host. A URL with a password is never quoted."""
    if "@" in re.split("[/?#]", url.partition("://")[2] or url)[0]:
        raise _problem("no user or password in the URL: it is seen in logs and process lists; use token_file=")
    if not _URI.fullmatch(url):
        raise _problem(f"{url!r}: a URL has no spaces or characters beyond ASCII; write them as %XX")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _problem(f"{url!r} is not a URL: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise _problem(f"{url!r} does not begin with http:// or https://")
    if not host or port == 0:
        raise _problem(f"{url!r} names no host, or port 0")
    if parts.fragment:
        raise _problem(f"{url!r}: a fragment, what follows #, is never sent; write %23 for a # that belongs to the URL")
    return parts.scheme, host


def _check_secrets(scheme: str, host: str, options: Mapping[str, str]) -> None:
    allowed = _yes(options, "allow_plaintext")
    secret = next((key for key in ("token_file", "headers_file") if key in options), None)
    if secret is not None and scheme == "http" and not allowed and not _is_loopback(host):
        raise _problem(
            f"{secret}= over http:// would show its secret to the network; use https://, or allow_plaintext=yes "
            "when something between speaks TLS"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        # RFC 6761, section 6.3.
        return host == "localhost" or host.endswith(".localhost")


def _read_tls(scheme: str, options: Mapping[str, str]) -> ClientTLS | None:
    given = [key for key in _TLS_OPTIONS if key in options]
    if scheme == "http":
        if given:
            raise _problem(f"{given[0]}= goes with an https:// URL")
        return None
    if ("cert_file" in options) != ("key_file" in options):
        raise _problem("cert_file= and key_file= go together")
    return ClientTLS(**{key: options[key] for key in given})


def _read_bodies(options: Mapping[str, str]) -> tuple[BodyFormat, RenderLine, str]:
    """Return how bodies and lines are made, and their content type."""
    template = options.get("template")
    name = _choice(options, "format", FORMATS, "ndjson" if template is None else "each")
    if template is None and name == "lines":
        raise _problem("format=lines needs template=TEXT")
    if template is not None and name not in ("each", "lines"):
        raise _problem(f"template= goes with format=each or format=lines, not with format={name}")
    content_type = options.get("content_type", _CONTENT_TYPES[name if template is None else "lines"])
    if not content_type.isascii() or not FIELD_VALUE.fullmatch(content_type.encode()):
        raise _problem(f"content_type={content_type!r} is not a media type, such as application/json")
    bodies = BodyFormat(
        name,
        messages=_read_batch(name, options),
        size=_quantity(options, "batch_size", parse_size, _DEFAULT_BODIES.size, at_least=1),
        gzip=_yes(options, "gzip"),
        # Two messages with the same text would have one key, and the other end would take the second for a copy.
        distinct=template is None or bool(_UNIQUE.search(template.replace("$$", ""))),
    )
    return bodies, render_line_for("http", {} if template is None else {"template": template}), content_type


def _read_batch(name: str, options: Mapping[str, str]) -> int:
    if name == "each":
        for key in ("batch", "batch_size"):
            if key in options:
                raise _problem(f"{key}= does not go with format=each, which sends one message a request")
        return 1
    text = options.get("batch", str(_DEFAULT_BODIES.messages))
    if not _COUNT.fullmatch(text):
        raise _problem(f"batch={text} is not a number of messages; write one from 1 on, such as 500")
    return int(text)


def _read_auth_scheme(options: Mapping[str, str]) -> str:
    scheme = options.get("auth_scheme", DEFAULT_AUTH_SCHEME)
    if "auth_scheme" in options and "token_file" not in options:
        raise _problem("auth_scheme= goes with token_file=")
    if not scheme.isascii() or not TOKEN.fullmatch(scheme.encode()):
        raise _problem(f"auth_scheme={scheme!r} is not one word, such as Bearer")
    return scheme


def _choice(options: Mapping[str, str], key: str, allowed: Sequence[str], default: str | None = None) -> str:
    text = options.get(key, allowed[0] if default is None else default)
    if text not in allowed:
        raise _problem(f"{key}={text} is not one of {', '.join(allowed)}")
    return text


def _yes(options: Mapping[str, str], key: str) -> bool:
    return _choice(options, key, ("no", "yes")) == "yes"


def _quantity(
    options: Mapping[str, str], key: str, parse: Callable[[str], _Number], default: _Number, *, at_least: _Number
) -> _Number:
    try:
        value = parse(options[key]) if key in options else default
    except ValueError as error:
        raise _problem(f"{key}=: {error}") from None
    if value < at_least:
        raise _problem(f"{key}={options[key]} is too small")
    return value


def _problem(text: str) -> ConfigError:
    return ConfigError(f"observer 'http': {text}")
