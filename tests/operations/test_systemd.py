"""Tests for L{webhookrx.operations.systemd}, at a socket that stands for systemd's."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.operations.systemd import Notifier


class NotifierTests(SynchronousTestCase):
    """Each word of the protocol, and what happens without anyone to speak to."""

    def setUp(self) -> None:
        """Listen."""
        # A short path: the name of a UNIX socket has room for about a hundred bytes.
        self.directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = os.path.join(self.directory, "notify")
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.setblocking(False)
        self.now = 7_000_000_000

    def notifier(self, name: str | None = None, **environ: str) -> Notifier:
        """Make a notifier for the socket of that name."""
        self.manager.bind(self.path if name is None else name)
        return Notifier({"NOTIFY_SOCKET": self.path, **environ}, lambda: self.now)

    def heard(self) -> list[str]:
        """Return what came, a text each time."""
        texts = []
        while True:
            try:
                texts.append(self.manager.recv(4096).decode())
            except BlockingIOError:
                return texts

    def test_words(self) -> None:
        """What is said, as systemd wants to hear it."""
        notifier = self.notifier()
        notifier.ready("Listening")
        notifier.status("Blocked: no key")
        notifier.reloading()
        notifier.stopping("Waits for 3 requests")
        notifier.extend(2.5)
        self.assertEqual(
            [
                "READY=1\nSTATUS=Listening",
                "STATUS=Blocked: no key",
                "RELOADING=1\nMONOTONIC_USEC=7000000",
                "STOPPING=1\nSTATUS=Waits for 3 requests",
                "EXTEND_TIMEOUT_USEC=2500000",
            ],
            self.heard(),
        )

    def test_status_is_one_line(self) -> None:
        """A status can't smuggle in a word of its own, nor break what is sent."""
        notifier = self.notifier()
        notifier.status("one\nREADY=1\r\n\ttwo\x85three\ud800")

        self.assertEqual(["STATUS=one READY=1 two three?"], self.heard())

    def test_abstract(self) -> None:
        """A socket whose name is no path."""
        name = f"webhookrx-{os.getpid()}-test"
        self.notifier(f"\0{name}", NOTIFY_SOCKET=f"@{name}").ready("")

        self.assertEqual(["READY=1\nSTATUS="], self.heard())

    def test_nobody(self) -> None:
        """Without a socket, with one of an unknown kind, one that is gone or one whose queue is full, all is well."""
        for name in ("", "vsock:2:1234", "relative", os.path.join(self.directory, "gone"), "/" + "x" * 200):
            notifier = Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "2"}, lambda: self.now)
            notifier.ready("")
            notifier.reloading()
            notifier.tick(alive=True)
        self.assertIsNone(Notifier({"WATCHDOG_USEC": "2"}).watchdog_interval)
        notifier = self.notifier()
        for _ in range(2000):
            notifier.status("again and again")
        self.assertLess(len(self.heard()), 2000)

    def test_watchdog(self) -> None:
        """A sign of life goes out at most every half of the time given, only while alive, and at once after that."""
        notifier = self.notifier(WATCHDOG_USEC="2000000", WATCHDOG_PID=str(os.getpid()))
        self.assertEqual(1.0, notifier.watchdog_interval)
        signs = []
        for alive in (True, True, True, True, False, False, False, True, True):
            notifier.tick(alive=alive)
            signs.append(len(self.heard()))
            self.now += 500_000_000
        self.assertEqual([1, 0, 1, 0, 0, 0, 0, 1, 0], signs)

    def test_watchdog_not_taken(self) -> None:
        """A sign that could not be given is given at the next tick."""
        notifier = Notifier({"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": "2000000"}, lambda: self.now)
        notifier.tick(alive=True)
        self.manager.bind(self.path)
        notifier.tick(alive=True)

        self.assertEqual(["WATCHDOG=1"], self.heard())

    def test_no_watchdog(self) -> None:
        """No keep-alive is sent unless this process was asked for it."""
        cases: tuple[dict[str, str], ...] = (
            {},
            {"WATCHDOG_USEC": "0"},
            {"WATCHDOG_USEC": "soon"},
            {"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(os.getpid() + 1)},
            {"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "me"},
        )
        self.manager.bind(self.path)
        for environ in cases:
            notifier = Notifier({"NOTIFY_SOCKET": self.path, **environ}, lambda: self.now)
            notifier.tick(alive=True)
            self.assertIsNone(notifier.watchdog_interval)
        self.assertEqual([], self.heard())
