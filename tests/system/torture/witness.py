"""
Looks at a stretch of system calls and finds each 200 that was not true when it was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tests.system.torture.strace import Call
from tests.system.torture.subject import TOKEN_IN_BYTES

#: What it must see.
NEEDED = "write,writev,pwrite64,pwritev,fsync,fdatasync,sendto,recvfrom"

_WRITES = ("write", "writev", "pwrite64", "pwritev")
_STATUS = re.compile(rb"HTTP/1\.1 (\d\d\d) ")


def false_acknowledgements(calls: Iterable[Call]) -> list[str]:
    """
    Return the tokens that got a 200 before they were safe.

    A token is safe once it was written to a file and a sync of that file is back that began later and went well. A
    sync that failed makes all that was written to that file before it forgotten, whatever a later sync says: the
    kernel takes it for clean. Tokens that were asked about before the stretch begins are not judged.
    """
    written: dict[str, dict[str, int]] = {}
    safe: dict[str, int] = {}
    asked: dict[str, list[str]] = {}
    told: list[tuple[int, str]] = []
    for call in calls:
        place = call.place
        if call.name in _WRITES and place.startswith("/"):
            tokens = TOKEN_IN_BYTES.findall(call.data())
            written.setdefault(place, {}).update(dict.fromkeys((token.decode() for token in tokens), call.end))
        elif call.name in ("fsync", "fdatasync"):
            waiting = written.get(place, {})
            covered = [token for token, end in waiting.items() if end < call.begin]
            for token in covered:
                del waiting[token]
                if call.result == 0:
                    safe.setdefault(token, call.end)
        elif call.name == "recvfrom":
            asked.setdefault(place, []).extend(token.decode() for token in TOKEN_IN_BYTES.findall(call.data()))
        elif call.name == "sendto":
            for status in _STATUS.findall(b"".join(call.texts()[:1])):
                if asked.get(place):
                    token = asked[place].pop(0)
                    if status == b"200":
                        told.append((call.begin, token))
    return [token for at, token in told if safe.get(token, at) >= at]
