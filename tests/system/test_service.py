"""
Tests for L{webhookrx.service} with real ports, threads and files, in this process.
"""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import treq
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, HTTPConnectionPool

from tests.system.certificates import A_YEAR_LATER, Authority, certificates_pem, key_pem, write
from webhookrx.config.settings import TLS, Limits, Listener, Observer, Settings, Source
from webhookrx.errors import CannotStart, ConfigError
from webhookrx.service import build


class ServiceTests(TestCase):
    """A whole receiver."""

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
        return build(settings, reactor)

    def start(self, **options: Any) -> Any:
        """Start a receiver."""
        service = self.make(**options)
        service.privilegedStartService()
        service.startService()
        return service

    async def post(self, service: Any, body: bytes) -> int:
        """Send a message; return the status."""
        url = f"http://127.0.0.1:{service.listeners[0].address.port}/in"
        response = await self.client.post(url, data=body)
        await response.content()
        return int(response.code)

    def lines(self) -> list[str]:
        """The messages in the file."""
        with open(self.path) as stream:
            return [json.loads(line)["MESSAGE"] for line in stream]

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
            os.kill(os.getpid(), signal.SIGHUP)
            while not any("Reopening" in str(event.get("log_format")) for event in self.events):
                await deferLater(reactor, 0.01)
            self.assertEqual(200, await self.post(service, b"2"))
            await service.stopService()
            self.assertEqual(["2"], self.lines())

        before = signal.getsignal(signal.SIGHUP)
        result = Deferred.fromCoroutine(run())
        return result.addCallback(lambda _: self.assertEqual(before, signal.getsignal(signal.SIGHUP)))

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
        """An observer that hangs does not hold the stop up for longer than an answer may take, and it is said."""

        async def run() -> None:
            service = self.start(limits=Limits(answer_time=0.1))
            service.chain.stop = Deferred
            await service.stopService()
            self.assertTrue(any("An observer hangs" in str(event.get("log_format")) for event in self.events))

        return Deferred.fromCoroutine(run())

    def test_few_files(self) -> Deferred[None]:
        """A process that may not open as many files as connections are allowed says so at its start."""

        async def run() -> None:
            service = self.start(limits=Limits(connections=10**9))
            await service.stopService()
            self.assertTrue(any("may open" in str(event.get("problem")) for event in self.events))

        return Deferred.fromCoroutine(run())

    def test_impatient_stop(self) -> Deferred[None]:
        """A sender that never ends its request does not hold the stop up for longer than an answer may take."""

        async def run() -> None:
            service = self.start(limits=Limits(answer_time=0.1))
            from twisted.internet.endpoints import clientFromString, connectProtocol
            from twisted.internet.protocol import Protocol

            port = service.listeners[0].address.port
            sender = await connectProtocol(clientFromString(reactor, f"tcp:127.0.0.1:{port}"), Protocol())
            sender.transport.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
            await deferLater(reactor, 0.1)
            await service.stopService()
            await deferLater(reactor, 0.01)

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


class CertificateTests(TestCase):
    """Certificates are read again on SIGHUP."""

    timeout = 20

    def test_bad_certificate_keeps_the_old(self) -> None:
        """
        A pair that is out of date is used, with a warning; one that is no good leaves the old one in use and is said.
        """
        identity = Authority("root").issue("host", not_after=A_YEAR_LATER)
        path = write(os.path.abspath(self.mktemp()), key_pem(identity.key) + certificates_pem(identity.certificate))
        settings = Settings(
            (Source(listeners=(Listener("ssl:0", "tcp:0", tls=TLS(path, path)),)),),
            (Observer("stdout", "stdout"),),
        )
        service = build(settings, reactor)
        events: list[Any] = []
        globalLogPublisher.addObserver(events.append)
        self.addCleanup(globalLogPublisher.removeObserver, events.append)
        service.hang_up()
        self.assertTrue(any("Read certificate" in str(event.get("log_format")) for event in events))
        self.assertTrue(any("has expired" in str(event.get("problem")) for event in events))
        with open(path, "w") as stream:
            stream.write("junk")
        service.hang_up()
        (error,) = [event["error"] for event in events if "old certificate" in str(event.get("log_format"))]
        self.assertIn(path, error)
        service._creators[settings.sources[0].listeners[0].tls].reload = lambda: 1 / 0
        service.hang_up()
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        self.assertIn("client certificate not asked for", service.describe()[0])
