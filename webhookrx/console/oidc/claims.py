"""
What the claims of an ID token say of a person: who it is, what name they have here, and which role.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from webhookrx.console.api.principal import ROLES, RoleName
from webhookrx.console.oidc.oidc_settings import RoleClaim
from webhookrx.console.people.accounts import is_name

_LONGEST_SUBJECT: Final = 255


class GivenRights(NamedTuple):
    """What a person may do, by the word of the provider."""

    role: RoleName
    tap: bool


class BadIdToken(Exception):
    """An ID token can't be used. The text is one sentence that holds nothing of it."""


def subject_of(claims: dict[str, Any], issuer: str) -> str:
    """
    Return what a person is known by for good: no two providers and people have the same.

    @raise BadIdToken: there is no C{sub}, or it is none (OpenID Connect Core 1.0, section 2).
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT or not subject.isascii():
        raise BadIdToken("It has no sub of 1 to 255 ASCII characters.")
    # An issuer has no fragment.
    return f"{issuer}#{subject}"


def name_of(claims: dict[str, Any]) -> str:
    """Return the name of a person who comes for the first time: one for people if there is any, else a made one."""
    wanted = [claims.get("preferred_username")]
    if claims.get("email_verified") is not False:
        wanted.append(claims.get("email"))
    for each in wanted:
        # Other letters than those of ASCII may become some of them in lower case.
        if isinstance(each, str) and each.isascii() and is_name(each.lower()):
            return each.lower()
    return f"sso-{hashlib.sha256(str(claims['sub']).encode()).hexdigest()[:16]}"


def rights_of(claims: dict[str, Any], roles: Iterable[RoleClaim]) -> GivenRights | None:
    """Return the highest role that claims give, with C{tap} if any gives that; None if none gives a role."""
    held = [each for each in roles if each.is_in(claims)]
    if not held:
        return None
    return GivenRights(max((each.role for each in held), key=ROLES.index), any(each.tap for each in held))
