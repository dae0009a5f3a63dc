"""A real PostgreSQL, as another user than root where the tests are root: it refuses to run as that."""

from __future__ import annotations

import glob
import grp
import os
import pwd
import shutil
import signal
import subprocess
from contextlib import suppress

from tests.system.servers.process import Server, program


def _programs() -> str:
    """Return the directory of PostgreSQL's own programs; Debian keeps them out of C{PATH}."""
    found = program("initdb")
    candidates = [os.path.dirname(os.path.realpath(found))] if found else []
    candidates += sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=_version, reverse=True)
    return next((path for path in candidates if os.path.exists(f"{path}/postgres")), "")


def _users() -> set[str]:
    return {entry.pw_name for entry in pwd.getpwall()}


def _version(path: str) -> float:
    return float(path.split("/")[-2])


class PostgresqlServer(Server):
    """
    C{postgres} with one database, C{logs}, whose owner is C{webhookrx} with the password C{PASSWORD}.

    @param options: settings, such as C{max_connections=3}.
    """

    name = "postgresql"
    PASSWORD = "pg-5ecret"
    DATABASE = "logs"
    OWNER = "webhookrx"

    def __init__(self, *options: str) -> None:
        super().__init__()
        self.options = list(options)
        self._backends: list[int] = []
        if os.getuid() == 0:
            self.user = next(name for name in ("postgres", "nobody") if name in _users())
            self.group = grp.getgrgid(pwd.getpwnam(self.user).pw_gid).gr_name

    @classmethod
    def missing(cls) -> str:
        """Say that it is not installed."""
        return "" if _programs() else "no PostgreSQL server: apt-get install postgresql"

    def prepare(self) -> None:
        """Make a cluster and the database; all connections need the password."""
        os.chmod(self.directory, 0o755)
        os.mkdir(self.path("data"), 0o700)
        password = self.write("password", f"{self.PASSWORD}\n")
        if self.user:
            shutil.chown(self.path("data"), self.user, self.group)
        initdb = (f"{_programs()}/initdb", "-D", self.path("data"), "-U", self.OWNER, "--auth=scram-sha-256")
        self.run(*initdb, f"--pwfile={password}", "-E", "UTF8", "--locale=C", "--no-sync")
        done = subprocess.run(
            (f"{_programs()}/postgres", "--single", "-D", self.path("data"), "postgres"),
            input=f"CREATE DATABASE {self.DATABASE}\n",
            capture_output=True,
            text=True,
            cwd="/",
            user=self.user or None,
            group=self.group or None,
            extra_groups=[] if self.user else None,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr

    def command(self) -> list[str]:
        """Run it on loopback alone."""
        settings = [
            "listen_addresses=127.0.0.1",
            f"port={self.port}",
            "unix_socket_directories=",
            "shared_buffers=16MB",
            *self.options,
        ]
        arguments = [part for setting in settings for part in ("-c", setting)]
        return [f"{_programs()}/postgres", "-D", self.path("data"), *arguments]

    def is_ready(self) -> bool:
        """Ask as a client does before it knows a password."""
        ready = (f"{_programs()}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-t", "1")
        return subprocess.run(ready, stdin=subprocess.DEVNULL, timeout=10).returncode == 0

    def _signal(self, number: signal.Signals) -> None:
        """Reach its backends too, which have groups of their own (C{setsid} in C{InitPostmasterChild})."""
        if self._process is None:
            return
        if number != signal.SIGCONT:
            # It starts no further ones meanwhile.
            super()._signal(signal.SIGSTOP)
            self._backends = _children(self.pid)
        for pid in self._backends:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        super()._signal(number)

    def _is_gone(self) -> bool:
        return super()._is_gone() and not any(_state(pid) not in ("", "Z") for pid in self._backends)


def _children(parent: int) -> list[int]:
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    return [pid for pid in pids if _stat(pid)[1:2] == [str(parent)]]


def _state(pid: int) -> str:
    return next(iter(_stat(pid)), "")


def _stat(pid: int) -> list[str]:
    """Return state, parent and so on of a process, see proc(5); nothing of one that is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []
