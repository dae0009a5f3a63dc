"""
The one job of all Python peers: read the body as JSON, make a line with the values that webhookrx writes, append it.

Lines go out with one write for each turn of the event loop. In the peers' favour they are answered before that.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from datetime import UTC, datetime
from typing import Any

import orjson

PATH = re.compile(r"/events")

ANSWER = b'{"status":"received"}'


class Lines:
    """
    A file of messages.

    @param path: where it is; C{$BENCHMARK_OUTPUT} unless told.
    """

    def __init__(self, path: str | None = None) -> None:
        self._descriptor = os.open(
            path or os.environ["BENCHMARK_OUTPUT"], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o640
        )
        self._run = f"{time.time_ns() // 10**6:012x}-{os.urandom(4).hex()}"
        self._count = 0
        self._waiting: list[bytes] = []

    def take(self, body: bytes, address: str, port: int) -> None:
        """
        Make a line of a body; it is written at the end of this turn of the event loop.

        @raise orjson.JSONDecodeError: the body is not JSON.
        """
        document = orjson.loads(body)
        values = self._values(body, address)
        _flatten("", document, values)
        self._finish(values, body, address, port)
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._write)
        self._waiting.append(orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE))

    def write_text(self, body: bytes, address: str, port: int) -> None:
        """Make a line of a body that stays text, and write it at once."""
        values = self._values(body, address)
        self._finish(values, body, address, port)
        os.write(self._descriptor, orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE))

    def _values(self, body: bytes, address: str) -> dict[str, Any]:
        return {
            "ISODATE": datetime.now(UTC).isoformat(),
            "HOST": address,
            "MESSAGE": body.decode(),
            "SOURCE": "default",
        }

    def _finish(self, values: dict[str, Any], body: bytes, address: str, port: int) -> None:
        self._count += 1
        values["SOURCEIP"] = address
        values["SOURCEPORT"] = port
        values["TRANSPORT"] = "http"
        values["RAWMSG_SIZE"] = len(body)
        values["TAGS"] = ".source.default"
        values["RCPTID"] = f"{self._run}-{self._count:010x}"

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        os.write(self._descriptor, b"".join(waiting))


def _flatten(prefix: str, members: dict[str, Any], values: dict[str, Any]) -> None:
    for name, value in members.items():
        if type(value) is dict and value:
            _flatten(f"{prefix}{name}.", value, values)
        else:
            values[prefix + name] = value
