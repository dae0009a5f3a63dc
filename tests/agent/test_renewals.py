"""
Tests for L{webhookrx.agent.renewals}.
"""

from __future__ import annotations

import errno
from typing import Any

from tests.agent.played import BEGAN, LIFE, AgentCase
from webhookrx.agent.link import ConsoleAnswer, LinkFailed
from webhookrx.agent.renewals import RENEWAL_EVERY
from webhookrx.agent.router_keys import check_certificate
from webhookrx.config import console_files
from webhookrx.config.console_files import RouterIdentity, read_console_files

DAY = 86400.0


class RenewalsTests(AgentCase):
    """The certificate of a router over its life."""

    def setUp(self) -> None:
        super().setUp()
        self.start()
        self.first = self.kept()

    def kept(self) -> RouterIdentity:
        """Return who the router is on disk; its key and certificate fit, and are those of the link."""
        identity = read_console_files(self.directory).identity
        assert identity is not None
        check_certificate(identity.certificate, identity.key)
        self.assertEqual(identity.certificate, self.console.links[-1])
        return identity

    def at_day(self, day: float) -> None:
        """Let it be so many days after the beginning, and look."""
        self.wall += day * DAY - (self.now() - BEGAN)
        self.reactor.advance(RENEWAL_EVERY)

    def test_in_time(self) -> None:
        """It is renewed on the 21st day of 30, with a new key, and the link before is closed."""
        self.at_day(19.9)
        self.assertEqual((self.first, 0), (self.kept(), self.console.closed))
        self.at_day(20.1)
        renewed = self.kept()
        self.assertNotEqual((self.first.key, self.first.certificate), (renewed.key, renewed.certificate))
        self.assertEqual(
            (self.first.guid, self.first.signing_keys, 1), (renewed.guid, renewed.signing_keys, self.console.closed)
        )
        self.at_day(40)
        self.assertEqual(renewed, self.kept())

    def test_fails(self) -> None:
        """A renewal that fails is tried again; the certificate before stays in use, and on disk."""
        self.console.renewals = [
            LinkFailed("The console can't be reached."),
            ConsoleAnswer(503, b""),
            ConsoleAnswer(403, b'{"code": "disabled"}'),
            ConsoleAnswer(200, b"{}"),
        ]
        left = len(self.console.renewals)
        self.at_day(21)
        while self.console.renewals:
            left -= 1
            self.assertEqual((left, self.first), (len(self.console.renewals), self.kept()))
            self.reactor.advance(RENEWAL_EVERY)
        self.reactor.advance(RENEWAL_EVERY)
        self.assertNotEqual(self.first, self.kept())

    def test_full_disk(self) -> None:
        """A certificate that can't be kept is not used."""

        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        patch = self.patch(console_files._FILE_SYSTEM, "writev", full)
        self.at_day(21)
        self.assertEqual(self.first, self.kept())
        patch.restore()
        self.reactor.advance(RENEWAL_EVERY)
        self.assertNotEqual(self.first, self.kept())

    def test_ended(self) -> None:
        """One that has ended while the console was away is renewed soon after it is back."""
        self.console.renewals = [LinkFailed("It is away.")] * 10
        self.at_day(31)
        self.reactor.pump([RENEWAL_EVERY] * 9)
        self.assertEqual(self.first, self.kept())
        self.reactor.advance(RENEWAL_EVERY)
        self.assertNotEqual(self.first, self.kept())

    def test_clock_jumps(self) -> None:
        """A clock that jumps back a year renews nothing; one that jumps ahead does, once."""
        self.wall -= 365 * DAY
        self.reactor.advance(RENEWAL_EVERY)
        self.assertEqual(self.first, self.kept())
        self.wall += 365 * DAY + LIFE
        self.reactor.advance(RENEWAL_EVERY)
        renewed = self.kept()
        self.assertNotEqual(self.first, renewed)
        self.wall -= LIFE
        self.reactor.pump([RENEWAL_EVERY] * 3)
        self.assertEqual(renewed, self.kept())
