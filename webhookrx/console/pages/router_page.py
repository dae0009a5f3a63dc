"""
The page of one router: how it does, what it runs, and what can be done with it.
"""

from __future__ import annotations

from typing import Any, Final

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import INVALID, ApiProblem
from webhookrx.console.api.route import Answer
from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute, Redirect
from webhookrx.console.pages.router_words import BADGES, MEANINGS, path_of, tap_path, typed_labels
from webhookrx.console.routers.router_files import RouterFiles
from webhookrx.console.routers.routes import ShownConnectors
from webhookrx.console.routers.shown import RouterDetails
from webhookrx.management.volumes import volume_argument

MOST_CONNECTORS: Final = 50
"""Connectors, and files, of a page."""

_BACK: Final = {"list": "/routers", "overview": "/"}
"""Pages with a form that approves a router."""

_NEW_LABELS: Final = 2
"""Empty rows for labels."""


async def show_router(call: PageCall) -> PageAnswer:
    """Show a router; or what changes by itself, for a script."""
    router = await _router(call)
    if call.is_fragment:
        return Page("_router_now.html", await _now(call, router))
    return await _page(call, router)


async def show_files(call: PageCall) -> PageAnswer:
    """Show how the files of a router are, which is asked."""
    answer = await call.api("POST", f"/routers/{in_path(call.path['name'])}:files")
    found: RouterFiles = answer.body
    # Those that are not as they have to be are on the first page.
    files = sorted(found.files, key=lambda each: each.state == "present")
    values = {"files": files[:MOST_CONNECTORS], "more": len(files[MOST_CONNECTORS:]), "name": call.path["name"]}
    return Page("_router_files.html" if call.is_fragment else "router_files.html", values)


async def approve(call: PageCall) -> PageAnswer:
    """Approve a router, perhaps by another name than it asks for."""
    body: dict[str, object] = {"state": "approved"}
    if name := call.form.text("name"):
        body["name"] = name
    try:
        router = _details(await call.api("PATCH", _api_path(call), body))
    except ApiProblem as problem:
        return await _refused(call, problem)
    return Redirect(_BACK.get(call.form.text("back")) or path_of(router), "router-approved")


async def disable(call: PageCall) -> PageAnswer:
    """Disable a router: it is cut off at once."""
    router = _details(await call.api("PATCH", _api_path(call), {"state": "disabled"}))
    return Redirect(path_of(router), "router-disabled")


async def forget(call: PageCall) -> PageAnswer:
    """Forget a router, with its certificates."""
    await call.api("DELETE", _api_path(call))
    return Redirect("/routers", "router-forgotten")


async def change(call: PageCall) -> PageAnswer:
    """Change the name of a router, and the labels that the console gives it."""
    typed = typed_labels(call.form)
    labels = dict(typed)
    try:
        if len(labels) < len(typed):
            raise ApiProblem(INVALID, "A label is there twice.")
        body: dict[str, object] = {"labels": labels}
        if name := call.form.text("name"):
            body["name"] = name
        router = _details(await call.api("PATCH", _api_path(call), body))
    except ApiProblem as problem:
        return await _refused(call, problem)
    return Redirect(path_of(router), "router-changed")


async def reload(call: PageCall) -> PageAnswer:
    """Have a router read its configuration, keys and certificates again."""
    try:
        await call.api("POST", f"{_api_path(call)}:reload")
    except ApiProblem as problem:
        return await _refused(call, problem)
    return Redirect(f"/routers/{in_path(call.path['name'])}", "router-reloaded")


async def _refused(call: PageCall, problem: ApiProblem) -> Page:
    """Show the page again with what can't be done, and what was typed; if the router is gone, that alone."""
    page = await _page(call, await _router(call))
    values = {"problem": problem, "paths": problem.members.get("paths", ())}
    if call.form.flag("name"):
        values["new_name"] = call.form.text("name")
    if call.form.flag("key"):
        values["rows"] = [*typed_labels(call.form), *_empty_rows()]
    return Page(page.template, {**page.values, **values}, problem.kind.status, problem.headers)


async def _page(call: PageCall, router: RouterDetails) -> Page:
    values = {
        "problem": None,
        "paths": (),
        "new_name": router.name,
        "rows": [*sorted(router.console_labels.items()), *_empty_rows()],
        "tap": tap_path(router.name),
    }
    return Page("router.html", {**await _now(call, router), **values})


async def _now(call: PageCall, router: RouterDetails) -> dict[str, Any]:
    answer = await call.api("GET", f"/routers/{in_path(router.guid)}/connectors")
    told: ShownConnectors = answer.body
    # Those that are closed are what somebody looks for.
    connectors = sorted(told.connectors, key=lambda each: (each.state == "open", each.name))
    offset = call.query.number("connectors")
    return {
        "router": router,
        "now": call.console.clock(),
        "path": path_of(router),
        "badge": BADGES[router.standing],
        "meaning": MEANINGS[router.standing],
        "gate": [(path, volume_argument(path)) for path in router.gate_paths[:MOST_CONNECTORS]],
        "gate_more": len(router.gate_paths[MOST_CONNECTORS:]),
        "connectors": connectors[offset : offset + MOST_CONNECTORS],
        "offset": offset,
        "most": MOST_CONNECTORS,
        "more": len(connectors) > offset + MOST_CONNECTORS,
    }


def _empty_rows() -> list[tuple[str, str]]:
    return [("", "")] * _NEW_LABELS


async def _router(call: PageCall) -> RouterDetails:
    return _details(await call.api("GET", _api_path(call)))


def _details(answer: Answer) -> RouterDetails:
    router: RouterDetails = answer.body
    return router


def _api_path(call: PageCall) -> str:
    return f"/routers/{in_path(call.path['name'])}"


ROUTES: Final = (
    PageRoute("GET", "/routers/{name}", Permission.VIEW, show_router),
    PageRoute("GET", "/routers/{name}/files", Permission.EDIT, show_files),
    PageRoute("POST", "/routers/{name}:approve", Permission.ADMINISTER, approve, 4096),
    PageRoute("POST", "/routers/{name}:disable", Permission.ADMINISTER, disable, 4096),
    PageRoute("POST", "/routers/{name}:forget", Permission.ADMINISTER, forget, 4096),
    PageRoute("POST", "/routers/{name}:change", Permission.ADMINISTER, change),
    PageRoute("POST", "/routers/{name}:reload", Permission.EDIT, reload, 4096),
)
