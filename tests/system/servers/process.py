"""A server that tests start in a process of its own: on a free port of 127.0.0.1, with a directory of its own."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, lockf
from functools import cache
from typing import ClassVar, TypeVar
from unittest import SkipTest

from twisted.trial.unittest import SynchronousTestCase

from tests.system.receiver import PATIENCE, NotReached, wait_until

#: How often a server is started anew whose port somebody else has taken meanwhile.
_STARTS = 5


class Server:
    """
    One process, or several after one another, with the same port and directory.

    @cvar name: what it is called in texts.
    @ivar port: the port on 127.0.0.1 that clients connect to.
    @ivar directory: its data and its log; gone after L{clean_up}.
    """

    name: ClassVar[str]

    def __init__(self) -> None:
        if reason := self.missing():
            raise SkipTest(reason)
        # Not below what may be a private directory of ours: it may run as another user.
        self.directory = tempfile.mkdtemp(prefix=f"webhookrx-{self.name}-")
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._prepared = False

    # -- what each kind of server says ---------------------------------------------------------------------------

    @classmethod
    def missing(cls) -> str:
        """Return why it can't run on this machine, as a sentence; empty when it can."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Make its files, once, before its first start."""

    def command(self) -> list[str]:
        """Return the command that starts it in the foreground, on C{self.port}."""
        raise NotImplementedError

    def is_ready(self) -> bool:
        """Tell whether it answers its clients; an C{OSError} is a no."""
        return can_connect(self.port)

    #: The user and group that it runs as; empty for those of the tests.
    user = group = ""

    # -- life ------------------------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The number of its first process."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether its first process has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self: _AnyServer) -> _AnyServer:
        """Start it, and wait until it is ready; after a L{kill} or L{stop} with the same port and the same data."""
        fresh = not self.port
        for tries_left in reversed(range(_STARTS)):
            if fresh:
                self.port = free_port()
            if not self._prepared:
                self.prepare()
                self._prepared = True
            self._spawn()
            try:
                wait_until(self._is_up, f"{self.name} is ready; its log: {self.log()}")
                return self
            except NotReached:
                self.kill()
                if not fresh or not tries_left:
                    raise
        raise AssertionError("unreachable")

    def kill(self) -> None:
        """End all its processes as a crash would (C{kill -9}), and wait until they are gone."""
        self._signal(signal.SIGKILL)
        self._wait()

    def stop(self, seconds: float = PATIENCE) -> None:
        """End it as an operator would, and wait until it is gone."""
        self.thaw()
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._wait(seconds)

    def freeze(self) -> None:
        """Stop all its processes where they are; what the kernel does for its sockets goes on."""
        self._signal(signal.SIGSTOP)
        # The threads of a process stop one by one.
        wait_until(lambda: thread_states(self.pid) <= {"T"}, f"{self.name} has stopped")

    def thaw(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)

    def clean_up(self) -> None:
        """Leave nothing behind."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def path(self, name: str) -> str:
        """Return the path of a file in its directory."""
        return os.path.join(self.directory, name)

    def write(self, name: str, text: str) -> str:
        """Write a file into its directory, and return its path."""
        path = self.path(name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def log(self) -> str:
        """Return the end of what it has written to standard output and standard error."""
        try:
            with open(self.path("log"), encoding="utf-8", errors="replace") as file:
                return file.read()[-4000:]
        except FileNotFoundError:
            return ""

    def run(self, *command: str) -> None:
        """
        Run a program as the server's user, to its end.

        @raise AssertionError: it fails.
        """
        done = subprocess.run(
            command,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            user=self.user or None,
            group=self.group or None,
            extra_groups=[] if self.user else None,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}"

    def _spawn(self) -> None:
        with open(self.path("log"), "ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # A group of its own: a signal reaches each of its processes, and no other.
                start_new_session=True,
                user=self.user or None,
                group=self.group or None,
                extra_groups=[] if self.user else None,
            )

    def _is_up(self) -> bool:
        if not self.is_running:
            raise NotReached(f"{self.name} has ended: {self.log()}")
        with suppress(OSError):
            return self.is_ready()
        return False

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            # Its group has the number of its first process, and lives until the last one is gone.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _wait(self, seconds: float = PATIENCE) -> None:
        if self._process is None:
            return
        self._process.wait(seconds)
        wait_until(self._is_gone, f"all processes of {self.name} are gone", seconds)
        self._process = None

    def _is_gone(self) -> bool:
        assert self._process is not None
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return True
        return False


_AnyServer = TypeVar("_AnyServer", bound=Server)


class ServerCase(SynchronousTestCase):
    """Starts servers and leaves none behind."""

    def serve(self, server: type[_AnyServer], *arguments: object, **options: object) -> _AnyServer:
        """
        Start a server that is ended after the test.

        @raise SkipTest: it can't run on this machine.
        """
        made = server(*arguments, **options)
        self.addCleanup(made.clean_up)
        return made.start()


def thread_states(pid: int) -> set[str]:
    """Return the states of the threads of a process, such as C{T} for stopped (proc_pid_stat(5))."""
    states = set()
    for thread in os.listdir(f"/proc/{pid}/task"):
        with suppress(OSError), open(f"/proc/{pid}/task/{thread}/stat") as file:
            states.add(file.read().rpartition(")")[2].split()[0])
    return states


def program(*names: str) -> str:
    """Return the path of the first of these programs that there is, or an empty text."""
    return next((found for name in names if (found := shutil.which(name))), "")


def free_port() -> int:
    """
    Return a port of 127.0.0.1 that nobody listens on, of those that the kernel gives to no client: a server that was
    killed finds its port free again. No other process of tests on this machine gets it before this one has ended.
    """
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        first = int(file.read().split()[0])
    ports = range(min(20_000, first - 1000), first) if first > 3000 else range(61_000, 65_000)
    for _ in range(200):
        port = random.choice(ports)
        with socket.socket() as sock, suppress(OSError):
            sock.bind(("127.0.0.1", port))
            # Locks of a process end with it, and do not hold for itself.
            lockf(_ports_file(), LOCK_EX | LOCK_NB, 1, port)
            if port not in _given:
                _given.add(port)
                return port
    raise AssertionError("no port is free")


_given: set[int] = set()


@cache
def _ports_file() -> int:
    """Return a file, the same for all, in which the byte of each port that was given is locked."""
    return os.open(os.path.join(tempfile.gettempdir(), f"webhookrx-ports-{os.getuid()}"), os.O_RDWR | os.O_CREAT, 0o600)


def can_connect(port: int) -> bool:
    """
    Tell whether somebody listens.

    @raise OSError: nobody does.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=1.0):
        return True


def ask(port: int, question: bytes, end: bytes, seconds: float = 1.0) -> bytes:
    """
    Send something on a connection of its own, and return what comes back, up to an ending.

    @raise OSError: it can't, or not in time.
    """
    deadline = time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as sock:
        sock.sendall(question)
        heard = b""
        while end not in heard and time.monotonic() < deadline:
            data = sock.recv(65536)
            if not data:
                break
            heard += data
        return heard
