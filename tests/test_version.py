"""
Tests for L{webhookrx.version}.
"""

from __future__ import annotations

from importlib import metadata

from twisted.trial.unittest import SynchronousTestCase

from webhookrx import version
from webhookrx.version import installed_version, version_line


class InstalledVersionTests(SynchronousTestCase):
    """
    Tests for L{installed_version}.
    """

    def test_checkout(self) -> None:
        """The version comes from the installed distribution; a checkout that is not installed says so."""
        self.patch(metadata, "version", lambda name: f"{name} 1.2")
        self.assertEqual("webhookrx 1.2", installed_version())

        def not_installed(name: str) -> str:
            raise metadata.PackageNotFoundError(name)

        self.patch(metadata, "version", not_installed)
        self.assertIn("not installed", installed_version())


class VersionLineTests(SynchronousTestCase):
    """
    Tests for L{version_line}.
    """

    def test_line(self) -> None:
        """It has the version and which path is in use."""
        self.patch(metadata, "version", lambda name: "1.2")
        self.patch(version, "in_use", "pure Python: it rains")
        self.assertEqual("webhookrx 1.2 (pure Python: it rains)", version_line())
