"""
Tests for L{webhookrx.router.rules.rule}.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import ConfigError
from webhookrx.router.rules.rule import check_label, check_name, check_rule_name, connector_name

NAMES = ["a", "A-1", "edge_webhooks.v2", "0", "a" * 253]
NO_NAMES = ["", "-a", "a-", ".", "a b", "é", "a/b", "a\n", "a" * 254]

LABELS = [("a", "b"), ("a", ""), ("app.kubernetes.io/name", "x_Y.9"), ("A_b.c-d", "1"), ("a" * 63, "b" * 63)]
NO_LABELS = [
    ("", "b"),
    ("a b", "b"),
    ("/a", "b"),
    ("a/", "b"),
    ("Up/a", "b"),
    ("a/b/c", "b"),
    ("a" * 254 + "/a", "b"),
    ("a" * 64, "b"),
    ("a", "b c"),
    ("a", "-"),
    ("a", "b" * 64),
    ("a", "b\n"),
]


class NamingTests(SynchronousTestCase):
    """
    Tests for names and labels.
    """

    def refusal(self, check: Callable[..., None], *values: object) -> str:
        """Return why something is refused; nothing when it is not."""
        try:
            check(*values)
        except ConfigError as error:
            return error.problem
        return ""

    def test_connector_name(self) -> None:
        """A connector is called after router, rule and suffix; without a suffix the rule is there twice."""
        self.assertEqual("my-router-edge-in", connector_name("my-router", "edge", "in"))
        self.assertEqual("my-router-edge-edge", connector_name("my-router", "edge"))
        self.assertEqual("my-router-Edge hooks-Edge hooks", connector_name("my-router", "Edge hooks"))

    def test_names(self) -> None:
        """A name has letters, digits and . _ -, with a letter or digit at both ends."""
        for name in NAMES:
            self.assertEqual("", self.refusal(check_name, name))
        for name in NO_NAMES:
            self.assertIn(" is not a name; it takes 1 to 253 ASCII letters,", self.refusal(check_name, name), name)

    def test_rule_names(self) -> None:
        """The name of a rule has any characters but those that end lines or mislead people."""
        for name in ["Edge hooks", "a", "a" * 63, "-", "é" * 63, "日本 🚀", 'a "b" \\ {c}', " a "]:
            self.assertEqual("", self.refusal(check_rule_name, name), name)
        for name in ["", "a" * 64, "a\n", "a\tb", "\x00", "\x7f", "\x85", "\u2028", "\u202e", "\u2066", "\ud800"]:
            expected = " is not a name; it takes 1 to 63 characters without control characters."
            self.assertIn(expected, self.refusal(check_rule_name, name), ascii(name))

    def test_labels(self) -> None:
        """A label's key may have a DNS name before it; its value may be empty."""
        for key, value in LABELS:
            self.assertEqual("", self.refusal(check_label, key, value))
        for key, value in NO_LABELS:
            self.assertTrue(self.refusal(check_label, key, value), (key, value))
