"""
Tests for L{webhookrx.service.service} with real ports, threads and files, in this process.
"""

from __future__ import annotations

import json
import os
import platform
import signal
from dataclasses import replace
from typing import Any

import treq
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import clientFromString, connectProtocol
from twisted.internet.protocol import Protocol
from twisted.internet.task import deferLater
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, HTTPConnectionPool

from tests.system.certificates import A_YEAR_LATER, Authority, certificates_pem, key_pem, write
from webhookrx.errors import CannotStart, ConfigError
from webhookrx.operations.signals import CUT_OFF
from webhookrx.service import known_observers
from webhookrx.service import service as service_module
from webhookrx.service.reload import DISTANCE
from webhookrx.service.service import build_service
from webhookrx.settings import TLS, Group, Limits, Listener, Observer, Settings, Source
from webhookrx.speedups import compiled
from webhookrx.testing import MemoryObserver
from webhookrx.transport.listener_service import ListenerService

ADMIN = Listener("9090", "tcp:0:interface=127.0.0.1:backlog=9")


class ServiceCase(TestCase):
    """Starts receivers."""

    timeout = 20

    def setUp(self) -> None:
        """Have a client, and collect the log."""
        self.path = os.path.abspath(self.mktemp())
        self.pool = HTTPConnectionPool(reactor)
        self.client = treq.client.HTTPClient(Agent(reactor, pool=self.pool))
        self.addCleanup(self.pool.closeCachedConnections)
        self.events: list[Any] = []
        globalLogPublisher.addObserver(self.events.append)
        self.addCleanup(globalLogPublisher.removeObserver, self.events.append)

    def make(self, observer: str = "", **options: Any) -> Any:
        """Make a receiver for a free port."""
        settings = Settings(
            (Source(listeners=(Listener("tcp:0", "tcp:0:interface=127.0.0.1"),)),),
            (Observer(f"file:{self.path}", "file", (observer or self.path,)),),
            **options,
        )
        return build_service(settings, reactor)

    def start(self, **options: Any) -> Any:
        """Start a receiver."""
        service = self.make(**options)
        service.privilegedStartService()
        service.startService()
        return service

    async def post(self, service: Any, body: bytes) -> int:
        """Send a message; return the status."""
        url = f"http://127.0.0.1:{service.receiver.ports[0].address.port}/in"
        response = await self.client.post(url, data=body)
        await response.content()
        return int(response.code)

    def lines(self) -> list[str]:
        """The messages in the file."""
        with open(self.path) as stream:
            return [json.loads(line)["MESSAGE"] for line in stream]

    def reloaded(self) -> int:
        """How many reloads have ended."""
        return sum("Reload" in str(event.get("log_format")) for event in self.events) // 2

    async def hang_up(self) -> None:
        """Send SIGHUP to ourselves and wait until it is dealt with."""
        before = self.reloaded()
        os.kill(os.getpid(), signal.SIGHUP)
        while self.reloaded() == before:
            await deferLater(reactor, 0.01)


class ServiceTests(ServiceCase):
    """A whole receiver."""

    def test_messages(self) -> Deferred[None]:
        """With each level of acknowledgement messages reach the file, before or after the answer; it stops cleanly."""

        async def run() -> None:
            for ack in ("durable", "written", "queued"):
                service = self.start(ack=ack)
                self.assertEqual(200, await self.post(service, ack.encode()))
                if ack != "queued":
                    self.assertEqual(ack, self.lines()[-1])
                await service.stopService()
                self.assertEqual(ack, self.lines()[-1])

        return Deferred.fromCoroutine(run())

    def test_hang_up(self) -> Deferred[None]:
        """On SIGHUP the file is opened anew by its name, and the counts are in the log."""

        async def run() -> None:
            service = self.start()
            self.assertEqual(200, await self.post(service, b"1"))
            os.rename(self.path, self.path + ".1")
            await self.hang_up()
            self.assertEqual(200, await self.post(service, b"2"))
            await service.stopService()
            self.assertEqual(["2"], self.lines())
            self.assertIn("messages.default=1", str([event.get("counts") for event in self.events]))

        before = [signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)]
        result = Deferred.fromCoroutine(run())

        def check(_: object) -> None:
            after = [signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)]
            self.assertEqual(before, after)

        return result.addCallback(check)

    def test_reload(self) -> Deferred[None]:
        """On SIGHUP what is read anew is used: sources, observers, limits and the level of acknowledgement."""

        async def run() -> None:
            service = self.start()
            self.assertEqual(200, await self.post(service, b"1"))
            (source,), other = service.settings.sources, self.path + ".other"
            settings = replace(
                service.settings,
                sources=(replace(source, paths=("/in",)),),
                observers=(*service.settings.observers, Observer(f"file:{other}", "file", (other,))),
                ack="written",
                limits=Limits(body=1, queue_messages=7),
                drain_timeout=7.0,
            )
            service._reread = lambda _: settings
            await self.hang_up()
            self.assertEqual(413, await self.post(service, b"22"))
            self.assertEqual(200, await self.post(service, b"3"))
            self.assertEqual((settings, 1), (service.settings, service._counters().get("reloads", "ok")))
            self.assertNotIn("reload", service.status())
            said = "1 sources (1 changed); 1 endpoints, 2 observers"
            self.assertTrue(any(said in str(event.get("text")) for event in self.events))
            await service.stopService()
            self.assertEqual(["1", "3"], self.lines())
            with open(other) as stream:
                self.assertEqual(["3"], [json.loads(line)["MESSAGE"] for line in stream])

        return Deferred.fromCoroutine(run())

    def test_failed_reload(self) -> Deferred[None]:
        """What can't be used changes nothing, is logged, and is in the status until a reload goes well."""

        async def run() -> None:
            service = self.start()
            (source,), before = service.settings.sources, service.settings
            elsewhere = replace(source, listeners=(Listener("tcp:0", "tcp:0:backlog=9:interface=127.0.0.1"),))
            bad = Observer("memory", "memory")
            service._reread = lambda _: replace(before, sources=(elsewhere,), observers=(bad,))
            self.patch(known_observers, "build_observer", self._build_unopenable)
            await self.hang_up()
            self.assertIs(before, service.settings)
            self.assertEqual(200, await self.post(service, b"1"))
            self.assertIn("0 waiting; the last reload failed: It can't be opened.", service.status())
            self.assertEqual(1, len(service.receiver.ports))
            service._reread = lambda _: before
            await self.hang_up()
            self.assertNotIn("failed", service.status())
            await service.stopService()
            self.assertEqual(["1"], self.lines())

        return Deferred.fromCoroutine(run())

    @staticmethod
    def _build_unopenable(observer: Observer, ack: str, group: Group) -> MemoryObserver:
        memory = MemoryObserver()
        memory.open_error = ConfigError("It can't be opened.")
        return memory

    def test_stop_during_reload(self) -> Deferred[None]:
        """A reload that is under way when the service stops changes nothing any more, and leaves no port open."""

        async def run() -> None:
            service = self.start()
            (source,), before = service.settings.sources, service.settings
            other = self.path + ".other"
            elsewhere = replace(source, listeners=(Listener("tcp:0", "tcp:0:backlog=9:interface=127.0.0.1"),))
            service._reread = lambda _: replace(
                before, sources=(elsewhere,), observers=(Observer(f"file:{other}", "file", (other,)),)
            )
            replaced: Deferred[None] = Deferred()
            service.receiver.chain.replace = lambda observers, ack: replaced
            await deferLater(reactor, 0)  # only a running reactor has signals handled
            service.hang_up()
            stopped = service.stopService()
            replaced.callback(None)
            await stopped
            # The thread that reads may end after the service.
            while not any("The receiver stops." in str(event.get("problem")) for event in self.events):
                await deferLater(reactor, 0.01)
            self.assertIs(before, service.settings)

        return Deferred.fromCoroutine(run())

    def test_again(self) -> Deferred[None]:
        """What was stopped can be started again."""

        async def run() -> None:
            service = self.start()
            self.assertEqual(200, await self.post(service, b"1"))
            await service.stopService()
            service.privilegedStartService()
            service.startService()
            self.assertEqual(200, await self.post(service, b"2"))
            await service.stopService()
            self.assertEqual(["1", "2"], self.lines())

        return Deferred.fromCoroutine(run())

    def test_hanging_observer(self) -> Deferred[None]:
        """An observer that hangs does not hold the stop up for longer than it may take, and it is said."""

        async def run() -> None:
            service = self.start(drain_timeout=0.2)
            service.receiver.chain.stop = Deferred
            await service.stopService()
            self.assertTrue(any("An observer hangs" in str(event.get("log_format")) for event in self.events))

        return Deferred.fromCoroutine(run())

    def test_impatient_stop(self) -> Deferred[None]:
        """A sender that never ends its request does not hold the stop up for longer than it may take."""

        async def run() -> None:
            service = self.start(drain_timeout=0.2)
            port = service.receiver.ports[0].address.port
            sender = await connectProtocol(clientFromString(reactor, f"tcp:127.0.0.1:{port}"), Protocol())
            sender.transport.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
            await deferLater(reactor, 0.1)
            await service.stopService()
            await deferLater(reactor, 0.01)

        return Deferred.fromCoroutine(run())

    def test_stop_now(self) -> Deferred[None]:
        """Told to stop now, it waits for no sender, and the exit status says that one was cut off."""

        async def run() -> None:
            service = self.start()
            statuses: list[int] = []
            self.patch(service_module, "end_with", statuses.append)
            service.receiver.chain.stop = Deferred
            stopped = service.stopService()
            await deferLater(reactor, 0.01)
            service.receiver.stop_now()
            await stopped
            self.assertEqual([CUT_OFF], statuses)

        return Deferred.fromCoroutine(run())

    def test_stop_now_at_once(self) -> Deferred[None]:
        """Told to stop now before it has begun to stop, it ends at once; and well, if no request is cut off."""

        async def run() -> None:
            service = self.start()
            self.patch(service_module, "end_with", self.fail)
            service.receiver.stop_now()
            await service.stopService()

        return Deferred.fromCoroutine(run())

    def test_cannot_open(self) -> None:
        """A file that can't be opened ends the start with one line that names it."""
        service = self.make()
        os.mkdir(self.path)
        error = self.assertRaises(CannotStart, service.startService)
        self.assertIn(self.path, str(error))
        self.assertEqual(str(error), error.code)

    def test_cannot_be_built(self) -> None:
        """One that could never be opened is found before anything starts."""
        error = self.assertRaises(ConfigError, self.make, "/nowhere/messages")
        self.assertIn("/nowhere", str(error))


class AdminTests(ServiceCase):
    """The endpoint for operators."""

    def listeners(self, service: Any) -> list[ListenerService]:
        """Return the ports of all endpoints; that for operators comes last."""
        return [*service.receiver.ports, *(each.service for each in service._admin.listeners)]

    async def look(self, service: Any, page: str) -> tuple[int, str]:
        """Ask for a page; return status and text."""
        (endpoint,) = service._admin.listeners
        response = await self.client.get(f"http://127.0.0.1:{endpoint.service.address.port}{page}")
        return response.code, (await response.content()).decode()

    def test_pages(self) -> Deferred[None]:
        """It tells how the receiver is, and counts what it did; it can come by a reload, and go by one."""

        async def run() -> None:
            service = self.start()
            without = service.settings
            service._reread = lambda _: replace(without, admin=ADMIN)
            await self.hang_up()
            self.assertTrue(any("Health and metrics on" in str(event.get("log_format")) for event in self.events))
            self.assertEqual(200, await self.post(service, b"1"))
            self.assertEqual((200, '{"status":"ready","reasons":[]}\n'), await self.look(service, "/readyz"))
            status, text = await self.look(service, "/metrics")
            self.assertEqual(200, status)
            path = "pure" if compiled is None else "compiled"
            for line in (
                'webhookrx_messages_total{source="default"} 1.0',
                'webhookrx_reloads_total{result="ok"} 1.0',
                f'webhookrx_build_info{{path="{path}",python="{platform.python_version()}"',
            ):
                self.assertIn(f"\n{line}", text)
            service._reread = lambda _: without
            await self.hang_up()
            self.assertEqual(1, len(service.receiver.ports))
            await service.stopService()

        return Deferred.fromCoroutine(run())

    def test_end(self) -> Deferred[None]:
        """It goes on to answer while senders finish, and says that no more should come."""

        async def run() -> None:
            service = self.start(admin=ADMIN)
            address = service.receiver.ports[0].address
            sender = await connectProtocol(clientFromString(reactor, f"tcp:127.0.0.1:{address.port}"), Protocol())
            request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"
            sender.transport.write(request)
            while service.receiver._listeners.requests == 0:
                await deferLater(reactor, 0.01)
            stopped = service.stopService()
            await deferLater(reactor, 0.01)
            status, text = await self.look(service, "/readyz")
            self.assertEqual(503, status)
            self.assertIn("The receiver is draining.", text)
            self.assertEqual(200, (await self.look(service, "/livez"))[0])
            sender.transport.write(b"x")
            await stopped
            self.assertEqual(["x"], self.lines())

        return Deferred.fromCoroutine(run())

    def test_restart(self) -> Deferred[None]:
        """It is not ready before it has started."""
        service = self.make(admin=ADMIN)
        self.assertEqual([None, None], [each.address for each in self.listeners(service)])

        async def run() -> None:
            service.startService()
            self.assertEqual(200, (await self.look(service, "/healthz"))[0])
            await service.stopService()

        return Deferred.fromCoroutine(run())


class CertificateTests(TestCase):
    """Certificates are read again on SIGHUP."""

    timeout = 20

    def test_bad_certificate_keeps_the_old(self) -> Deferred[None]:
        """One that is no good leaves all as it was, and the file is named."""
        identity = Authority("root").issue("host", not_after=A_YEAR_LATER)
        path = write(os.path.abspath(self.mktemp()), key_pem(identity.key) + certificates_pem(identity.certificate))
        listener = Listener("ssl:0", "tcp:0:interface=127.0.0.1", tls=TLS(path, path))
        messages = os.path.abspath(self.mktemp())
        settings = Settings((Source(listeners=(listener,)),), (Observer("file:x", "file", (messages,)),))
        service = build_service(settings, reactor)

        async def run() -> None:
            service.startService()
            self.assertIn("client certificate not requested", service.receiver.describe()[0])
            service.hang_up()
            self.assertNotIn("failed", service.status())
            write(path, b"junk")
            await deferLater(reactor, DISTANCE, lambda: None)
            service.hang_up()
            self.assertIn("the last reload failed", service.status())
            self.assertIn(path, service.status())
            await service.stopService()

        return Deferred.fromCoroutine(run())
