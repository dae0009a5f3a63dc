"""
A start without a command line: options as keywords, a file as text, a fixed clock and a known environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from textwrap import dedent

from webhookrx.config.observers import KnownObservers
from webhookrx.config.option_reader import COMMAND_LINE, ConfigProblems, Origin, RawOptions, RawValue
from webhookrx.config.resolve import Environment, Resolved, resolve
from webhookrx.diagnostics import Diagnostic
from webhookrx.errors import ConfigError
from webhookrx.observers.registry import find_spec
from webhookrx.settings import Observer

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

#: Bound to the loopback interface, on a port of the kernel's choice.
LOOPBACK = "tcp:0:interface=127.0.0.1"


def given(**options: str | Sequence[str]) -> RawOptions:
    """Return options as the command line gives them."""
    layer = {}
    for key, value in options.items():
        name = key.replace("_", "-")
        texts = [value] if isinstance(value, str) else value
        layer[name] = tuple(RawValue(text, Origin((f"--{name}",), COMMAND_LINE)) for text in texts)
    return layer


def check_observer(observer: Observer, ack: str) -> list[str]:
    """Stand in for the registry: C{stdout} takes no argument."""
    if observer.name == "stdout" and observer.args:
        raise ConfigError("The stdout observer takes no path.")
    return []


def start(environ: Mapping[str, str] | None = None, **options: str | Sequence[str]) -> Resolved:
    """Resolve these options."""
    environment = Environment(
        environ={} if environ is None else environ,
        now=NOW,
        observers=KnownObservers(("file", "http", "observer", "spool", "stdout", "syslog"), check_observer, find_spec),
    )
    return resolve(given(**options), environment)


def errors_of(**options: str | Sequence[str]) -> list[Diagnostic]:
    """Return what is wrong with these options; nothing when they are good."""
    try:
        start(**options)
    except ConfigProblems as problems:
        return list(problems.errors)
    return []


def write_text(directory: str, name: str, text: str, mode: int = 0o600) -> str:
    """Write a file whose text is indented as the test is, and return its path."""
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(dedent(text).lstrip("\n"))
    os.chmod(path, mode)
    return path
