"""
Tests for L{webhookrx.agent.bundles}, with the files and the polls around it.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import re
from typing import Any

from tests.agent.played import GUID, OTHER_KEY, AgentCase, bundle_of, name_of
from webhookrx.agent.sync_loop import LEAST_DISTANCE, LONGEST_PAUSE
from webhookrx.config import console_files
from webhookrx.management.agent_protocol import ReloadCommand
from webhookrx.router.gate import GateReason


class BundleLifeTests(AgentCase):
    """What becomes of a bundle, and what the console is told of it."""

    def setUp(self) -> None:
        """Apply revision 7."""
        super().setUp()
        self.start()
        self.apply(bundle_of(7), 7)

    def view(self) -> tuple[str, int, str]:
        """Return status, revision in use and error, of which the console has been told the same."""
        told = self.console.applied
        self.assertEqual(self.agent.view[:3], (told.status, told.revision, told.error))
        return told.status, told.revision, told.error

    def test_applied(self) -> None:
        """It is kept, then applied by a reload, and then it is what a start begins with."""
        self.assertEqual(
            (("APPLIED", 7, ""), [7], name_of(bundle_of(7))), (self.view(), self.on_disk(), self.console.have)
        )
        self.send(bundle_of(8))
        self.assertEqual((("APPLYING", 7, ""), [8, 7]), (self.view(), self.on_disk()))
        self.host.runs(bundle_of(8), 8)
        self.agent.settled("")
        self.assertEqual((("APPLIED", 8, ""), [8], 2), (self.view(), self.on_disk(), self.host.reloads))
        statuses = [each.applied.status for each in self.console.reports if each.applied]
        self.assertEqual(["NONE", "APPLYING", "APPLIED", "APPLYING", "APPLIED"], statuses)

    def test_refused(self) -> None:
        """What is not for this router, not signed by its console, or older, is refused; what runs goes on."""
        signature = json.loads(bundle_of(11))["signature"]
        for envelope, words in (
            (re.sub(rb'(?<="signature":")[^"]+', signature.encode(), bundle_of(9)), "signature of the bundle is wrong"),
            (b'{"payload": 7}', "not an envelope"),
            (bundle_of(9, key=OTHER_KEY), "a key that this router does not know"),
            (bundle_of(9, guid=GUID.replace("0", "1")), "for another router"),
            (bundle_of(6), "revision 6; this router has had 7"),
        ):
            self.send(envelope)
            status, revision, error = self.view()
            self.assertEqual(("FAILED", 7), (status, revision))
            self.assertIn(words, error)
            self.reactor.advance(LEAST_DISTANCE)
            # The console does not send it once more.
            self.assertEqual(name_of(envelope), self.console.have)
        self.assertEqual(([7], 1), (self.on_disk(), self.host.reloads))
        self.apply(bundle_of(10), 10)
        self.assertEqual(("APPLIED", 10, ""), self.view())

    def test_wrong_rules(self) -> None:
        """A bundle whose rules can't be used stays aside with its reason, also over a restart, until another comes."""
        self.send(bundle_of(8))
        self.host.is_as(not_taken="port 0 is none")
        self.agent.settled("")
        self.assertEqual((("FAILED", 7, "port 0 is none"), [8, 7]), (self.view(), self.on_disk()))
        self.restart()
        self.assertEqual((("FAILED", 7, "port 0 is none"), name_of(bundle_of(8))), (self.view(), self.console.have))
        self.host.is_as(not_taken="")
        self.apply(bundle_of(9), 9)
        self.assertEqual((("APPLIED", 9, ""), [9]), (self.view(), self.on_disk()))

    def test_blocked_no_more(self) -> None:
        """Once files are there and the reload fails otherwise, such as by a port that is taken, that is told."""
        self.send(bundle_of(8))
        self.host.is_as(blocked=(GateReason("No /k.", "/k"),))
        self.agent.settled("")
        self.agent.settled("Port 80 is taken.")
        self.assertEqual((("FAILED", 7, "Port 80 is taken."), [8, 7]), (self.view(), self.on_disk()))
        self.agent.settled("")
        self.assertEqual(("BLOCKED", 7, "No /k."), self.view())

    def test_blocked(self) -> None:
        """A bundle that waits for a file is blocked, is tried by a start, and is applied once the file is there."""
        self.send(bundle_of(8))
        self.host.is_as(blocked=(GateReason("No /k.", "/k"),))
        self.agent.settled("")
        self.assertEqual((("BLOCKED", 7, "No /k."), [8, 7]), (self.view(), self.on_disk()))
        self.restart()
        self.assertEqual((("BLOCKED", 7, "No /k."), [8, 7]), (self.view(), self.on_disk()))
        self.host.is_as(blocked=())
        self.host.runs(bundle_of(8), 8)
        self.agent.settled("")
        self.assertEqual((("APPLIED", 8, ""), [8]), (self.view(), self.on_disk()))

    def fail(self, revision: int = 8) -> None:  # type: ignore[override]
        """Hand out a bundle that can't be applied."""
        self.send(bundle_of(revision))
        self.agent.settled("Port 80 is taken.")
        self.reactor.advance(1)

    def test_failed_reload(self) -> None:
        """A bundle that can't be applied is told with its reason, and no start tries it."""
        self.fail()
        self.assertEqual((("FAILED", 7, "Port 80 is taken."), [7]), (self.view(), self.on_disk()))
        self.assertEqual(name_of(bundle_of(8)), self.console.have)

    def test_failed_and_restarted(self) -> None:
        """Restarted ten times, the router says the same, fetches nothing, writes nothing and reloads nothing."""
        self.fail()
        reloads = self.host.reloads
        for _ in range(10):
            self.restart()
            self.assertEqual((("FAILED", 7, "Port 80 is taken."), [7]), (self.view(), self.on_disk()))
            self.assertEqual((name_of(bundle_of(8)), reloads), (self.console.have, self.host.reloads))

    def test_tried_again(self) -> None:
        """A reload that succeeds, or the command, has it sent and tried once more."""
        for again in (lambda: self.agent.settled(""), lambda: self.console.says(ReloadCommand(id="r1"))):
            self.fail()
            self.restart()
            again()
            self.reactor.advance(LEAST_DISTANCE)
            if self.console.syncs[-1].answer.called is False:
                self.console.says_status(204)
                self.reactor.advance(LEAST_DISTANCE)
            self.assertEqual(name_of(bundle_of(7)), self.console.have)
            self.send(bundle_of(8))
            self.assertEqual(("APPLYING", [8, 7]), (self.view()[0], self.on_disk()))
            self.agent.settled("Port 80 is taken.")
            self.reactor.advance(1)
            self.assertEqual(("FAILED", 7, "Port 80 is taken."), self.view())
        self.apply(bundle_of(9), 9)
        self.restart()
        self.assertEqual((("APPLIED", 9, ""), [9]), (self.view(), self.on_disk()))

    def test_failed_for_another_reason(self) -> None:
        """A reload that somebody else asked for, and that fails, changes nothing of the bundle."""
        self.agent.settled("The file has a mistake.")
        self.assertEqual((("APPLIED", 7, ""), [7]), (self.view(), self.on_disk()))

    def test_overtaken(self) -> None:
        """A bundle that comes while one is applied is the one that counts."""
        self.send(bundle_of(8))
        self.reactor.advance(LEAST_DISTANCE)
        self.send(bundle_of(9))
        self.host.runs(bundle_of(8), 8)
        self.agent.settled("")
        self.assertEqual([9, 7], self.on_disk())
        self.host.runs(bundle_of(9), 9)
        self.agent.settled("")
        self.assertEqual((("APPLIED", 9, ""), [9]), (self.view(), self.on_disk()))

    def test_full_disk(self) -> None:
        """A bundle that can't be kept is asked for again, in growing pauses, and is applied once there is room."""

        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        patch = self.patch(console_files._FILE_SYSTEM, "writev", full)
        for pause in (1, 2, 4, 8, 16, 32, 60, 60):
            self.send(bundle_of(8))
            self.assertEqual(("FAILED", 7, "The bundle could not be kept: No space left on device."), self.view())
            asked = len(self.console.syncs)
            self.reactor.advance(pause - 0.01)
            self.assertEqual(asked, len(self.console.syncs))
            self.reactor.advance(0.02)
            self.assertEqual("", self.console.have)
        patch.restore()
        self.apply(bundle_of(8), 8)
        self.assertEqual((("APPLIED", 8, ""), [8]), (self.view(), self.on_disk()))

    def test_note_fails(self) -> None:
        """That a bundle is applied is noted by the next start, when it could not be noted."""

        def broken(*_: Any) -> None:
            raise OSError(errno.EIO, "Input/output error")

        patch = self.patch(console_files._FILE_SYSTEM, "rename", broken)
        self.send(bundle_of(8))
        patch.restore()
        self.reactor.advance(LONGEST_PAUSE)
        self.send(bundle_of(8))
        patch = self.patch(console_files._FILE_SYSTEM, "rename", broken)
        self.host.runs(bundle_of(8), 8)
        self.agent.settled("")
        self.assertEqual((("APPLIED", 8, ""), [8, 7]), (self.view(), self.on_disk()))
        patch.restore()
        self.restart()
        self.assertEqual((("APPLIED", 8, ""), [8]), (self.view(), self.on_disk()))


class SourceFormTests(AgentCase):
    """A receiver with sources of its own."""

    def test_trust_alone(self) -> None:
        """It keeps what a bundle says of trust, reloads nothing, and has no rules, which is no failure."""
        self.host.settings = dataclasses.replace(self.host.settings, router=None)
        self.start()
        self.assertEqual("NONE", self.agent.view.status)
        self.send(bundle_of(8))
        self.assertEqual((0, [8]), (self.host.reloads, self.on_disk()))
        self.assertEqual(("NONE", 0, ""), self.agent.view[:3])
