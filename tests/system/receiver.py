"""
The real program in a process of its own, in a directory of its own, seen from outside: its answers, its messages, its
log and its memory.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

#: What C{twistd} is, whether or not a script of that name is installed.
TWISTD = (sys.executable, "-c", "import sys; from twisted.scripts.twistd import run; sys.argv[0] = 'twistd'; run()")

ANY_PORT = "tcp:0:interface=127.0.0.1"

#: Seconds that anything may take that should happen soon: many, for a busy machine that runs other tests beside.
PATIENCE = 60.0

_LISTENING = re.compile(r"Listening on .*?(?:port=|:)(\d+)\b.* ack: ")


class NotReached(AssertionError):
    """Something that should have happened soon has not."""


def wait_until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """
    Look until something is true.

    @raise NotReached: it does not become true in time.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise NotReached(f"not in {seconds} s: {what}")
        time.sleep(0.01)


class Receiver:
    """
    One process, or several after one another with the same directory.

    @param options: of C{webhookrx}, after C{--port}.
    @param directory: where it runs; a new one when None.
    @param port: the endpoint; None leaves C{--port} out.
    @ivar directory: where it runs and writes C{messages.jsonl}.
    @ivar port: the first TCP port it listens on, once it does; 0 when there is none.
    """

    def __init__(self, *options: str, directory: str | None = None, port: str | None = ANY_PORT) -> None:
        self.directory = tempfile.mkdtemp(prefix="webhookrx-") if directory is None else directory
        self.port = 0
        endpoint = ("--port", port) if port is not None else ()
        self._arguments = (*TWISTD, "-n", "--pidfile=", "webhookrx", *endpoint, *options)
        self._process: subprocess.Popen[bytes] | None = None
        self._forgotten = 0  # bytes of messages.jsonl

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> Receiver:
        """Start a process and wait until it listens."""
        started_at = self._log_size()
        self.spawn()
        wait_until(lambda: self._is_up(started_at), f"it listens; its log: {self.log()}")
        ports = _LISTENING.findall(self.log()[started_at:])
        self.port = int(ports[0]) if ports else 0
        return self

    def spawn(self) -> None:
        """Start a process without waiting for anything."""
        with open(self.path("log"), "ab") as log:
            self._process = subprocess.Popen(
                self._arguments,
                cwd=self.directory,
                env={**os.environ, "PYTHONPATH": ROOT},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process is not None and self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self, seconds: float = PATIENCE) -> int:
        """
        Wait for its end.

        @return: its exit status, negative for the signal that ended it.
        """
        assert self._process is not None
        return self._process.wait(seconds)

    def stop(self) -> int:
        """End it politely and return its exit status."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it as a crash would, if it has not ended, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)

    def clean_up(self) -> None:
        """Leave nothing behind."""
        self.kill()
        shutil.rmtree(self.directory)

    def _is_up(self, started_at: int) -> bool:
        if not self.is_running:
            raise NotReached(f"it has ended: {self.log()}")
        # The last of its lines at start; one stands there for each endpoint, all written at once.
        return "Listening on" in self.log()[started_at:]

    # -- what it leaves ------------------------------------------------------------------------------------------

    def path(self, name: str) -> str:
        """Return the path of a file in its directory."""
        return os.path.join(self.directory, name)

    def log(self) -> str:
        """Return what it has written to standard output and standard error."""
        if not os.path.exists(self.path("log")):
            return ""
        with open(self.path("log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def _log_size(self) -> int:
        return len(self.log())

    def lines(self, name: str = "messages.jsonl") -> list[bytes]:
        """Return the lines of a file of messages; the last is empty when the file ends where a line does."""
        if not os.path.exists(self.path(name)):
            return [b""]
        with open(self.path(name), "rb") as file:
            if name == "messages.jsonl":
                file.seek(self._forgotten)
            return file.read().split(b"\n")

    def arrived(self, name: str = "messages.jsonl") -> int:
        """Return how many whole lines a file of messages has by now; it may be written to meanwhile."""
        return len(self.lines(name)) - 1

    def forget_messages(self) -> None:
        """Let L{lines} and L{messages} begin at what comes from now on."""
        if os.path.exists(self.path("messages.jsonl")):
            self._forgotten = os.path.getsize(self.path("messages.jsonl"))

    def messages(self, name: str = "messages.jsonl") -> list[dict[str, Any]]:
        """Return all messages of a file that nobody writes to now; each must be a line of valid JSON."""
        *lines, last = self.lines(name)
        assert not last, f"the file ends inside a line: {last!r}"
        return [json.loads(line) for line in lines]

    # -- what it takes ----------------------------------------------------------------------------------------------

    def processor_time(self) -> float:
        """Return the seconds that it has worked, of all its threads."""
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> int:
        """Return its resident memory in KiB."""
        return memory_of(self.pid, "VmRSS")

    def forget_peak(self) -> None:
        """Let the peak begin anew at what is resident now (proc(5), C{clear_refs})."""
        with open(f"/proc/{self.pid}/clear_refs", "w") as file:
            file.write("5")

    def peak(self) -> int:
        """Return the most that was resident since L{forget_peak}, in KiB."""
        return memory_of(self.pid, "VmHWM")

    def open_files(self) -> int:
        """Return how many files and sockets it has open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))


def memory_of(pid: int, field: str) -> int:
    """Return a line of C{/proc/PID/status} in KiB."""
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(f"{field}:"):
                return int(line.split()[1])
    raise ValueError(field)


class Answer:
    """
    One answer.

    @ivar headers: lower-case name to value.
    """

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def reason(self) -> str | None:
        """The reason code of a refusal; None when there is none."""
        return json.loads(self.body).get("reason") if self.body.startswith(b"{") else None

    def __repr__(self) -> str:
        return f"<{self.status} {self.headers} {self.body!r}>"


class Connection:
    """
    A connection to a receiver, in bytes.

    @param address: a TCP port of 127.0.0.1, or the path of a UNIX socket.
    @param source: the address to come from.
    """

    def __init__(
        self, address: int | str, *, source: str = "127.0.0.1", seconds: float = PATIENCE, receive_buffer: int = 0
    ) -> None:
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(seconds)
        self._heard = b""
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if isinstance(address, str):
            self.socket.connect(address)
        else:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket.bind((source, 0))
            self.socket.connect(("127.0.0.1", address))

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> Connection:
        """Send all of it."""
        self.socket.sendall(data)
        return self

    def half_close(self) -> Connection:
        """Say that nothing more is to come."""
        self.socket.shutdown(socket.SHUT_WR)
        return self

    def answer(self) -> Answer | None:
        """
        Return the next answer, C{100 Continue} included; None at the end of the connection.

        @raise OSError: it was reset, or nothing came in time.
        """
        while b"\r\n\r\n" not in self._heard:
            if not self._hear():
                assert not self._heard, f"cut short: {self._heard!r}"
                return None
        head, _, self._heard = self._heard.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        length = int(headers.get("content-length", 0))
        while len(self._heard) < length:
            assert self._hear(), "cut short"
        body, self._heard = self._heard[:length], self._heard[length:]
        return Answer(int(first.split()[1]), headers, body)

    def answers(self) -> list[Answer]:
        """Return all answers up to the end of the connection."""
        return list(iter(self.answer, None))

    def _hear(self) -> bool:
        data = self.socket.recv(65536)
        self._heard += data
        return bool(data)


def post(
    body: bytes = b"",
    target: str = "/in",
    headers: Iterable[str] = (),
    version: str = "1.1",
) -> bytes:
    """Return a POST request."""
    lines = (f"POST {target} HTTP/{version}", "Host: receiver", *headers, f"Content-Length: {len(body)}", "", "")
    return "\r\n".join(lines).encode() + body


_Wanted = tuple[tuple[str, ...], str | None, str | None]
_shared: tuple[_Wanted, Receiver] | None = None


def _make(options: tuple[str, ...], config: str | None, port: str | None) -> Receiver:
    directory = tempfile.mkdtemp(prefix="webhookrx-")
    if config is not None:
        with open(os.path.join(directory, "config.yaml"), "w") as file:
            file.write(config)
        options = ("--config", "config.yaml", *options)
    return Receiver(*options, directory=directory, port=port)


@atexit.register
def _end_shared() -> None:
    global _shared
    if _shared is not None:
        _shared[1].clean_up()
        _shared = None


class ReceiverCase(SynchronousTestCase):
    """
    Starts receivers and leaves none behind.
    """

    def start(self, *options: str, config: str | None = None, port: str | None = ANY_PORT) -> Receiver:
        """Start a receiver; C{config} is the text of its YAML file."""
        receiver = self.prepare(*options, config=config, port=port)
        return receiver.start()

    def prepare(self, *options: str, config: str | None = None, port: str | None = ANY_PORT) -> Receiver:
        """Make a receiver that is yet to be started."""
        receiver = _make(options, config, port)
        self.addCleanup(receiver.clean_up)
        return receiver

    def shared(self, *options: str, config: str | None = None, port: str | None = ANY_PORT) -> Receiver:
        """
        Return a receiver for a test that sends to it, reads its messages, and leaves it as it is: the one of the test
        before where that had the same options, else a new one in its place.
        """
        global _shared
        wanted = (options, config, port)
        if _shared is None or _shared[0] != wanted or not _shared[1].is_running:
            _end_shared()
            _shared = wanted, _make(*wanted)
            _shared[1].start()
        _shared[1].forget_messages()
        return _shared[1]

    def connect(self, address: int | str, **options: Any) -> Connection:
        """Open a connection that is closed after the test."""
        connection = Connection(address, **options)
        self.addCleanup(connection.socket.close)
        return connection

    def ask(self, address: int | str, data: bytes, **options: Any) -> Answer:
        """Send a request on a connection of its own and return the one answer, not looking on."""
        with Connection(address, **options) as connection:
            answer = connection.send(data).answer()
        assert answer is not None, "closed without an answer"
        return answer
