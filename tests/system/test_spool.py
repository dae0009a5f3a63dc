"""
The spool in the real program: an observer that is away, C{kill -9}, a second receiver, people beside it, and a million
messages that wait.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

from tests import LONG
from tests.spool.faulty_spool import make_queue
from tests.system.hanging_up import reload
from tests.system.load import Load, missing
from tests.system.receiver import ANY_PORT, ROOT, Receiver, ReceiverCase, post, wait_until
from webhookrx.message.encoders import encode_stored
from webhookrx.testing import make_message

ROUNDS = 20 if LONG else 3
WAITING = 1_000_000 if LONG else 100_000

#: An observer that holds on to each batch as long as there is a file C{hold}, whoever is in a hurry.
PLUGIN = """
import os, time
from twisted.plugin import IPlugin
from zope.interface import implementer
from webhookrx.interfaces import IMessageObserver, IObserverFactory

@implementer(IMessageObserver)
class Holding:
    promise = "durable"
    def __init__(self, spec):
        self.spec = spec
    def open(self): pass
    def prepare(self, message):
        return str(message.values["MESSAGE"]).encode()
    def store(self, batch):
        with open("called", "w"):
            pass
        while os.path.exists("hold"):
            time.sleep(0.05)
        with open("held", "ab") as file:
            file.write(b"".join(item + b"\\n" for item in batch))
    def reopen(self): pass
    def close(self): pass

@implementer(IPlugin, IObserverFactory)
class Factory:
    name = "holding"
    def build(self, spec, args, options, ack):
        return Holding(spec)

factory = Factory()
"""


class SpoolTests(ReceiverCase):
    """What got a 200 is delivered."""

    def spooled(self, behind: str = "file:out.jsonl", options: str = "") -> Receiver:
        """Make a receiver with a spool before an observer."""
        return self.prepare("--observer", f"spool:spool{options}:observer={behind}")

    def away(self) -> Receiver:
        """Make a receiver whose observer is away: nobody listens where it connects to."""
        return self.spooled("syslog:tcp:127.0.0.1:9")

    def send(self, receiver: Receiver, *texts: str) -> None:
        """Send messages, each of which gets its 200."""
        for text in texts:
            self.assertEqual(200, self.ask(receiver.port, post(text.encode())).status)

    def command(self, receiver: Receiver, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run C{webhookrx} in the directory of a receiver."""
        return subprocess.run(
            (sys.executable, "-m", "webhookrx", *arguments),
            cwd=receiver.directory,
            env={**os.environ, "PYTHONPATH": ROOT},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def listed(self, receiver: Receiver, *options: str) -> list[dict[str, Any]]:
        """Return what C{spool list} says."""
        done = self.command(receiver, "spool", "list", "spool", "--json", *options)
        self.assertEqual("", done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_delivers(self) -> None:
        """Messages go through in order, and the spool is empty then."""
        receiver = self.spooled().start()
        self.send(receiver, "one", "two", "three")
        wait_until(lambda: receiver.arrived("out.jsonl") == 3, "they are delivered")
        wait_until(lambda: self.listed(receiver)[0]["messages"] == 0, "they are removed")

        self.assertEqual(["one", "two", "three"], [line["MESSAGE"] for line in receiver.messages("out.jsonl")])
        self.assertEqual(0, receiver.stop())

    def test_kill(self) -> None:
        """Killed at any moment, with an observer that takes messages: missing 0; what comes twice came in order."""
        receiver = self.spooled()
        seed = random.randrange(1 << 32)
        moments = random.Random(seed)
        acknowledged: list[str] = []
        for _ in range(ROUNDS):
            receiver.start()
            load = Load(receiver.port).start()
            time.sleep(moments.uniform(0.2, 1.0))
            receiver.kill()
            acknowledged += load.wait()
        receiver.start()
        wait_until(lambda: self.listed(receiver)[0]["messages"] == 0, "all is delivered", 60.0)
        receiver.stop()
        delivered = []
        for line in receiver.lines("out.jsonl"):
            # A line that was being written when it was killed is torn, and written again.
            if line.startswith(b"{") and line.endswith(b"}"):
                delivered.append(json.loads(line))
        print(f"kill -9 x{ROUNDS}: acknowledged {len(acknowledged)}, delivered {len(delivered)}")

        self.assertEqual([], missing(acknowledged, delivered), f"seed {seed}")

    def test_waits_over_kills(self) -> None:
        """While the observer is away messages wait, over kills; they are delivered in order once another takes them."""
        receiver = self.away()
        texts = [f"{number:04d}" for number in range(60)]
        for begin in range(0, 60, 20):
            receiver.start()
            self.send(receiver, *texts[begin : begin + 20])
            receiver.kill()
        self.assertEqual(60, self.listed(receiver)[0]["messages"])
        other = Receiver("--observer", "spool:spool:observer=file:out.jsonl", directory=receiver.directory)
        self.addCleanup(other.kill)
        other.start()
        wait_until(lambda: other.arrived("out.jsonl") == 60, "they are delivered")

        self.assertEqual(texts, [message["MESSAGE"] for message in other.messages("out.jsonl")])

    def test_stop(self) -> None:
        """It stops at once while its observer is away, and keeps what waits."""
        receiver = self.away().start()
        self.send(receiver, "one")
        began = time.monotonic()
        self.assertEqual(0, receiver.stop())

        self.assertLess(time.monotonic() - began, 10.0)
        self.assertEqual(1, self.listed(receiver)[0]["messages"])

    def test_second_receiver(self) -> None:
        """A second receiver for the directory ends at once and says why; the first goes on."""
        receiver = self.away().start()
        self.send(receiver, "one")
        second = Receiver("--observer", "spool:spool:observer=file:out.jsonl", directory=receiver.directory)
        self.addCleanup(second.kill)
        second.spawn()

        self.assertNotEqual(0, second.wait())
        self.assertIn("another receiver uses it", receiver.log())
        self.send(receiver, "two")
        self.assertEqual(2, self.listed(receiver)[0]["messages"])

    def test_people(self) -> None:
        """Beside a running receiver messages can be listed, shown and dropped."""
        receiver = self.away().start()
        self.send(receiver, "one", "two", "three")
        numbers = [line["id"] for line in self.listed(receiver, "--waiting")[1:]]
        shown = self.command(receiver, "spool", "show", "spool", str(numbers[1]), "--json")
        self.assertEqual("two", json.loads(shown.stdout)["values"]["MESSAGE"])
        dropped = self.command(receiver, "spool", "drop", "spool", "--waiting", str(numbers[1]))
        self.assertEqual(0, dropped.returncode, dropped.stderr)
        self.send(receiver, "four")

        self.assertEqual(3, self.listed(receiver)[0]["messages"])
        receiver.signal(signal.SIGKILL)
        receiver.wait()
        self.assertEqual(3, self.listed(receiver)[0]["messages"])

    def test_holds_on(self) -> None:
        """
        Reloads while the observer sits on a batch fail and say why; once it is back the spool takes messages again by
        itself, the next reload succeeds, and nothing is lost or delivered twice.
        """
        config = f"port: {ANY_PORT}\nobservers: ['spool:spool:size=%s:observer=holding']\n"
        receiver = self.prepare(config=config % "1GiB", port=None)
        os.makedirs(receiver.path("twisted/plugins"))
        for name, text in (("twisted/plugins/holding_plugin.py", PLUGIN), ("hold", "")):
            with open(receiver.path(name), "w") as file:
                file.write(text)
        receiver.start()
        self.send(receiver, "one")
        wait_until(lambda: os.path.exists(receiver.path("called")), "it has the batch")
        self.send(receiver, "two")
        for _ in range(2):
            log = reload(receiver, config % "2GiB")
            self.assertIn("Reload failed, the old settings stay", log)
            self.assertIn("this receiver uses it", log)
        self.assertEqual(503, self.ask(receiver.port, post(b"no")).status)
        os.unlink(receiver.path("hold"))
        wait_until(lambda: self.ask(receiver.port, post(b"three")).status == 200, "it takes messages again")
        self.assertIn("Reloaded: ", reload(receiver, config % "2GiB"))
        self.send(receiver, "four")
        wait_until(lambda: self.listed(receiver)[0]["messages"] == 0, "all is delivered")

        self.assertEqual([b"one", b"two", b"three", b"four", b""], receiver.lines("held"))
        self.assertEqual(0, receiver.stop())

    def test_full(self) -> None:
        """A full spool refuses with 503, and no 200 is a lie."""
        receiver = self.spooled("syslog:tcp:127.0.0.1:9", ":size=3000").start()
        statuses = [self.ask(receiver.port, post(b"x" * 500)).status for _ in range(10)]

        self.assertEqual({200, 503}, set(statuses))
        self.assertEqual(statuses.count(200), self.listed(receiver)[0]["messages"])

    def test_many_wait(self) -> None:
        """However many wait, it accepts again within two seconds of work after its start."""
        receiver = self.away()
        queue = make_queue(receiver.path("spool"))
        queue.open()
        for begin in range(0, WAITING, 5000):
            queue.append([encode_stored(make_message(f"{number:07d}")) for number in range(begin, begin + 5000)])
        queue.close()
        empty = self.away()
        took = []
        for each in (empty, receiver):
            each.start()
            self.send(each, "new")
            took.append(each.processor_time())
            self.assertEqual(0, each.stop())
        shutil.rmtree(empty.path("spool"))
        print(f"{WAITING} waiting: the first 200 after {took[1]:.2f} s of work, {took[0]:.2f} s with an empty spool")

        # The interpreter and its imports take their time either way.
        self.assertLess(took[1] - took[0], 2.0)
        self.assertEqual(WAITING + 1, self.listed(receiver)[0]["messages"])
