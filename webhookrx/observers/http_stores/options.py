"""
Where an HTTP store is, and the files that hold its secrets: a token, and header fields.

Errors never quote these files, only line numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

from webhookrx.config.files import read_file
from webhookrx.config.specs import SpecOptions
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.intake.tokens import check_token, parse_token_file
from webhookrx.observers.addresses import check_plaintext, is_loopback, refuse_password
from webhookrx.observers.client_tls import ClientTLS, read_tls_if
from webhookrx.observers.http_stores.exchange import Header

SECRET_FILES = ("token_file", "headers_file")
"""The options that name files of secrets, and that every HTTP store has."""

DEFAULT_TIMEOUT = 10.0
SHORTEST_TIMEOUT = 0.001
DEFAULT_RETRY_FOR = 10.0
DEFAULT_AUTH_SCHEME = "Bearer"

#: The characters of a URI (RFC 3986, section 2). Others must be percent-encoded, so that the URL is sent as written.
_URI = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+")
#: RFC 9110, section 5.6.2.
TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: RFC 9110, section 5.5: visible bytes, with spaces and tabs between them.
FIELD_VALUE = re.compile(rb"[\x21-\x7e\x80-\xff](?:[\t \x21-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?")

#: Fields that frame a request, or that the observer sets.
_OURS = frozenset(
    b"accept-encoding connection content-encoding content-length content-type expect idempotency-key keep-alive "
    b"te trailer transfer-encoding upgrade".split()
)


class SecretFile(NamedTuple):
    """
    A file whose contents go with each request.

    @ivar option: the option that names it.
    @ivar read: makes header fields of the file; raises L{ConfigError}, which quotes nothing of it.
    """

    option: str
    path: str
    read: Callable[[str], list[Header]]


@dataclass(frozen=True, slots=True)
class HTTPTarget:
    """
    Where messages go.

    @ivar name: the name of the observer, for errors.
    @ivar url: absolute, without user, password and fragment.
    @ivar host: the host of the URL, an IPv6 address without its brackets.
    @ivar tls: None for C{http}.
    @ivar timeout: seconds for one request, from connecting to the end of its answer.
    @ivar retry_for: seconds from the beginning of a C{store} in which it begins further tries.
    """

    name: str
    url: str
    host: str
    tls: ClientTLS | None
    secrets: tuple[SecretFile, ...] = ()
    method: str = "POST"
    timeout: float = DEFAULT_TIMEOUT
    retry_for: float = DEFAULT_RETRY_FOR


def read_target(
    options: SpecOptions,
    args: Sequence[str],
    *,
    example: str,
    secrets: Sequence[SecretFile] = (),
    method: str = "POST",
    instead: str = "token_file=",
    retry_for: float = DEFAULT_RETRY_FOR,
    retry_at_least: float = 0.0,
) -> HTTPTarget:
    """
    Read the URL, and the options that every HTTP store has, but not the files.

    @param example: a URL that is right.
    @param retry_for: the default of C{retry_for}.
    @param retry_at_least: the least that it may be.
    @param instead: what takes the place of a password in the URL, for errors.
    @raise ConfigError: the URL or an option is wrong, or does not go with another.
    """
    if len(args) != 1 or not args[0]:
        raise options.problem(f"takes one URL, such as {options.observer}:{example}")
    url = args[0]
    scheme, host = _read_url(url, options, instead)
    check_plaintext(
        options,
        [secret.option for secret in secrets],
        is_encrypted=scheme == "https",
        is_local=is_loopback(host),
        remedy="use https://",
    )
    return HTTPTarget(
        name=options.observer,
        url=url,
        host=host,
        tls=read_tls_if(options, is_used=scheme == "https", goes_with="an https:// URL"),
        secrets=tuple(secrets),
        method=method,
        timeout=options.duration("timeout", DEFAULT_TIMEOUT, at_least=SHORTEST_TIMEOUT),
        retry_for=options.duration("retry_for", retry_for, at_least=retry_at_least),
    )


def path_behind(url: str, path: str) -> str:
    """Return the path of an API behind that of a URL, which may end with it already."""
    base = "/" + url.partition("://")[2].partition("/")[2]
    return base if base.endswith(path) else base.rstrip("/") + path


def secret_fields(given: Mapping[str, str], scheme: str) -> list[SecretFile]:
    """
    Return the files of C{token_file} and C{headers_file}, if they are given.

    @param scheme: the word before the token.
    """
    secrets = []
    if "token_file" in given:
        secrets.append(SecretFile("token_file", given["token_file"], partial(read_token, scheme=scheme)))
    if "headers_file" in given:
        secrets.append(SecretFile("headers_file", given["headers_file"], read_headers))
    return secrets


def _read_url(url: str, options: SpecOptions, instead: str) -> tuple[str, str]:
    """Return scheme and host. Errors never quote a URL that may hold a password."""
    shown = "the URL" if "@" in url else repr(url)
    if url.startswith("//"):
        raise options.problem(
            f"{shown} has no scheme; the URL comes after the colon: {options.observer}:http://HOST/PATH"
        )
    refuse_password(url, options, instead)
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


def read_auth_scheme(options: SpecOptions) -> str:
    """Read the word before the token."""
    if "auth_scheme" in options and "token_file" not in options:
        raise options.problem("auth_scheme= goes with token_file=")
    return options.read("auth_scheme", DEFAULT_AUTH_SCHEME, _one_word)


def _one_word(text: str) -> str:
    if not text.isascii() or not TOKEN.fullmatch(text.encode()):
        raise ValueError("it takes one word, such as Bearer")
    return text


def read_token(path: str, scheme: str) -> list[Header]:
    """
    Read a file that holds one token; blank lines and lines that begin with C{#} are skipped.

    @param scheme: the word before the token.
    @raise ConfigError: it can't be read, or does not hold exactly one token that can be sent.
    """
    content, _ = read_file(path)
    tokens = parse_token_file(content.decode("utf-8", "surrogateescape"))
    if len(tokens) != 1:
        raise ConfigError(f"{quoted(path)} holds {len(tokens)} tokens; it must hold one, on a line of its own.")
    if check_token(tokens[0]) is not None:
        raise ConfigError(f"{quoted(path)}: the token holds white space or control characters, which can't be sent.")
    return [(b"Authorization", scheme.encode() + b" " + tokens[0])]


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
