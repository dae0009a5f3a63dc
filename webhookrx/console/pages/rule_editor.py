"""
The page Rule: a rule as a form and as YAML, each of which shows the other, beside what saving it would do.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import BAD_CALL, CONFLICT, FORBIDDEN, INVALID, NOT_FOUND, STALE, ApiProblem
from webhookrx.console.api.route import YAML
from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.diffs import text_diff
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.rule_form import (
    SKELETONS,
    RuleDraft,
    RuleValues,
    Side,
    draft_in,
    draft_of,
    raw_text,
    rule_document,
    shows,
    values_in,
    with_values,
)
from webhookrx.console.pages.rule_preview import LARGEST_FORM, PreviewView, apart, by_size, preview_of
from webhookrx.console.pages.rule_rows import NOT_YET, acted, field_notes, is_action, written_rows
from webhookrx.management.rule_documents import document_yaml

_AT: Final = re.compile(r"(over|merge)-g([0-9]{1,15})")
_NEW: Final = "protocol: HTTPS\nport: 8443\n"

_WORDS: Final = dict(zip(NOT_YET, ("", "key file", "certificate file"), strict=True))
_KINDS: Final = {
    "select": "Select Messages",
    "set": "Set Field",
    "unset": "Unset Field",
    "regex": "Regex",
    "probe": "Probe",
    "classify": "Classify",
    "parse": "Parse",
    "expression": "Expression",
}


class Conflict(msgspec.Struct, frozen=True):
    """
    A rule that somebody else has saved.

    @ivar current: what is there, as the API lists it.
    @ivar change: how it came there, as the history has it; None when it can't be told.
    @ivar lines: the difference of what is there and of what was to be saved.
    @ivar three_way: fields that both have changed; None when it is not known what they have begun with.
    """

    current: Any
    change: Any
    lines: Any
    three_way: Any


class Edited(msgspec.Struct, frozen=True):
    """
    What was made of a form.

    @ivar rows: the fields with empty rows.
    @ivar is_moved: the rows are not those of the form any more.
    """

    draft: RuleDraft
    rows: RuleValues
    is_moved: bool = False


async def show_rule(call: PageCall) -> PageAnswer:
    """Show a rule that is saved."""
    name = call.path["name"]
    answer = await call.api("GET", f"/rules/{in_path(name)}")
    rule: Any = answer.body
    draft = await _draft(await _text_of(call, name), "yaml" if rule.as_written else "form")
    if not call.may(Permission.EDIT):
        return Page("rule_facts.html", {"rule": rule, "draft": draft, "name": name})
    shown = Edited(draft, draft.values)
    return _page(call, shown, PreviewView(None), name=name, etag=answer.etag, is_begun=True, manager=rule.manager)


async def show_new(call: PageCall) -> PageAnswer:
    """Begin a rule, or a copy of one."""
    draft = draft_of(_NEW, side="form")
    if call.query.text("from"):
        text = await _text_of(call, call.query.text("from"))
        draft = await by_size(len(text), lambda: _copied(text))
    return _page(call, Edited(draft, draft.values), PreviewView(None))


async def show_preview(call: PageCall) -> PageAnswer:
    """Show what saving the rule in a form would do, and its other side."""
    form, replaces = call.form, call.form.text("replaces")
    edited = await apart(call, lambda: _edited(call))
    if edited.draft.both:
        raise ApiProblem(BAD_CALL, "The form and the YAML were both changed.")
    is_begun = bool(replaces) or form.flag("begun")
    view = await preview_of(call, edited.draft.text, replaces, is_begun=is_begun)
    is_written = raw_text(form, "yaml") != edited.draft.text
    values = _values(call, edited, view, name=replaces, etag=form.text("etag"), is_begun=is_begun)
    # Nothing is put in the place of what somebody is writing in.
    is_by_yaml = edited.draft.side == "yaml" and _is_shown_else(call, edited.draft)
    return Page(
        "_rule_live.html",
        {
            **values,
            "with_yaml": is_written,
            "with_fields": edited.is_moved or is_by_yaml or form.flag("form_off") == edited.draft.is_readable,
            "with_files": view.key != form.text("files_key"),
            "with_counts": view.counts != form.text("counted"),
        },
    )


async def change_rule(call: PageCall) -> PageAnswer:
    """Do what a button of the form says: check, move a row, or save."""
    return await _act(call, call.path["name"])


async def make_rule(call: PageCall) -> PageAnswer:
    """See L{change_rule}."""
    return await _act(call, "")


async def show_deletion(call: PageCall) -> PageAnswer:
    """Ask whether a rule is to be deleted."""
    name = call.path["name"]
    answer = await call.api("GET", f"/rules/{in_path(name)}")
    text = await _text_of(call, name)
    view = await preview_of(call, text, name)
    draft = await _draft(text)
    return Page(
        "rule_deletion.html",
        {**_where(call, name, answer.etag), "text": text, "view": view, "port": draft.values.port},
    )


async def delete_rule(call: PageCall) -> PageAnswer:
    """Delete a rule."""
    name = call.path["name"]
    if call.form.text("sure") != "yes":
        return await show_deletion(call)
    try:
        await call.api("DELETE", f"/rules/{in_path(name)}", if_match=call.form.text("etag"))
    except ApiProblem as problem:
        if problem.kind is not STALE:
            raise
        # What is shown anew is what is there now, with its ETag.
        page = await show_deletion(call)
        return msgspec.structs.replace(page, values={**page.values, "problem": problem}, status=problem.kind.status)  # type: ignore[union-attr]
    return Redirect("/rules", "rule-deleted")


# -- a form ------------------------------------------------------------------------------------------------------------


async def _act(call: PageCall, name: str) -> PageAnswer:
    do, etag = call.form.text("do"), call.form.text("etag")
    edited = await apart(call, lambda: _edited(call))
    at = _AT.fullmatch(do)
    if edited.draft.both:
        return _page(call, edited, PreviewView(None), name=name, etag=etag, status=409, is_begun=True)
    if do in ("save", "save-new") or at is not None:
        place = "" if do == "save-new" else name
        over = f"g{at[2]}" if at is not None and at[1] == "over" else etag
        try:
            saved = await _save(call, edited.draft, place, over)
        except ApiProblem as problem:
            if problem.kind not in (INVALID, CONFLICT, STALE, NOT_FOUND, FORBIDDEN):
                raise
            if at is not None and at[1] == "merge" and problem.kind is STALE:
                return await _merged(call, edited, name, etag, problem)
            return await _refused(call, edited, name, etag, problem)
        return Redirect(f"/rules/{in_path(saved)}", "rule-saved")
    is_begun = bool(name) or not is_action(do)
    view = await preview_of(call, edited.draft.text, name, with_files=do == "files", is_begun=is_begun)
    return _page(call, edited, view, name=name, etag=etag, is_begun=is_begun)


def _edited(call: PageCall) -> Edited:
    form, do = call.form, call.form.text("do")
    keep: Side | None = {"keep-form": "form", "keep-yaml": "yaml"}.get(do)  # type: ignore[assignment]
    draft, sent = draft_in(form, keep), values_in(form, all_rows=True)
    is_as_sent = draft.both or (not form.flag("form_off") and shows(draft, written_rows(sent)))
    rows = sent if is_as_sent else draft.values
    if draft.both or not is_action(do):
        # A step of another type has another text.
        is_moved = form.all("step_kind") != form.all("step_was")
        return Edited(draft, rows if call.is_fragment or draft.both else draft.values, is_moved)
    rows = acted(rows, do, form.text("new_step"))
    return Edited(with_values(draft, written_rows(rows)), rows, is_moved=True)


async def _save(call: PageCall, draft: RuleDraft, name: str, etag: str) -> str:
    """Save a rule as it was written, or as a document; return its name."""
    document = None
    if draft.side == "form":
        document = await by_size(len(draft.text), lambda: rule_document(draft.text))
    # A document with an error has no places in the text.
    body: dict[str, Any] = {"yaml": draft.text} if document is None else {"body": document}
    if name:
        answer = await call.api("PUT", f"/rules/{in_path(name)}", **body, if_match=etag)
    else:
        answer = await call.api("POST", "/rules", **body, if_none_match="*")
    saved: Any = answer.body
    return str(saved.name)


async def _draft(text: str, side: Side = "yaml") -> RuleDraft:
    return await by_size(len(text), lambda: draft_of(text, side=side))


def _copied(text: str) -> RuleDraft:
    """Return a draft of a rule without its name."""
    other = draft_of(text)
    return draft_of(with_values(other, msgspec.structs.replace(other.values, name="")).text, side="form")


async def _text_of(call: PageCall, name: str) -> str:
    text: Any = (await call.api("GET", f"/rules/{in_path(name)}", accepted=YAML)).body
    return str(text.decode())


async def _refused(call: PageCall, edited: Edited, name: str, etag: str, problem: ApiProblem) -> Page:
    """Show the form again, with what hinders saving."""
    view = await preview_of(call, edited.draft.text, name if problem.kind is not NOT_FOUND else "")
    conflict = await _conflict(call, edited.draft, name, problem) if problem.kind is STALE else None
    return _page(
        call, edited, view, name=name, etag=etag, status=problem.kind.status, problem=problem, conflict=conflict,
        is_begun=True,
    )  # fmt: skip


async def _conflict(call: PageCall, draft: RuleDraft, name: str, problem: ApiProblem) -> Conflict:
    history: Any = (await call.api("GET", f"/rules/{in_path(name)}/history", query={"count": 1})).body
    change = history.entries[0] if history.entries else None
    now = await _text_of(call, name)
    lines = await by_size(len(now) + len(draft.text), lambda: text_diff(now, draft.text))
    return Conflict(problem.members["current"], change, lines, problem.members.get("three_way"))


async def _merged(call: PageCall, edited: Edited, name: str, etag: str, problem: ApiProblem) -> Page:
    """Put what both have changed into the form, to be looked at before it is saved."""
    three_way: Any = problem.members.get("three_way")
    current: Any = problem.members["current"]
    if three_way is None or three_way.merged is None:
        return await _refused(call, edited, name, etag, problem)
    draft = await _draft(document_yaml(three_way.merged), "form")
    view = await preview_of(call, draft.text, name)
    both = Edited(draft, draft.values)
    return _page(call, both, view, name=name, etag=f"g{current.generation}", is_begun=True, is_merged=True)


def _is_shown_else(call: PageCall, draft: RuleDraft) -> bool:
    """Return whether the form shows something else than a draft."""
    return not shows(draft, values_in(call.form))


# -- a page ------------------------------------------------------------------------------------------------------------


def _page(call: PageCall, edited: Edited, view: PreviewView, *, status: int = 200, **more: Any) -> Page:
    return Page("rule_editor.html", _values(call, edited, view, **more), status)


def _where(call: PageCall, name: str, etag: str) -> dict[str, Any]:
    return {
        "name": name,
        "etag": etag,
        "action": f"/rules/{in_path(name)}" if name else "/rules:new",
        "is_read_only": call.console.settings.read_only_rules,
        "problem": None,
    }


def _values(
    call: PageCall,
    edited: Edited,
    view: PreviewView,
    *,
    name: str = "",
    etag: str = "",
    problem: ApiProblem | None = None,
    conflict: Conflict | None = None,
    is_begun: bool = False,
    is_merged: bool = False,
    manager: str = "ui",
) -> dict[str, Any]:
    """Return what the templates of the editor name."""
    found = view.findings or (() if problem is None else problem.findings)
    notes = field_notes(found, edited.rows, is_begun=is_begun)
    # Saving tells of clashes at a field only; the preview lists them for each router.
    if problem is not None and problem.kind is CONFLICT:
        notes += field_notes(problem.findings, edited.rows)
    return {
        **_where(call, name, etag),
        "draft": edited.draft,
        "rows": edited.rows,
        "notes": notes,
        "found": [each for each in found if is_begun or each.code not in NOT_YET],
        "missing": [] if is_begun else [_WORDS[each.code] or each.path[-1] for each in found if each.code in NOT_YET],
        "view": view,
        "problem": problem,
        "conflict": conflict,
        "is_merged": is_merged,
        "manager": manager,
        "is_begun": is_begun,
        "swap": False,
        "kinds": [(kind, _KINDS[kind], text) for kind, text in SKELETONS.items()],
    }


ROUTES: Final = (
    PageRoute("GET", "/rules:new", Permission.EDIT, show_new),
    PageRoute("POST", "/rules:new", Permission.EDIT, make_rule, LARGEST_FORM),
    PageRoute("POST", "/rules:preview", Permission.EDIT, show_preview, LARGEST_FORM),
    PageRoute("GET", "/rules/{name}", Permission.VIEW, show_rule),
    PageRoute("POST", "/rules/{name}", Permission.EDIT, change_rule, LARGEST_FORM),
    PageRoute("GET", "/rules/{name}/delete", Permission.EDIT, show_deletion),
    PageRoute("POST", "/rules/{name}/delete", Permission.EDIT, delete_rule),
)
