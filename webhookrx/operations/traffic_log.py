"""
Who was refused, and why: counters, and log lines that a sender can neither forge nor multiply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet.error import TimeoutError
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.errors import Reason
from webhookrx.interfaces import ITraffic
from webhookrx.operations.counters import Counters
from webhookrx.operations.line_limit import LineLimit

#: Characters of a path that a log line shows.
SHOWN_PATH = 200


@implementer(ITraffic)
class TrafficLog:
    """
    Counts and logs what happens on the wire.

    @param describe_handshake: a short sentence for a failed handshake, None when the peer merely went away.
    """

    def __init__(
        self,
        counters: Counters,
        limit: LineLimit,
        describe_handshake: Callable[[Failure], str | None],
        log: Logger | None = None,
    ) -> None:
        self._counters = counters
        self._limit = limit
        self._describe_handshake = describe_handshake
        self._log = Logger(namespace="webhookrx.traffic") if log is None else log

    def refused(self, reason: Reason, detail: str, peer: str, method: bytes, path: bytes) -> None:
        """See L{ITraffic.refused}."""
        self._counters.add("refused", reason.word)
        if self._limit.passes(reason.word):
            self._log.warn(
                "Refused {peer}: {reason} ({status}) for {method} {path}: {detail}",
                peer=peer,
                reason=reason.word,
                status=reason.status,
                method=shown(method) or "-",
                path=shown(path) or "-",
                detail=detail,
            )

    def accepted(self, source: str, notes: Sequence[str], left_out: int) -> None:
        """See L{ITraffic.accepted}."""
        self._counters.add("messages", source)
        for note in notes:
            self._counters.add(note, source)
        if left_out:
            self._counters.add("names_left_out", source, left_out)

    def handshake_failed(self, peer: str, failure: Failure) -> None:
        """See L{ITraffic.handshake_failed}."""
        why = "it took too long" if failure.check(TimeoutError) else self._describe_handshake(failure)
        if why is None:
            return
        self._counters.add("tls_handshakes_failed")
        if self._limit.passes("tls_handshake"):
            self._log.warn("TLS handshake with {peer} failed: {why}", peer=peer, why=why)

    def failed(self, what: str, failure: Failure) -> None:
        """See L{ITraffic.failed}."""
        self._counters.add("failures")
        if self._limit.passes("failure"):
            self._log.failure("{what}", failure, what=what)

    def observer_failed(self, spec: str, error: object, messages: int) -> None:
        """An observer could not make so many messages safe; 0: it could not be reopened or closed."""
        if not messages:
            self._log.error(
                "Observer {spec} could not be reopened or closed, what it had open stays in use: {error}",
                spec=spec,
                error=_one_line(error),
            )
            return
        self._counters.add("not_stored", spec, messages)
        if self._limit.passes(f"observer {spec}"):
            self._log.error(
                "Observer {spec} could not make {messages} messages safe: {error}",
                spec=spec,
                messages=messages,
                error=_one_line(error),
            )

    def report_held_back(self) -> None:
        """Say how many lines were held back; called every few seconds."""
        for kind, lines in self._limit.take_held_back():
            self._log.warn("{lines} more lines like the last one of {kind}", lines=lines, kind=kind)


def _one_line(error: object) -> str:
    return shown(str(error).encode("utf-8", "replace"))


def shown(raw: bytes) -> str:
    """Return what a sender wrote as harmless text: ASCII, nothing that moves a cursor or ends a line, not too long."""
    text = raw[:SHOWN_PATH].decode("latin-1").encode("unicode_escape").decode("ascii")
    return f"{text}…" if len(raw) > SHOWN_PATH else text
