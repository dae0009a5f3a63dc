"""
Where a console is: the URL of its port for routers, as the option C{console} and the command C{enrol} take it.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit

FORM: Final = "A console is https://HOST:PORT, its port for routers, without a path."


class ConsolePlace(NamedTuple):
    """Host and port of a console."""

    host: str
    port: int


def console_place(url: str) -> ConsolePlace:
    """
    Return where a console is.

    @param url: C{https://HOST:PORT}, of its port for routers.
    @raise ValueError: it is something else; the message says what is allowed, and does not quote it.
    """
    try:
        parts = urlsplit(url)
        port = 443 if parts.port is None else parts.port
    except ValueError:
        raise ValueError(FORM) from None
    is_good = parts.scheme == "https" and parts.hostname and parts.path in ("", "/") and port
    if not is_good or not url.isascii() or "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(FORM)
    return ConsolePlace(parts.hostname or "", port)
