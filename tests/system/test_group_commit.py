"""The chain on real threads, the real reactor and real files."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from threading import current_thread

from twisted.internet import reactor
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from tests.contracts.thread_contract import ThreadContract
from webhookrx.errors import NotStored
from webhookrx.message.encoders import encode_line
from webhookrx.observers.file import FileObserver
from webhookrx.pipeline.chain import Chain
from webhookrx.pipeline.observer_thread import RealThread, Work
from webhookrx.testing import MemoryObserver, make_message


class ThreadThreadContractTests(ThreadContract, TestCase):
    """A RealThread is a thread."""

    timeout = 30

    def make_thread(self) -> RealThread:
        """Make one on the real reactor."""
        return RealThread(reactor, "test")

    def settled(self, result: Deferred[object]) -> Deferred[None]:
        """The reactor lets time pass."""
        return result.addCallback(lambda _: None)


class RealThreadTests(TestCase):
    """Who runs where."""

    timeout = 30

    async def test_threads(self) -> None:
        """Work runs in a daemon thread of the thread's name, its outcome in the reactor thread."""
        thread = RealThread(reactor, "observer-7")
        thread.start()
        work: Work = current_thread
        outcome: Deferred[tuple[object, object]] = Deferred()
        thread.run(work, lambda thread: outcome.callback((thread, current_thread())))
        there, here = await outcome
        thread.stop()

        self.assertEqual(("observer-7", True), (there.name, there.daemon))
        self.assertIs(here, current_thread())
        there.join(10)
        self.assertFalse(there.is_alive())

    async def test_signal(self) -> None:
        """A signal that the kernel brings to the thread ends neither the thread nor its wait for work."""
        before = signal.signal(signal.SIGUSR2, lambda *_: None)
        self.addCleanup(signal.signal, signal.SIGUSR2, before)
        thread = RealThread(reactor, "signalled")
        thread.start()
        first: Deferred[object] = Deferred()
        thread.run(current_thread, first.callback)
        there = await first
        for _ in range(20):
            # It may be on its way to the wait at one of these, but not at all.
            signal.pthread_kill(there.ident, signal.SIGUSR2)
            await deferLater(reactor, 0.01)
        again: Deferred[object] = Deferred()
        thread.run(current_thread, again.callback)
        self.assertIs(there, await again)
        thread.stop()


class GroupCommitTests(TestCase):
    """Messages through a chain on real threads."""

    timeout = 60

    def make_chain(self, *observers: MemoryObserver | FileObserver) -> Chain:
        """Make and start a chain."""
        self.reports: list[tuple[str, object, int]] = []
        chain = Chain(
            reactor,
            observers,
            ack="durable",
            max_bytes=64 * 1024 * 1024,
            max_messages=10_000,
            make_thread=partial(RealThread, reactor),
            report=lambda spec, error, count: self.reports.append((spec, error, count)),
        )
        chain.start()
        return chain

    def write(self, chain: Chain, text: str) -> Deferred[NotStored | None]:
        """Write a message; the result is its acknowledgement."""
        told: Deferred[NotStored | None] = Deferred()
        chain.write(make_message(text), told.callback)
        return told

    async def test_closed_loop(self) -> None:
        """Senders that each wait for their answer find every message in the file, whole, in order for each."""
        path = os.path.abspath(self.mktemp())
        memory = MemoryObserver()
        chain = self.make_chain(FileObserver("file", path, encode_line, "durable"), memory)

        async def send(sender: int) -> None:
            for number in range(20):
                self.assertIsNone(await self.write(chain, f"{sender}.{number}"))

        await gatherResults([Deferred.fromCoroutine(send(sender)) for sender in range(32)])
        await chain.stop()

        with open(path) as file:
            texts = [json.loads(line)["MESSAGE"] for line in file]
        for found in (texts, [str(message.values["MESSAGE"]) for message in memory.messages]):
            for sender in range(32):
                mine = [text for text in found if text.startswith(f"{sender}.")]
                self.assertEqual([f"{sender}.{number}" for number in range(20)], mine)
        self.assertEqual((0, 0), (chain.budget.bytes, chain.budget.messages))
        self.assertLess(len(memory.batch_sizes), 640)

    async def test_blocked_observer(self) -> None:
        """An observer that blocks its thread holds up neither the reactor nor the other observer."""
        stuck, good = MemoryObserver("stuck"), MemoryObserver("good")
        chain = self.make_chain(stuck, good)
        stuck.block()
        told = self.write(chain, "one")
        for _ in range(1000):
            if good.messages:
                break
            turn: Deferred[None] = Deferred()
            reactor.callLater(0.01, turn.callback, None)
            await turn
        self.assertEqual(1, len(good.messages))
        self.assertFalse(told.called)
        stuck.release()

        self.assertIsNone(await told)
        await chain.stop()

    async def test_full_device(self) -> None:
        """A full device makes messages not stored, beside an observer that has them all."""
        memory = MemoryObserver()
        chain = self.make_chain(FileObserver("file:/dev/full", "/dev/full", encode_line, "durable"), memory)
        told = await gatherResults([self.write(chain, str(number)) for number in range(10)])
        await chain.stop()

        self.assertEqual(["file:/dev/full: [Errno 28] No space left on device"] * 10, [str(t) for t in told])
        self.assertEqual(10, len(memory.messages))
        self.assertEqual(10, sum(count for _, _, count in self.reports))

    async def test_reopen_and_stop(self) -> None:
        """Messages before and after a rotation are all there, and so are those that a stop found waiting."""
        path = os.path.abspath(self.mktemp())
        chain = self.make_chain(FileObserver("file", path, encode_line, "durable"))
        first = self.write(chain, "one")
        await first
        os.rename(path, path + ".1")
        chain.reopen()
        second = self.write(chain, "two")
        stopped = chain.stop()

        self.assertIsNone(await second)
        await stopped
        for name, text in ((path + ".1", "one"), (path, "two")):
            with open(name) as file:
                self.assertEqual([text], [json.loads(line)["MESSAGE"] for line in file])
