"""
The spec string of the s3 observer, and its file of credentials.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as MalformedFile
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from webhookrx.config.files import read_file
from webhookrx.config.observers import Argument, ObserverSpec, OptionText
from webhookrx.config.specs import SpecOptions
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.interfaces import LARGEST_BATCH
from webhookrx.message.encoders import encode_line
from webhookrx.message.identity import MakeID, message_id, parse_id
from webhookrx.message.template import Template
from webhookrx.observers.addresses import is_loopback, refuse_password
from webhookrx.observers.writers import RenderLine
from webhookrx.quantities import format_size

EXAMPLE: Final = "s3:s3://BUCKET/PREFIX"
DEFAULT_NAME: Final = "dt=%Y-%m-%d/hh=%H/"
DEFAULT_SIZE: Final = 16 * 1024**2
DEFAULT_AGE: Final = 300.0
DEFAULT_TIMEOUT: Final = 20.0
SHORTEST_TIMEOUT: Final = 0.1
LONGEST_TIME: Final = 3600.0
DEFAULT_RETRY_FOR: Final = 5.0
FORMATS: Final = ("ndjson", "parquet")
COMPRESSIONS: Final = ("zstd", "gzip")

S3_SPEC: Final = ObserverSpec(
    options=(
        "endpoint",
        "region",
        "credentials_file",
        "ca_file",
        "allow_plaintext",
        "name",
        "format",
        "compress",
        "template",
        "id",
        "size",
        "age",
        "timeout",
        "retry_for",
    ),
    argument=Argument.URL,
    files=("credentials_file", "ca_file"),
    secrets=("credentials_file",),
    needs_spool=True,
    texts={
        "endpoint": OptionText("AWS", "URL of another service, such as `https\\://minio.example.net\\:9000`"),
        "region": OptionText("`AWS_REGION`, else `us-east-1`", "region of the bucket"),
        "credentials_file": OptionText(
            "environment, web identity, container, instance",
            "file with a section `[default]`: `aws_access_key_id`, `aws_secret_access_key`, `aws_session_token`",
        ),
        "ca_file": OptionText("none", "further CA certificates that are trusted for the service, in PEM format"),
        "allow_plaintext": OptionText("`no`", "`yes` takes an `endpoint` with `http://` on another machine"),
        "name": OptionText(
            f"`{DEFAULT_NAME}`",
            "beginning of the name of an object after the prefix, with `%Y`, `%m`, `%d`, `%H`, `%M` and `%j` of the "
            "time of receipt of its first message, in UTC",
        ),
        "format": OptionText("`ndjson`", "`ndjson`: a line per message; `parquet`: a row per message"),
        "compress": OptionText("`zstd`", "`zstd` or `gzip`"),
        "size": OptionText("`16MiB`", "bytes of messages that make an object, at most 64 MiB"),
        "age": OptionText("`5m`", "how long a message waits for others at most"),
        "timeout": OptionText("`20s`", "time limit of each request"),
        "retry_for": OptionText("`5s`", "how long an object is retried before the spool makes a pause"),
    },
)

#: Names of buckets; those of other services than AWS may have capital letters and underscores.
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
#: The characters that are safe in names of objects, but for what means something in patterns and shells.
_NAME: Final = re.compile(r"[A-Za-z0-9_.=-]+(?:/[A-Za-z0-9_.=-]+)*/?")
_DIRECTIVES: Final = re.compile(r"%[YmdHMj]")
_REGION: Final = re.compile(r"[a-z0-9-]{1,40}")
LONGEST_PREFIX: Final = 500
"""Bytes of a prefix and of a name; the rest of the 1,024 that the name of an object may have is ours."""


@dataclass(frozen=True, slots=True)
class S3Target:
    """
    Where objects go, and what they hold.

    @ivar prefix: before the name of each object; empty, or ends with a slash.
    @ivar endpoint: the URL of another service than AWS; None for that of the region.
    @ivar name: what comes before the name of an object, with directives of C{strftime}.
    @ivar size: bytes of messages that make one object.
    @ivar age: seconds that a message waits for others at most.
    @ivar timeout: seconds for one request.
    @ivar retry_for: seconds from the beginning of a C{store} in which it begins further tries.
    """

    bucket: str
    prefix: str
    endpoint: str | None = None
    region: str | None = None
    credentials_file: str | None = None
    ca_file: str | None = None
    name: str = DEFAULT_NAME
    format: str = "ndjson"
    compress: str = "zstd"
    has_template: bool = False
    identify: MakeID = field(default=message_id, repr=False)
    render_line: RenderLine = field(default=encode_line, repr=False)
    size: int = DEFAULT_SIZE
    age: float = DEFAULT_AGE
    timeout: float = DEFAULT_TIMEOUT
    retry_for: float = DEFAULT_RETRY_FOR

    @property
    def is_plain(self) -> bool:
        """Whether it is reached without TLS."""
        return self.endpoint is not None and self.endpoint.startswith("http://")


def read_s3(args: Sequence[str], given: Mapping[str, str]) -> S3Target:
    """
    Read C{s3:s3://BUCKET/PREFIX[:key=value…]}, but not the files.

    @raise ConfigError: an argument or option is wrong, or does not go with another.
    """
    options = SpecOptions("s3", given)
    bucket, prefix = _read_url(args, options)
    identify: MakeID = message_id
    template = options.read("template", None, Template.parse)
    size = options.size("size", DEFAULT_SIZE, at_least=1)
    if size > LARGEST_BATCH:
        raise options.misfit("size", "sensible", f"{format_size(LARGEST_BATCH)} or less")
    region: str | None = None
    return S3Target(
        bucket,
        prefix,
        endpoint=_read_endpoint(options),
        region=options.read("region", region, _region),
        credentials_file=given.get("credentials_file"),
        ca_file=given.get("ca_file"),
        name=options.read("name", DEFAULT_NAME, _name),
        format=options.choice("format", FORMATS, "ndjson"),
        compress=options.choice("compress", COMPRESSIONS, "zstd"),
        has_template=template is not None,
        identify=options.read("id", identify, parse_id),
        render_line=encode_line if template is None else template.render_line,
        size=size,
        age=options.duration("age", DEFAULT_AGE, at_most=24 * LONGEST_TIME),
        timeout=options.duration("timeout", DEFAULT_TIMEOUT, at_least=SHORTEST_TIMEOUT, at_most=LONGEST_TIME),
        retry_for=options.duration("retry_for", DEFAULT_RETRY_FOR, at_most=LONGEST_TIME),
    )


def _read_url(args: Sequence[str], options: SpecOptions) -> tuple[str, str]:
    """Return the bucket and the prefix."""
    url = args[0] if args else ""
    if any(part.startswith("//") for part in args[1:]):
        raise options.problem(r"a colon in the value of an option is written \:, as in endpoint=https\://HOST\:9000")
    if len(args) != 1 or not url.startswith("s3://"):
        raise options.problem(f"takes one URL, {EXAMPLE}; the address of the service is endpoint=")
    refuse_password(url, options, "credentials_file=")
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    if not _BUCKET.fullmatch(bucket):
        # A password with a slash in it looks like a bucket.
        shown = "a part of the URL" if "@" in url else quoted(bucket)
        raise options.problem(f"{shown} is no name of a bucket: 3 to 63 letters, digits, dots and hyphens")
    if prefix and not _is_name(prefix):
        shown = "" if "@" in url else f" {quoted(prefix)}"
        raise options.problem(f"the prefix{shown} holds more than letters, digits and _.=-/, or is too long")
    return bucket, prefix if not prefix or prefix.endswith("/") else f"{prefix}/"


def _is_name(text: str) -> bool:
    parts = text.removesuffix("/").split("/")
    return bool(_NAME.fullmatch(text)) and len(text) <= LONGEST_PREFIX and not {".", ".."} & {*parts}


def _name(text: str) -> str:
    if text and not _is_name(_DIRECTIVES.sub("0000", text)):
        raise ValueError(
            "it takes letters, digits and _.=-/, with %Y, %m, %d, %H, %M and %j for the time of receipt in UTC, such "
            f"as {DEFAULT_NAME}"
        )
    return text


def _region(text: str) -> str:
    if not _REGION.fullmatch(text):
        raise ValueError("it takes the name of a region, such as eu-central-1")
    return text


def _read_endpoint(options: SpecOptions) -> str | None:
    endpoint = options.given.get("endpoint")
    is_allowed = options.flag("allow_plaintext", False)
    if endpoint is None:
        return None
    refuse_password(endpoint, options, "credentials_file=")
    if "@" in endpoint:
        # It may be that of a password with a slash in it.
        raise options.problem("endpoint= holds an @, as a password may; it takes none")
    takes = "the URL of a service, such as endpoint=https\\://minio.example.com\\:9000"
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise options.problem(f"endpoint= is malformed; it takes {takes}") from None
    if parts.scheme not in ("http", "https") or not host or port == 0 or parts.path not in ("", "/"):
        raise options.misfit("endpoint", "known", takes)
    if parts.query or parts.fragment:
        raise options.misfit("endpoint", "known", takes)
    if parts.scheme == "http" and not is_loopback(host) and not is_allowed:
        raise options.problem(
            "endpoint=http:// would show a session token and all messages to the network; use https://, or "
            "allow_plaintext=yes when something between speaks TLS"
        )
    return endpoint.removesuffix("/")


class Credentials:
    """What a request is signed with. No C{repr} shows it."""

    __slots__ = ("key_id", "secret", "token")

    def __init__(self, key_id: str, secret: str, token: str | None) -> None:
        self.key_id = key_id
        self.secret = secret
        self.token = token


#: The names in a file of credentials, as AWS's own programs have them.
_NAMES: Final = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


def read_credentials(path: str) -> Credentials:
    """
    Read a file of credentials, as AWS's own programs do: one section, such as C{[default]}. Nothing of it is quoted.

    @raise ConfigError: it can't be read, or holds no credentials.
    """
    try:
        content, _ = read_file(path)
    except ConfigError as error:
        raise ConfigError(f"observer 's3': credentials_file: {error.problem}") from None
    parser = ConfigParser(interpolation=None)
    where = f"observer 's3': credentials_file: {quoted(path)}"
    try:
        parser.read_string(content.decode("utf-8-sig"))
    except (MalformedFile, UnicodeDecodeError):
        raise ConfigError(
            f"{where} is malformed; it takes [default], and a line for each of {', '.join(_NAMES)}"
        ) from None
    sections = parser.sections()
    section = parser["default"] if "default" in sections else parser[sections[0]] if len(sections) == 1 else {}
    key_id, secret, token = (section.get(name, "").strip() for name in _NAMES)
    if not key_id or not secret:
        raise ConfigError(f"{where} has no section [default] with {_NAMES[0]} and {_NAMES[1]}")
    if not all(text.isascii() and text.isprintable() for text in (key_id, secret, token)):
        raise ConfigError(f"{where} holds a character that no credentials have")
    return Credentials(key_id, secret, token or None)
