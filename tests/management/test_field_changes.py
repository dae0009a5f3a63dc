"""
Tests for L{webhookrx.management.field_changes}.
"""

from __future__ import annotations

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.management.field_changes import MISSING, FieldChange
from webhookrx.management.rule_changes import field_changes
from webhookrx.trials.differences import differences


class FieldChangeTests(SynchronousTestCase):
    """One field that is not as it was."""

    def test_text(self) -> None:
        """It tells what is new, gone or other; of a long value the beginning, of an object in its own order."""
        for change, text in (
            (FieldChange("a", after={"c": 1, "b": 2}), '+ a = {"c":1,"b":2}'),
            (FieldChange("a", before=None), "- a (was null)"),
            (FieldChange("a", 1, True), "~ a = true (was 1)"),
            (FieldChange("a", after="x" * 1000), '+ a = "' + "x" * 198 + "…"),
        ):
            with self.subTest(text=text):
                self.assertEqual(text, str(change))

    def test_json(self) -> None:
        """What is not there is left out of JSON, and null is there."""
        self.assertEqual(b'{"field":"a","before":null}', msgspec.json.encode(FieldChange("a", None, MISSING)))

    def test_same(self) -> None:
        """Rules and messages have the same changes."""
        before, after = {"a": {"b": 1}}, {"a": {"c": 2}}
        self.assertEqual([FieldChange("a.b", before=1), FieldChange("a.c", after=2)], list(differences(before, after)))
        self.assertEqual(tuple(differences(before, after)), field_changes(before, after))
