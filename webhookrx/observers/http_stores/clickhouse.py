"""
C{clickhouse:URL/DB.TABLE}: inserts rows into a table of ClickHouse, one C{INSERT} a request.

Its answers are those of U{https://clickhouse.com/docs/interfaces/http}. C{wait_end_of_query=1} makes it finish before
it answers, so that its status is right. An insert with a row that is bad inserts none of the rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from webhookrx.observers.batch_limits import BatchLimits
from webhookrx.observers.http_stores.exchange import Header, HTTPAnswer, StoreRequest, UnreadableAnswer
from webhookrx.observers.http_stores.http import REDIRECTION_HINT
from webhookrx.observers.http_stores.store import Finding, HTTPStore, Verdict
from webhookrx.settings import MiB

LIMITS: Final = BatchLimits(messages=10_000, size=8 * MiB)
"""The defaults: each insert makes a part of the table, which is merged with others later."""

CODE_FIELD: Final = "x-clickhouse-exception-code"
"""A header field of answers since version 20; before that the code is in the body only."""

#: Codes for what is wrong with a row itself: it can't be parsed, or the table does not take its values.
_REFUSALS: Final = frozenset(
    {
        6,  # CANNOT_PARSE_TEXT
        25,  # CANNOT_PARSE_ESCAPE_SEQUENCE
        26,  # CANNOT_PARSE_QUOTED_STRING
        27,  # CANNOT_PARSE_INPUT_ASSERTION_FAILED
        38,  # CANNOT_PARSE_DATE
        41,  # CANNOT_PARSE_DATETIME
        53,  # TYPE_MISMATCH
        72,  # CANNOT_PARSE_NUMBER
        131,  # TOO_LARGE_STRING_SIZE
        349,  # CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
        376,  # CANNOT_PARSE_UUID
        407,  # DECIMAL_OVERFLOW
        441,  # CANNOT_PARSE_DOMAIN_VALUE_FROM_STRING
        467,  # CANNOT_PARSE_BOOL
        469,  # VIOLATED_CONSTRAINT
        675,  # CANNOT_PARSE_IPV4
        676,  # CANNOT_PARSE_IPV6
        691,  # UNKNOWN_ELEMENT_OF_ENUM
    }
)
#: INCORRECT_DATA: an unknown column, among others. It is for the table to be mended where all rows have the same ones.
_INCORRECT_DATA: Final = 117

#: What an operator can check.
_LOOK_AT_LOGIN: Final = "look at user= and password_file="
_LOOK_AT_TABLE: Final = "look at the table in the URL"
_HINTS: Final = {
    16: "look at the columns of the table",
    47: "look at the columns of the table",
    60: _LOOK_AT_TABLE,
    81: _LOOK_AT_TABLE,
    115: "it does not know a setting: its version is too old, or settings_file= has a wrong name",
    _INCORRECT_DATA: "look at the columns of the table",
    164: "the user may not write, or not change settings",
    192: _LOOK_AT_LOGIN,
    193: _LOOK_AT_LOGIN,
    194: _LOOK_AT_LOGIN,
    241: "it has too little memory",
    242: "the table is read-only now",
    252: "too many parts: larger batches, or fewer partitions",
    285: "too few replicas are alive for quorum=",
    291: _LOOK_AT_LOGIN,
    319: "it does not know whether enough replicas have it",
    452: "settings_file= has a value that the user may not set",
    497: "the user may not insert into the table",
    516: _LOOK_AT_LOGIN,
}

_CODE_IN_BODY: Final = re.compile(rb"\s*Code: ([0-9]{1,5})[.,:]")
_CODE: Final = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, kw_only=True)
class ClickHouse(HTTPStore):
    """
    ClickHouse's HTTP interface.

    @ivar path: the path of the interface.
    @ivar query: the C{INSERT}.
    @ivar settings: further parameters of a request.
    @ivar user: None for the server's default user.
    @ivar has_same_columns: all rows have the same columns.
    """

    limits: BatchLimits = LIMITS
    content_type: str = "application/x-ndjson"
    answer_fields: tuple[str, ...] = (CODE_FIELD,)
    path: str = "/"
    query: str
    settings: tuple[tuple[str, str], ...] = ()
    user: str | None = None
    has_same_columns: bool = True

    def make(self, lines: Sequence[bytes]) -> StoreRequest:
        """Join rows. The token is the same for the same rows, by which the table knows them again."""
        content = b"".join(lines)
        token = hashlib.sha256(content).hexdigest()
        parameters = (("query", self.query), *self.settings, ("insert_deduplication_token", token))
        return StoreRequest(self.pack(content), path=f"{self.path}?{urlencode(parameters)}")

    def fields(self) -> list[Header]:
        """Return the header fields of every request, with the user."""
        user = [] if self.user is None else [(b"X-ClickHouse-User", self.user.encode())]
        return [*super().fields(), *user]

    def read(self, answer: HTTPAnswer, count: int) -> Finding:
        """Tell it by the code of the exception; 413 is of what stands in front of it."""
        code = _code_in_field(answer)
        if answer.status == 200 and code is None:
            if answer.body or CODE_FIELD in answer.fields:
                # An exception behind the head, or a page of something in front of it; or a code that is none.
                raise UnreadableAnswer(f"{answer.describe()}, but not as to an INSERT")
            return Finding(Verdict.STORED)
        if code is None and answer.status == 413:
            return Finding(Verdict.REFUSED, "too large; look at batch_size=", answer.beginning)
        if code is None and 400 <= answer.status < 600:
            code = _code_in_body(answer)
        if code is None:
            hint = REDIRECTION_HINT if 300 <= answer.status < 400 else ""
            return Finding(Verdict.LATER, hint, answer.beginning)
        hint = f"code {code}: {_HINTS[code]}" if code in _HINTS else f"code {code}"
        is_refused = code in _REFUSALS or (code == _INCORRECT_DATA and not self.has_same_columns)
        if is_refused and answer.status >= 400:
            return Finding(Verdict.REFUSED, f"code {code}", answer.beginning)
        return Finding(Verdict.LATER, hint, answer.beginning)


def _code_in_field(answer: HTTPAnswer) -> int | None:
    text = answer.fields.get(CODE_FIELD)
    return int(text) if text is not None and _CODE.fullmatch(text) else None


def _code_in_body(answer: HTTPAnswer) -> int | None:
    """
    @raise CutAnswer: the body is too long.
    @raise UnreadableAnswer: it did not come to its end.
    """
    found = _CODE_IN_BODY.match(answer.body)
    return None if found is None else int(found[1])
