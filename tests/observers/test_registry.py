"""Observer names, our own and those of third parties."""

from __future__ import annotations

import os
import sys

from twisted.trial.unittest import SynchronousTestCase

import twisted.plugins
from webhookrx.config.observers import ObserverSpec
from webhookrx.errors import ConfigError
from webhookrx.observers import registry
from webhookrx.observers.file import FileObserver
from webhookrx.observers.log_observer import LogObserver
from webhookrx.observers.stdout import StdoutObserver
from webhookrx.settings import Observer
from webhookrx.testing import MemoryObserver, make_message

#: The names of the package itself.
OURS = registry.known_names()

PLUGIN = """
from twisted.logger import Logger
from twisted.plugin import IPlugin
from zope.interface import implementer
from webhookrx.errors import ConfigError
from webhookrx.interfaces import IObserverFactory
from webhookrx.testing import MemoryObserver

@implementer(IPlugin, IObserverFactory)
class Factory:
    def __init__(self, name):
        self.name = name

    def build(self, spec, args, options, ack):
        if "error" in options:
            raise ConfigError("no such error")
        if "bug" in options:
            raise KeyError("bug")
        if "nothing" in options:
            return object()
        return MemoryObserver(f"{self.name}:{':'.join(args)}", promise=ack)

Logger().info("plugins may log while they are looked for")
carrier = Factory("carrier-pigeon")
usurper = Factory("file")
"""

NAMELESS = """
from twisted.plugin import IPlugin
from zope.interface import implementer
from webhookrx.interfaces import IObserverFactory

@implementer(IPlugin, IObserverFactory)
class Factory:
    pass

factory = Factory()
"""


class RegistryTestCase(SynchronousTestCase):
    """Adds a directory of plugins."""

    def setUp(self) -> None:
        """Make an empty plugin directory that Twisted looks into."""
        self.directory = os.path.abspath(self.mktemp())
        os.mkdir(self.directory)
        self.patch(twisted.plugins, "__path__", [self.directory, *twisted.plugins.__path__])
        self.addCleanup(self.forget_modules)

    def forget_modules(self) -> None:
        """Let no later test see the modules of this one."""
        for name in ("webhookrx_test_plugin", "webhookrx_test_broken"):
            sys.modules.pop(f"twisted.plugins.{name}", None)
            twisted.plugins.__dict__.pop(name, None)

    def add_plugin(self, text: str, name: str = "webhookrx_test_plugin") -> None:
        """Drop a module into the directory."""
        with open(os.path.join(self.directory, f"{name}.py"), "w") as file:
            file.write(text)


class SpecTests(SynchronousTestCase):
    """What observers declare of their spec strings."""

    def test_files(self) -> None:
        """Files are options, secrets are files, and no other option is named like a file."""
        for name in registry._BUILT_IN:
            spec = registry.find_spec(name)
            self.assertLessEqual(set(spec.secrets), set(spec.files), name)
            self.assertEqual({option for option in spec.options if option.endswith("_file")}, set(spec.files), name)

    def test_secrets(self) -> None:
        """Keys, tokens and header fields are secrets; certificates are not."""
        self.assertEqual({"token_file", "headers_file", "key_file"}, set(registry.find_spec("http").secrets))
        self.assertEqual({"key_file"}, set(registry.find_spec("syslog").secrets))

    def test_others(self) -> None:
        """An observer of others declares nothing."""
        self.assertEqual(ObserverSpec(), registry.find_spec("carrier-pigeon"))


class BuildTests(RegistryTestCase):
    """From a parsed spec string to an observer."""

    def problem(self, name: str, *args: str, **options: str) -> str:
        """Return why it can't be built."""
        observer = Observer(name, name, args, tuple(options.items()))
        return str(self.assertRaises(ConfigError, registry.build, observer, "durable"))

    def test_built_in(self) -> None:
        """Each of our own names makes its observer, with its spec."""
        path = os.path.join(self.directory, "messages")
        for name, args, kind in (
            ("file", (path,), FileObserver),
            ("stdout", (), StdoutObserver),
            ("observer", ("tests.observers.plain_observers.take",), LogObserver),
        ):
            built = registry.build(Observer(f"{name}:spec", name, args), "written")

            self.assertIsInstance(built, kind)
            self.assertEqual(f"{name}:spec", built.spec)

    def test_options(self) -> None:
        """Options reach the observer."""
        built = registry.build(
            Observer("x", "stdout", (), (("format", "template"), ("template", "<$MESSAGE>"))), "queued"
        )

        self.assertEqual(b"<hello>\n", built.prepare(make_message("hello")))

    def test_unknown_name(self) -> None:
        """An unknown name is quoted, with all that are known and the nearest."""
        problem = self.problem("fil")

        self.assertIn("unknown observer 'fil'", problem)
        self.assertIn(f"known are {', '.join(OURS)}. ", problem)
        self.assertIn('Did you mean "file"?', problem)
        self.assertNotIn("Did you mean", self.problem("xyzzy"))

    def test_unknown_option(self) -> None:
        """An unknown option is named, with all that are known and the nearest; its value is not quoted."""
        problem = self.problem("file", "/x", formt="s3cret")

        self.assertIn('unknown option "formt"', problem)
        self.assertIn("format, min_free, mode, share, template", problem)
        self.assertIn('Did you mean "format"?', problem)
        self.assertNotIn("s3cret", problem)
        self.assertIn('"mode"', self.problem("stdout", mode="0640"))
        self.assertIn("it has no options", self.problem("observer", "x", format="json"))


class PluginTests(RegistryTestCase):
    """Names that third parties add."""

    problem = BuildTests.problem

    def test_plugin(self) -> None:
        """A plugin's name is known and serves its spec strings."""
        self.add_plugin(PLUGIN)

        self.assertEqual(sorted(["carrier-pigeon", *OURS]), registry.known_names())
        built = registry.build(Observer("x", "carrier-pigeon", ("loft", "9")), "written")
        self.assertIsInstance(built, MemoryObserver)
        self.assertEqual(("carrier-pigeon:loft:9", "written"), (built.spec, built.promise))

    def test_our_own_win(self) -> None:
        """A plugin can't take one of our names."""
        self.add_plugin(PLUGIN)
        path = os.path.join(self.directory, "messages")

        self.assertIsInstance(registry.build(Observer("x", "file", (path,)), "durable"), FileObserver)

    def test_plugin_fails(self) -> None:
        """An error of configuration is reported in the words of a plugin; any other one names the plugin."""
        self.add_plugin(PLUGIN)

        self.assertEqual("no such error", self.problem("carrier-pigeon", error="1"))
        self.assertIn("'carrier-pigeon': its plugin failed: KeyError: 'bug'", self.problem("carrier-pigeon", bug="1"))
        self.assertIn("no IMessageObserver", self.problem("carrier-pigeon", nothing="1"))

    def test_plugin_does_not_import(self) -> None:
        """When a name is unknown and a plugin did not import, the error says why."""
        self.add_plugin("import no_such_library", "webhookrx_test_broken")
        problem = self.problem("carrier-pigeon")

        self.assertIn("unknown observer 'carrier-pigeon'", problem)
        self.assertIn("No module named 'no_such_library'", problem)
        self.assertEqual(1, len(self.flushLoggedErrors(ImportError)))

    def test_plugin_without_name(self) -> None:
        """A plugin without a name is reported, too."""
        self.add_plugin(NAMELESS)

        self.assertIn("twisted.plugins.webhookrx_test_plugin: it has no name", self.problem("x"))
        self.assertEqual(OURS, registry.known_names())
