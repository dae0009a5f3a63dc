"""
Tests of processes whose wall clock is set while they run, by libfaketime.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.system.receiver import PATIENCE, ROOT
from tests.system.wall_clock import LIBRARIES, WallClock
from webhookrx.console.upkeep import init_console

_TIMER = """
import sys
from twisted.internet import reactor
from webhookrx.operations.steady_timers import use_monotonic_clock
if sys.argv[1] == "steady":
    use_monotonic_clock(reactor)
reactor.callLater(1.0, reactor.stop)
reactor.callWhenRunning(print, "running", flush=True)
reactor.run()
"""

_SERVICES = """
import sys, time
from twisted.internet import reactor
from webhookrx import tap
from webhookrx.console import tap as console
module = console if sys.argv[1] == "console" else tap
options = module.Options()
options.parseOptions(sys.argv[2:])
module.makeService(options)
print(reactor.seconds is time.monotonic)
"""


class ClockJumpTests(SynchronousTestCase):
    """A clock that is put back an hour."""

    def spawn(self, kind: str) -> subprocess.Popen[str]:
        """Start a process with a timer of a second, and put its wall clock back once it runs."""
        clock = WallClock(self.mktemp())
        process = subprocess.Popen(
            (sys.executable, "-c", _TIMER, kind),
            env={**os.environ, "PYTHONPATH": ROOT, **clock.environment},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        self.assertEqual("running\n", process.stdout.readline())
        clock.set("-1h")
        return process

    def test_timers(self) -> None:
        """Timers of our services are on time; those of Twisted are not, or the clock was not put back at all."""
        if not LIBRARIES:
            raise SkipTest("libfaketime is not installed")
        steady, plain = self.spawn("steady"), self.spawn("plain")
        self.assertEqual(0, steady.wait(PATIENCE))
        time.sleep(2.0)
        self.assertIs(None, plain.poll())

    def test_services(self) -> None:
        """A receiver and a console use such timers."""
        directory = self.mktemp()
        os.mkdir(directory)
        init_console(os.path.join(directory, "console.sqlite"))
        port, url = ("--port", "tcp:0:interface=127.0.0.1"), "http://127.0.0.1:8443"
        for service, options in (
            ("receiver", ("--observer", "file:messages.jsonl")),
            ("console", ("--db", "console.sqlite", "--url", url, "--routers", "ssl:0:interface=127.0.0.1")),
        ):
            done = subprocess.run(
                (sys.executable, "-c", _SERVICES, service, *port, *options),
                cwd=directory,
                env={**os.environ, "PYTHONPATH": ROOT},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            self.assertEqual((service, "True"), (service, done.stdout.strip()), done.stderr)
