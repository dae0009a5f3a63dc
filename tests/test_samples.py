"""Tests for the samples in C{etc/}, the package's own files, and the gate, as far as reading them tells."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
from contextlib import redirect_stdout
from datetime import UTC, datetime

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import write_text
from tests.documents import ROOT, read
from tests.system.certificates import self_signed
from tests.system.sandboxed import settings_of
from webhookrx.commands import main as command
from webhookrx.config.limits import LIMITS
from webhookrx.config.option_reader import Origin, RawValue
from webhookrx.config.options import OPTIONS
from webhookrx.config.resolve import Environment, Resolved, resolve
from webhookrx.quantities import parse_duration
from webhookrx.service import known_observers
from webhookrx.settings import Limits
from webhookrx.tap import STDERR_LOG

UNIT = str(ROOT / "etc" / "systemd" / "webhookrx.service")


def load(path: str, **environ: str) -> Resolved:
    """Return what a configuration file comes to, with these environment variables."""
    environment = Environment(environ, datetime.now(UTC), known_observers.known(with_promises=True))
    return resolve({"config": (RawValue(path, Origin(("--config",), "test")),)}, environment)


class ConfigurationTests(SynchronousTestCase):
    """C{etc/webhookrx.yaml}."""

    def test_loads(self) -> None:
        """It loads without a warning, and its two sources share a port on the loopback address."""
        settings = load(str(ROOT / "etc" / "webhookrx.yaml")).settings
        self.assertEqual((), settings.warnings)
        self.assertEqual(["plain", "alerts"], [source.name for source in settings.sources])
        ports = {listener.socket for source in settings.sources for listener in source.listeners}
        self.assertEqual({"tcp:8181:interface=127.0.0.1:backlog=4096"}, ports)

    def test_defaults(self) -> None:
        """The limits that it shows are the defaults."""
        self.assertEqual(Limits(), load(str(ROOT / "etc" / "webhookrx.yaml")).settings.limits)

    def test_commented_observers(self) -> None:
        """What is commented out under observers loads too, where its directory is there."""
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        text = read("etc/webhookrx.yaml").replace("/var/log/webhookrx", directory)
        block = re.search(r"^# observers:\n(?:#   - .*\n)+", text, re.MULTILINE)
        assert block is not None
        path = os.path.join(directory, "webhookrx.yaml")
        with open(path, "w") as file:
            file.write(text.replace(block[0], re.sub("^# ", "", block[0], flags=re.MULTILINE)))
        self.assertEqual(["file", "file"], [observer.name for observer in load(path).settings.observers])


class SenderSampleTests(SynchronousTestCase):
    """C{etc/senders.yaml}, and the drop-in that gives its secrets to the service."""

    CREDENTIALS = "/run/credentials/webhookrx.service"
    CONTENTS = (
        ("github", "2026 = s3cret\n"),
        ("stripe", "2026 = whsec_s3cret\n"),
        ("zoom", "2026 = s3cret\n"),
        ("logpush", "zone-a = t0ken\nzone-b = t0ken2\n"),
        ("firehose", "2026 = s3cret\n"),
    )

    def setUp(self) -> None:
        """Write what the sample names, and the sample with the names of these files."""
        self.directory = os.path.abspath(self.mktemp())
        os.mkdir(self.directory)
        for name, text in self.CONTENTS:
            write_text(self.directory, name, text)
        for path, name in zip(self_signed("host").write(self.directory, "host"), ("key.pem", "chain.pem"), strict=True):
            os.chmod(path, 0o600)
            os.rename(path, os.path.join(self.directory, name))
        self.text = read("etc/senders.yaml").replace(self.CREDENTIALS, self.directory)

    def resolved(self, text: str) -> Resolved:
        """Return what a configuration comes to."""
        return load(write_text(self.directory, "senders.yaml", text), STATE_DIRECTORY=self.directory)

    def test_loads(self) -> None:
        """It loads without a warning; each source has its sender, and what that needs."""
        settings = self.resolved(self.text).settings
        self.assertEqual((), settings.warnings)
        guards = {source.name: source.guard for source in settings.sources}
        self.assertEqual([name for name, _ in self.CONTENTS], list(guards))
        found = {
            name: (guard.sender and guard.sender.id, guard.verify, guard.handshake, guard.split, guard.idempotency)
            for name, guard in guards.items()
            if guard is not None
        }
        day = 86400.0
        self.assertEqual(
            {
                "github": ("github", "required", False, "no", day),
                "stripe": ("stripe", "required", False, "no", day),
                "zoom": ("zoom", "required", True, "no", None),
                "logpush": ("cloudflare-logpush", "off", True, "yes", None),
                "firehose": ("aws-firehose", "required", False, "yes", day),
            },
            found,
        )
        logpush = guards["logpush"]
        assert logpush is not None
        self.assertEqual(["zone-a", "zone-b"], [token.name for token in logpush.tokens])

    def test_networks(self) -> None:
        """What is commented out on networks loads, too."""
        networks = write_text(self.directory, "github-meta.json", '{"hooks": ["192.0.2.0/24"]}')
        text = re.sub(r"^# (networks:|  github: )", r"\1", self.text, flags=re.MULTILINE)
        text = text.replace("# allow: [github]", "allow: [github]").replace("/etc/webhookrx/github-meta.json", networks)
        guard = self.resolved(text).settings.sources[0].guard
        assert guard is not None
        self.assertEqual({"github": ("192.0.2.0/24",)}, guard.allow)

    def test_drop_in(self) -> None:
        """The drop-in has a credential for each file that the sample names, and says what stands for a missing one."""
        settings = settings_of(str(ROOT / "etc" / "systemd" / "webhookrx.service.d" / "senders.conf"))
        loaded = {value.partition(":")[0] for value in settings["LoadCredential"]}
        self.assertEqual({name for name, _ in self.CONTENTS}, loaded)
        self.assertEqual(loaded, {value.partition(":")[0] for value in settings["SetCredential"]})
        named = set(re.findall(rf"{self.CREDENTIALS}/([\w.]+)", read("etc/senders.yaml")))
        of_unit = {value.partition(":")[0] for value in settings_of(UNIT)["LoadCredential"]}
        self.assertEqual(named - {"key.pem", "chain.pem"}, loaded)
        self.assertTrue({"key.pem", "chain.pem"} <= of_unit)


class UnitTests(SynchronousTestCase):
    """C{etc/systemd/webhookrx.service}, beside what C{tests.system.test_systemd_unit} runs."""

    def setUp(self) -> None:
        """Read it."""
        self.settings = settings_of(UNIT)

    def test_command(self) -> None:
        """It runs twistd in the foreground, with our log on standard error and the sample's place."""
        self.assertEqual(
            f"twistd -n --pidfile= --logger {STDERR_LOG} webhookrx --config /etc/webhookrx/webhookrx.yaml",
            self.settings["ExecStart"][0].removeprefix("/opt/webhookrx/bin/"),
        )

    def test_limits(self) -> None:
        """It has room for all connections, and time for the longest stop by default."""
        limits = Limits()
        self.assertGreater(int(self.settings["LimitNOFILE"][0]), limits.connections + 100)
        self.assertEqual(["0"], self.settings["LimitCORE"])
        self.assertGreater(parse_duration(self.settings["TimeoutStopSec"][0]), limits.answer_time + 10)

    def test_credentials(self) -> None:
        """Each credential has something to stand for it when its file is not there."""
        loaded = {value.partition(":")[0] for value in self.settings["LoadCredential"]}
        self.assertEqual({"token", "key.pem", "chain.pem"}, loaded)
        self.assertEqual(loaded, {value.partition(":")[0] for value in self.settings["SetCredential"]})


class CompletionTests(SynchronousTestCase):
    """C{etc/completion/webhookrx.bash}."""

    def test_complete(self) -> None:
        """It knows every option, every choice and every limit, and no others."""
        text = read("etc/completion/webhookrx.bash")
        names = re.search(r'compgen -W "(--port .*?)"', text, re.DOTALL)
        assert names is not None
        self.assertEqual([f"--{option.name}" for option in OPTIONS] + ["--help", "--version"], names[1].split())
        limits = re.search(r'limits="(.*?)"', text, re.DOTALL)
        assert limits is not None
        self.assertEqual(list(LIMITS), limits[1].split())
        for option in OPTIONS:
            if option.choices:
                self.assertIn(f'--{option.name}) COMPREPLY=($(compgen -W "{" ".join(option.choices)}"', text)

    def test_command(self) -> None:
        """It knows every subject, verb and option of C{webhookrx}, and no others."""
        text = read("etc/completion/webhookrx.bash")
        (subjects,) = re.findall(r'COMP_CWORD == 1\)\).*?compgen -W "(.*?)"', text, re.DOTALL)
        self.assertEqual(self.options() | command.SUBJECTS.keys(), set(subjects.split()))
        verbs = dict(re.findall(r'^ +(\w+)\) verbs="(.*?)"', text, re.MULTILINE))
        offered = dict(re.findall(r'^ +"([\w ]+)"\) options="(.*?)" ;;', text, re.MULTILINE))
        self.assertEqual("check", verbs.pop("config"))
        commands = set(command.SUBJECTS) - verbs.keys() - {"run", "config"}
        for subject, words in verbs.items():
            self.assertEqual(re.findall(r"^ {4}(\w+)(?: |$)", self.help(subject), re.MULTILINE), words.split())
            commands |= {f"{subject} {verb}" for verb in words.split()}
        self.assertEqual(commands, offered.keys())
        for words, options in offered.items():
            self.assertEqual(self.options(*words.split()), set(options.split()), words)

    def test_receiver(self) -> None:
        """It offers the options of a receiver where C{webhookrx} takes them."""
        for words, offered in (
            (("run", "--rou"), "--router-name --router-label"),
            (("--port", "1", "--ack", "d"), "durable"),
            (("config", "check", "x", "--wo"), "--workers"),
            (("config", "che"), "check"),
            (("--ver",), "--version"),
        ):
            quoted = " ".join(map(shlex.quote, ("webhookrx", *words)))
            script = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _webhookrx_command; echo ${{COMPREPLY[@]}}"
            done = subprocess.run(
                ["bash", "-c", f". etc/completion/webhookrx.bash; {script}"],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            )
            self.assertEqual((offered, ""), (done.stdout.strip(), done.stderr), words)

    def options(self, *words: str) -> set[str]:
        """Return the long options that a command has."""
        return set(re.findall(r"--[a-z][a-z-]*", self.help(*words)))

    def help(self, *words: str) -> str:
        """Return what a command says of itself."""
        out = io.StringIO()
        with redirect_stdout(out):
            self.assertRaises(SystemExit, command.main, [*words, "--help"])
        return out.getvalue()


class GateTests(SynchronousTestCase):
    """C{.ci/run}."""

    def test_tools(self) -> None:
        """It installs every tool that a test looks for."""
        wanted: set[str] = set()
        for path in (ROOT / "tests").rglob("*.py"):
            wanted |= set(re.findall(r"\b(?:tool|which)\(\"([\w.-]+)\"\)", path.read_text()))
        listed = re.search(r"tools=\((.*?)\)", read(".ci/run"), re.DOTALL)
        assert listed is not None
        self.assertIn("curl", wanted)
        # Debian lets a system have one log daemon only: rsyslogd, unless syslog-ng is there.
        # Node would be installed for one test, which says so where it is not there.
        there = {"true", "bash", "syslog-ng", "node"}
        self.assertEqual(set(), wanted - {entry.partition(":")[0] for entry in listed[1].split()} - there)

    def test_browser(self) -> None:
        """Every module of tests that drives a browser is in the step that installs it."""
        driven = {
            f"tests.system.{path.stem}"
            for path in (ROOT / "tests/system").glob("test_*.py")
            if "from tests.system.browser import" in path.read_text()
        }
        listed = re.search(r"browser_tests=\((.*?)\)", read(".ci/run"), re.DOTALL)
        assert listed is not None
        self.assertEqual(driven, set(listed[1].split()))
