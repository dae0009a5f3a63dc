"""
Observer spec strings, C{name:arg:key=value}, read without opening anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from webhookrx.config.files import absolute
from webhookrx.config.problems import quoted
from webhookrx.config.settings import MESSAGE_FILE, Observer
from webhookrx.config.spec_strings import escaped, split_spec
from webhookrx.errors import ConfigError


def parse_observer(text: str) -> Observer:
    """
    Read a spec string. The path of a C{file:} observer is made absolute: twistd changes its directory later.

    @raise ConfigError: the name is missing, the grammar is broken, or the directory of the file does not exist.
    """
    args, options = split_spec(text)
    name = args[0] if args else ""
    if not name:
        raise ConfigError(f"{quoted(text)} names no observer; write for example file:messages.jsonl or stdout.")
    rest = args[1:]
    if name == "file" and rest and rest[0]:
        rest = [_writable_place(text, rest[0]), *rest[1:]]
    return Observer(text=text, name=name, args=tuple(rest), options=tuple(options.items()))


def default_observer(environ: Mapping[str, str]) -> Observer:
    """
    Return the observer of a service that names none.

    @param environ: the environment; C{STATE_DIRECTORY} is what systemd sets, several separated by colons.
    """
    directory = environ.get("STATE_DIRECTORY", "").partition(":")[0]
    path = absolute(os.path.join(directory, MESSAGE_FILE))
    return parse_observer(f"file:{escaped(path)}")


def _writable_place(text: str, path: str) -> str:
    path = absolute(path)
    directory = os.path.dirname(path)
    if os.path.isdir(path):
        raise ConfigError(f"{quoted(text)}: {quoted(path)} is a directory; a file name is needed.")
    if not os.path.isdir(directory):
        raise ConfigError(f"{quoted(text)}: the directory {quoted(directory)} does not exist.")
    return path
