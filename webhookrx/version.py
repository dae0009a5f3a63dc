"""
Which version this is.
"""

from __future__ import annotations

from importlib import metadata

from webhookrx.speedups import in_use


def installed_version() -> str:
    """Return the version of the installed distribution."""
    try:
        return metadata.version("webhookrx")
    except metadata.PackageNotFoundError:
        return "(a checkout that is not installed)"


def version_line() -> str:
    """Return the version, and whether the compiled path is in use, for people."""
    return f"webhookrx {installed_version()} ({in_use})"
