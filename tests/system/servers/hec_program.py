"""
The process of a collector as Splunk documents it: C{python -m tests.system.servers.hec_program PORT FILE}.

It answers before events are safe, and takes its time to index them: a kill loses what it has answered with 200, and
only what it says of an ackId counts. What is indexed is in the file, synced.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

INDEXING = 0.3
"""Seconds between two times at which it indexes what has come since."""

_decode = json.JSONDecoder().raw_decode


class Collector:
    """Takes events, and indexes them later."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}
        self._waiting: list[tuple[tuple[str, int], bytes]] = []
        self._indexed: set[tuple[str, int]] = set()
        threading.Thread(target=self._index, daemon=True).start()

    def take(self, channel: str, body: str) -> int:
        """Take events, and return their ackId."""
        lines, place = [], 0
        while place < len(body):
            event, place = _decode(body, place)
            lines.append(json.dumps(event["event"]))
            while body[place : place + 1].isspace():
                place += 1
        with self._lock:
            number = self._numbers.get(channel, 0)
            self._numbers[channel] = number + 1
            self._waiting.append(((channel, number), "".join(f"{line}\n" for line in lines).encode()))
        return number

    def ask(self, channel: str, numbers: list[int]) -> dict[str, bool]:
        """Say whether events are indexed, and forget those that are."""
        with self._lock:
            states = {str(number): (channel, number) in self._indexed for number in numbers}
            self._indexed -= {(channel, number) for number in numbers}
        return states

    def _index(self) -> None:
        with open(self._path, "ab") as file:
            while True:
                time.sleep(INDEXING)
                with self._lock:
                    batch, self._waiting = self._waiting, []
                for _, lines in batch:
                    file.write(lines)
                file.flush()
                os.fsync(file.fileno())
                with self._lock:
                    self._indexed |= {key for key, _ in batch}


class _HECHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    collector: Collector

    def do_GET(self) -> None:
        """Say that it is there."""
        self.answer(200, {"text": "HEC is healthy", "code": 17})

    def do_POST(self) -> None:
        """Take events, or questions about them."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        channel = self.headers["X-Splunk-Request-Channel"]
        if self.headers["Authorization"] != "Splunk t0ken":
            self.answer(403, {"text": "Invalid token", "code": 4})
        elif self.path == "/services/collector/ack":
            self.answer(200, {"acks": self.collector.ask(channel, json.loads(body)["acks"])})
        else:
            self.answer(200, {"text": "Success", "code": 0, "ackId": self.collector.take(channel, body)})

    def answer(self, status: int, said: dict[str, Any]) -> None:
        """Answer in JSON."""
        content = json.dumps(said).encode()
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def main() -> None:
    """Serve until killed."""
    _HECHandler.collector = Collector(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _HECHandler)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main()
