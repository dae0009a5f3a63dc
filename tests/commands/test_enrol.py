"""
Tests for L{webhookrx.commands.enrol}: what it refuses before it asks a console. The rest is in C{tests/system}.
"""

from __future__ import annotations

import os
from unittest.mock import patch

from tests.commands.running import CommandCase, run_command

TOKEN = "wrx1.0123456789abcdef." + "s" * 43 + "." + "a" * 64
URL = "https://localhost:9"


class EnrolTests(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory = os.path.abspath(self.mktemp())
        os.makedirs(self.directory)

    def path(self, name: str, content: str | None = None) -> str:
        """Return the path of a file in the directory, with that content."""
        path = os.path.join(self.directory, name)
        if content is not None:
            with open(path, "w", encoding="ascii") as file:
                file.write(content)
            os.chmod(path, 0o600)
        return path

    def test_arguments(self) -> None:
        """What is missing, or does not go together, is an error of the arguments."""
        token = self.path("token", TOKEN)
        for arguments, said in (
            (("--console-dir", self.directory), "--console and --token-file are needed"),
            (("--console-dir", self.directory, "--forget", "--console", URL), "--forget goes with --console-dir alone"),
            (("--console-dir", self.directory, "--console", URL, "--token-file", token, "--label", "a"), "KEY=VALUE"),
        ):
            ran = run_command("enrol", *arguments)
            self.assertEqual(2, ran.status, arguments)
            self.assertIn(said, ran.err)

    def test_no_directory(self) -> None:
        """Without a directory it says how to give one."""
        with patch.dict(os.environ, clear=False):
            os.environ.pop("STATE_DIRECTORY", None)
            ran = run_command("enrol", "--console", URL, "--token-file", self.path("token", TOKEN))
        self.assertEqual(2, ran.status)
        self.assertIn("$STATE_DIRECTORY", ran.err)

    def test_no_token(self) -> None:
        """A file without a token is refused, and what is in it is not shown."""
        token = self.path("token", "hunter2")
        ran = run_command("enrol", "--console", URL, "--token-file", token, "--console-dir", self.path("console"))
        self.assertEqual(1, ran.status)
        self.assertIn(token, ran.err)
        self.assertNotIn("hunter2", ran.err + ran.out)

    def test_nothing_to_forget(self) -> None:
        """A directory that is missing can't be forgotten; one with nothing in it can."""
        self.assertEqual(1, run_command("enrol", "--console-dir", self.path("none"), "--forget").status)
        self.assertEqual(0, run_command("enrol", "--console-dir", self.directory, "--forget").status)
