"""
Tests for L{webhookrx.config.started_enrolment}.
"""

from __future__ import annotations

import os
import stat

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.console_files import ENROLLING, forget_console
from webhookrx.config.started_enrolment import StartedEnrolment, end_started, keep_started, started_key

URL = "https://console.example:9443"
STARTED = StartedEnrolment(console=URL, token="one", key="s3cret")


class StartedEnrolmentTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = os.path.join(self.mktemp(), "console")
        os.makedirs(os.path.dirname(self.directory))

    def test_of_the_same(self) -> None:
        """A key is found for the console and token with which it was kept, and for no other."""
        self.assertEqual(started_key(self.directory, URL, "one"), "")
        keep_started(self.directory, STARTED)
        self.assertEqual(started_key(self.directory, URL, "one"), "s3cret")
        self.assertEqual(started_key(self.directory, URL, "two"), "")
        self.assertEqual(started_key(self.directory, "https://other.example:9443", "one"), "")

    def test_hidden(self) -> None:
        """Only its owner may read it, and no repr shows it."""
        keep_started(self.directory, STARTED)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.directory, ENROLLING)).st_mode), 0o600)
        self.assertNotIn("s3cret", repr(STARTED))

    def test_damaged(self) -> None:
        """One that is damaged is as none."""
        for content in (b"", b"{", b"[" * 100_000, b'{"console": 1}', b"\xff"):
            os.makedirs(self.directory, exist_ok=True)
            with open(os.path.join(self.directory, ENROLLING), "wb") as file:
                file.write(content)
            self.assertEqual(started_key(self.directory, URL, "one"), "")

    def test_end(self) -> None:
        """It goes once it has ended, and with all else that is forgotten."""
        for end in (end_started, forget_console, end_started):
            keep_started(self.directory, STARTED)
            end(self.directory)
            self.assertEqual(os.listdir(self.directory), [])
            end(self.directory)
