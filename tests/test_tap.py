"""
Tests for L{webhookrx.tap}.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib import metadata
from io import BytesIO, StringIO, TextIOWrapper
from unittest import mock

from twisted.application.service import IService
from twisted.application.twist._options import TwistOptions
from twisted.plugin import getPlugins
from twisted.python.usage import UsageError
from twisted.scripts.twistd import ServerOptions
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.config.starting import LOOPBACK, write_text
from webhookrx import tap
from webhookrx.config.options import OPTIONS
from webhookrx.errors import ConfigError
from webhookrx.service import service
from webhookrx.settings import Observer, Settings
from webhookrx.tap import STDERR_LOG, Options, makeService
from webhookrx.version import version_line

SECRET = "c4nary"


def parsed(*arguments: str) -> Options:
    """Return the options of these arguments."""
    options = Options()
    options.parseOptions(arguments)
    return options


class OptionsTests(SynchronousTestCase):
    """
    Tests for L{Options}.
    """

    def assert_usage_error(self, fragment: str, *arguments: str) -> None:
        """The arguments are refused with a text that shows no token."""
        text = str(self.assertRaises(UsageError, parsed, *arguments))
        self.assertIn(fragment, text)
        self.assertNotIn(SECRET, text)

    def test_settings(self) -> None:
        """Options become frozen settings: repeated ones in their order, flags without a value."""
        options = parsed(
            "-p", LOOPBACK, "--port=unix:x", "--source", "webhook-json", "-o", "stdout", "--include-request-headers"
        )
        (source,) = options.settings.sources
        self.assertEqual([LOOPBACK, "unix:x"], [listener.text for listener in source.listeners])
        self.assertEqual(("webhook-json", True), (source.variant, source.include_request_headers))
        self.assertEqual(["stdout"], [observer.text for observer in options.settings.observers])

    def test_underscores(self) -> None:
        """Names may be written with _, or cut short; values stay as they are."""
        options = parsed("--include_request_headers", "--proxy_h", "x_y", "--paths", "/a_b", "--limit=header_time=2s")
        (source,) = options.settings.sources
        self.assertEqual((True, "x_y", ("/a_b",)), (source.include_request_headers, source.proxy_header, source.paths))
        self.assertEqual(2.0, options.settings.limits.header_time)
        self.assert_usage_error('"--a_b" can never match', "--paths", "--a_b")

    def test_unknown_option(self) -> None:
        """An unknown option is an error that names the nearest, and shows nothing that may be a token."""
        cases = {
            "--paht": 'There is no option --paht. Did you mean "--paths"?',
            "--threads=3": "There is no option --threads.",
            "--regulations": "There is no option --regulations.",
            "--route-name=x": "There is no option --route-name.",
            f"--auth-token{SECRET}": "There is no option --auth-token…",
            f"--auth_token:{SECRET}": "There is no option --auth_token…",
            f"--tokens={SECRET}": "There is no option --tokens.",
            "--tls-c": "--tls-c is short for several options: --tls-cert-file, --tls-ca-file, --tls-ca-dir.",
            "-x": "option -x not recognized",
        }
        for argument, fragment in cases.items():
            self.assert_usage_error(fragment, argument)

    def test_missing_and_unwanted_values(self) -> None:
        """An option without its value, and a flag with one, are errors."""
        self.assert_usage_error("option --port requires argument", "--port")
        self.assert_usage_error("option -p requires argument", "-p")
        self.assert_usage_error("option --check must not have an argument", f"--check={SECRET}")

    def test_left_over(self) -> None:
        """What is no option is an error; it is not shown where it may be half of a token."""
        self.assert_usage_error('left over is "/b"', "--paths", "/a", "/b")
        self.assert_usage_error("left over is something else", "--auth-token", "x", SECRET, "--check")
        self.assert_usage_error('left over is "x"', "--", "x")

    def test_problem(self) -> None:
        """All problems of the settings are one usage error, each with option and place."""
        self.assert_usage_error('command line: --port: "abc" is of no known kind', "--port", "abc", "--ack", "x")
        self.assert_usage_error('command line: --ack: "x" is not one of', "--port", "abc", "--ack", "x")

    def test_problem_of_an_observer(self) -> None:
        """What the observer itself finds wrong with its spec is a usage error too."""
        self.assert_usage_error("--observer", "--observer", "file")
        self.assert_usage_error("--observer", "--observer", "observer:no.such.module.name")

    def test_no_secret(self) -> None:
        """No representation of the options shows a token."""
        options = parsed("--auth-token", SECRET, "--port", LOOPBACK)
        for text in (repr(options), str(options), repr(options.given()), repr(options.settings), repr(vars(options))):
            self.assertNotIn(SECRET, text)

    def test_help(self) -> None:
        """The help names every option, in the words of the table, and no other program."""
        text = str(Options())
        for option in OPTIONS:
            self.assertIn(f"--{option.name}", text)
        self.assertIn("Receives log messages by HTTP POST", text)

    def test_version(self) -> None:
        """The version is webhookrx's own."""
        self.patch(sys, "stdout", StringIO())
        self.assertRaises(SystemExit, parsed, "--version")
        self.assertEqual(f"{version_line()}\n", sys.stdout.getvalue())

    def test_shell_completion(self) -> None:
        """Every option can be completed by zsh, choices with their words."""
        options = Options()
        output = BytesIO()
        options._shellCompFile = TextIOWrapper(output)
        self.assertRaises(SystemExit, options.parseOptions, ["", "--_shell-completion", "zsh:1"])
        code = output.getvalue().decode()
        for option in OPTIONS:
            self.assertIn(f"--{option.name}", code)
        self.assertIn("(durable written queued)", code)


class RereadTests(SynchronousTestCase):
    """
    The same command line, read again for a reload.
    """

    def test_files(self) -> None:
        """What is read is what the files hold by then; the command line stays."""
        token = write_text(self.mktemp(), "token", "one\n")
        options = parsed("--port", LOOPBACK, "--auth-token-file", token)
        self.assertEqual(options.settings, options.reread(options.settings))
        write_text(os.path.dirname(token), "token", "two\n")
        (source,) = options.reread(options.settings).sources
        self.assertEqual((b"two",), source.auth_tokens)
        self.assertEqual([LOOPBACK], [listener.text for listener in source.listeners])

    def test_mistakes(self) -> None:
        """What is wrong by then is an error that says where."""
        path = write_text(self.mktemp(), "x.yaml", "ack: durable\n")
        options = parsed("--port", LOOPBACK, "--config", path)
        write_text(os.path.dirname(path), "x.yaml", "ack: nonsense\n")
        error = self.assertRaises(ConfigError, options.reread, options.settings)
        self.assertIn(f"{path}:1: ", str(error))
        self.assertEqual("durable", options.settings.ack)

    def test_elsewhere(self) -> None:
        """Relative names start where the process was started, wherever twistd has gone since."""
        directory = os.path.abspath(self.mktemp())
        write_text(directory, "x.yaml", "auth_token_file: tokens")
        write_text(directory, "tokens", "one")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(directory)
        options = parsed("--port", LOOPBACK, "--config", "x.yaml")
        os.chdir("/")
        write_text(directory, "tokens", "two")
        self.assertEqual((b"two",), options.reread(options.settings).sources[0].auth_tokens)
        self.assertEqual("/", os.getcwd())
        shutil.rmtree(directory)
        self.assertIn(directory, str(self.assertRaises(ConfigError, options.reread, options.settings)))

    def test_standard_output(self) -> None:
        """Messages can't go to standard output when they did not at the start: the log, or nothing, may be there."""
        for before, after, allowed in (
            ("file:x", "stdout", False),
            ("file:x", "file:y", True),
            ("stdout", "stdout:format=template:template=x", True),
            ("stdout", "file:x", True),
        ):
            path = write_text(self.mktemp(), "x.yaml", f"observers: ['{before}']\n")
            options = parsed("--port", LOOPBACK, "--config", path)
            write_text(os.path.dirname(path), "x.yaml", f"observers: ['{after}']\n")
            if allowed:
                self.assertEqual([after], [observer.text for observer in options.reread(options.settings).observers])
            else:
                self.assertIn("restart", str(self.assertRaises(ConfigError, options.reread, options.settings)))

    def test_standard_output_behind_another(self) -> None:
        """An observer behind another one counts as well."""
        inner = Observer("stdout", "stdout")
        for observers, writes in (
            ((inner,), True),
            ((Observer("file:x", "file"), Observer("spool:x", "spool", inner=inner)), True),
            ((Observer("spool:x", "spool", inner=Observer("file:x", "file")),), False),
        ):
            self.assertEqual(writes, tap._writes_to_stdout(Settings((), observers)))


class CheckTests(SynchronousTestCase):
    """
    Tests for C{--check}.
    """

    def check(self, *arguments: str) -> tuple[object, str, str]:
        """Return exit status, standard output and standard error."""
        self.patch(sys, "stdout", StringIO())
        self.patch(sys, "stderr", StringIO())
        status = self.assertRaises(SystemExit, parsed, "--check", *arguments).code
        return status, sys.stdout.getvalue(), sys.stderr.getvalue()

    def test_good(self) -> None:
        """What is good is printed, and the status is 0."""
        status, out, err = self.check("--auth-token", SECRET, "--port", LOOPBACK)
        self.assertEqual((0, ""), (status, err))
        self.assertIn("The configuration is good.", out)
        self.assertNotIn(SECRET, out)

    def test_bad(self) -> None:
        """What is wrong goes to standard error, and the status is 1."""
        path = write_text(self.mktemp(), "x.yaml", f"auth_tokn: {SECRET}\n")
        status, out, err = self.check("--config", path)
        self.assertEqual((1, ""), (status, out))
        self.assertIn(f'error: {path}:1: There is no key "auth_tokn"', err)
        self.assertNotIn(SECRET, err)

    def test_missing_package(self) -> None:
        """A package that an observer needs is named with what installs it, behind a spool, too."""
        self.patch(metadata, "version", mock.Mock(side_effect=metadata.PackageNotFoundError))
        for before in ("", f"spool:{os.path.abspath(self.mktemp())}:observer="):
            status, out, err = self.check("--port", LOOPBACK, "--observer", f"{before}kafka:kafka://127.0.0.1/logs")
            self.assertEqual((1, ""), (status, out))
            self.assertIn(
                "observer 'kafka' needs the package confluent-kafka: pip install 'confluent-kafka>=2.16'", err
            )

    def test_promises(self) -> None:
        """What promises less than asked for, and on which word messages leave a spool, is a warning."""
        spool = f"spool:{os.path.abspath(self.mktemp())}"
        nats = "nats:nats://127.0.0.1:4222/logs"
        for observer, warning in (
            (nats, f"--ack durable is more than observer {nats} can promise: its word means 'written' (JetStream "),
            (f"{spool}:observer={nats}", "leaves the spool on the word 'written' (JetStream acknowledges before it"),
        ):
            status, out, err = self.check("--port", LOOPBACK, "--observer", observer)
            self.assertEqual((0, ""), (status, err))
            self.assertIn(warning, "".join(line for line in out.splitlines() if line.startswith("warning: ")))
        status, out, err = self.check("--port", LOOPBACK, "--observer", f"{spool}:require=durable:observer={nats}")
        self.assertEqual((1, ""), (status, out))
        self.assertIn("require=durable is more than nats:nats://127.0.0.1:4222/logs can promise", err)
        _, out, _ = self.check("--port", LOOPBACK, "--observer", f"{nats}:synced=yes")
        self.assertNotIn("can promise", out)


class CommandTests(SynchronousTestCase):
    """
    What a command that cannot start prints, and how it ends.
    """

    def ended(self, *arguments: str) -> tuple[object, str, str]:
        """Return the status with which twistd ends, and what it has printed."""
        self.patch(sys, "stdout", StringIO())
        self.patch(sys, "stderr", StringIO())
        status = self.assertRaises(SystemExit, ServerOptions().parseOptions, arguments).code
        return status, sys.stdout.getvalue(), sys.stderr.getvalue()

    def test_options(self) -> None:
        """A wrong option is one line and status 78, and with C{--check} 1."""
        line = 'error: There is no option --prot. Did you mean "--port"?\n'
        self.assertEqual((78, "", line), self.ended("-n", "webhookrx", "--prot", "1"))
        self.assertEqual(
            (1, "", f"{line}The configuration can't be used.\n"), self.ended("webhookrx", "--check", "--prot")
        )

    def test_settings(self) -> None:
        """Wrong settings are a line each, and status 78."""
        status, out, err = self.ended("-n", "webhookrx", "--ack", "disk", "--port", "abc")
        self.assertEqual((78, "", 2), (status, out, err.count("\n")))
        self.assertTrue(all(line.startswith("error: command line: --") for line in err.splitlines()), err)

    def test_files_of_twistd(self) -> None:
        """A pid file or log that twistd could not write is said before it tries."""
        port = ("webhookrx", "--port", LOOPBACK)
        for before, words in (
            (("-n", "--pidfile", "/no/such/pid"), 'pid file "/no/such/pid". It needs none in the foreground'),
            (("--pidfile=", "--logfile", "/no/such/log"), 'log "/no/such/log": name another with --logfile FILE'),
            (("-n", "--pidfile=", "--logfile", "/no/such/log"), 'log "/no/such/log"'),
        ):
            status, out, err = self.ended(*before, *port)
            self.assertEqual((78, "", 1), (status, out, err.count("\n")), err)
            self.assertIn(words, err)
        for before in (
            ("-n", "--pidfile="),
            ("-n", "--pidfile=", "--logfile", "-"),
            ("--pidfile=", "--syslog", "--logfile", "/no/such/log"),
            ("-n", "--pidfile", "/no/such/pid", "--chroot", "/"),
        ):
            ServerOptions().parseOptions([*before, *port])


class StandardOutputTests(SynchronousTestCase):
    """
    Messages on standard output stay apart from the log of the service.
    """

    def under(self, parent: ServerOptions | TwistOptions, *arguments: str) -> ServerOptions | TwistOptions:
        """Parse the options as part of a command's."""
        parent.parseOptions(arguments)
        return parent

    def test_twistd(self) -> None:
        """twistd's log goes to standard error when it would go to standard output, and only then."""
        for before in ((), ("--logfile", "-")):
            parent = self.under(ServerOptions(), "-n", *before, "webhookrx", "-o", "stdout")
            self.assertIs(parent["logger"], _stderr_log())
        for before in (("--logfile", "x.log"), ("--syslog",)):
            self.assertIs(None, self.under(ServerOptions(), "-n", *before, "webhookrx", "-o", "stdout")["logger"])
        self.assertIs(None, self.under(ServerOptions(), "-n", "webhookrx", "-o", "file:x")["logger"])

    def test_logger_of_ones_own(self) -> None:
        """A logger that the user names stays."""
        name = f"{__name__}.parsed"
        parent = self.under(ServerOptions(), "-n", "--logger", name, "webhookrx", "-o", "stdout")
        self.assertIs(parsed, parent["logger"])

    def test_background(self) -> None:
        """twistd in the background has no standard output, so that the observer is refused there."""
        self.patch(sys, "stderr", StringIO())
        self.assertRaises(SystemExit, self.under, ServerOptions(), "webhookrx", "-o", "stdout")
        self.assertIn("twistd -n webhookrx", sys.stderr.getvalue())
        # twistd's own --debug would turn the debugger on for all tests that follow.
        debugging = ServerOptions()
        debugging["debug"] = True
        self.under(debugging, "webhookrx", "-o", "stdout")
        self.under(ServerOptions(), "webhookrx", "-o", "file:x")

    def test_twist(self) -> None:
        """twist's log goes to standard error in place of standard output."""
        parent = TwistOptions()
        self.patch(parent, "installReactor", lambda name: None)
        self.assertIs(sys.stderr, self.under(parent, "webhookrx", "-o", "stdout")["logFile"])

    def test_log_file_of_twist(self) -> None:
        """A log file that the user names stays."""
        parent = TwistOptions()
        self.patch(parent, "installReactor", lambda name: None)
        self.under(parent, "--log-file", self.mktemp(), "webhookrx", "-o", "stdout")
        self.addCleanup(parent["logFile"].close)
        self.assertNotIn(parent["logFile"], (sys.stdout, sys.stderr))


def _stderr_log() -> object:
    module, _, name = STDERR_LOG.rpartition(".")
    __import__(module)
    return getattr(sys.modules[module], name)


class MakeServiceTests(SynchronousTestCase):
    """
    Tests for L{makeService} and the plugin.
    """

    def test_service(self) -> None:
        """Validated options become a service that has not opened anything."""
        made = makeService(parsed("--port", LOOPBACK, "--observer", f"file:{self.mktemp()}"))
        verifyObject(IService, made)
        self.assertFalse(made.running)

    def test_what_changed_meanwhile(self) -> None:
        """What fails only now ends the process with one line, not a traceback."""

        def fail(settings: Settings, *, reread: object) -> None:
            raise ConfigError("It has gone.", option="--port")

        self.patch(service, "build_service", fail)
        self.patch(sys, "stderr", StringIO())
        error = self.assertRaises(SystemExit, makeService, parsed("--port", LOOPBACK))
        self.assertEqual((78, "error: --port: It has gone.\n"), (error.code, sys.stderr.getvalue()))

    def test_plugin(self) -> None:
        """Twisted finds one plugin of that name, and it leads here."""
        from twisted.application.service import IServiceMaker

        (maker,) = [plugin for plugin in getPlugins(IServiceMaker) if plugin.tapname == "webhookrx"]
        self.assertIs(tap.Options, maker.options)
        self.assertIs(tap.makeService, maker.makeService)
