"""
Tests for L{webhookrx.config.worker_count}.
"""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.problems import COMMAND_LINE, Place, Problems
from webhookrx.config.values import Values
from webhookrx.config.worker_count import MOST, usable_cpus, worker_count
from webhookrx.config.written import Text, Written


class WorkerCountTests(SynchronousTestCase):
    """
    From the option to a number, where six CPUs may be used.
    """

    def values(self, *texts: str) -> Values:
        """Return options with this one, or none."""
        layer = {"workers": Written("--workers", tuple(Text(text, COMMAND_LINE) for text in texts))} if texts else {}
        return Values((layer,), Problems(), "", Place("", ""))

    def test_good(self) -> None:
        """Numbers are taken as they are, and auto is a number too; C{--check} shows what came of it."""
        for texts, count, shown in (
            ((), 1, "1"),
            (("1",), 1, "1"),
            (("12",), 12, "12"),
            ((str(MOST),), MOST, str(MOST)),
            (("auto",), 6, "6, for as many CPUs"),
        ):
            values = self.values(*texts)
            self.assertEqual(count, worker_count(values, 6))
            self.assertEqual(([shown], []), ([row.value for row in values.effective], values.problems.errors))
        self.assertEqual(MOST, worker_count(self.values("auto"), 10_000))

    def test_bad(self) -> None:
        """All else is an error that says what is allowed."""
        for text in ("0", "-1", "two", "", "1.5", str(MOST + 1), "9" * 5000, "١"):
            values = self.values(text)
            self.assertEqual(1, worker_count(values, 6))
            (error,) = values.problems.errors
            self.assertIn(f"is neither a number from 1 to {MOST} nor auto", str(error))


class UsableCPUsTests(SynchronousTestCase):
    """
    CPUs, and the time of them that control groups leave; each machine has at least one.
    """

    def setUp(self) -> None:
        self.patch(os, "sched_getaffinity", lambda pid: set(range(8)))
        self.groups = self.mktemp()
        self.own = self.mktemp()

    def count(self, own: str = "0::/a/b\n", **limits: str) -> int:
        """Count them with these limits, by the names of groups with C{_} for C{/}; root has the empty name."""
        for name, limit in limits.items():
            directory = os.path.join(self.groups, *filter(None, name.split("_")))
            os.makedirs(directory, exist_ok=True)
            with open(os.path.join(directory, "cpu.max"), "w") as file:
                file.write(limit)
        with open(self.own, "w") as file:
            file.write(own)
        return usable_cpus(self.groups, self.own)

    def test_affinity(self) -> None:
        """Without limits, those that this process may run on count."""
        self.assertEqual(8, self.count())
        self.assertEqual(8, usable_cpus(self.mktemp(), self.mktemp()))
        self.assertEqual(8, self.count(a_b="max 100000\n", a="nonsense\n"))

    def test_own_limit(self) -> None:
        """A limit counts, with a part of a CPU as one; so does that of a group around our own."""
        self.assertEqual(2, self.count(a_b="200000 100000\n"))
        self.assertEqual(2, self.count(a_b="150000 100000\n"))
        self.assertEqual(1, self.count(a_b="150000 100000\n", a="1000 100000\n"))

    def test_container(self) -> None:
        """In a container our own group is the root."""
        self.assertEqual(3, self.count("0::/\n", _="300000 100000\n"))

    def test_older_groups(self) -> None:
        """Where there is no unified hierarchy nothing is known of limits."""
        self.assertEqual(8, self.count("4:cpu:/a\n", a="100000 100000\n"))

    def test_sandbox(self) -> None:
        """Where a sandbox does not let us know, the machine's own count."""

        def refuse(pid: int) -> set[int]:
            raise PermissionError

        self.patch(os, "sched_getaffinity", refuse)
        self.patch(os, "cpu_count", lambda: 5)
        self.assertEqual(5, self.count())
        self.patch(os, "cpu_count", lambda: None)
        self.assertEqual(1, self.count())
