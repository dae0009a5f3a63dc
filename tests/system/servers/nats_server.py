"""A real NATS with JetStream, whose streams are files."""

from __future__ import annotations

from tests.system.servers.process import Server, ask, free_port, program


class NatsServer(Server):
    """
    C{nats-server} of Debian.

    @param options: lines of its configuration, such as C{max_payload: 1MB}.
    @ivar monitor: the port of its pages for operators.
    """

    name = "nats"

    def __init__(self, *options: str) -> None:
        super().__init__()
        self.options = list(options)
        self.monitor = 0

    @classmethod
    def missing(cls) -> str:
        """Say that it is not installed."""
        return "" if program("nats-server") else "no nats-server: apt-get install nats-server"

    def command(self) -> list[str]:
        """Write the configuration, and run it."""
        self.monitor = self.monitor or free_port()
        lines = [
            f'listen: "{self.address}"',
            f'http: "127.0.0.1:{self.monitor}"',
            f'jetstream {{ store_dir: "{self.directory}" }}',
            *self.options,
        ]
        return [program("nats-server"), "-c", self.write("nats.conf", "\n".join(lines) + "\n")]

    def is_ready(self) -> bool:
        """Tell whether JetStream has recovered its streams."""
        request = b"GET /healthz HTTP/1.0\r\n\r\n"
        return b" 200 " in ask(self.monitor, request, b"\r\n").partition(b"\r\n")[0]
