"""Tests for L{webhookrx.service.key_fetcher}."""

from __future__ import annotations

from itertools import pairwise

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import formatEvent, globalLogPublisher
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.signatures.test_pinned_urls import HOSTILE
from webhookrx.senders.signatures.outcome import KeyUnavailable
from webhookrx.service.key_fetcher import (
    FRESH,
    LONGEST,
    MOST_URLS,
    PACE,
    PAUSE,
    SOONEST,
    TRIES,
    KeyFetcher,
    KnownPublicKeys,
)
from webhookrx.service.pinned_client import NotFetched


def _url(number: int) -> str:
    return f"https://sns.us-east-1.amazonaws.com/{number}.pem"


class KeyFetcherTests(SynchronousTestCase):
    """Keys that are fetched in the background."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.asked: list[tuple[float, str]] = []
        self.fetches: dict[str, Deferred[bytes]] = {}
        self.fetcher = KeyFetcher(self._get, self.clock)

    def _get(self, url: str) -> Deferred[bytes]:
        self.asked.append((self.clock.seconds(), url))
        self.fetches[url] = Deferred()
        return self.fetches[url]

    def _fetched(self, url: str, data: bytes) -> None:
        """Ask for a URL, and have it fetched."""
        self.assertRaises(KeyUnavailable, self.fetcher.content, url)
        self.clock.advance(PACE)
        self.fetches.pop(url).callback(data)

    def _fail(self, url: str) -> None:
        self.fetches.pop(url).errback(Failure(NotFetched("It is away.")))

    def test_background(self) -> None:
        """Who asks first gets nothing, and what comes then is there for all who ask later, without another fetch."""
        self._fetched(_url(1), b"one")
        for _ in range(3):
            self.assertEqual(b"one", self.fetcher.content(_url(1)))
        self.clock.advance(FRESH - PACE)
        self.assertEqual(b"one", self.fetcher.content(_url(1)))
        self.clock.advance(PACE)
        self.assertEqual([_url(1)], [url for _, url in self.asked])

    def test_once_at_a_time(self) -> None:
        """However often a URL is asked for, it is fetched once at a time."""
        for _ in range(3):
            self.assertRaises(KeyUnavailable, self.fetcher.content, _url(1))
            self.clock.advance(PACE)
        self.assertEqual(1, len(self.asked))

    def test_pace(self) -> None:
        """One fetch begins a second, whoever asks for what."""
        for number in range(5):
            self.assertRaises(KeyUnavailable, self.fetcher.content, _url(number))
        self.clock.pump([0.1] * 60)
        times = [moment for moment, _ in self.asked]
        self.assertEqual(5, len(times))
        self.assertTrue(all(later - earlier > 0.99 for earlier, later in pairwise(times)))
        self.assertRaises(KeyUnavailable, self.fetcher.content, _url(9))
        self.clock.advance(0)
        self.assertEqual(6, len(self.asked))
        self.assertRaises(KeyUnavailable, self.fetcher.content, _url(10))
        self.clock.advance(0.5)
        self.assertEqual(6, len(self.asked))

    def test_bounded(self) -> None:
        """Few URLs wait, and few are kept: the one that nobody has asked for longest goes."""
        for number in range(MOST_URLS + 5):
            self.assertRaises(KeyUnavailable, self.fetcher.content, _url(number))
        self.clock.pump([PACE] * 60)
        self.assertEqual(MOST_URLS, len(self.asked))
        for url in list(self.fetches):
            self.fetches.pop(url).callback(b"x")
        self.clock.advance(1)
        for number in range(1, MOST_URLS):
            self.fetcher.content(_url(number))
        self._fetched(_url(99), b"new")
        self.assertEqual(b"new", self.fetcher.content(_url(99)))
        for number in range(1, MOST_URLS):
            self.assertEqual(b"x", self.fetcher.content(_url(number)))
        self.assertRaises(KeyUnavailable, self.fetcher.content, _url(0))

    def test_crowded_out(self) -> None:
        """Who names many URLs can't keep out those that were kept before, nor those of issuers."""
        self._fetched(_url(1), b"one")
        self.clock.advance(FRESH + 1)
        for number in range(2, MOST_URLS + 9):
            self.assertRaises(KeyUnavailable, self.fetcher.content, _url(number))
        self.assertEqual(b"one", self.fetcher.content(_url(1)))
        issuer = "https://www.googleapis.com/oauth2/v3/certs"
        self.assertTrue(self.fetcher.renew(issuer))
        self.asked.clear()
        self.clock.pump([PACE] * 60)
        self.assertEqual([issuer, _url(1)], [url for _, url in self.asked][:2])
        self.assertEqual(MOST_URLS + 2, len(self.asked))

    def test_hostile(self) -> None:
        """A URL that is not pinned is never fetched."""
        for url in HOSTILE:
            self.assertRaises(KeyUnavailable, self.fetcher.content, url)
            self.assertFalse(self.fetcher.renew(url))
            self.assertFalse(self.fetcher.once(url, self.fail))
        self.clock.pump([PACE] * 10)
        self.assertEqual([], self.asked)

    def test_fetched_again(self) -> None:
        """What is old is fetched again while it is still used; what could not be, for a day, is used no more."""
        self._fetched(_url(1), b"one")
        self.clock.advance(FRESH + 1)
        self.assertEqual(b"one", self.fetcher.content(_url(1)))
        self.clock.advance(PACE)
        self.fetches.pop(_url(1)).callback(b"two")
        self.assertEqual(b"two", self.fetcher.content(_url(1)))
        self.clock.advance(FRESH + 1)
        self.fetcher.content(_url(1))
        self.clock.advance(PACE)
        self._fail(_url(1))
        self.clock.advance(LONGEST - FRESH - 10)
        self.assertEqual(b"two", self.fetcher.content(_url(1)))
        self.clock.advance(60)
        self.assertRaises(KeyUnavailable, self.fetcher.content, _url(1))

    def test_failed(self) -> None:
        """What has failed is not tried again at once; the pauses double, and the log says so once for each."""
        heard: list[str] = []
        self.addCleanup(globalLogPublisher.removeObserver, observe := lambda event: heard.append(formatEvent(event)))
        globalLogPublisher.addObserver(observe)
        pause = PAUSE
        for _ in range(4):
            self.assertRaises(KeyUnavailable, self.fetcher.content, _url(1))
            self.clock.advance(PACE)
            self._fail(_url(1))
            count = len(self.asked)
            self.clock.advance(pause - 0.1)
            self.assertRaises(KeyUnavailable, self.fetcher.content, _url(1))
            self.clock.advance(0.1)
            self.assertEqual(count, len(self.asked))
            pause *= 2
        self.assertEqual(
            [f"It is away. It is not tried again for {seconds} seconds." for seconds in (10, 20, 40, 80)],
            [text.partition(": ")[2] for text in heard],
        )
        self._fetched(_url(1), b"one")
        self.assertEqual(b"one", self.fetcher.content(_url(1)))

    def test_renew(self) -> None:
        """A set that lacks a key is fetched again, unless it is new: what anybody makes up costs nobody a fetch."""
        self._fetched(_url(1), b"one")
        self.assertFalse(self.fetcher.renew(_url(1)))
        self.clock.advance(SOONEST)
        self.assertTrue(self.fetcher.renew(_url(1)))
        self.assertTrue(self.fetcher.renew(_url(1)))
        self.clock.advance(PACE)
        self.assertTrue(self.fetcher.renew(_url(1)))
        self.fetches.pop(_url(1)).callback(b"two")
        self.assertFalse(self.fetcher.renew(_url(1)))
        self.assertEqual((b"two", 2), (self.fetcher.content(_url(1)), len(self.asked)))

    def test_once(self) -> None:
        """What is asked for once is not kept."""
        got: list[bytes] = []
        self.assertTrue(self.fetcher.once(_url(1), got.append))
        self.assertTrue(self.fetcher.once(_url(1), self.fail))
        self.clock.advance(PACE)
        self.fetches.pop(_url(1)).callback(b"done")
        self.assertEqual([b"done"], got)
        self.assertRaises(KeyUnavailable, self.fetcher.content, _url(1))

    def test_once_again(self) -> None:
        """What is asked for once, and fails, is tried a few times more."""
        got: list[bytes] = []
        self.fetcher.once(_url(1), got.append)
        for pause in (10, 20, 40):
            self.clock.advance(PACE)
            self._fail(_url(1))
            self.clock.advance(pause)
        self.clock.advance(PACE)
        self.fetches.pop(_url(1)).callback(b"done")
        self.assertEqual(([b"done"], 4), (got, len(self.asked)))
        self.fetcher.once(_url(2), got.append)
        for _ in range(TRIES):
            self.clock.advance(PACE)
            self._fail(_url(2))
            self.clock.advance(1000)
        self.assertEqual(([b"done"], {}), (got, self.fetches))

    def test_stop(self) -> None:
        """Once it is stopped, nothing is begun any more."""
        self.assertRaises(KeyUnavailable, self.fetcher.content, _url(1))
        self.fetcher.stop()
        self.assertRaises(KeyUnavailable, self.fetcher.content, _url(2))
        self.clock.pump([PACE] * 5)
        self.assertEqual(([], []), (self.asked, self.clock.getDelayedCalls()))

    def test_source(self) -> None:
        """Without a fetcher there are files alone."""
        keys = KnownPublicKeys([b"file"], None)
        self.assertEqual(([b"file"], False), (keys.files, keys.are_fetched))
        self.assertRaises(KeyUnavailable, keys.fetched, _url(1))
        self.assertFalse(keys.renew(_url(1)))
        self._fetched(_url(1), b"one")
        keys = KnownPublicKeys([], self.fetcher)
        self.assertEqual((True, b"one", False), (keys.are_fetched, keys.fetched(_url(1)), keys.renew(_url(1))))
