"""
Tests for L{webhookrx.agent.agent}: how it comes to its console, goes on without it, and ends.
"""

from __future__ import annotations

import dataclasses
import errno
import os
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import formatEvent, globalLogPublisher

from tests.agent.played import LIFE, AgentCase, bundle_of, name_of
from webhookrx.agent import agent as agent_module
from webhookrx.agent.enrolment import ConsoleAway, Enrolled, NotEnrolled
from webhookrx.agent.sync_loop import LEAST_DISTANCE, LONGEST_PAUSE
from webhookrx.config import console_files
from webhookrx.config.console_files import IDENTITY, accept_bundle, mark_applied, write_identity
from webhookrx.config.files import write_state
from webhookrx.management.agent_protocol import REPORT_INTERVAL, ReloadCommand
from webhookrx.management.enrolment_token import EnrolmentToken

TOKEN = EnrolmentToken("0123456789abcdef", "s3cret-of-32-characters_abcdefgh", "0" * 64)
DAY = 86400.0


class EnrolmentTests(AgentCase):
    """The first start, with the file of a token."""

    def setUp(self) -> None:
        super().setUp()
        self.token_file = os.path.abspath(self.mktemp())
        self.settings = dataclasses.replace(self.settings, token_file=self.token_file)
        self.agent = self.make()
        self.tokens: list[EnrolmentToken] = []
        self.answers: list[Exception | Deferred[Enrolled]] = []
        self.patch(agent_module, "join_console", self.join)
        self.lines: list[str] = []
        globalLogPublisher.addObserver(self.take_line)
        self.addCleanup(globalLogPublisher.removeObserver, self.take_line)

    def take_line(self, event: dict[str, Any]) -> None:
        """Take a line of the log."""
        self.lines.append(formatEvent(event))

    async def join(
        self, reactor: object, on_disk: Any, directory: str, url: str, token: Any, facts: Any, name: str
    ) -> Enrolled:
        """Enrol the router, or fail as a test says."""
        self.tokens.append(token)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return await answer
        identity = self.identity()
        await on_disk(write_identity, directory, identity)
        return Enrolled(identity, False)

    def write_token(self, text: str = TOKEN.text) -> None:
        """Write the file of the token."""
        with open(self.token_file, "w") as file:
            file.write(f"{text}\n")

    def test_at_once(self) -> None:
        """With a token and a console, the router is enrolled and asks for its rules."""
        self.write_token()
        self.agent.start()
        self.assertEqual(([TOKEN], 1), (self.tokens, len(self.console.syncs)))
        self.assertEqual(("NONE", ""), (self.agent.view.status, self.console.have))

    def test_again_and_again(self) -> None:
        """Whatever is in the way, it is tried again, at least every minute, with the token as it is by then."""
        self.answers = [
            ConsoleAway("The console can't be reached: refused."),
            NotEnrolled("The console has refused: expired."),
            OSError(errno.ENOSPC, "No space left on device"),
        ]
        problems = []
        self.agent.start()
        problems.append(self.agent.view.problem)
        self.write_token("nonsense")
        self.reactor.advance(1)
        problems.append(self.agent.view.problem)
        self.write_token()
        for pause in (2, 4, 8):
            self.reactor.advance(pause)
            problems.append(self.agent.view.problem)
        for problem, words in zip(
            problems, ("does not exist", "token", "refused.", "expired.", "No space left"), strict=True
        ):
            self.assertIn(words, problem)
        self.assertEqual([], self.console.syncs)
        self.reactor.advance(16)
        self.assertEqual((4, 1, ""), (len(self.tokens), len(self.console.syncs), self.agent.view.problem[:0]))
        self.assertNotIn(TOKEN.secret, "".join((*problems, *self.lines)))

    def test_logged_once(self) -> None:
        """A day without the console is one line in the log, and a question each minute."""
        self.write_token()
        self.answers = [ConsoleAway("It is away.") for _ in range(3000)]
        self.agent.start()
        for _ in range(1440):
            self.reactor.advance(60)
        self.assertEqual(1, sum("could not be enrolled" in line for line in self.lines))
        self.assertTrue(1430 < len(self.tokens) < 1460, len(self.tokens))

    def test_stop(self) -> None:
        """Stopped in a pause, or while the console is asked, it asks no more."""
        self.write_token()
        for answer in (ConsoleAway("It is away."), Deferred()):
            self.answers = [answer]
            self.agent = self.make()
            self.agent.start()
            asked = len(self.tokens)
            self.stop()
            self.assertEqual([], self.reactor.getDelayedCalls())
            self.reactor.advance(LONGEST_PAUSE)
            self.assertEqual((asked, []), (len(self.tokens), self.console.syncs))

    def test_enrolled_already(self) -> None:
        """A token is for the first start alone."""
        write_identity(self.directory, self.identity())
        self.agent.start()
        self.assertEqual(([], 1), (self.tokens, len(self.console.syncs)))


class LifeTests(AgentCase):
    """From a start to the end."""

    def test_not_enrolled(self) -> None:
        """Without identity and token it says what to do, and asks nothing."""
        self.agent.start()
        self.assertIn("webhookrx enrol", self.agent.view.problem)
        self.assertEqual(([], [], []), (self.console.links, self.console.syncs, self.reactor.getDelayedCalls()))

    def test_damaged(self) -> None:
        """With an identity that can't be used it says so, and the receiver goes on."""
        good = self.identity()
        for content in (b"{", None):
            if content is None:
                write_identity(self.directory, good)
                self.patch(self.console, "connect", self.refuse)
            else:
                write_state(self.directory, IDENTITY, content)
            self.agent = self.make()
            self.agent.start()
            self.assertIn("The agent of the console can't work: ", self.agent.view.problem)
            self.agent.settled("")
            self.agent.report_soon()
        self.assertEqual([], self.console.syncs)

    def refuse(self, *_: object) -> None:
        """Make no link."""
        raise ValueError("A certificate or key of the console's files can't be used.")

    def test_start_from_current(self) -> None:
        """A start with the bundle that was applied last is applied at once, console or not."""
        write_identity(self.directory, self.identity())
        accept_bundle(self.directory, bundle_of(7))
        mark_applied(self.directory, name_of(bundle_of(7)))
        self.host.runs(bundle_of(7), 7)
        self.assertEqual("APPLIED", self.agent.view.status)
        self.start()
        self.assertEqual(("APPLIED", 7), self.agent.view[:2])
        self.assertEqual((name_of(bundle_of(7)), [7]), (self.console.have, self.on_disk()))

    def test_start_from_next(self) -> None:
        """A start with a bundle that came before a crash notes that it is applied."""
        write_identity(self.directory, self.identity())
        for revision in (7, 8):
            accept_bundle(self.directory, bundle_of(revision))
            if revision == 7:
                mark_applied(self.directory, name_of(bundle_of(7)))
        self.assertEqual([8, 7], self.on_disk())
        self.host.runs(bundle_of(8), 8)
        self.start()
        self.assertEqual(([8], ("APPLIED", 8)), (self.on_disk(), self.agent.view[:2]))

    def test_first_report(self) -> None:
        """The first report says everything, as soon as the agent begins, and others follow in time."""
        self.start()
        (report,) = self.console.reports
        self.assertEqual((0, "ready", "NONE"), (report.base, report.health, report.applied and report.applied.status))
        self.reactor.pump([1.0] * 4 * REPORT_INTERVAL)
        self.assertEqual(5, len(self.console.reports))

    def test_away(self) -> None:
        """A console that is away for a day is one problem in the view, and one answer ends it."""
        self.start()
        self.reactor.advance(1)
        for _ in range(24 * 60):
            self.console.says_status(500)
            self.reactor.advance(LONGEST_PAUSE)
        self.assertTrue(DAY <= self.agent.view.away <= DAY + LONGEST_PAUSE, self.agent.view)
        self.assertIn("500", self.agent.view.problem)
        self.console.says_status(204)
        self.assertEqual((0.0, "", ""), self.agent.view[3:])

    def test_refused(self) -> None:
        """A router that waits for approval, or is disabled, is not away, and says so."""
        self.start()
        for code in ("pending", "disabled"):
            self.console.says_status(403, b'{"code": "%s"}' % code.encode())
            view = self.agent.view
            self.assertEqual((0.0, code, True), (view.away, view.refusal, bool(view.problem)))
            self.reactor.advance(LONGEST_PAUSE)
        self.console.says_status(204)
        self.assertEqual((0.0, "", ""), self.agent.view[3:])

    def test_clock_jumps(self) -> None:
        """A wall clock that jumps an hour back or a year ahead changes neither the polls nor the order of reports."""
        self.start()
        for jump in (-3600.0, 365 * DAY, -400 * DAY):
            self.wall += jump
            asked, reported = len(self.console.syncs), len(self.console.reports)
            self.console.says_status(204)
            self.reactor.advance(LEAST_DISTANCE)
            self.assertEqual(asked + 1, len(self.console.syncs))
            self.reactor.advance(REPORT_INTERVAL)
            self.assertEqual(reported + 1, len(self.console.reports))
        intervals = [(each.counts.since, each.counts.until) for each in self.console.reports if each.counts]
        self.assertTrue(all(since <= until for since, until in intervals), intervals)
        self.assertEqual([until for _, until in intervals[:-1]], [since for since, _ in intervals[1:]])

    def test_both_at_once(self) -> None:
        """Commands are done beside a bundle of the same answer."""
        self.start()
        self.console.says(ReloadCommand(id="r1"), bundle=bundle_of(8))
        self.assertEqual((2, "APPLYING"), (self.host.reloads, self.agent.view.status))
        self.assertEqual(["r1"], [each.id for each in self.console.answers])


class StopTests(AgentCase):
    """A stop at each moment: nothing goes on after it but a thread, to its end."""

    def stopped(self) -> None:
        """Stop the agent, and check that it does nothing more."""
        asked, reloads, reports = len(self.console.syncs), self.host.reloads, len(self.console.reports)
        self.stop()
        while self.reactor.work():
            pass
        self.assertEqual([], self.reactor.getDelayedCalls())
        self.agent.settled("")
        self.agent.settled("why")
        self.agent.report_soon()
        self.reactor.advance(2 * LIFE)
        found = (len(self.console.syncs), self.host.reloads, len(self.console.reports))
        self.assertEqual((asked, reloads, reports), found)
        self.reactor.holds = False

    def test_before_the_start(self) -> None:
        """Before it has begun."""
        self.stopped()

    def test_while_it_reads(self) -> None:
        """While the directory is read."""
        write_identity(self.directory, self.identity())
        self.reactor.holds = True
        self.agent.start()
        self.stopped()
        self.assertEqual([], self.console.syncs)

    def test_in_a_poll(self) -> None:
        """While the console is asked: the question is ended."""
        self.start()
        self.stopped()
        self.assertEqual((1, 1), (self.console.cancelled, self.console.closed))

    def test_in_a_pause(self) -> None:
        """Between two questions."""
        self.start()
        self.console.says_status(500)
        self.stopped()

    def test_while_a_bundle_is_kept(self) -> None:
        """While a bundle is written: it is written to its end, for the next start, and no reload follows."""
        self.start()
        self.reactor.holds = True
        self.send(bundle_of(8))
        self.assertEqual([], self.on_disk())
        self.stopped()
        self.assertEqual(([8], 0), (self.on_disk(), self.host.reloads))

    def test_while_it_is_marked(self) -> None:
        """While it is noted that a bundle is applied: that is noted, and the next call waits for it."""
        self.start()
        self.send(bundle_of(8))
        self.host.runs(bundle_of(8), 8)
        self.reactor.holds = True
        self.agent.settled("")
        self.stopped()
        self.assertFalse(os.path.exists(os.path.join(self.directory, console_files.NEXT)))

    def test_while_it_is_refused(self) -> None:
        """While it is noted that a bundle can't be applied: a start knows it."""
        self.start()
        self.send(bundle_of(8))
        self.reactor.holds = True
        self.agent.settled("Port 80 is taken.")
        self.stopped()
        self.agent = self.make()
        self.agent.start()
        self.assertEqual(("FAILED", 0, "Port 80 is taken."), self.agent.view[:3])

    def test_in_a_report(self) -> None:
        """While a report is on its way: it is ended."""
        ended: list[object] = []
        self.console.report_answers = [Deferred(ended.append)]
        self.start()
        self.assertEqual([], ended)
        self.stopped()
        self.assertEqual(1, len(ended))

    def test_in_a_renewal(self) -> None:
        """While a new certificate is written: it is written to its end."""
        self.start()
        before = read_certificate(self.directory)
        self.reactor.holds = True
        self.wall += LIFE
        self.reactor.advance(600)
        self.stopped()
        self.assertNotEqual(before, read_certificate(self.directory))


class FullDiskTests(AgentCase):
    """A disk that is full at each write: what runs goes on, and once there is room all is as it should be."""

    def test_at_each_write(self) -> None:
        """A bundle comes, is applied, and another can't be: with each write failing in turn."""
        calls = self.story(-1)
        self.assertGreater(calls, 15)
        for at in range(calls):
            with self.subTest(at):
                self.setUp()
                self.story(at)

    def story(self, at: int) -> int:
        """Fail at a call that writes, from then on for an hour; return how many calls there were."""
        self.start()
        calls = 0
        patches = []

        def faulty(real: Any) -> Any:
            def call(*args: Any) -> Any:
                nonlocal calls
                calls += 1
                if 0 <= at < calls:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return real(*args)

            return call

        for name in ("open", "writev", "fsync", "rename"):
            real = getattr(console_files._FILE_SYSTEM, name)
            patches.append(self.patch(console_files._FILE_SYSTEM, name, faulty(real)))
        try:
            for envelope, revision in ((bundle_of(8), 8), (bundle_of(9), 9)):
                self.hand_out(envelope)
                if self.agent.view.status == "APPLYING":
                    if revision == 8:
                        self.host.runs(envelope, revision)
                    self.agent.settled("" if revision == 8 else "Port 80 is taken.")
                self.assertNotEqual("APPLYING", self.agent.view.status)
                # A start now would have something that can be used, and what runs is never lost.
                self.assertIn(self.on_disk(), ([], [8], [9], [9, 8]))
        finally:
            for each in patches:
                each.restore()
        self.hand_out(bundle_of(10))
        self.assertEqual("APPLYING", self.agent.view.status)
        self.host.runs(bundle_of(10), 10)
        self.agent.settled("")
        self.assertEqual((("APPLIED", 10, ""), [10]), (self.agent.view[:3], self.on_disk()))
        return calls

    def hand_out(self, envelope: bytes) -> None:
        """Be a console with a bundle, for an hour, to a router that may be in a pause."""
        for _ in range(60):
            self.reactor.advance(LONGEST_PAUSE)
            if self.console.syncs[-1].answer.called:
                continue
            if self.console.have == name_of(envelope):
                break
            self.send(envelope)
            if self.agent.view.status == "APPLYING":
                break


def read_certificate(directory: str) -> str:
    """Return the certificate on disk."""
    identity = console_files.read_console_files(directory).identity
    assert identity is not None
    return identity.certificate
