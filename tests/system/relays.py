"""The real relay in a process of its own, in a directory of its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from tests.system.receiver import Connection, Receiver, ReceiverCase


class RelayProcess(Receiver):
    """
    One process of C{webhookrx relay}, or several after one another with the same directory.

    @param options: of the relay, but C{--admin}.
    @param within: a command that runs another one, in its own place.
    """

    def __init__(self, *options: str, within: Sequence[str] = ()) -> None:
        super().__init__(port=None)
        command = (sys.executable, "-m", "webhookrx", "relay", "--admin", "unix:admin.sock")
        self._arguments = (*within, *command, *options)

    def _is_up(self, started_at: int) -> bool:
        return super()._is_up(started_at) or "Relaying from" in self.log()[started_at:]


def page(process: Receiver, path: str) -> str:
    """Return a page for operators, of a process with C{--admin unix:admin.sock}, with its head."""
    with Connection(process.path("admin.sock")) as connection:
        # Without chunks, and closed at the end.
        connection.send(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        with connection.socket.makefile("rb") as file:
            return file.read().decode()


def relay_metric(process: Receiver, name: str) -> float:
    """Return a metric without labels, or the first of its labels; NaN if it is not there."""
    found = re.search(rf"^webhookrx_{name}(?:{{.*}})? (\S+)$", page(process, "/metrics"), re.MULTILINE)
    return float(found[1]) if found else float("nan")


class RelayCase(ReceiverCase):
    """Starts relays and leaves none behind."""

    def relay(self, *options: str) -> RelayProcess:
        """Start a relay."""
        process = RelayProcess(*options)
        self.addCleanup(process.clean_up)
        process.start()
        return process
