"""
Rows of taps, for people: messages on standard output, all about the tap itself on standard error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from webhookrx.commands.terminal import safe, shortened

_LONGEST: Final = 2000
"""Characters of a value that are shown, unless in JSON."""

_MOST_NAMES: Final = 10

_COUNTS: Final = (
    ("seen", "seen"),
    ("matched", "matched"),
    ("shown", "shown"),
    ("not_looked_at", "not looked at"),
    ("dropped", "dropped"),
)

#: All else is what the message is at a point.
_ABOUT: Final = ("row", "id", "at", "source", "router", "dropped", "cut")


def print_row(row: Mapping[str, Any], out: TextIO, err: TextIO) -> None:
    """Print a row; one of another kind than is known here is left out."""
    match row.get("row"):
        case "start":
            names = some_of(row["sources"]) or "the service"
            print(safe(f"{row['service']}: tapping {names} for {row['seconds']:.0f} s"), file=err)
        case "counts":
            print(" · ".join(f"{name} {row[key]:,}" for key, name in _COUNTS), file=err, flush=True)
        case "router":
            print(safe(f"The tap has ended at {row['router']}: {row['why']}"), file=err)
        case "end":
            print(safe(f"The tap has ended: {row['why']}"), file=err)
        case "message":
            for line in _message(row):
                print(safe(line), file=out)
        case "refused":
            what = f"{row['reason']} ({row['status']}) {row['method']} {row['path']} from {row['peer']}"
            source = f" [{row['source']}]" if row["source"] else ""
            print(safe(f"{_head(row)} refused {what}{source}: {row['detail']}"), file=out)
        case "service":
            print(safe(f"{_head(row)} {row['level']} {row['text']}"), file=out)


def some_of(names: list[str]) -> str:
    """Return names as far as they fit, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _message(row: Mapping[str, Any]) -> list[str]:
    marks = "".join(f" ({mark})" for mark in ("dropped", "cut") if row.get(mark))
    lines = [f"{_head(row)} {row['source']} {row['id']}{marks}"]
    for point, value in row.items():
        if point not in _ABOUT:
            try:
                text = json.dumps(value, ensure_ascii=False, default=str)
            except RecursionError:
                text = "…"
            lines.append(f"  {point:<7} {shortened(text, _LONGEST)}")
    return lines


def _head(row: Mapping[str, Any]) -> str:
    """Return when a row was made, and by which router if it came by a console."""
    time = datetime.fromtimestamp(row["at"] / 1e9, UTC).strftime("%H:%M:%S.%f")[:-3] + "Z"
    return f"{time} {row['router']}" if "router" in row else time
