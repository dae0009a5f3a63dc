"""
The rows of the table of options that are for a source, which may have them anywhere in a YAML file.
"""

from __future__ import annotations

from typing import Final

from webhookrx.config.option import Kind, Option, OptionScope
from webhookrx.settings import PLAIN_PORT, TLS_PORT, Source

_SOURCE: Final = Source()

SOURCE_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "port",
        OptionScope.SOURCE,
        Kind.TEXT,
        "where to listen: a port number, or a tcp:, tcp6:, ssl:, unix:, systemd: or haproxy: endpoint string",
        value="ENDPOINT",
        default=f"{PLAIN_PORT}, or {TLS_PORT} with a key",
        short="p",
        repeat=True,
    ),
    Option(
        "source",
        OptionScope.SOURCE,
        Kind.TEXT,
        "the variant: webhook keeps the body unchanged, webhook-json parses it",
        value="VARIANT",
        default=_SOURCE.variant,
        choices=("webhook", "webhook-json"),
    ),
    Option(
        "paths",
        OptionScope.SOURCE,
        Kind.TEXT,
        "a static path or a regular expression that the whole path must match, or a JSON list of them",
        value="PATTERN",
        default=" ".join(_SOURCE.paths),
        repeat=True,
    ),
    Option(
        "health",
        OptionScope.SOURCE,
        Kind.TEXT,
        "a path for health checks: GET, HEAD and OPTIONS get 200 if the service is ready, else 503, without a token",
        value="PATH",
    ),
    Option(
        "allow-slow-patterns",
        OptionScope.SOURCE,
        Kind.FLAG,
        "accept path patterns that RE2 can't run, in connector rules too; a hostile path may then block the receiver",
        default="no",
    ),
    Option(
        "prefix",
        OptionScope.SOURCE,
        Kind.TEXT,
        "text before the name of each parsed name-value pair (webhook-json only)",
        value="TEXT",
        default="empty",
    ),
    Option(
        "on-parse-error",
        OptionScope.SOURCE,
        Kind.TEXT,
        "what to do with a body that is neither JSON nor a form: keep it as MESSAGE, or reject it with 400 "
        "(webhook-json only)",
        value="ACTION",
        default=_SOURCE.on_parse_error,
        choices=("keep", "reject"),
    ),
    Option(
        "keep-message",
        OptionScope.SOURCE,
        Kind.TEXT,
        "which messages have the body as MESSAGE: all, or only those that could not be parsed (webhook-json only)",
        value="WHEN",
        default=_SOURCE.keep_message,
        choices=("yes", "unparsed"),
    ),
    Option(
        "auth-token",
        OptionScope.SOURCE,
        Kind.TEXT,
        "a token that requests must carry; each of several is accepted. Other users of this machine can read it in the "
        "process list, so prefer --auth-token-file",
        value="TOKEN",
        repeat=True,
        secret=True,
    ),
    Option(
        "auth-token-file",
        OptionScope.SOURCE,
        Kind.FILE,
        "a file with one accepted token per line; # starts a comment",
        value="FILE",
        repeat=True,
    ),
    Option(
        "include-request-headers",
        OptionScope.SOURCE,
        Kind.FLAG,
        "put the request headers into webhook.headers, credentials masked",
        default="no",
    ),
    Option(
        "proxy-header",
        OptionScope.SOURCE,
        Kind.TEXT,
        "the one request header that is trusted for the client address; yes means x-forwarded-for",
        value="NAME",
    ),
    Option(
        "tls-key-file",
        OptionScope.SOURCE,
        Kind.FILE,
        "unencrypted private key in PEM; with it every endpoint of the source speaks TLS",
        value="FILE",
    ),
    Option(
        "tls-cert-file",
        OptionScope.SOURCE,
        Kind.FILE,
        "certificate in PEM, or the whole chain with the host certificate first",
        value="FILE",
    ),
    Option(
        "tls-peer-verify",
        OptionScope.SOURCE,
        Kind.FLAG,
        "refuse clients without a valid certificate; needs --tls-ca-file, --tls-ca-dir or --tls-use-system-cert-store",
        default="no",
    ),
    Option(
        "tls-ca-file",
        OptionScope.SOURCE,
        Kind.FILE,
        "trusted CA certificates in PEM",
        value="FILE",
    ),
    Option(
        "tls-ca-dir",
        OptionScope.SOURCE,
        Kind.DIRECTORY,
        "directory of trusted CA certificates with hashed names (openssl rehash)",
        value="DIR",
    ),
    Option(
        "tls-use-system-cert-store",
        OptionScope.SOURCE,
        Kind.FLAG,
        "trust the certificate store of the system",
        default="no",
    ),
)
