"""
Tests for L{webhookrx.console.alarms.spool_facts}: alarms about the spools of routers.
"""

from __future__ import annotations

from typing import Any

from tests.console.alarms.test_connector_facts import ConnectorCase
from webhookrx.console.alarms.fleet_facts import SETTLING
from webhookrx.management.agent_protocol import CountsReport, SpoolState

HOSTILE = '"><script>alert(1)</script>/\u202e*\n'


class SpoolingRouter:
    """
    What a router with spools reports.

    @ivar oldest: by observer, when the oldest message that waits came by the console's clock; 0 for none.
    @ivar skew: by how much the router's clock is wrong, in seconds.
    """

    def __init__(self, case: ConnectorCase, name: str, skew: float = 0.0, **facts: Any) -> None:
        self.case, self.skew = case, skew
        self.oldest: dict[str, float] = {}
        self.router = case.talk(name, **facts)
        self.router.told = self.told

    def told(self) -> dict[str, Any]:
        """Return what it reports now."""
        until = int((self.case.wall + self.skew) * 1e9)
        spools = tuple(
            SpoolState(name=name, messages=3, bytes=9, oldest=int((oldest + self.skew) * 1e9) if oldest else 0)
            for name, oldest in self.oldest.items()
        )
        return {"spools": spools, "counts": CountsReport(begun=1, since=1, until=until)}


class SpoolTests(ConnectorCase):
    """Messages that wait in spools of routers."""

    def test_fires_and_ends(self) -> None:
        """A spool whose oldest message is too old fires, and is ok when another is the oldest, or none waits."""
        self.alarm("backlog", kind="spool")
        router = SpoolingRouter(self, "fra-1")
        router.oldest = {"spool:/x": self.wall, "spool:/y": 0.0}
        self.pass_time(870)
        self.assertEqual(([], []), (self.told(), self.of("backlog")))
        self.pass_time(60)
        self.assertEqual([("backlog", "fra-1/spool:/x", "firing")], self.told())
        self.assertRegex(
            self.shown(alarm="backlog").states[0].text, r"3 messages wait, the oldest for 1[5-6] min \d+ s\."
        )
        self.pass_time(900)
        self.assertEqual([], self.told())
        router.oldest["spool:/x"] = self.wall - 60
        self.look()
        self.assertEqual([("backlog", "fra-1/spool:/x", "ok")], self.told())
        self.pass_time(900)
        self.assertEqual([("backlog", "fra-1/spool:/x", "firing")], self.told())
        router.oldest["spool:/x"] = 0.0
        self.look()
        self.assertEqual([("backlog", "fra-1/spool:/x", "ok")], self.told())

    def test_gone(self) -> None:
        """A spool that is there no more is ok, also when the router is one that tells of none."""
        self.alarm("backlog", kind="spool", lasts="1m")
        router = SpoolingRouter(self, "fra-1")
        router.oldest = {"spool:/x": self.wall - 3600}
        self.look()
        self.assertEqual([("backlog", "fra-1/spool:/x", "firing")], self.told())
        router.router.told = {}
        self.look()
        self.assertEqual([("backlog", "fra-1/spool:/x", "ok")], self.told())

    def test_query(self) -> None:
        """The query is on the fields of routers and on the observer."""
        self.alarm("backlog", kind="spool", lasts="1m", when="label.site = fra AND observer = 'spool:/x'")
        for name, site in (("fra-1", "fra"), ("ber-1", "ber")):
            router = SpoolingRouter(self, name, labels={"site": site})
            router.oldest = {"spool:/x": self.wall - 3600, "spool:/y": self.wall - 3600}
        self.look()
        self.assertEqual([("backlog", "fra-1/spool:/x", "firing")], self.told())

    def test_away(self) -> None:
        """While its router is away, or has not come again after a restart, a spool is unknown and told as nothing."""
        self.alarm("backlog", kind="spool", lasts="1h")
        router = SpoolingRouter(self, "fra-1")
        router.oldest = {"spool:/x": self.wall - 4000}
        self.look()
        self.assertEqual([("backlog", "fra-1/spool:/x", "firing")], self.told())
        self.talking.clear()
        self.pass_time(180)
        self.assertEqual([("fra-1/spool:/x", "unknown")], self.of("backlog"))
        self.restart(60)
        self.alarms.tick()
        self.assertEqual([("fra-1/spool:/x", "unknown")], self.of("backlog"))
        self.talking.append(router.router)
        self.pass_time(SETTLING)
        self.assertEqual(([("fra-1/spool:/x", "firing")], []), (self.of("backlog"), self.told()))

    def test_clocks(self) -> None:
        """A router whose clock is wrong is no different, and neither clock makes a message old when it is set."""
        self.alarm("backlog", kind="spool", lasts="1h")
        for name, skew in (("early", 7200.0), ("late", -7200.0)):
            SpoolingRouter(self, name, skew).oldest = {"spool:/x": self.wall}
        self.pass_time(1800)
        self.wall += 86_400.0
        self.pass_time(1740)
        self.assertEqual([], self.told())
        self.pass_time(120)
        self.assertEqual(
            {("backlog", "early/spool:/x", "firing"), ("backlog", "late/spool:/x", "firing")}, set(self.told())
        )

    def test_hostile(self) -> None:
        """An observer may have any name, and one name may come twice: it is one subject, which ends, too."""
        self.alarm("backlog", kind="spool", lasts="1h")
        router = self.talk("fra-1")
        until = int(self.wall * 1e9)
        spool = SpoolState(name=HOSTILE, messages=1, oldest=until - 2000 * 1_000_000_000)
        later = SpoolState(name="*", messages=(1 << 53) - 1, oldest=(1 << 63) - 1)
        counts = CountsReport(begun=1, since=1, until=until)
        router.told = {"spools": (spool, spool, later), "counts": counts}
        self.pass_time(60)
        self.assertEqual(([], []), (self.told(), self.of("backlog")))
        self.pass_time(1680)
        self.assertEqual([("backlog", f"fra-1/{HOSTILE}", "firing")], self.told())
        router.told = {"spools": ()}
        self.look()
        self.assertEqual([("backlog", f"fra-1/{HOSTILE}", "ok")], self.told())

    def test_differences(self) -> None:
        """A report without spools leaves them as they are; one with everything but them forgets them."""
        router = self.router("fra-1")
        spools = (SpoolState(name="spool:/x", messages=1, oldest=1),)
        for members, expected in (
            ({"spools": spools}, spools),
            ({"base": 1}, spools),
            ({"base": 2, "spools": ()}, ()),
            ({"base": 3, "spools": spools}, spools),
            ({}, ()),
        ):
            self.assertEqual(204, router.report(**members).responseCode)
            self.assertEqual(expected, self.known(router).spools)
