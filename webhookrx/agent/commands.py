"""
The commands of a console: each is done once, and answered with the next report.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from twisted.logger import Logger

from webhookrx.agent.chores import in_background
from webhookrx.errors import WebhookrxError
from webhookrx.management.agent_protocol import AgentCommand, CommandAnswer

_MOST_IDS: Final = 1_000
"""Commands that are remembered, so that each is done once."""

_MOST_AT_ONCE: Final = 64
"""Commands under way; more are refused, so that no console makes a host do everything at once."""

_LONGEST_PROBLEM: Final = 2_000

_log = Logger()

Doing: TypeAlias = Callable[[Any], Awaitable[CommandAnswer]]
"""
Does a command, and answers it. A L{WebhookrxError} or C{OSError} becomes an answer with its text.
"""


class CommandDesk:
    """
    Has commands done. All that a console can have done here is in one table.

    @param doings: what does the commands of each type.
    @param answer: called with each answer.
    """

    def __init__(self, doings: Mapping[type[AgentCommand], Doing], answer: Callable[[CommandAnswer], object]) -> None:
        self._doings = doings
        self._answer = answer
        self._done: OrderedDict[str, None] = OrderedDict()
        self._under_way = 0

    def take(self, commands: Iterable[AgentCommand]) -> None:
        """Begin to do commands; one that has come before is done already."""
        for command in commands:
            if command.id in self._done:
                continue
            self._done[command.id] = None
            while len(self._done) > _MOST_IDS:
                self._done.popitem(last=False)
            in_background(self._do(command))

    async def _do(self, command: AgentCommand) -> None:
        doing = self._doings.get(type(command))
        if doing is None:
            answer = CommandAnswer(id=command.id, problem="This receiver does not do that.", code="unknown_command")
        elif self._under_way >= _MOST_AT_ONCE:
            answer = CommandAnswer(id=command.id, problem="This receiver does too much already.", code="busy")
        else:
            self._under_way += 1
            try:
                answer = await doing(command)
            except (WebhookrxError, OSError) as error:
                answer = CommandAnswer(id=command.id, problem=str(error)[:_LONGEST_PROBLEM], code="failed")
            except Exception:
                _log.failure("A command of the console has failed")
                answer = CommandAnswer(id=command.id, problem="It has failed; the log says why.", code="failed")
            finally:
                self._under_way -= 1
        self._answer(answer)
