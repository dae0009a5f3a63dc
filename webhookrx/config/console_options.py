"""
The options about the console of a receiver.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from webhookrx.config.console_place import console_place
from webhookrx.config.files import check_state_dir, default_state_dir
from webhookrx.config.option_reader import OptionReader
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.settings import AgentSettings

_NEED_CONSOLE: Final = ("console-dir", "console-token-file", "key-directory", "data-directory", "no-console-tap")


def read_console(options: OptionReader, environ: Mapping[str, str]) -> AgentSettings | None:
    """
    Return the console of a receiver; None without one. Mistakes are noted.

    @param options: those of the service.
    @param environ: environment variables.
    """
    url = options.parsed("console", _console_url)
    options.show("console", url or "none")
    if not options.raw("console"):
        for name in _NEED_CONSOLE:
            if options.raw(name):
                options.warn(name, "It is not used without --console.")
            options.show(name, "none")
        return None
    if options.raw("rules"):
        options.error("console", "It excludes --rules: a router has its rules from one of them.")
    directory = _directory(options, environ)
    token_file = options.path("console-token-file")
    keys, data = options.paths("key-directory"), options.paths("data-directory")
    tap = not options.flag("no-console-tap", False)
    if url is None or directory is None:
        return None
    defaults = AgentSettings(url, directory)
    # Mistakes in them are found where they are used.
    labels = dict(value.text.split("=", 1) for value in options.raw("router-label") if "=" in value.text)
    names = options.raw("router-name")
    name = names[0].text if names else ""
    return AgentSettings(url, directory, token_file, keys or defaults.key_directories, data, tap, labels, name)


def lies_below(path: str, directories: Iterable[str]) -> bool:
    """Tell whether a path lies below one of some directories, when symbolic links of all are followed."""
    real = os.path.realpath(path)
    for directory in directories:
        above = os.path.realpath(directory)
        if real != above and os.path.commonpath((real, above)) == above:
            return True
    return False


def _directory(options: OptionReader, environ: Mapping[str, str]) -> str | None:
    if options.raw("console-dir"):
        directory = options.path("console-dir")
    else:
        state = default_state_dir(environ)
        directory = None if state is None else os.path.join(state, "console")
        options.show("console-dir", directory or "none")
        if directory is None:
            options.error("console", "It needs --console-dir, or StateDirectory= of systemd.")
    if directory is not None:
        options.attempt("console-dir", check_state_dir, directory)
    return directory


def _console_url(text: str) -> str:
    try:
        console_place(text)
    except ValueError as error:
        # What stands before an @ may be a password.
        raise ConfigError(str(error) if "@" in text else f"{quoted(text)} can't be used. {error}") from None
    return text.rstrip("/")
