"""
Tests for L{webhookrx.agent.commands}, and for what a console can have done.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from tests.agent.played import AgentCase
from webhookrx.agent.commands import CommandDesk
from webhookrx.agent.link import ConsoleAnswer
from webhookrx.agent.sync_loop import LEAST_DISTANCE
from webhookrx.config.files import write_state
from webhookrx.errors import WebhookrxError
from webhookrx.management.agent_protocol import (
    CheckFilesCommand,
    CommandAnswer,
    ReloadCommand,
    RenewCommand,
)
from webhookrx.management.tap_protocol import TapCommand, UntapCommand


class CommandDeskTests(SynchronousTestCase):
    """Tests for L{CommandDesk}."""

    def setUp(self) -> None:
        self.done: list[str] = []
        self.result: Any = None
        self.answers: list[CommandAnswer] = []
        self.desk = CommandDesk({ReloadCommand: self.do}, self.answers.append)

    async def do(self, command: ReloadCommand) -> CommandAnswer:
        """Do a command as a test says."""
        self.done.append(command.id)
        if isinstance(self.result, Exception):
            raise self.result
        if isinstance(self.result, Deferred):
            await self.result
        return CommandAnswer(id=command.id)

    def test_once(self) -> None:
        """A command is done once, however often it comes, and while it is under way, too."""
        self.result = Deferred()
        for _ in range(3):
            self.desk.take([ReloadCommand(id="a"), ReloadCommand(id="b"), ReloadCommand(id="a")])
        self.assertEqual((["a", "b"], []), (self.done, self.answers))
        self.result.callback(None)
        self.desk.take([ReloadCommand(id="b")])
        self.assertEqual((["a", "b"], ["a", "b"]), (self.done, sorted(each.id for each in self.answers)))

    def test_bound(self) -> None:
        """A thousand are remembered, the oldest forgotten first."""
        self.desk.take(ReloadCommand(id=str(number)) for number in range(1001))
        self.desk.take([ReloadCommand(id="1"), ReloadCommand(id="0")])
        self.assertEqual(("0", 1002), (self.done[-1], len(self.done)))

    def test_unknown(self) -> None:
        """What is not in the table is answered, and not done."""
        self.desk.take([UntapCommand(id="u", tap="t")])
        self.assertEqual(([], [("u", "unknown_command")]), (self.done, [(each.id, each.code) for each in self.answers]))

    def test_busy(self) -> None:
        """Sixty-four are under way at most; others are refused, and once there is room, new ones are done."""
        self.result = Deferred()
        self.desk.take(ReloadCommand(id=str(number)) for number in range(70))
        self.assertEqual((64, ["busy"] * 6), (len(self.done), [each.code for each in self.answers]))
        self.result.callback(None)
        self.desk.take([ReloadCommand(id="new")])
        self.assertEqual(("new", ""), (self.answers[-1].id, self.answers[-1].code))

    def test_failed(self) -> None:
        """A failure is an answer with its text, of a bounded length; one that is our mistake is logged, too."""
        for error in (WebhookrxError("No."), OSError(28, "No space left"), WebhookrxError("x" * 9_999)):
            self.result = error
            self.desk.take([ReloadCommand(id=str(len(self.done)))])
            self.assertEqual(("failed", str(error)[:2000]), (self.answers[-1].code, self.answers[-1].problem))
        self.result = RuntimeError("a mistake of ours")
        self.desk.take([ReloadCommand(id="m")])
        self.assertEqual(1, len(self.flushLoggedErrors(RuntimeError)))
        self.assertEqual(("m", "failed"), (self.answers[-1].id, self.answers[-1].code))
        self.assertNotIn("ours", self.answers[-1].problem)


class DoingsTests(AgentCase):
    """What an agent does for its console."""

    def test_all(self) -> None:
        """What a console can have done is this and nothing else."""
        commands = {CheckFilesCommand, ReloadCommand, RenewCommand, TapCommand, UntapCommand}
        self.assertEqual(commands, set(self.agent.doings()))

    def test_files(self) -> None:
        """It is told of files below the key directories, and of no others."""
        keys = self.mktemp()
        write_state(keys, "k.pem", b"k")
        self.settings = dataclasses.replace(self.settings, key_directories=(keys,))
        self.agent = self.make()
        self.start()
        real = os.path.realpath(keys)
        paths = (f"{real}/k.pem", f"{real}/none.pem", "/etc/passwd")
        self.console.says(CheckFilesCommand(id="c1", paths=paths))
        (answer,) = self.console.answers
        self.assertEqual("c1", answer.id)
        self.assertEqual(["present", "missing", "not_allowed"], [answer.files[each] for each in paths])

    def test_files_in_turn(self) -> None:
        """A console that asks about files again and again takes one thread, and no more."""
        self.start()
        self.reactor.holds = True
        self.console.says(*(CheckFilesCommand(id=f"c{number}", paths=("/etc/passwd",)) for number in range(3)))
        for done, left in ((1, 1), (2, 1), (3, 0)):
            self.assertEqual((left, done), (self.reactor.work(), len(self.console.answers)))

    def test_reload(self) -> None:
        """It reloads, once for a command that comes twice."""
        self.start()
        for _ in range(2):
            self.console.says(ReloadCommand(id="r1"))
            self.reactor.advance(LEAST_DISTANCE)
        self.assertEqual((1, ["r1"]), (self.host.reloads, [each.id for each in self.console.answers]))

    def test_renew(self) -> None:
        """It renews its certificate; that it could not is answered."""
        self.start()
        self.console.says(RenewCommand(id="n1"))
        self.reactor.advance(LEAST_DISTANCE)
        self.console.renewals = [ConsoleAnswer(403, b'{"code": "disabled", "detail": "No."}')]
        self.console.says(RenewCommand(id="n2"))
        first, second = self.console.answers
        self.assertEqual((("n1", ""), ("n2", "failed")), ((first.id, first.code), (second.id, second.code)))
        self.assertIn("No.", second.problem)
        self.assertEqual(2, len(set(self.console.links)))

    def test_tap(self) -> None:
        """A tap starts, shows, and ends as the console says; when the agent stops, it says so."""
        self.start()
        self.console.says(TapCommand(id="t1", point="service"))
        self.reactor.advance(1)
        self.host.taps[0].show({"row": "service"})
        self.reactor.advance(1)
        self.console.says(UntapCommand(id="u1", tap="t1"), TapCommand(id="t2", point="service"))
        self.assertEqual(1, len(self.host.taps))
        stopped = Deferred.fromCoroutine(self.agent.stop())
        self.reactor.advance(0)
        self.successResultOf(stopped)
        self.assertEqual([("t1", ""), ("u1", ""), ("t2", "")], [(each.id, each.code) for each in self.console.answers])
        self.assertEqual(["t1", "t1", "t2"], [id for id, _ in self.console.shown])
        self.assertEqual([0, 1, 0], [len(each.events) for _, each in self.console.shown])
        self.assertEqual(["", "", "The receiver stops."], [each.ended for _, each in self.console.shown])

    def test_no_tap(self) -> None:
        """A host that allows no taps of its console says so."""
        self.settings = dataclasses.replace(self.settings, tap=False)
        self.agent = self.make()
        self.start()
        self.console.says(TapCommand(id="t1", point="service"))
        self.assertEqual([("t1", "tap_not_allowed")], [(each.id, each.code) for each in self.console.answers])
        self.assertEqual([], self.host.taps)
