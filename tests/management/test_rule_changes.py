"""Changes of rules."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.management.field_changes import MISSING, FieldChange
from webhookrx.management.rule_changes import (
    FieldConflict,
    ManagedRule,
    RuleUpdate,
    field_changes,
    plan_push,
    three_way,
)

BASE: dict[str, Any] = {"name": "a", "port": 1, "labels": {"team": "x", "site": "fra"}}

documents = st.dictionaries(
    st.sampled_from(["name", "port", "labels", "paths"]),
    st.one_of(st.integers(0, 2), st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 2), min_size=1)),
)


class FieldChangesTests(SynchronousTestCase):
    """L{field_changes}."""

    def test_fields(self) -> None:
        """Each field that differs is told with both values, and a new or missing one with one."""
        after = {"name": "a", "port": 2, "labels": {"team": "x"}, "paths": ["/b"]}
        self.assertEqual(
            ("~ port = 2 (was 1)", '- labels.site (was "fra")', '+ paths = ["/b"]'),
            tuple(map(str, field_changes(BASE, after))),
        )
        self.assertEqual(b'{"field":"paths","after":1}', msgspec.json.encode(FieldChange("paths", after=1)))

    def test_whole(self) -> None:
        """A new rule has all its fields, and a deleted one had them."""
        self.assertEqual((FieldChange("name", MISSING, "a"),), field_changes(None, {"name": "a"}))
        self.assertEqual((FieldChange("name", "a", MISSING),), field_changes({"name": "a"}, None))

    def test_kinds(self) -> None:
        """True is not 1, and 1 is not 1.0."""
        self.assertEqual(1, len(field_changes({"v": True}, {"v": 1})))
        self.assertEqual(1, len(field_changes({"v": 1}, {"v": msgspec.Raw(b"1.0")})))


class ThreeWayTests(SynchronousTestCase):
    """L{three_way}."""

    def test_merged(self) -> None:
        """Changes of different fields go together, also inside of one mapping."""
        found = three_way(BASE, BASE | {"labels": {"team": "y", "site": "fra"}}, BASE | {"labels": {"team": "x"}})
        self.assertEqual(BASE | {"labels": {"team": "y"}}, found.merged)
        self.assertEqual((), found.conflicts)

    def test_conflict(self) -> None:
        """A field that both have changed in different ways is a conflict, with all three values."""
        found = three_way(BASE, BASE | {"port": 2}, BASE | {"port": 3})
        self.assertEqual(((FieldConflict("port", 1, 2, 3),), None), (found.conflicts, found.merged))

    def test_same(self) -> None:
        """The same change twice is no conflict."""
        self.assertEqual(BASE | {"port": 2}, three_way(BASE, BASE | {"port": 2}, BASE | {"port": 2}).merged)

    def test_deleted(self) -> None:
        """There is nothing to merge with a rule that is deleted."""
        self.assertEqual(None, three_way(BASE, None, BASE | {"port": 2}).merged)

    def test_inside(self) -> None:
        """A value and a mapping in its place are a conflict."""
        found = three_way({"v": 0}, {"v": {"x": 1}}, {"v": 0, "w": 1})
        self.assertEqual({"v": {"x": 1}, "w": 1}, found.merged)
        found = three_way({}, {"v": {"x": 1}}, {"v": 2})
        self.assertEqual(None, found.merged)
        self.assertEqual(["v.x"], [each.field for each in found.conflicts])

    @given(documents, documents)
    def test_one_sided(self, base: dict[str, Any], changed: dict[str, Any]) -> None:
        """When only one has changed something, the outcome is that change."""
        self.assertEqual(changed, three_way(base, changed, base).merged)
        self.assertEqual(changed, three_way(base, base, changed).merged)


class PlanPushTests(SynchronousTestCase):
    """L{plan_push}."""

    current = {
        "mine": ManagedRule({"name": "mine"}, "push:git"),
        "old": ManagedRule({"name": "old"}, "push:git"),
        "theirs": ManagedRule({"name": "theirs"}, "ui"),
        "other": ManagedRule({"name": "other"}, "push:other"),
    }

    def test_changes(self) -> None:
        """Rules are created, changed, or left as they are; those that a file lacks stay."""
        wanted: dict[str, Any] = {"new": {"name": "new"}, "mine": {"name": "mine", "port": 1}}
        plan = plan_push(self.current, wanted, "push:git")
        self.assertEqual(("new",), plan.creates)
        self.assertEqual((RuleUpdate("mine", (FieldChange("port", MISSING, 1),)),), plan.updates)
        self.assertEqual(((), ("old",), {}, 0), (plan.deletes, plan.left, plan.refused, plan.unchanged))
        self.assertFalse(plan.changes_nothing)

    def test_prune(self) -> None:
        """Only rules of the same manager are deleted, whatever else is said."""
        plan = plan_push(self.current, {}, "push:git", prune=True, take_over=True)
        self.assertEqual(("mine", "old"), plan.deletes)
        self.assertEqual(((), (), {}), (plan.updates, plan.left, plan.refused))

    def test_foreign(self) -> None:
        """A rule of another manager is changed only to take it over; the same rule is not touched."""
        wanted: dict[str, Any] = {"theirs": {"name": "theirs", "port": 1}, "other": {"name": "other"}}
        plan = plan_push(self.current, wanted, "push:git")
        self.assertEqual(({"theirs": "ui"}, (), 1), (plan.refused, plan.updates, plan.unchanged))
        self.assertFalse(plan.changes_nothing)
        plan = plan_push(self.current, wanted, "push:git", take_over=True)
        self.assertEqual({}, plan.refused)
        self.assertEqual([("theirs", "ui"), ("other", "push:other")], [(u.name, u.taken_from) for u in plan.updates])

    def test_again(self) -> None:
        """The same push again changes nothing."""
        wanted = {name: self.current[name].document for name in ("mine", "old")}
        self.assertTrue(plan_push(self.current, wanted, "push:git", prune=True).changes_nothing)
