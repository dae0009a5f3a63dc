"""A spool that gathers large batches in the real program: by count and by time, killed, stopped, and with workers."""

from __future__ import annotations

import json
import os
import time

from tests.spool.faulty_spool import make_queue
from tests.system.receiver import Connection, Receiver, ReceiverCase, post, wait_until
from tests.system.workers import workers
from webhookrx.message.encoders import encode_stored
from webhookrx.settings import MiB
from webhookrx.testing import make_message

#: An observer that wants what its arguments say, and appends each batch to a file as one line. It takes none while
#: there is a file C{away}.
PLUGIN = """
import json, os
from twisted.plugin import IPlugin
from zope.interface import implementer
from webhookrx.errors import Unavailable
from webhookrx.interfaces import IObserverFactory, IStoreObserver, Wants
from webhookrx.store_counts import StoreCounts

@implementer(IStoreObserver)
class Gathering:
    promise = "durable"
    promise_reason = ""
    takes_lines = False
    def __init__(self, spec, messages, seconds):
        self.spec = spec
        self.wants = Wants(int(messages) or None, 64 << 20, float(seconds))
        self.counts = StoreCounts()
    def open(self): pass
    def prepare(self, message):
        return str(message.values["MESSAGE"]).encode()
    def store(self, batch):
        line = json.dumps([item[:7].decode() for item in batch]) + chr(10)
        is_away = os.path.exists("away")
        with open("refused" if is_away else "batches", "a") as file:
            file.write(line)
        if is_away:
            raise Unavailable("it is away")
    def hurry(self): pass
    def reopen(self): pass
    def close(self): pass

@implementer(IPlugin, IObserverFactory)
class Factory:
    name = "gathering"
    def build(self, spec, args, options, ack):
        return Gathering(spec, *args)

factory = Factory()
"""


class GatheringTests(ReceiverCase):
    """What got a 200 is delivered, in batches as they are wanted."""

    def gathering(self, messages: int, seconds: float, *options: str) -> Receiver:
        """Make a receiver with a spool before the observer."""
        receiver = self.prepare("--observer", f"spool:spool:observer=gathering:{messages}:{seconds}", *options)
        os.makedirs(receiver.path("twisted/plugins"))
        with open(receiver.path("twisted/plugins/gathering_plugin.py"), "w") as file:
            file.write(PLUGIN)
        return receiver

    def send(self, receiver: Receiver, numbers: range) -> None:
        """Send messages over one connection, each of which gets its 200."""
        with Connection(receiver.port) as connection:
            for number in numbers:
                answer = connection.send(post(f"{number:07d}".encode())).answer()
                assert answer is not None
                self.assertEqual(200, answer.status)

    def batches(self, receiver: Receiver, name: str = "batches") -> list[list[int]]:
        """Return the batches that were offered; the last line may be half written."""
        return [[int(text) for text in json.loads(line)] for line in receiver.lines(name)[:-1]]

    def test_count(self) -> None:
        """Batches have the wanted count; the rest waits, through a kill and a stop, until there is enough."""
        receiver = self.gathering(100, 3600.0).start()
        self.send(receiver, range(250))
        wait_until(lambda: len(self.batches(receiver)) == 2, "there are two batches")
        receiver.kill()
        receiver.start()
        self.send(receiver, range(250, 280))
        began = time.monotonic()
        self.assertEqual(0, receiver.stop())
        self.assertLess(time.monotonic() - began, 20.0)
        receiver.start()
        self.send(receiver, range(280, 300))
        wait_until(lambda: [*range(200, 300)] in self.batches(receiver), "there is a third one")

        # One of them came twice if it was not removed yet.
        once = [list(batch) for batch in dict.fromkeys(map(tuple, self.batches(receiver)))]
        self.assertEqual([[*range(100)], [*range(100, 200)], [*range(200, 300)]], once)
        self.assertEqual(0, receiver.stop())

    def test_time(self) -> None:
        """Too few are delivered once their time is over, also when that passes while nothing runs."""
        receiver = self.gathering(1000, 2.0).start()
        self.send(receiver, range(10))
        wait_until(lambda: sum(map(len, self.batches(receiver))) == 10, "they are delivered")
        self.send(receiver, range(10, 15))
        receiver.kill()
        receiver.start()
        wait_until(lambda: any(14 in batch for batch in self.batches(receiver)), "these, too")

        self.assertEqual(
            [*range(15)], list(dict.fromkeys(number for batch in self.batches(receiver) for number in batch))
        )
        self.assertEqual(0, receiver.stop())

    def test_same_batch_after_kill(self) -> None:
        """A large batch that was not taken is the same after a kill, whatever has come since."""
        receiver = self.gathering(0, 1.0)
        queue = make_queue(receiver.path("spool"))
        queue.open()
        queue.append([encode_stored(make_message(f"{number:07d} {'x' * 300}")) for number in range(20_000)])
        queue.close()
        with open(receiver.path("away"), "w"):
            pass
        receiver.start()
        wait_until(lambda: self.batches(receiver, "refused"), "it is offered")
        self.send(receiver, range(20_000, 20_003))
        receiver.kill()
        os.unlink(receiver.path("away"))
        receiver.start()
        wait_until(lambda: sum(map(len, self.batches(receiver))) >= 20_003, "all is delivered")

        self.assertEqual([*range(20_000)], self.batches(receiver, "refused")[0])
        self.assertEqual([[*range(20_000)], [*range(20_000, 20_003)]], self.batches(receiver))
        self.assertEqual(0, receiver.stop())

    def test_workers(self) -> None:
        """Each worker gathers for itself; what one leaves that is gone is delivered by the others."""
        receiver = self.gathering(50, 2.0, "--workers", "2").start()
        workers(receiver)
        for begin in range(0, 300, 30):
            self.send(receiver, range(begin, begin + 30))
        wait_until(lambda: sum(map(len, self.batches(receiver))) == 300, "all is delivered")

        self.assertEqual([*range(300)], sorted(number for batch in self.batches(receiver) for number in batch))
        self.assertLessEqual(max(map(len, self.batches(receiver))), 50)
        self.assertEqual(0, receiver.stop())

    def test_memory(self) -> None:
        """Of a backlog of 150 MiB, no more than one batch of 64 MiB is in memory, as it waits and as it is sent."""
        receiver = self.gathering(0, 1.0)
        queue = make_queue(receiver.path("spool"))
        queue.open()
        text = "x" * 100_000
        for begin in range(0, 1500, 100):
            queue.append([encode_stored(make_message(f"{number:07d} {text}")) for number in range(begin, begin + 100)])
        queue.close()
        receiver.start()
        wait_until(lambda: sum(map(len, self.batches(receiver))) == 1500, "all is delivered")
        sizes = [len(batch) for batch in self.batches(receiver)]

        self.assertEqual([*range(1500)], [number for batch in self.batches(receiver) for number in batch])
        # 64 MiB of messages of 100 kB, and the first of the next that fits in part.
        self.assertEqual(671, sizes[0])
        # What waits, what is sent, and the program itself.
        self.assertLess(receiver.peak() * 1024, 2 * 64 * MiB + 120 * MiB)
        self.assertEqual(0, receiver.stop())
