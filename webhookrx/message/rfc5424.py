"""
A message as syslog has it on the wire: RFC 5424, without the framing of a transport.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from webhookrx.message.escapes import escape
from webhookrx.message.macros import LEVELS, NANOSECONDS, macro_value, value_text
from webhookrx.message.message import Message
from webhookrx.message.record import is_router_form, own_time, pairs, syslog_severity
from webhookrx.message.template import Template
from webhookrx.yield_point import encode_utf_8, map_pieces, yield_point

FACILITIES: Final = tuple(
    """
    kern user mail daemon auth syslog lpr news uucp cron authpriv ftp ntp security console solaris-cron
    local0 local1 local2 local3 local4 local5 local6 local7
    """.split()  # noqa: SIM905
)
"""Names by number, RFC 5424 section 6.2.1; the RFC describes them only, so the names are those in use."""

SEVERITIES: Final = LEVELS
"""Names by number, from the worst."""

# What a message has that did not come as syslog; the macros FACILITY and LEVEL say the same.
USER: Final = FACILITIES.index("user")
NOTICE: Final = SEVERITIES.index("notice")

NIL: Final = b"-"
"""A field that has no value (NILVALUE)."""

# The lengths of section 6; a receiver may refuse what is longer.
LONGEST_HOSTNAME: Final = 255
LONGEST_APP_NAME: Final = 48
LONGEST_PROCID: Final = 128
LONGEST_MSGID: Final = 32
LONGEST_SD_NAME: Final = 32

_BOM: Final = "\ufeff".encode()
_HOSTNAME: Final = re.compile(rf"[!-~]{{1,{LONGEST_HOSTNAME}}}")
_NOT_PRINTUSASCII: Final = re.compile(r"[^!-~]")
_NOT_SD_NAME: Final = re.compile(r'[^!-~]|[="\]]')
_SD_ID: Final = re.compile(r'(?:(?![="\]@])[!-~])+@[0-9]+(?:\.[0-9]+)*')

_APP_NAME: Final = Template.parse("${PROGRAM:-webhookrx}")
_TEXT: Final = Template.parse("${MESSAGE}")


def check_sd_id(text: str) -> None:
    """
    Look whether a text can name structured data of one's own: C{name@number}, RFC 5424 section 6.3.2. Names without
    a number belong to IANA, and their parameters are fixed.

    @raise ValueError: one sentence that quotes the text and says what is allowed.
    """
    if not _SD_ID.fullmatch(text) or len(text) > LONGEST_SD_NAME:
        raise ValueError(
            f"{text!r} is not a name and a private enterprise number, such as meta@32473; "
            f'at most {LONGEST_SD_NAME} printable ASCII characters without blanks and any of = ] " @'
        )


@dataclass(frozen=True, slots=True)
class SyslogFormat:
    """
    How messages become RFC 5424.

    @ivar facility: 0 to 23.
    @ivar severity: 0 to 7; of messages that do not say theirs.
    @ivar app_name: makes APP-NAME.
    @ivar text: makes MSG.
    @ivar sd_id: the SD-ID of the element that holds all pairs but C{MESSAGE}, or the pairs of
        L{webhookrx.message.record.pairs}; None for no structured data.
    @ivar bom: text that is not ASCII begins with a byte order mark, as section 6.4 asks for.
    @ivar one_line: control characters, line and paragraph separators, and bidi controls that a sender wrote come
        out as escapes, in the text and in structured data.
    """

    facility: int = USER
    severity: int = NOTICE
    app_name: Template = _APP_NAME
    text: Template = _TEXT
    sd_id: str | None = None
    bom: bool = True
    one_line: bool = False

    def encode(self, message: Message) -> bytes:
        """
        Return a message as SYSLOG-MSG. Its header is always as the grammar has it, whatever a sender chose.

        HOSTNAME is C{HOST} if it can be, else C{SOURCEIP}: a name with characters changed would be another machine's.
        In APP-NAME, PROCID and MSGID what is not printable ASCII becomes C{_}, and what is too long is cut. Severity
        and TIMESTAMP are the message's own when it is of the router form and knows them.
        """
        severity, moment, values = None, 0, message.values
        if is_router_form(values):
            severity, moment = syslog_severity(values), own_time(values)
        header = b" ".join(
            (
                b"<%d>1" % (self.facility * 8 + (self.severity if severity is None else severity)),
                timestamp(moment or message.received).encode("ascii"),
                _hostname(message),
                _field(self.app_name.render(message), LONGEST_APP_NAME),
                _field(value_text(macro_value("PID", message)), LONGEST_PROCID),
                _field(value_text(macro_value("MSGID", message)), LONGEST_MSGID),
                self._structured_data(message),
            )
        )
        yield_point()
        text = self._text(message)
        yield_point()
        return header + b" " + text if text else header

    def _text(self, message: Message) -> bytes:
        text = self.text.render_line(message)[:-1] if self.one_line else encode_utf_8(self.text.render(message))
        # ASCII needs no mark: it is MSG-ANY by the grammar, and most receivers would show the mark as rubbish.
        return text if not self.bom or text.isascii() else _BOM + text

    def _structured_data(self, message: Message) -> bytes:
        if self.sd_id is None:
            return NIL
        parts = [f"[{self.sd_id}"]
        values = message.values
        named = pairs(values, LONGEST_SD_NAME) if is_router_form(values) else values.items()
        for name, value in named:
            yield_point()
            if name != "MESSAGE":
                parts += (" ", _param_name(name), '="', self._param_value(value_text(value)), '"')
        return encode_utf_8(*parts, "]")

    def _param_value(self, text: str) -> str:
        """Escape what would end a PARAM-VALUE, section 6.3.3."""
        return map_pieces(_escape_param, escape(text) if self.one_line else text)


def timestamp(received_ns: int) -> str:
    """
    Return a moment as TIMESTAMP, in UTC: section 6.2.3 allows six digits of a second, and what is less is cut off.

    @param received_ns: nanoseconds since the epoch.
    """
    return f"{_utc(received_ns // NANOSECONDS)}.{received_ns // 1000 % 1_000_000:06d}Z"


# Messages come many to a second.
@lru_cache(maxsize=64)
def _utc(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def _hostname(message: Message) -> bytes:
    for name in ("HOST", "SOURCEIP"):
        text = value_text(macro_value(name, message))
        if _HOSTNAME.fullmatch(text):
            return text.encode("ascii")
    return NIL


def _field(text: str, longest: int) -> bytes:
    return _NOT_PRINTUSASCII.sub("_", text[:longest]).encode("ascii") or NIL


def _escape_param(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("]", r"\]")


def _param_name(name: str) -> str:
    """Make a PARAM-NAME of any name. The end of a dotted name tells more than its beginning, so that is what stays."""
    return _NOT_SD_NAME.sub("_", name[-LONGEST_SD_NAME:]) or "_"
