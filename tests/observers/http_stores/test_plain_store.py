"""The plain http observer as a store: nothing is lost, and nothing is refused that is good."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from twisted.trial.unittest import SynchronousTestCase

from tests.observers.http_stores.played_http_store import HTTPStoreContract, Record, Row, answer, broken
from webhookrx.observers.http_stores.exchange import HTTPAnswer, NoAnswer
from webhookrx.observers.http_stores.http import HTTP_SPEC, read_http

if TYPE_CHECKING:
    from webhookrx.observers.http_stores.exchange import StoreRequest
    from webhookrx.observers.http_stores.options import HTTPTarget
    from webhookrx.observers.http_stores.store import HTTPStore


class PlainStoreTests(HTTPStoreContract, SynchronousTestCase):
    """A server of which nothing is known but HTTP."""

    url = "http://127.0.0.1:8080/in"
    spec = HTTP_SPEC
    once = False
    rows = (
        *(Row(f"{status}", answer(status), "stored") for status in (200, 201, 202, 204)),
        *(Row(f"{status}", answer(status), "rejected") for status in (400, 413, 422)),
        *(Row(f"{status}", answer(status), "later") for status in (302, 401, 403, 404, 405, 415, 429, 500, 503)),
        Row("503 with Retry-After", answer(503, retry_after="20"), "later"),
    )
    nonsense = (answer(999), broken(answer(503)))

    def read(self, args: Sequence[str], options: dict[str, str]) -> tuple[HTTPTarget, HTTPStore]:
        """Read the options."""
        return read_http(args, options)

    def serve(self, request: StoreRequest) -> HTTPAnswer:
        """Store lines of JSON."""
        lines = [json.loads(line) for line in request.content.splitlines()]
        if self.refused is not None and any(self.refused in line["MESSAGE"] for line in lines):
            return answer(400, b"no")
        self.records += [Record(line["RCPTID"], line["MESSAGE"]) for line in lines]
        return answer(204)

    def serve_half(self, request: StoreRequest) -> HTTPAnswer:
        """Store the first half of the lines."""
        lines = request.content.splitlines(keepends=True)
        self.serve(request._replace(content=b"".join(lines[: len(lines) // 2])))
        raise NoAnswer("the connection was closed without an answer")
