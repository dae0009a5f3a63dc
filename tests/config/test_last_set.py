"""
Tests for L{webhookrx.config.last_set}.
"""

from __future__ import annotations

import json
import os

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.last_set import LAST_SET, Kept, encoded, last_set
from webhookrx.config.state_dir import write_state
from webhookrx.errors import ConfigError
from webhookrx.router.rules.rule import SetField

RULES = """\
connector_rules:
- {name: one, protocol: HTTP, port: 8181, selector: name = other}
- {name: two, suffix: x, protocol: HTTPS, port: 8182, key_file: /k, cert_file: /c, include_request_headers: yes,
   preprocessing: {classify: yes, steps: [{set: {field: meta.a, value: 1.10}}]}}
"""
SENDER = "{id: a, vendor: v, product: p, when: {headers: {x-a: '*'}}}"
KEPT = Kept("edge", {"site": "fra"}, ("two",), "rules.yaml", RULES, (("/s/a.yaml", SENDER),))


class LastSetTests(SynchronousTestCase):
    """What was in use."""

    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())

    def keep(self, content: bytes) -> None:
        """Write the file."""
        write_state(self.directory, LAST_SET, content)

    def test_none(self) -> None:
        """Where nothing was kept there is none."""
        self.assertIsNone(last_set(self.directory))

    def test_whole(self) -> None:
        """It has the connectors that there were, whichever their selectors match now, and all of each; and senders."""
        self.keep(encoded(KEPT))
        found = last_set(self.directory)
        assert found is not None
        self.assertEqual(("edge", {"site": "fra"}), (found.router, found.labels))
        (two,) = found.connectors
        self.assertEqual(
            ("edge-two-x", "two", 8182, "/k", "/c"), (two.name, two.rule, two.port, two.key_file, two.cert_file)
        )
        self.assertTrue(two.include_request_headers and two.preprocessing.classify)
        (step,) = two.preprocessing.steps
        assert isinstance(step.set, SetField)
        self.assertEqual(b"1.10", bytes(step.set.value))
        self.assertEqual(["a"], [entry.id for entry in found.senders])

    def test_bad(self) -> None:
        """What is damaged, of a later version, or has rules that are not good here is told, and not used."""
        whole = json.loads(encoded(KEPT))
        for content, problem in (
            (b"", "is damaged"),
            (b"\xff", "is damaged"),
            (encoded(KEPT)[:-30], "is damaged"),
            (b"{}", "is damaged"),
            (json.dumps(whole | {"version": 2}).encode(), "of version 2"),
            (json.dumps(whole | {"rules": ["two", "three"]}).encode(), "not good here"),
            (json.dumps(whole | {"text": RULES.replace("8182", "0")}).encode(), "not good here"),
        ):
            self.keep(content)
            self.assertIn(problem, str(self.assertRaises(ConfigError, last_set, self.directory)))
