"""
The page Settings, its tabs, and the frame that their pages have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.pages.enrolments import PATH as ENROLMENTS
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute
from webhookrx.console.pages.rendering import query_string

T = TypeVar("T")

ROWS: Final = 50
"""Of a table on one page."""


class SettingsTab(NamedTuple):
    """
    A tab.

    @ivar needs: who sees it.
    @ivar about: what is there, for the list of all.
    """

    path: str
    name: str
    needs: Permission
    about: str


TABS: Final = (
    SettingsTab("/settings/account", "Account", Permission.SIGNED_IN, "Your password, sessions and API tokens."),
    SettingsTab("/settings/people", "People", Permission.ADMINISTER, "Who may sign in, and what each may do."),
    SettingsTab("/settings/tokens", "API tokens", Permission.ADMINISTER, "The tokens of all people."),
    SettingsTab(
        "/settings/single-sign-on",
        "Single sign-on",
        Permission.ADMINISTER,
        "The provider by which people sign in, and which claims give which role.",
    ),
    SettingsTab(ENROLMENTS, "Enrolment", Permission.ADMINISTER, "One-time tokens by which hosts become routers."),
    SettingsTab("/settings/masks", "Masks", Permission.VIEW, "Names whose values no tap shows."),
    SettingsTab("/settings/retention", "Retention", Permission.VIEW, "For how long counts and the audit are kept."),
    SettingsTab(
        "/settings/certificates", "Certificates", Permission.VIEW, "The console's CA and the keys that sign bundles."
    ),
    SettingsTab("/settings/backup", "Backup", Permission.ADMINISTER, "How to copy the database and the keys."),
    SettingsTab("/settings/about", "About", Permission.VIEW, "Version, addresses and limits."),
)


def settings_page(
    call: PageCall, template: str, values: dict[str, Any], problem: ApiProblem | None = None, current: str = ""
) -> Page:
    """
    Return a page of the settings.

    @param problem: what was wrong with a form; the page says it.
    @param current: the path of its tab; by default the page's own.
    """
    path = current or call.url.partition("?")[0]
    tabs = [(each, each.path == path) for each in TABS if call.may(each.needs)]
    whole = {"tabs": tabs, "problem": problem, **values}
    if problem is None:
        return Page(template, whole)
    return Page(template, whole, problem.kind.status, problem.headers)


def rows_found(
    call: PageCall, path: str, rows: Sequence[T], texts: Callable[[T], Iterable[str]]
) -> tuple[list[T], dict[str, Any]]:
    """
    Return the rows of a table that a page shows of those that its query finds, and what the template says of the rest.

    @param path: of the page.
    @param texts: returns those of a row of which one is to have what is looked for.
    """
    find, start = call.query.text("find")[:63].lower(), call.query.number("from")
    found = [each for each in rows if any(find in text for text in texts(each))]

    def at(row: int) -> str:
        return f"{path}{query_string(find=find, **{'from': row or ''})}"

    return found[start : start + ROWS], {
        "count": len(found),
        "all": len(rows),
        "find": find,
        "start": start,
        "newer": at(max(0, start - ROWS)) if start else "",
        "older": at(start + ROWS) if len(found) > start + ROWS else "",
    }


def errors_at(problem: ApiProblem | None, name: str) -> list[str]:
    """Return what a problem says of a member of the body."""
    return [] if problem is None else [each.sentence for each in problem.findings if each.path[:1] == (name,)]


async def show_settings(call: PageCall) -> PageAnswer:
    """Show all tabs that somebody may see."""
    return settings_page(call, "settings.html", {})


ROUTES: Final = (PageRoute("GET", "/settings", Permission.SIGNED_IN, show_settings),)
