"""Tests for L{benchmarks.servers}."""

from __future__ import annotations

import os
from functools import cached_property

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.compared import ROUTER, ROUTER_CLASSIFY, ROUTER_PARSE, ROUTER_STEPS
from benchmarks.tools import Tools, Unavailable
from webhookrx.router.rules.rules_file import read_rules


class OldTools(Tools):
    """Those of a webhookrx that knows less."""

    @cached_property
    def receiver_help(self) -> str:
        """What it says of itself."""
        return "--config"


class NewTools(Tools):
    """Those of one that knows rules."""

    @cached_property
    def receiver_help(self) -> str:
        """What it says of itself."""
        return "--config --rules"


class RouterReceiverTests(SynchronousTestCase):
    """The router form."""

    def setUp(self) -> None:
        """Make a directory."""
        self.directory = self.mktemp()
        os.mkdir(self.directory)

    def test_rules(self) -> None:
        """The rules file is valid, has the port of the run, and does what the name of the server says."""
        for server, classifies, parses, steps in (
            (ROUTER, False, False, 0),
            (ROUTER_CLASSIFY, True, False, 0),
            (ROUTER_PARSE, True, True, 0),
            (ROUTER_STEPS, True, True, 3),
        ):
            command = server.command(NewTools(), self.directory, 8181)
            path = command[command.index("--rules") + 1]
            with open(path, "rb") as file:
                reading = read_rules(file.read(), path)
            self.assertEqual([], list(reading.diagnostics))
            (rule,) = reading.rules
            self.assertEqual((8181, "HTTP", ("/events",)), (rule.port, rule.protocol, rule.paths))
            done = rule.preprocessing
            self.assertEqual((classifies, parses, steps), (done.classify, done.parse, len(done.steps)))

    def test_old(self) -> None:
        """One that has no router form is left out."""
        self.assertRaises(Unavailable, ROUTER.command, OldTools(), self.directory, 8181)
