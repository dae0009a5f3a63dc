"""
The parts of a console, in the order in which they start.
"""

from __future__ import annotations

from webhookrx.console.console import Console
from webhookrx.console.routers.part import RoutersPart
from webhookrx.console.web_part import WebPart


def add_parts(console: Console) -> None:
    """Make all parts of a console. Nothing is opened yet."""
    console.parts.append(console.rulebook)
    console.parts.append(RoutersPart(console))
    console.parts.append(console.taps)
    console.parts.append(console.alarms)
    # Add yours here; API and pages come last, once all is there that they show.
    console.parts.append(WebPart(console))
