"""
Packages that only some observers need: a missing or old one is one sentence that says how to install it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

from webhookrx.errors import ConfigError

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9-]+)(?:\[[a-z0-9,]+\])?>=(?P<version>[0-9]+(?:\.[0-9]+)*)")


@contextmanager
def package_for(name: str, requirement: str, option: str = "", kind: str = "observer") -> Iterator[None]:
    """
    Import modules of a package, and of ours that need it, in the C{with} statement.

    @param name: the first word of the spec string that needs it.
    @param requirement: what pip takes, C{NAME>=VERSION}; it is in the extras of setup.cfg, too.
    @param option: if only that needs it, such as C{encoding=protobuf}.
    @param kind: what the spec string is of: an observer, or a broker to relay from.
    @raise ConfigError: the package is not installed, is older, or can't be imported.
    """
    found = _REQUIREMENT.fullmatch(requirement)
    assert found is not None, requirement
    package = found["name"]
    who = f"{kind} {name!r}{option and f': {option}'}"
    hint = f"pip install '{requirement}'"
    try:
        installed = metadata.version(package)
    except metadata.PackageNotFoundError:
        raise ConfigError(f"{who} needs the package {package}: {hint}") from None
    if _numbers(installed) < _numbers(found["version"]):
        raise ConfigError(f"{who} needs a newer {package} than {installed}: {hint}")
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"{who} can't import the package {package}, though it is installed ({error}): {hint}"
        ) from error


def _numbers(version: str) -> tuple[int, ...]:
    """Return the release of a version, without what may follow it, such as C{rc1}, and without zeros at its end."""
    found = re.match(r"(?:[0-9]+!)?([0-9]+(?:\.[0-9]+)*)", version)
    numbers = [] if found is None else [int(part) for part in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
