"""A front for the ClickHouse of Debian, which is too old for some settings: it takes these from requests."""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode

UNKNOWN = frozenset({"async_insert", "wait_for_async_insert", "insert_deduplication_token"})
"""What 18.16 answers with code 115, C{UNKNOWN_SETTING}."""

_PATIENCE = 30.0


class ClickhouseFront:
    """
    Listens on a port of 127.0.0.1 as soon as it is made. Where the server gives no answer, it gives none.

    @param target: the port of the server.
    @ivar port: the port that it listens on.
    """

    def __init__(self, target: int) -> None:
        self._server = _FrontServer(("127.0.0.1", 0), _FrontHandler)
        self._server.target = target
        self.port: int = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class _FrontServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    target: int

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that were cut."""


class _FrontHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _FrontServer

    def do_POST(self) -> None:
        """Pass a request on without what the server does not know, and its answer back."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path, _, query = self.path.partition("?")
        known = urlencode([(name, value) for name, value in parse_qsl(query) if name not in UNKNOWN])
        fields = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        backend = http.client.HTTPConnection("127.0.0.1", self.server.target, timeout=_PATIENCE)
        try:
            backend.request("POST", f"{path}?{known}", body, fields)
            answer = backend.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self.close_connection = True
            return
        finally:
            backend.close()
        self.send_response_only(answer.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
