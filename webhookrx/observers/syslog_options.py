"""
The arguments and options of C{syslog:}, read and checked; nothing is connected.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from webhookrx.config.observers import Argument, ObserverSpec
from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.message.rfc5424 import FACILITIES, SEVERITIES, SyslogFormat, check_sd_id
from webhookrx.message.template import Template
from webhookrx.observers.client_tls import TLS_OPTIONS, TLS_SECRETS, make_context, read_client_tls
from webhookrx.observers.syslog_connection import MakeContext

FRAMINGS: Final = ("octet-counting", "newline")
DEFAULT_TIMEOUT: Final = 10.0
SHORTEST_TIMEOUT: Final = 0.001
LONGEST_TIMEOUT: Final = 3600.0
# A receiver that finds a message too long may close the connection, and what is in flight behind it is lost in
# silence. 64 KiB is the default limit of syslog-ng; RFC 5424 section 6.1 obliges nobody to more than 480 bytes.
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

#: Transport to its registered port, RFC 5425 section 4.1 and RFC 5426 section 3.3. Plain TCP never got one (RFC 6587).
_PORTS: Final[Mapping[str, int | None]] = {"tcp": None, "tls": 6514, "udp": 514}
TRANSPORTS: Final = (*_PORTS, "unix")

_SEVERITY_ALIASES: Final = {"panic": "emerg", "error": "err", "warn": "warning"}
#: As long as C{sun_path} of unix(7), its last byte left out.
_LONGEST_UNIX_PATH: Final = 107


class Destination(NamedTuple):
    """
    Where to send.

    @ivar transport: one of L{TRANSPORTS}.
    @ivar host: name or address; of C{unix}, the absolute path.
    @ivar port: 0 for C{unix}.
    """

    transport: str
    host: str
    port: int

    def __str__(self) -> str:
        if self.transport == "unix":
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_destination(spec: str, args: Sequence[str]) -> Destination:
    """
    @param args: transport, host and port; or C{unix} and a path.
    @raise ConfigError: one is missing, unknown or wrong.
    """
    transport = args[0] if args else ""
    if transport not in TRANSPORTS:
        raise _wrong(
            f"{spec!r} must name one of {', '.join(TRANSPORTS)} first, such as syslog:tls:logs.example.com:6514"
        )
    if transport == "unix":
        return Destination(transport, _unix_path(spec, args[1:]), 0)
    if len(args) not in (2, 3) or not args[1]:
        raise _wrong(f"{spec!r} must be syslog:{transport}:HOST:PORT; an IPv6 address is written in brackets")
    _check_host(args[1])
    port = _PORTS[transport] if len(args) == 2 else _port(args[2])
    if port is None:
        raise _wrong(f"{spec!r} needs a port, since there is none for syslog over plain TCP: syslog:tcp:HOST:PORT")
    return Destination(transport, args[1], port)


def check_belongs(transport: str, options: SpecOptions) -> None:
    """
    @raise ConfigError: an option has no meaning with this transport.
    """
    for owner, names in (("tcp", _TCP_OPTIONS), ("tls", _TLS_OPTIONS)):
        for name in names:
            if name in options and transport != owner:
                raise _wrong(f"{name}= goes with syslog:{owner}: only, not with syslog:{transport}:")


def read_format(options: SpecOptions, *, octet_counting: bool) -> SyslogFormat:
    """
    @param octet_counting: frames count octets, and so can carry any text.
    @raise ConfigError: an option is wrong, or does not go with the framing.
    """
    standard = SyslogFormat()
    return SyslogFormat(
        facility=options.read("facility", standard.facility, _facility),
        severity=options.read("severity", standard.severity, _severity),
        app_name=options.read("app_name", standard.app_name, Template.parse),
        text=options.read("template", standard.text, Template.parse),
        sd_id=options.read("sd_id", standard.sd_id, _sd_id),
        bom=options.flag("bom", standard.bom),
        one_line=_read_escape(options, octet_counting=octet_counting),
    )


def _read_escape(options: SpecOptions, *, octet_counting: bool) -> bool:
    escape = options.flag("escape", True)
    if not escape and not octet_counting:
        raise _wrong(
            "escape=no goes with octet counting only, which syslog:tls: has, and syslog:tcp: without framing=newline: "
            "elsewhere a line break in a text ends the message for many servers, and its sender could forge the next"
        )
    return escape


def read_framing(options: SpecOptions) -> str:
    """
    @return: one of L{FRAMINGS}.
    @raise ConfigError: it is none.
    """
    return options.choice("framing", FRAMINGS, FRAMINGS[0])


def read_timeout(options: SpecOptions) -> float:
    """
    @return: seconds.
    @raise ConfigError: it is no length of time, or none that makes sense.
    """
    return options.duration("timeout", DEFAULT_TIMEOUT, at_least=SHORTEST_TIMEOUT, at_most=LONGEST_TIMEOUT)


def read_max_size(options: SpecOptions) -> int:
    """
    @return: bytes.
    @raise ConfigError: it is no size, or 0.
    """
    return options.size("max_size", DEFAULT_MAX_SIZE, at_least=1)


def read_server_name(options: SpecOptions, host: str) -> str:
    """
    @return: what the certificate of the server must be for.
    @raise ConfigError: it is no name.
    """
    name = options.given.get("server_name", host)
    if not name:
        raise _wrong("server_name= is empty; leave it out to mean the host")
    _check_host(name)
    return name


def read_tls(options: SpecOptions) -> MakeContext:
    """
    Check the files as they are now.

    @return: reads them again and makes a context: TLS 1.2 or later, certificate and host name of the server verified.
    @raise ConfigError: a file is missing or wrong, or C{cert_file} and C{key_file} do not go together.
    """
    make = partial(make_context, read_client_tls(options))
    try:
        make()
    except ConfigError as error:
        raise _wrong(error.problem) from None
    return make


def _wrong(problem: str) -> ConfigError:
    return ConfigError(f"observer 'syslog': {problem}")


def _check_host(text: str) -> None:
    try:
        # What the resolver would raise later is no OSError.
        encoded = text.encode("idna")
    except UnicodeError as error:
        raise _wrong(f"{text!r} is no host name: {error}") from None
    if not encoded.isascii() or not all(0x21 <= byte < 0x7F for byte in encoded):
        raise _wrong(f"{text!r} is no host name: it holds blanks or control characters")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise _wrong(f"port {text!r} is not a number from 1 to 65535")
    return int(text)


def _unix_path(spec: str, args: Sequence[str]) -> str:
    if len(args) != 1 or not os.path.isabs(args[0]):
        raise _wrong(f"{spec!r} must be syslog:unix:PATH with one absolute path, such as syslog:unix:/dev/log")
    if len(os.fsencode(args[0])) > _LONGEST_UNIX_PATH or "\0" in args[0]:
        raise _wrong(f"{args[0]!r} is longer than the {_LONGEST_UNIX_PATH} bytes of a UNIX socket's path")
    return args[0]


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
