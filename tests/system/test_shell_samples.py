"""
Tests for the samples in C{etc/} that other programs read: C{logrotate} and C{bash}.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

from twisted.trial.unittest import SkipTest, SynchronousTestCase

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS = 30


def tool(name: str) -> str:
    """Return the path of a command, or skip the test that needs it."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if path is None:
        raise SkipTest(f"{name} is not installed")
    return path


class LogrotateTests(SynchronousTestCase):
    """C{etc/logrotate.d/webhookrx}."""

    def test_rotates(self) -> None:
        """logrotate moves a file of messages away, makes no new one, and then has the service reopen it."""
        logrotate = tool("logrotate")
        # Not below trial's own directory, which others may be able to write to; logrotate would refuse it.
        directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, directory)
        messages, signalled = os.path.join(directory, "messages.jsonl"), os.path.join(directory, "signalled")
        with open(messages, "w") as file:
            file.write("{}\n")
        with open(os.path.join(ROOT, "etc", "logrotate.d", "webhookrx")) as sample:
            text = sample.read()
        reload = "systemctl kill --kill-whom=main --signal=HUP webhookrx.service"
        self.assertIn(reload, text)
        text = text.replace("/var/lib/webhookrx", directory).replace(reload, f"cp {messages}.1 {signalled}")
        path = os.path.join(directory, "logrotate.conf")
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o644)

        done = subprocess.run(
            [logrotate, "--force", "--state", os.path.join(directory, "state"), path],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual(
            ["logrotate.conf", "messages.jsonl.1", "signalled", "state"], sorted(os.listdir(directory)), done.stdout
        )


class CompletionTests(SynchronousTestCase):
    """C{etc/completion/webhookrx.bash}."""

    def complete(self, *words: str) -> list[str]:
        """Return what bash would offer for the last of these words."""
        script = (
            'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _webhookrx; '
            '((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}"; complete -p twistd >/dev/null'
        )
        done = subprocess.run(
            [tool("bash"), "-c", script, os.path.join(ROOT, "etc", "completion", "webhookrx.bash"), *words],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return done.stdout.split()

    def test_complete(self) -> None:
        """Options are offered behind the word webhookrx, choices and limits behind their options."""
        for words, offered in (
            (("twistd", "-n", "webhookrx", "--tls-ca"), ["--tls-ca-file", "--tls-ca-dir"]),
            (("twistd", "webhookrx", "--ack", ""), ["durable", "written", "queued"]),
            (("twist", "webhookrx", "--limit", "header"), ["header_block=", "headers=", "header_time="]),
            (("twistd", "webhookrx", "--port", ""), []),
            (("twistd", "--lo"), []),
        ):
            self.assertEqual(offered, self.complete(*words), words)
