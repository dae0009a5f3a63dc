"""
Tests for L{webhookrx.service.workers.main}: with a receiver that is none. The rest is in C{tests/system}.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.logger import formatEvent, globalLogPublisher
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from tests.operations.snapshots import make_snapshot
from tests.service.workers.test_channel import framed
from webhookrx.errors import CannotStart, ConfigError
from webhookrx.operations.counters import Counters
from webhookrx.operations.signals import CUT_OFF
from webhookrx.operations.snapshot import Phase
from webhookrx.service.shared_state import make_state_files
from webhookrx.service.workers import main as worker_module
from webhookrx.service.workers.main import ORPHANED_FOR, Worker
from webhookrx.service.workers.messages import (
    Began,
    Begin,
    CannotBegin,
    ChangeSettings,
    Finish,
    PortsClosed,
    Readiness,
    Reopen,
    Report,
    SettingsChanged,
    StopNow,
    ToParent,
    ToWorker,
    read_for_parent,
)
from webhookrx.settings import Group, Settings
from webhookrx.transport.fair_share import CounterPage, WorkerRow

SETTINGS = Settings((), (), workers=2)
OTHER = Settings((), (), ack="written", workers=2)


class _Chain:
    is_stuck = False

    def weaker_than_ack(self) -> list[str]:
        return ["weaker than it should be"]


class _Receiver:
    """
    A receiver whose course the test decides.

    @ivar does: what it was told, in order.
    """

    error: Exception | None = None

    def __init__(self, settings: Settings, reactor: object, group: Group, open_socket: object) -> None:
        self.settings = settings
        self.group = group
        self.counters = Counters()
        self.snapshot = make_snapshot()
        self.chain = _Chain()
        self.phase = Phase.STARTING
        self.ready = False
        self.in_haste = False
        self.does: list[object] = []
        self.changed: Deferred[str] = Deferred()
        self.drained: Deferred[bool] = Deferred()

    def start(self) -> None:
        if self.error is not None:
            raise self.error

    def tick(self) -> None:
        self.does.append("tick")

    def reopen(self) -> None:
        self.does.append("reopen")

    @property
    def is_stuck(self) -> bool:
        return self.chain.is_stuck

    @property
    def warnings(self) -> list[str]:
        return self.chain.weaker_than_ack()

    def run(self, up: Callable[[], None], failed: object) -> None:
        self.phase = Phase.RUNNING
        up()

    def set_ready(self, ready: bool) -> None:
        self.ready = ready

    def stop_now(self) -> None:
        self.in_haste = True

    async def change(self, settings: Settings) -> str:
        text = await self.changed
        self.settings = settings
        return text

    async def drain(self, seconds: float, ports_closed: Callable[[], None]) -> bool:
        self.does.append(f"drain for {seconds}")
        ports_closed()
        return await self.drained or not self.in_haste


class _Transport(StringTransport):
    """A UNIX socket in memory."""

    def abortConnection(self) -> None:
        self.loseConnection()


class WorkerTests(SynchronousTestCase):
    """
    What it does when it is told, and when it is not.
    """

    def setUp(self) -> None:
        self.receivers: list[_Receiver] = []
        self.patch(worker_module, "LocalReceiver", self._receiver)
        self.patch(worker_module.oplog, "stderr", lambda: self.stderr.append)
        self.stderr: list[Any] = []
        self.addCleanup(globalLogPublisher.removeObserver, self.stderr.append)
        self.left: list[int] = []
        self.worker = Worker(self, self.left.append)
        self.transport = _Transport()
        self.worker.channel.makeConnection(self.transport)

    def _receiver(self, *given: Any) -> _Receiver:
        self.receivers.append(_Receiver(*given))
        return self.receivers[-1]

    def callFromThread(self, call: Callable[[], Any]) -> None:
        """Stand for the reactor."""
        call()

    def tell(self, message: ToWorker, *descriptors: int) -> None:
        """Tell it something."""
        for descriptor in descriptors:
            self.worker.channel.fileDescriptorReceived(descriptor)
        self.worker.channel.dataReceived(framed(msgspec.msgpack.encode(message)))

    def said(self) -> list[ToParent]:
        """Return what it has said since it was last asked, but for its state."""
        rest, messages = self.transport.value(), []
        self.transport.clear()
        while rest:
            length = int.from_bytes(rest[:4], "big")
            messages.append(read_for_parent(rest[4 : 4 + length]))
            rest = rest[4 + length :]
        return [message for message in messages if not isinstance(message, Report)]

    def begin(self, number: int = 0) -> _Receiver:
        """Have it begin."""
        self.lock_fd = os.open(os.devnull, os.O_RDONLY)
        self.addCleanup(os.close, self.lock_fd)
        page = CounterPage()
        self.addCleanup(page.close)
        self.page_fd = os.dup(page.descriptor)
        self.other = WorkerRow(page.descriptor, 1 - number, 2)
        self.state_files = make_state_files()
        self.tell(Begin(SETTINGS, number, 2, {}), self.lock_fd, self.page_fd, *self.state_files)
        return self.receivers[-1]

    def lose(self) -> None:
        """End its channel."""
        self.worker.channel.connectionLost(Failure(ConnectionDone()))

    def test_begin(self) -> None:
        """It receives by its settings, knows its number, and reports that it is ready."""
        receiver = self.begin(1)
        group = Group(1, 2, self.lock_fd, self.state_files)
        self.assertEqual((SETTINGS, group), (receiver.settings, receiver.group))
        self.assertEqual(([Began()], Phase.RUNNING), (self.said(), receiver.phase))

    def test_page(self) -> None:
        """It maps the page of counters, shows there that it turns, and needs no descriptor for that."""
        self.begin(1)
        for fd in (self.page_fd, *self.state_files):
            self.assertRaises(OSError, os.fstat, fd)
        for _ in range(2):
            self.worker._tick()
        self.assertEqual(2, self.other.ticks[1])

    def test_cannot_begin(self) -> None:
        """If it can't begin, it says why and ends, whatever comes from the parent."""
        for error, text in ((CannotStart("no such file"), "no such file"), (OSError(28, "full"), "[Errno 28] full")):
            self.setUp()
            self.patch(_Receiver, "error", error)
            self.begin()
            self.assertEqual([CannotBegin(text)], self.said())
            self.assertTrue(self.transport.disconnecting)
            self.tell(Finish())
            self.lose()
            self.assertEqual([CUT_OFF], self.left)

    def test_warnings(self) -> None:
        """What is weaker than asked for is said by the first worker alone, and again when settings change."""
        events: list[Any] = []
        globalLogPublisher.addObserver(events.append)
        self.addCleanup(globalLogPublisher.removeObserver, events.append)
        self.begin(1)
        self.assertEqual([], events)
        self.setUp()
        receiver = self.begin(0)
        self.assertIn("weaker than it should be", str(events.pop()))
        receiver.changed.callback("changed")
        self.tell(ChangeSettings(1, SETTINGS, {}))
        self.assertEqual([], events)
        receiver.changed = Deferred()
        receiver.changed.callback("changed")
        self.tell(ChangeSettings(2, OTHER, {}))
        self.assertIn("weaker than it should be", str(events.pop()))

    def test_state(self) -> None:
        """It reports at each tick; not while the parent is slow to read, and not before it has begun."""
        self.worker._tick()
        self.assertEqual(b"", self.transport.value())
        receiver = self.begin()
        self.transport.clear()
        self.worker._tick()
        self.assertTrue(self.transport.value())
        self.assertIn("tick", receiver.does)
        self.transport.clear()
        self.worker.channel.pauseProducing()
        self.worker._tick()
        self.assertEqual(b"", self.transport.value())

    def test_change(self) -> None:
        """It says what came of a change once it is over, and closes sockets that it did not need."""
        for outcome, answer in (
            ("2 sources", SettingsChanged(7, True, "2 sources")),
            (Failure(ConfigError("no such directory")), SettingsChanged(7, False, "no such directory")),
            (Failure(ValueError()), SettingsChanged(7, False, "an unforeseen failure, which the log has in full")),
        ):
            self.setUp()
            receiver = self.begin()
            self.said()
            unused = os.dup(self.a_socket().fileno())
            self.tell(ChangeSettings(7, OTHER, {"tcp:1": 5}), unused)
            self.assertEqual([], self.said())
            receiver.changed.callback(outcome)
            self.assertEqual([answer], self.said())
            self.assertRaises(OSError, os.fstat, unused)
        self.assertEqual(1, len(self.flushLoggedErrors(ValueError)))

    def a_socket(self) -> socket.socket:
        """Return a socket."""
        one, other = socket.socketpair()
        self.addCleanup(one.close)
        other.close()
        return one

    def test_fitness(self) -> None:
        """It answers health checks as its parent says; before it has begun the message is ignored."""
        self.tell(Readiness(True))
        receiver = self.begin()
        for ready in (True, False):
            self.tell(Readiness(ready))
            self.assertIs(ready, receiver.ready)

    def test_reopen(self) -> None:
        """It reopens files on request; before it has begun there are none."""
        self.tell(Reopen())
        receiver = self.begin()
        self.tell(Reopen())
        self.assertEqual(["reopen"], receiver.does)

    def test_stop(self) -> None:
        """It finishes requests under way, and ends well when all is sent; a second order changes nothing."""
        receiver = self.begin()
        self.said()
        self.tell(Finish())
        self.tell(Finish())
        self.assertEqual(["drain for 30.0"], receiver.does)
        self.assertEqual([PortsClosed()], self.said())
        receiver.drained.callback(True)
        self.assertEqual((True, []), (self.transport.disconnecting, self.left))
        self.lose()
        self.assertEqual([0], self.left)

    def test_stop_now(self) -> None:
        """Told to stop now, its status says whether a request was cut off."""
        for whole, status in ((True, 0), (False, CUT_OFF)):
            self.setUp()
            self.tell(StopNow())
            receiver = self.begin()
            self.tell(Finish())
            self.tell(StopNow())
            self.assertTrue(receiver.in_haste)
            receiver.drained.callback(whole)
            self.lose()
            self.assertEqual([status], self.left)

    def test_out_of_time(self) -> None:
        """One that was not told to stop now has given all the time there is: its end is a good one."""
        receiver = self.begin()
        self.tell(Finish())
        receiver.drained.callback(False)
        self.lose()
        self.assertEqual([0], self.left)

    def test_orphaned(self) -> None:
        """When its parent goes it finishes soon what is under way, ends, and says so where people may see it."""
        receiver = self.begin()
        self.lose()
        self.assertEqual([f"drain for {ORPHANED_FOR}"], receiver.does)
        self.assertEqual("The parent is gone: finishing requests in progress", formatEvent(self.stderr[-1]))
        receiver.drained.callback(True)
        self.assertEqual([0], self.left)

    def test_bad_message(self) -> None:
        """The end of a channel by what has come is not taken for the end of the parent."""
        receiver = self.begin()
        self.worker.channel.dataReceived(framed(b"\xc1"))
        self.lose()
        self.assertEqual(["drain for 30.0"], receiver.does)
        self.assertIn("The channel to the parent has failed, ", formatEvent(self.stderr[-1]))

    def test_orphaned_before_it_began(self) -> None:
        """One that has not begun has nothing to finish."""
        self.lose()
        self.assertEqual([0], self.left)
