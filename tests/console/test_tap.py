"""
Tests for L{webhookrx.console.tap}.
"""

from __future__ import annotations

import io
import os
from contextlib import redirect_stderr, redirect_stdout

from twisted.application.service import IServiceMaker
from twisted.plugin import getPlugins
from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from tests.test_packaging import setup_cfg
from webhookrx.console import tap
from webhookrx.console.settings import OPTIONS
from webhookrx.console.tap import Options, makeService

GOOD = [
    "--port",
    "tcp:1:interface=127.0.0.1",
    "--routers",
    "ssl:2",
    "--db",
    "none.sqlite",
    "--url",
    "https://a.example",
]


class ConsoleOptionsTests(SynchronousTestCase):
    """The command line of twistd webhookrx-console."""

    def run_options(self, *arguments: str) -> tuple[int, str, str]:
        """Return the status, and what is printed."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            error = self.assertRaises(SystemExit, Options().parseOptions, arguments)
        return int(error.code or 0), out.getvalue(), err.getvalue()

    def test_plugin(self) -> None:
        """Twisted finds the command by its name."""
        (maker,) = (each for each in getPlugins(IServiceMaker) if each.tapname == "webhookrx-console")
        self.assertEqual("webhookrx.console.tap", maker.module)

    def test_help(self) -> None:
        """The help has every option."""
        text = str(Options())
        for option in OPTIONS:
            self.assertIn(f"--{option.name}", text)

    def test_check(self) -> None:
        """--check prints good settings, and opens nothing."""
        status, out, _ = self.run_options(*GOOD, "--check")
        self.assertEqual(0, status)
        self.assertIn("The configuration is good.", out)
        self.assertFalse(os.path.exists("none.sqlite"))

    def test_mistakes(self) -> None:
        """Mistakes are printed, each with its option; the status is that for a configuration."""
        status, _, err = self.run_options("--port", "nonsense")
        self.assertEqual(os.EX_CONFIG, status)
        for name in ("--port", "--routers", "--db", "--url"):
            self.assertIn(name, err)
        self.assertEqual(1, self.run_options("--check")[0])

    def test_usage(self) -> None:
        """What is no option is a mistake, as is one that is given twice."""
        for arguments in (["more"], ["--db", "a", "--db", "b"], ["--unknown"]):
            self.assertRaises(UsageError, Options().parseOptions, arguments)

    def test_no_store(self) -> None:
        """A console without its file says how to make it."""
        options = Options()
        options.parseOptions(GOOD)
        err = io.StringIO()
        with redirect_stderr(err):
            error = self.assertRaises(SystemExit, makeService, options)
        self.assertEqual(1, error.code)
        self.assertIn("webhookrx console init", err.getvalue())

    def test_missing_packages(self) -> None:
        """Without the packages of its extra one sentence says what to install."""
        self.assertEqual(len(tap.EXTRA), len(setup_cfg()["options.extras_require"]["console"].split()))
        self.patch(tap, "EXTRA", ("msgspec", "not_there"))
        options = Options()
        options.parseOptions(GOOD)
        err = io.StringIO()
        with redirect_stderr(err):
            error = self.assertRaises(SystemExit, makeService, options)
        self.assertEqual(os.EX_CONFIG, error.code)
        self.assertRegex(err.getvalue(), r"not installed: not_there\. Run: pip install 'webhookrx\[console\]'")
