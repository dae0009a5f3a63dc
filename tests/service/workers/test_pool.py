"""
Tests for L{webhookrx.service.workers.pool} in its service: with workers that are no processes. The rest is in
C{tests/system}.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from twisted.application.service import IService
from twisted.internet.defer import Deferred
from twisted.internet.error import ReactorNotRunning
from twisted.internet.task import Clock
from twisted.logger import formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.operations.snapshots import make_snapshot
from tests.threads_at_once import ThreadsAtOnce
from tests.transport.test_shared_ports import FakeEndpoint, FakePort
from webhookrx.config.files import signature_of
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.operations.counters import Counters
from webhookrx.operations.signals import CUT_OFF
from webhookrx.operations.snapshot import Level, Phase
from webhookrx.router.gate import GateReason
from webhookrx.router.steps.step import Preprocessing
from webhookrx.service import service as service_module
from webhookrx.service.service import ReceiverService, build_service
from webhookrx.service.workers import pool as pool_module
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
    ToWorker,
)
from webhookrx.service.workers.pool import WorkerPool
from webhookrx.service.workers.process import WorkerOwner
from webhookrx.settings import ConnectorSettings, Listener, Observer, RouterSettings, Settings, Source
from webhookrx.transport.listener_service import CannotListen
from webhookrx.version import version_line

LOGGED = Listener("80", "tcp:80")
SETTINGS = Settings((Source(listeners=(LOGGED,)),), (Observer("stdout", "stdout"),), drain_timeout=20.0, workers=2)


class _Worker:
    """A worker that says what the test has it say."""

    def __init__(self, owner: WorkerOwner) -> None:
        self.owner = owner
        self.told: list[ToWorker] = []
        self.descriptors: list[int] = []

    def send(self, message: ToWorker, descriptors: Sequence[int] = ()) -> None:
        self.told.append(message)
        self.descriptors = list(descriptors)

    def kill(self) -> None:
        self.owner.ended("was killed by SIGKILL", -9)

    def answer(self, ok: bool, text: str) -> None:
        """Answer the last change of settings."""
        change = self.told[-1]
        assert isinstance(change, ChangeSettings)
        self.owner.received(SettingsChanged(change.order, ok, text))

    def end(self, status: int = 0) -> None:
        """End as it was told to."""
        self.owner.received(PortsClosed())
        self.owner.ended(f"ended with status {status}", status)


class _Ticker:
    """Ticks when the test says."""

    def __init__(self, reactor: object, tick: Callable[[], None]) -> None:
        self.tick = tick
        self.runs = False

    def startService(self) -> None:
        self.runs = True

    def stopService(self) -> None:
        self.runs = False


class _Signals:
    """Takes no signals."""

    def __init__(self, reactor: object, **calls: Any) -> None:
        self.calls = calls
        self.taken: list[str] = []

    def take_hang_up(self) -> None:
        self.taken.append("hang up")

    def take_termination(self) -> None:
        self.taken.append("termination")

    def release(self) -> None:
        self.taken.append("release")


class _Notifier:
    """Records notifications to the service manager."""

    def __init__(self, environ: object) -> None:
        self.told: list[str] = []
        self.alive: list[bool] = []

    def ready(self, status: str) -> None:
        self.told.append(f"ready: {status}")

    def reloading(self) -> None:
        self.told.append("reloading")

    def stopping(self, status: str) -> None:
        self.told.append("stopping")

    def extend(self, seconds: float) -> None:
        self.told.append(f"extend {seconds}")

    def status(self, text: str) -> None:
        self.told.append(f"status: {text}")

    def tick(self, *, alive: bool) -> None:
        self.alive.append(alive)


class SupervisorTests(ThreadsAtOnce, SynchronousTestCase):
    """
    Two workers behind port 80.
    """

    def setUp(self) -> None:
        self.launched: list[_Worker] = []
        self.does: list[str] = []
        self.statuses: list[int] = []
        self.clock = Clock()
        self.reread: Settings | Exception = SETTINGS
        self.given: list[Settings] = []
        self.patch(service_module, "Ticker", _Ticker)
        self.patch(service_module, "Signals", _Signals)
        self.patch(service_module, "Notifier", _Notifier)
        self.patch(service_module, "end_with", self.statuses.append)
        self.patch(pool_module, "socket_endpoint", self._open_socket)
        self.patch(pool_module.time, "monotonic", self.clock.seconds)
        self.events: list[Any] = []
        globalLogPublisher.addObserver(self.events.append)
        self.addCleanup(globalLogPublisher.removeObserver, self.events.append)
        self.waiting: list[Callable[[], object]] = []
        self.service: Any = ReceiverService(WorkerPool(SETTINGS, self, self._launch), self, self._reread)
        self.addCleanup(self._close_lock)

    # -- what is around it

    def _reread(self, running: Settings) -> Settings:
        self.given.append(running)
        if isinstance(self.reread, Exception):
            raise self.reread
        return self.reread

    def _close_lock(self) -> None:
        if self.service.receiver._lock_fd >= 0:
            os.close(self.service.receiver._lock_fd)

    def _launch(self, owner: WorkerOwner) -> _Worker:
        self.launched.append(_Worker(owner))
        return self.launched[-1]

    def _open_socket(self, reactor: object, listener: Listener) -> FakeEndpoint:
        return FakeEndpoint(int(listener.text), self.does)

    def callWhenRunning(self, call: Callable[[], object]) -> None:
        """Stand for the reactor."""
        self.waiting.append(call)

    def callLater(self, seconds: float, call: Callable[[], object]) -> Any:
        """Stand for the reactor."""
        return self.clock.callLater(seconds, call)

    def stop(self) -> None:
        """Stand for the reactor."""
        self.does.append("stop")
        raise ReactorNotRunning

    # -- what happens to it

    def start(self) -> None:
        """Have it start, up to where its workers begin."""
        self.service.privilegedStartService()
        self.service.startService()
        for call in self.waiting:
            call()

    def be_up(self) -> tuple[_Worker, _Worker]:
        """Have it start wholly."""
        self.start()
        for worker in self.launched:
            worker.owner.received(Began())
        one, other = self.launched
        return one, other

    def end(self) -> Deferred[None]:
        """Have it end, with its workers."""
        stopped: Deferred[None] = self.service.stopService()
        for worker in self.launched:
            worker.end()
        return stopped

    def log(self) -> str:
        """Return what was logged."""
        return "\n".join(formatEvent(event) for event in self.events)

    # -- tests

    def test_nothing_opened(self) -> None:
        """To build is not to open."""
        self.assertTrue(verifyObject(IService, self.service))
        self.assertEqual(([], []), (self.does, self.launched))
        self.successResultOf(self.service.stopService())

    def test_start(self) -> None:
        """Ports are opened first and not read here; workers get them, and it is ready when all are."""
        self.service.privilegedStartService()
        self.assertEqual(["80 opens", "80 stops reading"], self.does)
        self.start()
        self.assertEqual(2, len(self.does))
        expected = [[Begin(SETTINGS, number, 2, {"tcp:80": 80})] for number in (0, 1)]
        self.assertEqual(expected, [worker.told for worker in self.launched])
        self.assertEqual(80, self.launched[0].descriptors[0])
        self.launched[0].owner.received(Began())
        self.assertEqual((Phase.STARTING, []), (self.service.receiver.phase, self.service._notifier.told))
        self.launched[1].owner.received(Began())
        self.assertEqual(Phase.RUNNING, self.service.receiver.phase)
        self.assertEqual(["ready: 2 of 2 workers, 0 messages, 0 refused, 0 waiting"], self.service._notifier.told)
        self.assertIn(version_line(), self.log())
        self.assertIn("2 workers share all endpoints\nListening on 127.0.0.1:80", self.log())
        self.successResultOf(self.end())

    def test_cannot_listen(self) -> None:
        """A port that can't be opened ends the start."""
        settings = replace(SETTINGS, sources=(Source(listeners=(Listener("13", "tcp:13"),)),))
        service = ReceiverService(WorkerPool(settings, self, self._launch), self, self._reread)
        self.assertRaises(CannotListen, service.privilegedStartService)

    def test_cannot_begin(self) -> None:
        """A worker that can't begin ends all of it, once, with its words and a status that says so."""
        self.start()
        for worker in self.launched:
            worker.owner.received(CannotBegin("no such directory"))
            worker.owner.ended("ended with status 1", 1)
        self.assertEqual(([CUT_OFF], 1), (self.statuses, self.does.count("stop")))
        self.assertIn("no such directory", self.log())

    def test_stopped_before_it_began(self) -> None:
        """One that is stopped before the reactor runs starts no worker."""
        self.service.startService()
        self.successResultOf(self.service.stopService())
        for call in self.waiting:
            call()
        self.assertEqual([], self.launched)

    def test_view(self) -> None:
        """Counts and snapshot are those of all workers, and what only the parent knows."""
        one, other = self.be_up()
        counters = Counters()
        counters.sources["default"].messages = 5
        snapshot = make_snapshot(phase=Phase.DRAINING, connections=Level(3, 10), reload_succeeded=False)
        for worker in (one, other):
            worker.owner.received(Report(counters, snapshot, False))
        seen = self.service._snapshot()
        self.assertEqual((Phase.RUNNING, Level(6, 20), True), (seen.phase, seen.connections, seen.reload_succeeded))
        self.assertEqual(({"80": True}, ["default"]), (seen.endpoints, seen.sources))
        one.owner.ended("was killed by SIGKILL", -9)
        total = self.service._counters()
        self.assertEqual((10, 1), (total.sources["default"].messages, total.get("worker_restarts")))
        self.assertEqual(Level(3, 10), self.service._snapshot().connections)
        other.owner.ended("was killed by SIGKILL", -9)
        self.assertEqual(Level(0, 0), self.service._snapshot().connections)

    def test_ticks(self) -> None:
        """The workers are looked at, and the service manager hears of it: not while one is stuck."""
        one, other = self.be_up()
        self.service._notifier.told.clear()
        for _ in range(20):
            self.service._ticker.tick()
        self.assertEqual(["status: 2 of 2 workers, 0 messages, 0 refused, 0 waiting"], self.service._notifier.told)
        self.assertIn(Readiness(True), one.told)
        self.service.receiver.phase = Phase.DRAINING
        self.service._ticker.tick()
        self.assertEqual((Readiness(False), Readiness(False)), (one.told[-1], other.told[-1]))
        self.service.receiver.phase = Phase.RUNNING
        other.owner.received(Report(Counters(), make_snapshot(), True))
        self.service._ticker.tick()
        self.assertEqual([True, False], self.service._notifier.alive[-2:])
        one.owner.ended("was killed by SIGKILL", -9)
        self.clock.advance(1.0)
        self.service._ticker.tick()
        self.assertEqual(3, len(self.launched))

    def test_reload(self) -> None:
        """A reload opens what is added, has each worker change, and then closes what is removed."""
        one, other = self.be_up()
        counters = Counters()
        counters.sources["default"].messages = 3
        one.owner.received(Report(counters, make_snapshot(), False))
        self.does.clear()
        self.reread = replace(SETTINGS, sources=(Source(listeners=(Listener("81", "tcp:81"),)),))
        self.service.hang_up()
        self.assertEqual(["81 opens", "81 stops reading"], self.does)
        one.answer(True, "1 sources")
        other.answer(True, "1 sources")
        self.assertEqual("80 closes", self.does[-1])
        self.assertEqual([Reopen(), Reopen()], [one.told[-1], other.told[-1]])
        self.assertIn("Reloading. Counts so far: messages.default=3\n", self.log())
        self.assertIn("Reloaded: 1 sources", self.log())
        self.assertIn("Listening on 127.0.0.1:81", self.log())
        self.assertEqual(self.reread, self.service.settings)

    def test_reload_still_closing(self) -> None:
        """A reload is done once what it removes is closed, so that connections to it are refused."""
        one, other = self.be_up()
        closing: Deferred[None] = Deferred()
        self.patch(FakePort, "stopListening", lambda port: closing)
        self.reread = replace(SETTINGS, sources=(Source(listeners=(Listener("81", "tcp:81"),)),))
        self.service.hang_up()
        one.answer(True, "1 sources")
        other.answer(True, "1 sources")
        self.assertNotIn("Reloaded", self.log())
        closing.callback(None)
        self.assertIn("Reloaded: 1 sources", self.log())

    def test_same_settings(self) -> None:
        """One that changes nothing is brought to the workers all the same: files may have changed."""
        one, other = self.be_up()
        before = self.log().count("Listening on")
        self.service.hang_up()
        one.answer(True, "the settings are the same")
        other.answer(True, "the settings are the same")
        self.assertIn("Reloaded: the settings are the same", self.log())
        self.assertEqual(before, self.log().count("Listening on"))

    def test_failed_reload(self) -> None:
        """Where a worker can't go by the settings, all stays as it was."""
        one, _ = self.be_up()
        self.does.clear()
        self.reread = replace(SETTINGS, sources=(Source(listeners=(LOGGED, Listener("81", "tcp:81"))),))
        self.service.hang_up()
        one.answer(False, "no such file")
        self.assertEqual(["81 opens", "81 stops reading", "81 closes"], self.does)
        self.assertEqual(SETTINGS, self.service.settings)
        self.assertIn("the last reload failed: no such file", self.service.status())
        self.assertFalse(self.service._snapshot().reload_succeeded)

    def test_wrong_settings(self) -> None:
        """Where settings are wrong no worker hears of them, but files are opened anew all the same."""
        one, other = self.be_up()
        self.reread = ConfigError("Something is wrong.")
        self.service.hang_up()
        self.assertEqual(
            [[Begin, Readiness, Reopen]] * 2, [[type(message) for message in w.told] for w in (one, other)]
        )

    def test_early_reload(self) -> None:
        """One that is asked for before all workers are up comes after that."""
        self.start()
        self.service.hang_up()
        self.assertIsInstance(self.launched[0].told[-1], Begin)
        for worker in self.launched:
            worker.owner.received(Began())
        self.assertIsInstance(self.launched[0].told[-1], ChangeSettings)

    def watch(self, path: str) -> Settings:
        """Have the service built anew, for a router that watches a file; return its settings."""
        router = RouterSettings("edge-1", watched={path: signature_of(path)}, blocked=(GateReason("f:1: error: why"),))
        connector = ConnectorSettings("a", 80, {"product": "webhook", "vendor": "generic"}, Preprocessing())
        source = Source("edge-1-a-b", "connector", listeners=(LOGGED,), connector=connector)
        settings = replace(SETTINGS, sources=(source,), router=router)
        self.service = ReceiverService(WorkerPool(settings, self, self._launch), self, self._reread)
        return settings

    def test_changed_file(self) -> None:
        """A file that has changed and stays so is reason for a reload; then those of the new settings are watched."""
        path, other = self.mktemp(), self.mktemp()
        settings = self.watch(path)
        one, worker = self.be_up()
        Path(path).touch()
        self.service._ticker.tick()
        self.assertIsInstance(one.told[-1], Readiness)
        self.reread = replace(settings, router=RouterSettings("edge-2", watched={other: signature_of(other)}))
        self.service._ticker.tick()
        one.answer(True, "1 sources")
        worker.answer(True, "1 sources")
        self.assertIn(f"A file that is watched has changed: {quoted(path)}", self.log())
        self.assertIn("Reloaded: 1 sources", self.log())
        for change, times in ((Path(path).unlink, 1), (Path(other).touch, 2)):
            change()
            for _ in range(3):
                self.service._ticker.tick()
            self.assertEqual(times, self.log().count("A file that is watched has changed"))

    def test_changed_file_that_was_read(self) -> None:
        """Files that a reload has read cause no other one, even if it failed; reread gets the settings in use."""
        path = self.mktemp()
        settings = self.watch(path)
        self.be_up()
        Path(path).touch()
        self.reread = ConfigError("Something is wrong.")
        self.service.hang_up()
        for _ in range(3):
            self.service._ticker.tick()
        self.assertEqual(0, self.log().count("A file that is watched has changed"))
        self.assertEqual([settings], self.given)

    def test_changed_while_it_starts(self) -> None:
        """A file that changes before all workers are up is looked at when they are."""
        path = self.mktemp()
        self.watch(path)
        self.start()
        Path(path).touch()
        for _ in range(3):
            self.service._ticker.tick()
        self.assertIsInstance(self.launched[0].told[-1], Begin)
        for worker in self.launched:
            worker.owner.received(Began())
        self.assertIsInstance(self.launched[0].told[-1], ChangeSettings)

    def test_router(self) -> None:
        """Connectors and the state of the gate are those of the settings, whether or not a worker lives."""
        self.watch(self.mktemp())
        self.be_up()
        snapshot = self.service._snapshot()
        labels = ("edge-1-a-b", "a", "webhook", "80", "webhook", "generic", "product=webhook,vendor=generic")
        self.assertEqual(((labels,), (GateReason("f:1: error: why"),)), (snapshot.connectors, snapshot.blocked))
        self.assertIn("; the router is blocked: f:1: error: why", self.service.status())
        self.assertEqual("", snapshot.not_taken)
        self.reread = ConfigError("Something is wrong.")
        self.service.hang_up()
        self.assertEqual("The rules file is not in use: Something is wrong.", self.service._snapshot().not_taken)
        self.assertEqual(1, self.service.status().count("Something is wrong."))

    def test_no_text(self) -> None:
        """The name of a file that is not UTF-8 can't be sent to workers."""
        settings = replace(SETTINGS, observers=(Observer("file", "file", ("/\udcff",)),))
        self.assertRaises(ConfigError, WorkerPool, settings, self, self._launch)

    def test_stop(self) -> None:
        """Ports close when no worker accepts any more; it ends when all have, and says what was counted."""
        one, other = self.be_up()
        self.does.clear()
        stopped = self.service.stopService()
        self.assertEqual([Finish(), Finish()], [one.told[-1], other.told[-1]])
        self.assertEqual(Phase.DRAINING, self.service.receiver.phase)
        one.end()
        self.assertEqual([], self.does)
        self.assertNoResult(stopped)
        other.end()
        self.assertEqual(["80 closes"], self.does)
        self.successResultOf(stopped)
        self.assertEqual(([], False), (self.statuses, self.service._ticker.runs))
        self.assertEqual(["stopping", "extend 25.0"], self.service._notifier.told[-2:])
        self.assertIn("Stopped. Counts: none", self.log())

    def test_stop_now(self) -> None:
        """Told once more, workers stop now, and one that does not end is killed; the status says so."""
        one, _ = self.be_up()
        self.service.receiver.stop_now()
        self.assertIsInstance(one.told[-1], Readiness)
        stopped = self.service.stopService()
        self.service.receiver.stop_now()
        self.assertEqual([Finish(), StopNow()], one.told[-2:])
        one.end(CUT_OFF)
        self.clock.advance(1.0)
        self.successResultOf(stopped)
        self.assertEqual([CUT_OFF], self.statuses)

    def test_signals(self) -> None:
        """Signals are taken before the reactor takes them and after, and given back."""
        self.be_up()
        self.assertEqual(["hang up", "termination", "termination"], self.service._signals.taken)
        self.assertEqual(20.0, self.service._signals.calls["time_to_stop"]())
        self.service._signals.calls["stop"]()
        self.assertIn("stop", self.does)
        self.successResultOf(self.end())
        self.assertEqual("release", self.service._signals.taken[-1])

    def test_build(self) -> None:
        """It can be built of settings alone."""
        service = build_service(SETTINGS, self)
        self.assertEqual(SETTINGS, service.settings)
