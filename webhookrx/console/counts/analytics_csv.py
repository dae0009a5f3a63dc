"""
Analytics as CSV (RFC 4180), for spreadsheets.
"""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Final

from webhookrx.console.counts.analytics import CountAnswer, Measure

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def safe_cell(text: str) -> str:
    """
    Return a text that no spreadsheet takes for a formula: with an apostrophe before what would begin one
    (U{https://owasp.org/www-community/attacks/CSV_Injection}). Labels are what routers say.
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def csv_of(answer: CountAnswer, measure: Measure, *, with_points: bool) -> bytes:
    """
    Return an answer with a head line.

    @param with_points: a line for each value and step; else one for each value.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    if with_points:
        writer.writerow(("time", "value", measure))
        for group in answer.groups:
            writer.writerows((_moment(at), safe_cell(group.value), amount) for at, amount in group.points.items())
    else:
        writer.writerow(("value", measure))
        is_moment = measure == "last_message"
        writer.writerows(
            (safe_cell(group.value), _moment(group.total) if is_moment else group.total) for group in answer.groups
        )
    return out.getvalue().encode()


def _moment(seconds: float | None) -> str:
    return datetime.fromtimestamp(int(seconds or 0), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
