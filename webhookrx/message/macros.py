"""
Which macros there are, which of them a sender may set, and what each stands for in a template.

A I{soft} macro is a name-value pair that a payload may replace. A I{hard} macro belongs to the message: what the
receiver saw, and what follows from it. It is read-only. Names are case-sensitive.

The names and their meaning are the collector's; so are the defaults of a message that did not come as syslog:
facility C{user}, severity C{notice}.

In a message of the router form the same names stand for what L{webhookrx.message.record} has in their place.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from webhookrx.message.escapes import encode_json
from webhookrx.message.fields import MISSING
from webhookrx.message.message import Message, Value
from webhookrx.message.record import field_value, is_router_form, own_time, path_group, record_macro, syslog_severity
from webhookrx.yield_point import map_pieces

NANOSECONDS: Final = 1_000_000_000
"""In a second."""

# Names in a row read better than a column of literals, hence split().
MONTHS: Final = "January February March April May June July August September October November December".split()  # noqa: SIM905
WEEK_DAYS: Final = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905
"""English whatever the locale, in the order of C{tm_wday}."""

DATE_MACROS: Final = frozenset(
    """
    AMPM DATE DAY FULLDATE HOUR HOUR12 ISODATE ISOWEEK MIN MONTH MONTH_ABBREV MONTH_NAME MONTH_WEEK MSEC SEC STAMP
    SYSUPTIME TZ TZOFFSET UNIXTIME USEC WEEK WEEKDAY WEEK_DAY WEEK_DAY_ABBREV WEEK_DAY_NAME YEAR YEAR_DAY
    """.split()  # noqa: SIM905
)
"""Macros of a moment. Each also comes as one of L{MOMENTS}."""

MOMENTS: Final = ("R_", "S_", "C_", "P_")
"""Prefixes of date macros: received, sent, current, processed."""

HARD_MACROS: Final = (
    frozenset(
        """
        BSDTAG CONTEXT_ID DESTIP DESTPORT FACILITY FACILITY_NUM HOSTID IP-PROTO IP_PROTO LEVEL LEVEL_NUM LOGHOST MSGHDR
        PEERIP PEERPORT PRI PRIORITY PROTO PROTO_NAME RAWMSG_SIZE RCPTID RUNID SDATA SEQNUM SOURCEIP SOURCEPORT TAG TAGS
        TRANSPORT UNIQID
        """.split()  # noqa: SIM905
    )
    | DATE_MACROS
    | {moment + name for moment in MOMENTS for name in DATE_MACROS}
)

ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"MSG": "MESSAGE", "MSGONLY": "MESSAGE", "FULLHOST": "HOST", "FULLHOST_FROM": "HOST_FROM"}
)
"""Second names of soft macros."""

SOFT_MACROS: Final = frozenset(
    {*ALIASES, "HOST", "HOST_FROM", "LEGACY_MSGHDR", "MESSAGE", "MSGID", "PID", "PROGRAM", "SOURCE"}
)

PROVENANCE: Final = frozenset(
    "webhook." + name
    for name in """
    sender verified secret token delivery_id attempt signed_at batch.index batch.count batch.envelope client.cn
    client.san client.issuer client.fingerprint
    """.split()  # noqa: SIM905
)
"""Names of pairs that say where a message comes from. Only these themselves are reserved, not what is below them."""

RESERVED: Final = PROVENANCE | {
    "webhook.headers",
    "webhook.parse_error",
    "webhook.body_base64",
    "webhook.left_out",
}
"""Names of pairs that only the receiver sets, besides those that begin with one of L{RESERVED_PREFIXES}."""

RESERVED_PREFIXES: Final = ("webhook.query.", "webhook.headers.", "webhook.left_out.")


LEVELS: Final = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
"""Names of severities (levels) by number, from the worst; RFC 5424 section 6.2.1."""

_NOTICE: Final = LEVELS.index("notice")


def is_hard_macro(name: str) -> bool:
    """Return whether C{name} belongs to the message and can't be set from outside."""
    return name in HARD_MACROS


def is_reserved(name: str) -> bool:
    """Return whether a payload may not set C{name}: a hard macro, or a pair that only the receiver sets."""
    return name in HARD_MACROS or name in RESERVED or name.startswith(RESERVED_PREFIXES)


def canonical(name: str) -> str:
    """Return the name under which a pair is stored: an alias leads to its soft macro, others to themselves."""
    return ALIASES.get(name, name)


#: List elements with one of these need quotes, or a reader could not tell where they end.
_UNSAFE_IN_LIST = re.compile(r"[\x00-\x20\x7f\\,'\"]")

_CONTROL_ESCAPES: Final = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), 0x7F)},
    **str.maketrans({"\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}),
}


def _escape_element(text: str) -> str:
    text = text.replace("\\", r"\\")
    return text if text.isprintable() else text.translate(_CONTROL_ESCAPES)


def _element_text(text: str) -> str:
    """Quote an element of a list as the collector does: only where it is needed, by C{"} unless it holds one."""
    if not text:
        return '""'
    if not _UNSAFE_IN_LIST.search(text):
        return text
    escaped = map_pieces(_escape_element, text)
    if '"' not in text:
        return f'"{escaped}"'
    if "'" not in text:
        return f"'{escaped}'"
    return '"' + escaped.replace('"', '\\"') + '"'


_decode_strings: Final = msgspec.json.Decoder(list[str]).decode


def value_text(value: Value) -> str:
    """
    Return a value as text. Null is empty; numbers keep their spelling; a list of strings is joined by commas, such as
    C{foo,"a,b"}; other lists and objects are JSON.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, msgspec.Raw):
        text = bytes(value)
        try:
            # The text of a number is no list either.
            return ",".join(map(_element_text, _decode_strings(text)))
        except msgspec.ValidationError:
            return text.decode()
    if isinstance(value, list) and all(isinstance(element, str) for element in value):
        return ",".join([_element_text(element) for element in value if isinstance(element, str)])
    return encode_json(value).decode()


class _Second(NamedTuple):
    """A second of local time: taken apart, its offset, and its ISO 8601 text with a place for the microseconds."""

    parts: time.struct_time
    offset: str
    iso: str


# Messages come many to a second, and a template may ask for six macros of one moment.
@lru_cache(maxsize=64)
def _local(second: int) -> _Second:
    parts = time.localtime(second)
    hours, minutes = divmod(abs(parts.tm_gmtoff) // 60, 60)
    sign = "-" if parts.tm_gmtoff < 0 else "+"
    offset = f"{sign}{hours:02d}:{minutes:02d}"
    return _Second(parts, offset, time.strftime("%Y-%m-%dT%H:%M:%S.%%06d", parts) + offset)


def isodate(received_ns: int) -> str:
    """
    Return a moment as ISO 8601 text in the time zone of the process, such as C{2026-11-20T11:05:07.123456+00:00}.

    @param received_ns: nanoseconds since the epoch. What is less than a microsecond is cut off, not rounded.
    """
    second, nanoseconds = divmod(received_ns, NANOSECONDS)
    return _local(second).iso % (nanoseconds // 1000)


def _bsd_date(parts: time.struct_time) -> str:
    """Return the date as BSD syslog writes it (RFC 3164 section 4.1.2): the day is padded with a blank."""
    return f"{MONTHS[parts.tm_mon - 1][:3]} {parts.tm_mday:2d} {time.strftime('%H:%M:%S', parts)}"


def _month_week(parts: time.struct_time) -> str:
    """Return the week of the month; week 1 begins on its first Monday, the days before are week 0."""
    return str((parts.tm_mday - parts.tm_wday + 6) // 7)


_BY_SECOND: Final[Mapping[str, Callable[[time.struct_time], str]]] = {
    "AMPM": lambda parts: "AM" if parts.tm_hour < 12 else "PM",
    "DATE": _bsd_date,
    "DAY": lambda parts: f"{parts.tm_mday:02d}",
    "FULLDATE": lambda parts: f"{parts.tm_year:04d} {_bsd_date(parts)}",
    "HOUR": lambda parts: f"{parts.tm_hour:02d}",
    "HOUR12": lambda parts: f"{(parts.tm_hour + 11) % 12 + 1:02d}",
    "ISOWEEK": lambda parts: time.strftime("%V", parts),
    "MIN": lambda parts: f"{parts.tm_min:02d}",
    "MONTH": lambda parts: f"{parts.tm_mon:02d}",
    "MONTH_ABBREV": lambda parts: MONTHS[parts.tm_mon - 1][:3],
    "MONTH_NAME": lambda parts: MONTHS[parts.tm_mon - 1],
    "MONTH_WEEK": _month_week,
    "SEC": lambda parts: f"{parts.tm_sec:02d}",
    "STAMP": _bsd_date,
    "WEEK": lambda parts: time.strftime("%W", parts),
    "WEEKDAY": lambda parts: WEEK_DAYS[parts.tm_wday][:3],
    # The collector's week begins on Sunday, which is day 1.
    "WEEK_DAY": lambda parts: str((parts.tm_wday + 1) % 7 + 1),
    "WEEK_DAY_ABBREV": lambda parts: WEEK_DAYS[parts.tm_wday][:3],
    "WEEK_DAY_NAME": lambda parts: WEEK_DAYS[parts.tm_wday],
    "YEAR": lambda parts: f"{parts.tm_year:04d}",
    "YEAR_DAY": lambda parts: f"{parts.tm_yday:03d}",
}


def _of_second(text: Callable[[time.struct_time], str]) -> Callable[[Message], Value]:
    return lambda message: text(_local(message.received // NANOSECONDS).parts)


def _time_zone(message: Message) -> Value:
    return _local(message.received // NANOSECONDS).offset


_BY_MOMENT: Final[Mapping[str, Callable[[Message], Value]]] = {
    **{name: _of_second(text) for name, text in _BY_SECOND.items()},
    "ISODATE": lambda message: isodate(message.received),
    "MSEC": lambda message: f"{message.received % NANOSECONDS // 1_000_000:03d}",
    "TZ": _time_zone,
    "TZOFFSET": _time_zone,
    "UNIXTIME": lambda message: message.received // NANOSECONDS,
    "USEC": lambda message: f"{message.received % NANOSECONDS // 1_000:06d}",
}


def _peer_ip(message: Message) -> Value:
    return message.values.get("PEERIP") or message.values.get("SOURCEIP")


def _peer_port(message: Message) -> Value:
    return message.values.get("PEERPORT") or message.values.get("SOURCEPORT")


def _ip_version(message: Message) -> Value:
    """Return the version of the Internet Protocol that the request came by."""
    peer = macro_value("PEERIP", message)
    return None if not isinstance(peer, str) else 6 if ":" in peer else 4


def _header(read: Callable[[str], Value]) -> Value:
    """
    Return what syslog writes before the text: C{PROGRAM[PID]: }.

    @param read: returns a soft macro.
    """
    legacy = read("LEGACY_MSGHDR")
    if legacy and value_text(legacy):
        return legacy
    program = read("PROGRAM")
    if not program or not value_text(program):
        return None
    pid = value_text(read("PID"))
    return f"{value_text(program)}[{pid}]: " if pid else f"{value_text(program)}: "


@cache
def _host_name() -> str:
    return socket.gethostname()


# R_, S_ and C_ are one moment in the source form: a webhook says nothing of when it was sent, and a message is written
# as it comes.
_DERIVED: Final[Mapping[str, Callable[[Message], Value]]] = {
    **{moment + name: value for moment in ("", *MOMENTS) for name, value in _BY_MOMENT.items()},
    "BSDTAG": lambda message: "5B",
    "FACILITY": lambda message: "user",
    "FACILITY_NUM": lambda message: 1,
    "HOST_FROM": lambda message: message.values.get("SOURCEIP"),
    "IP-PROTO": _ip_version,
    "IP_PROTO": _ip_version,
    "LEVEL": lambda message: "notice",
    "LEVEL_NUM": lambda message: 5,
    "LOGHOST": lambda message: _host_name(),
    "MSGHDR": lambda message: _header(message.values.get),
    "PEERIP": _peer_ip,
    "PEERPORT": _peer_port,
    "PRI": lambda message: 13,
    "PRIORITY": lambda message: "notice",
    "TAG": lambda message: "0d",
}


def _at_own_time(value: Callable[[Message], Value]) -> Callable[[Message], Value]:
    def at_own_time(message: Message) -> Value:
        own = own_time(message.values)
        return value(Message(message.values, own) if own else message)

    return at_own_time


def _severity(message: Message) -> int:
    severity = syslog_severity(message.values)
    return _NOTICE if severity is None else severity


def _level(message: Message) -> Value:
    return LEVELS[_severity(message)]


_DERIVED_OF_ROUTER: Final[Mapping[str, Callable[[Message], Value]]] = {
    **_DERIVED,
    **{moment + name: _at_own_time(value) for moment in ("", "S_") for name, value in _BY_MOMENT.items()},
    "BSDTAG": lambda message: f"{_severity(message)}B",
    "LEVEL": _level,
    "LEVEL_NUM": _severity,
    "MSGHDR": lambda message: _header(partial(_of_router, message=message)),
    "PRI": lambda message: 8 + _severity(message),
    "PRIORITY": _level,
    "TAG": lambda message: f"{8 + _severity(message):02x}",
}


def _of_router(name: str, message: Message) -> Value:
    if name not in HARD_MACROS and (group := path_group(name, message.values)) is not None:
        return group
    value = record_macro(name, message.values)
    if value is not MISSING:
        return encode_json(value).decode() if name == "MESSAGE" and isinstance(value, (dict, list)) else value
    derive = _DERIVED_OF_ROUTER.get(name)
    return field_value(name, message.values) if derive is None else derive(message)


def macro_value(name: str, message: Message) -> Value:
    """
    Return what a macro stands for in a template: a pair of the message, else what follows from the message.

    C{PEERIP} and C{PEERPORT} are the source's when no proxy is between. Hard macros that a webhook can't know, such as
    C{DESTIP}, C{SEQNUM} or C{TAGS}, are None, and so is a name that no pair has.

    In the router form it is a named group of the path, else what stands for the macro there, else a field by its path
    such as C{log.body.user}, else an attribute by its name. Dates without a prefix and those with C{S_} are of the
    message's own time when it has one.
    """
    name = canonical(name)
    text = message.text_of(name)
    if text is not None:
        return text
    values = message.values
    if name in values:
        return values[name]
    if is_router_form(values):
        return _of_router(name, message)
    derive = _DERIVED.get(name)
    return None if derive is None else derive(message)
