"""
A bare RSGI application: C{granian --interface rsgi benchmarks.peers.rsgi_app:app}.
"""

from __future__ import annotations

from typing import Any

from benchmarks.peers.job import ANSWER, PATH, Lines

_lines = Lines()
_HEADERS = [("content-type", "application/json")]


async def app(scope: Any, protocol: Any) -> None:
    """Take one request."""
    if scope.method != "POST" or not PATH.fullmatch(scope.path):
        protocol.response_empty(404, [])
        return
    address, _, port = scope.client.rpartition(":")
    _lines.take(await protocol(), address, int(port))
    protocol.response_bytes(200, _HEADERS, ANSWER)
