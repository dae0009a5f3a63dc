"""
What an idle connection costs the receiver in memory: C{python -m benchmarks.idle_memory [COUNT]}, 10,000 unless told.

The connections come from as many loopback addresses as the limit by peer asks for. Printed is the resident memory of
the process above what it had before they came, by connection: opened and silent, then after one request on each. What
the kernel holds for a socket is not in it.
"""

from __future__ import annotations

import resource
import socket
import sys
import time

from tests.system.receiver import Receiver, post, wait_until

PER_ADDRESS = 1000


def main(count: int) -> None:
    """Measure and print."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < count + 100:
        raise SystemExit(f"{count} connections need more open files than this system allows: ulimit -Hn is {most}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    limits = ("header_time=10m", "idle_time=10m", f"connections={count + 100}")
    receiver = Receiver(*(word for limit in limits for word in ("--limit", limit)))
    try:
        receiver.start()
        files = receiver.open_files()
        _warm_up(receiver.port)
        wait_until(lambda: receiver.open_files() <= files, "the first connections are gone")
        rest = receiver.resident()
        began = time.monotonic()
        connections = [_connect(receiver.port, number) for number in range(count)]
        wait_until(lambda: receiver.open_files() >= files + count, "all connections are open", 60)
        print(f"{count} connections opened in {time.monotonic() - began:.1f} s; at rest {rest} KiB")
        _print("opened and silent", receiver.resident() - rest, count)
        for connection in connections:
            connection.sendall(post(b"hello"))
            if not connection.recv(4096).startswith(b"HTTP/1.1 200 "):
                raise SystemExit("a request was refused")
        _print("after one request", receiver.resident() - rest, count)
    finally:
        receiver.clean_up()


def _warm_up(port: int) -> None:
    """Let the process make what it makes once."""
    for number in range(100):
        with _connect(port, number) as connection:
            connection.sendall(post(b"hello"))
            connection.recv(4096)


def _connect(port: int, number: int) -> socket.socket:
    source = f"127.0.1.{1 + number // PER_ADDRESS}"
    return socket.create_connection(("127.0.0.1", port), 30, (source, 0))


def _print(what: str, above: int, count: int) -> None:
    print(f"{what}: {above} KiB above rest, {above / count:.2f} KiB a connection")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
