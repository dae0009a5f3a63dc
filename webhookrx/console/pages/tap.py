"""
The page Tap. A tap needs a script, C{static/tap.js}, which calls the API; without one the page says the command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.pages.form import Form
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute
from webhookrx.tapping.tap_request import MOST_A_SECOND

POINTS: Final = (
    ("", "input and output side by side"),
    ("input", "input: before the first step"),
    ("output", "output: as it goes to the observers"),
    ("probe", "probe: at a step with a probe"),
    ("refused", "refused: requests that were refused, without bodies"),
    ("service", "service: lines of the log of the routers"),
)

LABELS: Final = (
    "connector.type",
    "connector.name",
    "connector.port",
    "connector.labels.product",
    "connector.labels.vendor",
    "meta.connection.src_ip",
    "meta.router.name",
    "meta.host.name",
    "meta.vendor",
    "log.severity_text",
    "reason",
    "path",
    "source",
)
"""Labels that are offered for filters: the five of analytics, then others of messages and refusals."""

#: Quotes of a shell hold them, but terminals obey some of them while the command is pasted; and a URL may have any.
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_RATE: Final = "1"
_LASTS: Final = "10m"


async def show_tap(call: PageCall) -> PageAnswer:
    """Show the form, with what the query says."""
    fields = _fields(call.query)
    values = {
        "fields": fields,
        "points": POINTS,
        "labels": LABELS,
        "most_a_second": MOST_A_SECOND,
        "command": tap_command(call.console.settings.url, fields),
        "console_url": call.console.settings.url,
    }
    return Page("tap.html", values)


def _fields(query: Form) -> dict[str, str]:
    names = ("routers", "connectors", "source", "point", "probe", "filter", "rate", "for", "show")
    fields = {name: _CONTROLS.sub(" ", query.text(name)).strip() for name in names}
    point, colon, probe = fields["point"].partition(":")
    if point == "probe" and colon:
        fields |= {"point": point, "probe": probe}
    if fields["point"] not in dict(POINTS):
        fields["point"] = ""
    return fields | {"rate": fields["rate"] or _RATE, "for": fields["for"] or _LASTS}


def tap_command(url: str, fields: Mapping[str, str]) -> str:
    """
    Return the command that taps as the form of this page says.

    @param url: the console's.
    """
    point = fields["point"]
    if point == "probe":
        point = f"probe:{fields['probe']}"
    words = ["webhookrx", "tap", "--console", url, "--token-file", "token"]
    for option, value, default in (
        ("--routers", fields["routers"], ""),
        ("--connector", fields["connectors"], ""),
        ("--source", fields["source"], ""),
        ("--point", point, ""),
        ("--filter", fields["filter"], ""),
        ("--rate", fields["rate"], _RATE),
        ("--for", fields["for"], _LASTS),
    ):
        if value not in ("", default):
            words += [option, value]
    return shlex.join(words)


ROUTES: Final = (PageRoute("GET", "/tap", Permission.TAP, show_tap),)
