"""
Tests for L{webhookrx.service.workers.process}: with a reactor that starts nothing. The rest is in C{tests/system}.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from typing import Any

import msgspec
from twisted.internet.error import ConnectionDone, ProcessDone, ProcessTerminated
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from tests.open_files import open_files
from tests.service.workers.test_channel import framed
from webhookrx.service.workers.messages import CannotBegin, Finish, ToParent
from webhookrx.service.workers.process import CONTROL, Launcher, describe_end


class _Process:
    """A process in memory."""

    def __init__(self) -> None:
        self.signals: list[str] = []

    def signalProcess(self, name: str) -> None:
        self.signals.append(name)


class _Owner:
    """Records what it hears."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def received(self, message: ToParent) -> None:
        self.told.append(message)

    def channel_lost(self) -> None:
        self.told.append("channel lost")

    def ended(self, how: str, status: int) -> None:
        self.told.append((how, status))


class LauncherTests(SynchronousTestCase):
    """
    From a launch to an end.
    """

    def setUp(self) -> None:
        self.refusal: OSError | None = None
        self.spawned: list[tuple[Any, ...]] = []
        self.process = _Process()
        self.owner = _Owner()
        environ = {"HOME": "/h", "PYTHONPATH": "x", "NOTIFY_SOCKET": "/n", "WATCHDOG_PID": "1", "LISTEN_FDS": "1"}
        self.patch(sys, "path", ["", "lib", "/usr/lib"])
        self.worker = Launcher(self, environ)(self.owner)

    def spawnProcess(
        self, protocol: Any, program: str, command: list[str], environ: dict[str, str], childFDs: dict[int, int]
    ) -> None:
        """Start nothing."""
        if self.refusal is not None:
            raise self.refusal
        self.assertEqual({0: 0, 1: 1, 2: 2}, {fd: childFDs[fd] for fd in (0, 1, 2)})
        self.spawned.append((protocol, program, command, environ))
        self.theirs = os.dup(childFDs[CONTROL])
        self.addCleanup(os.close, self.theirs)
        self.protocol = protocol
        protocol.makeConnection(self.process)

    def adoptStreamConnection(self, descriptor: int, family: int, factory: Any) -> None:
        """Connect the channel to a transport of ours."""
        self.assertEqual((socket.AF_UNIX, False), (family, os.get_blocking(descriptor)))
        self.transport = StringTransport()
        self.adopted = factory.buildProtocol(None)
        self.adopted.makeConnection(self.transport)

    def end(self, reason: Exception) -> None:
        """End the process."""
        self.protocol.processEnded(Failure(reason))

    def silence(self) -> None:
        """End the channel."""
        self.protocol.channel.connectionLost(Failure(ConnectionDone()))

    def test_fresh_interpreter(self) -> None:
        """It is this interpreter anew, with the same search path, the reactor of our kind, and nothing of systemd's."""
        ((_, program, command, environ),) = self.spawned
        self.assertEqual(sys.executable, program)
        self.assertEqual([sys.executable, "-P", "-m", "webhookrx.service.workers.main", __name__], command)
        here = os.getcwd()
        path = os.pathsep.join((here, os.path.join(here, "lib"), "/usr/lib"))
        self.assertEqual({"HOME": "/h", "PYTHONPATH": path}, environ)

    def test_talk(self) -> None:
        """Messages go to the process, and its messages to its owner."""
        self.worker.send(Finish())
        self.assertEqual(framed(msgspec.msgpack.encode(Finish())), self.transport.value())
        self.protocol.channel.dataReceived(framed(msgspec.msgpack.encode(CannotBegin("no"))))
        self.assertEqual([CannotBegin("no")], self.owner.told)

    def test_end(self) -> None:
        """Its end is reported once it has ended and its last message was received, in either order."""
        self.end(ProcessTerminated(signal=9))
        self.assertEqual([], self.owner.told)
        self.silence()
        self.assertEqual([("was killed by SIGKILL", -9)], self.owner.told)
        self.worker.kill()
        self.assertEqual([], self.process.signals)

    def test_end_after_silence(self) -> None:
        """The same the other way round; until then it can be killed."""
        self.silence()
        self.worker.kill()
        self.assertEqual((["KILL"], ["channel lost"]), (self.process.signals, self.owner.told))
        self.end(ProcessDone(0))
        self.assertEqual(["channel lost", ("ended with status 0", 0)], self.owner.told)

    def test_no_process(self) -> None:
        """If no process can be started, nothing stays open, and the owner hears of no end."""
        self.refusal = OSError(errno.EAGAIN, "Resource temporarily unavailable")
        owner = _Owner()
        before = open_files()
        self.assertRaises(OSError, Launcher(self, {}), owner)
        self.assertEqual(set(), open_files() - before)
        self.assertTrue(self.transport.disconnecting)
        self.adopted.connectionLost(Failure(ConnectionDone()))
        self.assertEqual([], owner.told)

    def test_no_descriptor(self) -> None:
        """Without a channel no process is started."""
        self.patch(self, "adoptStreamConnection", _refuse)
        self.assertRaises(OSError, Launcher(self, {}), _Owner())
        self.assertEqual(1, len(self.spawned))


def _refuse(*_: object) -> None:
    raise OSError(errno.EMFILE, "Too many open files")


class EndTests(SynchronousTestCase):
    """
    How a process ended.
    """

    def test_table(self) -> None:
        """In words and as a number."""
        for reason, words, status in (
            (ProcessDone(0), "ended with status 0", 0),
            (ProcessTerminated(exitCode=3), "ended with status 3", 3),
            (ProcessTerminated(signal=15), "was killed by SIGTERM", -15),
            (ProcessTerminated(signal=99), "was killed by signal 99", -99),
            (ProcessTerminated(), "ended with status -1", -1),
        ):
            self.assertEqual((words, status), describe_end(Failure(reason)))
