"""
Tests for L{webhookrx.tapping.taps} and L{webhookrx.tapping.tap}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import BAD_TOKEN, CantTap
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.judge import Accepted, Admission, Dropped, Receipt, Refused, SourceRules
from webhookrx.message.message import Message
from webhookrx.tapping.tap import MOST_BUFFERED, Tap, TapCounts
from webhookrx.tapping.tap_request import TapRequest
from webhookrx.tapping.taps import AT_ONCE, LOOKING, Taps
from webhookrx.tapping.view import RequestSource

RULES = SourceRules("github", parse_json=False, body_limit=1000, unpack_ratio=100)


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class SlowSource(RequestSource):
    """
    A source whose messages take long to look at.

    @ivar takes: seconds.
    """

    clock: Clock
    takes = 0.0

    def view(self, *args: Any) -> Any:
        """Take that time."""
        self.clock.now += self.takes
        return super().view(*args)


class TapsTestCase(SynchronousTestCase):
    """
    Taps of one source.

    @cvar request: what its decisions are about.
    """

    request = (
        Head(b"POST", b"/github", b"a=1", (), Peer("192.0.2.7", 1, False)),
        Admission(RULES, {}, {}, ()),
        b'{"a":1}',
        Receipt(7, "id-1"),
    )

    def setUp(self) -> None:
        self.clock = Clock()
        self.source = SlowSource("github")
        self.source.clock = self.clock
        self.taps = Taps(self.clock, lambda: 5)
        self.taps.use({"github": self.source})
        self.woken = 0

    def tap(self, **request: Any) -> Tap:
        """Start a tap."""

        def wake() -> None:
            self.woken += 1

        tap = Tap(TapRequest(**request), self.clock.now, wake)
        self.taps.add(tap)
        return tap

    def message(self, values: Mapping[str, Any], *, dropped: bool = False) -> None:
        """Have a message pass."""
        self.decide(Dropped((), "") if dropped else Accepted(Message(dict(values), 7)))

    def decide(self, verdict: Accepted | Dropped | Refused) -> None:
        """Have the source decide on a request; what it decides stays as it is."""
        self.assertIs(verdict, self.taps.looked_at("github", lambda *_: verdict)(*self.request))

    def rows(self, tap: Tap) -> list[dict[str, Any]]:
        """Take all rows of a tap."""
        return [json.loads(row) for row in tap.take()]


class MessageTests(TapsTestCase):
    """Tests for L{Taps.looked_at}."""

    def test_side_by_side(self) -> None:
        """A tap shows the request and the message, with one id, masked."""
        tap = self.tap()
        self.message({"MESSAGE": "x", "password": "hush"})
        (row,) = self.rows(tap)
        self.assertEqual((row["id"], row["source"]), ("id-1", "github"))
        self.assertEqual(row["input"]["path"], "/github")
        self.assertEqual(row["input"]["body"], '{"a":1}')
        self.assertEqual(row["output"], {"MESSAGE": "x", "password": "***"})
        self.assertEqual(self.woken, 1)

    def test_filter(self) -> None:
        """Only messages that the filter takes are shown; all are counted."""
        tap = self.tap(filter="user = ann", rate=20)
        self.message({"user": "ann"})
        self.message({"user": "bob"})
        self.assertEqual([row["output"] for row in self.rows(tap)], [{"user": "ann"}])
        self.assertEqual(tap.counts, TapCounts(seen=2, matched=1, shown=1))

    def test_filter_sees_masks(self) -> None:
        """A filter can't ask for a secret, nor do its counts tell."""
        for text in ("password = hush-7", "NOT password = hush-7", "@ANY =* hush"):
            with self.subTest(text):
                tap = self.tap(point="output", filter=text)
                self.message({"password": "hush-7"})
                with_secret = tap.counts.matched
                self.message({"password": "other"})
                self.assertEqual(tap.counts.matched, 2 * with_secret)
                self.taps.remove(tap)

    def test_rate(self) -> None:
        """No more messages are shown than the rate allows; the others are counted as matched."""
        tap = self.tap(rate=2)
        for _ in range(10):
            self.message({})
        self.assertEqual(len(self.rows(tap)), 4)
        self.clock.now += 0.5
        self.message({})
        self.assertEqual(len(self.rows(tap)), 1)
        self.assertEqual(tap.counts, TapCounts(seen=11, matched=11, shown=5))

    def test_other_source(self) -> None:
        """A tap about another source sees nothing."""
        tap = self.tap(source="stripe")
        self.message({})
        self.assertEqual(tap.counts, TapCounts())
        self.assertFalse(self.taps.is_tapped("github"))

    def test_dropped(self) -> None:
        """A dropped message has an input and no output."""
        tap = self.tap(point="input")
        output = self.tap(point="output")
        self.message({}, dropped=True)
        self.assertTrue(self.rows(tap)[0]["dropped"])
        self.assertEqual(self.rows(output), [])

    def test_time(self) -> None:
        """A process that has spent its time on looking counts messages as not looked at, until it has time again."""
        tap = self.tap(rate=20)
        self.source.takes = 0.030
        self.message({})
        self.message({})
        self.assertEqual(tap.counts.not_looked_at, 1)
        self.clock.now += (0.030 - LOOKING + AT_ONCE) / LOOKING - 0.1
        self.message({})
        self.assertEqual(tap.counts.not_looked_at, 2)
        self.clock.now += 0.2
        self.message({})
        self.assertEqual(tap.counts, TapCounts(seen=4, matched=2, shown=2, not_looked_at=2))

    def test_passed_by(self) -> None:
        """What there was no time for is counted for the taps that ran then, and for no others."""
        ended, tap, other = self.tap(rate=20), self.tap(rate=20), self.tap(source="gitlab")
        self.source.takes = 0.030
        self.message({})
        self.message({})
        self.taps.remove(ended)
        self.message({})
        later = self.tap(rate=20)
        self.message({})
        told = [(each.counts.seen, each.total.not_looked_at) for each in (ended, tap, later, other)]
        self.assertEqual(told, [(2, 1), (4, 4), (1, 1), (0, 0)])

    def test_time_of_many(self) -> None:
        """Once the time is spent on a message, further taps do not look at it."""
        taps = [self.tap(), self.tap(), self.tap()]
        self.source.takes = 0.030
        self.message({})
        self.assertEqual([tap.counts.not_looked_at for tap in taps], [0, 1, 1])
        self.assertEqual([tap.counts.seen for tap in taps], [1, 1, 1])

    def test_failure(self) -> None:
        """A look that fails is counted, reported once, and nothing is raised."""
        problems: list[int] = []
        self.taps.problem = lambda: problems.append(1)
        tap = self.tap()
        self.source.view = None  # type: ignore[assignment]
        self.message({})
        self.message({})
        self.assertEqual((tap.counts.not_looked_at, problems), (2, [1]))

    def test_refused(self) -> None:
        """What is refused is no message, whether or not there is time to look."""
        tap = self.tap()
        refused = Refused(BAD_TOKEN, "No.", "github")
        self.decide(refused)
        self.source.takes = 0.030
        self.message({})
        self.decide(refused)
        self.assertEqual(tap.counts, TapCounts(seen=1, matched=1, shown=1))

    def test_other_sources(self) -> None:
        """What was passed by is counted when a reload takes its source away, and a source that stays goes on."""
        tap = self.tap(rate=20)
        self.source.takes = 0.030
        self.message({})
        self.message({})
        decided = self.taps.looked_at("github", lambda *_: Dropped((), ""))
        self.taps.use({"github": SlowSource("github"), "new": SlowSource("new")})
        decided(*self.request)
        self.assertEqual(tap.counts, TapCounts(seen=3, matched=1, shown=1, not_looked_at=2))
        self.message({})
        self.taps.use({"new": SlowSource("new")})
        self.assertFalse(self.taps.is_tapped("github"))
        self.assertTrue(self.taps.is_tapped("new"))
        self.assertEqual((tap.counts.seen, tap.counts.not_looked_at), (4, 3))

    def test_removed(self) -> None:
        """A tap that was removed sees nothing more."""
        tap = self.tap()
        self.taps.remove(tap)
        self.message({})
        self.assertEqual(tap.counts.seen, 0)
        self.assertEqual(self.taps.active, ())


class RefusedTests(TapsTestCase):
    """Tests for L{Taps.refused}."""

    def test_shown(self) -> None:
        """A refusal is shown with its reason to a tap about refusals, and to no other."""
        tap, other = self.tap(point="refused"), self.tap()
        self.assertTrue(self.taps.sees_refusals)
        self.taps.refused(BAD_TOKEN, "No.", "192.0.2.7", "POST", "/github", "github")
        (row,) = self.rows(tap)
        self.assertEqual((row["reason"], row["status"], row["source"]), ("bad_token", 403, "github"))
        self.assertEqual(self.rows(other), [])

    def test_unknown_source(self) -> None:
        """A refusal before the source is known is shown to a tap about all sources alone."""
        tap, of_one = self.tap(point="refused"), self.tap(point="refused", source="github")
        self.taps.refused(BAD_TOKEN, "No.", "192.0.2.7", "POST", "/x", "")
        self.assertEqual((tap.counts.seen, of_one.counts.seen), (1, 0))


class LineTests(TapsTestCase):
    """Tests for L{Taps.line}."""

    def test_shown(self) -> None:
        """A line of the log is shown to a tap about them, masked."""
        tap = self.tap(point="service")
        self.taps.line("info", "webhookrx", "Reloaded, token=hush")
        (row,) = self.rows(tap)
        self.assertEqual((row["level"], row["text"]), ("info", "Reloaded, token=***"))


class TapTests(TapsTestCase):
    """Tests for L{Tap}."""

    def test_buffer(self) -> None:
        """Rows that nobody takes are dropped, the oldest first, and counted."""
        tap = self.tap()
        row = b"x" * 1000
        for number in range(500):
            tap.add(b"%d" % number + row)
        rows = tap.take()
        self.assertLessEqual(sum(map(len, rows)), MOST_BUFFERED)
        self.assertEqual(tap.counts.dropped, 500 - len(rows))
        self.assertTrue(rows[-1].startswith(b"499"))

    def test_other_processes(self) -> None:
        """Counts of other processes are added up, also those of one that has ended; the rate holds for all of them."""
        tap = self.tap(rate=1)
        tap.count_of(0, TapCounts(seen=5, matched=3, shown=3))
        tap.count_of(1, TapCounts(seen=2))
        for _ in range(3):
            tap.show_of(b"{}", self.clock.now)
        self.assertEqual(len(tap.take()), 2)
        self.assertEqual(tap.total, TapCounts(seen=7, matched=3, shown=2))
        tap.retire(0)
        tap.count_of(0, TapCounts(seen=1))
        self.assertEqual(tap.total, TapCounts(seen=8, matched=3, shown=2))

    def test_wrong(self) -> None:
        """What a tap can't show is refused with a reason."""
        for request, why in (
            ({"point": "inside"}, "one of the points"),
            ({"point": "probe:"}, "one of the points"),
            ({"filter": "= ="}, "query of filter is wrong"),
            ({"connectors": "AND"}, "query of connectors is wrong"),
            ({"point": "service", "source": "x"}, "of no source"),
        ):
            with self.subTest(request):
                self.assertIn(why, str(self.assertRaises(CantTap, self.tap, **request)))
