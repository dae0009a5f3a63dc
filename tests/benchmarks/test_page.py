"""Tests for L{benchmarks.page}."""

from __future__ import annotations

import os

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from benchmarks import page
from benchmarks.cases import all_cases
from benchmarks.compared import DURABLE, NGINX, PLAIN, WRITTEN
from benchmarks.comparisons import Case, Goal, Ratio
from benchmarks.outcome import Outcome
from benchmarks.page import blocks, merged, with_blocks
from benchmarks.runs import Figures, Loaded
from benchmarks.stores.places import PLACES
from benchmarks.stores.runs import Storing

CASES = (
    Case("vs-nginx", "", (Ratio(PLAIN, Loaded(NGINX), goal=Goal(0.54, 0.67)),)),
    Case("durable64", "", (Ratio(Loaded(DURABLE), PLAIN, "rate", Goal(0.64, 0.75)),)),
    Case("body1", "", (Ratio(Loaded(WRITTEN, connections=1), Loaded(NGINX, connections=1), "p50"),)),
)

OUTCOME = Outcome(
    {"machine": "a fast one"},
    {
        "vs-nginx": {"webhookrx @64": [{"cpu": 20.0}], "nginx @64": [{"cpu": 10.0}]},
        "durable64": {"webhookrx durable @64": [{"rate": 70.0}], "webhookrx @64": [{"rate": 100.0}]},
        "body1": {"webhookrx @1": [{"p50": 2.0}], "nginx @1": [{"p50": 1.0}]},
    },
)


class BlockTests(SynchronousTestCase):
    """The tables."""

    def test_peers(self) -> None:
        """A peer stands with the ratio, what that compares unless it is processor time, and what the peer does."""
        lines = blocks(CASES, OUTCOME)["peers"].splitlines()[2:]
        self.assertEqual(
            [f"| nginx | 0.50 | {NGINX.less} |", f"| nginx, 1 connection (p50) | 0.50 | {NGINX.less} |"], lines
        )

    def test_ours(self) -> None:
        """What is compared with webhookrx itself stands in a table of its own."""
        self.assertEqual(["| 64 | 0.70 |"], blocks(CASES, OUTCOME)["durability"].splitlines()[2:])

    def test_stores(self) -> None:
        """A store stands with what its observer and the client alone store a second, and the ratio."""
        place = PLACES[0]
        ours, alone = Storing(place), Storing(place, alone=True)
        rounds: dict[str, list[Figures | None]] = {ours.name: [{"rate": 9000.0}, None], alone.name: [{"rate": 1e4}] * 2}
        found = blocks((Case("stores", "", (Ratio(ours, alone, "rate"),)),), Outcome({}, {"stores": rounds}))
        self.assertEqual([f"| {place.name} | 9,000 | 10,000 | 0.90 |"], found["stores"].splitlines()[2:])

    def test_missed(self) -> None:
        """Missed goals are listed, those that were reached or not measured are not."""
        found = blocks(CASES, OUTCOME)["missed"].splitlines()[2:]
        self.assertEqual(["| `vs-nginx` | webhookrx @64 / nginx @64 | 0.50 | 0.54 |"], found)
        self.assertEqual("", blocks(CASES, Outcome({}))["missed"])

    def test_merged(self) -> None:
        """A case that was measured again is that of the later run; the machine is that of the first."""
        again = Outcome({"machine": "another"}, {"vs-nginx": {"webhookrx @64": [{"cpu": 15.0}]}})
        found = merged((OUTCOME, again))
        self.assertEqual({"machine": "a fast one"}, found.machine)
        self.assertEqual({"webhookrx @64": [{"cpu": 15.0}]}, found.rounds["vs-nginx"])
        self.assertEqual(OUTCOME.rounds["body1"], found.rounds["body1"])


class PageTests(SynchronousTestCase):
    """Pages."""

    def test_with_blocks(self) -> None:
        """A table takes the place of the old one, and what stands around it stays."""
        text = "before\n<!-- begin measured peers -->\nold\n<!-- end measured peers -->\nafter\n"
        self.assertEqual(text.replace("old", "new"), with_blocks(text, {"peers": "new"}))

    def test_unknown(self) -> None:
        """A table that nobody writes is an error."""
        text = "<!-- begin measured others -->\nold\n<!-- end measured others -->"
        self.assertRaises(ValueError, with_blocks, text, {"peers": "new"})

    def test_read_again(self) -> None:
        """What was written as JSON is read as it was."""
        self.assertEqual(OUTCOME, Outcome.from_json(OUTCOME.as_json(CASES)))

    def test_all_there(self) -> None:
        """The pages have a place for every table, and for none that is not written."""
        text = ""
        for path in page._PAGES:
            if not os.path.exists(path):
                raise SkipTest(f"{path} is not there")
            with open(path, encoding="utf-8") as file:
                text += file.read()
        found = blocks(all_cases(), OUTCOME)
        with_blocks(text, found)
        self.assertEqual([], [name for name in found if f"<!-- begin measured {name} -->" not in text])

    def test_usage(self) -> None:
        """Without a run there is nothing to write."""
        said: list[str] = []
        self.assertEqual(2, page.main((), said.append))
        self.assertEqual(1, len(said))
