"""
Tests for C{etc/systemd/webhookrx-relay@.service}: what systemd says of it, how it goes with the program, and that the
program can do its work within it.
"""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.system.receiver import wait_until
from tests.system.relays import RelayProcess
from tests.system.sandboxed import LIBRARY, settings_of
from tests.system.servers.process import ServerCase, ask
from tests.system.servers.redis_server import RedisServer
from tests.system.test_systemd_unit import ROOT, SECONDS, tool
from webhookrx.quantities import parse_duration
from webhookrx.relay.service import LAST_CALLS
from webhookrx.settings import Settings

UNIT = os.path.join(ROOT, "etc", "systemd", "webhookrx-relay@.service")
PROGRAM = "/opt/webhookrx/bin/webhookrx"

OPTIONS = "relay --from ${FROM} --group ${GROUP} --to ${TO} --dead ${DEAD} --admin ${ADMIN}"


class RelayUnitFileTests(SynchronousTestCase):
    """What C{systemd-analyze} finds without starting anything."""

    def setUp(self) -> None:
        """Have a unit whose program is there: that it isn't is all that may be wrong with it on other machines."""
        self.analyze = tool("systemd-analyze")
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        self.unit = os.path.join(directory, "webhookrx-relay@store.service")
        with open(UNIT) as file, open(self.unit, "w") as copy:
            copy.write(file.read().replace(f"={PROGRAM} ", f"={shutil.which('true')} "))

    def run_analyze(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it, and return what it said."""
        return subprocess.run([self.analyze, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)

    def test_verify(self) -> None:
        """systemd has nothing to say against the unit."""
        done = self.run_analyze("verify", "--man=no", self.unit)
        said = [line for line in done.stderr.splitlines() if "webhookrx" in line]
        self.assertEqual((0, [], ""), (done.returncode, said, done.stdout))

    def test_security(self) -> None:
        """Its exposure is 1.5 or better: it needs no privilege."""
        done = self.run_analyze("security", "--offline=true", "--no-pager", self.unit)
        found = re.search(r"Overall exposure level for webhookrx-relay@store\.service: ([0-9.]+)", done.stdout)
        if found is None:
            raise SkipTest(f"this systemd-analyze has no offline check: {done.stderr.strip()}")
        self.assertLessEqual(float(found[1]), 1.5, done.stdout)


class RelayUnitSettingTests(SynchronousTestCase):
    """How the settings of the unit go with the program."""

    def setUp(self) -> None:
        self.settings = settings_of(UNIT)

    def test_commands(self) -> None:
        """It starts a relay with the options of its file, and checks them before it sends SIGHUP."""
        self.assertEqual([f"{PROGRAM} {OPTIONS}"], self.settings["ExecStart"])
        check, hang_up = self.settings["ExecReload"]
        self.assertEqual(f"{PROGRAM} {OPTIONS} --check", check)
        self.assertEqual("/bin/kill -HUP $MAINPID", hang_up)
        self.assertEqual(["/etc/webhookrx/relay/%i"], self.settings["EnvironmentFile"])
        self.assertEqual([str(os.EX_CONFIG)], self.settings["RestartPreventExitStatus"])

    def test_variables(self) -> None:
        """The samples give a value to each variable of the unit, and to no other."""
        wanted = set(re.findall(r"\$\{(\w+)\}", OPTIONS))
        for name in ("kafka", "nats"):
            self.assertEqual(wanted, set(variables(name)), name)

    def test_time_to_stop(self) -> None:
        """systemd waits longer for the end than the program takes by itself."""
        (seconds,) = self.settings["TimeoutStopSec"]
        self.assertGreater(parse_duration(seconds), Settings((), ()).drain_timeout + LAST_CALLS + 5)


class RelaySandboxTests(ServerCase):
    """The program under the unit's own filters."""

    def test_relays(self) -> None:
        """Within them it reads from a broker, writes, reopens on SIGHUP, and stops."""
        tool("systemd-analyze")
        try:
            ctypes.CDLL(LIBRARY)
        except OSError:
            raise SkipTest(f"{LIBRARY} is not installed") from None
        redis = self.serve(RedisServer)
        relay = RelayProcess(
            *("--from", f"redis:redis://{redis.address}/0/logs", "--group", "g"),
            *("--to", "file:messages.jsonl", "--dead", "file:dead.jsonl"),
            within=(sys.executable, "-m", "tests.system.sandboxed", UNIT),
        )
        self.addCleanup(relay.clean_up)
        # Coverage would need more than the program does.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
        self.patch(os, "environ", kept)
        relay.start()
        for text in (b"one", b"two"):
            ask(redis.port, b"*5\r\n$4\r\nXADD\r\n$4\r\nlogs\r\n$1\r\n*\r\n$1\r\nm\r\n$3\r\n%s\r\n" % text, b"\r\n")
            wait_until(lambda: relay.arrived() == 1, "a message arrives")
            os.rename(relay.path("messages.jsonl"), relay.path(text.decode()))
            relay.signal(signal.SIGHUP)
            wait_until(lambda: os.path.exists(relay.path("messages.jsonl")), "the file is there again")
        self.assertEqual(0, relay.stop())
        self.assertEqual(["one", "two"], [relay.messages(name)[0]["MESSAGE"] for name in ("one", "two")])
        self.assertNotIn("Traceback", relay.log())


def variables(broker: str) -> dict[str, str]:
    """Return the variables of C{etc/BROKER/relay.env}, as systemd reads them: values in single quotes as they are."""
    with open(os.path.join(ROOT, "etc", broker, "relay.env")) as file:
        lines = [line for line in file.read().splitlines() if line and not line.startswith("#")]
    pairs = [line.partition("=") for line in lines]
    return {name: shlex.split(value)[0] for name, _, value in pairs}
