"""Tests of webhookrx.commands.relay."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stderr, redirect_stdout

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.commands.main import main
from webhookrx.commands.relay import _running

GOOD = ("--from", "redis:redis://127.0.0.1:1/0/logs", "--group", "g", "--to", "syslog:udp:127.0.0.1:514")


class RelayCommandTests(SynchronousTestCase):
    """The command line of a relay, as far as nothing is opened."""

    def run_command(self, *arguments: str) -> tuple[int | str | None, str, str]:
        """Run the command; return its exit status, what it printed, and its errors."""
        out, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(errors):
            try:
                status: int | str | None = main(["relay", *arguments])
            except SystemExit as ended:
                status = ended.code
        return status, out.getvalue(), errors.getvalue()

    def test_check(self) -> None:
        """--check prints what would run, on whose word, and opens nothing."""
        dead = os.path.join(self.mktemp(), "dead.jsonl")
        os.mkdir(os.path.dirname(dead))
        status, out, errors = self.run_command(*GOOD, "--dead", f"file:{dead}", "--check")

        self.assertEqual((0, ""), (status, errors))
        self.assertIn("  from   redis:redis://127.0.0.1:1/0/logs\n  group  g\n  to     syslog:udp:127.0.0.1:514\n", out)
        self.assertIn(f"  dead   file:{dead}\n  ack    durable\n  admin  none\n", out)
        self.assertIn(
            "warning: --ack durable is more than observer syslog:udp:127.0.0.1:514 can promise: its word", out
        )
        self.assertTrue(out.endswith("The configuration is good.\n"))
        self.assertFalse(os.path.exists(dead))

    def test_check_with_spool(self) -> None:
        """It says that a spool keeps dead letters, and on whose word messages leave it."""
        spool = f"spool:{os.path.abspath(self.mktemp())}:observer=syslog:udp:127.0.0.1:514"
        status, out, _ = self.run_command(*GOOD[:4], "--to", spool, "--check")

        self.assertEqual(0, status)
        self.assertIn("  dead   kept by the spool\n", out)
        self.assertIn("warning: A message leaves the spool on the word 'queued'", out)

    def test_mistakes(self) -> None:
        """A mistake is a sentence, with status 1 for --check and 78 for a start."""
        for options, end, expected in (
            ((), "", 78),
            (("--check",), "The configuration can't be used.\n", 1),
        ):
            status, out, errors = self.run_command(*GOOD, *options)

            self.assertEqual((expected, ""), (status, out))
            self.assertIn("error: command line: --to: --dead is missing: where messages go", errors)
            self.assertTrue(errors.endswith(end))

    def test_unwritable(self) -> None:
        """--check says which files may not be written."""
        directory = self.mktemp()
        os.mkdir(directory)
        os.mkdir(os.path.join(directory, "x.jsonl"))
        status, _, errors = self.run_command(*GOOD, "--dead", f"file:{directory}/x.jsonl", "--check")

        self.assertEqual(1, status)
        self.assertIn("is a directory", errors)

    def test_umask(self) -> None:
        """A umask is three octal digits."""
        for text in ("", "9", "27", "0o27", "1777", "rwx"):
            status, _, errors = self.run_command(*GOOD, "--dead", "file:x", "--umask", text, "--check")
            self.assertEqual(1, status, text)
            self.assertIn("is not a umask: three octal digits, such as 027.", errors)
        self.assertEqual(0, self.run_command(*GOOD, "--dead", "file:x", "--umask", "027", "--check")[0])

    def test_twice(self) -> None:
        """An option that is given twice is a mistake: one of the two would have no effect."""
        status, _, errors = self.run_command(*GOOD, "--to", "file:x", "--dead", "file:y")

        self.assertEqual(2, status)
        self.assertIn("argument --to: given twice, but takes one value", errors)

    def test_pid_file_in_use(self) -> None:
        """A pid file with the number of another process that runs is left alone, and nothing starts."""
        path = self.mktemp()
        with open(path, "w") as file:
            file.write(f"{os.getppid()}\n")
        status, _, errors = self.run_command(*GOOD, "--dead", "file:x", "--pidfile", path)

        self.assertEqual(1, status)
        self.assertIn(f"has the number of a process that runs, {os.getppid()}.", errors)
        with open(path) as file:
            self.assertEqual(f"{os.getppid()}\n", file.read())

    def test_pid_file_left_behind(self) -> None:
        """One that a killed relay has left, or that holds no number, is not in use."""
        for text, number in (
            ("", None),
            ("x", None),
            ("-1", None),
            ("0", None),
            (str(os.getpid()), None),
            (str(2**22 + 1), None),
            ("1", 1),
        ):
            path = self.mktemp()
            with open(path, "w") as file:
                file.write(text)
            self.assertEqual(number, _running(path), text)
        self.assertIsNone(_running(self.mktemp()))
