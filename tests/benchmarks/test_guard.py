"""Tests for L{benchmarks.guard}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.guard import CALLS, COUNTED, LEAST_RATIO, MOST_CALLS, MOST_INSTRUCTIONS, OURS, PEER, findings, table


class GuardTests(SynchronousTestCase):
    """When it fails."""

    def holds(self, ours: float, peer: float | None, calls: float | None) -> bool:
        """Return whether it passes such figures."""
        rounds = {
            OURS.name: [{"cpu": ours, "compiled": 1.0}],
            PEER.name: [None if peer is None else {"cpu": peer}],
            CALLS.name: [None if calls is None else {"calls": calls}],
        }
        return all(finding.holds for finding in findings(rounds))

    def test_bounds(self) -> None:
        """It fails beyond either bound, and not on it."""
        for ratio, calls, holds in (
            (LEAST_RATIO, MOST_CALLS, True),
            (LEAST_RATIO * 0.99, MOST_CALLS, False),
            (LEAST_RATIO, MOST_CALLS * 1.01, False),
        ):
            self.assertEqual(holds, self.holds(10.0, 10.0 * ratio, calls), (ratio, calls))

    def test_instructions(self) -> None:
        """It fails beyond the bound for either number of connections, and not on it."""
        for connections, most in MOST_INSTRUCTIONS.items():
            for value, holds in ((most, True), (most * 1.01, False)):
                found = findings({COUNTED[connections].name: [{"instructions": value}]})
                self.assertEqual(holds, all(finding.holds for finding in found), (connections, value))

    def test_not_compiled(self) -> None:
        """It fails when the module was not built or is not used, however fast that is."""
        for compiled, holds in ((1.0, True), (0.0, False)):
            found = findings({OURS.name: [{"cpu": 0.1, "compiled": compiled}], PEER.name: [{"cpu": 1.0}]})
            self.assertEqual(holds, all(finding.holds for finding in found), compiled)

    def test_best_of_rounds(self) -> None:
        """The best round of each counts, also when they are different ones."""
        rounds = {
            OURS.name: [{"cpu": 10.0}, {"cpu": 99.0}],
            PEER.name: [{"cpu": 99.0}, {"cpu": 10.0 * LEAST_RATIO}],
        }
        self.assertTrue(all(finding.holds for finding in findings(rounds)))

    def test_not_measured(self) -> None:
        """What can't be measured does not fail, and the table says so."""
        self.assertTrue(self.holds(10.0, None, None))
        text = table(findings({OURS.name: [{"cpu": 10.0}]}))
        self.assertEqual(6, text.count("not measured"))
        self.assertIn("10.00", text)

    def test_table(self) -> None:
        """A value that fails can't be overlooked."""
        found = findings({OURS.name: [{"cpu": 10.0}], PEER.name: [{"cpu": 1.0}], CALLS.name: [{"calls": 1.0}]})
        lines = {line.split("  ")[0]: line for line in table(found).splitlines()}
        self.assertTrue(lines["CPU ratio, uvicorn / webhookrx"].endswith("FAILED"))
        self.assertTrue(lines["system calls a request"].endswith("ok"))
