"""
The endpoints of one source, its endpoint strings joined with its C{--tls-*} options; and those that sources share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from webhookrx.config.endpoints import EndpointString, default_endpoint, parse_endpoint
from webhookrx.config.option_reader import Place, Problems, Values, yes_or_no
from webhookrx.diagnostics import quoted
from webhookrx.settings import PLAIN_PORT, TLS, TLS_PORT, Listener, Source

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

#: Field of L{TLS} to its value (C{yes} or C{no} for a flag) and where that was written.
_TLSTexts: TypeAlias = Mapping[str, tuple[str, Place]]


@dataclass(frozen=True, slots=True)
class PlacedListener:
    """
    A listener of a source, and what is needed to judge it.

    @ivar tls_places: where each field of its TLS was written.
    """

    source: str
    endpoint: EndpointString
    listener: Listener
    place: Place
    tls_places: Mapping[str, Place]


def source_listeners(values: Values) -> list[PlacedListener]:
    """Return the listeners of a source; what is wrong with one is noted, and the others are returned."""
    options = _tls_options(values)
    endpoints = list(_endpoints(values, options))
    values.show("port", " ".join(endpoint.text for endpoint, _ in endpoints))
    plain = [endpoint for endpoint, _ in endpoints if endpoint.tls is None]
    if plain and not _is_whole_pair(values):
        return []
    listeners = [_listener(values, endpoint, place, options) for endpoint, place in endpoints]
    found = [each for each in listeners if each is not None]
    _check_use(values, options, found)
    return found


def check_tokens(values: Values, source: Source, listeners: list[PlacedListener], *, allowed: bool) -> None:
    """
    Note every plain-HTTP endpoint on which tokens would be readable on their way (specification §5.1).

    @param allowed: the operator says that something in front speaks TLS.
    """
    if not source.auth_tokens or allowed:
        return
    for each in listeners:
        if each.listener.tls is not None:
            continue
        name = quoted(each.listener.text)
        place = each.place if values.written("port") else _token_place(values)
        if each.endpoint.local:
            values.problems.warn(f"Tokens come as plain text to {name}, which only this machine reaches.", place)
        else:
            values.problems.error(
                f"Tokens would come as plain text over plain HTTP to {name}: use TLS, listen on 127.0.0.1, or say "
                "--allow-plaintext-token when something in front speaks TLS.",
                place,
            )


def _token_place(values: Values) -> Place:
    return values.place("auth-token" if values.written("auth-token") else "auth-token-file")


def _tls_options(values: Values) -> _TLSTexts:
    texts: dict[str, tuple[str, Place]] = {}
    for role, name in _ROLES.items():
        if role in ("peer_verify", "system_store"):
            value: str | None = yes_or_no(values.flag(name, False))
        else:
            value = values.path(name)
        if value is not None and values.written(name) is not None:
            texts[role] = (value, values.place(name))
    return texts


def _endpoints(values: Values, options: _TLSTexts) -> Iterator[tuple[EndpointString, Place]]:
    written = values.written("port")
    if written is None:
        port = TLS_PORT if "key_file" in options else PLAIN_PORT
        yield default_endpoint(port), values.place("port")
        return
    for value in written.values:
        place = written.place_of(value)
        endpoint = values.problems.attempt(place, parse_endpoint, value.text)
        if endpoint is not None:
            yield endpoint, place


def _is_whole_pair(values: Values) -> bool:
    """Whether the options name key and certificate, or neither; an error is noted when it is one of them."""
    given = [name for name in ("key", "cert") if values.written(f"tls-{name}-file") is not None]
    if len(given) != 1:
        return True
    missing = "cert" if given == ["key"] else "key"
    values.problems.error(
        f"TLS needs both key and certificate; tls-{missing}-file is missing.", values.place(f"tls-{given[0]}-file")
    )
    return False


def _listener(values: Values, endpoint: EndpointString, place: Place, options: _TLSTexts) -> PlacedListener | None:
    if endpoint.tls is None and "key_file" not in options:
        listener = Listener(endpoint.text, endpoint.inner, endpoint.proxy_protocol)
        return PlacedListener(values.section, endpoint, listener, place, {})
    own = {role: (value, place) for role, value in (endpoint.tls or {}).items()}
    texts = {**options, **own}
    if "key_file" in own:
        # As in Twisted's ssl: strings, one file may hold both.
        texts.setdefault("cert_file", own["key_file"])
    if "key_file" not in texts or "cert_file" not in texts:
        missing = "key: add privateKey=" if "key_file" not in texts else "certificate: add certKey="
        values.problems.error(f"{quoted(endpoint.text)} has no {missing} or the option of that meaning.", place)
        return None
    tls = _tls(texts)
    places = {role: where for role, (_, where) in texts.items()}
    _check_policy(values.problems, tls, places, place)
    listener = Listener(endpoint.text, endpoint.inner, endpoint.proxy_protocol, tls)
    return PlacedListener(values.section, endpoint, listener, place, places)


def _tls(texts: _TLSTexts) -> TLS:
    value = {role: text for role, (text, _) in texts.items()}
    return TLS(
        key_file=value["key_file"],
        cert_file=value["cert_file"],
        extra_chain_file=value.get("extra_chain_file"),
        peer_verify=value.get("peer_verify") == "yes",
        ca_file=value.get("ca_file"),
        ca_dir=value.get("ca_dir"),
        system_store=value.get("system_store") == "yes",
    )


def _check_policy(problems: Problems, tls: TLS, places: Mapping[str, Place], place: Place) -> None:
    trusted = [role for role in _TRUST if getattr(tls, role)]
    if tls.peer_verify and not trusted:
        problems.error(
            "Client certificates can't be verified without one of tls-ca-file, tls-ca-dir and "
            "tls-use-system-cert-store (caFile=, caDir= and systemStore= in an ssl: string).",
            places.get("peer_verify", place),
        )
    if trusted and not tls.peer_verify:
        problems.warn("It is not used: tls-peer-verify is no.", places.get(trusted[0], place))


def _check_use(values: Values, options: _TLSTexts, listeners: list[PlacedListener]) -> None:
    """Note a client-certificate policy that some endpoint would not keep."""
    plain = [each for each in listeners if each.listener.tls is None]
    if not plain:
        return
    asked = options.get("peer_verify", ("no", None))[0] == "yes"
    if len(plain) < len(listeners):
        if asked:
            names = ", ".join(quoted(each.listener.text) for each in plain)
            values.problems.warn(f"No client certificate is asked for on {names}: it is plain HTTP.", plain[0].place)
    elif asked:
        values.problems.error(
            "Client certificates need TLS: give tls-key-file and tls-cert-file.", values.place("tls-peer-verify")
        )
    else:
        for role in _TRUST:
            if options.get(role, ("no", None))[0] != "no":
                values.problems.warn("It is not used: no endpoint of the source speaks TLS.", options[role][1])


def share_endpoints(listeners: Sequence[PlacedListener], problems: Problems) -> list[PlacedListener]:
    """
    Return the listeners with equal ones made the same object, so that sources that share an endpoint have an equal
    L{Listener}, however each wrote it. Conflicts are noted.
    """
    kept: list[PlacedListener] = []
    for each in listeners:
        other = next((known for known in kept if known.endpoint.address.overlaps(each.endpoint.address)), None)
        if other is None:
            kept.append(each)
        elif _same_socket(each.listener, other.listener) and each.listener.tls == other.listener.tls:
            if each.source == other.source:
                problems.warn(f"{quoted(each.listener.text)} is there twice.", each.place)
            else:
                kept.append(replace(each, listener=other.listener))
        else:
            problems.error(_conflict(each, other), each.place)
    return kept


def _same_socket(one: Listener, other: Listener) -> bool:
    return (one.inner, one.proxy_protocol) == (other.inner, other.proxy_protocol)


def _conflict(each: PlacedListener, other: PlacedListener) -> str:
    ours, theirs = quoted(each.listener.text), quoted(other.listener.text)
    if each.source == other.source:
        who = f"source {quoted(each.source)} has {theirs} and {ours}"
    else:
        who = f"source {quoted(other.source)} has {theirs}, source {quoted(each.source)} has {ours}"
    if _same_socket(each.listener, other.listener):
        return f"One endpoint has one TLS setting, but here it has two: {who}."
    return f"Two endpoints can't take the same address: {who}."
