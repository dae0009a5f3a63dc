"""
Frames of Heroku's logplex: lines of syslog (RFC 5424), each behind the number of its bytes (RFC 6587 section 3.4.1).
"""

from __future__ import annotations

import re
from typing import Final

from webhookrx.intake.json_body import body_text
from webhookrx.message.message import Value

MEDIA_TYPE: Final = "application/logplex-1"

_COUNT: Final = re.compile(rb"\s{0,16}([1-9][0-9]{0,8}) ")
_TEXT: Final = re.compile(rb"\S")
_FRAME: Final = re.compile(
    r"<(?P<priority>[0-9]{1,3})>[0-9]{1,3} (?P<timestamp>\S+) (?P<hostname>\S+) (?P<app_name>\S+) (?P<procid>\S+) "
    r"(?P<msgid>\S+)(?: (?P<message>.*))?",
    re.DOTALL,
)
_HIGHEST: Final = 191
"""RFC 5424 section 6.2.1."""

_LEVELS: Final = ("emergency", "alert", "critical", "error", "warn", "notice", "info", "debug")
"""RFC 5424, table 2, in the words of L{SEVERITIES}."""


def split_frames(body: bytes, most: int) -> tuple[list[Value], bytes]:
    """
    Take frames apart.

    @param most: how many.
    @return: a value for each frame, see L{read_frame}; and what is left once something is no frame, or there are too
        many.
    """
    frames: list[Value] = []
    start = 0
    while len(frames) < most:
        count = _COUNT.match(body, start)
        if count is None or count.end() + int(count[1]) > len(body):
            break
        start = count.end() + int(count[1])
        frames.append(read_frame(body[count.end() : start]))
    return frames, body[start:] if _TEXT.search(body, start) else b""


def read_frame(frame: bytes) -> dict[str, Value]:
    """
    Return the members of a frame, see C{entry}. There is no structured data in it: logplex leaves that out, against
    RFC 5424. What is no line of syslog is a C{message} as a whole.
    """
    text, _ = body_text(frame.removesuffix(b"\n"))
    found = _FRAME.fullmatch(text)
    priority = _HIGHEST + 1 if found is None else int(found["priority"])
    if found is None or priority > _HIGHEST:
        return {"message": text}
    members: dict[str, Value] = {"priority": priority, "facility": priority >> 3, "severity": _LEVELS[priority & 7]}
    for name, value in found.groupdict().items():
        if name != "priority" and value is not None and value != "-":
            members[name] = value
    return members
