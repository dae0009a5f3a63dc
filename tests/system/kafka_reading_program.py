"""
A member of a group, in a process of its own to be killed.

C{python -m tests.system.kafka_reading_program SPEC GROUP COUNT SETTLED} fetches so many records, settles the first
ones, says so, and keeps the others for ever.
"""

from __future__ import annotations

import sys
import time

from webhookrx.relay.consumer import Record
from webhookrx.relay.registry import build_consumer


def main() -> None:
    """Run."""
    spec, group, count, settled = sys.argv[1:]
    consumer = build_consumer(spec, group)
    consumer.open()
    records: list[Record] = []
    while len(records) < int(count):
        records += consumer.fetch(int(count) - len(records), 1024 * 1024, 0.5)
    consumer.settle(records[: int(settled)])
    print("settled", flush=True)
    while True:
        consumer.keep_alive()
        time.sleep(0.1)


if __name__ == "__main__":
    main()
