"""
What systemd hears of the real program, and the sockets that it hands over: with stand-ins for systemd.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from tests.system.load import missing
from tests.system.receiver import ANY_PORT, PATIENCE, ROOT, Connection, NotReached, Receiver, ReceiverCase, post
from tests.system.servers.process import free_port
from tests.system.test_disk import readable

#: Does what systemd does between fork and exec for a service with a socket unit (sd_listen_fds(3)).
ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES=sys.argv[2])
os.execv(sys.argv[3], sys.argv[3:])
"""


class Manager:
    """
    Stands for systemd: the socket that services tell of themselves at.

    @ivar path: what C{NOTIFY_SOCKET} says.
    """

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)

    def hear(self, word: str, seconds: float = PATIENCE) -> dict[str, str]:
        """
        Wait for what has a word in it, passing over signs of life and bare statuses; return it taken apart.

        @raise NotReached: it does not come in time, or another word comes first.
        """
        deadline = time.monotonic() + seconds
        while (said := self._next(deadline - time.monotonic())) is not None:
            if word in said:
                return said
            if set(said) - {"STATUS", "WATCHDOG", "EXTEND_TIMEOUT_USEC"}:
                raise NotReached(f"{word}; in its place {said}")
        raise NotReached(f"not in {seconds} s: {word}")

    def signs_of_life(self, seconds: float) -> int:
        """Return how many come within some time."""
        deadline = time.monotonic() + seconds
        signs = 0
        while (said := self._next(deadline - time.monotonic())) is not None:
            signs += said == {"WATCHDOG": "1"}
        return signs

    def _next(self, seconds: float) -> dict[str, str] | None:
        if not select.select([self.socket], [], [], max(seconds, 0.0))[0]:
            return None
        pairs = (line.partition("=") for line in self.socket.recv(65536).decode().split("\n"))
        return {name: value for name, _, value in pairs}


class NotifyCase(ReceiverCase):
    """
    Runs receivers under the stand-in.
    """

    def setUp(self) -> None:
        directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, directory)
        self.manager = Manager(directory)
        self.addCleanup(self.manager.socket.close)

    def spawn(self, *options: str, config: str | None = None, port: str | None = ANY_PORT, **environ: str) -> Receiver:
        """Start a receiver and wait for nothing."""
        receiver = self.prepare(*options, config=config, port=port)
        self.patch(os, "environ", {**os.environ, "NOTIFY_SOCKET": self.manager.path, **environ})
        receiver.spawn()
        return receiver


class NotifyTests(NotifyCase):
    """
    Ready, reloading, ready, stopping.
    """

    def test_life(self) -> None:
        """It is ready once it listens, says when it reloads and is ready again, and says when it stops."""
        port = free_port()
        receiver = self.spawn(port=f"tcp:{port}:interface=127.0.0.1")
        ready = self.manager.hear("READY")
        self.assertEqual("1", ready["READY"])
        self.assertEqual(200, self.ask(port, post(b"at once")).status)
        for _ in range(3):
            before = time.monotonic_ns() // 1000
            receiver.signal(signal.SIGHUP)
            reloading = self.manager.hear("RELOADING")
            self.assertEqual("1", reloading["RELOADING"])
            self.assertTrue(before <= int(reloading["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000, reloading)
            self.assertEqual("1", self.manager.hear("READY")["READY"])
        receiver.signal(signal.SIGTERM)
        self.assertEqual("1", self.manager.hear("STOPPING")["STOPPING"])
        self.assertEqual(0, receiver.wait())

    def test_status(self) -> None:
        """What it says of itself is one line that has something in it."""
        receiver = self.spawn()
        self.assertRegex(self.manager.hear("READY")["STATUS"], r"\S")
        receiver.signal(signal.SIGTERM)
        self.assertRegex(self.manager.hear("STOPPING")["STATUS"], r"\S")

    def test_bad_reload(self) -> None:
        """A configuration that can't be used ends in ready, too, since it goes on as before; the status says why."""
        receiver = self.spawn(config=f"sources: [{{port: '{ANY_PORT}'}}]\n", port=None)
        self.manager.hear("READY")
        with open(receiver.path("config.yaml"), "w") as file:
            file.write("sources: [{pahts: /in}]\n")
        receiver.signal(signal.SIGHUP)
        self.manager.hear("RELOADING")
        self.assertRegex(self.manager.hear("READY")["STATUS"], "(?i)config")
        self.assertTrue(receiver.is_running)

    def test_failed_start(self) -> None:
        """One that can't start is never ready."""
        receiver = self.spawn("--observer", "file:/nonexistent/messages.jsonl")
        self.assertNotEqual(0, receiver.wait())
        self.assertRaises(NotReached, self.manager.hear, "READY", 0.1)


class WatchdogTests(NotifyCase):
    """
    Signs of life.
    """

    def test_alive(self) -> None:
        """They come at least every half of the time that was given."""
        self.spawn(WATCHDOG_USEC="2000000")
        self.manager.hear("READY")
        self.assertGreaterEqual(self.manager.signs_of_life(5), 3)

    def test_not_asked_for(self) -> None:
        """Where nobody asks for them, or asks another process, there are none."""
        self.spawn(WATCHDOG_USEC="500000", WATCHDOG_PID="1")
        self.manager.hear("READY")
        self.assertEqual(0, self.manager.signs_of_life(2))

    def test_stopped(self) -> None:
        """A process that does not run gives none."""
        receiver = self.spawn(WATCHDOG_USEC="1000000")
        self.manager.hear("READY")
        receiver.signal(signal.SIGSTOP)
        self.manager.signs_of_life(0.5)
        self.assertEqual(0, self.manager.signs_of_life(2))
        receiver.signal(signal.SIGCONT)
        self.assertGreaterEqual(self.manager.signs_of_life(3), 1)

    def test_stuck(self) -> None:
        """They are withheld while an observer hangs for longer than an answer may take, and come again after that."""
        receiver = self.prepare("--observer", "file:fifo", "--limit", "answer_time=1s")
        os.mkfifo(receiver.path("fifo"))
        reader = os.open(receiver.path("fifo"), os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        environ = {**os.environ, "NOTIFY_SOCKET": self.manager.path, "WATCHDOG_USEC": "1000000"}
        self.patch(os, "environ", environ)
        receiver.start()
        # More than a pipe holds, so that the write hangs until somebody reads.
        size = 2 * 1024 * 1024
        answer = self.ask(receiver.port, post(b"x" * size))
        self.assertEqual((503, "not_stored"), (answer.status, answer.reason))
        self.manager.signs_of_life(1.5)
        self.assertEqual(0, self.manager.signs_of_life(3))
        self.assertTrue(receiver.is_running)

        left = size
        while left > 0:
            select.select([reader], [], [], PATIENCE)
            left -= len(os.read(reader, 65536))
        self.assertGreaterEqual(self.manager.signs_of_life(4), 1)


class ActivatedReceiver(Receiver):
    """
    A receiver that is handed a listening socket.

    @param listening: the socket, which stays open whatever becomes of the process.
    @param name: what its unit calls it: C{FileDescriptorName=}.
    """

    def __init__(self, listening: socket.socket, name: str, *options: str, port: str) -> None:
        super().__init__(*options, port=port)
        self._listening = listening
        self._name = name

    def spawn(self) -> None:
        """Start a process without waiting for anything."""
        fd = self._listening.fileno()
        with open(self.path("log"), "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", ACTIVATE, str(fd), self._name, *self._arguments],
                cwd=self.directory,
                env={**os.environ, "PYTHONPATH": ROOT},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[fd],
            )


class Callers:
    """
    Somebody who connects anew for each message, and tries again when there is no 200.

    @ivar acknowledged: the texts that got a 200.
    @ivar refused: how many connections were refused.
    @ivar tries: how many there were.
    """

    def __init__(self, port: int) -> None:
        self.acknowledged: list[str] = []
        self.refused = 0
        self.tries = 0
        self._port = port
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._call, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Make no more calls."""
        self._stopping.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "a caller hangs"

    def _call(self) -> None:
        number = 0
        while not self._stopping.is_set():
            self.tries += 1
            try:
                with Connection(self._port) as connection:
                    answer = connection.send(post(b"%d" % number)).answer()
            except ConnectionRefusedError:
                self.refused += 1
                continue
            except OSError:
                # It was accepted by a process that was about to end.
                continue
            if answer is not None and answer.status == 200:
                self.acknowledged.append(str(number))
                number += 1


class SocketActivationTests(ReceiverCase):
    """
    The socket unit.
    """

    def activated(self, family: socket.AddressFamily, port: str) -> tuple[ActivatedReceiver, socket.socket]:
        """Make a receiver with a socket as C{etc/systemd/webhookrx.socket} makes it."""
        address = "::" if family == socket.AF_INET6 else "127.0.0.1"
        try:
            listening = socket.create_server((address, 0), family=family, backlog=4096, dualstack_ipv6=address == "::")
        except (OSError, ValueError) as error:
            self.skipTest(f"no such socket here: {error}")
        self.addCleanup(listening.close)
        receiver = ActivatedReceiver(listening, "webhookrx", port=port)
        self.addCleanup(receiver.clean_up)
        return receiver, listening

    def test_dual_stack(self) -> None:
        """A socket for all addresses, by its name, takes messages by IPv4, and the sender's address is an IPv4 one."""
        receiver, listening = self.activated(socket.AF_INET6, "systemd:domain=INET6:name=webhookrx")
        receiver.start()
        self.assertEqual(200, self.ask(listening.getsockname()[1], post(b"hello")).status)
        (message,) = receiver.messages()
        self.assertEqual(("hello", "127.0.0.1"), (message["MESSAGE"], message["SOURCEIP"]))

    def test_wrong_name(self) -> None:
        """A name that the unit does not have is one clear line, and no start."""
        receiver, _ = self.activated(socket.AF_INET, "systemd:domain=INET:name=other")
        receiver.spawn()
        self.assertNotEqual(0, receiver.wait())
        self.assertNotIn("Traceback", receiver.log())
        self.assertRegex(receiver.log(), r"name=other.* names a socket that systemd did not pass")

    def test_restarts(self) -> None:
        """While it is stopped and started again, or killed, no connection is refused, and nothing is lost."""
        receiver, listening = self.activated(socket.AF_INET, "systemd:domain=INET:name=webhookrx")
        receiver.start()
        callers = Callers(listening.getsockname()[1])
        for number in range(6):
            done = len(callers.acknowledged)
            if number % 2:
                receiver.kill()
            else:
                receiver.stop()
            receiver.start()
            deadline = time.monotonic() + PATIENCE
            while len(callers.acknowledged) == done and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertGreater(len(callers.acknowledged), done)
        callers.stop()
        receiver.stop()

        self.assertEqual(0, callers.refused, f"of {callers.tries}")
        self.assertEqual([], missing(callers.acknowledged, readable(receiver)))
        self.assertEqual(None, re.search("Traceback", receiver.log()))
