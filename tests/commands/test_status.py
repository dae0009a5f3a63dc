"""
Tests for L{webhookrx.commands.status}.
"""

from __future__ import annotations

import json
from typing import Any

from tests.commands.running import CommandCase, run_command
from tests.operations.snapshots import make_snapshot
from webhookrx.commands import status
from webhookrx.commands.control_client import Unreachable
from webhookrx.management.alarm_values import AlarmRow
from webhookrx.operations.counters import Counters
from webhookrx.operations.health import ALONE
from webhookrx.operations.snapshot import ConsoleStanding, Phase
from webhookrx.operations.status import status_of
from webhookrx.router.gate import ClosedConnector, GateReason

NOW = 1_795_000_000.0


class StatusTests(CommandCase):
    """What it prints of an answer."""

    def ran(self, *options: str, **different: Any) -> Any:
        """Print a status, or what is asked for instead."""
        counters = Counters()
        counters.sources["hooks"].messages = 1234
        counters.sources["hooks"].last = NOW - 300
        counters.sources["hooks"].heard("github", NOW - 300)
        counters.add("refused", "bad_token", "hooks", amount=3)
        snapshot = make_snapshot(
            phase=Phase.RUNNING, sources=["hooks"], connectors=(), certificates={"a.pem": NOW + 864000}
        )
        row = AlarmRow("quiet", "silent", "a\x1b[2J", "firing", NOW - 7200, "It has sent no message yet.")
        alarms = different.pop("alarms", [row])
        answer = status_of(counters, snapshot, (ALONE,), {"hooks": 2.5}, NOW, NOW - 1e6, "1", alarms)
        self.patch(status, "ask", lambda path, question: iter([{**answer, **different}]))
        return run_command("status", "--control", "x", *options)

    def test_table(self) -> None:
        """Sources with rate, last message and refusals, certificates and alarms are rows of tables."""
        out = self.ran().out
        for words in (
            ("hooks", "1,234", "2.5", "5 min ago", "3: bad_token 3"),
            ("a.pem", "in 10 d"),
            ("quiet", "firing", "2 h ago"),
        ):
            self.assertTrue(any(all(word in line for word in words) for line in out.splitlines()), (words, out))
        self.assertNotIn("\x1b", out)

    def test_gate(self) -> None:
        """Why the gate is closed, and which connectors could not begin, are sentences; as JSON, with file and port."""
        words = {
            "blocked": (GateReason("rules.yaml:3: k is missing", "/k"),),
            "closed": (ClosedConnector("c", "r", 8443, "k is missing"),),
        }
        snapshot = make_snapshot(phase=Phase.RUNNING, **words)
        gate = status_of(Counters(), snapshot, (ALONE,), {}, NOW, NOW, "1")["gate"]
        out = self.ran(gate=gate).out
        self.assertIn('closed:\n  rules.yaml:3: k is missing\n  Connector "c" is closed: k is missing\n', out)
        told = json.loads(self.ran("--json", gate=gate).out)["gate"]
        self.assertEqual(("/k", ("c", "r", 8443)), (told["reasons"][0]["path"], tuple(told["without"][0].values())[:3]))

    def test_console(self) -> None:
        """How it stands with its console is one line: waiting for approval, disabled, or away."""
        standing = ConsoleStanding("NONE", 0, "", 0.0, "pending", "This router waits for approval at the console", True)
        for different, words in (
            ({}, "Console: NONE, revision 0 in use; This router waits for approval at the console\n"),
            ({"refusal": "", "away": 7200.0, "problem": "Refused."}, "in use; away for 2h: Refused.\n"),
            ({"refusal": "", "problem": "", "status": "FAILED", "error": "Why."}, "FAILED, revision 0 in use (Why.)\n"),
        ):
            self.assertIn(words, self.ran(console=standing._replace(**different)._asdict()).out)

    def test_no_alarms(self) -> None:
        """Without rules nothing is said of alarms; with rules, that none fires."""
        self.assertNotIn("larm", self.ran(alarms=None).out)
        self.assertIn("No alarm fires.", self.ran(alarms=[]).out)

    def test_json(self) -> None:
        """As JSON, all of it is there, with the last message of each sender."""
        out = self.ran("--json").out
        self.assertIn('"github"', out)
        self.assertIn('"kind": "silent"', out)

    def test_exit_status(self) -> None:
        """The exit status tells whether it is ready, and whether there is a receiver."""
        self.assertEqual([0, 0, 1], [self.ran(health=each).status for each in ("ready", "degraded", "not_ready")])
        self.assertEqual(1, self.ran(error="No.").status)

        def away(path: str, question: object) -> Any:
            raise Unreachable("No receiver.")

        self.patch(status, "ask", away)
        self.assertEqual((4, "webhookrx: No receiver.\n"), (run_command("status").status, run_command("status").err))
