"""
An aiohttp server on uvloop: C{python -m benchmarks.peers.aiohttp_app PORT}.
"""

from __future__ import annotations

import sys

import uvloop
from aiohttp import web

from benchmarks.peers.job import ANSWER, PATH, Lines

_lines = Lines()


async def _take(request: web.Request) -> web.Response:
    body = await request.read()
    assert request.transport is not None
    address, port = request.transport.get_extra_info("peername")
    _lines.take(body, address, port)
    return web.Response(body=ANSWER, content_type="application/json")


def main(port: int) -> None:
    """Serve until a signal comes."""
    app = web.Application()
    app.router.add_post("/{path:" + PATH.pattern.removeprefix("/") + "}", _take)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=lambda *_: None, loop=uvloop.new_event_loop())


if __name__ == "__main__":
    main(int(sys.argv[1]))
