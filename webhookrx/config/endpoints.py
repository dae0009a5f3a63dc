"""
Endpoint strings, and that of the admin endpoint, read and checked without opening anything.

The words are Twisted's (C{tcp:8181:interface=127.0.0.1}, C{unix:/run/x.sock}, C{systemd:domain=INET:index=0},
C{ssl:443:privateKey=…:certKey=…}), with our own keys for C{ssl:}, a bare port number, and C{haproxy:} in front of
any of them. Two things differ from Twisted: a PROXY header comes outside TLS, as real proxies send it, and
C{ssl:endpoint=…} puts TLS on C{unix:} and C{systemd:} sockets.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from webhookrx.config.files import absolute
from webhookrx.config.option_reader import OptionReader
from webhookrx.config.options import parse_flag
from webhookrx.config.specs import escaped, split_spec
from webhookrx.diagnostics import quoted, suggestion
from webhookrx.errors import ConfigError
from webhookrx.settings import BACKLOG, Listener

#: The longest path of a UNIX socket, in bytes (C{sun_path} of Linux less its NUL).
LONGEST_SOCKET_PATH = 107

#: The address of the admin endpoint unless it names one.
_LOOPBACK = "interface=127.0.0.1"


class Address(NamedTuple):
    """
    An address that only one listener can bind.

    @ivar family: C{"tcp"}, C{"unix"} or C{"systemd"}.
    @ivar host: the interface, C{"0.0.0.0"} or C{"::"} for all; the path or the name for the others.
    @ivar port: TCP port, 0 for any free one; 0 for the others.
    """

    family: str
    host: str
    port: int

    def overlaps(self, other: Address) -> bool:
        """Whether both can't be bound at once. C{::} takes the IPv4 addresses too, as Linux does by default."""
        if self == other:
            return True
        if self.family != "tcp" or other.family != "tcp" or self.port != other.port or self.port == 0:
            return False
        return self._covers(other) or other._covers(self)

    def _covers(self, other: Address) -> bool:
        return self.host == "::" or (self.host == "0.0.0.0" and ":" not in other.host)  # noqa: S104


@dataclass(frozen=True, slots=True)
class EndpointString:
    """
    An endpoint string, parsed.

    @ivar text: as its user wrote it.
    @ivar socket: the string for C{serverFromString} in one normal form, with neither TLS nor PROXY.
    @ivar local: only this machine can reach it: a loopback address or a UNIX socket.
    @ivar proxy_protocol: a PROXY header comes before everything else, TLS included.
    @ivar tls: the keys of an C{ssl:} string by the field of L{webhookrx.settings.TLS}: absolute paths, and C{yes} or
        C{no}; None for another string.
    """

    text: str
    socket: str
    address: Address
    local: bool
    proxy_protocol: bool = False
    tls: Mapping[str, str] | None = field(default=None)


def parse_endpoint(text: str) -> EndpointString:
    """
    Read an endpoint string.

    @raise ConfigError: it can't be used; the sentence quotes it and says what is allowed.
    """
    _refuse_bare_ipv6(text)
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return _tcp(text, {"port": text})
    kind, colon, rest = text.partition(":")
    if kind == "haproxy":
        return _haproxy(text, rest)
    if not colon or kind not in _KINDS:
        raise ConfigError(_unknown_kind(text, kind))
    positional, build = _KINDS[kind]
    return build(text, _values(text, kind, positional, rest))


def default_endpoint(port: int) -> EndpointString:
    """Return the endpoint of a source without the option."""
    return replace(parse_endpoint(str(port)), text=f"tcp:{port}")


def _values(text: str, kind: str, names: tuple[str, ...], rest: str) -> dict[str, str]:
    """Return the parts behind the kind by name: keywords, and positional parts in the order of C{names}."""
    args, values = split_spec(rest)
    for key in values:
        if key not in names:
            raise ConfigError(f"{quoted(text)} has an unknown key {key}=. {suggestion(key, names)}")
    order = ("port", "privateKey", "certKey") if kind == "ssl" else names
    if len(args) > len(order):
        raise ConfigError(f"{quoted(text)} has too many parts; {kind}: takes {', '.join(order)}.")
    for name, arg in zip(order, args, strict=False):
        if name in values:
            raise ConfigError(f"{quoted(text)} has {name} twice, once without its name.")
        values[name] = arg
    return values


def _tcp(text: str, values: Mapping[str, str]) -> EndpointString:
    port = _port(text, values.get("port"))
    interface = _interface(text, values.get("interface", ""))
    backlog = _number(text, "backlog", values.get("backlog", str(BACKLOG)), least=1)
    where = f":interface={escaped(interface)}" if interface else ""
    return EndpointString(
        text=text,
        socket=f"tcp:{port}{where}:backlog={backlog}",
        address=Address("tcp", interface or "0.0.0.0", port),  # noqa: S104
        local=_is_loopback(interface),
    )


def _tcp6(text: str, values: Mapping[str, str]) -> EndpointString:
    interface = values.get("interface") or "::"
    if ":" not in interface:
        raise ConfigError(f"{quoted(text)} needs an IPv6 address behind interface=; tcp: takes IPv4 addresses.")
    return _tcp(text, {**values, "interface": interface})


def _unix(text: str, values: Mapping[str, str]) -> EndpointString:
    path = values.get("address", "")
    if not path:
        raise ConfigError(f"{quoted(text)} needs the path of the socket.")
    if not path.startswith("@"):
        path = absolute(path)
        if not os.path.isdir(os.path.dirname(path)):
            raise ConfigError(f"{quoted(text)}: the directory {quoted(os.path.dirname(path))} does not exist.")
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        raise ConfigError(f"{quoted(text)}: a socket's path has at most {LONGEST_SOCKET_PATH} bytes.")
    mode = values.get("mode", "666")
    if not re.fullmatch(r"0?[0-7]{3}", mode):
        raise ConfigError(f"{quoted(text)}: mode= takes three octal digits, such as 660, not {quoted(mode)}.")
    lockfile = values.get("lockfile", "0")
    if lockfile not in ("0", "1"):
        raise ConfigError(f"{quoted(text)}: lockfile= takes 0 or 1, not {quoted(lockfile)}.")
    backlog = _number(text, "backlog", values.get("backlog", str(BACKLOG)), least=1)
    return EndpointString(
        text=text,
        socket=f"unix:{escaped(path)}:mode={mode}:backlog={backlog}:lockfile={lockfile}",
        address=Address("unix", path, 0),
        local=True,
    )


def _systemd(text: str, values: Mapping[str, str]) -> EndpointString:
    domain = values.get("domain", "")
    if domain not in ("INET", "INET6", "UNIX"):
        raise ConfigError(f"{quoted(text)} needs domain=INET, domain=INET6 or domain=UNIX.")
    if ("index" in values) == ("name" in values):
        raise ConfigError(f"{quoted(text)} needs either index= or name=, the FileDescriptorName of the socket.")
    if "index" in values:
        which = f"index={_number(text, 'index', values['index'], least=0)}"
    elif values["name"]:
        which = f"name={escaped(values['name'])}"
    else:
        raise ConfigError(f"{quoted(text)} has an empty name=.")
    return EndpointString(
        text=text,
        socket=f"systemd:domain={domain}:{which}",
        address=Address("systemd", which, 0),
        # An INET socket comes bound, to an unknown address.
        local=domain == "UNIX",
    )


_TLS_KEYS: dict[str, str] = {
    "privateKey": "key_file",
    "certKey": "cert_file",
    "extraCertChain": "extra_chain_file",
    "peerVerify": "peer_verify",
    "caFile": "ca_file",
    "caDir": "ca_dir",
    "systemStore": "system_store",
}
_FLAGS = ("peerVerify", "systemStore")


def _ssl(text: str, values: Mapping[str, str]) -> EndpointString:
    tls: dict[str, str] = {}
    for key, role in _TLS_KEYS.items():
        if key not in values:
            continue
        value = values[key]
        if not value:
            raise ConfigError(f"{quoted(text)} has an empty {key}=.")
        if key in _FLAGS:
            try:
                value = "yes" if parse_flag(value) else "no"
            except ConfigError:
                raise ConfigError(f"{quoted(text)}: {key}= takes yes or no, not {quoted(value)}.") from None
        else:
            value = absolute(value)
        tls[role] = value
    return replace(_below_tls(text, values), text=text, tls=tls)


def _below_tls(text: str, values: Mapping[str, str]) -> EndpointString:
    """Return the endpoint below TLS: C{endpoint=}, or TCP from the other keys."""
    own = {key: values[key] for key in ("port", "interface", "backlog") if key in values}
    if "endpoint" not in values:
        return _tcp(text, own)
    if own:
        raise ConfigError(f"{quoted(text)} has both endpoint= and {next(iter(own))}; the port goes into endpoint=.")
    below = parse_endpoint(values["endpoint"])
    if below.tls is not None:
        raise ConfigError(f"{quoted(text)} puts TLS into TLS.")
    return below


def _haproxy(text: str, rest: str) -> EndpointString:
    below = parse_endpoint(rest)
    if below.proxy_protocol:
        raise ConfigError(f"{quoted(text)} has haproxy: twice; one PROXY header is read.")
    return replace(below, text=text, proxy_protocol=True)


_KINDS: dict[str, tuple[tuple[str, ...], Callable[[str, Mapping[str, str]], EndpointString]]] = {
    "tcp": (("port", "interface", "backlog"), _tcp),
    "tcp6": (("port", "backlog", "interface"), _tcp6),
    "unix": (("address", "mode", "backlog", "lockfile"), _unix),
    "systemd": (("domain", "index", "name"), _systemd),
    "ssl": (("port", "interface", "backlog", "endpoint", *_TLS_KEYS), _ssl),
}

#: Other words for our kinds that are not near in spelling.
_OTHER_WORDS = {"tls": "ssl", "https": "ssl", "http": "tcp", "fd": "systemd"}


def _port(text: str, port: str | None) -> int:
    if not port:
        raise ConfigError(f"{quoted(text)} needs a port number.")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise ConfigError(f"{quoted(port)} is not a port: a number from 1 to 65535, or 0 for any free one, is needed.")
    return int(port)


def _number(text: str, key: str, value: str, *, least: int) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", value) or int(value) < least:
        raise ConfigError(f"{quoted(text)}: {key}= takes a whole number from {least}, not {quoted(value)}.")
    return int(value)


def _interface(text: str, interface: str) -> str:
    """Return the address to bind, in its shortest form; empty for all IPv4 addresses."""
    if interface == "localhost":
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address(interface)) if interface else ""
    except ValueError:
        raise ConfigError(
            f"{quoted(text)}: interface= takes an IP address of this machine or localhost, not {quoted(interface)}."
        ) from None


def _is_loopback(interface: str) -> bool:
    return bool(interface) and ipaddress.ip_address(interface).is_loopback


def _refuse_bare_ipv6(text: str) -> None:
    """
    Refuse an IPv6 address whose colons would be taken for separators.

    @raise ConfigError: there is one; the sentence has the right spelling.
    """
    match = re.search(r"(?:^|=|:)\[?((?:[0-9A-Fa-f]*:){2,}[0-9A-Fa-f.]*)\]?(?=:|$)", text)
    if match is None:
        return
    try:
        address = ipaddress.IPv6Address(match[1])
    except ValueError:
        return
    spelling = str(address).replace(":", "\\:")
    raise ConfigError(
        f"{quoted(text)}: the colons of an IPv6 address are escaped, as in tcp:8181:interface={spelling}."
    )


def _unknown_kind(text: str, kind: str) -> str:
    if not text:
        return "An endpoint is empty; it takes a port number or an endpoint string such as tcp:8181."
    host = re.fullmatch(r"([0-9]+(?:\.[0-9]+){3}|localhost):([0-9]+)", text)
    if host is not None:
        return f"{quoted(text)} is not an endpoint string; write tcp:{host[2]}:interface={host[1]}."
    if kind.isdigit():
        more = f"{quoted(f'tcp:{text}')} or {quoted(f'ssl:{text}')}"
        return f"{quoted(text)} starts with a port; with more than a port it is {more}."
    known = _OTHER_WORDS.get(kind.lower(), kind)
    return f"{quoted(text)} is of no known kind. {suggestion(known, [*_KINDS, 'haproxy'])}"


def admin_listener(options: OptionReader, taken: Iterable[Listener]) -> Listener | None:
    """
    Return the endpoint of the option C{admin}; None without it. Mistakes are noted.

    @param taken: the endpoints of the sources.
    """
    endpoint = options.parsed("admin", _admin_endpoint)
    options.show("admin", endpoint.text if endpoint else "none")
    if endpoint is None:
        return None
    ours = quoted(endpoint.text)
    for listener in taken:
        if _overlap(parse_endpoint(listener.socket).address, endpoint.address):
            options.error("admin", f"Senders use {quoted(listener.text)}, which takes the same address as {ours}.")
    if not endpoint.local:
        options.warn("admin", f"Anyone who can reach {ours} can read health and metrics; it requires no token.")
    return Listener(endpoint.text, endpoint.socket, endpoint.proxy_protocol)


def _overlap(one: Address, other: Address) -> bool:
    # Port 0 is any free port, so two endpoints with it never clash.
    return one.overlaps(other) and not (one.family == "tcp" and one.port == 0)


def _admin_endpoint(text: str) -> EndpointString:
    """
    @raise ConfigError: it is no endpoint, or one with TLS or the PROXY protocol.
    """
    wanted = text
    if re.fullmatch(r"[0-9]+", text):
        wanted = f"tcp:{text}:{_LOOPBACK}"
    elif text.startswith("tcp:") and "interface=" not in text:
        wanted = f"{text}:{_LOOPBACK}"
    endpoint = parse_endpoint(wanted)
    if endpoint.tls is not None or endpoint.proxy_protocol:
        raise ConfigError(
            f"{quoted(text)}: health and metrics are plain HTTP; it takes tcp:, tcp6:, unix: or systemd:."
        )
    return endpoint
