"""
The spec string of the http observer, and the files that hold its secrets: a token, and header fields.

Errors never quote these files, only line numbers.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from webhookrx.config.files import read_file
from webhookrx.config.observers import Argument, ObserverSpec
from webhookrx.config.specs import SpecOptions
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.intake.tokens import check_token, parse_token_file
from webhookrx.message.encoders import encode_line
from webhookrx.message.template import Template
from webhookrx.observers.client_tls import TLS_OPTIONS, TLS_SECRETS, ClientTLS, read_client_tls
from webhookrx.observers.http_exchange import FORMATS, BodyFormat, Header
from webhookrx.observers.writers import RenderLine

_FILES = ("token_file", "headers_file")

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
        *_FILES,
        *TLS_OPTIONS,
    ),
    argument=Argument.URL,
    files=(*_FILES, *TLS_OPTIONS),
    secrets=(*_FILES, *TLS_SECRETS),
)

DEFAULT_TIMEOUT = 10.0
SHORTEST_TIMEOUT = 0.001
DEFAULT_RETRY_FOR = 10.0
DEFAULT_AUTH_SCHEME = "Bearer"

_METHODS = ("POST", "PUT")
_DEFAULT_BODIES = BodyFormat()
_CONTENT_TYPES = {
    "ndjson": "application/x-ndjson",
    "json": "application/json",
    "each": "application/json",
    "lines": "text/plain; charset=utf-8",
}

#: The characters of a URI (RFC 3986, section 2). Others must be percent-encoded, so that the URL is sent as written.
_URI = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+")
#: A macro that makes the text of each message unique.
_UNIQUE = re.compile(r"\$(?:RCPTID\b|\{RCPTID[:}]|\(\s*format-json\s*\))", re.ASCII)

#: RFC 9110, section 5.6.2.
TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: RFC 9110, section 5.5: visible bytes, with spaces and tabs between them.
FIELD_VALUE = re.compile(rb"[\x21-\x7e\x80-\xff](?:[\t \x21-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?")

#: Fields that frame a request, or that the observer sets.
_OURS = frozenset(
    b"accept-encoding connection content-encoding content-length content-type expect idempotency-key keep-alive "
    b"te trailer transfer-encoding upgrade".split()
)


@dataclass(frozen=True, slots=True)
class HTTPTarget:
    """
    Where messages go, and in which form.

    @ivar url: absolute, without user, password and fragment.
    @ivar host: the host of the URL, an IPv6 address without its brackets.
    @ivar tls: None for C{http}.
    @ivar timeout: seconds for one request, from connecting to the end of its answer.
    @ivar retry_for: seconds from the beginning of a C{store} in which it begins further tries.
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


def read_http(args: Sequence[str], given: Mapping[str, str]) -> HTTPTarget:
    """
    Read C{http:URL[:key=value…]}, but not the files.

    @raise ConfigError: an argument or option is wrong, or does not go with another.
    """
    options = SpecOptions("http", given)
    if len(args) != 1 or not args[0]:
        raise options.problem("takes one URL, such as http:https://logs.example.com/in")
    url = args[0]
    scheme, host = _read_url(url, options)
    _check_secrets(scheme, host, options)
    bodies, render_line, content_type = _read_bodies(options)
    return HTTPTarget(
        url=url,
        host=host,
        tls=_read_tls(scheme, options),
        bodies=bodies,
        render_line=render_line,
        content_type=content_type,
        method=options.choice("method", _METHODS, "POST"),
        token_file=given.get("token_file"),
        auth_scheme=_read_auth_scheme(options),
        headers_file=given.get("headers_file"),
        timeout=options.duration("timeout", DEFAULT_TIMEOUT, at_least=SHORTEST_TIMEOUT),
        retry_for=options.duration("retry_for", DEFAULT_RETRY_FOR),
    )


def _read_url(url: str, options: SpecOptions) -> tuple[str, str]:
    """Return scheme and host. Errors never quote a URL that may hold a password."""
    shown = "the URL" if "@" in url else repr(url)
    if url.startswith("//"):
        raise options.problem(f"{shown} has no scheme; the URL comes after the colon: http:http://HOST/PATH")
    if "@" in re.split("[/?#]", url.partition("://")[2] or url)[0]:
        raise options.problem("no user or password in the URL: it is seen in logs and process lists; use token_file=")
    if not _URI.fullmatch(url):
        raise options.problem(f"{shown} holds a space or characters beyond ASCII; write them as %XX")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        # The error quotes a part of the URL.
        raise options.problem(f"{shown} is malformed" + (f": {error}" if "@" not in url else "")) from None
    if parts.scheme not in ("http", "https"):
        raise options.problem(f"{shown} does not begin with http:// or https://")
    if not host or port == 0:
        raise options.problem(f"{shown} names no host, or port 0")
    if parts.fragment:
        raise options.problem(
            f"{shown} has a fragment, what follows #, which is never sent; write %23 for a # of the URL"
        )
    return parts.scheme, host


def _check_secrets(scheme: str, host: str, options: SpecOptions) -> None:
    allowed = options.flag("allow_plaintext", False)
    secret = next((key for key in _FILES if key in options), None)
    if secret is not None and scheme == "http" and not allowed and not _is_loopback(host):
        raise options.problem(
            f"{secret}= over http:// would show its secret to the network; use https://, or allow_plaintext=yes "
            "when something between speaks TLS"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        # RFC 6761, section 6.3.
        return host == "localhost" or host.endswith(".localhost")


def _read_tls(scheme: str, options: SpecOptions) -> ClientTLS | None:
    if scheme == "https":
        return read_client_tls(options)
    for key in TLS_OPTIONS:
        if key in options:
            raise options.problem(f"{key}= goes with an https:// URL")
    return None


def _read_bodies(options: SpecOptions) -> tuple[BodyFormat, RenderLine, str]:
    """Return the formats of bodies and lines, and the content type."""
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
    bodies = BodyFormat(
        name,
        messages=1 if name == "each" else options.count("batch", _DEFAULT_BODIES.messages),
        size=options.size("batch_size", _DEFAULT_BODIES.size, at_least=1),
        gzip=options.flag("gzip", False),
        # Two messages of the same text would have one key, and a server would drop the second as a duplicate.
        distinct=template is None or bool(_UNIQUE.search(template.replace("$$", ""))),
    )
    lines = options.read("template", None, Template.parse)
    return (
        bodies,
        encode_line if lines is None else lines.render_line,
        options.read("content_type", _CONTENT_TYPES[name if template is None else "lines"], _media_type),
    )


def _media_type(text: str) -> str:
    if not text.isascii() or not FIELD_VALUE.fullmatch(text.encode()):
        raise ValueError("it takes a media type, such as application/json")
    return text


def _read_auth_scheme(options: SpecOptions) -> str:
    if "auth_scheme" in options and "token_file" not in options:
        raise options.problem("auth_scheme= goes with token_file=")
    return options.read("auth_scheme", DEFAULT_AUTH_SCHEME, _one_word)


def _one_word(text: str) -> str:
    if not text.isascii() or not TOKEN.fullmatch(text.encode()):
        raise ValueError("it takes one word, such as Bearer")
    return text


def read_token(path: str, scheme: str) -> Header:
    """
    Read a file that holds one token; blank lines and lines that begin with C{#} are skipped.

    @param scheme: the word before the token.
    @raise ConfigError: it can't be read, or does not hold exactly one token that can be sent.
    """
    content, _ = read_file(path)
    tokens = parse_token_file(content.decode("utf-8", "surrogateescape"))
    if len(tokens) != 1:
        raise ConfigError(f"{quoted(path)} holds {len(tokens)} tokens; it must hold one, on a line of its own.")
    problem = check_token(tokens[0])
    if problem is not None:
        raise ConfigError(f"{quoted(path)}: {problem}")
    return b"Authorization", scheme.encode() + b" " + tokens[0]


def read_headers(path: str) -> list[Header]:
    """
    Read a file of header fields, C{Name: value} a line; blank lines and lines that begin with C{#} are skipped.

    @raise ConfigError: it can't be read, or a line is no header field, or one that the observer sets.
    """
    content, _ = read_file(path)
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    headers = [_header(path, number, line) for number, line in _meaningful(lines)]
    if not headers:
        raise ConfigError(f"{quoted(path)} holds no header field; write Name: value, one a line.")
    return headers


def _meaningful(lines: list[bytes]) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, 1):
        # Only the end of a line is stripped: white space before a name is an error.
        text = line.rstrip(b"\r\t ")
        if text and not text.startswith(b"#"):
            yield number, text


def _header(path: str, number: int, line: bytes) -> Header:
    where = f"{quoted(path)}, line {number}"
    name, colon, value = line.partition(b":")
    if not colon or not TOKEN.fullmatch(name):
        raise ConfigError(f"{where} is not a header field; write Name: value.")
    if name.lower() in _OURS:
        raise ConfigError(f"{where}: {name.decode()} is set by the observer itself.")
    value = value.strip(b"\t ")
    if not FIELD_VALUE.fullmatch(value):
        raise ConfigError(f"{where}: the value of {name.decode()} is empty or holds a control character.")
    return name, value
