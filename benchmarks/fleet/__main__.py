"""
A thousand routers at one console: C{python -m benchmarks.fleet [--routers N] [--connectors N] [--pages]}.

A whole console runs in a process of its own, with 200 rules. The routers are connections of this process by TLS with
client certificates, each with a long poll. Printed are the memory of the console's process with all of them waiting,
the time from the call that saves a rule to the last router that has its bundle, the time of a preview, the load of all
reports, how long pages take meanwhile, and the time until all have come again after the console was killed. Both
processes share the machine. The console has counts of a day before it starts.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import ssl
import tempfile
import time
from datetime import UTC, datetime
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from benchmarks.fleet.console import SITES, BenchmarkedConsole, labels_of_rule, make_token
from benchmarks.fleet.pages import measure_pages, sign_in
from benchmarks.fleet.past import write_past
from benchmarks.fleet.watched import read_turns
from webhookrx.console.counts.count_tables import SeriesLabels
from webhookrx.console.routers.authority import make_authority
from webhookrx.console.store.database import StoreWriter
from webhookrx.management.agent_body import write_body
from webhookrx.management.agent_protocol import (
    REPORT_INTERVAL,
    ConnectorState,
    CountsReport,
    RouterReport,
    SeriesCounts,
    SyncAnswer,
)
from webhookrx.management.bundle import digest

#: Of a router's retry by full jitter, seconds.
_JITTER: Final = 1.0

RULES: Final = 200


class _FakeRouter:
    """A router that polls for ever."""

    def __init__(self, number: int, port: int, context: ssl.SSLContext, connectors: int) -> None:
        self._number = number
        self._connectors = connectors
        self._port = port
        self.reports = 0
        self._context = context
        self.have = ""
        self.polls = 0
        self.synced_at = 0.0
        self.connected = 0

    async def run(self) -> None:
        """Connect again whenever the connection ends, as routers do."""
        while True:
            try:
                await self._connection()
            except (OSError, asyncio.IncompleteReadError, ValueError):
                self.connected = 0
                await asyncio.sleep(random.uniform(0, _JITTER))

    async def report(self) -> None:
        """Report for ever, each at its own time, on a connection of its own as routers do."""
        await asyncio.sleep(random.uniform(0, REPORT_INTERVAL))
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=self._context, server_hostname="localhost"
        )
        connectors = _connectors(self._number, self._connectors)
        names = [each.name for each in connectors]
        begun = time.time_ns()
        while True:
            now, number = time.time_ns(), self.reports + 1
            series = tuple(
                SeriesCounts(name=name, messages=9 * number, bytes=900 * number, last=now / 1e9, answers=(number,) * 16)
                for name in names
            )
            counts = CountsReport(begun=begun, since=now - REPORT_INTERVAL * 10**9, until=now, series=series)
            report = RouterReport(
                number=number,
                begun=begun,
                instance="one",
                base=number - 1,
                connectors=connectors if number == 1 else None,
                counts=counts,
            )
            body = write_body(report)
            head = f"POST /agent/v1/report HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            if b" 204 " not in answer.split(b"\r\n")[0]:
                raise ValueError(answer)
            self.reports = number
            await asyncio.sleep(REPORT_INTERVAL)

    async def _connection(self) -> None:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=self._context, server_hostname="localhost", limit=1 << 20
        )
        try:
            while True:
                query = f"have={self.have}&wait=55"
                writer.write(f"GET /agent/v1/sync?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                self.connected = 1
                head = await reader.readuntil(b"\r\n\r\n")
                status = int(head.split(b" ", 2)[1])
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                body = await reader.readexactly(length) if length else b""
                if status == 200:
                    self.have = digest(bytes(msgspec.json.decode(body, type=SyncAnswer).bundle))
                    self.synced_at = time.monotonic()
                elif status != 204:
                    raise ValueError(status)
                self.polls += 1
        finally:
            writer.close()


def _guid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def _connectors(number: int, count: int) -> tuple[ConnectorState, ...]:
    """Return so many connectors of a router: of the rules of its site."""
    rules = range(number % len(SITES), RULES, len(SITES))[:count]
    return tuple(
        ConnectorState(name=f"router-{number}-rule-{each}-hooks", rule=f"rule-{each}", port=8000 + each)
        for each in rules
    )


def _labels(number: int, count: int) -> list[SeriesLabels]:
    """Return by which labels analytics find these connectors."""
    site = {"site": SITES[number % len(SITES)]}
    return [
        SeriesLabels(each.name, each.rule, each.port, labels_of_rule(each.port - 8000), f"router-{number}", site)
        for each in _connectors(number, count)
    ]


def _make_fleet(directory: str, count: int) -> list[ssl.SSLContext]:
    """Make the files of a console that knows so many routers, and return what each connects with."""
    now = datetime.now(UTC)
    authority = make_authority(directory, now)
    writer = StoreWriter(os.path.join(directory, "console.sqlite"), time.time)
    contexts: list[ssl.SSLContext] = []
    rows: list[tuple[object, ...]] = []
    certificates: list[tuple[object, ...]] = []
    ca = authority.authorities[0]
    for number in range(count):
        key = ec.generate_private_key(ec.SECP256R1())
        request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, SHA256())
        guid = _guid(number)
        issued = authority.issue(request.public_bytes(Encoding.PEM).decode(), guid, now)
        rows.append((guid, f"router-{number}", "approved", f'{{"site":"{SITES[number % 8]}"}}', time.time()))
        certificates.append((issued.fingerprint, guid, time.time(), issued.ends))
        file = os.path.join(directory, "router.pem")
        with open(file, "wb") as out:
            out.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + issued.pem.encode())
        context = ssl.create_default_context(cadata=ca)
        context.load_cert_chain(file)
        contexts.append(context)
    os.unlink(os.path.join(directory, "router.pem"))
    writer.write(
        lambda t: (
            t.db.executemany(
                "INSERT INTO router (guid, name, state, labels, enrolled_at) VALUES (?, ?, ?, ?, ?)", rows
            ),
            t.db.executemany(
                "INSERT INTO certificate (fingerprint, guid, issued_at, ends_at) VALUES (?, ?, ?, ?)", certificates
            ),
        )
    )
    writer.close()
    return contexts


async def _until(holds: object, seconds: float = 120.0) -> float:
    """Wait until a function returns true, and return for how long."""
    began = time.monotonic()
    while not holds():  # type: ignore[operator]
        if time.monotonic() - began > seconds:
            raise TimeoutError("The routers have not come in time.")
        await asyncio.sleep(0.01)
    return time.monotonic() - began


async def _measure(
    directory: str, contexts: list[ssl.SSLContext], token: str, connectors: int, *, only_pages: bool
) -> None:
    console = BenchmarkedConsole(directory, token)
    console.push(RULES)
    routers = [_FakeRouter(number, console.routers, context, connectors) for number, context in enumerate(contexts)]
    running = [asyncio.create_task(each.run()) for each in routers]
    try:
        took = await _until(lambda: all(each.polls for each in routers))
        print(f"{len(routers):,} routers connected and had a bundle after {took:.1f} s")
        await asyncio.sleep(2)
        print(f"console's memory with {len(routers):,} long polls: {console.memory:.0f} MiB (goal: 150 MiB at most)")
        for number in range(0 if only_pages else 3):
            before = [each.have for each in routers]
            began = time.monotonic()
            saving = asyncio.create_task(asyncio.to_thread(console.save, RULES + number))
            await _until(lambda before=before: all(each.have != had for each, had in zip(routers, before, strict=True)))
            await saving
            times = sorted(each.synced_at - began for each in routers)
            middle, last = times[len(times) // 2], times[-1]
            print(f"rule saved until all had it: {last:.2f} s, half of them {middle:.2f} s (goal: 2 s at most)")
        print(f"console's memory after that: {console.memory:.0f} MiB")
        times = await asyncio.to_thread(lambda: sorted(console.preview(number) for number in range(20)))
        print(
            f"preview by the API: middle {times[10] * 1e3:.0f} ms, p95 {times[18] * 1e3:.0f} ms (goal: 300 ms at most)"
        )
        reporting = [asyncio.create_task(each.report()) for each in routers]
        running += reporting
        await _until(lambda: all(each.reports for each in routers))
        busy, began = console.processor_time, time.monotonic()
        await asyncio.sleep(2 * REPORT_INTERVAL)
        share = (console.processor_time - busy) / (time.monotonic() - began)
        print(f"reports of {connectors} connectors each: {share:.1%} of a core (goal: 15 % at most)")
        print(f"console's memory with a second connection of each router, for reports: {console.memory:.0f} MiB")
        # All of them have written their first counts by then.
        await asyncio.sleep(60)
        await asyncio.to_thread(
            measure_pages, console.port, sign_in(directory, "mara"), lambda: read_turns(console.turns)
        )
        if only_pages:
            return
        for each in reporting:
            each.cancel()
        console.kill()
        killed = time.monotonic()
        for router in routers:
            router.connected = 0
        await asyncio.to_thread(console.start)
        back = time.monotonic() - killed
        await _until(lambda: all(each.connected for each in routers))
        again = time.monotonic() - killed - back
        print(f"killed and back after {back:.1f} s; all polled again {again:.1f} s later (goal: 15 s at most)")
    finally:
        for polling in running:
            polling.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        console.kill()


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routers", type=int, default=1_000)
    parser.add_argument("--connectors", type=int, default=20, help="of each router, in its reports")
    parser.add_argument("--pages", action="store_true", help="leave out saving rules and the restart")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        contexts = _make_fleet(directory, given.routers)
        token = make_token(directory)
        labels = {_guid(number): _labels(number, given.connectors) for number in range(given.routers)}
        rows = write_past(os.path.join(directory, "console.sqlite"), labels) if given.connectors else 0
        print(f"{rows:,} sums of a past day written")
        asyncio.run(_measure(directory, contexts, token, given.connectors, only_pages=given.pages))


if __name__ == "__main__":
    main()
