"""
C{${env:NAME}} and C{${file:PATH}} in values of the configuration file. A colon is in no macro's name, so templates stay
what they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from webhookrx.config.files import absolute, read_file
from webhookrx.config.spec_strings import escaped, split_raw, unescaped
from webhookrx.config.tls_files import OTHERS
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError

_REFERENCE: Final = re.compile(r"(?P<escape>\$?)\$\{(?P<kind>env|file):(?P<name>[^}]*)(?P<end>\}?)")
_BARE: Final = re.compile(r"(?<!\$)\$\{([A-Za-z_]\w*)\}")

#: Observers of ours, and their options that are templates; those of plugins are theirs to know.
_OBSERVERS: Final = ("file", "http", "spool", "stdout", "syslog")
_TEMPLATES: Final = ("template", "app_name")


class References:
    """
    Puts in what values refer to.

    @param environ: the environment.
    @param warn: told of a file that every user can read.
    """

    def __init__(self, environ: Mapping[str, str], warn: Callable[[str], object]) -> None:
        self._environ = environ
        self._warn = warn

    def filled(self, text: str, *, is_spec: bool) -> str:
        """
        Return a value with what it refers to in place.

        @param is_spec: it is an endpoint or observer string: what comes into it is escaped, unless it is all of it.
        @raise ConfigError: a variable is not set, a file can't be read, or a reference does not end.
        """
        if "${" not in text:
            return text
        whole = _REFERENCE.fullmatch(text)
        if whole is not None and not whole["escape"]:
            return self._value(whole)
        return _REFERENCE.sub(lambda found: self._in_place(found, is_spec), text)

    def _in_place(self, found: re.Match[str], is_spec: bool) -> str:
        if found["escape"]:
            return found[0].removeprefix("$")
        value = self._value(found)
        return escaped(value) if is_spec else value

    def _value(self, found: re.Match[str]) -> str:
        kind, name = found["kind"], found["name"]
        if not found["end"]:
            raise ConfigError(f"A reference that begins with ${{{kind}: has no }} at its end.")
        if not name:
            raise ConfigError(f"${{{kind}:}} names nothing; it is written as ${{env:NAME}} or ${{file:PATH}}.")
        if kind == "file":
            return self._content(absolute(name))
        if name not in self._environ:
            raise ConfigError(f"The environment variable {quoted(name)} is not set.")
        return self._environ[name]

    def _content(self, path: str) -> str:
        data, mode = read_file(path)
        if mode & OTHERS:
            self._warn(f"{quoted(path)} can be read or written by every user: chmod 640 or less.")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise ConfigError(f"{quoted(path)} is not UTF-8 text.") from None
        return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def bare_reference(text: str, *, is_spec: bool) -> str | None:
    """
    Return the first C{NAME} of a C{${NAME}} where no template is wanted, so that it is probably meant to be a
    reference; None when there is none.

    @param text: a value as it is written.
    @param is_spec: it is an endpoint or observer string.
    """
    if "${" not in text:
        return None
    found = _bare_in_spec(text) if is_spec else _BARE.search(text)
    return found and found[1]


def _bare_in_spec(text: str) -> re.Match[str] | None:
    parts = split_raw(text)
    if not (parts[0] in _OBSERVERS or _BARE.search(parts[0])):
        return None
    for part in parts:
        key, equals, value = part.partition("=")
        if equals and key == "observer":
            found = _bare_in_spec(unescaped(value) if "\\:" in value else value)
        elif equals and key in _TEMPLATES:
            found = None
        else:
            found = _BARE.search(part)
        if found is not None:
            return found
    return None
