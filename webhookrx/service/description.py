"""
Sentences of the service's own log and status: the endpoints, their sources, and the changes of a reload.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.interfaces import IAddress

from webhookrx.diagnostics import quoted
from webhookrx.errors import REASONS, CannotStart, ConfigError
from webhookrx.operations.counters import Counters
from webhookrx.operations.health import ALONE, WorkerState
from webhookrx.operations.snapshot import ReceiverSnapshot
from webhookrx.service.source_rules import by_listener
from webhookrx.settings import Listener, Settings, Source
from webhookrx.transport.listener_service import CannotListen

#: Certificates that one line names.
_MOST_CERTIFICATES = 5


def describe(settings: Settings, addresses: Mapping[str, IAddress | None]) -> list[str]:
    """
    Return a line for each endpoint: where it listens, with which patterns, policy and observers.

    @param addresses: those of the open ports, by C{Listener.socket}.
    """
    observers = ", ".join(observer.text for observer in settings.observers)
    return [
        f"Listening on {where(addresses.get(listener.socket)) or listener.text} ({_transport(listener)}) for "
        f"{'; '.join(map(_source, sources))}; observers: {observers}; ack: {settings.ack}"
        for listener, sources in by_listener(settings.sources)
    ]


def difference(before: Settings, after: Settings) -> str:
    """Return in a few words what has changed of the sources, connectors included."""
    old = {source.name: source for source in before.sources}
    new = {source.name: source for source in after.sources}
    counts = {
        "unchanged": sum(old.get(name) == source for name, source in new.items()),
        "changed": sum(name in old and old[name] != source for name, source in new.items()),
        "added": len(new.keys() - old.keys()),
        "removed": len(old.keys() - new.keys()),
    }
    shown = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"{len(new)} sources{f' ({shown})' if shown else ''}"


def renewals(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """
    Return which certificates were renewed, and when they expire; nothing without any.

    @param before: each file, and when the certificate of it that was in use expires, seconds since the epoch.
    @param after: the same for the certificates in use now.
    """
    renewed = [path for path, end in after.items() if path in before and before[path] != end]
    shown = ", ".join(
        f"{path} until {datetime.fromtimestamp(after[path], UTC):%Y-%m-%d %H:%M UTC}"
        for path in renewed[:_MOST_CERTIFICATES]
    )
    others = len(renewed) - _MOST_CERTIFICATES
    return f"; renewed certificates: {shown}{f' and {others} more' if others > 0 else ''}" if renewed else ""


def cannot_listen(error: CannotListen, settings: Settings) -> CannotStart | ConfigError:
    """Return an error about a port that can't be opened, with the connector rule that wants it, if one does."""
    for source in settings.sources:
        if source.connector is not None and error.text == source.listeners[0].text:
            code = " [port-in-use]" if error.reason == os.strerror(errno.EADDRINUSE) else ""
            return ConfigError(f"{error}, which the rule {quoted(source.connector.rule)} wants.{code}")
    return error


def summary(counters: Counters, snapshot: ReceiverSnapshot, workers: Sequence[WorkerState] = (ALONE,)) -> str:
    """Return one line on how the service does."""
    messages = sum(counts.messages for counts in counters.sources.values())
    sources = {"", *counters.sources, *snapshot.sources}
    refused = sum(counters.get("refused", reason.word, source) for reason in REASONS for source in sources)
    counts = f"{messages} messages, {refused} refused, {snapshot.queue_messages.now} waiting"
    if len(workers) > 1:
        counts = f"{sum(worker.up for worker in workers)} of {len(workers)} workers, {counts}"
    if snapshot.not_taken:
        counts = f"{counts}; {snapshot.not_taken[0].lower()}{snapshot.not_taken[1:]}"
    if not snapshot.blocked:
        return counts
    first, *others = snapshot.blocked
    return f"{counts}; the router is blocked: {first.text}{f' And {len(others)} more.' if others else ''}"


def rules_not_taken(settings: Settings, failure: str = "") -> str:
    """
    Return a sentence that says why the newest rules are not in use; empty when they are, or there are none.

    @param failure: how the last reload has failed, which takes nothing at all, or why a bundle was refused; empty when
        neither has happened.
    """
    why = "" if settings.router is None else failure or settings.not_taken
    which = "The rules file is" if settings.console is None else "The newest rules of the console are"
    return f"{which} not in use: {why}" if why else ""


def where(address: IAddress | None) -> str:
    """Return an address as people write it; empty for None."""
    match address:
        case IPv4Address(host=host, port=port):
            return f"{host}:{port}"
        case IPv6Address(host=host, port=port):
            return f"[{host}]:{port}"
        case UNIXAddress(name=bytes(name)):
            return f"unix:{os.fsdecode(name)}"
    return ""


def _transport(listener: Listener) -> str:
    proxy = ", behind a PROXY header" if listener.proxy_protocol else ""
    if listener.tls is None:
        return f"plain HTTP{proxy}"
    policy = "required and verified" if listener.tls.peer_verify else "not requested"
    return f"TLS with {listener.tls.cert_file}, client certificate {policy}{proxy}"


def _source(source: Source) -> str:
    shown = ", ".join(source.paths[:5]) + (f" and {len(source.paths) - 5} more" if len(source.paths) > 5 else "")
    if source.connector is not None:
        return f"connector {source.name!r} at {shown}{f' ({_needs(source)})' if source.guard is not None else ''}"
    return f"{source.variant} {source.name!r} at {shown} ({_needs(source)})"


def _needs(source: Source) -> str:
    """Return what requests to a source must show, in a few words."""
    guard = source.guard
    needs = ["token required" if source.auth_tokens or (guard is not None and guard.tokens) else "no token"]
    if guard is not None and guard.sender is not None:
        words = {"required": "verified", "note": "verified if they can be", "off": "not verified"}
        needs.append(f"requests of {guard.sender.id}, {words[guard.verify]}")
    if guard is not None and guard.allow:
        needs.append("some networks only")
    if guard is not None and guard.allow_clients:
        needs.append("some clients only")
    return "; ".join(needs)
