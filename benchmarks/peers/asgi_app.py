"""
A bare ASGI application, without a framework: C{uvicorn benchmarks.peers.asgi_app:app}.
"""

from __future__ import annotations

from typing import Any

from benchmarks.peers.job import ANSWER, PATH, Lines

_lines = Lines()
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Take one request."""
    if scope["type"] != "http":
        return
    if scope["method"] != "POST" or not PATH.fullmatch(scope["path"]):
        await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})
        return
    pieces = []
    more = True
    while more:
        event = await receive()
        pieces.append(event["body"])
        more = event["more_body"]
    address, port = scope["client"]
    _lines.take(b"".join(pieces), address, port)
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": ANSWER})
