"""
Makes HTML of pages by Jinja2: everything that is not a template of ours is text, and an unknown name is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.page import Page, PageCall
from webhookrx.console.pages.sayings import SAID, SAYINGS
from webhookrx.console.pages.static_files import StaticFiles
from webhookrx.console.turns import in_turns
from webhookrx.quantities import readable_span
from webhookrx.version import installed_version

TEMPLATES: Final = os.path.join(os.path.dirname(__file__), "templates")

#: The main pages: path, name, key of the keyboard after C{g}, and what they need.
NAVIGATION: Final = (
    ("/", "Overview", "o", Permission.VIEW),
    ("/routers", "Routers", "r", Permission.VIEW),
    ("/rules", "Rules", "u", Permission.VIEW),
    ("/tap", "Tap", "t", Permission.TAP),
    ("/analytics", "Analytics", "n", Permission.VIEW),
    ("/alarms", "Alarms", "l", Permission.VIEW),
    ("/activity", "Activity", "a", Permission.VIEW),
    ("/settings", "Settings", "s", Permission.SIGNED_IN),
)

_PIECES: Final = 32
"""Pieces of a page that are made before the clock is looked at."""


def when(seconds: float | None, missing: str = "never") -> Markup:
    """
    Return a point in time, in UTC; C{console.js} shows it in the reader's zone, with UTC on hover.

    @param seconds: since the epoch; None or 0 for C{missing}.
    """
    if not seconds:
        return Markup("<span class=quiet>{}</span>").format(missing)
    at = datetime.fromtimestamp(seconds, UTC)
    return Markup('<time datetime="{}" title="{} UTC">{} UTC</time>').format(
        at.strftime("%Y-%m-%dT%H:%M:%SZ"), at.strftime("%Y-%m-%d %H:%M:%S"), at.strftime("%Y-%m-%d %H:%M")
    )


def duration(seconds: float | None) -> str:
    """Return a time span as L{readable_span} does; C{–} for none."""
    return "–" if seconds is None else readable_span(seconds)


def number(value: float | None) -> str:
    """Return a number with C{,} between thousands and three digits after small ones; C{–} for none."""
    if value is None:
        return "–"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def size(count: float | None) -> str:
    """Return bytes with a unit, such as C{1.5 KiB}."""
    if count is None:
        return "–"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if abs(value) >= 1000 else f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:,.1f} TiB"


def query_string(**fields: object) -> str:
    """Return a query, with its question mark, of those fields that are not empty."""
    kept = {name: value for name, value in fields.items() if value not in (None, "", False)}
    return f"?{urlencode(kept)}" if kept else ""


class Renderer:
    """
    Makes HTML.

    @param files: what pages load.
    """

    def __init__(self, files: StaticFiles) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update(when=when, duration=duration, number=number, size=size, segment=in_path)
        self._environment.globals.update(
            static=files.url,
            query_string=query_string,
            Permission=Permission,
            version=installed_version(),
        )

    def load(self) -> None:
        """Read all templates, each of which takes a while at its first use."""
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def html(self, page: Page, call: PageCall, theme: str) -> bytes:
        """
        Return a page as HTML in UTF-8.

        @param theme: C{light}, C{dark}, or empty for that of the browser.
        """
        return "".join(self._pieces(page, call, theme)).encode()

    async def html_in_turns(self, page: Page, call: PageCall, theme: str) -> bytes:
        """Return a page as L{html} does. How large it is, is up to those who write rules: others go on meanwhile."""
        pieces = self._pieces(page, call, theme)
        parts: list[str] = []
        async for some in in_turns(call.console.reactor, iter(lambda: tuple(islice(pieces, _PIECES)), ())):
            parts += some
        return "".join(parts).encode()

    def _pieces(self, page: Page, call: PageCall, theme: str) -> Iterator[str]:
        section = "/" + call.url.partition("?")[0].split("/")[1].partition(":")[0]
        shell: dict[str, Any] = {
            "me": call.principal,
            "csrf": "" if call.principal is None else call.principal.csrf,
            "may": call.may,
            "url": call.url,
            "theme": theme,
            "said": SAYINGS.get(call.query.text(SAID), ""),
            "problems": list(call.console.problems.values()),
            "navigation": [
                (path, name, key, path == section) for path, name, key, needed in NAVIGATION if call.may(needed)
            ],
        }
        return self._environment.get_template(page.template).generate({**shell, **page.values})
