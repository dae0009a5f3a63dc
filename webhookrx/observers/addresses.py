"""
The addresses of servers in a spec string, C{SCHEME://HOST:PORT,HOST:PORT/PATH}, and what may go to them unencrypted.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from webhookrx.config.specs import SpecOptions
from webhookrx.diagnostics import quoted

#: A host name, which may have underscores, or an IPv4 address; or an IPv6 address in brackets. Then a port.
_SERVER = re.compile(
    r"(?:(?P<name>[0-9A-Za-z_](?:[0-9A-Za-z._-]*[0-9A-Za-z_])?\.?)|\[(?P<v6>[0-9A-Fa-f:.]+)\])(?::(?P<port>[0-9]{1,5}))?"
)


class Server(NamedTuple):
    """
    One server. As text it is C{HOST:PORT}, with an IPv6 address in brackets.

    @ivar host: a name or an address, without brackets.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Addresses:
    """
    The servers of one store, and what is behind them in its URL.

    @ivar path: all behind the slash, as it is written; empty without one.
    """

    scheme: str
    servers: tuple[Server, ...]
    path: str

    @property
    def are_local(self) -> bool:
        """Whether nothing for them leaves this machine."""
        return all(is_loopback(server.host) for server in self.servers)

    def __str__(self) -> str:
        return ",".join(map(str, self.servers))


def read_addresses(
    args: Sequence[str], options: SpecOptions, schemes: Mapping[str, int], example: str, *, several: bool = True
) -> Addresses:
    """
    Read the one URL of a spec string that is declared as C{Argument.URL}.

    @param schemes: the port of each scheme, for servers without one.
    @param example: a whole spec string that is right, for errors.
    @param several: whether there may be more servers than one.
    @raise ConfigError: it is missing or wrong. The text never quotes what may be a password.
    """
    url = args[0] if args else ""
    if len(args) != 1 or not url:
        raise options.problem(f"takes one URL, such as {example}")
    refuse_password(url, options)
    scheme, sign, rest = url.partition("://")
    if not sign or scheme not in schemes:
        begins = " or ".join(f"{each}://" for each in schemes)
        raise options.problem(f"the URL does not begin with {begins}; write for example {example}")
    place, _, path = rest.partition("/")
    if "@" in path:
        # It may be that of a password with a slash in it.
        raise options.problem("the URL holds an @ behind its servers, as a password may; it takes none")
    if "?" in place or "#" in place or "?" in path:
        raise options.problem(f"the URL has a query or fragment; options come after it, such as {example}:timeout=5s")
    servers: list[Server] = []
    for text in place.split(","):
        try:
            server = parse_server(text, schemes[scheme])
        except ValueError as error:
            # A password with a slash in it looks like a server.
            shown = "a part of the URL" if "@" in url else quoted(text)
            raise options.problem(f"{shown} {error}; write for example {example}") from None
        if server in servers:
            raise options.problem(f"the URL names {server} twice")
        servers.append(server)
    if len(servers) > 1 and not several:
        raise options.problem(f"the URL names more than one server; it takes one, such as {example}")
    return Addresses(scheme, tuple(servers), path)


def parse_server(text: str, port: int) -> Server:
    """
    Read C{HOST} or C{HOST:PORT}.

    @param port: that of a server without one.
    @raise ValueError: it is neither; the text says what it is not, without quoting it.
    """
    found = _SERVER.fullmatch(text)
    if found is None:
        raise ValueError("is not HOST or HOST:PORT")
    host = found["name"] or found["v6"]
    if found["v6"]:
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            raise ValueError("is not an IPv6 address in brackets") from None
    number = port if found["port"] is None else int(found["port"])
    if not 0 < number < 65536:
        raise ValueError("has no port from 1 to 65535")
    return Server(host, number)


def refuse_password(url: str, options: SpecOptions, instead: str = "user= and password_file=") -> None:
    """
    Refuse a user or password in a URL.

    @param instead: the options that take its place.
    @raise ConfigError: there is one; it is not quoted.
    """
    if "@" in re.split("[/?#]", url.partition("://")[2] or url)[0]:
        raise options.problem(f"no user or password in the URL: it is seen in logs and process lists; use {instead}")


def is_loopback(host: str) -> bool:
    """Tell whether a name or address is of this machine, without asking anybody."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        # RFC 6761, section 6.3.
        return host == "localhost" or host.endswith(".localhost")


def check_plaintext(
    options: SpecOptions, secrets: Collection[str], *, is_encrypted: bool, is_local: bool, remedy: str
) -> None:
    """
    Check that no secret goes unencrypted to another machine, unless C{allow_plaintext=yes} says that this is meant.

    @param secrets: the options that send a secret.
    @param remedy: how to encrypt, such as C{"use tls=yes"}.
    @raise ConfigError: one would.
    """
    allowed = options.flag("allow_plaintext", False)
    secret = next((key for key in secrets if key in options), None)
    if secret is not None and not (is_encrypted or is_local or allowed):
        raise options.problem(
            f"{secret}= would show its secret to the network, which is not encrypted; {remedy}, or write "
            "allow_plaintext=yes when something between speaks TLS"
        )
