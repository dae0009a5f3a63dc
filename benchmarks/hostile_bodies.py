"""
What the most expensive bodies cost, and how long an honest sender waits: C{python -m benchmarks.hostile_bodies}.

One connection sends bodies of a shape, one after the other, to each form of source in each content coding. Meanwhile
another sends small requests. For each case: how it was answered, the longest wait of a small request beyond what is
usual at rest, the processor time by byte of the unpacked body, how far the resident memory rose, and how many
bytes went to disk for each of the body.

With C{--short} the bodies are smaller, and the process fails if a case takes too much processor time or too many bytes
on disk. Waits depend on what else the machine does, so they are shown and never judged.
"""

from __future__ import annotations

import argparse
import gzip
import os
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import brotli  # type: ignore[import-untyped]

from tests.system.receiver import Connection, Receiver, post

MiB = 1024 * 1024

MOST_GROWTH = 8
"""Bytes on disk for each of the unpacked body, beyond L{ALLOWANCE}."""

ALLOWANCE = 300 * 1024

MOST_NANOSECONDS = 80.0
"""Processor time by byte of an unpacked body in a short run, reading and writing included, on a busy machine."""

MOST_SECONDS = 0.05
"""Processor time beyond that: some bounds are by count."""

SPLIT = ("lines", "documents", "events")
"""Forms that take bodies apart into up to 10,000 messages."""

MOST_SPLIT_SECONDS = 1.2
"""C{MOST_SECONDS} for these: the brackets of a body are counted, and each event costs as much as a small request."""

SPLIT_ALLOWANCE = 8 * MiB
"""C{ALLOWANCE} for these: each event is a line of half a kibibyte, whatever is in it."""

_CONFIG = """
port: "tcp:0:interface=127.0.0.1"
sources:
  - {name: raw, source: webhook, paths: ["/raw"]}
  - {name: json, source: webhook-json, paths: ["/json"]}
  - {name: lines, source: webhook-json, paths: ["/lines"], split: lines}
  - {name: documents, source: webhook-json, paths: ["/documents"], split: documents}
  - {name: events, source: webhook-json, paths: ["/events"], split: /a/*}
limits: {body: 25MiB, queue: 128MiB, unpack_ratio: UNPACK_RATIO}
ack: written
"""

_RULES = """
connector_rules:
  - {name: hostile, protocol: HTTP, port: 0, paths: ["/router"]}
"""


def _times(piece: bytes) -> Callable[[int], bytes]:
    return lambda size: piece * (size // len(piece) or 1)


def _in_string(piece: bytes) -> Callable[[int], bytes]:
    return lambda size: b'{"a":"' + piece * ((size - 8) // len(piece)) + b'"}'


def _in_array(element: bytes, *, most: int | None = None) -> Callable[[int], bytes]:
    def shape(size: int) -> bytes:
        count = (size - 8) // (len(element) + 1)
        return b'{"a":[' + b",".join([element] * min(count, most or count)) + b"]}"

    return shape


def _members(most: int, value: bytes) -> Callable[[int], bytes]:
    def shape(size: int) -> bytes:
        count = min(most, size // (14 + len(value)))
        filler = value * max(1, (size // count - 14) // len(value))
        return b"{" + b",".join(b'"k%08d":"%s"' % (number, filler) for number in range(count)) + b"}"

    return shape


def _deep(size: int) -> bytes:
    one = b'{"k":' * 126 + b"1" + b"}" * 126
    count = size // (len(one) + 12)
    return b"{" + b",".join(b'"%06d":%s' % (number, one) for number in range(count)) + b"}"


def _long_names(size: int) -> bytes:
    name = b"n" * 1000
    return b'{"%s":{' % name + b",".join(b'"%d":1' % number for number in range(size // 10)) + b"}}"


#: Shapes by name: a body of about so many bytes.
SHAPES: dict[str, Callable[[int], bytes]] = {
    "text": _times(b"a plain line of a log "),
    "0xff": _times(b"\xff"),
    "a 0xff": _times(b"a\xff"),
    "cut UTF-8": _times(b"\xf0\x9f\x98"),
    "control": _times(b"\x01"),
    "DEL": _times(b"\x7f"),
    "C1": _times("\x80".encode()),
    "U+2028": _times("\u2028".encode()),
    "all misleading": _times("".join(map(chr, (*range(0x7F, 0xA0), *range(0x2028, 0x202F)))).encode()),
    "ellipsis": _times("…".encode()),
    "emoji": _times("a😀".encode()),
    "quotes": _times(b'"'),
    "backslashes": _times(b"\\"),
    "line ends": _times(b"\n"),
    "brackets": _times(b"["),
    "string": _in_string(b"x"),
    "string of DEL": _in_string(b"\x7f"),
    "escapes": _in_string(b"\\n"),
    "escaped quotes": _in_string(b'\\",'),
    "escaped controls": _in_string(b"\\u0001"),
    "pairs of surrogates": _in_string(b"\\ud83d\\ude00"),
    "lone surrogates": _in_string(b"\\ud800"),
    "strings of commas": _in_array(b'","'),
    "integers": _in_array(b"1"),
    "long integers": _in_array(b"9" * 4299),
    "fractions": _in_array(b"1.5"),
    "lists": _in_array(b"[]"),
    "objects": _in_array(b'{"a":1}'),
    "90,000 lists": _in_array(b"[]", most=90_000),
    "90,000 fractions": _in_array(b"1.5", most=90_000),
    "33,000 nested objects": _in_array(b'{"a":{"b":1}}', most=33_000),
    "60,000 long integers": _in_array(b"9" * 30, most=60_000),
    "names of bidi controls": lambda size: _members(9_000, b"x")(size).replace(b"k", "\u061c".encode()),
    "escapes and controls": _in_string(b"\\n\x7f\xe2\x80\xa8"),
    "249,000 members": _members(249_000, b"x"),
    "90,000 members": _members(90_000, b"x"),
    "9,000 members": _members(9_000, b"x"),
    "9,000 members of quotes": _members(9_000, b'\\"'),
    "126 levels": _deep,
    "long names": _long_names,
    "10,000 events": lambda size: _in_array(b'{"m":"%s"}' % (b"x" * (size // 10_000 - 9)))(size),
    "10,000 long envelopes": lambda size: b'{"x":"%s",' % (b"y" * 1_600) + _in_array(b'{"m":1}', most=10_000)(size)[1:],
    "10,000 lines": lambda size: (b'{"m":"%s"}\n' % (b"x" * (size // 10_000 - 10))) * 10_000,
    "10,000 documents of lists": lambda size: (b"[" + b",".join([b"[]"] * (size // 30_000 - 1)) + b"]") * 10_000,
    "JSON5": lambda size: b"{a:[" + b"1," * (size // 2) + b"]}",
    "JSON5, 16 KiB": lambda size: b"{a:[" + b"1," * (8 * 1024 - 8) + b"]}",
    "JSON cut at the end": lambda size: _in_array(b"1.5", most=90_000)(size)[:-1],
}

CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "identity": lambda body: body,
    "gzip": lambda body: gzip.compress(body, 6),
    "br": lambda body: brotli.compress(body, quality=4),
}

PATHS = ("raw", "json", "router", "lines", "documents", "events")


@dataclass(frozen=True)
class Cost:
    """
    What one case has cost.

    @ivar statuses: of all answers.
    @ivar wait: seconds.
    @ivar nanoseconds: processor time by byte.
    @ivar memory: bytes above rest.
    @ivar growth: bytes on disk for each of the body, beyond L{ALLOWANCE} or L{SPLIT_ALLOWANCE}.
    """

    statuses: tuple[int, ...]
    wait: float
    nanoseconds: float
    memory: int
    growth: float


class Honest:
    """
    Sends a small request every few milliseconds, and remembers how long each took.

    @ivar rest: what is usual, in seconds.
    """

    def __init__(self, port: int, pause: float = 0.003) -> None:
        self._port = port
        self._pause = pause
        self._waits: list[float] = []
        self.rest = 0.0
        self._stop = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with Connection(self._port) as connection:
            while not self._stop:
                began = time.perf_counter()
                connection.send(post(b"hello", target="/raw")).answer()
                self._waits.append(time.perf_counter() - began)
                time.sleep(self._pause)

    def remember_rest(self) -> None:
        """Take what was measured so far for what is usual."""
        self.rest = statistics.median(self.take())

    def take(self) -> list[float]:
        """Return what was measured since the last call."""
        waits, self._waits = self._waits, []
        return waits

    def end(self) -> None:
        """Stop sending."""
        self._stop = True
        self._thread.join()


class Bench:
    """A receiver with all forms."""

    def __init__(self, unpack_ratio: int) -> None:
        self.receiver = Receiver("--config", "config.yaml", "--rules", "rules.yaml", "--router-name", "r", port=None)
        self.router_port = _free_port()
        self._write("config.yaml", _CONFIG.replace("UNPACK_RATIO", str(unpack_ratio)))
        self._write("rules.yaml", _RULES.replace("port: 0", f"port: {self.router_port}"))

    def _write(self, name: str, text: str) -> None:
        with open(self.receiver.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def port(self, path: str) -> int:
        """Return where a form listens."""
        return self.router_port if path == "router" else self.receiver.port

    def cost(
        self, honest: Honest, path: str, coding: str, body: bytes, packed: bytes, times: int, senders: int
    ) -> Cost:
        """Send a body so many times on so many connections, and return what it has cost."""
        pid, output = self.receiver.pid, self.receiver.path("messages.jsonl")
        headers = [] if coding == "identity" else [f"Content-Encoding: {coding}"]
        request = post(packed, target=f"/{path}", headers=headers)
        honest.take()
        memory = self.receiver.resident()
        self.receiver.forget_peak()
        written, processor = os.path.getsize(output), _processor_time(pid)
        statuses: list[int] = []
        threads = [
            threading.Thread(target=lambda: statuses.extend(_send(self.port(path), request, times)))
            for _ in range(senders)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        processor = _processor_time(pid) - processor
        waits = honest.take()
        size = len(body) * times * senders
        # Lines of small requests are 300 bytes each.
        written = os.path.getsize(output) - written - 300 * len(waits)
        allowed = SPLIT_ALLOWANCE if path in SPLIT else ALLOWANCE
        growth = (written - allowed * times * senders) / size
        os.truncate(output, 0)
        own = processor - len(waits) * 120e-6
        return Cost(
            tuple(sorted(set(statuses))),
            max(waits, default=0.0) - honest.rest,
            own / size * 1e9,
            (self.receiver.peak() - memory) * 1024,
            growth,
        )


def _send(port: int, request: bytes, times: int) -> Iterator[int]:
    connection: Connection | None = None
    for _ in range(times):
        if connection is None:
            connection = Connection(port).__enter__()
        try:
            answer = connection.send(request).answer()
        except OSError:
            answer = None
        yield answer.status if answer is not None else 0
        if answer is None or answer.status != 200:
            connection.__exit__(None, None, None)
            connection = None
    if connection is not None:
        connection.__exit__(None, None, None)


def _processor_time(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> int:
    """Measure and print; return 1 if a short run has found too much."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--short", action="store_true", help="2 MiB, one coding, and bounds that must hold")
    parser.add_argument("--mebibytes", type=int, default=10, help="of each body (default: 10)")
    parser.add_argument("--senders", type=int, default=1, help="connections that send such bodies (default: 1)")
    parser.add_argument("--times", type=int, default=3, help="bodies on each (default: 3)")
    parser.add_argument("--unpack-ratio", type=int, default=100, help="the limit of that name (default: 100)")
    parser.add_argument("--shape", action="append", help="only this one; may be repeated")
    parser.add_argument("--form", action="append", choices=PATHS, help="only this one; may be repeated")
    chosen = parser.parse_args()
    size = 2 * MiB if chosen.short else chosen.mebibytes * MiB
    codings = ["identity"] if chosen.short else list(CODINGS)
    bench = Bench(chosen.unpack_ratio)
    too_much = []
    print(f"{'shape':24} {'form':9} {'coding':9} {'status':9} {'wait ms':>8} {'ns/B':>7} {'MiB':>6} {'disk/B':>7}")
    try:
        bench.receiver.start()
        honest = Honest(bench.receiver.port)
        time.sleep(1.0)
        honest.remember_rest()
        for name in chosen.shape or SHAPES:
            body = SHAPES[name](size)
            for coding in codings:
                packed = CODINGS[coding](body)
                for path in chosen.form or PATHS:
                    cost = bench.cost(honest, path, coding, body, packed, chosen.times, chosen.senders)
                    print(
                        f"{name:24} {path:9} {coding:9} {','.join(map(str, cost.statuses)):9} {cost.wait * 1e3:8.1f}"
                        f" {cost.nanoseconds:7.1f} {cost.memory / MiB:6.0f} {cost.growth:7.2f}",
                        flush=True,
                    )
                    seconds = MOST_SPLIT_SECONDS if path in SPLIT else MOST_SECONDS
                    if cost.growth > MOST_GROWTH or cost.nanoseconds > MOST_NANOSECONDS + seconds * 1e9 / len(body):
                        too_much.append(f"{name}, {path}, {coding}")
        honest.end()
    finally:
        bench.receiver.clean_up()
    for case in too_much:
        print(f"Too much processor time, or too much on disk: {case}")
    return 1 if chosen.short and too_much else 0


if __name__ == "__main__":
    sys.exit(main())
