"""
Tornado in the shape of the collector's webhook source: C{python -m benchmarks.peers.tornado_app PORT}.

The body stays text, the token is looked at after the body is there (none is asked for, as in the others), and each
message goes out alone. What the collector does with it in C is left out, in its favour.
"""

from __future__ import annotations

import asyncio
import sys

from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler

from benchmarks.peers.job import PATH, Lines

_lines = Lines()
_TOKEN: str | None = None


class Webhook(RequestHandler):
    """Takes one message."""

    def set_default_headers(self) -> None:
        """Say who answers, as the collector does."""
        self.set_header("Server", "collector")

    def post(self) -> None:
        """Take it."""
        if _TOKEN is not None and not self._has_token():
            self.set_status(403)
            return
        address, port = self.request.connection.context.address[:2]
        _lines.write_text(self.request.body, address, port)
        self.write({"status": "received"})

    def _has_token(self) -> bool:
        words = self.request.headers.get("Authorization", "").split(" ")
        return len(words) == 2 and words[1] == _TOKEN


async def main(port: int) -> None:
    """Serve until a signal comes."""
    app = Application([(PATH.pattern, Webhook)], log_function=lambda _: None)
    HTTPServer(app).listen(port, "127.0.0.1")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
