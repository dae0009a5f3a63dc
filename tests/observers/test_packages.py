"""Packages that only some observers need."""

from __future__ import annotations

from importlib import import_module, metadata
from unittest.mock import patch

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import ConfigError
from webhookrx.observers.packages import package_for


def load(requirement: str, module: str = "json") -> None:
    """Import a module that needs a package."""
    with package_for("kafka", requirement):
        import_module(module)


class PackageForTests(SynchronousTestCase):
    """A sentence where the package can't be used."""

    def test_missing(self) -> None:
        """A missing package is named, with what installs it; nothing is imported."""
        error = self.assertRaises(ConfigError, load, "no-such-package>=2.16", "no.such.module")

        self.assertEqual(
            "observer 'kafka' needs the package no-such-package: pip install 'no-such-package>=2.16'", str(error)
        )

    def test_option(self) -> None:
        """An option that alone needs the package is named."""

        def use() -> None:
            with package_for("s3", "no-such-package>=26", "format=parquet"):
                pass

        error = self.assertRaises(ConfigError, use)

        self.assertIn("observer 's3': format=parquet needs the package no-such-package", str(error))

    def test_broker(self) -> None:
        """A broker to relay from is called so."""

        def load_broker() -> None:
            with package_for("redis", "no-such-package>=8", kind="broker"):
                raise AssertionError("it goes on")

        error = self.assertRaises(ConfigError, load_broker)
        self.assertIn("broker 'redis' needs the package no-such-package", str(error))

    def test_extras_of_package(self) -> None:
        """What is installed may need an extra of the package, which is a part of the hint."""
        error = self.assertRaises(ConfigError, load, "no-such-package[binary]>=3")

        self.assertIn("needs the package no-such-package: pip install 'no-such-package[binary]>=3'", str(error))

    def test_versions(self) -> None:
        """An older version is refused with its number; the same and newer ones are taken."""
        table = {"2.15.9": False, "2.9": False, "1": False, "2.16": True, "2.16.0": True, "2.16.1": True, "10.0": True}
        for installed, is_taken in table.items():
            with self.subTest(installed), patch.object(metadata, "version", return_value=installed):
                if is_taken:
                    load("package>=2.16")
                else:
                    error = self.assertRaises(ConfigError, load, "package>=2.16")
                    self.assertIn(f"needs a newer package than {installed}: pip install 'package>=2.16'", str(error))

    def test_zeros(self) -> None:
        """A version that leaves out a zero is the same one."""
        with patch.object(metadata, "version", return_value="3"):
            load("package>=3.0.0")

    def test_broken(self) -> None:
        """A package that is there but can't be imported is reported with the reason."""
        error = self.assertRaises(ConfigError, load, "twisted>=26", "no_such_module_of_ours")

        self.assertIn("observer 'kafka' can't import the package twisted, though it is installed", str(error))
        self.assertIn("no_such_module_of_ours", str(error))

    def test_there(self) -> None:
        """A package that is there is imported."""
        load("twisted>=26.10", "twisted")
