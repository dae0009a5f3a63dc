"""A real Redis, with an append-only file that is synced at each write."""

from __future__ import annotations

from tests.system.servers.process import Server, ask, program


class RedisServer(Server):
    """
    C{redis-server} of Debian.

    @param options: lines of its configuration, such as C{maxmemory 1mb}; later ones win.
    """

    name = "redis"

    def __init__(self, *options: str) -> None:
        super().__init__()
        self.options = list(options)

    @classmethod
    def missing(cls) -> str:
        """Say that it is not installed."""
        return "" if program("redis-server") else "no redis-server: apt-get install redis-server"

    def command(self) -> list[str]:
        """Write the configuration, and run it."""
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f"dir {self.directory}",
            "daemonize no",
            'save ""',
            "appendonly yes",
            "appendfsync always",
            *self.options,
        ]
        return [program("redis-server"), self.write("redis.conf", "\n".join(lines) + "\n")]

    def is_ready(self) -> bool:
        """Tell whether it has loaded its data; one that asks for a password has, too."""
        return ask(self.port, b"PING\r\n", b"\r\n").startswith((b"+PONG", b"-NOAUTH"))
