"""
C{twistd webhookrx} and C{twist webhookrx} as processes: what they print and how they end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.config.starting import LOOPBACK, write_text
from tests.system.receiver import PATIENCE, Connection, post, wait_until
from webhookrx.version import version_line

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

TWISTD = ("-c", "from twisted.scripts.twistd import run; run()", "-n", "--pidfile=")
TWIST = ("-m", "twisted")

WEBHOOKRX = ("-m", "webhookrx")

SETPRIV = shutil.which("setpriv")

SECRET = "c4nary"


class CommandLineTests(SynchronousTestCase):
    """
    Each command as a process of its own, with the project on its path and an empty working directory.
    """

    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())
        os.mkdir(self.directory)

    def run_command(
        self, command: Sequence[str], *arguments: str, bounds: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run one of the commands to its end."""
        return subprocess.run(
            [*bounds, sys.executable, *command, "webhookrx", *arguments],
            cwd=self.directory,
            env={**os.environ, "PYTHONPATH": PROJECT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def test_help(self) -> None:
        """The help is webhookrx's, on standard output, with status 0."""
        for command in (TWISTD, TWIST):
            done = self.run_command(command, "--help")
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            self.assertIn("--tls-peer-verify", done.stdout)
            self.assertIn("Receives log messages by HTTP POST", done.stdout)

    def test_version(self) -> None:
        """The version is webhookrx's, on standard output, with status 0."""
        for command in (TWISTD, TWIST):
            done = self.run_command(command, "--version")
            self.assertEqual((0, f"{version_line()}\n"), (done.returncode, done.stdout))

    def test_mistakes(self) -> None:
        """A mistake is status 78, its line is all that is printed, and that on standard error."""
        path = write_text(self.directory, "x.yaml", "ack: queued\nauth_tokn: x\n")
        cases = [
            (("--prot", "1"), 'There is no option --prot. Did you mean "--port"?'),
            (("--port", "70000"), 'command line: --port: "70000" is not a port'),
            (("--config", path), f'{path}:2: There is no key "auth_tokn". Did you mean "auth_token"?'),
            (("--tls-key-file", "/no/key", "--tls-cert-file", "/no/cert"), '"/no/key" does not exist'),
            (("--paths", "/(a"), "does not compile"),
            (("left", "over"), "left over is"),
            (("--auth-token", SECRET), "plain HTTP"),
        ]
        for arguments, fragment in cases:
            for command in (TWISTD, TWIST):
                done = self.run_command(command, *arguments)
                self.assertEqual((78, ""), (done.returncode, done.stdout))
                self.assertIn(fragment, done.stderr)
                self.assertTrue(all(line.startswith("error: ") for line in done.stderr.splitlines()), done.stderr)
                self.assertNotIn(SECRET, done.stderr)

    def test_read_only_directory(self) -> None:
        """In a working directory that can't be written there is a line on each file, and no traceback."""
        if os.getuid() == 0 and SETPRIV is None:
            raise SkipTest("root can write anywhere without setpriv")
        # Root without its capabilities is stopped by the modes of files like anybody.
        bounds = (SETPRIV, "--bounding-set=-all", "--inh-caps=-all") if SETPRIV and os.getuid() == 0 else ()
        os.chmod(self.directory, 0o555)
        for before, fragment in (
            (("-n",), f'{self.directory}/twistd.pid". It needs none in the foreground'),
            (("--pidfile=",), f'{self.directory}/twistd.log"'),
        ):
            done = self.run_command((*TWISTD[:2], *before), "--port", LOOPBACK, bounds=bounds)
            self.assertEqual((78, "", 1), (done.returncode, done.stdout, done.stderr.count("\n")), done.stderr)
            self.assertIn(fragment, done.stderr)

    def test_good_check(self) -> None:
        """A good configuration is printed, ends with status 0, and leaves nothing behind."""
        for command in (TWISTD, TWIST):
            done = self.run_command(command, "--check", "--port", LOOPBACK, "--auth-token", SECRET)
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            self.assertTrue(done.stdout.endswith("The configuration is good.\n"), done.stdout)
            self.assertNotIn(SECRET, done.stdout)
        self.assertEqual([], os.listdir(self.directory))

    def test_bad_check(self) -> None:
        """A bad configuration ends with status 1 under both commands, what is wrong on standard error."""
        for command in (TWISTD, TWIST):
            done = self.run_command(command, "--check", "--ack", "disk")
            self.assertEqual((1, ""), (done.returncode, done.stdout))
            self.assertIn('error: command line: --ack: "disk" is not one of durable, written, queued.', done.stderr)

    def test_check_of_another_user(self) -> None:
        """What the user that it will run as may not write is found before the start."""
        if os.getuid() != 0:
            raise SkipTest("only root can have twistd become another user")
        shared = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, shared)
        os.chmod(shared, 0o755)
        for user, status, fragment in (("nobody", 1, "may not be written by nobody (uid "), ("root", 0, "")):
            command = (*TWISTD, "--uid", user)
            done = self.run_command(command, "--check", "--port", LOOPBACK, "--observer", f"file:{shared}/messages")
            self.assertEqual(status, done.returncode, done.stderr)
            self.assertIn(fragment, done.stderr)

    def test_own_command(self) -> None:
        """C{webhookrx run}, C{webhookrx --port} and C{webhookrx config check} are what twistd has longer words for."""
        config = write_text(self.directory, "x.yaml", f"port: {LOOPBACK}\n")
        for words, status, stream, fragment in (
            (("run", "--prot", "1"), 78, "stderr", "error: There is no option --prot."),
            (("--prot", "1"), 78, "stderr", "error: There is no option --prot."),
            (("run", "--help"), 0, "stdout", "--tls-peer-verify"),
            (("config", "check", config), 0, "stdout", "The configuration is good."),
            (("config", "check", "/no/such.yaml"), 1, "stderr", '"/no/such.yaml" does not exist'),
            (("--port", LOOPBACK, "--observer", "file:/proc/x"), 1, "stdout", "can't be opened for appending"),
        ):
            done = subprocess.run(
                [sys.executable, *WEBHOOKRX, *words],
                cwd=self.directory,
                env={**os.environ, "PYTHONPATH": PROJECT},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            self.assertEqual(status, done.returncode, done.stdout + done.stderr)
            self.assertIn(fragment, getattr(done, stream))
        self.assertEqual(["x.yaml"], os.listdir(self.directory))

    def test_workers_of_own_command(self) -> None:
        """It can have workers, receives, and ends as it is told."""
        # The path of a socket may not be long.
        directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "in")
        with open(os.path.join(directory, "log"), "wb") as file:
            process = subprocess.Popen(
                [sys.executable, *WEBHOOKRX, "--port", "unix:in", "--workers", "2"],
                cwd=directory,
                env={**os.environ, "PYTHONPATH": PROJECT},
                stdout=file,
                stderr=file,
            )
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.kill)
        wait_until(lambda: os.path.exists(path), "it listens")
        with Connection(path) as connection:
            answer = connection.send(post(b"hello")).answer()
        self.assertEqual(200, answer and answer.status)
        process.terminate()
        self.assertEqual(0, process.wait(PATIENCE))

    def test_taken_port(self) -> None:
        """A port that can't be bound ends the process with status 1 and a line that names it."""
        import socket

        with socket.create_server(("127.0.0.1", 0)) as taken:
            text = f"tcp:{taken.getsockname()[1]}:interface=127.0.0.1"
            for command in (TWISTD, TWIST):
                done = self.run_command(command, "--port", text)
                self.assertEqual(1, done.returncode)
                self.assertIn(text, done.stdout + done.stderr)

    def test_observer_that_does_not_open(self) -> None:
        """A file that can't be opened, which only the start can tell, ends it with one last line and status 1."""
        for command, stream in ((TWISTD, "stdout"), (TWIST, "stderr")):
            done = self.run_command(command, "--port", LOOPBACK, "--observer", "file:/proc/x")
            text = getattr(done, stream)
            self.assertEqual(1, done.returncode, text)
            self.assertIn("observer file: '/proc/x' can't be opened for appending", text.splitlines()[-1])
            self.assertNotIn("Traceback", text)
