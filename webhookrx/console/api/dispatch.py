"""
Takes each request to its route: refused as early as possible, checked, handled, answered with safe headers.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, Final

import msgspec
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer

from webhookrx.console.api.callers import STREAMS_OF_PERSON, Callers, Places
from webhookrx.console.api.pieces import ServedPieces
from webhookrx.console.api.principal import Permission, Principal
from webhookrx.console.api.problems import (
    BUSY,
    CROSS_SITE,
    DISK_FULL,
    FAILED_CALL,
    FORBIDDEN,
    NOT_SIGNED_IN,
    PROBLEM_TYPE,
    ApiProblem,
)
from webhookrx.console.api.reading import (
    CSRF_HEADER,
    WANTED,
    Shown,
    check_body_head,
    check_host,
    check_site,
    read_accepted,
    read_agent,
    read_body,
    read_condition,
    read_query,
    shown_by,
)
from webhookrx.console.api.route import Answer, ApiCall, ApiRoute, EventStream, PieceStream
from webhookrx.console.api.streams import ServedStream
from webhookrx.console.api.table import PREFIX, Matched, RouteTable
from webhookrx.console.exchange import HEADERS, SAFE_METHODS, ConsoleAddress, head_of, place_of, write_answer
from webhookrx.errors import StoreFull, StoreUnavailable
from webhookrx.http.answers import FixedAnswer
from webhookrx.http.interfaces import IEarlyResource, Verdict
from webhookrx.intake.head import Head
from webhookrx.settings import Limits, MiB

if TYPE_CHECKING:
    from webhookrx.console.console import Console

#: Limits of the console's port: bodies are files of rules at most, and a stream pings each 15 s.
CONSOLE_LIMITS: Final = Limits(body=4 * MiB, connections=1000, connections_per_peer=200, answer_time=70.0)

MOST_BODIES: Final = 32 * MiB
"""Bytes of bodies that are being read, of all callers together."""

FOR_SMALL_BODIES: Final = 8 * MiB
"""Of those, what small ones alone may take: all but pushes of large files."""

MOST_STREAMS: Final = 50
"""Streams that are open at a time."""


@implementer(IEarlyResource)
class ApiResource(Resource):
    """
    The root of the API.

    @param callers: see L{Callers}; pages have the same.
    @param console: see L{ApiCall}.
    @param url: the console's, such as C{https://console.example:8443}.
    @param clock: for pings of streams and looks at the rights of who reads them.
    """

    isLeaf = True
    wanted = WANTED
    _log = Logger()

    def __init__(self, table: RouteTable[ApiRoute], callers: Callers, console: Console, url: str, clock: Any) -> None:
        super().__init__()
        self._table = table
        self._callers = callers
        self._console = console
        self._address = ConsoleAddress.of(url)
        self._clock = clock
        self._readers = Places(MOST_STREAMS, STREAMS_OF_PERSON)
        self._streams: set[ServedStream | ServedPieces] = set()

    # -- at the end of the head ----------------------------------------------------------------------------------

    def dispatch(self, head: Head) -> Verdict:
        """See L{IEarlyResource.dispatch}: what can't become a call is refused before its body is read."""
        try:
            check_host(head, self._address.host)
            matched = self._table.match(head.method.decode("latin-1"), head.path)
            self._check_head(head, matched)
            check_body_head(head, matched.route)
        except ApiProblem as problem:
            lines = "".join(f"{name}: {value}\r\n" for name, value in _headers_of(problem))
            return FixedAnswer(problem.kind.status, _encoded(problem), lines.encode(), PROBLEM_TYPE.encode(), once=True)
        return None

    def _check_head(self, head: Head, matched: Matched[ApiRoute]) -> Shown:
        shown = shown_by(head)
        if matched.route.permission is not Permission.ANYONE and shown == Shown():
            raise ApiProblem(NOT_SIGNED_IN)
        if matched.route.method not in SAFE_METHODS and shown.token is None:
            check_site(head, self._address.origin, required=shown.cookie is not None)
        return shown

    # -- with the body -------------------------------------------------------------------------------------------

    def render(self, request: Any) -> int:
        """See L{twisted.web.resource.IResource.render}."""
        gone: list[object] = []
        request.notifyFinish().addBoth(gone.append)
        Deferred.fromCoroutine(self._serve(request, gone)).addErrback(self._failed, request, gone)
        return NOT_DONE_YET

    async def _serve(self, request: Any, gone: list[object]) -> None:
        try:
            head = head_of(request)
            check_host(head, self._address.host)
            matched = self._table.match(head.method.decode("latin-1"), head.path)
            shown = self._check_head(head, matched)
            content = request.content.read()
            reader = ""

            async def handle(principal: Principal | None) -> object:
                nonlocal reader
                reader = "" if principal is None else principal.name
                _check_rights(head, matched.route, principal)
                return await self._handled(head, matched, shown, principal, content)

            answer = await self._callers.serve(shown, head.peer.ip, handle)
        except (ApiProblem, StoreUnavailable) as error:
            if not gone:
                self._refuse(request, error if isinstance(error, ApiProblem) else _of_store(error))
            return
        if gone:
            return
        if isinstance(answer, (EventStream, PieceStream)):
            self._stream(request, answer, matched, shown, reader)
        else:
            self._answer(request, answer, matched)

    async def _handled(
        self, head: Head, matched: Matched[ApiRoute], shown: Shown, principal: Principal | None, content: bytes
    ) -> object:
        route = matched.route
        body, yaml = read_body(content, check_body_head(head, route), route)
        if_none_match = read_condition(head, b"if-none-match")
        needs_if_match = route.needs_if_match or (route.creates and if_none_match != "*")
        call = ApiCall(
            self._console,
            principal,
            matched.parameters,
            read_query(head.query, route.query),
            body,
            yaml,
            read_condition(head, b"if-match", required=needs_if_match),
            if_none_match,
            read_accepted(head),
            str(head.peer),
            shown.cookie,
            read_agent(head),
        )
        return await route.handler(call)

    # -- answers -------------------------------------------------------------------------------------------------

    def _answer(self, request: Any, answer: object, matched: Matched[ApiRoute]) -> None:
        if not isinstance(answer, Answer):
            answer = Answer(answer, 204 if answer is None else matched.route.status, matched.route.gives)
        body = answer.body
        encoded = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        headers = [*HEADERS, *answer.headers]
        if answer.etag:
            headers.append(("ETag", f'"{answer.etag}"'))
        write_answer(request, answer.status, answer.content_type if encoded else "", headers, encoded)

    def _refuse(self, request: Any, problem: ApiProblem) -> None:
        write_answer(request, problem.kind.status, PROBLEM_TYPE, _headers_of(problem), _encoded(problem))

    def _failed(self, failure: Failure, request: Any, gone: list[object]) -> None:
        # Only the class: its message may hold what the caller has sent.
        self._log.error(
            "A call of the API failed: {kind} {where}", kind=type(failure.value).__name__, where=place_of(failure)
        )
        if not gone and not request.startedWriting:
            self._refuse(request, ApiProblem(FAILED_CALL))

    def _stream(
        self, request: Any, stream: EventStream | PieceStream, matched: Matched[ApiRoute], shown: Shown, reader: str
    ) -> None:
        if request.method == b"HEAD":
            write_answer(request, 200, "", list(HEADERS), b"")
            return
        if not self._readers.take(reader):
            self._refuse(request, ApiProblem(BUSY, "There are too many streams.", headers=(("Retry-After", "5"),)))
            return
        for name, value in HEADERS:
            request.setHeader(name.encode(), value.encode())

        async def still_may() -> bool:
            principal = await self._callers.identify(shown)
            return principal is not None and principal.may(matched.route.permission)

        def over(served: ServedStream | ServedPieces) -> None:
            self._streams.discard(served)
            self._readers.give_back(reader)

        if isinstance(stream, PieceStream):
            pieces = ServedPieces(request, still_may, over)
            self._streams.add(pieces)
            pieces.begin(stream)
            return
        served = ServedStream(request, still_may, self._clock, over)
        self._streams.add(served)
        served.begin(stream)

    def end_streams(self) -> None:
        """End all streams: the console stops."""
        for served in list(self._streams):
            served.end("stopping")


def _check_rights(head: Head, route: ApiRoute, principal: Principal | None) -> None:
    """
    @raise ApiProblem: who calls may not call this route.
    """
    if route.permission is Permission.ANYONE:
        return
    if principal is None:
        raise ApiProblem(NOT_SIGNED_IN)
    if not principal.may(route.permission):
        raise ApiProblem(FORBIDDEN, f"It needs the right: {route.permission.value}.")
    if principal.session_id and route.method not in SAFE_METHODS:
        tokens = head.values(CSRF_HEADER)
        if len(tokens) != 1 or not hmac.compare_digest(tokens[0], principal.csrf.encode()):
            raise ApiProblem(CROSS_SITE, "X-CSRF-Token is missing, or of another session.")


def _of_store(error: StoreUnavailable) -> ApiProblem:
    return ApiProblem(DISK_FULL if isinstance(error, StoreFull) else BUSY, headers=(("Retry-After", "5"),))


def _headers_of(problem: ApiProblem) -> list[tuple[str, str]]:
    headers = [*HEADERS, *problem.headers]
    return [*headers, ("WWW-Authenticate", "Bearer")] if problem.kind is NOT_SIGNED_IN else headers


def _encoded(problem: ApiProblem) -> bytes:
    return msgspec.json.encode(problem.document())


__all__ = ["CONSOLE_LIMITS", "PREFIX", "ApiResource"]
