"""
Tests for L{webhookrx.query.explanation}.
"""

from __future__ import annotations

from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.query import explain, parse

ROUTER = {
    "name": "edge-1",
    "label": {"site": "fra", "wec": "disabled", "note": ""},
    "ip": ["10.0.0.1", "10.0.0.2"],
    "tags": [],
    "many": list(range(9)),
    "long": "x" * 200,
    "evil": "a\x1b[2J\u202eb\nc",
}


class ExplanationTests(SynchronousTestCase):
    """Which terms decided."""

    TABLE = (
        ("", "matches"),
        ("label.wec = enabled", "doesn't match: label.wec = enabled (is disabled)"),
        ("label.wec=enabled", "doesn't match: label.wec=enabled (is disabled)"),
        ("label.nope = x", "doesn't match: label.nope = x (missing)"),
        ("label.nope != x", "matches: label.nope != x (missing)"),
        ("label.site != fra", "doesn't match: label.site != fra (is fra)"),
        ("label.note = x", "doesn't match: label.note = x (is empty)"),
        ("ip = 10.0.0.3", "doesn't match: ip = 10.0.0.3 (is 10.0.0.1, 10.0.0.2)"),
        ("tags = x", "doesn't match: tags = x (is an empty list)"),
        ("many = x", "doesn't match: many = x (is 0, 1, 2, 3, 4, …)"),
        ("long = x", f"doesn't match: long = x (is {'x' * 79}…)"),
        ("evil = x", r"doesn't match: evil = x (is a\x1b[2J\u202eb\nc)"),
        ("@ANY = nothing", "doesn't match: @ANY = nothing (no field is)"),
        ("@ANY = FRA", "matches: @ANY = FRA (a field is fra)"),
        ("@ANY != fra", "doesn't match: @ANY != fra (a field is fra)"),
        ("nope EXISTS", "doesn't match: nope EXISTS (missing)"),
        ("name not exists", "doesn't match: NOT name exists (is edge-1)"),
        # The first part of an AND that fails, all parts of an OR.
        ("name = edge-1, label.site = ams, label.wec = x", "doesn't match: label.site = ams (is fra)"),
        ("name = a OR label.site = b", "doesn't match: name = a (is edge-1); label.site = b (is fra)"),
        (
            "name = edge-1 AND (name = a OR name = b) AND name = c",
            "doesn't match: name = a (is edge-1); name = b (is edge-1)",
        ),
        # A match: all parts of an AND, the first part of an OR that holds.
        ("name = edge-1 AND label.site = fra", "matches: name = edge-1 (is edge-1); label.site = fra (is fra)"),
        ("name = a OR label.site = fra OR name = edge-1", "matches: label.site = fra (is fra)"),
        # Under NOT, the term that holds though it should not.
        ("NOT label.site = fra", "doesn't match: NOT label.site = fra (is fra)"),
        ("NOT (name = a OR label.site = fra)", "doesn't match: NOT label.site = fra (is fra)"),
        ("NOT (name = edge-1 AND label.site = ams)", "matches: NOT label.site = ams (is fra)"),
        ("NOT NOT label.site = ams", "doesn't match: label.site = ams (is fra)"),
    )

    def test_table(self) -> None:
        """Each is shown as it was written, with what its field holds."""
        for text, expected in self.TABLE:
            with self.subTest(query=text):
                self.assertEqual(expected, str(explain(parse(text), ROUTER)))

    def test_values(self) -> None:
        """All of it is there as values, which can be written as JSON."""
        explanation = explain(parse("name = edge-1 AND NOT 'label.site' = fra"), ROUTER)
        expected: dict[str, Any] = {
            "matched": False,
            "deciding": [{"text": "NOT 'label.site' = fra", "column": 23, "field": "label.site", "found": ["fra"]}],
        }

        self.assertEqual(expected, msgspec.json.decode(msgspec.json.encode(explanation)))
