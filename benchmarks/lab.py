"""
Where servers run: each in a directory of its own, pinned to the core for servers, started when first asked for.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from types import TracebackType

from benchmarks.clients import connect, tls_context
from benchmarks.measure import cpu_seconds, resident_kib, tree
from benchmarks.quota import Quota
from benchmarks.servers import OUTPUT, Server
from benchmarks.tools import Broken, Tools, Unavailable

PATIENCE = 60.0
"""Seconds that a start or an end may take."""


class Running:
    """
    A server that is up. It shares the core for servers with the others, which are idle; with a quota it may use both.

    @ivar pid: of the first of its processes.
    @ivar port: on 127.0.0.1.
    @raise Unavailable: it can't be had here.
    @raise Broken: it does not come up.
    """

    def __init__(self, server: Server, tools: Tools, directory: str) -> None:
        self.server = server
        self.port = free_port()
        self.output = os.path.join(directory, OUTPUT)
        self._log = os.path.join(directory, "log")
        os.mkdir(directory)
        command = server.command(tools, directory, self.port)
        self._quotas: list[Quota] = []
        self._quota = None if server.quota is None else self._new_quota("all")
        has_quota = server.quota is not None or server.quota_each is not None

        def enter() -> None:
            if self._quota is not None:
                self._quota.join()
            os.sched_setaffinity(0, {tools.cores.server, tools.cores.load} if has_quota else {tools.cores.server})

        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=directory,
                env=server.environment(self.output),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=enter,
                start_new_session=True,
            )
        self.pid = self._process.pid
        try:
            self._wait()
            if server.quota is not None:
                self.limit(server.quota)
            if server.quota_each is not None:
                for process in tree(self.pid):
                    quota = self._new_quota(str(process))
                    quota.join(process)
                    quota.limit(server.quota_each)
        except BaseException:
            self.stop()
            raise

    def limit(self, cores: float) -> None:
        """Give another quota to a server that has one."""
        assert self._quota is not None
        self._quota.limit(cores)

    @property
    def compiled(self) -> bool:
        """Whether it has said at its start that the compiled path is in use."""
        with open(self._log, encoding="utf-8", errors="replace") as file:
            return says_compiled(file.read())

    def cpu_seconds(self) -> float:
        """Return the processor time that it has taken so far."""
        return cpu_seconds(self.pid)

    def resident_kib(self) -> int:
        """Return its resident memory."""
        return resident_kib(self.pid)

    def forget(self) -> None:
        """Empty its file of messages."""
        with suppress(FileNotFoundError):
            os.truncate(self.output, 0)

    def stop(self) -> None:
        """End it politely, and all that is left of it otherwise."""
        if self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE)
        # Its session is its own, so these are its own processes.
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        for quota in self._quotas:
            quota.remove()

    def _new_quota(self, what: str) -> Quota:
        self._quotas.append(Quota(f"{self.server.name}-{what}".replace(" ", "-")))
        return self._quotas[-1]

    def log(self) -> str:
        """Return the end of what it has said."""
        with open(self._log, encoding="utf-8", errors="replace") as file:
            return file.read()[-500:]

    def _wait(self) -> None:
        """Wait until it answers, and until it then has nothing more to do: several workers are not up at once."""
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if self._process.poll() is not None:
                raise Broken(f"{self.server.name} has ended: {self.log()}")
            if time.monotonic() > deadline:
                raise Broken(f"{self.server.name} does not answer: {self.log()}")
            time.sleep(0.02)
        while self._is_at_work() and time.monotonic() < deadline:
            pass

    def _answers(self) -> bool:
        """Ask for something that is not there."""
        context = None if self.server.tls is None else tls_context()
        with suppress(OSError), connect(self.port, context) as connection:
            connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return connection.recv(1024).startswith(b"HTTP/1.1 4")
        return False

    def _is_at_work(self) -> bool:
        cpu = self.cpu_seconds()
        time.sleep(0.1)
        return self.cpu_seconds() - cpu > 0.02


class Lab:
    """
    The servers of one round. Use it in a C{with} statement, which ends them all.

    @param parent: the directory to work in, on the disk to measure; the system's place for such when None.
    @param seconds: how long a load is to last.
    """

    def __init__(self, tools: Tools, seconds: float = 1.0, parent: str | None = None) -> None:
        self.tools = tools
        self.seconds = seconds
        self.directory = tempfile.mkdtemp(prefix="webhookrx-benchmarks-", dir=parent)
        self._compiled: dict[Server, bool] = {}
        self._running: dict[Server, Running] = {}
        self._failed: dict[Server, Broken | Unavailable] = {}
        self._count = 0

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for running in self._running.values():
            running.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def get(self, server: Server) -> Running:
        """
        Return a server, started if it is not. Its file is empty: what an earlier load left to be written late is gone.

        @raise Unavailable: it can't be had here.
        @raise Broken: it does not come up.
        """
        if server in self._failed:
            raise self._failed[server]
        if server not in self._running:
            self._count += 1
            directory = os.path.join(self.directory, f"server-{self._count}")
            try:
                self._running[server] = Running(server, self.tools, directory)
            except (Broken, Unavailable) as error:
                self._failed[server] = error
                raise
        running = self._running[server]
        running.forget()
        return running

    def compiled(self, server: Server) -> bool | None:
        """
        Return whether the compiled path is or was in use in a server, as it says once all of its workers are up; None
        for one that was not started.
        """
        running = self._running.get(server)
        return self._compiled.get(server) if running is None else running.compiled

    def end(self, server: Server) -> None:
        """Stop a server before the others, if it runs."""
        if server in self._running:
            running = self._running.pop(server)
            self._compiled[server] = running.compiled
            running.stop()


def heed_signals() -> None:
    """Have whoever ends this process end the servers as well; in a shell's background SIGINT would be ignored."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)


def says_compiled(log: str) -> bool:
    """Return whether a webhookrx says in its log that the compiled path is in use."""
    return re.search(r"\] webhookrx \S+ \(compiled\)$", log, re.MULTILINE) is not None


def free_port() -> int:
    """Return a port that nobody has, at any address, and that the kernel gives to no connection meanwhile, ip(7)."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        given_out = int(file.read().split()[0])
    while True:
        port = random.randrange(given_out // 2, given_out)
        with socket.socket() as taken, suppress(OSError):
            taken.bind(("", port))
            return port
