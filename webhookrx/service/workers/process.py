"""
The process of a worker as its parent has it: how it is started, and the channel to it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from twisted.internet.error import ProcessTerminated
from twisted.internet.interfaces import IProcessTransport
from twisted.internet.protocol import Factory, ProcessProtocol
from twisted.python.failure import Failure

from webhookrx.service.workers.channel import Channel
from webhookrx.service.workers.messages import ToParent, ToWorker, read_for_parent

CONTROL = 3
"""Descriptor of a worker's end of the channel."""

#: Bytes of one message of a worker at most: the counts of some ten thousand sources.
MOST_BYTES_RECEIVED = 32 * 1024 * 1024

#: Variables by which systemd addresses the parent alone (sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3)).
_NOT_FOR_WORKERS = frozenset(
    ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")
)


class WorkerOwner(Protocol):
    """
    Receives the messages of a worker that it has started, and its end.
    """

    def received(self, message: ToParent) -> None:
        """The worker has sent a message."""

    def channel_lost(self) -> None:
        """The channel has ended, though the worker lives: it is about to end, or should be."""

    def ended(self, how: str, status: int) -> None:
        """
        The worker has ended, and all its messages were received.

        @param how: for people: its status, or the signal that killed it.
        @param status: its exit status; minus the number of the signal.
        """


class WorkerProcess(Protocol):
    """
    The process of a worker that was started.
    """

    def send(self, message: ToWorker, descriptors: Sequence[int] = ()) -> None:
        """See L{Channel.send}."""

    def kill(self) -> None:
        """End it at once."""


#: Starts a worker; raises C{OSError} when there can be no more processes.
Launch = Callable[[WorkerOwner], WorkerProcess]


class Launcher:
    """
    Starts workers: fresh interpreters with the same search path and the same kind of reactor.

    @param environ: C{os.environ}.
    """

    def __init__(self, reactor: Any, environ: Mapping[str, str]) -> None:
        self._reactor = reactor
        # As absolute names, before twistd changes to another directory.
        path = os.pathsep.join(os.path.abspath(each) for each in sys.path)
        kept = {name: value for name, value in environ.items() if name not in _NOT_FOR_WORKERS}
        self._environ = {**kept, "PYTHONPATH": path}

    def __call__(self, owner: WorkerOwner) -> WorkerProcess:
        """
        Start a worker.

        @raise OSError: there can be no more processes, or files.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with ours, theirs:
            ours.setblocking(False)
            process = _SpawnedWorker(owner)
            # -P keeps the working directory, where others may write, off the search path.
            command = [sys.executable, "-P", "-m", "webhookrx.service.workers.main", type(self._reactor).__module__]
            # First, since it may fail for want of a descriptor: a started process would be left without a channel.
            adopt(self._reactor, ours.fileno(), process.channel)
            files = {0: 0, 1: 1, 2: 2, CONTROL: theirs.fileno()}
            try:
                self._reactor.spawnProcess(process, sys.executable, command, self._environ, childFDs=files)
            except OSError:
                process.channel.close()
                raise
        return process


def adopt(reactor: Any, descriptor: int, channel: Channel[Any]) -> None:
    """Connect a channel to one end of a pair of sockets; the descriptor is copied."""
    reactor.adoptStreamConnection(descriptor, socket.AF_UNIX, _OneProtocol.forProtocol(lambda: channel))


class _OneProtocol(Factory):
    """The factory of one protocol that exists already."""

    noisy = False


class _SpawnedWorker(ProcessProtocol):
    """
    The process and its channel, from start to end.
    """

    transport: IProcessTransport | None

    def __init__(self, owner: WorkerOwner) -> None:
        self.channel = Channel(read_for_parent, self._received, self._channel_ended, MOST_BYTES_RECEIVED)
        self._owner = owner
        self._end: tuple[str, int] | None = None
        self._is_channel_lost = False

    def send(self, message: ToWorker, descriptors: Sequence[int] = ()) -> None:
        self.channel.send(message, descriptors)

    def kill(self) -> None:
        if self._end is None and self.transport is not None:
            self.transport.signalProcess("KILL")

    def processEnded(self, reason: Failure) -> None:
        self._end = describe_end(reason)
        self._report_end()

    def _received(self, message: ToParent, _: Sequence[int]) -> None:
        self._owner.received(message)

    def _channel_ended(self) -> None:
        self._is_channel_lost = True
        if self._end is None and self.transport is not None:
            self._owner.channel_lost()
        self._report_end()

    def _report_end(self) -> None:
        # Its last messages may come after the news of its end.
        if self._end is not None and self._is_channel_lost:
            self._owner.ended(*self._end)


def describe_end(reason: Failure) -> tuple[str, int]:
    """Return how a process ended: in words, and as a status, which is minus the number of a signal."""
    error = reason.value
    if not isinstance(error, ProcessTerminated):
        return "ended with status 0", 0
    if error.signal is not None:
        try:
            name = signal.Signals(error.signal).name
        except ValueError:
            name = f"signal {error.signal}"
        return f"was killed by {name}", -error.signal
    status = -1 if error.exitCode is None else error.exitCode
    return f"ended with status {status}", status
