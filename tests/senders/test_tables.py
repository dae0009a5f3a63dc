"""
Tests for L{webhookrx.senders.tables}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import entry_of
from webhookrx.diagnostics import ENTRY_CODES
from webhookrx.senders import tables
from webhookrx.senders.definition import SEVERITIES, SenderDefinition
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.tables import entry_code_table, entry_table, sender_table, severity_table


class TableTests(SynchronousTestCase):
    """What the documents show."""

    def test_senders(self) -> None:
        """There is a row for each entry of the package, by id, with as many cells as the head has."""
        head, _, *rows = sender_table().splitlines()
        self.assertEqual([row.split("`")[1] for row in rows], [entry.id for entry in builtin_definitions()])
        for row in rows:
            self.assertEqual(row.replace("\\|", "").count("|"), head.count("|"), row)

    def test_told_by(self) -> None:
        """A row says what a definition goes by."""
        entries = (
            entry_of(
                description="An anvil.",
                when={
                    "headers": {"X-A": "*", "X-B": "^x|y"},
                    "any_header": ["X-D", "X-C"],
                    "content_type": "a/b",
                    "path": "^/c",
                    "body_keys": ["d"],
                    "body": "f\nEXISTS",
                },
            ),
            entry_of(
                id="b",
                source="https://example.com/",
                description="More.",
                when=[{"body_keys": ["a"]}, {"query": {"t": "^x", "s": "*"}}],
                recorded_from="anvil 2.0",
            ),
            entry_of(id="c", vendor="", product="", when=[], last_resort=True),
        )
        self.patch(tables, "builtin_definitions", lambda: entries)
        told_by = r"`x-a`; `x-b` with `^x\|y`; `x-c` or `x-d`; `a/b`; path `^/c`; `d`; `f EXISTS`"
        _, _, first, second, third = sender_table().splitlines()
        self.assertEqual(first, f"| `acme` | An anvil. | `acme` | `anvil` | {told_by} |  |")
        told_by = "`a`; *or* query parameter `s`; query parameter `t` with `^x`"
        self.assertEqual(second, f"| `b` | [More.](https://example.com/) | `acme` | `anvil` | {told_by} | anvil 2.0 |")
        self.assertEqual(third, "| `c` |  |  |  | JSON that no other definition matches |  |")

    def test_severities(self) -> None:
        """There is a row for each severity, with the other words for it."""
        _, _, *rows = severity_table().splitlines()
        self.assertEqual([row.split("`")[1] for row in rows], list(SEVERITIES))
        self.assertIn("| `emergency` | 24 | `FATAL4` | `emerg`, `panic` |", rows)

    def test_codes(self) -> None:
        """There is a row for each code."""
        _, _, *rows = entry_code_table().splitlines()
        self.assertEqual([row.split("`")[1] for row in rows], [code.word for code in ENTRY_CODES])

    def test_format(self) -> None:
        """There is a row for each member of a data file, with what it is."""
        table = entry_table()
        for name in SenderDefinition.__struct_fields__:
            self.assertIn(f"\n| `{name}` |", table)
        for row in (
            "| `id` | text | yes |  | Its name, unique among all definitions: `vendor-product`. |",
            "| `priority` | number |  | `0` | Of several definitions that match, the highest wins. |",
            "| `host` | list of texts |  |  | Text templates for the host, unless a path group has set it. |",
            "| `default_severity` | text |  |  | The severity if none of the above finds one. |",
        ):
            self.assertIn(f"\n{row}\n", table)
        self.assertIn("\n| `when` | mapping or list, see below | yes |", table)
        self.assertIn("\n| `service` | text or list of texts |", table)
        self.assertIn("| `map` | texts by name |", table)
        self.assertIn("| `time` | list, see below |", table)
