"""
A part of the page Rule: a recorded request, and what is left of it after each step of the rule that is being edited.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import BAD_CALL, ApiProblem
from webhookrx.console.api.route import YAML
from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.diffs import DiffLine, text_diff
from webhookrx.console.pages.one_by_one import one_by_one
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute
from webhookrx.console.pages.rule_form import draft_in
from webhookrx.message.escapes import without_misleading
from webhookrx.settings import KiB

LARGEST_FORM: Final = 768 * KiB
"""Bytes of the form of a rule and of that of a request together."""

_LONGEST_RECORD: Final = 64 * KiB


class ShownStep(msgspec.Struct, frozen=True):
    """
    A step and what it has changed.

    @ivar lines: the difference of the message before and after it.
    """

    step: Any
    lines: list[DiffLine]


class ShownEvent(msgspec.Struct, frozen=True):
    """A message with its steps, as indented JSON."""

    event: Any
    before: str
    after: str
    steps: list[ShownStep]


async def try_rule(call: PageCall) -> PageAnswer:
    """Show a request after each step: a part for a script, else a page."""
    template = "_rule_try.html" if call.is_fragment else "rule_try.html"
    form = call.form
    values: dict[str, Any] = {
        "problem": None,
        "tried": None,
        "events": [],
        "request": form.text("try_request"),
        "sample": form.text("try_sample"),
        "router": form.text("try_router"),
        "saved": form.text("try_saved"),
        "own_path": form.flag("try_own_path"),
    }
    try:
        body = {
            "yaml": await _rule_of(call),
            "request": values["request"],
            "sample": "" if values["request"] else values["sample"],
            "router": values["router"],
            "any_path": not values["own_path"],
        }
        if not values["request"] and not values["sample"]:
            raise ApiProblem(BAD_CALL, "Paste a recorded request, or choose one of a known sender.")
        tried = (await call.api("POST", "/rules:try", body)).body
    except ApiProblem as problem:
        return Page(template, {**values, "problem": problem}, 200 if call.is_fragment else problem.kind.status)
    events = await one_by_one(lambda: [_shown(each) for each in tried.events])
    return Page(template, {**values, "tried": tried, "events": events})


async def list_samples(call: PageCall) -> PageAnswer:
    """Show the names of recorded requests, as choices for a field."""
    samples = (await call.api("GET", "/samples")).body.samples
    return Page("_try_samples.html", {"samples": samples})


async def show_sample(call: PageCall) -> PageAnswer:
    """Show the field for a request with a recorded one in it."""
    name = call.query.text("try_sample")
    try:
        request = (await call.api("GET", f"/samples/{in_path(name)}")).body.request if name else ""
        error = "" if name else "Write the name of a recorded request first, such as github-push."
    except ApiProblem as problem:
        request, error = "", problem.detail
    return Page("_rule_try_request.html", {"request": request, "error": error})


async def _rule_of(call: PageCall) -> str:
    """
    Return the rule in the form of the editor, or one that is saved, in YAML.

    @raise ApiProblem: there is neither, or it is not known which of two texts counts.
    """
    form = call.form
    if any(name == "yaml" for name, _ in form.pairs):
        draft = await one_by_one(lambda: draft_in(form))
        if draft.both:
            raise ApiProblem(BAD_CALL, "Form and YAML were both changed: choose one of them first.")
        return draft.text
    name = form.text("try_saved")
    if not name:
        raise ApiProblem(BAD_CALL, "Without a script a rule can be tried once it is saved.")
    answer = await call.api("GET", f"/rules/{in_path(name)}", accepted=YAML)
    text: str = answer.body.decode()
    return text


def _shown(event: Any) -> ShownEvent:
    last = before = _json(event.before)
    steps = []
    for step in event.steps:
        after = last if step.record is None else _json(step.record)
        steps.append(ShownStep(step, text_diff(_lines(last), _lines(after), context=2)))
        last = after
    return ShownEvent(event, before, "" if event.after is None else _json(event.after), steps)


def _lines(text: str) -> str:
    """Return JSON to be compared line by line: a comma at the end of one is no change of it."""
    return text.replace(",\n", "\n")


def _json(record: Any) -> str:
    """Return a record as indented JSON, cut where it is too long for a page."""
    if record is None:
        return ""
    encoded = msgspec.json.format(without_misleading(msgspec.json.encode(record)), indent=2)
    text = encoded[:_LONGEST_RECORD].decode("utf-8", "ignore")
    return text if len(encoded) <= _LONGEST_RECORD else f"{text}\n…"


ROUTES: Final = (
    PageRoute("POST", "/rules:try", Permission.EDIT, try_rule, LARGEST_FORM),
    PageRoute("GET", "/rules:samples", Permission.VIEW, list_samples),
    PageRoute("GET", "/rules:sample", Permission.VIEW, show_sample),
)
