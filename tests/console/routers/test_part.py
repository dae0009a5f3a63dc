"""
Tests for L{webhookrx.console.routers.part}: a saved rule is in the next bundle of each router that it matches.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import Deferred, succeed

from tests.console.routers.test_authority import NOW
from tests.console.routers.test_port import MARA, PortCase
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.own_settings.live_settings import LiveSettings
from webhookrx.console.own_settings.setting_types import MaskSetting
from webhookrx.console.routers.authority import make_authority
from webhookrx.console.routers.part import HandedRules, RoutersPart
from webhookrx.console.rules.rulebook import Rulebook
from webhookrx.management.bundle import key_id, open_bundle, public_key

RULE = """\
name: hooks  # of the site
selector: os = linux
protocol: HTTP
port: 8080
"""


class RoutersPartTests(PortCase):
    def setUp(self) -> None:
        super().setUp()
        self.rulebook = Rulebook(self.store, lambda: self.fleet.hosts)
        self.done(self.rulebook.start())
        console: Any = SimpleNamespace(
            reactor=self.clock,
            store=self.store,
            clock=lambda: self.wall,
            rulebook=self.rulebook,
            settings=SimpleNamespace(database=os.path.join(self.mktemp(), "console.sqlite"), routers=None),
            fleet=None,
            problems={},
        )
        self.live = console.live = LiveSettings(console)
        self.authority = make_authority(os.path.dirname(console.settings.database), NOW)
        self.done(RoutersPart(console, lambda work: succeed(work())).start())
        self.fleet = console.fleet
        self.resource._fleet = self.fleet

    def rules_of(self, router: Any) -> str:
        keys = {key_id(key): key for key in map(public_key, self.authority.signing_keys)}
        return open_bundle(router.bundle(), keys, router.guid).rules

    def saved(self, text: str = RULE, **named: Any) -> None:
        self.done(self.rulebook.save(text, MARA, **({"name": None, "generation": None, "as_written": True} | named)))
        self.clock.advance(0)

    def test_a_saved_rule_is_handed_out(self) -> None:
        """Routers that match a rule have it once it is saved, as it was written, until it is deleted."""
        fra, ber = self.router("fra-1", os="linux"), self.router("ber-1", os="freebsd")
        self.saved()
        self.assertIn("# of the site", self.rules_of(fra))
        self.assertNotIn("hooks", self.rules_of(ber))
        self.done(self.rulebook.delete("hooks", MARA, 1))
        self.clock.advance(0)
        self.assertNotIn("hooks", self.rules_of(fra))

    def test_masks_are_handed_out(self) -> None:
        """Every router has the names that taps mask once they are saved."""
        fra = self.router("fra-1", os="linux")
        keys = {key_id(key): key for key in map(public_key, self.authority.signing_keys)}
        self.assertEqual((), open_bundle(fra.bundle(), keys, fra.guid).masks)
        self.done(self.live.save_masks(MARA, 0, MaskSetting((" iban", "IBAN", "dob"))))
        self.clock.advance(0)
        self.assertEqual(("iban", "dob"), open_bundle(fra.bundle(), keys, fra.guid).masks)

    def test_another_generation_is_handed_out(self) -> None:
        """A rule that was changed is handed out as it is now."""
        fra = self.router("fra-1", os="linux")
        self.saved()
        self.rules_of(fra)
        self.saved(RULE.replace("8080", "8081"), name="hooks", generation=1)
        self.assertIn("port: 8081", self.rules_of(fra))

    def test_a_selector_is_parsed_once(self) -> None:
        """The selector of a rule that is as it was is not parsed again."""
        self.saved()
        handed = HandedRules(self.rulebook)
        first = handed()
        self.saved(RULE.replace("hooks", "more").replace("8080", "8081"))
        self.assertEqual([each.name for each in handed()], ["hooks", "more"])
        self.assertIs(handed()[0], first[0])

    def test_rules_clash_on_routers_that_are_known(self) -> None:
        """Two rules for one port can be beside each other while no router has both."""
        self.router("fra-1", os="linux", labels={"site": "fra"})
        self.saved()
        other = RULE.replace("hooks", "more").replace("os = linux", "label.site = ber")
        self.saved(other)
        clashing = RULE.replace("hooks", "third").replace("os = linux", "label.site = fra")
        refused = self.failureResultOf(
            Deferred.fromCoroutine(self.rulebook.save(clashing, MARA, name=None, generation=None, as_written=True)),
            ApiProblem,
        )
        self.assertEqual(refused.value.kind.code, "conflict")
        self.assertIn("fra-1", repr(refused.value.findings))
