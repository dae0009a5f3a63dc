"""
What the port for routers refuses, as problems (RFC 9457).
"""

from __future__ import annotations

from typing import Final

import msgspec

from webhookrx.management.agent_protocol import DISABLED

PROBLEM_TYPE: Final = b"application/problem+json"


class AgentRefused(Exception):
    """A request of a router is refused, with the code of a problem."""

    def __init__(self, status: int, code: str, detail: str = "", retry_after: int = 0) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after = retry_after

    @property
    def body(self) -> bytes:
        """The problem (RFC 9457)."""
        members = {
            "title": "The console refuses this.",
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }
        return msgspec.json.encode(members)

    @property
    def extra(self) -> bytes:
        """Further fields of the head, each with its end of line."""
        return b"Retry-After: %d\r\n" % self.retry_after if self.retry_after else b""


# An error of its own each time: one that is raised again keeps all frames that it has ever passed, and what they hold.


def no_router() -> AgentRefused:
    """Return what a caller gets whose certificate is none of a router."""
    return AgentRefused(403, DISABLED, "This certificate is not one of a router of this console.")


def not_found() -> AgentRefused:
    """Return what a router gets where it has nothing to ask."""
    return AgentRefused(404, "not_found")


def too_large() -> AgentRefused:
    """Return what a router gets for a body above its bound."""
    return AgentRefused(413, "body_too_large")


def too_fast() -> AgentRefused:
    """Return what a router gets that is to wait."""
    return AgentRefused(429, "too_many", "These are too many requests.", 5)
