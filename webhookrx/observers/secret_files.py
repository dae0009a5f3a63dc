"""
Files that hold one secret, such as a password. Nothing of their content is ever quoted.
"""

from __future__ import annotations

from webhookrx.config.files import read_file
from webhookrx.config.specs import SpecOptions
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError


def read_secret(path: str, options: SpecOptions, option: str) -> str:
    """
    Read a file that holds one secret, on a line of its own. White space in the line is a part of it.

    @param option: the option that names the file, for errors.
    @raise ConfigError: the file can't be read, or does not hold exactly one line of text that is not empty.
    """
    try:
        return read_one_secret(path)
    except ConfigError as error:
        raise options.problem(f"{option}: {error.problem}") from None


def read_one_secret(path: str) -> str:
    """
    Do the same as L{read_secret} where the caller names the option.

    @raise ConfigError: the file can't be read, or does not hold exactly one line of text that is not empty.
    """
    content, _ = read_file(path)
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{quoted(path)} is not UTF-8.") from None
    secrets = [line for line in (line.removesuffix("\r") for line in lines) if line]
    if len(secrets) != 1:
        raise ConfigError(f"{quoted(path)} holds {len(secrets)} lines; it must hold one, the secret.")
    if not secrets[0].isprintable():
        raise ConfigError(f"{quoted(path)} holds a control character.")
    return secrets[0]
