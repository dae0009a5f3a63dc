"""
The spec string of the syslog observer, read without connecting anything.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from webhookrx.config.observers import Argument, ObserverSpec
from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.message.rfc5424 import FACILITIES, SEVERITIES, SyslogFormat, check_sd_id
from webhookrx.message.template import Template
from webhookrx.observers.client_tls import TLS_OPTIONS, TLS_SECRETS, make_context, read_client_tls

FRAMINGS: Final = ("octet-counting", "newline")
DEFAULT_TIMEOUT: Final = 10.0
SHORTEST_TIMEOUT: Final = 0.001
LONGEST_TIMEOUT: Final = 3600.0
# A server that finds a message too long may close the connection, and silently lose the messages in flight behind it.
# 64 KiB is the default limit of syslog-ng; RFC 5424 section 6.1 requires no more than 480 bytes.
DEFAULT_MAX_SIZE: Final = 64 * 1024

_FORMAT_OPTIONS: Final = ("facility", "severity", "app_name", "template", "sd_id", "bom")
_TCP_OPTIONS: Final = ("framing",)
_TLS_OPTIONS: Final = (*TLS_OPTIONS, "server_name")
SYSLOG_SPEC: Final = ObserverSpec(
    (*_FORMAT_OPTIONS, "escape", "timeout", "max_size", *_TCP_OPTIONS, *_TLS_OPTIONS),
    Argument.ADDRESS,
    files=TLS_OPTIONS,
    secrets=TLS_SECRETS,
)

#: Transport to its registered port, RFC 5425 section 4.1 and RFC 5426 section 3.3. Plain TCP has none (RFC 6587).
_PORTS: Final[Mapping[str, int | None]] = {"tcp": None, "tls": 6514, "udp": 514}
TRANSPORTS: Final = (*_PORTS, "unix")

_SEVERITY_ALIASES: Final = {"panic": "emerg", "error": "err", "warn": "warning"}
#: C{sun_path} of unix(7), without its last byte.
_LONGEST_UNIX_PATH: Final = 107


@dataclass(frozen=True, slots=True)
class SyslogTarget:
    """
    Where messages go, and in which form.

    @ivar transport: one of L{TRANSPORTS}.
    @ivar host: name or address; for C{unix}, the absolute path.
    @ivar port: 0 for C{unix}.
    @ivar octet_counting: frames count octets; else a line feed ends them.
    @ivar timeout: seconds for one batch.
    @ivar max_size: bytes of the longest message that is sent.
    @ivar make_context: reads the certificates and makes a TLS context, or raises L{ConfigError}; for C{tls} only.
    @ivar server_name: the name in the certificate of the server.
    """

    transport: str
    host: str
    port: int
    format: SyslogFormat
    octet_counting: bool
    timeout: float
    max_size: int
    make_context: Callable[[], ssl.SSLContext] | None = None
    server_name: str = ""

    def __str__(self) -> str:
        if self.transport == "unix":
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_syslog(spec: str, args: Sequence[str], given: Mapping[str, str]) -> SyslogTarget:
    """
    Read a spec string, and check the files of certificates.

    @param args: transport, host and port; or C{unix} and a path.
    @raise ConfigError: an argument, an option or a file is wrong.
    """
    options = SpecOptions("syslog", given)
    transport, host, port = _read_destination(spec, args, options)
    for owner, names in (("tcp", _TCP_OPTIONS), ("tls", _TLS_OPTIONS)):
        for name in names:
            if name in options and transport != owner:
                raise options.problem(f"{name}= goes with syslog:{owner}: only, not with syslog:{transport}:")
    octet_counting = transport == "tls" or (
        transport == "tcp" and options.choice("framing", FRAMINGS, FRAMINGS[0]) == "octet-counting"
    )
    return SyslogTarget(
        transport,
        host,
        port,
        _read_format(options, octet_counting=octet_counting),
        octet_counting,
        options.duration("timeout", DEFAULT_TIMEOUT, at_least=SHORTEST_TIMEOUT, at_most=LONGEST_TIMEOUT),
        options.size("max_size", DEFAULT_MAX_SIZE, at_least=1),
        _read_tls(options) if transport == "tls" else None,
        _read_server_name(options, host) if transport == "tls" else "",
    )


def _read_destination(spec: str, args: Sequence[str], options: SpecOptions) -> tuple[str, str, int]:
    """Return transport, host and port."""
    transport = args[0] if args else ""
    if transport not in TRANSPORTS:
        raise options.problem(
            f"{spec!r} must name one of {', '.join(TRANSPORTS)} first, such as syslog:tls:logs.example.com:6514"
        )
    if transport == "unix":
        return transport, _read_unix_path(spec, args[1:], options), 0
    if len(args) not in (2, 3) or not args[1]:
        raise options.problem(f"{spec!r} must be syslog:{transport}:HOST:PORT; an IPv6 address is written in brackets")
    _check_host(args[1], options)
    port = _PORTS[transport] if len(args) == 2 else _read_port(args[2], options)
    if port is None:
        raise options.problem(
            f"{spec!r} needs a port, since there is none for syslog over plain TCP: syslog:tcp:HOST:PORT"
        )
    return transport, args[1], port


def _read_unix_path(spec: str, args: Sequence[str], options: SpecOptions) -> str:
    if len(args) != 1 or not os.path.isabs(args[0]):
        raise options.problem(f"{spec!r} must be syslog:unix:PATH with one absolute path, such as syslog:unix:/dev/log")
    if len(os.fsencode(args[0])) > _LONGEST_UNIX_PATH or "\0" in args[0]:
        raise options.problem(f"{args[0]!r} is longer than the {_LONGEST_UNIX_PATH} bytes of a UNIX socket's path")
    return args[0]


def _read_port(text: str, options: SpecOptions) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise options.problem(f"port {text!r} is not a number from 1 to 65535")
    return int(text)


def _check_host(text: str, options: SpecOptions) -> None:
    try:
        # The resolver would raise this error later, and not as an OSError.
        encoded = text.encode("idna")
    except UnicodeError as error:
        raise options.problem(f"{text!r} is no host name: {error}") from None
    if not encoded.isascii() or not all(0x21 <= byte < 0x7F for byte in encoded):
        raise options.problem(f"{text!r} is no host name: it holds blanks or control characters")


def _read_format(options: SpecOptions, *, octet_counting: bool) -> SyslogFormat:
    standard = SyslogFormat()
    escape = options.flag("escape", True)
    if not escape and not octet_counting:
        raise options.problem(
            "escape=no goes with octet counting only, which syslog:tls: has, and syslog:tcp: without framing=newline: "
            "elsewhere a line break in a text ends the message for many servers, and its sender could forge the next"
        )
    return SyslogFormat(
        facility=options.read("facility", standard.facility, _facility),
        severity=options.read("severity", standard.severity, _severity),
        app_name=options.read("app_name", standard.app_name, Template.parse),
        text=options.read("template", standard.text, Template.parse),
        sd_id=options.read("sd_id", standard.sd_id, _sd_id),
        bom=options.flag("bom", standard.bom),
        one_line=escape,
    )


def _read_server_name(options: SpecOptions, host: str) -> str:
    name = options.given.get("server_name", host)
    if not name:
        raise options.problem("server_name= is empty; leave it out to mean the host")
    _check_host(name, options)
    return name


def _read_tls(options: SpecOptions) -> Callable[[], ssl.SSLContext]:
    """Check the files as they are now, and return a function that reads them again."""
    make = partial(make_context, read_client_tls(options))
    try:
        make()
    except ConfigError as error:
        raise options.problem(error.problem) from None
    return make


def _facility(text: str) -> int:
    return _number_of(text.lower(), FACILITIES)


def _severity(text: str) -> int:
    name = text.lower()
    return _number_of(_SEVERITY_ALIASES.get(name, name), SEVERITIES)


def _number_of(text: str, names: Sequence[str]) -> int:
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdecimal() and len(text) <= 2 and int(text) < len(names):
        return int(text)
    raise ValueError(f"it takes {', '.join(names)}, or a number from 0 to {len(names) - 1}")


def _sd_id(text: str) -> str:
    check_sd_id(text)
    return text
