"""
Tests for L{webhookrx.service.service}: what can be told before anything is opened. The rest is in C{tests/system}.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from twisted.application.service import IService
from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.system.certificates import self_signed, server_settings
from tests.threads_at_once import ThreadsAtOnce
from webhookrx.config.files import read_file, signature_of
from webhookrx.errors import ConfigError
from webhookrx.intake.judge import Receipt
from webhookrx.operations.snapshot import Phase
from webhookrx.router.gate import GateReason
from webhookrx.router.steps.step import Preprocessing
from webhookrx.service.service import ReceiverService, build_service
from webhookrx.settings import ConnectorSettings, Listener, Observer, RouterSettings, Settings, Source
from webhookrx.testing import RECEIVED


class ThreadedReactor(ThreadsAtOnce, MemoryReactorClock):
    """A reactor with threads."""


class BuildTests(SynchronousTestCase):
    """From settings to a service."""

    def build(self, *sources: Source) -> ReceiverService:
        """Build it of those sources."""
        self.reactor = MemoryReactorClock()
        return build_service(Settings(sources, (Observer("stdout", "stdout"),)), self.reactor)

    def test_nothing_opened(self) -> None:
        """To build is not to open, and not to be ready."""
        service = self.build(Source(listeners=(Listener("8181", "tcp:8181"),)))
        self.assertTrue(verifyObject(IService, service))
        self.assertEqual(
            ([], Phase.STARTING, False), (self.reactor.tcpServers, service.receiver.phase, bool(service.running))
        )

    def test_listeners(self) -> None:
        """Each endpoint has one listener, however many sources share it, and one line in the log."""
        shared, other = Listener("8181", "tcp:8181"), Listener("8182", "tcp:8182")
        service = self.build(Source("a", listeners=(shared, other)), Source("b", listeners=(shared,)))
        self.assertEqual(2, len(service.receiver.ports))
        first, second = service.receiver.describe()
        self.assertIn("Listening on 8181 (plain HTTP) for webhook 'a' at /.* (no token); webhook 'b'", first)
        self.assertIn("Listening on 8182", second)

    def test_impossible(self) -> None:
        """A socket that systemd did not pass is found when it is built."""
        listener = Listener("systemd", "systemd:domain=INET:index=7")
        self.assertRaises(ConfigError, self.build, Source(listeners=(listener,)))

    def test_router(self) -> None:
        """Connectors and the state of the gate are seen, and its files are watched: a change is reason for a reload."""
        path = self.mktemp()
        connector = ConnectorSettings("a", 8181, {"product": "webhook", "vendor": "generic"}, Preprocessing())
        listener = Listener("8181", "tcp:8181")
        source = Source("edge-1-a-b", "connector", listeners=(listener,), connector=connector)
        router = RouterSettings("edge-1", watched={path: signature_of(path)}, blocked=(GateReason("f:1: error: why"),))
        service: Any = build_service(
            Settings((source,), (Observer("stdout", "stdout"),), router=router), MemoryReactorClock()
        )
        snapshot = service.receiver.snapshot
        self.assertEqual(
            (["edge-1-a-b"], (GateReason("f:1: error: why"),)),
            ([labels[0] for labels in snapshot.connectors], snapshot.blocked),
        )
        asked: list[str] = []
        service._reloads = SimpleNamespace(request=lambda: asked.append("reload"), tick=lambda: None)
        service._notifier = SimpleNamespace(tick=lambda alive: None)
        service.receiver.phase = Phase.RUNNING
        Path(path).touch()
        for expected in ([], ["reload"], ["reload"]):
            service._tick()
            self.assertEqual(expected, asked)

    def test_counters(self) -> None:
        """Counts for operators are of one moment: what is counted later is not in them."""
        service: Any = self.build(Source(listeners=(Listener("8181", "tcp:8181"),)))
        service.receiver.counters.add("failures")
        service._own_counters.add("reloads", "ok")
        counters = service._counters()
        service.receiver.counters.add("failures")
        self.assertEqual("failures=1 reloads.ok=1", counters.summary())

    def test_reread(self) -> None:
        """
        What a reload has read is no reason for another one, be it good or not; then what the new settings name is
        watched. Whoever reads them is given those in use.
        """
        path, other = self.mktemp(), self.mktemp()
        settings = Settings(
            (), (Observer("stdout", "stdout"),), router=RouterSettings("a", watched={path: signature_of(path)})
        )
        after = replace(settings, router=RouterSettings("b", watched={other: signature_of(other)}))
        given: list[Settings] = []
        found: list[Settings | ConfigError] = [ConfigError("Something is wrong."), after]

        def reread(running: Settings) -> Settings:
            given.append(running)
            result = found.pop(0)
            if isinstance(result, ConfigError):
                raise result
            return result

        service: Any = build_service(settings, ThreadedReactor(), reread)
        service.receiver._message_ids = lambda: Receipt(RECEIVED, "id")
        Path(path).touch()
        self.failureResultOf(Deferred.fromCoroutine(service._change()), ConfigError)
        self.assertEqual([False] * 3, [service._watch.tick() for _ in range(3)])
        self.successResultOf(Deferred.fromCoroutine(service._change()))
        Path(path).unlink()
        self.assertEqual([False] * 3, [service._watch.tick() for _ in range(3)])
        Path(other).touch()
        self.assertEqual([False, True, False], [service._watch.tick() for _ in range(3)])
        self.assertEqual([settings, settings], given)

    def test_read_apart(self) -> None:
        """Settings are read in a thread; when the receiver stops meanwhile, nothing of them is used."""
        before = Settings((), (Observer("stdout", "stdout"),))
        for stops in (False, True):
            reactor = ThreadedReactor()
            service: Any = build_service(before, reactor, lambda _: replace(before, drain_timeout=7.0))
            service.receiver._message_ids = lambda: Receipt(RECEIVED, "id")
            reactor.holds = True
            changing = Deferred.fromCoroutine(service._change())
            self.assertNoResult(changing)
            if stops:
                service.receiver.phase = Phase.DRAINING
            self.assertEqual(0, reactor.work())
            if stops:
                self.assertIn("stops", str(self.failureResultOf(changing, ConfigError).value))
            else:
                self.successResultOf(changing)
            self.assertEqual(30.0 if stops else 7.0, service.settings.drain_timeout)

    def test_blocked(self) -> None:
        """A connector whose files have gone goes on with what was in them, and keeps no reload from going on."""
        directory = self.mktemp()
        os.makedirs(directory)
        tls = server_settings(directory, self_signed("host"))
        checked = {path: read_file(path) for path in (tls.key_file, tls.cert_file)}
        for path in checked:
            os.remove(path)
        connector = ConnectorSettings("a", 8443, {"product": "webhook", "vendor": "generic"}, Preprocessing())
        source = Source("a", "connector", listeners=(Listener("8443", "tcp:8443", tls=tls),), connector=connector)
        settings = Settings(
            (source,),
            (Observer("stdout", "stdout"),),
            router=RouterSettings("edge-1", blocked=(GateReason("why"),), tls_files=checked),
        )
        service: Any = build_service(settings, MemoryReactorClock())
        service.receiver._message_ids = lambda: Receipt(RECEIVED, "id")
        self.assertEqual(1, len(service.receiver.ports))
        for change, said in (
            (settings, "the settings are unchanged; files were read and opened again; the router is blocked"),
            (replace(settings, drain_timeout=7.0), "1 sources (1 unchanged); 1 endpoints, 1 observers; the router is"),
        ):
            self.assertIn(said, self.successResultOf(Deferred.fromCoroutine(service.receiver.change(change))))
        self.assertRaises(
            ConfigError, build_service, replace(settings, router=RouterSettings("edge-1")), MemoryReactorClock()
        )

    def test_stop_before_the_start(self) -> None:
        """What was not started has nothing to stop."""
        service = self.build(Source(listeners=(Listener("8181", "tcp:8181"),)))
        self.successResultOf(service.stopService())
