"""
Notifications to systemd: sd_notify(3), a datagram of lines to the socket that the environment names.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping


class Notifier:
    """
    Notifies the service manager; without one it does nothing.

    No method raises or waits, whatever the manager does.

    @param environ: C{os.environ}; C{NOTIFY_SOCKET}, C{WATCHDOG_USEC} and C{WATCHDOG_PID} are read.
    @param monotonic_ns: C{time.monotonic_ns}.
    @ivar watchdog_interval: seconds between two keep-alives, half of the manager's timeout; None if it wants none, or
        not from this process.
    """

    def __init__(self, environ: Mapping[str, str], monotonic_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._monotonic_ns = monotonic_ns
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self.watchdog_interval = None if self._address is None else _watchdog_interval(environ)
        self._next_sign = 0

    def ready(self, status: str) -> None:
        """The service has started, or a reload has ended."""
        self._send("READY=1", _status(status))

    def reloading(self) -> None:
        """A reload begins; L{ready} ends it, successful or not."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={self._monotonic_ns() // 1000}")

    def stopping(self, status: str) -> None:
        """The service begins to stop."""
        self._send("STOPPING=1", _status(status))

    def status(self, text: str) -> None:
        """Set the status line of C{systemctl status}."""
        self._send(_status(text))

    def extend(self, seconds: float) -> None:
        """Extend the timeout of a start, reload or stop to this many seconds from now."""
        self._send(f"EXTEND_TIMEOUT_USEC={round(seconds * 1_000_000)}")

    def tick(self, *, alive: bool) -> None:
        """
        Send a keep-alive if one is due. Called more often than that.

        @param alive: False withholds it, so that the manager restarts a service that is stuck.
        """
        if self.watchdog_interval is None or not alive:
            return
        now = self._monotonic_ns()
        # A failed one is repeated at the next tick.
        if now >= self._next_sign and self._send("WATCHDOG=1"):
            self._next_sign = now + round(self.watchdog_interval * 1_000_000_000)

    def _send(self, *lines: str) -> bool:
        if self._address is None:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(lines).encode(errors="replace"), self._address)
        except OSError:
            return False
        return True


def _address(text: str) -> str | None:
    """Return the address in C{NOTIFY_SOCKET}; None without one, or if it is of another kind."""
    if text.startswith("@"):
        # An abstract name (unix(7)).
        return "\0" + text[1:]
    return text if text.startswith("/") else None


def _watchdog_interval(environ: Mapping[str, str]) -> float | None:
    """Return the seconds between two keep-alives of this process (sd_watchdog_enabled(3))."""
    try:
        microseconds = int(environ.get("WATCHDOG_USEC", "0"))
        pid = int(environ.get("WATCHDOG_PID", os.getpid()))
    except ValueError:
        return None
    return microseconds / 2_000_000 if microseconds > 0 and pid == os.getpid() else None


def _status(text: str) -> str:
    """Return a status as one line."""
    return "STATUS=" + " ".join(text.split())
