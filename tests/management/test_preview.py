"""
Tests for L{webhookrx.management.preview}.
"""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.management.preview import (
    MOST_LISTED,
    SHOWN,
    ConnectorChange,
    MatchingRouter,
    RouterClash,
    RouterGate,
    RouterState,
    RulePreview,
    RuleSurroundings,
    paths_of,
    preview_rule,
)
from webhookrx.router.rules.router import Router, connectors_of
from webhookrx.router.rules.rule import Rule
from webhookrx.router.rules.rules_file import RulesReading, read_rules

HTTP = Rule(name="hooks", protocol="HTTP", port=8080)


def routers(*sites: str) -> list[RouterState]:
    """Routers C{r0}, C{r1} and so on, each with a site."""
    return [RouterState(Router(f"r{number}", {"site": site})) for number, site in enumerate(sites)]


def read(*rules: Rule) -> RulesReading:
    """A rules file with these rules."""
    return read_rules(msgspec.json.encode({"connector_rules": rules}), "rule")


def preview(rule: Rule, around: RuleSurroundings, replaces: str = "") -> RulePreview:
    """Preview a rule."""
    return preview_rule(around, read(rule), replaces)


def changed(rule: Rule, **fields: object) -> Rule:
    """A rule with other fields."""
    return msgspec.structs.replace(rule, **fields)


class PreviewTests(SynchronousTestCase):
    """What saving a rule would do."""

    def test_matching(self) -> None:
        """Routers that match are listed with connector and port, others with the terms that decided."""
        found = preview(
            changed(HTTP, selector="label.site = fra", suffix="in"), RuleSurroundings((), routers("fra", "ams"))
        )
        self.assertEqual((2, 1), (found.routers, found.matched))
        self.assertEqual((MatchingRouter("r0", "r0-hooks-in", 8080),), found.matching)
        self.assertEqual(
            [("r1", ["label.site = fra (is ams)"])],
            [(other.router, list(map(str, other.terms))) for other in found.why_not],
        )
        self.assertEqual((), found.findings)

    def test_few_explained(self) -> None:
        """Of routers that do not match, the first ten are explained."""
        found = preview(changed(HTTP, selector="name = none"), RuleSurroundings((), routers(*["fra"] * 12)))
        self.assertEqual([f"r{number}" for number in range(SHOWN)], [other.router for other in found.why_not])
        self.assertEqual(["selector-matches-none"], [each.code for each in found.findings])
        self.assertEqual("connector_rules[0].selector", found.findings[0].field)

    def test_bounded(self) -> None:
        """Lists end at a bound, and the counts beside them have all."""
        around = RuleSurroundings([changed(HTTP, name="old")], routers(*["fra"] * (MOST_LISTED + 1)))
        found = preview(HTTP, around)
        self.assertEqual([MOST_LISTED + 1] * 3, [found.matched, found.clashing, found.added])
        self.assertEqual(
            [MOST_LISTED] * 4, [len(each) for each in (found.matching, found.clashes, found.changes, found.ask)]
        )

    def test_mistakes(self) -> None:
        """A rule with mistakes is previewed all the same, as far as it can be read."""
        around = RuleSurroundings((), routers("fra"))
        found = preview(changed(HTTP, paths=("/(",)), around)
        self.assertEqual((["path-syntax"], 1), ([each.code for each in found.findings], found.matched))
        found = preview(changed(HTTP, selector="site ="), around)
        self.assertEqual((["selector-syntax"], 0), ([each.code for each in found.findings], found.matched))
        found = preview_rule(around, read_rules(b"connector_rules: [{name: a, port: 80\n", "rule"))
        self.assertEqual((["yaml-syntax"], 0), ([each.code for each in found.findings], found.matched))

    def test_place(self) -> None:
        """What only the fleet shows is found at its line and column of the text, too."""
        text = b"connector_rules:\n  - name: hooks\n    protocol: HTTP\n    port: 8080\n"
        found = preview_rule(RuleSurroundings([HTTP], ()), read_rules(text, "rule"))
        self.assertEqual([("duplicate-name", 2, 11)], [(each.code, each.line, each.column) for each in found.findings])

    def test_own_name(self) -> None:
        """A rule may keep its name, and not take that of another."""
        around = RuleSurroundings([HTTP, changed(HTTP, name="other", port=8081)], routers("fra"))
        self.assertEqual((), preview(changed(HTTP, port=8082), around, "hooks").findings)
        codes = [each.code for each in preview(changed(HTTP, port=8082), around, "other").findings]
        self.assertEqual(["duplicate-name"], codes)
        self.assertRaises(KeyError, preview, HTTP, around, "missing")

    def test_long_name(self) -> None:
        """The longest name of a matching router decides whether the name of a connector is too long."""
        around = RuleSurroundings((), [RouterState(Router("r" * 240)), RouterState(Router("s"))])
        codes = [each.code for each in preview(HTTP, around).findings]
        self.assertEqual([], codes)
        codes = [each.code for each in preview(changed(HTTP, suffix="x" * 10), around).findings]
        self.assertEqual(["connector-name-too-long"], codes)

    def test_clashes_with_rules(self) -> None:
        """A rule clashes where another wants its port or its connector name, and not with the one it replaces."""
        fra = changed(HTTP, name="a-b", suffix="c", port=1, selector="label.site = fra")
        around = RuleSurroundings([HTTP, fra], routers("fra", "ams"))
        found = preview(changed(HTTP, name="a", suffix="b-c"), around)
        self.assertEqual([("r0", "hooks"), ("r1", "hooks"), ("r0", "a-b")], [each[:2] for each in _pairs(found)])
        self.assertIn("both make a connector", found.clashes[-1].sentence)
        self.assertEqual((), preview(changed(HTTP, description="new"), around, "hooks").clashes)

    def test_clashes_with_ports(self) -> None:
        """A rule clashes with the sources of a router's own configuration, and with whatever listens on its port."""
        states = [
            RouterState(Router("a"), sources={8080: "github"}, taken={8080: "the same"}),
            RouterState(Router("b"), taken={8080: "nginx"}),
            RouterState(Router("c"), sources={8081: "github"}),
        ]
        found = preview(HTTP, RuleSurroundings((), states))
        self.assertEqual(
            (
                RouterClash("a", "source", "github", 'Port 8080 on "a" has the source "github" already.'),
                RouterClash("b", "port", "nginx", 'On port 8080 of "b" "nginx" listens already.'),
            ),
            found.clashes,
        )

    def test_changes(self) -> None:
        """Connectors come, go and change; a connector that goes or moves closes its connections."""
        old = changed(HTTP, selector="NOT label.site = new")
        around = RuleSurroundings([old], routers("new", "stays", "goes"))
        rule = changed(HTTP, selector="NOT label.site = goes")
        self.assertEqual(
            (
                ConnectorChange("r0", "r0-hooks-hooks", "added"),
                ConnectorChange("r2", "r2-hooks-hooks", "removed", (), True),
            ),
            preview(rule, around, "hooks").changes,
        )
        found = preview(changed(rule, port=1080, labels={"team": "web"}), around, "hooks")
        self.assertEqual(ConnectorChange("r1", "r1-hooks-hooks", "changed", ("port", "labels"), True), found.changes[1])
        self.assertEqual((1, 1, 1), (found.added, found.removed, found.changed))
        found = preview(changed(old, labels={"team": "web"}), around, "hooks")
        self.assertEqual([("labels",)] * 2, [change.fields for change in found.changes])
        self.assertFalse(any(change.closes for change in found.changes))
        self.assertEqual((), preview(changed(old, description="new"), around, "hooks").changes)

    def test_gates(self) -> None:
        """Matching routers with a closed gate are named, with what is missing there; those away are not asked."""
        states = [
            RouterState(Router("a"), gate=("/missing.pem",)),
            RouterState(Router("b"), online=False),
            RouterState(Router("c"), gate=("/other.pem",)),
        ]
        found = preview(changed(HTTP, selector="NOT name = c"), RuleSurroundings((), states))
        self.assertEqual((RouterGate("a", True, ("/missing.pem",)),), found.gates)
        self.assertEqual(("a",), found.ask)

    def test_paths(self) -> None:
        """Each file that a connector needs is asked for once."""
        rule = changed(
            HTTP, key_file="/k", cert_file="/k", ca_file="/ca", secrets_file=("/s", "/t"), auth_token_file="/s"
        )
        self.assertEqual(("/k", "/ca", "/s", "/t"), paths_of(rule))
        self.assertEqual((), paths_of(HTTP))


_RULES = st.builds(
    Rule,
    name=st.sampled_from(["a", "a-a", "b"]),
    suffix=st.sampled_from(["", "a", "a-a"]),
    protocol=st.just("HTTP"),
    port=st.integers(8080, 8081),
    selector=st.sampled_from(["", "label.site = fra", "NOT label.site = fra", "name = r1"]),
)


class AgreementTests(SynchronousTestCase):
    """Previews say what routers do."""

    @given(st.lists(_RULES, max_size=3, unique_by=lambda rule: rule.name), _RULES)
    def test_as_routers(self, saved: list[Rule], rule: Rule) -> None:
        """The routers that lack a connector when all rules are there are those with a clash, or with older clashes."""
        others = [other for other in saved if other.name != rule.name]
        fleet = routers("fra", "ams")
        around = RuleSurroundings(saved, fleet)
        found = preview(rule, around, rule.name if len(others) < len(saved) else "")
        for state in fleet:
            _, mistakes = connectors_of(state.router, read(*others, rule))
            _, older = connectors_of(state.router, read(*others))
            matches = state.router.name in {each.router for each in found.matching}
            clashes = state.router.name in {each.router for each in found.clashes}
            new = [each for each in mistakes if each.path[1] == len(others)]
            if not older:
                self.assertEqual(clashes, bool(new))
            self.assertTrue(matches or not clashes)


def _pairs(found: RulePreview) -> list[tuple[str, str]]:
    return [(clash.router, clash.other) for clash in found.clashes]
