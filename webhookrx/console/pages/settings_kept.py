"""
The settings that admins change while the console runs: masks, and for how long what is kept.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import INVALID, STALE, ApiFinding, ApiProblem
from webhookrx.console.own_settings.setting_types import (
    BOUNDS,
    LEAST_AUDITED,
    LONGEST_MASK,
    MOST_AUDITED,
    MOST_MASKS,
    MaskSetting,
    RetentionSetting,
)
from webhookrx.console.pages.form import Form
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.settings_tabs import errors_at, settings_page

_MASKS: Final = "/settings/masks"
_RETENTION: Final = "/settings/retention"

_QUOTED: Final = re.compile(r'"((?:[^"]|"")*)"')
_MAY_BE_SEVERAL: Final = re.compile(r'[\s,;"]')
"""In a line, it may stand between names. A member may have it in its name, too: then the line is in quotes."""


class KeptField(NamedTuple):
    """
    A field of the form for retention.

    @ivar name: of the step.
    @ivar unit: in which it is typed, with its seconds.
    """

    name: str
    label: str
    unit: str
    seconds: int

    @property
    def hint(self) -> str:
        """Its bounds."""
        least, most = BOUNDS[self.name]
        return f"{least // self.seconds:,} to {most // self.seconds:,} {self.unit}."


_FIELDS: Final = (
    KeptField("1m", "Counts by the minute", "hours", 3600),
    KeptField("10m", "Counts by ten minutes", "days", 86_400),
    KeptField("1h", "Counts by the hour", "days", 86_400),
    KeptField("1d", "Counts by the day", "days", 86_400),
)


# -- masks -------------------------------------------------------------------------------------------------------


async def show_masks(call: PageCall) -> PageAnswer:
    """Show the masks."""
    return await _masks(call)


async def save_masks(call: PageCall) -> PageAnswer:
    """Save the masks."""
    typed = call.form.text("names")
    try:
        names = _names(_lines(typed))
        await call.api("PUT", _MASKS, {"names": names}, if_match=call.form.text("etag"))
    except ApiProblem as problem:
        # Who saves once more has seen what is there.
        etag = None if problem.kind is STALE else call.form.text("etag")
        return await _masks(call, problem, typed, etag)
    return Redirect(_MASKS, "masks-saved")


async def _masks(
    call: PageCall, problem: ApiProblem | None = None, typed: str | None = None, etag: str | None = None
) -> Page:
    answer = await call.api("GET", _MASKS)
    masks: MaskSetting = answer.body
    lines = _lines(typed or "")
    names = [_line(name) for name in masks.names]
    errors = [
        f"“{lines[int(each.path[1])]}”: {each.sentence}"
        for each in (problem.findings if problem else ())
        if each.path[:1] == ("names",) and len(each.path) == 2
    ]
    values = {
        "names": names,
        "typed": "\n".join(names) if typed is None else typed,
        "etag": answer.etag if etag is None else etag,
        "errors": errors,
        "most": MOST_MASKS,
        "longest": LONGEST_MASK,
        "is_stale": problem is not None and problem.kind is STALE,
    }
    return settings_page(call, "settings_masks.html", values, problem, _MASKS)


def _lines(typed: str) -> list[str]:
    return [line.strip() for line in typed.split("\n") if line.strip()]


def _names(lines: list[str]) -> list[str]:
    """
    Return the names in lines, each of which is one: as it is, or in quotes, with each quote in it doubled.

    @raise ApiProblem: a line without quotes may be several names; as one name, it would mask none of them.
    """
    quoted = [_QUOTED.fullmatch(line) for line in lines]
    findings = [
        ApiFinding(
            "bad-value",
            "error",
            "It has a space, comma, semicolon or quote. Write one name a line; if all of this is one name, put it in "
            'quotes, such as "full name".',
            ("names", index),
        )
        for index, line in enumerate(lines)
        if quoted[index] is None and _MAY_BE_SEVERAL.search(line)
    ]
    if findings:
        raise ApiProblem(INVALID, findings=findings)
    return [line if one is None else one[1].replace('""', '"') for line, one in zip(lines, quoted, strict=True)]


def _line(name: str) -> str:
    """Return a name as it is typed."""
    return '"{}"'.format(name.replace('"', '""')) if _MAY_BE_SEVERAL.search(name) else name


# -- retention ---------------------------------------------------------------------------------------------------


async def show_retention(call: PageCall) -> PageAnswer:
    """Show for how long what is kept."""
    return await _retention(call)


async def save_retention(call: PageCall) -> PageAnswer:
    """Save for how long what is kept."""
    form = call.form
    try:
        body = {each.name: form.number(each.name) * each.seconds for each in _FIELDS}
        await call.api("PUT", _RETENTION, {**body, "audit": form.number("audit")}, if_match=form.text("etag"))
    except ApiProblem as problem:
        etag = None if problem.kind is STALE else form.text("etag")
        return await _retention(call, problem, form, etag)
    return Redirect(_RETENTION, "retention-saved")


async def _retention(
    call: PageCall, problem: ApiProblem | None = None, typed: Form | None = None, etag: str | None = None
) -> Page:
    answer = await call.api("GET", _RETENTION)
    saved: RetentionSetting = answer.body
    kept = {step.name: step.kept for step in saved.steps}
    shown: list[tuple[KeptField, str, list[str]]] = []
    for each in _FIELDS:
        value = _amount(kept[each.name], each.seconds) if typed is None else typed.text(each.name)
        shown.append((each, value, errors_at(problem, each.name)))
    values: dict[str, Any] = {
        "fields": shown,
        "kept": [(each.label, kept[each.name]) for each in _FIELDS],
        "audit_kept": saved.audit,
        "audit": str(saved.audit) if typed is None else typed.text("audit"),
        "audit_hint": f"{LEAST_AUDITED:,} to {MOST_AUDITED:,} entries; the oldest go first.",
        "audit_errors": errors_at(problem, "audit"),
        "etag": answer.etag if etag is None else etag,
        "is_stale": problem is not None and problem.kind is STALE,
    }
    return settings_page(call, "settings_retention.html", values, problem, _RETENTION)


def _amount(seconds: int, unit: int) -> str:
    """Return a time in a unit; one that a program has set may have a part of it."""
    return f"{seconds / unit:.4g}" if seconds % unit else str(seconds // unit)


ROUTES: Final = (
    PageRoute("GET", _MASKS, Permission.VIEW, show_masks),
    PageRoute("POST", _MASKS, Permission.ADMINISTER, save_masks),
    PageRoute("GET", _RETENTION, Permission.VIEW, show_retention),
    PageRoute("POST", _RETENTION, Permission.ADMINISTER, save_retention, 4096),
)
