"""
Tests for L{webhookrx.console.alarms.connector_facts}: alarms about connectors whose routers count and report.
"""

from __future__ import annotations

from typing import Any

from tests.console.alarms.alarming import EDITOR, AlarmCase
from tests.console.routers.test_port import MARA
from webhookrx.console.alarms.alarm_routes import save_alarm
from webhookrx.console.alarms.connector_facts import MOST_IN_PIECE
from webhookrx.console.alarms.documents import AlarmDocument
from webhookrx.console.alarms.fleet_facts import SETTLING
from webhookrx.management.agent_protocol import ConnectorState, CountsReport, HeardSender, SeriesCounts

HOUR, DAY = 3600.0, 86_400.0


class CountingRouter:
    """
    What a router with connectors reports.

    @ivar messages: of each connector.
    @ivar last: when the last message of each came, seconds since the epoch.
    @ivar heard: when the last message of each sender came, by connector and sender; 0 before the first.
    @ivar refused: by connector and reason.
    @ivar ends: when certificates end.
    @ivar skew: by how much the router's clock is wrong, in seconds.
    """

    skew = 0.0

    def __init__(self, case: AlarmCase, name: str, *connectors: str, **facts: Any) -> None:
        self.case = case
        self.names = connectors
        self.ends: dict[str, float] = {}
        self.restart()
        self.router = case.talk(name, **facts)
        self.router.told = self.told

    def restart(self) -> None:
        """Begin to count anew."""
        self.begun = self.case.wall
        self.messages = dict.fromkeys(self.names, 0)
        self.last: dict[str, float] = {}
        self.heard: dict[tuple[str, str], float] = {}
        self.refused: dict[str, dict[str, int]] = {name: {} for name in self.names}

    def message(self, name: str, count: int = 1, sender: str = "") -> None:
        """Take messages."""
        if sender:
            self.heard[name, sender] = self.case.wall + self.skew
        self.messages[name] += count
        self.last[name] = self.case.wall + self.skew

    def refuse(self, name: str, reason: str, count: int = 1) -> None:
        """Refuse requests; with an empty name, before it was known which connector they are for."""
        known = self.refused.setdefault(name, {})
        known[reason] = known.get(reason, 0) + count

    def told(self) -> dict[str, Any]:
        """Return what it reports now."""
        states = tuple(
            ConnectorState(name=name, rule="hooks", port=8443, certificate_end=int(self.ends.get(name, 0) * 1e9))
            for name in self.names
        )
        series = tuple(
            SeriesCounts(
                name=name,
                messages=self.messages.get(name, 0),
                last=self.last.get(name, 0.0),
                refused=dict(self.refused[name]),
            )
            for name in (*self.names, *({""} & self.refused.keys()))
        )
        begun, until = int((self.begun + self.skew) * 1e9), int((self.case.wall + self.skew) * 1e9)
        counts = CountsReport(begun=begun, since=begun, until=until, series=series)
        senders = tuple(HeardSender(name, sender, last) for (name, sender), last in self.heard.items())
        return {"connectors": states, "counts": counts, "senders": senders}


class ConnectorCase(AlarmCase):
    """A console with alarms about connectors."""

    def alarm(self, name: str, **texts: str) -> None:
        """Make or change an alarm."""
        document = AlarmDocument(**texts)
        listed = self.alarms.book.listed(name)
        conditions = {"if_none_match": "*"} if listed is None else {"if_match": f"g{listed.generation}"}
        self.done(save_alarm(self.call(document, caller=EDITOR, path={"name": name}, **conditions)))

    def of(self, alarm: str) -> list[tuple[str, str]]:
        """Return subject and state of all that is not ok of an alarm."""
        return [(subject, state) for name, subject, state in self.states if name == alarm]


class SilentTests(ConnectorCase):
    """Connectors that have not sent for long."""

    def test_silent(self) -> None:
        """A connector that is silent for longer than it may be fires, and is ok with its next message."""
        self.alarm("quiet", kind="silent", lasts="2h", when="connector.name = a")
        router = CountingRouter(self, "fra-1", "a", "b")
        router.message("a")
        self.pass_time(2 * HOUR - 120)
        self.assertEqual([], self.of("quiet"))
        self.pass_time(180)
        self.assertEqual([("quiet", "fra-1/a", "firing")], self.told())
        self.assertRegex(self.shown(alarm="quiet").states[0].text, r"Its last message came 2 h(?: \d+ min)? ago\.")
        self.pass_time(HOUR)
        self.assertEqual([], self.told())
        router.message("a")
        self.look()
        self.assertEqual([("quiet", "fra-1/a", "ok")], self.told())

    def test_first_message(self) -> None:
        """The first message is waited for, as long as C{expect_within} says, also when the console restarts."""
        self.alarm("quiet", kind="silent", lasts="1h", expect_within="3h")
        router = CountingRouter(self, "fra-1", "a")
        self.look()
        self.assertEqual([("fra-1/a", "pending")], self.of("quiet"))
        self.pass_time(2 * HOUR)
        self.restart(60)
        self.pass_time(HOUR - 600)
        self.assertEqual([], self.told())
        self.pass_time(600)
        self.assertEqual([("quiet", "fra-1/a", "firing")], self.told())
        router.message("a")
        self.look()
        self.assertEqual([("quiet", "fra-1/a", "ok")], self.told())
        self.pass_time(HOUR + 60)
        self.assertEqual([("quiet", "fra-1/a", "firing")], self.told())

    def test_restart(self) -> None:
        """What is silent for long is so after a restart of console or router, too, and is not told again."""
        self.alarm("quiet", kind="silent", lasts="1h")
        router = CountingRouter(self, "fra-1", "a")
        router.message("a")
        self.pass_time(HOUR / 2)
        self.done(self.console.counts.write())
        self.restart(60)
        self.assertEqual([], self.of("quiet"))
        router.restart()
        router.router.instance = "two"
        router.router.number = 0
        self.pass_time(HOUR / 2)
        self.assertEqual([("quiet", "fra-1/a", "firing")], self.told())
        self.restart(60)
        self.alarms.tick()
        self.assertEqual([("fra-1/a", "unknown")], self.of("quiet"))
        self.pass_time(SETTLING)
        self.assertEqual(([("fra-1/a", "firing")], []), (self.of("quiet"), self.told()))

    def test_away(self) -> None:
        """Connectors of a router that is away are unknown, and not silent; a late report says how it is."""
        self.alarm("quiet", kind="silent", lasts="1h")
        router = CountingRouter(self, "fra-1", "a")
        router.message("a")
        self.look()
        self.talking.clear()
        self.pass_time(2 * HOUR)
        self.assertEqual([("router_away", "fra-1", "firing")], self.told())
        self.assertEqual([("fra-1/a", "unknown")], self.of("quiet"))
        router.message("a")
        router.last["a"] -= 1800
        self.talking.append(router.router)
        self.look()
        self.assertEqual([("router_away", "fra-1", "ok")], self.told())
        self.assertEqual([], self.of("quiet"))
        self.pass_time(1800)
        self.assertEqual([("quiet", "fra-1/a", "firing")], self.told())

    def test_labels(self) -> None:
        """The query is on the fields of analytics."""
        self.alarm("quiet", kind="silent", lasts="1m", when="label.site = fra AND connector.port = 8443")
        for name, site in (("fra-1", "fra"), ("ber-1", "ber")):
            CountingRouter(self, name, "a", labels={"site": site}).message("a")
        self.pass_time(150)
        self.assertEqual([("quiet", "fra-1/a", "firing")], self.told())

    def test_nothing_matches(self) -> None:
        """An alarm about nothing that is there fires, too, and not just after a restart."""
        self.alarm("quiet", kind="silent", lasts="10m", when="connector.name = nowhere")
        CountingRouter(self, "fra-1", "a")
        self.pass_time(660)
        self.assertEqual([("quiet", "*", "firing")], self.told())
        self.restart()
        self.pass_time(1200)
        self.assertEqual([], self.told())

    def test_gone(self) -> None:
        """A connector that is removed is ok."""
        self.alarm("quiet", kind="silent", lasts="1m")
        router = CountingRouter(self, "fra-1", "a", "b")
        router.message("a")
        router.message("b")
        self.pass_time(150)
        self.assertEqual(2, len(self.told()))
        router.names = ("b",)
        self.look()
        self.assertEqual([("quiet", "fra-1/a", "ok")], self.told())

    def test_deleted_router(self) -> None:
        """So are those of a router that is deleted."""
        self.alarm("quiet", kind="silent", lasts="1m")
        router = CountingRouter(self, "fra-1", "a")
        router.message("a")
        self.pass_time(150)
        self.told()
        self.done(self.fleet.delete(MARA, self.known(router.router)))
        self.talking.clear()
        self.look()
        self.assertEqual([("quiet", "fra-1/a", "ok")], self.told())

    def test_clock_jumps(self) -> None:
        """A clock that is set makes nobody silent."""
        self.alarm("quiet", kind="silent", lasts="1h")
        router = CountingRouter(self, "fra-1", "a")
        router.message("a")
        self.look()
        for jump in (DAY, -2 * DAY):
            self.wall += jump
            self.pass_time(600)
            self.assertEqual([], self.told())
        self.pass_time(HOUR)
        self.assertEqual([("quiet", "fra-1/a", "firing")], self.told())

    def test_wrong_clocks(self) -> None:
        """A router whose clock is wrong is as silent as another, also when its clock is set."""
        self.alarm("quiet", kind="silent", lasts="1h")
        for name, skew in (("late", -7200.0), ("early", 7200.0)):
            router = CountingRouter(self, name, "a")
            router.skew = skew
            router.message("a")
        self.pass_time(HOUR - 120)
        self.assertEqual([], self.told())
        for router, jump in zip(self.talking, (DAY, -DAY), strict=True):
            router.told.__self__.skew -= jump
        self.pass_time(180)
        self.assertEqual({("quiet", "late/a", "firing"), ("quiet", "early/a", "firing")}, set(self.told()))

    def test_pieces(self) -> None:
        """A router with many connectors is looked at in pieces."""
        self.alarm("quiet", kind="silent", lasts="1m")
        names = [f"c{number}" for number in range(2 * MOST_IN_PIECE + 1)]
        router = CountingRouter(self, "fra-1", *names)
        for name in names:
            router.message(name)
        self.pass_time(150)
        self.assertEqual(len(names), self.shown().alarms[-1].firing)


class SenderTests(ConnectorCase):
    """Senders of connectors that have not sent for long."""

    def test_silent(self) -> None:
        """With a query for senders each of them is looked at, and no connector; without one it is the reverse."""
        self.alarm("sender", kind="silent", lasts="1h", when="sender IN (github, gitlab) AND rule = hooks")
        self.alarm("quiet", kind="silent", lasts="1h")
        router = CountingRouter(self, "fra-1", "a", "b")
        for sender in ("github", "gitlab", "stripe"):
            router.message("a", sender=sender)
        for _ in range(8):
            self.pass_time(HOUR / 6)
            router.message("a", sender="gitlab")
            router.message("b")
        self.assertEqual([("sender", "fra-1/a/github", "firing")], self.told())
        self.assertRegex(self.shown(alarm="sender").states[0].text, r"Its last message came 1 h (?:19|2\d) min ago\.")
        router.message("a", sender="github")
        self.look()
        self.assertEqual([("sender", "fra-1/a/github", "ok")], self.told())
        self.assertEqual([], self.states)

    def test_never_heard(self) -> None:
        """A sender that was never heard has no subject of its own; one that alone is taken is waited for."""
        self.alarm("sender", kind="silent", lasts="1h", expect_within="2h", when="sender = github")
        router = CountingRouter(self, "fra-1", "a", "b")
        self.pass_time(HOUR + 60)
        self.assertEqual([("sender", "*", "firing")], self.told())
        router.heard["b", "github"] = 0.0
        self.look()
        self.assertEqual([("sender", "*", "ok")], self.told())
        self.assertEqual([("fra-1/b/github", "pending")], self.of("sender"))
        self.pass_time(2 * HOUR)
        self.assertEqual([("sender", "fra-1/b/github", "firing")], self.told())

    def test_away(self) -> None:
        """Senders of a router that is away, or has not come again after a restart of the console, are unknown."""
        self.alarm("sender", kind="silent", lasts="1h", when="sender EXISTS")
        router = CountingRouter(self, "fra-1", "a")
        router.message("a", sender="github")
        self.pass_time(HOUR + 60)
        self.assertEqual([("sender", "fra-1/a/github", "firing")], self.told())
        self.talking.clear()
        self.pass_time(180)
        self.assertEqual([("fra-1/a/github", "unknown")], self.of("sender"))
        self.restart(60)
        self.alarms.tick()
        self.assertEqual([("fra-1/a/github", "unknown")], self.of("sender"))
        self.talking.append(router.router)
        self.pass_time(SETTLING)
        self.assertEqual(([("fra-1/a/github", "firing")], []), (self.of("sender"), self.told()))

    def test_restart_of_the_router(self) -> None:
        """A router that was started anew has heard nobody; what fires of it ends, with a sentence that says why."""
        self.alarm("sender", kind="silent", lasts="1h", when="sender EXISTS")
        router = CountingRouter(self, "fra-1", "a")
        router.message("a", sender="github")
        self.pass_time(HOUR + 60)
        self.told()
        router.restart()
        router.router.instance, router.router.number = "two", 0
        self.look()
        self.assertEqual([("sender", "fra-1/a/github", "ok")], self.told())
        self.assertEqual((), self.known(router.router).senders)

    def test_clocks(self) -> None:
        """Neither a wrong clock of a router nor one that is set makes a sender silent."""
        self.alarm("sender", kind="silent", lasts="1h", when="sender EXISTS")
        for name, skew in (("late", -7200.0), ("early", 7200.0)):
            router = CountingRouter(self, name, "a")
            router.skew = skew
            router.message("a", sender="github")
        self.pass_time(HOUR / 2)
        self.wall += DAY
        self.pass_time(HOUR / 2 - 120)
        self.assertEqual([], self.told())
        self.pass_time(180)
        self.assertEqual(
            {("sender", "late/a/github", "firing"), ("sender", "early/a/github", "firing")}, set(self.told())
        )

    def test_hostile(self) -> None:
        """Senders and connectors may have any name, and come twice: each is looked at once, and none too early."""
        self.alarm("sender", kind="silent", lasts="1h", when="sender EXISTS")
        hostile = '"><script>alert(1)</script>/\u202e*\n'
        router = self.talk("fra-1")
        last = self.wall - 2000
        until = int(self.wall * 1e9)
        heard = HeardSender(hostile, hostile, last)
        router.told = {
            "senders": (heard, heard, HeardSender("a", "far", 1e300)),
            "counts": CountsReport(begun=1, since=1, until=until),
        }
        self.pass_time(60)
        self.assertEqual(([], []), (self.told(), self.of("sender")))
        self.pass_time(1620)
        self.assertEqual([("sender", f"fra-1/{hostile}/{hostile}", "firing")], self.told())


class RefusedTests(ConnectorCase):
    """Connectors that refuse requests."""

    def test_rate(self) -> None:
        """Refusals above a rate are pending, and fire when that lasts; they are ok when there are none any more."""
        self.alarm("no", kind="refused", above="10/m", lasts="5m", when="reason = bad_token")
        router = CountingRouter(self, "fra-1", "a", "b")
        self.pass_time(60)
        for _ in range(16):
            router.refuse("a", "bad_token", 10)
            router.refuse("b", "too_large", 10)
            self.pass_time(30)
        self.assertEqual([("no", "fra-1/a", "firing")], self.told())
        self.pass_time(120)
        self.assertEqual([("no", "fra-1/a", "ok")], self.told())

    def test_share(self) -> None:
        """A part of all requests is of those lately."""
        self.alarm("no", kind="refused", above="50%", lasts="1m")
        router = CountingRouter(self, "fra-1", "a", "b")
        router.message("a", 1_000_000)
        self.pass_time(60)
        for _ in range(8):
            router.message("a", 4)
            router.refuse("a", "bad_token", 6)
            router.message("b", 6)
            router.refuse("b", "bad_token", 4)
            self.pass_time(30)
        self.assertEqual([("no", "fra-1/a", "firing")], self.told())
        self.assertRegex(
            self.shown(alarm="no").states[0].text, r"\d+ requests were refused in (?:1 min|\d\d s) \(bad_token\)\."
        )

    def test_before_a_connector(self) -> None:
        """What was refused before a connector was known has a subject, and is a part of all requests."""
        self.alarm("no", kind="refused", above="40%", lasts="1m", when="reason = no_matching_path")
        self.alarm("few", kind="refused", above="60%", lasts="1m")
        self.alarm("quiet", kind="silent", lasts="1h", expect_within="1m")
        router = CountingRouter(self, "fra-1", "a")
        self.pass_time(60)
        for _ in range(8):
            router.message("a", 5)
            router.refuse("", "no_matching_path", 5)
            self.pass_time(30)
        self.assertEqual([("no", "fra-1/", "firing")], self.told())
        self.assertEqual(([], []), (self.of("few"), self.of("quiet")))

    def test_restarts(self) -> None:
        """Refusals of the time before a restart of the console are no rate after it; nor are they counted twice."""
        self.alarm("no", kind="refused", above="100/h", lasts="1s")
        router = CountingRouter(self, "fra-1", "a")
        router.refuse("a", "bad_token", 1_000_000)
        self.pass_time(60)
        self.restart(60)
        self.pass_time(300)
        self.assertEqual([], self.told())
        router.restart()
        router.router.instance, router.router.number = "two", 0
        router.refuse("a", "bad_token", 20)
        self.pass_time(60)
        self.assertEqual([("no", "fra-1/a", "firing")], self.told())

    def test_firing_over_a_restart(self) -> None:
        """What fires goes on over a restart of the console, unknown for a moment."""
        self.alarm("no", kind="refused", above="1/m", lasts="1s")
        router = CountingRouter(self, "fra-1", "a")
        self.pass_time(60)
        router.refuse("a", "bad_token", 10)
        self.pass_time(60)
        self.assertEqual([("no", "fra-1/a", "firing")], self.told())
        self.restart(10)
        for _ in range(8):
            router.refuse("a", "bad_token", 10)
            self.look()
        self.assertEqual(([], [("fra-1/a", "firing")]), (self.told(), self.of("no")))


class CertificateTests(ConnectorCase):
    """Certificates of connectors."""

    def test_ends(self) -> None:
        """A certificate fires so long before its end, and is ok when there is another."""
        self.alarm("ends", kind="certificate", lasts="14d")
        router = CountingRouter(self, "fra-1", "a", "b", "c")
        router.ends = {"a": self.wall + 14 * DAY + 100, "b": self.wall + 30 * DAY}
        self.pass_time(60)
        self.assertEqual([], self.told())
        self.pass_time(90)
        self.assertEqual([("ends", "fra-1/a", "firing")], self.told())
        self.assertEqual("It ends in 13 d 23 h.", self.shown(alarm="ends").states[0].text)
        router.ends["a"] += 90 * DAY
        self.look()
        self.assertEqual([("ends", "fra-1/a", "ok")], self.told())
        router.ends["b"] = self.wall - DAY
        self.look()
        self.assertEqual([("ends", "fra-1/b", "firing")], self.told())
        self.assertRegex(self.shown(alarm="ends").states[0].text, r"It ended 1 d ago\.")
