"""
What the command reads: files that are named, and standard input.
"""

from __future__ import annotations

import sys
from typing import Final

from webhookrx.config.files import LARGEST_FILE, read_file
from webhookrx.errors import ConfigError

STANDARD_INPUT: Final = "-"


def read_input(path: str) -> bytes:
    """
    Return what is in a file, or for C{-} what comes on standard input.

    @raise ConfigError: it can't be read, or is absurdly large; the text names it.
    """
    if path != STANDARD_INPUT:
        return read_file(path)[0]
    content = sys.stdin.buffer.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ConfigError("Standard input is larger than 16 MiB; that is not the file that was meant.")
    return content


def read_text(path: str) -> str:
    """
    Return the same as text.

    @raise ConfigError: as there, or it is not UTF-8.
    """
    try:
        return read_input(path).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{shown_name(path)} is not UTF-8.") from None


def shown_name(path: str) -> str:
    """Return what a file is called: its path, with escapes for what is no text in it."""
    return "standard input" if path == STANDARD_INPUT else encodable(path)


def encodable(text: str) -> str:
    """Return a word of the command line with escapes for the bytes in it that are no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()
