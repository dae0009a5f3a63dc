"""
Tests for C{etc/systemd/webhookrx.service}: what systemd says of it, and that the program can do its work within it.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from threading import Timer

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.system.certificates import CLIENT, Authority, server_settings, write_ca_file
from tests.system.sandboxed import LIBRARY, settings_of, system_calls
from webhookrx.config.endpoints import parse_endpoint
from webhookrx.quantities import parse_duration
from webhookrx.settings import Settings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNIT = os.path.join(ROOT, "etc", "systemd", "webhookrx.service")
SOCKET = os.path.join(ROOT, "etc", "systemd", "webhookrx.socket")
PROGRAM = "/opt/webhookrx/bin/twistd"
SECONDS = 30

#: Tries what the unit forbids, and one thing that it doesn't.
FORBIDDEN = """
import os, socket
for what in (
    lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    lambda: os.setuid(os.getuid()),
    lambda: socket.socket(socket.AF_INET),
):
    try:
        what()
        print("done")
    except OSError as error:
        print(error.strerror)
"""


def tool(name: str) -> str:
    """Return the path of a command, or skip the test that needs it."""
    path = shutil.which(name)
    if path is None:
        raise SkipTest(f"{name} is not installed")
    return path


class UnitFileTests(SynchronousTestCase):
    """What C{systemd-analyze} finds without starting anything."""

    def setUp(self) -> None:
        """Have a unit whose program is there: that it isn't is all that may be wrong with it on other machines."""
        self.analyze = tool("systemd-analyze")
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        self.unit = os.path.join(directory, "webhookrx.service")
        with open(UNIT) as file, open(self.unit, "w") as copy:
            copy.write(file.read().replace(f"={PROGRAM} ", f"={shutil.which('true')} "))
        self.socket = os.path.join(directory, "webhookrx.socket")
        shutil.copy(SOCKET, self.socket)
        shutil.copytree(f"{UNIT}.d", f"{self.unit}.d")

    def run_analyze(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it, and return what it said."""
        return subprocess.run([self.analyze, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)

    def test_verify(self) -> None:
        """systemd has nothing to say against the units, nor against the drop-in."""
        done = self.run_analyze("verify", "--man=no", self.socket, self.unit)
        said = [line for line in done.stderr.splitlines() if "webhookrx" in line]
        self.assertEqual((0, [], ""), (done.returncode, said, done.stdout))

    def test_security(self) -> None:
        """Its exposure is 2.0 or better."""
        done = self.run_analyze("security", "--offline=true", "--no-pager", self.unit)
        found = re.search(r"Overall exposure level for webhookrx\.service: ([0-9.]+)", done.stdout)
        if found is None:
            raise SkipTest(f"this systemd-analyze has no offline check: {done.stderr.strip()}")
        self.assertLessEqual(float(found[1]), 2.0, done.stdout)


class SettingTests(SynchronousTestCase):
    """How the settings of the units go with those of the program."""

    def setUp(self) -> None:
        """Read the units."""
        self.service = settings_of(UNIT)
        self.socket = settings_of(SOCKET)

    def test_bad_configuration(self) -> None:
        """A configuration that can't be used is not tried again and again."""
        self.assertEqual([str(os.EX_CONFIG)], self.service["RestartPreventExitStatus"])

    def test_reload_checks_what_it_runs(self) -> None:
        """A reload first checks the configuration that the service was started with, and then sends the signal."""
        check, hang_up = self.service["ExecReload"]
        *_, name = shlex.split(self.service["ExecStart"][0])
        self.assertEqual([PROGRAM, "webhookrx", "--config", name, "--check"], shlex.split(check))
        self.assertEqual("/bin/kill -HUP $MAINPID", hang_up)

    def test_time_to_stop(self) -> None:
        """systemd waits longer for the end than the program takes by itself."""
        (seconds,) = self.service["TimeoutStopSec"]
        self.assertGreater(parse_duration(seconds), Settings((), ()).drain_timeout)

    def test_socket(self) -> None:
        """The endpoint strings that the socket unit shows name its socket, by the right domain."""
        with open(SOCKET) as file:
            shown = re.findall(r"^#   port: (.*)$", file.read(), re.MULTILINE)
        (name,) = self.socket["FileDescriptorName"]
        self.assertEqual(["443"], self.socket["ListenStream"])
        self.assertEqual(2, len(shown))
        for text in shown:
            self.assertEqual(f"systemd:domain=INET6:name={name}", parse_endpoint(text).socket)


class SandboxTests(SynchronousTestCase):
    """The program under the unit's own filters."""

    def setUp(self) -> None:
        """Have a directory, and what the filters take."""
        tool("systemd-analyze")
        if sys.platform != "linux":
            raise SkipTest("seccomp is Linux's")
        try:
            ctypes.CDLL(LIBRARY)
        except OSError:
            raise SkipTest(f"{LIBRARY} is not installed") from None
        # A short path: the name of a UNIX socket has room for about a hundred bytes.
        self.directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, self.directory)

    def sandboxed(self, *command: str) -> list[str]:
        """Return the command that runs C{command} as the unit would."""
        return [sys.executable, "-m", "tests.system.sandboxed", UNIT, *command]

    def start(self, *options: str) -> subprocess.Popen[str]:
        """Start what C{ExecStart=} says, with other options; return it once it listens."""
        words = shlex.split(settings_of(UNIT)["ExecStart"][0])
        self.assertEqual((PROGRAM, "--config"), (words[0], words[-2]))
        twistd = [sys.executable, "-c", "from twisted.scripts.twistd import run; run()", *words[1:-2]]
        # Coverage would need more than the program does.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
        process = subprocess.Popen(
            self.sandboxed(*twistd, *options),
            cwd=ROOT,
            env={**environment, "STATE_DIRECTORY": self.directory, "PYTHONDONTWRITEBYTECODE": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        self.log_pipe = process.stderr
        self.addCleanup(self.log_pipe.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        # What never comes ends with the process, not with patience.
        patience = Timer(SECONDS, process.kill)
        patience.start()
        self.addCleanup(patience.cancel)
        self.log = ""
        self.read_log("Listening on")
        return process

    def read_log(self, text: str) -> None:
        """Read the log until a line holds a text."""
        while text not in self.log:
            line = self.log_pipe.readline()
            self.assertTrue(line, self.log)
            self.log += line

    def post(self, name: str, context: ssl.SSLContext | None = None) -> bytes:
        """Send a message to a UNIX socket; return the first line of the answer."""
        with socket.socket(socket.AF_UNIX) as plain:
            plain.settimeout(SECONDS)
            plain.connect(os.path.join(self.directory, name))
            with context.wrap_socket(plain) if context else plain as stream:
                stream.sendall(
                    b"POST /log HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                    % (len(name), name.encode())
                )
                with stream.makefile("rb") as answer:
                    return answer.readline()

    def messages(self) -> list[str]:
        """Return the texts in the file of the default observer."""
        with open(os.path.join(self.directory, "messages.jsonl")) as file:
            return [json.loads(line)["MESSAGE"] for line in file]

    def test_forbids(self) -> None:
        """The filters of these tests forbid what the unit forbids."""
        done = subprocess.run(
            self.sandboxed(sys.executable, "-c", FORBIDDEN),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        refused = "Operation not permitted"
        self.assertEqual([refused, refused, "done"], done.stdout.splitlines(), done.stderr)
        allowed = system_calls(settings_of(UNIT)["SystemCallFilter"])
        self.assertIn("fdatasync", allowed)
        self.assertNotIn("ptrace", allowed)

    def test_serves(self) -> None:
        """Within them it takes messages, plain and by TLS with a verified client, reloads on SIGHUP, and stops."""
        root = Authority("Root")
        tls = server_settings(self.directory, root.issue("server"))
        ca_file = write_ca_file(self.directory, "ca", root)
        key_file, cert_file = root.issue("client", (CLIENT,)).write(self.directory, "client")
        policy = f"privateKey={tls.key_file}:certKey={tls.cert_file}:peerVerify=yes:caFile={ca_file}"
        secure = os.path.join(self.directory, "tls")
        process = self.start(
            "--port", f"unix:{self.directory}/plain", "--port", f"ssl:endpoint=unix\\:{secure}:{policy}"
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(ca_file)
        context.load_cert_chain(cert_file, key_file)
        ok = b"HTTP/1.1 200 OK\r\n"
        self.assertEqual((ok, ok), (self.post("plain"), self.post("tls", context)))
        os.rename(os.path.join(self.directory, "messages.jsonl"), os.path.join(self.directory, "messages.1"))
        process.send_signal(signal.SIGHUP)
        self.read_log("Reloaded: ")
        self.assertEqual(ok, self.post("plain"))
        process.terminate()
        self.assertEqual(0, process.wait(SECONDS))
        self.assertEqual(["plain"], self.messages())
        self.log += self.log_pipe.read()
        self.assertNotIn("Reload failed", self.log)
        self.assertIn("Stopped. Counts: messages.default=3", self.log)
        self.assertNotIn("Traceback", self.log)
