"""
What a body costs in memory that unpacks to 600 MiB: C{python -m benchmarks.bomb_memory}.

For each content coding: how large the bomb is on the wire, how it was answered and how fast, and how far the resident
memory of the process rose above rest meanwhile (C{VmHWM}).
"""

from __future__ import annotations

import time

from tests.system.bombs import BOMBS, MiB
from tests.system.receiver import Connection, Receiver, post

SIZE = 600 * MiB


def main() -> None:
    """Measure and print."""
    receiver = Receiver()
    try:
        receiver.start()
        for coding, bomb in BOMBS.items():
            body = bomb(SIZE)
            _ask(receiver.port, post(b"hello"))
            rest = receiver.resident()
            receiver.forget_peak()
            began = time.monotonic()
            status = _ask(receiver.port, post(body, headers=[f"Content-Encoding: {coding}"]))
            seconds = time.monotonic() - began
            above = (receiver.peak() - rest) / 1024
            print(f"{coding:8} {len(body):7} bytes: {status} in {seconds * 1e3:4.0f} ms, {above:5.1f} MiB above rest")
    finally:
        receiver.clean_up()


def _ask(port: int, request: bytes) -> int:
    with Connection(port) as connection:
        answer = connection.send(request).answer()
    assert answer is not None
    return answer.status


if __name__ == "__main__":
    main()
