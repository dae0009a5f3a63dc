"""
Enrolment tokens: C{wrx1.ID.SECRET.AUTHORITY}, by which a new router shows that it may join, and knows its console.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

MOST_CHARACTERS: Final = 256
"""Of a token, and so of its file but for the end of its line."""

REFUSAL: Final = "token_refused"
"""The code of the problem by which a console refuses a token."""

_TOKEN: Final = re.compile(r"wrx1\.([0-9a-zA-Z_-]{1,64})\.([0-9a-zA-Z_-]{22,86})\.([0-9a-f]{64})", re.ASCII)


class EnrolmentToken(NamedTuple):
    """
    The parts of an enrolment token.

    @ivar id: the enrolment at the console, which logs may name.
    @ivar secret: what only the console and the bearer know; at least 128 random bits as base64url.
    @ivar authority: the SHA-256, in hexadecimal digits, of the console's CA certificate in DER. That certificate is all
        that the bearer trusts for the console.
    """

    id: str
    secret: str
    authority: str

    @property
    def text(self) -> str:
        """The token as it is handed over."""
        return f"wrx1.{self.id}.{self.secret}.{self.authority}"

    @property
    def secret_digest(self) -> str:
        """The SHA-256 of the secret, in hexadecimal digits: what a console keeps of it."""
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def __repr__(self) -> str:
        return f"<EnrolmentToken {self.id}>"


def read_token(text: str) -> EnrolmentToken:
    """
    Return the token in a text, such as the content of its file.

    @raise ValueError: it is none. The message quotes nothing of it.
    """
    found = _TOKEN.fullmatch(text.strip(" \r\n")) if len(text) <= MOST_CHARACTERS + 2 else None
    if found is None:
        raise ValueError("This is not an enrolment token; one looks like wrx1.ID.SECRET.AUTHORITY.")
    return EnrolmentToken(*found.groups())
