"""
Routes of the API: each says what it takes, gives and asks of its caller, and has one asynchronous handler.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from webhookrx.console.api.principal import Permission, Principal
from webhookrx.settings import KiB

if TYPE_CHECKING:
    from webhookrx.console.console import Console

YAML: Final = "application/yaml"
CSV_TYPE: Final = "text/csv"
JSON_TYPE: Final = "application/json"


class ApiCall(msgspec.Struct, frozen=True):
    """
    One call of a route, checked: its caller may do it, and its parts are of the types of the route.

    @ivar principal: who calls; None only at a route for anyone.
    @ivar path: the parameters in the path, decoded.
    @ivar query: of the type C{ApiRoute.query}; None without one.
    @ivar body: of the type C{ApiRoute.request}; None without one, and for a body that is YAML.
    @ivar yaml: the text of a body that is YAML; else None.
    @ivar if_match: the ETag of C{If-Match}, without quotes; None without the header.
    @ivar if_none_match: likewise; C{*} as it is.
    @ivar accepted: the media types that the caller asks for by name.
    @ivar address: the caller's, for limits and the log.
    @ivar cookie: the secret of the session that the request came with; None without one.
    @ivar agent: what the caller's program calls itself, printable and cut.
    """

    console: Console
    principal: Principal | None
    path: dict[str, str] = {}
    query: Any = None
    body: Any = None
    yaml: str | None = None
    if_match: str | None = None
    if_none_match: str | None = None
    accepted: frozenset[str] = frozenset()
    address: str = ""
    cookie: str | None = None
    agent: str = ""

    @property
    def caller(self) -> Principal:
        """Who calls, at a route that is not for anyone."""
        assert self.principal is not None
        return self.principal

    def __repr__(self) -> str:
        """Return it without bodies, which may hold secrets."""
        return f"<Call by {self.principal!r}>"


class Answer(msgspec.Struct, frozen=True):
    """
    An answer, where a value alone does not say enough.

    @ivar body: a value of the route's answer type, which becomes JSON; or bytes, which are sent as they are.
    @ivar etag: without quotes; empty for none.
    @ivar headers: further ones.
    """

    body: Any = None
    status: int = 200
    content_type: str = JSON_TYPE
    etag: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class EventStream(msgspec.Struct, frozen=True):
    """
    An answer that goes on: server-sent events (U{https://html.spec.whatwg.org/multipage/server-sent-events.html}).

    @ivar start: called with C{send} and C{end} when the stream begins, which it does not for C{HEAD}, or when there are
        too many, or the caller has gone; returns what is called with a word once the stream has ended:
        C{gone} (the caller), C{rights} (taken away, or the session ended), or the word that C{end} got.
        C{send(event, data)} returns False, and sends nothing, while the caller does not read; C{data} is made JSON.
    """

    start: Callable[[Callable[[str, object], bool], Callable[[str], None]], Callable[[str], None]]


class PieceStream(msgspec.Struct, frozen=True):
    """
    An answer that is long, and not in memory as a whole.

    @ivar next_piece: returns the next bytes; none at the end.
    """

    next_piece: Callable[[], Awaitable[bytes]]
    content_type: str


#: A handler returns a value of the route's answer type, C{None} for 204, an L{Answer}, an L{EventStream} or a
#: L{PieceStream}; it raises L{webhookrx.console.api.problems.ApiProblem}. It runs in the
#: reactor: work above some milliseconds goes to a thread.
Handler: TypeAlias = Callable[[ApiCall], Awaitable[object]]


class ApiRoute(msgspec.Struct, frozen=True):
    """
    A route.

    @ivar path: below C{/api/v1}, with parameters in braces, such as C{/rules/{name}:rollback}. A parameter never
        holds a slash, and takes no colon unless it is percent-encoded.
    @ivar summary: one sentence for its description.
    @ivar request: the type of a JSON body; None: no body.
    @ivar answer: the type of the body of the answer; None: 204 without one.
    @ivar query: the type of the query, whose fields are texts, numbers or flags; unknown ones are refused.
    @ivar takes_yaml: a body may be YAML in place of JSON.
    @ivar gives: the media type of the answer, where it isn't JSON.
    @ivar also_gives: another one, for who asks for it; empty for none.
    @ivar needs_if_match: without C{If-Match} it answers 428.
    @ivar creates: C{If-None-Match: *} makes what is not there yet; without that and C{If-Match} it answers 428.
    @ivar body_limit: bytes of a body.
    @ivar safe: the method is POST, but nothing changes (a check, a preview); it still needs the CSRF token.
    """

    method: str
    path: str
    permission: Permission
    handler: Handler
    summary: str
    request: Any = None
    answer: Any = None
    query: Any = None
    takes_yaml: bool = False
    gives: str = JSON_TYPE
    also_gives: str = ""
    status: int = 200
    needs_if_match: bool = False
    creates: bool = False
    body_limit: int = 256 * KiB
    safe: bool = False
