"""
A server that answers like an HTTP store that has taken everything: C{python -m benchmarks.stores.answering PORT KIND}.

It reads what is posted, counts, and stores nothing: what is measured is the other end.
"""

from __future__ import annotations

import json
import socketserver
import sys

HEC = b'{"text":"Success","code":0}'


def answer(kind: str, body: bytes) -> tuple[int, bytes]:
    """Return status and body for what was posted, as the documentation of a store has them."""
    if kind == "splunk-hec":
        return 200, HEC
    if kind == "loki":
        return 204, b""
    if kind == "otlp":
        return 200, b"{}"
    if kind == "elasticsearch":
        count = body.count(b"\n") // 2
        return 200, json.dumps({"errors": False, "items": [{"create": {"status": 201}}] * count}).encode()
    return 200, b""


class Handler(socketserver.StreamRequestHandler):
    """Serves a connection, which stays."""

    kind = ""

    def handle(self) -> None:
        """Answer one request after the other."""
        while line := self.rfile.readline():
            length = 0
            while line := self.rfile.readline():
                if line == b"\r\n":
                    break
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            status, body = answer(self.kind, self.rfile.read(length))
            head = b"HTTP/1.1 %d OK\r\n" % status
            fields = (
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                if status != 204
                else b"\r\n"
            )
            self.wfile.write(head + fields + body)


class Server(socketserver.ThreadingTCPServer):
    """Listens on 127.0.0.1."""

    allow_reuse_address = True
    daemon_threads = True


def main() -> None:
    """Serve until the process ends."""
    Handler.kind = sys.argv[2]
    with Server(("127.0.0.1", int(sys.argv[1])), Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
