"""
Serves the pages: each request is judged, handled by its page, and answered as HTML with safe headers.
"""

from __future__ import annotations

import hmac
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer

from webhookrx.console.api.callers import Callers
from webhookrx.console.api.principal import Permission, Principal
from webhookrx.console.api.problems import (
    BAD_MEDIA_TYPE,
    BUSY,
    CALL_TOO_LARGE,
    CROSS_SITE,
    DISK_FULL,
    FAILED_CALL,
    FORBIDDEN,
    LENGTH_MISSING,
    NOT_SIGNED_IN,
    ApiProblem,
)
from webhookrx.console.api.reading import (
    CSRF_HEADER,
    WANTED,
    Shown,
    check_host,
    check_site,
    is_at_most,
    read_agent,
    read_cookies,
    shown_by,
)
from webhookrx.console.api.route import ApiRoute
from webhookrx.console.api.table import Matched, RouteTable
from webhookrx.console.exchange import HEADERS, SAFE_METHODS, ConsoleAddress, head_of, place_of, write_answer
from webhookrx.console.pages.api_calls import ApiCalls
from webhookrx.console.pages.form import FORM_TYPE, Form
from webhookrx.console.pages.one_by_one import one_by_one
from webhookrx.console.pages.page import THEME_COOKIE, Page, PageAnswer, PageCall, PageRoute
from webhookrx.console.pages.rendering import Renderer, query_string
from webhookrx.console.pages.sayings import SAID
from webhookrx.console.pages.static_files import StaticFiles
from webhookrx.errors import StoreFull, StoreUnavailable
from webhookrx.http.answers import FixedAnswer
from webhookrx.http.interfaces import IEarlyResource, Verdict
from webhookrx.intake.head import Head
from webhookrx.settings import KiB

if TYPE_CHECKING:
    from webhookrx.console.console import Console

HTML: Final = "text/html; charset=utf-8"

#: Browsers send C{Origin: null} with forms of pages that have C{no-referrer} (Fetch standard, "append a request Origin
#: header"), and so nothing would show that a form is ours. Other sites are told nothing either way.
PAGE_HEADERS: Final = (
    *((name, "same-origin" if name == "Referrer-Policy" else value) for name, value in HEADERS),
    # Who opens a page in a window of its own keeps no hold of that window.
    ("Cross-Origin-Opener-Policy", "same-origin"),
)

_BY_SCRIPT: Final = b"hx-request"

_LARGE: Final = 8 * KiB
"""Bytes of a form from which on it is read apart from the reactor: each may be an escape."""


@implementer(IEarlyResource)
class PageResource(Resource):
    """
    The root of the pages.

    @param pages: all of them.
    @param api: what pages call.
    @param callers: the same as for the API.
    @param console: see L{PageCall}.
    @param url: the console's.
    """

    isLeaf = True
    wanted = (*WANTED, CSRF_HEADER)
    _log = Logger()

    def __init__(
        self, pages: RouteTable[PageRoute], api: RouteTable[ApiRoute], callers: Callers, console: Console, url: str
    ) -> None:
        super().__init__()
        self._pages = pages
        self._api = api
        self._callers = callers
        self._console = console
        self._address = ConsoleAddress.of(url)
        self._files = StaticFiles()
        self._renderer = Renderer(self._files)

    def load(self) -> None:
        """Read what pages are made of, while nobody waits for one."""
        self._renderer.load()

    # -- at the end of the head ----------------------------------------------------------------------------------

    def dispatch(self, head: Head) -> Verdict:
        """See L{IEarlyResource.dispatch}: what can't become a call is refused before its body is read."""
        try:
            check_host(head, self._address.host)
            if not _is_static(head):
                self._check_head(head)
        except ApiProblem as problem:
            lines = "".join(f"{name}: {value}\r\n" for name, value in (*PAGE_HEADERS, *problem.headers))
            html = self._problem_page(problem, self._nobody(head), "")
            return FixedAnswer(problem.kind.status, html, lines.encode(), HTML.encode(), once=True)
        return None

    def _check_head(self, head: Head) -> Matched[PageRoute]:
        matched = self._pages.match(head.method.decode("latin-1"), head.path)
        if matched.route.method in SAFE_METHODS:
            if head.values(b"transfer-encoding") or head.values(b"content-length") not in ([], [b"0"]):
                raise ApiProblem(CALL_TOO_LARGE, "This page takes no body.")
            return matched
        check_site(head, self._address.origin, required=True)
        if matched.route.permission is not Permission.ANYONE and shown_by(head).cookie is None:
            raise ApiProblem(NOT_SIGNED_IN)
        lengths, types = head.values(b"content-length"), head.values(b"content-type")
        if not lengths or head.values(b"transfer-encoding"):
            raise ApiProblem(LENGTH_MISSING)
        if not is_at_most(lengths[0], matched.route.body_limit):
            raise ApiProblem(CALL_TOO_LARGE)
        if [value.partition(b";")[0].strip().lower() for value in types] != [FORM_TYPE.encode()]:
            raise ApiProblem(BAD_MEDIA_TYPE, f"A form is to be {FORM_TYPE}.")
        return matched

    # -- with the body -------------------------------------------------------------------------------------------

    def render(self, request: Any) -> int:
        """See L{twisted.web.resource.IResource.render}."""
        head = head_of(request)
        if _is_static(head):
            self._serve_file(request, head)
            return NOT_DONE_YET
        gone: list[object] = []
        request.notifyFinish().addBoth(gone.append)
        Deferred.fromCoroutine(self._serve(request, head, gone)).addErrback(self._failed, request, gone)
        return NOT_DONE_YET

    def _serve_file(self, request: Any, head: Head) -> None:
        parts = head.path.decode("latin-1").split("/")
        packed = b"gzip" in b",".join(head.values(b"accept-encoding"))
        try:
            file = self._files.file(parts[2], "/".join(parts[3:]), packed=packed)
        except (ApiProblem, IndexError):
            write_answer(request, 404, "text/plain", list(PAGE_HEADERS), b"There is no such file.\n")
        else:
            write_answer(request, 200, file.content_type, list(file.headers), file.content)

    async def _serve(self, request: Any, head: Head, gone: list[object]) -> None:
        theme = _theme_of(head)
        call = self._nobody(head)
        try:
            check_host(head, self._address.host)
            matched = self._check_head(head)
            shown = shown_by(head)
            content = request.content.read()

            async def handle(principal: Principal | None) -> None:
                nonlocal call
                call = self._call(head, matched, principal, shown)
                _check_permission(matched.route, call)
                call = msgspec.structs.replace(call, form=await _form_of(content, matched.route))
                _check_token(head, matched.route, call)
                await self._answer(request, await matched.route.handler(call), call, theme, gone)

            # Programs have the API; a page is for whoever has signed in.
            await self._callers.serve(Shown(cookie=shown.cookie), head.peer.ip, handle)
        except (ApiProblem, StoreUnavailable) as error:
            problem = error if isinstance(error, ApiProblem) else _of_store(error)
            self._answer_problem(request, problem, call, theme, gone)

    def _nobody(self, head: Head) -> PageCall:
        api = ApiCalls(self._api, self._console, None)
        return PageCall(self._console, api, None, {}, Form(), Form(), _url_of(head), _is_by_script(head))

    def _call(self, head: Head, matched: Matched[PageRoute], principal: Principal | None, shown: Shown) -> PageCall:
        api = ApiCalls(self._api, self._console, principal, str(head.peer), shown.cookie, read_agent(head))
        return PageCall(
            self._console,
            api,
            principal,
            matched.parameters,
            Form(head.query or b""),
            Form(),
            _url_of(head),
            _is_by_script(head),
            partial(read_cookies, head),
        )

    # -- answers -------------------------------------------------------------------------------------------------

    async def _answer(self, request: Any, answer: PageAnswer, call: PageCall, theme: str, gone: list[object]) -> None:
        if gone:
            return
        headers = [*PAGE_HEADERS, *answer.headers]
        if isinstance(answer, Page):
            html = await self._renderer.html_in_turns(answer, call, theme)
            if not gone:
                write_answer(request, answer.status, HTML, headers, html)
        else:
            path, _, query = answer.to.partition("?")
            to = f"{path}?{query}&{SAID}={answer.said}" if query and answer.said else answer.to
            if answer.said and not query:
                to = f"{path}{query_string(**{SAID: answer.said})}"
            _redirect(request, to, headers, call)

    def _answer_problem(
        self, request: Any, problem: ApiProblem, call: PageCall, theme: str, gone: list[object]
    ) -> None:
        if gone:
            return
        if problem.kind is NOT_SIGNED_IN and call.principal is None and request.method != b"POST":
            _redirect(
                request, f"/sign-in{query_string(next=call.url if call.url != '/' else '')}", [*PAGE_HEADERS], call
            )
            return
        headers = [*PAGE_HEADERS, *problem.headers]
        write_answer(request, problem.kind.status, HTML, headers, self._problem_page(problem, call, theme))

    def _problem_page(self, problem: ApiProblem, call: PageCall, theme: str) -> bytes:
        template = "_problem.html" if call.is_fragment else "problem.html"
        page = Page(template, {"problem": problem}, problem.kind.status)
        return self._renderer.html(page, call, theme)

    def _failed(self, failure: Failure, request: Any, gone: list[object]) -> None:
        # Only the class: its message may hold what the caller has sent.
        self._log.error("A page failed: {kind} {where}", kind=type(failure.value).__name__, where=place_of(failure))
        if not gone and not request.startedWriting:
            problem = ApiProblem(FAILED_CALL)
            html = self._problem_page(problem, self._nobody(head_of(request)), "")
            write_answer(request, problem.kind.status, HTML, list(PAGE_HEADERS), html)


async def _form_of(content: bytes, route: PageRoute) -> Form:
    if len(content) > route.body_limit:
        raise ApiProblem(CALL_TOO_LARGE)
    if len(content) <= _LARGE:
        return Form(content)
    return await one_by_one(Form, content)


def _check_permission(route: PageRoute, call: PageCall) -> None:
    if route.permission is not Permission.ANYONE:
        if call.principal is None:
            raise ApiProblem(NOT_SIGNED_IN)
        if not call.principal.may(route.permission):
            raise ApiProblem(FORBIDDEN, f"It needs the right: {route.permission.value}.")


def _check_token(head: Head, route: PageRoute, call: PageCall) -> None:
    if call.principal is not None and route.method not in SAFE_METHODS:
        given = [value.decode("latin-1") for value in head.values(CSRF_HEADER)] or call.form.all("csrf")
        if len(given) != 1 or not hmac.compare_digest(given[0].encode(), call.principal.csrf.encode()):
            raise ApiProblem(CROSS_SITE, "The form is of another session. Go back, load the page anew, and try again.")


def _redirect(request: Any, to: str, headers: list[tuple[str, str]], call: PageCall) -> None:
    # A script that has asked for a part of a page would put the whole of another one in its place.
    name, status = ("HX-Redirect", 200) if call.is_fragment else ("Location", 303)
    write_answer(request, status, "", [*headers, (name, to)], b"")


def _of_store(error: StoreUnavailable) -> ApiProblem:
    return ApiProblem(DISK_FULL if isinstance(error, StoreFull) else BUSY, headers=(("Retry-After", "5"),))


def _is_static(head: Head) -> bool:
    return head.path.startswith(b"/static/") and head.method in (b"GET", b"HEAD")


def _is_by_script(head: Head) -> bool:
    return head.values(_BY_SCRIPT) == [b"true"]


def _url_of(head: Head) -> str:
    """Return path and query of a request, which become a link to this console and to no other."""
    path = "/" + head.path.decode("latin-1").lstrip("/")
    return path if head.query is None else f"{path}?{head.query.decode('latin-1')}"


def _theme_of(head: Head) -> str:
    theme = read_cookies(head, THEME_COOKIE)
    return theme[0] if len(theme) == 1 and theme[0] in ("light", "dark") else ""
