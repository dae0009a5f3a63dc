"""
Tests for L{webhookrx.agent.sync_loop}.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.agent.link import ConsoleAnswer, LinkFailed
from webhookrx.agent.sync_loop import LEAST_DISTANCE, LONGEST_CONSENT_PAUSE, LONGEST_PAUSE, SyncLoop, TakeLater
from webhookrx.management.agent_body import write_body
from webhookrx.management.agent_protocol import ReloadCommand, SyncAnswer

ANSWER = SyncAnswer(commands=(ReloadCommand(id="r1"),))


class SyncLoopTests(SynchronousTestCase):
    """Tests for L{SyncLoop}."""

    def setUp(self) -> None:
        """Start to ask a console that waits."""
        self.clock = Clock()
        self.asked: list[bytes] = []
        self.taken: list[SyncAnswer] = []
        self.problem: Exception | None = None
        self.loop = SyncLoop(self.clock, self.ask, lambda: "ab", self.take, lambda: 1.0)
        self.loop.start()
        self.addCleanup(lambda: self.successResultOf(self.loop.stop()))

    def ask(self, path: bytes) -> Deferred[ConsoleAnswer]:
        """Note a question."""
        self.asked.append(path)
        self.answer: Deferred[ConsoleAnswer] = Deferred()
        return self.answer

    async def take(self, answer: SyncAnswer) -> None:
        """Note an answer."""
        self.taken.append(answer)
        if self.problem is not None:
            raise self.problem

    def test_question(self) -> None:
        """The console is told which bundle the router has, and how long it may wait: not at all while it is away."""
        at_once, later = b"/agent/v1/sync?have=ab&wait=0", b"/agent/v1/sync?have=ab&wait=55"
        self.answer.callback(ConsoleAnswer(204, b""))
        self.assertIsNone(self.loop.away_since)
        self.clock.advance(LEAST_DISTANCE)
        self.answer.errback(LinkFailed("It is away."))
        self.clock.advance(LONGEST_PAUSE)
        self.answer.callback(ConsoleAnswer(204, b""))
        self.clock.advance(LEAST_DISTANCE)
        self.assertEqual(self.asked, [at_once, later, at_once, later])

    def test_taken(self) -> None:
        """An answer is taken, and the next question follows a little later; so it does after 204."""
        self.answer.callback(ConsoleAnswer(200, write_body(ANSWER)))
        self.assertEqual([each.commands for each in self.taken], [ANSWER.commands])
        self.assertEqual(len(self.asked), 1)
        self.clock.advance(LEAST_DISTANCE)
        self.answer.callback(ConsoleAnswer(204, b""))
        self.clock.advance(LEAST_DISTANCE)
        self.assertEqual((len(self.asked), len(self.taken)), (3, 1))

    def test_away(self) -> None:
        """While the console is away, the pauses grow to a minute and no further, and nothing else happens."""
        self.answer.callback(ConsoleAnswer(204, b""))
        self.clock.advance(LEAST_DISTANCE)
        self.assertIsNone(self.loop.away_since)
        for pause in (1, 2, 4, 8, 16, 32, 60, 60):
            self.answer.errback(LinkFailed("It is away."))
            asked = len(self.asked)
            self.clock.advance(pause - 0.01)
            self.assertEqual(len(self.asked), asked)
            self.clock.advance(0.01)
            self.assertEqual(len(self.asked), asked + 1)
        self.assertEqual((self.loop.away_since, self.loop.problem), (LEAST_DISTANCE, "It is away."))
        self.assertEqual(self.taken, [])

    def test_a_day_away(self) -> None:
        """After a day without the console, one answer is enough."""
        for _ in range(24 * 60):
            self.answer.errback(LinkFailed("It is away."))
            self.clock.advance(LONGEST_PAUSE)
        self.answer.callback(ConsoleAnswer(200, write_body(ANSWER)))
        self.assertEqual((self.loop.away_since, self.loop.problem, len(self.taken)), (None, "", 1))

    def test_refused(self) -> None:
        """A refusal, and an answer that can't be read, count as away, and the loop goes on."""
        ended = b'{"code": "certificate_ended", "detail": "It has ended."}'
        for answer in (ConsoleAnswer(403, ended), ConsoleAnswer(200, b"x"), ConsoleAnswer(302, b"")):
            self.answer.callback(answer)
            self.assertNotEqual(self.loop.problem, "")
            self.assertEqual((self.loop.refusal, self.loop.away_since), ("", 0.0))
            self.clock.advance(LONGEST_PAUSE)
        self.assertEqual((len(self.asked), self.taken), (4, []))

    def test_refused_as_a_whole(self) -> None:
        """A router that waits for approval, or is disabled, is told so: the console is not away. It is logged once."""
        for code, words in (("pending", "waits for approval"), ("disabled", "has disabled this router")):
            lines: list[str] = []

            def take_line(event: dict[str, Any], lines: list[str] = lines) -> None:
                lines.append(formatEvent(event))

            globalLogPublisher.addObserver(take_line)
            self.addCleanup(globalLogPublisher.removeObserver, take_line)
            for _ in range(3):
                self.answer.callback(ConsoleAnswer(403, b'{"code": "%s", "detail": "Why."}' % code.encode()))
                self.assertEqual((self.loop.refusal, self.loop.away_since), (code, None))
                self.assertIn(words, self.loop.problem)
                self.clock.advance(LONGEST_PAUSE)
            globalLogPublisher.removeObserver(take_line)
            self.assertEqual([self.loop.problem], lines)
        self.answer.callback(ConsoleAnswer(200, write_body(ANSWER)))
        self.assertEqual((self.loop.refusal, self.loop.problem, len(self.taken)), ("", "", 1))

    def test_approval(self) -> None:
        """A router that waits for approval asks every ten seconds or sooner, and away or disabled, every minute."""
        for code, longest in (("pending", LONGEST_CONSENT_PAUSE), ("disabled", LONGEST_PAUSE)):
            for _ in range(10):
                self.answer.callback(ConsoleAnswer(403, b'{"code": "%s"}' % code.encode()))
                asked = len(self.asked)
                self.clock.advance(longest)
                self.assertEqual(len(self.asked), asked + 1)
            self.answer.callback(ConsoleAnswer(403, b'{"code": "%s"}' % code.encode()))
            asked = len(self.asked)
            self.clock.advance(longest - 0.1)
            self.assertEqual(len(self.asked), asked)
            self.clock.advance(0.1)

    def test_take_later(self) -> None:
        """What can't be taken now is asked for again, with pauses that grow to a minute; the console is not away."""
        self.problem = TakeLater("The disk is full.")
        for pause in (1, 2, 4, 8, 16, 32, 60, 60):
            self.answer.callback(ConsoleAnswer(200, write_body(ANSWER)))
            asked = len(self.asked)
            self.clock.advance(pause - 0.01)
            self.assertEqual(len(self.asked), asked)
            self.clock.advance(0.01)
            self.assertEqual((len(self.asked), self.loop.problem), (asked + 1, ""))
        self.problem = None
        self.answer.callback(ConsoleAnswer(200, write_body(ANSWER)))
        self.clock.advance(LEAST_DISTANCE)
        self.assertEqual((len(self.asked), len(self.taken)), (10, 9))

    def test_mistake(self) -> None:
        """An answer that could not be taken is logged, and asked for again after a pause."""
        self.problem = RuntimeError("a mistake of ours")
        self.answer.callback(ConsoleAnswer(200, write_body(ANSWER)))
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        self.clock.advance(LONGEST_PAUSE)
        self.assertEqual(len(self.asked), 2)

    def test_stop(self) -> None:
        """Stopped, it leaves a question or a pause, and asks no more."""
        self.successResultOf(self.loop.stop())
        self.successResultOf(self.loop.stop())
        self.clock.advance(LONGEST_PAUSE)
        self.assertEqual((len(self.asked), self.clock.getDelayedCalls()), (1, []))

    def test_stop_in_pause(self) -> None:
        """The same in a pause."""
        self.answer.errback(LinkFailed("It is away."))
        self.successResultOf(self.loop.stop())
        self.assertEqual(self.clock.getDelayedCalls(), [])
