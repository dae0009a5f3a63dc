"""
Tests for L{webhookrx.agent.file_checks}.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import NOW
from tests.system.certificates import FAR_AWAY, self_signed
from webhookrx.agent.file_checks import check_files
from webhookrx.management.agent_protocol import CheckFilesCommand
from webhookrx.settings import AgentSettings


class CheckFilesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())
        os.mkdir(self.directory)
        self.settings = AgentSettings("https://c:1", "/none", key_directories=(self.directory,))

    def states(self, *paths: str, key: str = "", now: datetime = NOW) -> list[str]:
        command = CheckFilesCommand(id="c", paths=paths, key=key)
        return [check_files(command, self.settings, now)[path] for path in paths]

    def test_outside(self) -> None:
        """Of a file elsewhere nothing is told, not even whether it is there."""
        os.symlink("/etc", f"{self.directory}/link")
        paths = ("/etc/passwd", "/no/such", f"{self.directory}/link/passwd", f"{self.directory}/../x", "a\0b", "x")
        self.assertEqual({"not_allowed"}, set(self.states(*paths)))

    def test_below(self) -> None:
        """Of files below the directories the state is told, and of a pair whether it fits."""
        key, cert = self_signed("host").write(self.directory, "host")
        other, _ = self_signed("other").write(self.directory, "other")
        self.assertEqual(["present", "present", "missing"], self.states(cert, key, f"{self.directory}/none"))
        self.assertEqual(["present"], self.states(cert, key=key))
        self.assertEqual(["does_not_fit"], self.states(cert, key=other))

    def test_without_key(self) -> None:
        """A certificate is judged also where its key is missing, or is a file of which nothing is told."""
        for broken, state in ((b"-----BEGIN CERTIFICATE-----\n", "not_pem"), (b"", "not_pem")):
            cert = os.path.join(self.directory, "broken.pem")
            with open(cert, "wb") as file:
                file.write(broken)
            self.assertEqual([state, "missing"], self.states(cert, key := f"{self.directory}/none", key=key))
            self.assertEqual([state, "not_allowed"], self.states(cert, "/etc/passwd", key="/etc/passwd"))
        key, cert = self_signed("old").write(self.directory, "old")
        os.remove(key)
        self.assertEqual(["present", "missing"], self.states(cert, key, key=key))
        self.assertEqual(["expired", "missing"], self.states(cert, key, key=key, now=FAR_AWAY + timedelta(days=1)))

    def test_damaged_key(self) -> None:
        """A key that is damaged is told of the key, and not of its certificate."""
        key, cert = self_signed("host").write(self.directory, "host")
        with open(key, "wb") as file:
            file.write(b"-----BEGIN PRIVATE KEY-----\n")
        self.assertEqual(["present", "not_pem"], self.states(cert, key, key=key))
