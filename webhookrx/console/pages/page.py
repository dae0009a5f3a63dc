"""
Pages: how each is asked for, and what it may answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from webhookrx.console.api.principal import Permission, Principal
from webhookrx.console.pages.api_calls import ApiCalls
from webhookrx.console.pages.form import Form
from webhookrx.settings import KiB

if TYPE_CHECKING:
    from webhookrx.console.console import Console

THEME_COOKIE: Final = "wrx-theme"
"""Holds the choice of colours, C{light} or C{dark}."""


class PageCall(msgspec.Struct, frozen=True):
    """
    One request for a page, or a form that was sent by one. Its caller may do it.

    @ivar console: what pages show comes by C{api}.
    @ivar api: calls the API for who is signed in.
    @ivar principal: who is signed in; None only at a page for anyone.
    @ivar path: the parameters in the path, decoded.
    @ivar query: the query.
    @ivar form: the form; empty for GET.
    @ivar url: path and query as they came, such as C{/rules?query=x}.
    @ivar is_fragment: a script wants a part of a page (htmx).
    @ivar cookies: returns the values of all cookies of a name.
    """

    console: Console
    api: ApiCalls
    principal: Principal | None
    path: dict[str, str]
    query: Form
    form: Form
    url: str
    is_fragment: bool = False
    cookies: Callable[[str], list[str]] = lambda name: []

    @property
    def me(self) -> Principal:
        """Who is signed in, at a page that is not for anyone."""
        assert self.principal is not None
        return self.principal

    def may(self, permission: Permission) -> bool:
        """Return whether who is signed in may do what needs C{permission}."""
        return self.principal is not None and self.principal.may(permission)


class Page(msgspec.Struct, frozen=True):
    """
    A page, or a part of one.

    @ivar template: a file in C{templates}; one whose name begins with C{_} is a part without head and navigation.
    @ivar values: what the template names.
    @ivar headers: further headers of the answer.
    """

    template: str
    values: dict[str, Any] = {}
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


class Redirect(msgspec.Struct, frozen=True):
    """
    An answer to a form: see another page (303).

    @ivar to: a path of this console, with its query.
    @ivar said: what the page says first, a key of L{webhookrx.console.pages.sayings.SAYINGS}; empty for nothing.
    """

    to: str
    said: str = ""
    headers: tuple[tuple[str, str], ...] = ()


PageAnswer: TypeAlias = Page | Redirect

#: A handler raises L{webhookrx.console.api.problems.ApiProblem} for a page that says what can't be done. It runs in the
#: reactor: work above some milliseconds goes to a thread.
PageHandler: TypeAlias = Callable[[PageCall], Awaitable[PageAnswer]]


class PageRoute(msgspec.Struct, frozen=True):
    """
    A page, or where one of its forms is sent to.

    @ivar method: C{GET} or C{POST}.
    @ivar path: with parameters in braces, such as C{/rules/{name}}.
    @ivar permission: who lacks it is told so; who is not signed in, and may not be anyone, comes to the log-in.
    @ivar body_limit: bytes of a form.
    """

    method: str
    path: str
    permission: Permission
    handler: PageHandler
    body_limit: int = 64 * KiB
