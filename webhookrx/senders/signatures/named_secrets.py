"""
Secrets with names, one a line: C{NAME = VALUE}.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from webhookrx.intake.named_lines import MEANT_NAMED, is_meant_named, lines_in_use

MAX_SECRETS: Final = 16
"""Secrets of a source. Each is tried with each signature of a request, so that this bounds what a request costs."""

_NAMED: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})[ \t]+=[ \t]+(.*)")
_ANSWERS: Final = "verify-token"


class SecretError(ValueError):
    """
    A secret can't be used. The text is one sentence that does not quote it.

    @ivar line: where it is in its file, from 1; 0 when that is not known.
    """

    def __init__(self, sentence: str, line: int = 0) -> None:
        super().__init__(sentence)
        self.line = line


class NamedSecret(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """
    A secret, public key or verify token.

    @ivar name: what messages, metrics and log lines call it.
    @ivar value: the text in its file, not yet decoded.
    """

    name: str
    value: bytes

    @property
    def is_verify_token(self) -> bool:
        """Whether it only answers questions of a handshake: it is never a key."""
        return self.name == _ANSWERS or self.name.startswith(f"{_ANSWERS}.")

    def __repr__(self) -> str:
        return f"<NamedSecret {self.name}>"


def read_secrets(text: str, read_file: Callable[[str], bytes] | None = None) -> list[NamedSecret]:
    """Read secrets, one a line; see L{read_secret_lines}."""
    return [secret for _, secret in read_secret_lines(text, read_file)]


def read_secret_lines(text: str, read_file: Callable[[str], bytes] | None = None) -> list[tuple[int, NamedSecret]]:
    """
    Read secrets, one a line, and return each with the number of its line; see L{lines_in_use}. A line is
    C{NAME = VALUE}, with blanks around the equals sign, else all of it is the value, and its number the name.

    @param text: what the file holds; C{surrogateescape} keeps bytes that are not UTF-8.
    @param read_file: returns the bytes of a file, for schemes with C{key: pem}, where C{NAME = @FILE} names one; it may
        raise L{SecretError}. Without it, C{@FILE} is a secret like any other.
    @raise SecretError: there are none or too many, a name is there twice, or a value is empty.
    """
    secrets: dict[str, tuple[int, NamedSecret]] = {}
    for number, line in lines_in_use(text):
        named = _NAMED.fullmatch(line)
        name, value = named.groups() if named else (str(number), line)
        if not named and re.fullmatch(r"[A-Za-z0-9._-]+[ \t]+=", line):
            raise SecretError("The secret has a name, but no value.", number)
        if name in secrets:
            raise SecretError(f"There are two secrets with the name {name!r}.", number)
        if read_file is not None and value.startswith("@"):
            data = read_file(value[1:])
        else:
            data = value.encode("utf-8", "surrogateescape")
        secrets[name] = number, NamedSecret(name, data)
        if len(secrets) > MAX_SECRETS:
            raise SecretError(f"There are more than {MAX_SECRETS} secrets.", number)
    if not secrets:
        raise SecretError("There is no secret in it.")
    return list(secrets.values())


def doubt_about(secret: NamedSecret, line: int) -> str:
    """
    Return what may be wrong with a secret that can be used, as a sentence; empty if nothing is.

    @param line: where it is in its file, from 1.
    """
    value = secret.value
    if secret.name == str(line) and is_meant_named(value.decode("latin-1")):
        return MEANT_NAMED.format("secret")
    if len(value) > 1 and value[:1] == value[-1:] and value[:1] in (b"'", b'"'):
        return "The quotes are taken for a part of the secret."
    return ""
