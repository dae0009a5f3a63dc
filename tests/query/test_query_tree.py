"""
Tests for L{webhookrx.query.query_tree}. That the normalised text says the same as the query is in C{test_properties}.
"""

from __future__ import annotations

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.query import parse, plain_tree


class PlainTreeTests(SynchronousTestCase):
    """Trees for others than Python."""

    TABLE = (
        ("", {}),
        ("a = 1", {"field": "a", "operator": "=", "value": "1", "column": 1}),
        ("@any =* 'x y'", {"field": "@ANY", "operator": "=*", "value": "x y", "column": 1}),
        ("a not exists", {"not": {"field": "a", "operator": "EXISTS", "column": 1}}),
        (
            "a = 1 AND b EXISTS AND c = 3 OR NOT d != 4",
            {
                "or": [
                    {
                        "and": [
                            {"field": "a", "operator": "=", "value": "1", "column": 1},
                            {"field": "b", "operator": "EXISTS", "column": 11},
                            {"field": "c", "operator": "=", "value": "3", "column": 24},
                        ]
                    },
                    {"not": {"field": "d", "operator": "!=", "value": "4", "column": 37}},
                ]
            },
        ),
    )

    def test_table(self) -> None:
        """A tree is objects, lists and texts."""
        for text, expected in self.TABLE:
            with self.subTest(query=text):
                plain = plain_tree(parse(text).tree)

                self.assertEqual(expected, plain)
                self.assertEqual(expected, msgspec.json.decode(msgspec.json.encode(plain)))
