"""
All rules by a file: what it would change is shown first, and then done.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.pages.form import Form
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.rules import may_edit_rules
from webhookrx.settings import KiB

LARGEST: Final = 512 * KiB
"""Bytes of a form with a file; larger ones go by C{webhookrx rules push}."""


async def show_file(call: PageCall) -> PageAnswer:
    """Ask for a file."""
    return await _ask(call)


async def replace_rules(call: PageCall) -> PageAnswer:
    """Show what a file would change; or make it so, if that was shown, and the rules have not changed since."""
    form = call.form
    is_sure = form.flag("sure") and hmac.compare_digest(form.text("shown").encode(), _digest(form).encode())
    revision = form.number("revision")
    if not is_sure:
        revision = (await call.api("GET", "/rules:search", query={"count": 1})).body.revision
    asked = {
        "manager": form.text("manager"),
        "note": form.text("note"),
        "prune": "true" if form.flag("prune") else "",
        "take_over": "true" if form.flag("take_over") else "",
        "dry_run": "" if is_sure else "true",
    }
    try:
        answer = await call.api(
            "PUT", "/rules.yaml", query=asked, yaml=form.text("file") + "\n", if_match=f"r{revision}"
        )
    except ApiProblem as problem:
        return await _ask(call, problem=problem)
    if is_sure:
        return Redirect("/rules", "rules-replaced")
    return await _ask(call, outcome=answer.body, revision=revision)


async def _ask(call: PageCall, *, problem: ApiProblem | None = None, outcome: Any = None, revision: int = 0) -> Page:
    form = call.form
    values = {
        "file": form.text("file"),
        "manager": form.text("manager") or "console",
        "note": form.text("note"),
        "prune": form.flag("prune"),
        "take_over": form.flag("take_over"),
        "problem": problem,
        "outcome": outcome,
        "revision": revision,
        "shown": _digest(form),
        "may_edit": may_edit_rules(call),
    }
    if problem is None:
        return Page("rules_file.html", values)
    return Page("rules_file.html", values, problem.kind.status, problem.headers)


def _digest(form: Form) -> str:
    """Return what tells a form from another one, of which something else was shown."""
    said = [form.text("file"), form.text("manager"), str(form.flag("prune")), str(form.flag("take_over"))]
    return hashlib.sha256("\0".join(said).encode()).hexdigest()


ROUTES: Final = (
    PageRoute("GET", "/rules:file", Permission.EDIT, show_file),
    PageRoute("POST", "/rules:file", Permission.EDIT, replace_rules, LARGEST),
)
