"""
Reads the parts of a request for a route: credentials, query, body and conditions, each checked and bounded.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from webhookrx.console.api.problems import (
    BAD_CALL,
    BAD_MEDIA_TYPE,
    CALL_TOO_LARGE,
    CROSS_SITE,
    IF_MATCH_MISSING,
    INVALID,
    LENGTH_MISSING,
    MISDIRECTED,
    NOT_SIGNED_IN,
    ApiFinding,
    ApiProblem,
)
from webhookrx.console.api.route import JSON_TYPE, YAML, ApiRoute
from webhookrx.intake.head import Head

#: C{__Host-}: a browser takes it with Secure, without Domain and for all paths only (RFC 6265bis section 4.1.3.2).
COOKIE: Final = "__Host-wrx"
CSRF_HEADER: Final = b"x-csrf-token"
WANTED: Final = (b"authorization", b"cookie", b"content-type", b"host", b"if-match", b"origin", b"sec-fetch-site")

_BEARER: Final = re.compile(r"[Bb]earer (wrxp_[A-Za-z0-9_-]{20,200})")
_ETAG: Final = re.compile(r'"([!#-~]{1,100})"')
_MEDIA_TYPE: Final = re.compile(r"([a-z]+/[a-z+.-]+)(?:\s*;\s*charset=\"?utf-8\"?)?", re.IGNORECASE)
_MOST_FIELDS: Final = 50
_MOST_DIGITS: Final = 19
_LONGEST_ACCEPT: Final = 1024
"""Bytes of C{Accept} that are looked at: it is read of callers who are not known yet, too."""
LONGEST_AGENT: Final = 200
"""Bytes of C{User-Agent} that are kept."""


class Shown(msgspec.Struct, frozen=True):
    """
    What a caller shows to be known by. It is secret.

    @ivar token: an API token; a cookie beside one counts for nothing.
    @ivar cookie: the secret of a session.
    """

    token: str | None = None
    cookie: str | None = None

    def __repr__(self) -> str:
        """Return it without secrets."""
        return "<shown>"


def shown_by(head: Head) -> Shown:
    """
    Return what a request shows; nothing when it is repeated.

    @raise ApiProblem: there is an Authorization that is not an API token.
    """
    authorization = head.values(b"authorization")
    if authorization:
        found = _BEARER.fullmatch(_text(authorization[0])) if len(authorization) == 1 else None
        if found is None:
            raise ApiProblem(NOT_SIGNED_IN, "Authorization is to be: Bearer wrxp_…")
        return Shown(token=found[1])
    values = read_cookies(head, COOKIE)
    return Shown(cookie=values[0] if len(values) == 1 and re.fullmatch(r"[A-Za-z0-9_-]{43}", values[0]) else None)


def read_cookies(head: Head, wanted: str) -> list[str]:
    """Return the values of all cookies of a name."""
    values = []
    for line in head.values(b"cookie")[:10]:
        for pair in _text(line).split(";"):
            name, _, value = pair.strip().partition("=")
            if name == wanted:
                values.append(value)
    return values


def read_agent(head: Head) -> str:
    """Return C{User-Agent}, with C{?} for what is not printable ASCII, and cut."""
    text = b" ".join(head.values(b"user-agent"))[:LONGEST_AGENT].decode("ascii", "replace")
    return "".join(char if " " <= char <= "~" else "?" for char in text)


def read_accepted(head: Head) -> frozenset[str]:
    """Return the media types that C{Accept} names, without those that it refuses by C{q=0}."""
    found = set()
    for each in _text(b",".join(head.values(b"accept"))[:_LONGEST_ACCEPT]).split(","):
        media_type, *parameters = (part.strip().lower() for part in each.split(";"))
        if not any(re.fullmatch(r"q=0(\.0*)?", part) for part in parameters):
            found.add(media_type)
    return frozenset(found)


def check_host(head: Head, host: str) -> None:
    """
    Refuse a request that is meant for another host: a name that an attacker has pointed here.

    @raise ApiProblem: it is.
    """
    if [_text(value).lower() for value in head.values(b"host")] != [host]:
        raise ApiProblem(MISDIRECTED)


def check_site(head: Head, origin: str, *, required: bool) -> None:
    """
    Refuse an unsafe request that a page of another site has made (Fetch Metadata, W3C; RFC 6454 section 7).

    @param required: one of the two headers must be there, as browsers send them.
    @raise ApiProblem: it is one.
    """
    origins, sites = head.values(b"origin"), head.values(b"sec-fetch-site")
    if any(value != origin.encode() for value in origins) or any(value != b"same-origin" for value in sites):
        raise ApiProblem(CROSS_SITE)
    if required and not origins and not sites:
        raise ApiProblem(CROSS_SITE, "Origin and Sec-Fetch-Site are missing.")


def check_body_head(head: Head, route: ApiRoute) -> str:
    """
    Check what the head of a request says about its body, before a byte of that is read. Forms are never taken.

    @return: the media type of the body; empty without a body.
    @raise ApiProblem: the route takes no such body.
    """
    if head.values(b"transfer-encoding"):
        raise ApiProblem(LENGTH_MISSING)
    lengths = head.values(b"content-length")
    has_body = bool(lengths) and lengths != [b"0"]
    if has_body and not is_at_most(lengths[0], route.body_limit if _takes_body(route) else 0):
        raise ApiProblem(CALL_TOO_LARGE)
    types = head.values(b"content-type")
    if not has_body and not types:
        return ""
    if not _takes_body(route):
        if has_body:
            raise ApiProblem(CALL_TOO_LARGE, "This call takes no body.")
        if not types[0].lower().startswith(b"application/json"):
            raise ApiProblem(BAD_MEDIA_TYPE)
        return ""
    found = _MEDIA_TYPE.fullmatch(_text(types[0])) if len(types) == 1 else None
    media_type = found[1].lower() if found is not None else ""
    allowed = [JSON_TYPE] if route.request is not None else []
    allowed += [YAML] if route.takes_yaml else []
    if media_type not in allowed:
        raise ApiProblem(BAD_MEDIA_TYPE, f"A body is to be {' or '.join(allowed)}.")
    return media_type


def is_at_most(length: bytes, most: int) -> bool:
    """Return whether a C{Content-Length} is a number that is not above C{most}."""
    # All digits count: zeros in front would hide those behind them.
    return length.isdigit() and len(length) <= _MOST_DIGITS and int(length) <= most


def _takes_body(route: ApiRoute) -> bool:
    return route.request is not None or route.takes_yaml


def read_query(raw: bytes | None, kind: Any) -> Any:
    """
    Return the query of a request.

    @param kind: the type of C{ApiRoute.query}; None for a route without one.
    @raise ApiProblem: a field is unknown, repeated or wrong.
    """
    if not raw and kind is None:
        return None
    try:
        pairs = parse_qsl((raw or b"").decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise ApiProblem(BAD_CALL, "The query is not one of names and values in UTF-8.") from error
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ApiProblem(BAD_CALL, "A field of the query is repeated.")
    known = set() if kind is None else {field.encode_name for field in msgspec.structs.fields(kind)}
    if not values.keys() <= known:
        raise ApiProblem(BAD_CALL, f"The query takes {', '.join(sorted(known)) or 'no fields'}.")
    if kind is None:
        return None
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ApiProblem(BAD_CALL, f"The query is wrong: {_shape(error)}") from error


def read_body(body: bytes, media_type: str, route: ApiRoute) -> tuple[Any, str | None]:
    """
    Return the body of a request: a value from JSON, or the text of YAML. A number with a fraction or an exponent is a
    C{Raw} where the type of the route is any value, so that it keeps its digits.

    @param media_type: see L{check_body_head}.
    @raise ApiProblem: it is missing, too large, not JSON or YAML, or of another type.
    """
    if len(body) > route.body_limit:
        raise ApiProblem(CALL_TOO_LARGE)
    if not _takes_body(route):
        return None, None
    if not body:
        raise ApiProblem(BAD_CALL, "The body is missing.")
    if media_type == YAML:
        try:
            return None, body.decode()
        except UnicodeDecodeError as error:
            raise ApiProblem(BAD_CALL, "The body is not UTF-8.") from error
    try:
        return msgspec.json.Decoder(route.request, float_hook=_raw_number).decode(body), None
    except msgspec.ValidationError as error:
        finding = ApiFinding("bad-value", "error", _shape(error))
        raise ApiProblem(INVALID, "The body is not of the type that this call takes.", [finding]) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiProblem(BAD_CALL, "The body is not JSON.") from error
    except RecursionError:
        raise ApiProblem(BAD_CALL, "The body is nested too deep.") from None


def read_condition(head: Head, name: bytes, *, required: bool = False) -> str | None:
    """
    Return the ETag of C{If-Match} or C{If-None-Match}, without quotes, or C{*}; None without it.

    @raise ApiProblem: it is not one strong ETag, or is missing and required.
    """
    values = head.values(name)
    if not values:
        if required:
            raise ApiProblem(IF_MATCH_MISSING)
        return None
    if values == [b"*"]:
        return "*"
    found = _ETAG.fullmatch(_text(values[0])) if len(values) == 1 else None
    if found is None:
        raise ApiProblem(BAD_CALL, f"{name.decode().title()} is to be one ETag in quotes.")
    return found[1]


def _raw_number(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


def _shape(error: msgspec.ValidationError) -> str:
    """Return what msgspec says of a type. It quotes names of ours and none of the caller's values, but unknown keys."""
    return str(error).split("contains unknown field", 1)[0].strip() + (
        " has a field that is not known." if "unknown field" in str(error) else "."
    )


def _text(value: bytes) -> str:
    return value.decode("latin-1")
