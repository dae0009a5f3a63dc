"""
What an operator sees when a port can't be opened, under C{twistd} and C{twist}.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS = 30

PLUGIN = """
from twisted.application.service import ServiceMaker
probe = ServiceMaker("probe", "probe_tap", "Opens the ports it is told.", "probe")
"""

TAP = """
from twisted.application.service import MultiService
from twisted.internet.endpoints import serverFromString
from twisted.internet.protocol import Factory
from twisted.python import usage
from webhookrx.transport.listener_service import ListenerService

class Options(usage.Options):
    def parseArgs(self, *endpoints):
        self["endpoints"] = endpoints

def makeService(options):
    from twisted.internet import reactor
    services = MultiService()
    for text in options["endpoints"]:
        ListenerService(serverFromString(reactor, text), Factory(), text).setServiceParent(services)
    return services
"""

TWISTD = ("-c", "import sys; from twisted.scripts.twistd import run; sys.argv[0] = 'twistd'; run()")
TWIST = ("-m", "twisted")


class BindFailureTests(TestCase):
    """
    A plugin with our listener service, and a port that somebody else has.
    """

    timeout = 2 * SECONDS

    def setUp(self) -> None:
        self.directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, self.directory)
        os.makedirs(os.path.join(self.directory, "twisted", "plugins"))
        self._write("twisted/plugins/probe_plugin.py", PLUGIN)
        self._write("probe_tap.py", TAP)
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        self.taken = f"tcp:{taken.getsockname()[1]}:interface=127.0.0.1"
        self.refusal = f"Address already in use: can't listen on {self.taken}"

    def _write(self, name: str, text: str) -> None:
        with open(os.path.join(self.directory, name), "w") as file:
            file.write(text)

    def _read(self, name: str) -> str:
        with open(os.path.join(self.directory, name)) as file:
            return file.read()

    def run_python(self, *arguments: str) -> Deferred[subprocess.CompletedProcess[str]]:
        return deferToThread(
            subprocess.run,
            [sys.executable, *arguments],
            cwd=self.directory,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((self.directory, ROOT))},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )

    def assert_one_line(self, log: str) -> None:
        """The reason is the last line of the log, it stands there once, and there is no traceback."""
        self.assertTrue(log.rstrip("\n").endswith(self.refusal), log)
        self.assertEqual((1, 0), (log.count("can't listen"), log.count("Traceback")), log)

    async def test_twistd_in_the_foreground(self) -> None:
        """The log on standard output ends with the reason; the status is 1, and no pid file is left."""
        done = await self.run_python(*TWISTD, "-n", "--pidfile=pid", "probe", self.taken)
        self.assertEqual(1, done.returncode)
        self.assert_one_line(done.stdout)
        self.assertFalse(os.path.exists(os.path.join(self.directory, "pid")))

    async def test_twistd_as_a_daemon(self) -> None:
        """The command that started the daemon tells the reason and fails; the log file tells it in full."""
        arguments = ("--pidfile=pid", "--logfile=log", "probe", "tcp:0:interface=127.0.0.1", self.taken)
        done = await self.run_python(*TWISTD, *arguments)
        self.assertEqual(1, done.returncode)
        self.assertIn("Address already in use: can't listen on tcp:", done.stderr)
        await deferToThread(self._wait_for, "log", self.refusal)
        self.assert_one_line(self._read("log"))
        await deferToThread(self._wait_until_gone, "pid")

    async def test_twist(self) -> None:
        """Standard error holds the reason and nothing else; the status is 1."""
        done = await self.run_python(*TWIST, "probe", self.taken)
        self.assertEqual((1, f"{self.refusal}\n"), (done.returncode, done.stderr))

    def _wait_until_gone(self, name: str) -> None:
        """The daemon removes its pid file at its very end."""
        done = subprocess.run(
            ["sh", "-c", 'while test -e "$1"; do sleep 0.05; done', "sh", name],
            cwd=self.directory,
            timeout=SECONDS,
            check=False,
        )
        self.assertEqual(0, done.returncode)

    def _wait_for(self, name: str, text: str) -> None:
        """The daemon writes its last line after its parent has gone; this thread may look until it is there."""
        done = subprocess.run(
            ["sh", "-c", 'until grep -qF "$1" "$2"; do sleep 0.05; done', "sh", text, name],
            cwd=self.directory,
            timeout=SECONDS,
            check=False,
        )
        self.assertEqual(0, done.returncode)
