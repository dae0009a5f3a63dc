"""
Times of the pages of a console with many routers: each page as it comes first, and the parts that come after it.
"""

from __future__ import annotations

import http.client
import os
import re
import time
from contextlib import closing
from html import unescape
from statistics import quantiles
from typing import Final

from webhookrx.console.api.reading import COOKIE
from webhookrx.console.people.sessions import begin_session
from webhookrx.console.store.database import StoreWriter

PATHS: Final = (
    "/",
    "/routers",
    "/routers?query=label.site+%3D+fra",
    "/routers/router-7",
    "/rules",
    "/rules/rule-7",
    "/analytics?by=connector.name",
    "/alarms",
    "/activity",
    "/settings/account",
)
ROUNDS: Final = 20

#: Seconds that 95 of 100 pages must not exceed, and each part that comes after them.
GOAL_PAGE: Final = 0.1
GOAL_PART: Final = 1.0

_PART: Final = re.compile(r'hx-get="([^"]+)"[^>]*hx-trigger="load')


def sign_in(directory: str, name: str) -> str:
    """Return a cookie of a new session of somebody, made in the files of the console, which may run."""
    with closing(StoreWriter(os.path.join(directory, "console.sqlite"), time.time)) as writer:
        secret, _ = writer.write(lambda tx: begin_session(tx, name, "127.0.0.1", "benchmark", None))
    return f"{COOKIE}={secret}"


def measure_pages(port: int, cookie: str) -> None:
    """Print how long pages and their parts take, one request after the other."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:

        def get(path: str, **headers: str) -> tuple[float, bytes]:
            began = time.monotonic()
            connection.request("GET", path, headers={"Cookie": cookie, **headers})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 200:
                raise RuntimeError((path, answer.status, content[:500]))
            return time.monotonic() - began, content

        for path in PATHS:
            _, content = get(path)
            parts = [unescape(each) for each in _PART.findall(content.decode())]
            times = [get(path)[0] for _ in range(ROUNDS)]
            slowest = [max(get(part, **{"HX-Request": "true"})[0] for _ in range(5)) for part in parts]
            p95 = quantiles(times, n=20)[-1]
            told = f"page {path}: p95 {p95 * 1e3:.0f} ms (goal: {GOAL_PAGE:g} s), {len(content) / 1024:.0f} KiB"
            if slowest:
                told += f"; {len(parts)} parts, the longest {max(slowest) * 1e3:.0f} ms (goal: {GOAL_PART:g} s)"
            print(told)
