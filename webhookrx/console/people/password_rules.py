"""
What a password must be like.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.problems import INVALID, ApiProblem

LEAST_LENGTH: Final = 12
MOST_LENGTH: Final = 256


def check_password(password: str) -> None:
    """
    Check the length of a new password.

    @raise ApiProblem: it is too short or too long.
    """
    if not LEAST_LENGTH <= len(password) <= MOST_LENGTH:
        raise ApiProblem(INVALID, f"A password has {LEAST_LENGTH} to {MOST_LENGTH} characters.")
