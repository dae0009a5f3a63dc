"""Tests for what all subjects of the command share."""

from __future__ import annotations

import os
import sys
from unittest.mock import patch

from twisted.trial.unittest import SynchronousTestCase

from tests.commands.running import run_command
from webhookrx import version
from webhookrx.commands import main as command
from webhookrx.version import version_line


class VersionTests(SynchronousTestCase):
    """C{--version}."""

    def test_version(self) -> None:
        """It says which version this is, on one line however long it is."""
        self.patch(version, "in_use", f"pure Python: {'it rains ' * 20}")
        self.assertEqual((0, f"{version_line()}\n", ""), run_command("--version"))


class HelpTests(SynchronousTestCase):
    """C{--help}."""

    def test_subjects(self) -> None:
        """It names every subject, and what each is for."""
        with patch.dict(os.environ, COLUMNS="100"):
            status, out, _ = run_command("--help")
        self.assertEqual(0, status)
        for name, text in command.SUBJECTS.items():
            self.assertRegex(out, rf"(?m)^    {name} +{text}$")

    def test_verbs(self) -> None:
        """That of each subject tells what it is about, and those of its verbs end in an example."""
        for subject, verbs in (
            (("config",), ("check",)),
            (("rules",), ("check", "preview", "explain")),
            (("query",), ("check",)),
            (("import",), ("collector",)),
            (("classify",), ()),
        ):
            status, out, _ = run_command(*subject, "--help")
            self.assertEqual(0, status)
            if subject == ("config",):
                self.assertIn("check     print what would run", out)
                continue
            for words in [(*subject, verb) for verb in verbs] or [subject]:
                status, out, _ = run_command(*words, "--help")
                self.assertEqual(0, status)
                self.assertIn(f"\nexample:\n  webhookrx {' '.join(words)} ", out)


class ImportTests(SynchronousTestCase):
    """What an invocation loads."""

    def test_one_subject(self) -> None:
        """Only the subject that is asked for is loaded, and none for C{--version}: that must be quick."""
        for words, loaded in (
            (("--version",), []),
            (("--help",), []),
            (("query", "--help"), ["query"]),
            (("no-such-subject",), []),
        ):
            with patch.object(command, "import_module") as load:
                run_command(*words)
            self.assertEqual(
                [f"webhookrx.commands.{name}" for name in loaded],
                [each.args[0] for each in load.call_args_list],
            )


class MistakeTests(SynchronousTestCase):
    """What is asked wrongly."""

    def test_usage(self) -> None:
        """A mistake in the arguments is told, with status 2."""
        for arguments in (
            (),
            ("eat",),
            ("query",),
            ("query", "eat"),
            ("query", "check"),
            ("query", "check", "a = b", "c = d"),
            ("query", "check", "a = b", "--no-such-option"),
            ("rules",),
            ("rules", "check"),
            ("rules", "check", "a.yaml", "b.yaml"),
            ("rules", "preview"),
            ("rules", "check", "a.yaml", "--router-label", "a=b"),
            ("rules", "preview", "a.yaml", "--rule", "a", "--selector", "b"),
            ("rules", "explain", "a.yaml"),
            ("rules", "explain", "a.yaml", "--router", "r", "--router-label", "no-value"),
            ("classify",),
            ("classify", "request", "--list"),
        ):
            status, out, err = run_command(*arguments)
            self.assertEqual((2, ""), (status, out), arguments)
            self.assertIn("usage:", err)


class ReceiverTests(SynchronousTestCase):
    """What is handed to C{twistd}."""

    def started_with(self, *arguments: str) -> list[str]:
        """Return the command line that twistd sees."""
        self.patch(sys, "argv", [])
        ran: list[list[str]] = []
        with patch("twisted.scripts.twistd.run", lambda: ran.append(sys.argv)):
            self.assertEqual(0, command.main(arguments))
        (seen,) = ran
        return seen

    def test_nothing_to_check(self) -> None:
        """Without a file or an option there is nothing to check, and no configuration is called good."""
        status, out, errors = run_command("config", "check")
        self.assertEqual((2, ""), (status, out))
        self.assertIn("webhookrx config check: error: name a FILE, or options to check", errors)

    def test_run(self) -> None:
        """With C{run}, or an option, a receiver is started in the foreground, without a pid file."""
        foreground = ["twistd", "-n", "--pidfile=", "webhookrx"]
        for arguments, options in (
            (("run",), []),
            (("run", "--config", "x.yaml"), ["--config", "x.yaml"]),
            (("run", "--help"), ["--help"]),
            (("--port", "8181", "--help"), ["--port", "8181", "--help"]),
            (("-p", "8181"), ["-p", "8181"]),
            (("config", "check", "x.yaml", "--ack", "written"), ["--check", "--config", "x.yaml", "--ack", "written"]),
            (("config", "check", "--port", "1"), ["--check", "--port", "1"]),
        ):
            self.assertEqual([*foreground, *options], self.started_with(*arguments))
