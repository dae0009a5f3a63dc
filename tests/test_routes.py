"""
Tests for L{webhookrx.routes}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.settings import Listener, Observer, Settings, Source
from webhookrx.routes import by_listener, rules_of

FIRST = Listener("8181", "tcp:8181")
SECOND = Listener("unix:/run/x", "unix:/run/x", proxy_protocol=True)


class RoutesTests(SynchronousTestCase):
    """What sources become."""

    def test_shared_endpoints(self) -> None:
        """Sources that name the same endpoint share it, in the order of the settings."""
        one = Source("one", listeners=(FIRST,))
        two = Source("two", listeners=(SECOND, FIRST))
        self.assertEqual([(FIRST, [one, two]), (SECOND, [two])], by_listener([one, two]))

    def test_rules(self) -> None:
        """A source's options become its rules."""
        source = Source(
            "one",
            "webhook-json",
            prefix="p.",
            auth_tokens=(b"t",),
            include_request_headers=True,
            proxy_header="forwarded",
            on_parse_error="reject",
        )
        rules = rules_of(source, Settings((source,), (Observer("stdout", "stdout"),)))
        self.assertEqual(
            ("one", True, "p.", True, b"forwarded", False, 10 * 2**20),
            (
                rules.name,
                rules.parse_json,
                rules.prefix,
                rules.include_request_headers,
                rules.proxy_header,
                rules.keep_unparsed,
                rules.body_limit,
            ),
        )
        self.assertTrue(rules.tokens.accepts([b"Bearer t"]))
        self.assertFalse(rules.tokens.accepts([]))
