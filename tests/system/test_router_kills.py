"""
Routers of a real console that are killed while they take bundles; see L{tests.system.router_kills}.
"""

from __future__ import annotations

import os
import shutil

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.system.router_kills import STEPS, kill_routers


class RouterKillTests(SynchronousTestCase):
    timeout = 1_800

    def test_each_step(self) -> None:
        """A start finds the rules before or after, whole; routers get to the newest; no accepted message is lost."""
        if shutil.which("strace") is None:
            raise SkipTest("no strace: apt-get install strace")
        rounds = 25 if os.environ.get("WEBHOOKRX_LONG") else 1
        figures = kill_routers(rounds)
        kills = rounds * len(STEPS)
        self.assertEqual((kills, kills, 2 * kills), (figures.kills, figures.console_kills, figures.states))
        self.assertEqual(([], 0), (figures.wrong, figures.lost))
        self.assertGreater(figures.sent, 100)
