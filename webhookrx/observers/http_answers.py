"""
What an answer to a request with messages means.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus


class Verdict(Enum):
    """What is to be done with the messages of a request."""

    STORED = "stored"
    """They are in other hands."""
    REFUSED = "refused"
    """At least one of them is refused, and no retry mends it."""
    LATER = "later"
    """The other end, or a person, may mend it: the same request is to be tried again."""


#: What the other end says of the messages themselves: malformed, too large, not what it can make sense of.
_REFUSALS = frozenset({400, 413, 422})

#: What the operator of one of the two ends has to mend.
_HINTS = {
    401: "look at token_file= and headers_file=",
    403: "look at token_file=, headers_file= and cert_file=",
    404: "look at the URL",
    405: "look at the URL and method=",
    406: "look at headers_file=",
    410: "look at the URL",
    411: "something between the two ends needs a length where one was sent",
    415: "look at format=, content_type= and gzip=",
}
_REDIRECTION_HINT = "redirections are not followed; write the URL that they lead to"

EXCERPT = 200
"""Characters of an answer's body that may stand in an error."""


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What the other end said.

    @ivar status: its status code.
    @ivar retry_after: its C{Retry-After}, as it came; None for one that has the messages.
    @ivar body: the beginning of its body.
    """

    status: int
    retry_after: str | None = None
    body: bytes = b""

    @property
    def verdict(self) -> Verdict:
        """Say what it means for the messages."""
        if 200 <= self.status < 300:
            return Verdict.STORED
        return Verdict.REFUSED if self.status in _REFUSALS else Verdict.LATER

    def describe(self, *, excerpt: bool = True) -> str:
        """
        Tell it in one line that holds no control characters.

        @param excerpt: whether the beginning of its body may be told. Some ends repeat what they were sent, in whatever
            disguise, so it may not when a secret was sent.
        """
        text = f"it answers {self.status} {_phrase(self.status)}".rstrip()
        hint = _REDIRECTION_HINT if 300 <= self.status < 400 else _HINTS.get(self.status)
        if hint is not None:
            text += f" ({hint})"
        words = _excerpt(self.body) if excerpt else ""
        return f"{text}: {words}" if words else text


def _phrase(status: int) -> str:
    """Return the phrase of the standard: the one on the wire is anybody's text."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _excerpt(body: bytes) -> str:
    text = " ".join(body.decode("utf-8", "backslashreplace").split())
    shown = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:EXCERPT])
    return f"{shown}…" if len(text) > EXCERPT else shown
