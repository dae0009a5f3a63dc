"""
The endpoints of one source, its endpoint strings joined with its C{--tls-*} options; and those that sources share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from webhookrx.config.endpoints import EndpointString, default_endpoint, parse_endpoint
from webhookrx.config.option_reader import OptionReader, Origin, Problems, RawValue, yes_or_no
from webhookrx.diagnostics import quoted
from webhookrx.settings import PLAIN_PORT, TLS, TLS_PORT, Listener

#: The field of L{TLS} that an option sets, and the option.
_ROLES = {
    "key_file": "tls-key-file",
    "cert_file": "tls-cert-file",
    "peer_verify": "tls-peer-verify",
    "ca_file": "tls-ca-file",
    "ca_dir": "tls-ca-dir",
    "system_store": "tls-use-system-cert-store",
}
_TRUST = ("ca_file", "ca_dir", "system_store")

#: The values of the fields of L{TLS}; a flag has C{yes} or C{no}.
_TLSValues: TypeAlias = Mapping[str, RawValue]


@dataclass(frozen=True, slots=True)
class SourceListener:
    """
    A listener of a source, and what is needed to check it.

    @ivar tls_origins: where each field of its TLS was written.
    """

    source: str
    endpoint: EndpointString
    listener: Listener
    origin: Origin
    tls_origins: Mapping[str, Origin]


def source_listeners(options: OptionReader) -> list[SourceListener]:
    """Return the usable listeners of a source; mistakes in others are noted."""
    tls_values = _tls_options(options)
    endpoints = list(_endpoints(options, tls_values))
    options.show("port", " ".join(endpoint.text for endpoint, _ in endpoints))
    plain = [endpoint for endpoint, _ in endpoints if endpoint.tls is None]
    if plain and not _is_whole_pair(options):
        return []
    listeners = [_listener(options, endpoint, origin, tls_values) for endpoint, origin in endpoints]
    found = [each for each in listeners if each is not None]
    _check_use(options, tls_values, found)
    return found


def _tls_options(options: OptionReader) -> _TLSValues:
    values: dict[str, RawValue] = {}
    for role, name in _ROLES.items():
        if role in ("peer_verify", "system_store"):
            value: str | None = yes_or_no(options.flag(name, False))
        else:
            value = options.path(name)
        if value is not None and options.raw(name):
            values[role] = RawValue(value, options.origin(name))
    return values


def _endpoints(options: OptionReader, tls_values: _TLSValues) -> Iterator[tuple[EndpointString, Origin]]:
    values = options.raw("port")
    for value in values:
        endpoint = options.problems.attempt(value.origin, parse_endpoint, value.text)
        if endpoint is not None:
            yield endpoint, value.origin
    if not values:
        yield default_endpoint(TLS_PORT if "key_file" in tls_values else PLAIN_PORT), options.origin("port")


def _is_whole_pair(options: OptionReader) -> bool:
    """Tell whether the options name key and certificate, or neither; an error is noted when it is one of them."""
    given = [name for name in ("key", "cert") if options.raw(f"tls-{name}-file")]
    if len(given) != 1:
        return True
    missing = "cert" if given == ["key"] else "key"
    options.error(f"tls-{given[0]}-file", f"TLS needs both key and certificate; tls-{missing}-file is missing.")
    return False


def _listener(
    options: OptionReader, endpoint: EndpointString, origin: Origin, tls_values: _TLSValues
) -> SourceListener | None:
    if endpoint.tls is None and "key_file" not in tls_values:
        listener = Listener(endpoint.text, endpoint.socket, endpoint.proxy_protocol)
        return SourceListener(options.section, endpoint, listener, origin, {})
    own = {role: RawValue(text, origin) for role, text in (endpoint.tls or {}).items()}
    values = {**tls_values, **own}
    if "key_file" in own:
        # As in Twisted's ssl: strings, one file may hold both.
        values.setdefault("cert_file", own["key_file"])
    if "key_file" not in values or "cert_file" not in values:
        missing = "key: add privateKey=" if "key_file" not in values else "certificate: add certKey="
        options.problems.error(f"{quoted(endpoint.text)} has no {missing} or the option of that meaning.", origin)
        return None
    tls = _tls(values)
    origins = {role: value.origin for role, value in values.items()}
    _check_policy(options.problems, tls, origins, origin)
    listener = Listener(endpoint.text, endpoint.socket, endpoint.proxy_protocol, tls)
    return SourceListener(options.section, endpoint, listener, origin, origins)


def _tls(values: _TLSValues) -> TLS:
    text = {role: value.text for role, value in values.items()}
    return TLS(
        key_file=text["key_file"],
        cert_file=text["cert_file"],
        extra_chain_file=text.get("extra_chain_file"),
        peer_verify=text.get("peer_verify") == "yes",
        ca_file=text.get("ca_file"),
        ca_dir=text.get("ca_dir"),
        system_store=text.get("system_store") == "yes",
    )


def _check_policy(problems: Problems, tls: TLS, origins: Mapping[str, Origin], origin: Origin) -> None:
    trusted = [role for role in _TRUST if getattr(tls, role)]
    if tls.peer_verify and not trusted:
        problems.error(
            "Client certificates can't be verified without one of tls-ca-file, tls-ca-dir and "
            "tls-use-system-cert-store (caFile=, caDir= and systemStore= in an ssl: string).",
            origins.get("peer_verify", origin),
        )
    if trusted and not tls.peer_verify:
        problems.warn("It is not used: tls-peer-verify is no.", origins.get(trusted[0], origin))


def _check_use(options: OptionReader, tls_values: _TLSValues, listeners: list[SourceListener]) -> None:
    """Note a client-certificate policy that an endpoint without TLS can't enforce."""
    plain = [each for each in listeners if each.listener.tls is None]
    if not plain:
        return
    asked = tls_values["peer_verify"].text == "yes" if "peer_verify" in tls_values else False
    if len(plain) < len(listeners):
        if asked:
            names = ", ".join(quoted(each.listener.text) for each in plain)
            sentence = f"No client certificate is requested on {names}: it is plain HTTP."
            options.problems.warn(sentence, plain[0].origin)
    elif asked:
        options.error("tls-peer-verify", "Client certificates need TLS: give tls-key-file and tls-cert-file.")
    else:
        for role in _TRUST:
            if role in tls_values and tls_values[role].text != "no":
                options.problems.warn("It is not used: no endpoint of the source speaks TLS.", tls_values[role].origin)


def share_endpoints(listeners: Sequence[SourceListener], problems: Problems) -> list[SourceListener]:
    """
    Return the listeners, with the same L{Listener} for sources that share an endpoint, however each wrote it. Conflicts
    are noted.
    """
    kept: list[SourceListener] = []
    for each in listeners:
        other = next((known for known in kept if known.endpoint.address.overlaps(each.endpoint.address)), None)
        if other is None:
            kept.append(each)
        elif _same_socket(each.listener, other.listener) and each.listener.tls == other.listener.tls:
            if each.source == other.source:
                problems.warn(f"{quoted(each.listener.text)} is given twice.", each.origin)
            else:
                kept.append(replace(each, listener=other.listener))
        else:
            problems.error(_conflict(each, other), each.origin)
    return kept


def _same_socket(one: Listener, other: Listener) -> bool:
    return (one.socket, one.proxy_protocol) == (other.socket, other.proxy_protocol)


def _conflict(each: SourceListener, other: SourceListener) -> str:
    ours, theirs = quoted(each.listener.text), quoted(other.listener.text)
    if each.source == other.source:
        who = f"source {quoted(each.source)} has {theirs} and {ours}"
    else:
        who = f"source {quoted(other.source)} has {theirs}, source {quoted(each.source)} has {ours}"
    if _same_socket(each.listener, other.listener):
        return f"One endpoint has one TLS setting, but here it has two: {who}."
    return f"Two endpoints can't take the same address: {who}."
