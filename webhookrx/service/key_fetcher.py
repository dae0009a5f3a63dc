"""
Public keys of senders, fetched in the background and kept: no request ever waits for one.

What is asked for comes from pinned URLs, of which requests may name some: so few are kept, one fetch begins a second,
and one that has failed is not tried again at once, however often it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from webhookrx.senders.signatures.outcome import KeyUnavailable
from webhookrx.senders.signatures.pinned_urls import is_of_issuer, pinned_host

MOST_URLS: Final = 16
"""URLs whose contents are kept, and as many that wait without having been kept, or have failed."""

PACE: Final = 1.0
"""Seconds from the begin of one fetch to that of the next."""

FRESH: Final = 3600.0
"""Seconds for which contents are used without being fetched again beside."""

LONGEST: Final = 86_400.0
"""Seconds after which contents that could not be fetched again are not used any more: keys are withdrawn, too."""

SOONEST: Final = 300.0
"""Seconds for which a key that is not in a set is not looked for in a newer one."""

PAUSE: Final = 10.0
"""Seconds after which what has failed may be tried again; twice as many after each further failure, up to L{FRESH}."""

TRIES: Final = 5
"""Tries of what is fetched once, which nobody asks for again."""

_log = Logger()


class _Content:
    """
    What was fetched.

    @ivar fetched: when, on the monotonic clock.
    @ivar used: when it was last asked for.
    """

    __slots__ = ("data", "fetched", "used")

    def __init__(self, data: bytes, now: float) -> None:
        self.data = data
        self.fetched = self.used = now


class KeyFetcher:
    """
    Fetches and keeps.

    @param get: fetches a URL, see L{webhookrx.service.pinned_client.PinnedClient.get}.
    @param clock: of Twisted: C{seconds} and C{callLater}.
    """

    def __init__(self, get: Callable[[str], Deferred[bytes]], clock: Any) -> None:
        self._get = get
        self._clock = clock
        self._contents: dict[str, _Content] = {}
        self._failed: dict[str, tuple[float, float]] = {}  # URL: not before, and the pause until then
        self._waiting: dict[str, Callable[[bytes], None] | None] = {}
        self._running: set[str] = set()
        self._next: Any = None
        self._not_before = 0.0
        self._is_stopped = False

    def content(self, url: str) -> bytes:
        """
        Return what a URL has.

        @raise KeyUnavailable: that is not there; it is on its way, unless it can't be now.
        """
        content, now = self._contents.get(url), self._clock.seconds()
        if content is not None and now - content.fetched > LONGEST:
            del self._contents[url]
            content = None
        if content is None:
            self._ask(url)
            raise KeyUnavailable
        content.used = now
        if now - content.fetched > FRESH:
            self._ask(url)
        return content.data

    def renew(self, url: str) -> bool:
        """Fetch a URL again unless that was done lately; return whether something newer may come soon."""
        content = self._contents.get(url)
        if content is not None and self._clock.seconds() - content.fetched < SOONEST:
            return False
        return self._ask(url)

    def once(self, url: str, done: Callable[[bytes], None]) -> bool:
        """
        Fetch a URL, and keep nothing of it. What fails is tried again, L{TRIES} times in all.

        @param done: called with what it has.
        @return: whether that was begun.
        """
        return self._ask(url, done)

    def stop(self) -> None:
        """Begin nothing any more."""
        self._is_stopped = True
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _ask(self, url: str, done: Callable[[bytes], None] | None = None) -> bool:
        """Have a URL fetched as soon as it is its turn; return whether it is."""
        now = self._clock.seconds()
        if url in self._running or url in self._waiting:
            return True
        not_before, _ = self._failed.get(url, (now, 0.0))
        if self._is_stopped or pinned_host(url) is None or now < not_before:
            return False
        if url in self._contents or is_of_issuer(url):
            # Before all that only a request has named: else who names many could have our keys grow old.
            self._waiting = {url: done, **self._waiting}
        elif len(self._waiting) < MOST_URLS:
            self._waiting[url] = done
        else:
            return False
        if self._next is None:
            self._next = self._clock.callLater(max(0.0, self._not_before - now), self._begin)
        return True

    def _begin(self) -> None:
        url = next(iter(self._waiting))
        done = self._waiting.pop(url)
        self._running.add(url)
        self._not_before = self._clock.seconds() + PACE
        self._next = self._clock.callLater(PACE, self._begin) if self._waiting else None
        fetching = self._get(url)
        fetching.addCallback(self._fetched, url, done)
        fetching.addErrback(self._has_failed, url, done)

    def _fetched(self, data: bytes, url: str, done: Callable[[bytes], None] | None) -> None:
        self._running.discard(url)
        self._failed.pop(url, None)
        if done is not None:
            done(data)
            return
        self._contents[url] = _Content(data, self._clock.seconds())
        while len(self._contents) > MOST_URLS:
            del self._contents[min(self._contents, key=lambda each: self._contents[each].used)]

    def _has_failed(self, failure: Failure, url: str, done: Callable[[bytes], None] | None) -> None:
        self._running.discard(url)
        _, pause = self._failed.pop(url, (0.0, PAUSE / 2))
        pause = min(2 * pause, FRESH)
        self._failed[url] = (self._clock.seconds() + pause, pause)
        while len(self._failed) > MOST_URLS:
            del self._failed[next(iter(self._failed))]
        host = (pinned_host(url) or ("",))[0]
        _log.warn(
            "Could not fetch from {host}: {problem} It is not tried again for {pause} seconds.",
            host=host,
            problem=failure.getErrorMessage(),
            pause=round(pause),
        )
        if done is not None and pause < PAUSE * 2 ** (TRIES - 1):
            self._clock.callLater(pause, self._ask, url, done)


class KnownPublicKeys:
    """
    The keys of the senders of some settings; a L{webhookrx.senders.signatures.code_verifiers.KeySource}.

    @ivar files: the contents of files.
    @param fetcher: None: nothing is fetched.
    """

    def __init__(self, files: Sequence[bytes], fetcher: KeyFetcher | None) -> None:
        self.files = files
        self.are_fetched = fetcher is not None
        self._fetcher = fetcher

    def fetched(self, url: str) -> bytes:
        """
        Return what is at a URL.

        @raise KeyUnavailable: it is not there now.
        """
        if self._fetcher is None:
            raise KeyUnavailable
        return self._fetcher.content(url)

    def renew(self, url: str) -> bool:
        """Ask for what is at a URL now; return whether it may come soon."""
        return self._fetcher is not None and self._fetcher.renew(url)
