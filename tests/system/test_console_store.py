"""
System tests of a console's store and process: kills, two processes, start and stop.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import redirect_stdout

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.system.console_kills import kill_writers
from tests.system.sandboxed import settings_of
from tests.system.servers.process import free_port
from tests.system.test_systemd_unit import ROOT, SECONDS, tool
from webhookrx.console.service import TIME_TO_STOP
from webhookrx.console.store.files import StoreFiles
from webhookrx.console.tap import ConsoleOptions
from webhookrx.console.upkeep import back_up, init_console
from webhookrx.operations.signals import GRACE
from webhookrx.quantities import parse_duration

UNIT = os.path.join(ROOT, "etc", "systemd", "webhookrx-console.service")


class ConsoleUnitTests(SynchronousTestCase):
    """C{etc/systemd/webhookrx-console.service}."""

    def test_options(self) -> None:
        """The options that it starts a console with, and those it shows, are good ones, once their files are there."""
        settings = settings_of(UNIT)
        (start,) = settings["ExecStart"]
        program, *words = shlex.split(start)
        self.assertEqual("/opt/webhookrx/bin/twistd", program)
        *options, further = words[words.index("webhookrx-console") + 1 :]
        self.assertEqual(("$OPTIONS", ["OPTIONS="]), (further, settings["Environment"]))
        with open(UNIT) as unit:
            shown = re.findall(r"^# OPTIONS=(.+)$", unit.read(), re.MULTILINE)
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        with open(os.open(os.path.join(directory, "oidc-secret"), os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("secret\n")
        known = {"${URL}": "https://console.example", "/var/lib/webhookrx-console": directory}
        self.assertEqual(1, len(shown))
        for more in ("", shown[0]):
            given = [*options, *more.split(), "--check"]
            for text, value in known.items():
                given = [option.replace(text, value) for option in given]
            with redirect_stdout(io.StringIO()) as out:
                error = self.assertRaises(SystemExit, ConsoleOptions().parseOptions, given)
            self.assertEqual(0, error.code)
            self.assertIn("The configuration is good.", out.getvalue())

    def analyze(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Have C{systemd-analyze} look at a unit whose program is there, without starting anything."""
        program = tool("systemd-analyze")
        unit = os.path.join(os.path.abspath(self.mktemp()), "webhookrx-console.service")
        os.mkdir(os.path.dirname(unit))
        with open(UNIT) as file, open(unit, "w") as copy:
            copy.write(file.read().replace("=/opt/webhookrx/bin/twistd ", f"={tool('true')} "))
        return subprocess.run([program, *arguments, unit], capture_output=True, text=True, timeout=SECONDS, check=False)

    def test_verify(self) -> None:
        """systemd has nothing to say against the unit."""
        done = self.analyze("verify", "--man=no")
        said = [line for line in done.stderr.splitlines() if "webhookrx" in line]
        self.assertEqual((0, [], ""), (done.returncode, said, done.stdout))

    def test_security(self) -> None:
        """Its exposure is 2.0 or better."""
        done = self.analyze("security", "--offline=true", "--no-pager")
        found = re.search(r"Overall exposure level for webhookrx-console\.service: ([0-9.]+)", done.stdout)
        if found is None:
            raise SkipTest(f"this systemd-analyze has no offline check: {done.stderr.strip()}")
        self.assertLessEqual(float(found[1]), 2.0, done.stdout)

    def test_stop(self) -> None:
        """systemd waits longer for the end than a console takes, and restarts no bad options."""
        settings = settings_of(UNIT)
        self.assertGreater(parse_duration(settings["TimeoutStopSec"][0]), TIME_TO_STOP + GRACE)
        self.assertEqual([str(os.EX_CONFIG)], settings["RestartPreventExitStatus"])


class ConsoleProcessTests(SynchronousTestCase):
    """A console as its own process."""

    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())
        self.path = os.path.join(self.directory, "console.sqlite")

    def start(self) -> tuple[subprocess.Popen[bytes], int]:
        """Start a console, and return it with the port for operators once it is ready."""
        port, routers, admin = free_port(), free_port(), free_port()
        command = [os.path.join(os.path.dirname(sys.executable), "twistd"), "-n", "--pidfile=", "webhookrx-console"]
        command += ["--port", f"tcp:{port}:interface=127.0.0.1", "--routers", f"ssl:{routers}:interface=127.0.0.1"]
        command += ["--db", self.path, "--url", f"http://127.0.0.1:{port}", "--admin", f"{admin}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{admin}/readyz") as answer:
                    if answer.status == 200:
                        return process, admin
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        process.kill()
        raise AssertionError(f"It did not start: {process.communicate()[0].decode()}")

    def test_life(self) -> None:
        """It becomes ready, lets nobody else have its files, is copied while it runs, and ends well on SIGTERM."""
        init_console(self.path)
        process, _ = self.start()
        command = [sys.executable, "-m", "webhookrx", "console"]
        copy = f"{self.path}.copy"
        back_up(self.path, copy)
        for arguments in (["adopt", "--db", self.path], ["restore", "--db", self.path, copy, "--replace"]):
            refused = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual((1, True), (refused.returncode, "in use" in refused.stderr), refused.stderr)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(60))
        StoreFiles(self.path).close()

    def test_kills(self) -> None:
        """Of what was accepted before a kill -9, nothing is lost, and nothing is there in part."""
        os.mkdir(self.directory)
        kills = 200 if os.environ.get("WEBHOOKRX_LONG") else 5
        figures = kill_writers(self.path, kills, seed=1)
        self.assertEqual((kills, 0, 0), (figures.kills, figures.lost, figures.half))
