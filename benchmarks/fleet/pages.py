"""
Times of the pages of a console with many routers: each page as it comes first, and the parts that come after it.
"""

from __future__ import annotations

import http.client
import os
import re
import time
from collections.abc import Callable
from contextlib import closing
from html import unescape
from html.parser import HTMLParser
from statistics import quantiles
from typing import Final, NamedTuple
from urllib.parse import urlencode

from benchmarks.fleet.watched import Turn
from webhookrx.console.api.reading import COOKIE
from webhookrx.console.people.sessions import begin_session
from webhookrx.console.store.database import StoreWriter

PATHS: Final = (
    "/",
    "/routers",
    "/routers?query=label.site+%3D+fra",
    "/routers/router-7",
    "/rules",
    "/rules?query=port+%3E+8100",
    "/rules/rule-7",
    "/rules:new",
    "/tap",
    "/analytics",
    "/analytics?by=connector.name",
    "/analytics?by=connector.name&measure=p99",
    "/analytics?by=router&last=24h",
    "/analytics?by=label.site",
    "/analytics?by=reason&measure=refused&query=label.site+%3D+fra",
    "/analytics?by=connector.name&query=router+%3D+router-7",
    "/alarms",
    "/activity",
    "/settings/people",
    "/settings/account",
    "/settings/about",
)
ROUNDS: Final = 20
ROUNDS_OF_PARTS: Final = 5

#: Seconds that 95 of 100 pages must not exceed, and each part that comes after them.
GOAL_PAGE: Final = 0.1
GOAL_PART: Final = 1.0
GOAL_SIZE: Final = 60
GOAL_TURN: Final = 0.02

_PART: Final = re.compile(r'hx-get="([^"]+)"[^>]*hx-trigger="load')
_LOADED: Final = re.compile(r'(?:src|<link rel="(?:stylesheet|icon)"[^>]*? href)="(/static/[^"]+)"')
_PREVIEW: Final = "/rules:preview"
_NO_TURN: Final = Turn(0, 0, 0, 0)


class _FormFields(HTMLParser):
    """The fields of a form, as a browser sends them."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.fields: list[tuple[str, str]] = []
        self._form = form
        self._is_in = False
        self._text: list[str] | None = None
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See L{HTMLParser}."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._is_in = given.get("id") == self._form
        name = given.get("name", "")
        if not self._is_in:
            return
        if tag == "input" and name and (given.get("type") != "checkbox" or "checked" in given):
            self.fields.append((name, given.get("value", "")))
        elif tag == "textarea":
            self._text, self._select = [], name
        elif tag == "select":
            self._select = name
        elif tag == "option" and "selected" in given:
            self.fields.append((self._select, given.get("value", "")))

    def handle_data(self, data: str) -> None:
        """See L{HTMLParser}."""
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        """See L{HTMLParser}."""
        if tag == "textarea" and self._text is not None:
            self.fields.append((self._select, "".join(self._text).removeprefix("\n")))
            self._text = None
        elif tag == "form":
            self._is_in = False


class _Took(NamedTuple):
    """
    How long something took, and the longest turn of the console meanwhile.

    @ivar seconds: of each round, in their order.
    """

    seconds: list[float]
    turn: Turn
    content: bytes


def sign_in(directory: str, name: str) -> str:
    """Return a cookie of a new session of somebody, made in the files of the console, which may run."""
    with closing(StoreWriter(os.path.join(directory, "console.sqlite"), time.time)) as writer:
        secret, _ = writer.write(lambda tx: begin_session(tx, name, "127.0.0.1", "benchmark", None))
    return f"{COOKIE}={secret}"


class _Browser:
    """
    Asks for pages, one request after the other.

    @param turns: returns the long turns of the console so far.
    """

    def __init__(self, port: int, cookie: str, turns: Callable[[], list[Turn]]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._cookie = cookie
        self._turns = turns

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def get(self, path: str, fields: list[tuple[str, str]] | None = None, **headers: str) -> bytes:
        """Return the content of a page or part; of a form, if there are C{fields}."""
        body = None if fields is None else urlencode(fields)
        if body is not None:
            headers |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.origin}
        self._connection.request(
            "GET" if body is None else "POST", path, body, headers={"Cookie": self._cookie, **headers}
        )
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError((path, answer.status, content[:2000]))
        return content

    @property
    def origin(self) -> str:
        """That of the console."""
        return f"http://127.0.0.1:{self._connection.port}"

    def part(self, path: str, fields: list[tuple[str, str]] | None = None) -> bytes:
        """Return a part, as a script asks for it."""
        csrf = dict(fields or ()).get("csrf")
        headers = {"HX-Request": "true"} | ({"X-CSRF-Token": csrf} if csrf else {})
        return self.get(path, fields, **headers)

    def rounds(self, count: int, ask: Callable[[], bytes]) -> _Took:
        """Ask so many times."""
        begun, seconds, content = time.monotonic(), [], b""
        for _ in range(count):
            began = time.monotonic()
            content = ask()
            seconds.append(time.monotonic() - began)
        turns = [each for each in self._turns() if begun <= each.at]
        return _Took(seconds, max(turns, key=lambda turn: turn.seconds, default=_NO_TURN), content)

    def loaded(self, html: str) -> int:
        """Return how many bytes a page loads besides its HTML and parts: files, packed."""
        files = {unescape(each) for each in _LOADED.findall(html)}
        packed = {"Accept-Encoding": "gzip"}
        return sum(len(self.get(each, None, **packed)) for each in files)


def measure_pages(port: int, cookie: str, turns: Callable[[], list[Turn]]) -> None:
    """Print how long pages and their parts take."""
    goals = f"{GOAL_PAGE * 1e3:.0f} ms p95, parts {GOAL_PART * 1e3:.0f} ms, {GOAL_SIZE} KiB, turn {GOAL_TURN * 1e3:.0f}"
    print(f"pages (goals: {goals} ms); with the longest turn of the reactor, its own processor time in that, and the")
    print("time of collections of garbage")
    browser = _Browser(port, cookie, turns)
    begun = time.monotonic()
    time.sleep(10)
    nothing = max((each for each in turns() if each.at >= begun), key=lambda turn: turn.seconds, default=_NO_TURN)
    print(f"  {'10 s without a page':76} {_turn(nothing)}")
    for path in PATHS:
        html = browser.get(path).decode()
        page = browser.rounds(ROUNDS, lambda path=path: browser.get(path))  # type: ignore[misc]
        size = len(page.content) + browser.loaded(html)
        parts: list[tuple[str, list[tuple[str, str]] | None]] = [(unescape(each), None) for each in _PART.findall(html)]
        if _PREVIEW in html:
            reader = _FormFields("rule-form")
            reader.feed(html)
            parts.append((_PREVIEW, [*reader.fields, ("do", "")]))
        took = [
            (part, browser.rounds(ROUNDS_OF_PARTS, lambda part=part, fields=fields: browser.part(part, fields)))  # type: ignore[misc]
            for part, fields in parts
        ]
        size += sum(len(each.content) for _, each in took)
        p95 = quantiles(page.seconds, n=20)[-1]
        print(f"  {path:62} p95 {p95 * 1e3:4.0f} ms {size / 1024:3.0f} KiB {_turn(page.turn)}")
        for part, each in took:
            first, slowest = (seconds * 1e3 for seconds in (each.seconds[0], max(each.seconds[1:])))
            told = f"{_shorter(part):47} {len(each.content) / 1024:3.0f} KiB"
            print(f"    {told} first {first:4.0f} then {slowest:4.0f} ms at most {_turn(each.turn)}")
    whole = browser.rounds(3, lambda: browser.get("/analytics?by=connector.name&numbers=all"))
    print(f"  /analytics without a script: {max(whole.seconds) * 1e3:.0f} ms, {_turn(whole.turn)}")
    browser.close()


def _shorter(part: str) -> str:
    """Return the path of a part; of one with the question of its page, what is its own."""
    name = part.rpartition("numbers=")[2]
    return f"numbers={name}" if name != part else part


def _turn(turn: Turn) -> str:
    return f"turn {turn.seconds * 1e3:4.0f} ms ({turn.busy * 1e3:.0f}, {turn.collected * 1e3:.0f})"
