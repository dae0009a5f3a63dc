"""
The settings of a console: frozen values, made of the options of its command; nothing is opened.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from webhookrx.config.endpoints import EndpointString, admin_listener, parse_endpoint
from webhookrx.config.files import absolute
from webhookrx.config.option import Kind, Option, OptionScope
from webhookrx.config.option_reader import OptionReader, Problems, RawOptions
from webhookrx.config.source_endpoints import source_listeners
from webhookrx.console.oidc.oidc_settings import OIDC_OPTIONS, OidcSettings, read_oidc
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.settings import Listener
from webhookrx.text import table

OPTIONS: Final = (
    Option(
        "port",
        OptionScope.COMMAND,
        Kind.TEXT,
        "where people and programs reach the console: an ssl: endpoint string with key and certificate, or one of this "
        "machine alone behind a proxy; may be repeated",
        value="ENDPOINT",
        repeat=True,
    ),
    Option(
        "routers",
        OptionScope.COMMAND,
        Kind.TEXT,
        "where routers reach it, such as ssl:9443; key and certificate are made by the console itself",
        value="ENDPOINT",
    ),
    Option(
        "db",
        OptionScope.COMMAND,
        Kind.FILE,
        "the file of the console, made by webhookrx console init; its keys lie beside it",
        value="FILE",
    ),
    Option(
        "url",
        OptionScope.COMMAND,
        Kind.TEXT,
        "the URL by which people reach --port; https, unless its host is of this machine alone",
        value="URL",
    ),
    Option(
        "admin",
        OptionScope.COMMAND,
        Kind.TEXT,
        "where to serve /livez, /readyz and /metrics: an endpoint string or a port number",
        value="ENDPOINT",
    ),
    Option(
        "read-only-rules",
        OptionScope.COMMAND,
        Kind.FLAG,
        "rules are changed by webhookrx rules push alone",
        default="no",
    ),
    *OIDC_OPTIONS,
    Option(
        "check",
        OptionScope.COMMAND,
        Kind.FLAG,
        "validate everything without opening anything, print what would run, and exit with 0 or 1",
        default="no",
    ),
)
"""The options of the command, from which its help and the table of the docs are made."""

_NEEDED: Final = {
    "port": "where people reach it, such as --port ssl:443:privateKey=key.pem:certKey=cert.pem",
    "routers": "where routers reach it, such as --routers ssl:9443",
    "db": "the file of the console, such as --db /var/lib/webhookrx-console/console.sqlite",
    "url": "the URL by which people reach it, such as --url https://console.example.com",
}


@dataclass(frozen=True)
class ConsoleSettings:
    """
    What the command line of a console says.

    @ivar database: the file of the store, absolute; keys lie beside it.
    @ivar url: where people reach it, without a slash at its end.
    @ivar ports: the endpoints for people and programs.
    @ivar routers: the endpoint for routers, without its key and certificate.
    @ivar admin: the endpoint for operators; None without one.
    @ivar read_only_rules: only pushed files change rules.
    @ivar oidc: the provider of single sign-on; None without one.
    """

    database: str
    url: str
    ports: tuple[Listener, ...] = ()
    routers: EndpointString | None = None
    admin: Listener | None = None
    read_only_rules: bool = False
    oidc: OidcSettings | None = None

    @property
    def routers_url(self) -> str:
        """What routers take as C{--console}; empty where the port is not one of TCP that is known."""
        port = 0 if self.routers is None or self.routers.address.family != "tcp" else self.routers.address.port
        host = urlsplit(self.url).hostname or ""
        return f"https://{f'[{host}]' if ':' in host else host}:{port}" if port and host else ""


def resolve_console(given: RawOptions) -> ConsoleSettings:
    """
    Make the settings of the options of the command.

    @raise webhookrx.config.option_reader.ConfigProblems: everything that is wrong.
    """
    problems = Problems()
    options = OptionReader([given], problems)
    for name, meaning in _NEEDED.items():
        if not options.raw(name):
            options.error(name, f"--{name} is missing: {meaning}.")
    ports = _ports(options) if options.raw("port") else ()
    url = options.parsed("url", checked_url)
    routers = options.parsed("routers", routers_endpoint)
    database = absolute(given["db"][0].text) if options.raw("db") else ""
    directory = os.path.dirname(database)
    if database and not os.path.isdir(directory):
        options.error("db", f"The directory {quoted(directory)} does not exist.")
    admin = admin_listener(options, ports)
    read_only = options.flag("read-only-rules", False)
    oidc = read_oidc(options)
    problems.raise_errors()
    return ConsoleSettings(database, url or "", ports, routers, admin, read_only, oidc)


def _ports(options: OptionReader) -> tuple[Listener, ...]:
    listeners = source_listeners(options)
    for each in listeners:
        if each.listener.tls is None and not each.endpoint.local:
            options.error(
                "port",
                f"{quoted(each.listener.text)} is plain HTTP, and passwords and tokens come here: give an ssl: "
                "endpoint with privateKey= and certKey=, or interface=127.0.0.1 or a UNIX socket behind a proxy.",
            )
    return tuple(each.listener for each in listeners)


def routers_endpoint(text: str) -> EndpointString:
    """
    Read the endpoint for routers.

    @raise ConfigError: it has no TLS, or a key or policy of its own.
    """
    endpoint = parse_endpoint(text)
    if endpoint.tls is None:
        raise ConfigError(f"{quoted(text)} has no TLS, which shows what router calls: write ssl:PORT.")
    if endpoint.proxy_protocol:
        raise ConfigError(f"{quoted(text)} can't be used: the endpoint for routers reads no PROXY header.")
    if endpoint.tls:
        raise ConfigError(
            f"{quoted(text)} says more than where to listen: the console makes key and certificate of this endpoint "
            "itself, and knows routers by their certificates. Write ssl:PORT, with interface= at most."
        )
    return endpoint


def checked_url(text: str) -> str:
    """
    Return a URL of a console without the slash at its end.

    @raise ConfigError: it is none, has more than scheme, host and port, or is not encrypted.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    more = parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc
    if not host or more or parts.scheme not in ("https", "http") or port == 0:
        raise ConfigError(f"{quoted(text)} is not the URL of a console: https://HOST or https://HOST:PORT.")
    if parts.scheme == "http" and not _is_this_machine(host):
        raise ConfigError(
            f"{quoted(text)} is not encrypted: https is needed, unless the host is of this machine alone."
        )
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def console_option_table() -> str:
    """Return the options as a Markdown table, in the order of C{--help}."""
    rows = ((f"`{f'--{option.name} {option.value}'.rstrip()}`", option.default, option.help) for option in OPTIONS)
    return table(("option", "default", "meaning"), rows)
