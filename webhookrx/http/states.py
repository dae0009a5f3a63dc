"""
The states of a connection: three small machines, each with a table of its legal transitions.

They are independent of each other, so that a connection is in one state of each. What is not in a table raises: in the
manner of h11, a mistake of ours ends the connection and never mixes up the answers of two requests.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class _Machine(IntEnum):
    """A state that knows which states may follow."""

    _followers: frozenset[int]

    def to(self, state: Self) -> Self:
        """
        Return the next state.

        @raise RuntimeError: there is no such transition.
        """
        if state not in self._followers:
            raise RuntimeError(f"no transition from {self!r} to {state!r}")
        return state


class RequestCycle(_Machine):
    """What comes next of the sender's requests, one at a time and in order."""

    IDLE = 0
    """No byte of the next request is here."""
    HEAD = 1
    """A part of a head is here."""
    BODY = 2
    """The head was admitted, its body is being read."""
    DISCARD = 3
    """The request was refused and answered; its body is read and thrown away, so that the next request can follow."""
    ANSWER = 4
    """The request is complete and waits for its answer; what the sender pipelines waits."""
    TURN = 5
    """The sender has had its share of this turn of the reactor; what else it has pipelined waits for the next."""
    DONE = 6
    """The last answer is out: no further request is read."""


class FlowControl(_Machine):
    """Whether the transport reads."""

    READING = 0
    HELD = 1
    """It doesn't: the chain pauses all senders, pipelined requests wait for an answer, or no more comes."""
    BLOCKED = 2
    """It doesn't: the sender does not take its answers, and they fill the transport's buffer."""


class Lifetime(_Machine):
    """Which end of the connection may still send."""

    NEW = 0
    HANDSHAKE = 1
    """TLS is not established yet."""
    OPEN = 2
    HALF_CLOSED = 3
    """The sender sends no more, and waits for its answers (RFC 9112 §9.6)."""
    LINGERING = 4
    """The last answer is out. What still comes is thrown away, so that the sender sees the answer and not a reset."""
    CLOSING = 5
    """The connection ends once the transport has written what it has."""
    CLOSED = 6


IDLE, HEAD, BODY, DISCARD, ANSWER, TURN, DONE = RequestCycle
READING, HELD, BLOCKED = FlowControl
NEW, HANDSHAKE, OPEN, HALF_CLOSED, LINGERING, CLOSING, CLOSED = Lifetime

#: The legal transitions: from any of these states, to which state, and when.
TRANSITIONS: dict[type[_Machine], tuple[tuple[tuple[_Machine, ...], _Machine, str], ...]] = {
    RequestCycle: (
        ((IDLE,), HEAD, "a part of a head is here"),
        ((IDLE, HEAD), BODY, "head admitted, body to come"),
        ((IDLE, HEAD), DISCARD, "refused, body to come"),
        ((IDLE, HEAD, BODY), ANSWER, "request complete"),
        ((IDLE, HEAD), IDLE, "refused, no body"),
        ((DISCARD,), IDLE, "body complete"),
        ((ANSWER,), IDLE, "answered, the connection stays"),
        ((IDLE,), TURN, "its share of this turn is used up"),
        ((TURN,), IDLE, "the next turn"),
        ((ANSWER,), DONE, "answered as the last request, or cut off"),
        ((IDLE,), DONE, "closed while idle"),
        ((HEAD, BODY), DONE, "refused, timed out or cut off"),
        ((DISCARD, TURN), DONE, "timed out or cut off"),
    ),
    FlowControl: (
        ((READING,), HELD, "pause"),
        ((HELD,), READING, "resume"),
        ((READING, HELD), BLOCKED, "the transport's buffer is full"),
        ((BLOCKED,), HELD, "the sender has taken its answers"),
    ),
    Lifetime: (
        ((NEW,), HANDSHAKE, "connected, by TLS"),
        ((NEW,), OPEN, "connected"),
        ((HANDSHAKE,), OPEN, "handshake complete"),
        ((HANDSHAKE, OPEN), HALF_CLOSED, "the sender ends its side"),
        ((HANDSHAKE, OPEN), LINGERING, "last answer, the sender still talks"),
        ((HANDSHAKE, OPEN, HALF_CLOSED, LINGERING), CLOSING, "last answer, time is up, or aborted"),
        ((HANDSHAKE, OPEN, HALF_CLOSED, LINGERING, CLOSING), CLOSED, "the connection is lost"),
    ),
}

for _machine, _rows in TRANSITIONS.items():
    for _state in _machine:
        _state._followers = frozenset(after for before, after, _ in _rows if _state in before)
