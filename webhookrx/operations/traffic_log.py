"""
Counters and log lines of the wire and of observers. Senders can neither forge log lines nor flood the log.
"""

from __future__ import annotations

import codecs
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from twisted.internet.error import TimeoutError
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from webhookrx.errors import Reason
from webhookrx.operations.counters import Counters, SecretUse, Skews
from webhookrx.operations.oplog import LineLimit
from webhookrx.store_counts import BOUNDS, TakenCounts
from webhookrx.wire_interfaces import ITraffic

if TYPE_CHECKING:
    from webhookrx.guard.bundle_judge import JudgedBundle

# Its first use opens a file, which may be impossible by the time of the first refusal.
codecs.lookup("unicode_escape")

#: The word of the step that finds senders; see L{webhookrx.router.steps.context.CLASSIFIED}, which takes memory.
_CLASSIFIED = "classified"

#: Characters of a path that a log line shows.
SHOWN_PATH = 200


@implementer(ITraffic)
class TrafficLog:
    """
    Counts and logs what happens on the wire.

    @param describe_handshake: returns a short sentence on a failed handshake; None if the peer merely went away.
    @param wall_clock: seconds since the epoch.
    @ivar mask_path: returns a path as a line may show it, without a token; called only
        for lines that are written, and for taps.
    @ivar watch_refusals: called with each refusal: its reason and detail, the peer, method, path without tokens, and
        source; None while no tap is about them.
    """

    def __init__(
        self,
        counters: Counters,
        limit: LineLimit,
        describe_handshake: Callable[[Failure], str | None],
        log: Logger | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._counters = counters
        self._limit = limit
        self._describe_handshake = describe_handshake
        self._log = Logger(namespace="webhookrx.traffic") if log is None else log
        self._wall_clock = wall_clock
        self._sources = counters.sources
        self.mask_path: Callable[[bytes], bytes] = bytes
        self.watch_refusals: Callable[[Reason, str, str, str, str, str], object] | None = None

    def refused(self, reason: Reason, detail: str, peer: str, method: bytes, path: bytes, source: str = "") -> None:
        self._counters.add("refused", reason.word, source)
        if self.watch_refusals is not None:
            self.watch_refusals(reason, detail, peer, shown(method), shown(self.mask_path(path)), source)
        if self._limit.passes(reason.word):
            self._log.warn(
                "Refused {peer}: {reason} ({status}) for {method} {path}: {detail}",
                peer=peer,
                reason=reason.word,
                status=reason.status,
                method=shown(method) or "-",
                path=shown(self.mask_path(path)) if path else "-",
                detail=detail,
            )

    def answered(self, source: str, seconds: float) -> None:
        # What Histogram.observe does, without a call for each request.
        answers = self._sources[source].answers
        answers.counts[bisect_left(BOUNDS, seconds)] += 1
        answers.sum += seconds

    def accepted(self, source: str, notes: Sequence[str], left_out: int, size: int) -> None:
        counts = self._sources[source]
        counts.messages += 1
        counts.bytes += size
        counts.last = self._wall_clock()
        for note in notes:
            self._counters.add(note, source)
        if left_out:
            self._counters.add("names_left_out", source, amount=left_out)

    def took_apart(self, source: str, judged: JudgedBundle, size: int) -> None:
        counts, add = self._sources[source], self._counters.add
        if judged.messages:
            counts.messages += len(judged.messages)
            counts.bytes += size
            counts.last = self._wall_clock()
        add("bundle", source)
        if not judged.events:
            add("empty_bundle", source)
        for note, amount in judged.notes.items():
            add(note, source, amount=amount)
        if judged.bare:
            add("bare_event", source, amount=judged.bare)
        if judged.left_out:
            add("names_left_out", source, amount=judged.left_out)
        for (word, label), amount in judged.steps.items():
            add(word, source, label, amount=amount)
            if word == _CLASSIFIED:
                counts.heard(label, self._wall_clock())
        if judged.problem:
            self._warn_of_step(source, judged.steps, judged.problem)

    def expects(self, source: str, events: Sequence[tuple[str, str]]) -> None:
        for word, label in events:
            self._counters.add(word, source, label, amount=0)
            if word == _CLASSIFIED:
                counts = self._sources[source]
                counts.heard(label, counts.senders.get(label, 0.0))

    def processed(self, source: str, events: Sequence[tuple[str, str]], problem: str) -> None:
        for word, label in events:
            self._counters.add(word, source, label)
            if word == _CLASSIFIED:
                self._sources[source].heard(label, self._wall_clock())
        if problem:
            self._warn_of_step(source, events, problem)

    def _warn_of_step(self, source: str, events: Iterable[tuple[str, str]], problem: str) -> None:
        if self._limit.passes("step"):
            fate = "was dropped" if any(word == "dropped" for word, _ in events) else "goes on"
            self._log.warn(
                "A step of {source} failed, the message {fate}: {problem}", source=source, fate=fate, problem=problem
            )

    def guards(
        self,
        source: str,
        secrets: Sequence[str],
        tokens: Sequence[str],
        kinds: Sequence[str],
        *,
        says_when: bool,
        sender: str = "",
    ) -> None:
        counts = self._sources[source]
        counts.hears(sender)
        for uses, names in ((counts.secrets, secrets), (counts.tokens, tokens)):
            for name in names:
                uses.setdefault(name, SecretUse(0, 0.0))
        for kind in kinds:
            self._counters.add("handshake", source, kind, amount=0)
        if says_when and counts.skews is None:
            counts.skews = Skews.empty()

    def verified(self, source: str, secret: str) -> None:
        self._use(self._sources[source].secrets, secret)

    def token_shown(self, source: str, token: str) -> None:
        self._use(self._sources[source].tokens, token)

    def _use(self, uses: dict[str, SecretUse], name: str) -> None:
        use = uses.get(name)
        if use is None:
            use = uses[name] = SecretUse(0, 0.0)
        use.requests += 1
        use.last = self._wall_clock()

    def skewed(self, source: str, seconds: float) -> None:
        counts = self._sources[source]
        if counts.skews is None:
            counts.skews = Skews.empty()
        counts.skews.observe(seconds)

    def asked(self, source: str, kind: str) -> None:
        self._counters.add("handshake", source, kind)

    def duplicate(self, source: str) -> None:
        self._counters.add("duplicate", source)

    def accept_failed(self, error: str) -> None:
        self._counters.add("accepts_failed")
        if self._limit.passes("accept"):
            self._log.error("No connection can be accepted for a moment: {error}", error=error)

    def handshake_failed(self, peer: str, failure: Failure) -> None:
        why = "it took too long" if failure.check(TimeoutError) else self._describe_handshake(failure)
        if why is None:
            return
        self._counters.add("tls_handshakes_failed")
        if self._limit.passes("tls_handshake"):
            self._log.warn("TLS handshake with {peer} failed: {why}", peer=peer, why=why)

    def dropped_unread(self) -> None:
        self._counters.add("dropped_unread")
        if self._limit.passes("dropped_unread"):
            self._log.warn("Dropped a connection unread: its sender has left, and the receiver is overloaded")

    def failed(self, what: str, failure: Failure) -> None:
        self._counters.add("failures")
        if self._limit.passes("failure"):
            self._log.failure("{what}", failure, what=what)

    def store_done(self, spec: str, messages: int, size: int, seconds: float) -> None:
        """
        An observer has finished a batch, stored or not.

        @param size: bytes that were counted for it.
        """
        counts = self._counters.observers[spec]
        counts.messages += messages
        counts.bytes += size
        counts.stores.observe(seconds)

    def store_counted(self, spec: str, taken: TakenCounts) -> None:
        """An observer, or the one behind it, has counted this itself."""
        self._counters.observers[spec].add_taken(taken)

    def observer_failed(self, spec: str, error: object, messages: int) -> None:
        """An observer could not store this many messages; 0: it could not be reopened or closed."""
        if not messages:
            self._log.error(
                "Observer {spec} could not be reopened or closed, what it had open stays in use: {error}",
                spec=spec,
                error=_one_line(error),
            )
            return
        self._counters.add("not_stored", spec, amount=messages)
        if self._limit.passes(f"observer {spec}"):
            self._log.error(
                "Observer {spec} could not make {messages} messages safe: {error}",
                spec=spec,
                messages=messages,
                error=_one_line(error),
            )

    def report_held_back(self) -> None:
        """Log how many lines were held back; called every few seconds."""
        for kind, lines in self._limit.take_held_back():
            self._counters.add("log_lines_held_back", amount=lines)
            self._log.warn("{lines} more lines like the last one of {kind}", lines=lines, kind=kind)


def _one_line(error: object) -> str:
    return shown(str(error).encode("utf-8", "replace"))


def shown(raw: bytes) -> str:
    """Return bytes of a sender as short ASCII text without control characters."""
    text = raw[:SHOWN_PATH].decode("latin-1").encode("unicode_escape").decode("ascii")
    return f"{text}…" if len(raw) > SHOWN_PATH else text
