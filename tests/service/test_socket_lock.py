"""
The lock of a UNIX socket.
"""

from __future__ import annotations

import fcntl
import os
import socket

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.service.socket_lock import lock_socket


class SocketLockTests(SynchronousTestCase):
    """L{lock_socket}."""

    def setUp(self) -> None:
        """Have a directory for the socket."""
        directory = self.mktemp()
        os.mkdir(directory)
        self.here = os.open(directory, os.O_RDONLY)
        self.addCleanup(os.close, self.here)
        # A path of a socket has a hundred bytes or so.
        self.path = f"/proc/self/fd/{self.here}/s"

    def leave_socket(self) -> None:
        """Leave what a killed process leaves."""
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(self.path)

    def lock(self) -> None:
        """Take the lock, and release it at the end of the test."""
        self.addCleanup(lock_socket(self.path).release)

    def test_left_behind(self) -> None:
        """A socket that nobody has any more is removed, whatever its lock file says."""
        self.leave_socket()
        with open(f"{self.path}.lock", "w") as file:
            file.write(str(os.getpid()))
        self.lock()
        self.assertFalse(os.path.exists(self.path))

    def test_of_another(self) -> None:
        """A socket whose lock another process has stays."""
        self.leave_socket()
        with open(f"{self.path}.lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            error = self.assertRaises(OSError, lock_socket, self.path)
            self.assertEqual("a receiver that runs has it", error.strerror)
            self.assertTrue(os.path.exists(self.path))
        self.lock()
        self.assertFalse(os.path.exists(self.path))

    def test_no_socket(self) -> None:
        """A file that is no socket stays."""
        with open(self.path, "w"):
            pass
        self.lock()
        self.assertTrue(os.path.exists(self.path))

    def test_link(self) -> None:
        """No link leads the lock elsewhere."""
        os.symlink("elsewhere", f"{self.path}.lock")
        self.assertRaises(OSError, lock_socket, self.path)
        self.assertEqual(["s.lock"], os.listdir(self.here))
