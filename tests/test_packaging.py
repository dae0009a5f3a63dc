"""
Tests for what C{setup.cfg} and C{setup.py} say of the tree.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import runpy
import sys
from collections.abc import Callable
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from twisted.trial.unittest import SynchronousTestCase

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

SPEEDUPS = os.path.join(PROJECT, "speedups")

#: Distribution to module, where the names differ.
MODULES = {
    "argon2-cffi": "argon2",
    "confluent-kafka": "confluent_kafka",
    "google-re2": "re2",
    "nats-py": "nats",
    "opentelemetry-proto": "opentelemetry",
    "prometheus-client": "prometheus_client",
    "protobuf": "google",
    "pyopenssl": "OpenSSL",
    "pyyaml": "yaml",
}


def setup_cfg() -> ConfigParser:
    """Return C{setup.cfg}."""
    parser = ConfigParser()
    with open(os.path.join(PROJECT, "setup.cfg"), encoding="utf-8") as file:
        parser.read_file(file)
    return parser


class SetupCfgTests(SynchronousTestCase):
    """
    C{setup.cfg} lists packages by hand; here it is held against the tree.
    """

    def test_packages(self) -> None:
        """Every directory with code is listed, so that none is missing from an installation."""
        found = {"twisted.plugins"}
        for directory, _, names in os.walk(os.path.join(PROJECT, "webhookrx")):
            if any(name.endswith(".py") for name in names):
                found.add(os.path.relpath(directory, PROJECT).replace(os.sep, "."))
        self.assertEqual(found, set(setup_cfg()["options"]["packages"].split()))

    def test_plugin_directory_is_no_package(self) -> None:
        """No __init__.py makes twisted/ ours: it would hide Twisted itself, or our plugin."""
        for directory in ("twisted", "twisted/plugins"):
            self.assertFalse(os.path.exists(os.path.join(PROJECT, directory, "__init__.py")))

    def test_requirements(self) -> None:
        """Every requirement can be imported and has a lower bound, and every import of others is required."""
        required = setup_cfg()["options"]["install_requires"].split()
        names = {re.split(r"[\[>]", line)[0] for line in required}
        for line in required:
            self.assertIn(">=", line)
        modules = {MODULES.get(name, name) for name in names}
        for module in modules:
            self.assertIsNot(None, find_spec(module), module)
        # For those who ask for them.
        extras = setup_cfg()["options.extras_require"]
        lines = f"{extras['stores']}\n{extras['parquet']}\n{extras['console']}".split()
        optional = {MODULES.get(name, name) for name in (re.split(r"[\[>]", line)[0] for line in lines)}
        # cryptography and zope come with twisted[tls], which alone knows which versions fit each other.
        others = imported() - modules - {"cryptography", "zope", "webhookrx"}
        self.assertLessEqual(others, optional)

    def test_packages_of_observers(self) -> None:
        """What an observer says that it needs is what the extras install, for users and for the tests."""
        extras = {name: set(text.split()) for name, text in setup_cfg()["options.extras_require"].items()}
        asked = {
            node.value
            for room in ("observers", "relay")
            for path in Path(PROJECT, "webhookrx", room).rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"[a-z0-9-]+(\[[a-z,]+\])?>=[0-9.]+", node.value)
        }
        self.assertLessEqual({"confluent-kafka>=2.16", "nats-py>=2.16", "redis>=8.1", "psycopg[binary]>=3.3"}, asked)
        self.assertLessEqual(asked, extras["stores"] | extras["parquet"])
        self.assertLessEqual(extras["stores"] | extras["parquet"], extras["test"])
        single = set().union(*(extras[name] for name in ("kafka", "nats", "redis", "postgresql", "s3", "otlp")))
        self.assertEqual(single, extras["stores"])

    def test_extra(self) -> None:
        """What reads OTLP as protobuf is an extra, each requirement with a lower bound, and the tests have it."""
        extras = setup_cfg()["options.extras_require"]
        lines = [line for line in extras["otlp"].splitlines() if line]
        self.assertEqual([line.partition(">=")[0] for line in lines], ["opentelemetry-proto", "protobuf"])
        self.assertTrue(all(">=" in line for line in lines))
        self.assertIn(lines[0], extras["test"].splitlines())


class SetupPyTests(SynchronousTestCase):
    """
    C{setup.py} has what C{setup.cfg} can't say: the module that is compiled.
    """

    def sources(self, *endings: str) -> list[str]:
        """Return the files of C{speedups/} with one of these endings."""
        return sorted(f"speedups/{name}" for name in os.listdir(SPEEDUPS) if name.endswith(endings))

    def run_setup(self, setup: Callable[[list[dict[str, Any]]], object]) -> None:
        """Run it with this in place of setuptools' function."""
        setuptools: Any = ModuleType("setuptools")
        setuptools.Extension = lambda name, sources, **more: {"name": name, "sources": sources, **more}
        setuptools.setup = lambda ext_modules: setup(ext_modules)
        with patch.dict(sys.modules, setuptools=setuptools):
            runpy.run_path(os.path.join(PROJECT, "setup.py"))

    def test_extension(self) -> None:
        """It is optional, is built of every C file, and is built anew when a header changes."""
        made: list[dict[str, Any]] = []
        self.run_setup(made.extend)
        (extension,) = made
        self.assertEqual(("webhookrx._speedups", True), (extension["name"], extension["optional"]))
        self.assertEqual(self.sources(".c"), sorted(extension["sources"]))
        self.assertEqual(self.sources(".h"), sorted(extension["depends"]))

    def test_earlier_build(self) -> None:
        """
        The module of an earlier build is gone before this one begins: setuptools would install it if there is no
        compiler any more. Nothing else is touched.
        """
        checkout = Path(self.mktemp()).absolute()
        package = checkout / "build" / "lib.linux-x86_64-cpython-311" / "webhookrx"
        package.mkdir(parents=True)
        for name in ("_speedups.cpython-311-x86_64-linux-gnu.so", "_speedups.pyi", "speedups.py"):
            (package / name).touch()
        seen: list[str] = []
        with contextlib.chdir(checkout):
            self.run_setup(lambda _: seen.extend(os.listdir(package)))
        self.assertEqual(["speedups.py"], seen)

    def test_size(self) -> None:
        """
        Whoever answers for the C code can read it: 1,200 lines in all and 400 in a file, at most, comments and blank
        lines included.
        """
        lines = {}
        for name in self.sources(".c", ".h"):
            with open(os.path.join(PROJECT, name), encoding="utf-8") as file:
                lines[name] = len(file.readlines())
        self.assertEqual({}, {name: count for name, count in lines.items() if count > 400})
        self.assertLessEqual(sum(lines.values()), 1200)

    def test_nothing_else(self) -> None:
        """No other kind of file lies there, such as one that a build has left."""
        self.assertEqual(self.sources(""), self.sources(".c", ".h"))


def imported() -> set[str]:
    """Return the first names of what webhookrx imports, less the standard library."""
    from sys import stdlib_module_names

    found: set[str] = set()
    for directory, _, names in os.walk(os.path.join(PROJECT, "webhookrx")):
        for name in names:
            if name.endswith(".py"):
                with open(os.path.join(directory, name), encoding="utf-8") as file:
                    found |= set(re.findall(r"^\s*(?:from|import) (\w+)", file.read(), re.MULTILINE))
    return found - stdlib_module_names - {"__future__"}
