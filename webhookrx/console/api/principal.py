"""
Principals: who calls the API, and what each may do.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal, TypeAlias

import msgspec

RoleName: TypeAlias = Literal["viewer", "editor", "admin"]

#: Each may do what those before it may.
ROLES: Final[tuple[RoleName, ...]] = ("viewer", "editor", "admin")


class Permission(Enum):
    """What a route asks of its caller."""

    ANYONE = "anyone"
    SIGNED_IN = "signed in"
    VIEW = "viewer"
    EDIT = "editor"
    ADMINISTER = "admin"
    TAP = "tap"


class Principal(msgspec.Struct, frozen=True):
    """
    Who calls.

    @ivar name: that of the person, for whom a token speaks, too.
    @ivar tap: may see contents of messages. No role has that by itself.
    @ivar token_id: that of the API token; empty for a session.
    @ivar session_id: that of the session, which is no secret; empty for a token.
    @ivar csrf: what unsafe requests of the session carry; empty for a token, which no browser sends by itself.
    """

    name: str
    role: RoleName
    tap: bool = False
    token_id: str = ""
    session_id: str = ""
    csrf: str = ""

    def may(self, permission: Permission) -> bool:
        """Return whether it may call a route that asks for C{permission}."""
        if permission is Permission.TAP:
            return self.tap
        if permission in (Permission.ANYONE, Permission.SIGNED_IN):
            return True
        return ROLES.index(self.role) >= ROLES.index(permission.value)

    def __repr__(self) -> str:
        """Return it without its secret."""
        return f"<{self.role} {self.name!r}>"

    @property
    def via(self) -> str:
        """How it came, for the history: C{ui} or C{api}."""
        return "api" if self.token_id else "ui"
