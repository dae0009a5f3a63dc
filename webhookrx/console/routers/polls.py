"""
Long polls: routers that wait for something new, and the commands that wait for them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from twisted.internet.defer import Deferred

from webhookrx.errors import WebhookrxError
from webhookrx.management.agent_protocol import MOST_COMMANDS, AgentCommand, CommandAnswer

MOST_POLLS: Final = 2
"""Long polls of one router. A new one ends the oldest: its connection may be gone without a word."""

RESEND_AFTER: Final = 10.0
"""Seconds after which a command without an answer is sent again; a router does it once."""

KEPT_FOR: Final = 60.0
"""Seconds for which a command waits for a router."""


class Unanswered(WebhookrxError):
    """A router has not answered a command: it is away, or busy, or the command took too long."""


@dataclass(eq=False)
class _SentCommand:
    """A command that a router has not answered."""

    command: AgentCommand
    answered: Deferred[CommandAnswer]
    until: float
    sent_at: float = float("-inf")


class Polls:
    """
    The polls and commands of all routers, by guid.

    @param reactor: tells time by its own clock.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._polls: dict[str, list[Deferred[bool]]] = {}
        self._commands: dict[str, dict[str, _SentCommand]] = {}

    @property
    def waiting(self) -> int:
        """Number of polls."""
        return sum(map(len, self._polls.values()))

    def is_online(self, guid: str) -> bool:
        """Return whether a router waits now."""
        return guid in self._polls

    # -- polls ---------------------------------------------------------------------------------------------------

    def wait(self, guid: str, seconds: float) -> Deferred[bool]:
        """
        Return what fires when there may be something new for a router, with True; and with False after so many seconds,
        or when another poll takes its place.
        """
        polls = self._polls.setdefault(guid, [])
        poll: Deferred[bool] = Deferred()
        polls.append(poll)
        late = self._reactor.callLater(seconds, self._fire, poll, False)

        def ended(result: Any) -> Any:
            if late.active():
                late.cancel()
            polls.remove(poll)
            if not polls and self._polls.get(guid) is polls:
                del self._polls[guid]
            return result

        poll.addBoth(ended)
        if len(polls) > MOST_POLLS:
            self._fire(polls[0], False)
        return poll

    def wake(self, guid: str) -> None:
        """Have all polls of a router look again."""
        for poll in tuple(self._polls.get(guid, ())):
            self._fire(poll, True)

    @staticmethod
    def _fire(poll: Deferred[bool], look: bool) -> None:
        if not poll.called:
            poll.callback(look)

    # -- commands ------------------------------------------------------------------------------------------------

    def command(
        self, guid: str, make: Callable[[str], AgentCommand], seconds: float, id: str = ""
    ) -> Deferred[CommandAnswer]:
        """
        Have a router do something.

        @param make: makes the command of its id.
        @param seconds: for which to wait.
        @param id: another than a random one.
        @return: its answer; fails with L{Unanswered}.
        """
        waiting = self._commands.setdefault(guid, {})
        answered: Deferred[CommandAnswer] = Deferred()
        if len(waiting) >= MOST_COMMANDS:
            answered.errback(Unanswered("Too many commands wait for this router."))
            return answered
        id = id or secrets.token_hex(16)
        waiting[id] = _SentCommand(make(id), answered, self._reactor.seconds() + min(seconds, KEPT_FOR))
        late = self._reactor.callLater(min(seconds, KEPT_FOR), self._give_up, guid, id)

        def ended(result: Any) -> Any:
            if late.active():
                late.cancel()
            self._forget(guid, id)
            return result

        answered.addBoth(ended)
        self.wake(guid)
        return answered

    def due(self, guid: str) -> tuple[AgentCommand, ...]:
        """Return the commands to send to a router now, and note that they are sent."""
        now = self._reactor.seconds()
        due = [each for each in self._commands.get(guid, {}).values() if each.sent_at + RESEND_AFTER <= now]
        for each in due:
            each.sent_at = now
        return tuple(each.command for each in due)

    def answered(self, guid: str, answer: CommandAnswer) -> None:
        """Take the answer of a router, to a command that is its own; another is dropped."""
        waiting = self._commands.get(guid, {}).get(answer.id)
        if waiting is not None and not waiting.answered.called:
            waiting.answered.callback(answer)

    def drop(self, guid: str) -> None:
        """End all that waits for a router."""
        for each in tuple(self._commands.get(guid, {}).values()):
            if not each.answered.called:
                each.answered.errback(Unanswered("The router is not one of this console's any more."))
        self.wake(guid)

    def _give_up(self, guid: str, id: str) -> None:
        waiting = self._commands.get(guid, {}).get(id)
        if waiting is not None and not waiting.answered.called:
            waiting.answered.errback(Unanswered("The router has not answered in time."))

    def _forget(self, guid: str, id: str) -> None:
        waiting = self._commands.get(guid)
        if waiting is not None:
            waiting.pop(id, None)
            if not waiting:
                del self._commands[guid]
